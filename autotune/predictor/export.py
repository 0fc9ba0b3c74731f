"""Writes a trained network as ONNX, for batches of 64 programs, and checks the file against PyTorch.

    PYTHONPATH=autotune python -m predictor.export RUN --data DIR --features DIR --out model.onnx

Inputs are raw features, only those that the network needs: `steps` [64, rows, 43], `loops` [64, rows, columns], `one_shot` [64, 748],
`task` [64, columns], `hardware` [64, numbers]; rows that are not there are zero. Whatever is done to them is in the file. Outputs are
`score` (higher is faster; of the ranker the binary logarithm of speed, but for a constant of the task), of the ranker also `spread` (a
standard deviation of the score) and `embedding`. Metadata say what it is: kind, features, rows_steps, rows_loops, platforms, hardware, trained, seed,
gain_variance.
"""
import argparse
import json
import math
import pathlib
import warnings

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
import torch

from . import batches, data, models

BATCH, OPSET = 64, 17
LOG2 = math.log(2)
STEP_COLUMNS = 43
VERSIONS = {"steps": 1, "loops": 1, "one-shot": 1, "task": 1, "hardware": 1}


class ByPosition(torch.nn.Module):
    """The network with inputs and outputs in a fixed order; cuts columns that it does not read. The ranker's natural logarithms become
    binary ones; of several platforms' heads the first one's score is taken."""

    def __init__(self, model, needs, outputs):
        super().__init__()
        self.model, self.needs, self.outputs = model, needs, outputs

    def forward(self, *values):
        inputs = dict(zip(self.needs, values))
        if "steps" in inputs:
            inputs["steps"] = inputs["steps"][:, :, :self.needs["steps"]["width"]]
        output = self.model(inputs)
        if "spread" in output:
            output = {**output, "score": output["score"] / LOG2, "spread": output["spread"] / LOG2}
        if output["score"].dim() == 2:
            output["score"] = output["score"][:, 0]
        return tuple(output[name] for name in self.outputs)


def load_run(run, corpus):
    facts = json.loads((pathlib.Path(run) / "config.json").read_text())
    model = models.build(facts["config"], corpus, facts["places"])
    model.load_state_dict(torch.load(pathlib.Path(run) / "weights.pt", weights_only=True))
    return model.eval(), facts


def outputs_of(facts):
    return ["score", "spread", "embedding"] if facts["config"]["model"] in models.RANKERS else ["score"]


def raw_inputs(corpus, needs, programs, platform):
    """What the file takes: as the network's own, but with all columns of the steps."""
    wide = {kind: {**shape, "width": STEP_COLUMNS} if kind == "steps" else shape for kind, shape in needs.items()}
    return batches.inputs_of(corpus, wide, programs, np.full(len(programs), platform))


def kind_of(config):
    """By which a tuner asks for the network."""
    if config["model"] in models.RANKERS:
        return "ranker"
    return "mtl-tlp" if config["network"].get("head_each_platform") else config["model"]


def metadata(facts, needs, corpus):
    return {"kind": kind_of(facts["config"]), "features": ",".join(f"{name}/{VERSIONS[name]}" for name in needs),
            "rows_steps": str(needs.get("steps", {}).get("rows", 0)), "rows_loops": str(needs.get("loops", {}).get("rows", 0)),
            "platforms": ",".join(facts["platforms"]), "hardware": ",".join(corpus.hardware_names) if "hardware" in needs else "",
            "trained": facts["data"], "seed": str(facts["seed"]), **task_range(corpus)}


def task_range(corpus):
    """The least and greatest numbers of the tasks of training, of networks that read them: beyond these a predictor guesses."""
    if "task" not in corpus.features:
        return {}
    seen = corpus.features["task"]
    first = np.array([corpus.start[task] for task in corpus.split("train")])
    rows = seen.single(first[seen.count[first] > 0])
    return {name: ",".join(f"{value:.6g}" for value in values) for name, values in (("task_least", rows.min(axis=0)), ("task_most", rows.max(axis=0)))}


def export(run, corpus, path):
    model, facts = load_run(run, corpus)
    needs = facts["config"]["features"]
    example = raw_inputs(corpus, needs, np.zeros(BATCH, np.int64), facts["places"][0])
    outputs = outputs_of(facts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(ByPosition(model, needs, outputs), tuple(example.values()), str(path), dynamo=False, opset_version=OPSET,
                          input_names=[kind.replace("-", "_") for kind in needs], output_names=outputs)
    file = onnx.load(str(path))
    about = metadata(facts, needs, corpus)
    if (numbers := pathlib.Path(run) / "gains.json").exists():
        about["gain_variance"] = ",".join(f"{number:.6g}" for number in json.loads(numbers.read_text()))
    for key, value in about.items():
        file.metadata_props.add(key=key, value=value)
    onnx.checker.check_model(file, full_check=True)
    onnx.save(file, str(path))
    return path


def compare(run, corpus, path, programs):
    """The greatest difference between the file's outputs and PyTorch's, relative to the output's greatest number."""
    model, facts = load_run(run, corpus)
    needs = facts["config"]["features"]
    inputs = raw_inputs(corpus, needs, programs, facts["places"][0])
    with torch.no_grad():
        wanted = ByPosition(model, needs, outputs_of(facts))(*inputs.values())
    got = ReferenceEvaluator(str(path)).run(None, {kind.replace("-", "_"): value.numpy() for kind, value in inputs.items()})
    return max(float(np.abs(a.numpy() - b).max() / max(1.0, np.abs(b).max())) for a, b in zip(wanted, got))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--data", required=True)
    parser.add_argument("--features", required=True)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    needs = json.loads((pathlib.Path(arguments.run) / "config.json").read_text())["config"]["features"]
    corpus = data.load(arguments.data, arguments.features, list(needs))
    path = export(arguments.run, corpus, pathlib.Path(arguments.out))
    difference = compare(arguments.run, corpus, path, np.arange(BATCH) * (len(corpus.ids) // BATCH))
    print(f"{path}: {path.stat().st_size} bytes, differs from PyTorch by {difference:.1e}")
    if difference > 2e-3:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
