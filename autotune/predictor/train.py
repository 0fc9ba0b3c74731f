"""Trains one model with one seed, and keeps the scores of all programs that it has not learned from.

    PYTHONPATH=autotune python -m predictor.train ranker --data DIR --features DIR --platforms 0,1 --seed 1 --out RUN
    .. --set epochs=5 --set loss.size=8     changes the configuration
    .. --set precision=bf16                 trains by products in bf16, TLP's first layers apart: twice as fast where the processor has them
    .. --share 0.05 --share-by tasks        the first platform has but a share of its labels
    .. --fold 2/4                           holds out a fold of the training and validation families, for choices between models

Training stops early by the families of validation. A run that was ended goes on where it was; a run that is complete is not made again.
RUN holds config.json, log.jsonl, the weights, and scores.npz (ids, keys of platforms, [platforms, programs] scores; nan: on a platform not asked for). A ranker has
gains.json, too: how far off its gains over a default may be.
"""
import argparse
import ctypes
import json
import pathlib
import sys
import time

import numpy as np
import torch

from . import batches, config as configs, data, gains, losses, metrics, models
from .models.trees import Trees

SAVE_SECONDS = 60


def loss_of(config, output, batch, examples):
    """The loss of a batch's scores, which are [lists, length]."""
    speeds, throughput, there = batch.tensors(examples)
    scores, loss = output["score"], config["loss"]
    if loss["name"] == "lambda_rank":
        total = losses.lambda_rank(scores, speeds, there) * (len(scores) if loss["batch"] == "shuffled" else 1)
    elif loss["name"] == "list_net":
        total = losses.list_net(scores, speeds, there, loss["temperature"])
    elif loss["name"] == "squared_speed":
        total = losses.squared(scores, speeds, there)
    elif loss["name"] == "squared_throughput":
        total = losses.squared(scores, throughput, there)
    else:
        raise ValueError(f"unknown loss '{loss['name']}'")
    if loss.get("log_error"):
        total = total + loss["log_error"] * losses.log_error(scores, speeds, there)
    if "spread" in output:
        total = total + losses.spread_likelihood(scores, output["spread"], speeds, there)
    return total


def forward(model, config, batch, examples):
    """The model's outputs for a batch as [lists, length]."""
    platforms = np.array(examples.platforms)[batch.rows]
    if getattr(model, "many", False):
        inputs = batches.inputs_of(examples.corpus, config["features"], batch.programs[0], platforms[0])
        return {"score": model(inputs)["score"].T}
    shape = batch.programs.shape
    inputs = batches.inputs_of(examples.corpus, config["features"], batch.programs.reshape(-1), platforms.reshape(-1))
    return {name: value.reshape(shape) for name, value in model(inputs).items() if name != "embedding"}


@torch.no_grad()
def outputs(model, config, corpus, programs, platform, head=0, chunk=1024):
    """{name: values} of programs on a platform of the corpus; `head` is its place among the model's platforms."""
    model.eval()
    parts = []
    for begin in range(0, len(programs), chunk):
        part = programs[begin:begin + chunk]
        out = model(batches.inputs_of(corpus, config["features"], part, np.full(len(part), platform)))
        parts.append({name: (value[:, head] if getattr(model, "many", False) else value).numpy() for name, value in out.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def score(*arguments, **more):
    return outputs(*arguments, **more)["score"]


def quality(examples, score_of, rows=None):
    """Mean over held-out tasks of three numbers: top-1, top-5, and the mean speed of the ten programs with the highest scores."""
    values = []
    for row, programs in examples.groups:
        if rows is not None and row not in rows:
            continue
        scores, speeds = score_of(row, programs), examples.speeds[row, programs]
        order = np.argsort(-scores, kind="stable")
        values.append((speeds[order[0]] + speeds[order[:5]].max() + speeds[order[:10]].mean()) / 3)
    return float(np.mean(values))


class Training:
    """A network with its optimizer, and an average of its weights when the configuration wants one."""

    def __init__(self, config, corpus, examples, held_out, seed):
        torch.manual_seed(seed)
        self.config, self.corpus, self.examples, self.held_out, self.seed = config, corpus, examples, held_out, seed
        self.model = models.build(config, corpus, examples.platforms)
        programs = np.unique(examples.pairs()[1])
        sample = np.random.default_rng(seed).choice(programs, min(4096, len(programs)), replace=False)
        known = np.array(examples.platforms)[np.arange(len(sample)) % len(examples.platforms)]
        self.model.fit(batches.inputs_of(corpus, config["features"], sample, known))
        optimizer = config["optimizer"]
        kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[optimizer["name"]]
        self.optimizer = kind(self.model.parameters(), lr=optimizer["rate"], weight_decay=optimizer["decay"])
        self.averaged = [p.detach().clone() for p in self.model.parameters()] if config["average"] else None
        self.epoch, self.steps, self.best, self.best_epoch, self.best_state = 0, 0, -np.inf, 0, None

    def rate(self):
        optimizer = self.config["optimizer"]
        if optimizer.get("schedule") != "cosine":
            return optimizer["rate"]
        warm = min(1.0, (self.epoch + 1) / max(1, optimizer.get("warm_up", 1)))
        return optimizer["rate"] * warm * (0.01 + 0.99 * 0.5 * (1 + np.cos(np.pi * self.epoch / self.config["epochs"])))

    def run_epoch(self):
        random = np.random.default_rng([self.seed, self.epoch])
        torch.manual_seed(self.seed * 100003 + self.epoch)
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        sum_, count = 0.0, 0
        for batch in batches.batches(self.config, self.examples, random, getattr(self.model, "many", False)):
            with torch.autocast("cpu", torch.bfloat16, enabled=self.config["precision"] == "bf16"):
                output = forward(self.model, self.config, batch, self.examples)
            loss = loss_of(self.config, {name: value.float() for name, value in output.items()}, batch, self.examples)
            self.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config["optimizer"].get("clip", 1e9))
            self.optimizer.step()
            sum_, count, self.steps = sum_ + float(loss.detach()), count + 1, self.steps + 1
            if self.averaged is not None:
                keep = min(self.config["average"], self.steps / (self.steps + 10))
                for mean, parameter in zip(self.averaged, self.model.parameters()):
                    mean.mul_(keep).add_(parameter.detach(), alpha=1 - keep)
        self.epoch += 1
        return sum_ / max(1, count)

    def exchange(self):
        """Puts the averaged weights in place of the present ones, and back."""
        if self.averaged is None:
            return
        for mean, parameter in zip(self.averaged, self.model.parameters()):
            mean_data = mean.clone()
            mean.copy_(parameter.data)
            parameter.data.copy_(mean_data)

    def held_out_quality(self):
        """Of the weights as they are, which are kept if none were better. None: nothing that is held out has labels, so the last ones are kept."""
        self.exchange()
        platforms = self.held_out.platforms
        target = [0] if getattr(self.model, "many", False) else None  # the first platform is the target
        if not self.held_out.groups:
            value = None
        elif self.config["select"] == "loss":
            value = -self.held_out_loss()
        else:
            value = quality(self.held_out, lambda row, chosen: score(self.model, self.config, self.corpus, chosen, platforms[row], row), target)
        if value is None or value > self.best:
            self.best, self.best_epoch = self.best if value is None else value, self.epoch
            self.best_state = {name: x.clone() for name, x in self.model.state_dict().items()}
        self.exchange()
        return value

    @torch.no_grad()
    def held_out_loss(self):
        self.model.eval()
        random = np.random.default_rng(0)
        many = getattr(self.model, "many", False)
        values = [float(loss_of(self.config, forward(self.model, self.config, batch, self.held_out), batch, self.held_out))
                  for batch in batches.batches(self.config, self.held_out, random, many)]
        return float(np.mean(values))

    def state(self):
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "averaged": self.averaged, "epoch": self.epoch,
                "steps": self.steps, "best": self.best, "best_epoch": self.best_epoch, "best_state": self.best_state}

    def restore(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        for name in ("averaged", "epoch", "steps", "best", "best_epoch", "best_state"):
            setattr(self, name, state[name])


def train_network(config, corpus, examples, held_out, seed, out, say):
    """The trained network with the weights of its best epoch, and their quality."""
    training, last, saved = Training(config, corpus, examples, held_out, seed), out / "last.pt", time.monotonic()
    if last.exists():
        training.restore(torch.load(last, weights_only=False))
    while training.epoch < config["epochs"] and training.epoch - training.best_epoch < config["patience"]:
        loss = training.run_epoch()
        held = training.held_out_quality()
        say({"epoch": training.epoch, "loss": round(loss, 5), "held_out": held if held is None else round(held, 5)})
        if time.monotonic() - saved > SAVE_SECONDS:
            torch.save(training.state(), out / "last.tmp")
            (out / "last.tmp").replace(last)
            saved = time.monotonic()
    training.model.load_state_dict(training.best_state)
    torch.save(training.best_state, out / "weights.pt")
    last.unlink(missing_ok=True)
    return training.model, training.best if np.isfinite(training.best) else None


def train_trees(config, corpus, examples, held_out, seed, out, say):
    trees = Trees(config)
    best = trees.train(examples, held_out, seed, lambda number, value: say({"round": number, "held_out": round(value, 5)}),
                       lambda score_of: quality(held_out, lambda _row, programs: score_of(programs)))
    trees.save(str(out / "trees.json"))
    return trees, best


def all_outputs(config, corpus, model, platforms, learned):
    """{name: [platforms of the corpus, programs, ..]}: scores; of rankers spreads and embeddings, too. nan for programs of learned tasks."""
    programs = np.nonzero(~np.isin(corpus.task_of, learned))[0]
    out, same = {}, {}   # By head: without the hardware, a model scores all platforms alike.
    for place in range(len(corpus.platforms)):
        head = platforms.index(place) if getattr(model, "many", False) and place in platforms else 0
        key = place if "hardware" in config["features"] else head
        if key not in same:
            trees = config["model"] == "trees"
            same[key] = {"score": model.score(corpus, programs)} if trees else outputs(model, config, corpus, programs, place, head)
        for name, values in same[key].items():
            whole = out.setdefault(name + "s", np.full((len(corpus.platforms), len(corpus.ids), *values.shape[1:]), np.nan, np.float32))
            whole[place, programs] = values
    return out


def tasks_of(corpus, fold):
    """Tasks to learn from, and tasks held out."""
    if not fold:
        return corpus.split("train"), corpus.split("validation")
    number, count = (int(x) for x in fold.split("/"))
    of_task, known = data.folds(corpus, count), corpus.split("train", "validation")
    return [i for i in known if of_task[i] != number], [i for i in known if of_task[i] == number]


def run(arguments, corpus=None):
    config = configs.load(arguments.config, arguments.set)
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    if (out / "done.json").exists():
        return json.loads((out / "done.json").read_text())
    corpus = corpus or data.load(arguments.data, arguments.features, list(config["features"]))
    platforms = [int(x) for x in arguments.platforms.split(",")]
    data.check_one_kind(corpus, platforms)
    allowed = np.ones(corpus.seconds.shape, bool)
    allowed[platforms[0]] = data.share_of_labels(corpus, arguments.share, arguments.share_by, arguments.seed, platforms[0])
    learned, held = tasks_of(corpus, arguments.fold)
    examples, held_out = (batches.Examples(corpus, tasks, platforms, allowed) for tasks in (learned, held))
    facts = {"config": config, "platforms": [corpus.platforms[p] for p in platforms], "places": platforms, "seed": arguments.seed,
             "share": arguments.share, "share_by": arguments.share_by, "fold": arguments.fold, "data": corpus.checksum,
             "tasks": len(learned), "labels": len(examples.pairs()[0])}
    (out / "config.json").write_text(json.dumps(facts, indent=1) + "\n")
    start = time.monotonic()

    def say(line):
        line["seconds"] = round(time.monotonic() - start, 1)
        with (out / "log.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")
        print(f"{out.name}: {line}", flush=True)
    learn = train_trees if config["model"] == "trees" else train_network
    model, best = learn(config, corpus, examples, held_out, arguments.seed, out, say)
    scores = all_outputs(config, corpus, model, platforms, learned)
    embeddings = scores.pop("embeddings", None)
    if config["model"] in models.RANKERS:
        logarithms = scores["scores"] / np.log(2)
        if (numbers := gains.variance(corpus, logarithms, embeddings, platforms)) is not None:
            (out / "gains.json").write_text(json.dumps([float(number) for number in numbers]) + "\n")
            scores["gain_spreads"] = gains.spreads(corpus, logarithms, embeddings, numbers)
    np.savez_compressed(out / "scores.npz", ids=corpus.ids, platforms=np.array(corpus.platform_keys), **scores)
    done = {"held_out": best, "seconds": round(time.monotonic() - start, 1)}
    (out / "done.json").write_text(json.dumps(done) + "\n")
    return done


def settle():
    """One thread, as the figures are stated, and memory that is kept: giving it back to the system takes half of the time otherwise."""
    torch.set_num_threads(1)
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(-4, 0)          # M_MMAP_MAX
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def parser():
    out = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("config")
    out.add_argument("--data", required=True)
    out.add_argument("--features", required=True)
    out.add_argument("--platforms", default="0", help="numbers in the data set; the first is the target (default: 0)")
    out.add_argument("--seed", type=int, default=1)
    out.add_argument("--out", required=True)
    out.add_argument("--share", type=float, default=1.0)
    out.add_argument("--share-by", default="tasks", choices=["tasks", "programs"])
    out.add_argument("--fold", default="")
    out.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    return out


def main():
    settle()
    try:
        print(json.dumps(run(parser().parse_args())))
    except ValueError as error:
        sys.exit(f"train: {error}")


if __name__ == "__main__":
    main()
