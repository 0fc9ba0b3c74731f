"""XGBoost: AutoTVM's ranking of whole programs, and TenSet's trees over statements whose outputs are summed.

The first sees one row a program (the curve features) and pairs of the same task; the second fits best time over time with the squared
error of the sum over a program's statements. Its second derivative is taken as the number of statements, not as one: all of them move
at once, and the sum of a program with many would go past its goal.
"""
import numpy as np
import xgboost

from ..features import ONE_ROW


class Trees:
    def __init__(self, config):
        self.config, self.booster = config, None
        (self.kind, self.shape), = config["features"].items()

    def rows(self, corpus, programs):
        """A matrix, and which program each of its rows belongs to."""
        if self.kind in ONE_ROW:
            return corpus.features[self.kind].single(programs), np.arange(len(programs))
        dense = corpus.features[self.kind].dense(programs, self.shape["rows"])
        there = np.arange(dense.shape[1])[None] < np.maximum(1, corpus.features[self.kind].count[programs])[:, None]
        owner = np.repeat(np.arange(len(programs)), dense.shape[1]).reshape(there.shape)
        return dense[there], owner[there]

    def parameters(self, seed):
        return {"seed": seed, "nthread": 1, "verbosity": 0, "tree_method": "hist", "base_score": 0.0, **self.config["trees"]}

    def train(self, examples, held_out, seed, say, quality):
        """Stops when the quality on the held-out examples has not risen for `patience` rounds; keeps the best number of trees."""
        programs = np.concatenate([group for _, group in examples.groups])
        labels = np.concatenate([examples.speeds[row, group] for row, group in examples.groups])
        values, owner = self.rows(examples.corpus, programs)
        matrix = xgboost.DMatrix(values, label=labels[owner])
        objective = None
        if self.config["loss"]["name"] == "pairs":
            matrix.set_group([len(group) for _, group in examples.groups])
        else:
            many = np.bincount(owner, minlength=len(programs))[owner].astype(np.float32)

            def objective(output, _matrix):
                sums = np.bincount(owner, output, len(programs))
                return (sums - labels)[owner].astype(np.float32), many
        self.booster = xgboost.Booster(self.parameters(seed), [matrix])
        best, at, every = -np.inf, 0, self.config["every"]
        for number in range(1, self.config["rounds"] + 1):
            self.booster.update(matrix, number, fobj=objective)
            if number % every:
                continue
            value = quality(lambda chosen: self.score(held_out.corpus, chosen))
            say(number, value)
            if value > best:
                best, at = value, number
            if number - at >= self.config["patience"]:
                break
        self.booster = self.booster[:at]
        return best

    def score(self, corpus, programs):
        values, owner = self.rows(corpus, programs)
        return np.bincount(owner, self.booster.predict(xgboost.DMatrix(values), output_margin=True), len(programs))

    def save(self, path):
        self.booster.save_model(path)

    def read(self, path):
        self.booster = xgboost.Booster(model_file=path)
