#!/usr/bin/env python3
"""The four MLPerf Tiny networks in int8, on every kind of processor they are compiled for: this machine by several instruction sets,
AArch64 and microcontrollers in emulators.

Each quantized tensor is within a step of its exact value (exact.py), computed from our own inputs of its node: a second compile
gives all of them out. Of the compile as it is, the last quantized values are within a step of onnxruntime's without optimizations
(with them, its integer kernels saturate on chips without VNNI).

    mlperf_tiny.py --tilewright BUILD/tilewright [--full] [--part I/N] [--only NAME,...] [--targets NAME,...] [--inputs N]

Without --full: one network and three inputs for each target, another network of each part I; with it 20 inputs and all.
"""
import argparse
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/boards"), str(ROOT / "tests/quantize")]
import exact  # noqa: E402
from machines import missing, outputs_of  # noqa: E402

MODELS = ROOT.parent / "shared/models/real/mlperf_tiny"
NAMES = ["ad", "ic", "kws", "vww"]
TARGETS = ["x86-64-v2", "x86-64-v3", "host", "aarch64-generic", "cortex-m4", "cortex-m33", "cortex-m55"]
STEP = 1
ROUNDED = 1e-5   # of a probability


def drawn(shape, low, high, count, rng):
    """Inputs that fill the range of the first quantization: noise, some beyond it, waves, and blocks of one value."""
    grid = np.indices(shape).astype(np.float64)
    for i in range(count):
        kind = i % 4
        if kind == 0:
            unit = rng.uniform(0, 1, shape)
        elif kind == 1:
            unit = rng.normal(0.5, 0.4, shape)
        elif kind == 2:
            unit = 0.5 + 0.5 * np.sin(sum(g * rng.uniform(-0.3, 0.3) for g in grid) + rng.uniform(0, 6))
        else:
            unit = rng.integers(0, 2, shape) * rng.uniform(0, 1) if i % 8 == 3 else np.full(shape, rng.uniform(0, 1))
        yield (low + unit * (high - low)).astype(np.float32)


class Network:
    def __init__(self, name, count, seed, work):
        self.name, self.path = name, MODELS / f"{name}.onnx"
        proto = onnx.load(self.path)
        self.model, graph = exact.Model(proto.graph), proto.graph
        self.input, self.output = graph.input[0].name, graph.output[0].name
        shape = [d.dim_value for d in graph.input[0].type.tensor_type.shape.dim]
        first = self.model.makers[self.model.quantized[0]]
        scale, zero = self.model.parameters(first)
        limits = np.iinfo(zero.dtype)
        low, high = ((end - int(zero)) * float(scale) for end in (limits.min, limits.max))
        self.inputs = list(drawn(shape, low, high, count, np.random.default_rng(seed)))
        self.last = self.model.makers[self.model.makers[self.output].input[0]].output[0] if self.ends_in_softmax() else self.output
        self.logits = self.model.makers[self.last].input[0]
        self.kept = self.with_outputs(proto, self.model.quantized, work / f"{name}_kept.onnx")
        reference = self.with_outputs(onnx.load(self.path), [self.output, self.logits], work / f"{name}_reference.onnx")
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(reference), options, providers=["CPUExecutionProvider"])
        runs = [session.run(None, {self.input: x}) for x in self.inputs]
        self.wanted = {name: np.concatenate([run[i] for run in runs]) for i, name in enumerate([self.output, self.logits])}
        self.shapes = {}
        inferred = onnx.shape_inference.infer_shapes(onnx.load(self.path)).graph
        for value in [*inferred.value_info, *inferred.output]:
            self.shapes[value.name] = tuple(d.dim_value for d in value.type.tensor_type.shape.dim)

    def ends_in_softmax(self):
        return self.model.makers[self.output].op_type == "Softmax"

    def with_outputs(self, proto, names, path):
        given = {output.name: output for output in proto.graph.output}
        shapes = {v.name: v for v in onnx.shape_inference.infer_shapes(proto).graph.value_info}
        del proto.graph.output[:]
        proto.graph.output.extend(given.get(name) or shapes[name] for name in names)
        onnx.save(proto, path)
        return path

    def check(self, program, target, work):
        """What is wrong; "": nothing. And how many bytes were compared, and how many of them are a step off."""
        like = {name: (np.dtype(self.model.type_of(name)), self.shapes[name]) for name in self.model.quantized}
        runs = [[x] for x in self.inputs]
        (work / "kept").mkdir(), (work / "usual").mkdir()
        got = outputs_of(program, target, self.kept, runs, like, work / "kept")
        given = {name: value.reshape(-1, *value.shape[2:]) for name, value in got.items()} | {self.input: np.concatenate(self.inputs)}
        wrong, count, stepped, usual = [], 0, 0, 0
        for name in self.model.quantized:
            off = np.abs(given[name].astype(np.float64) - self.model.expected(name, given))
            count, stepped = count + off.size, stepped + np.count_nonzero(off)
            if off.max() > STEP:
                wrong.append(f"'{name}' is up to {off.max():g} steps off, {np.count_nonzero(off > STEP)} of {off.size}")
        like = {self.output: (np.dtype(np.float32), self.shapes[self.output])}
        result = outputs_of(program, target, self.path, runs, like, work / "usual")[self.output]
        wrong += self.compare_last(result.reshape(-1, result.shape[-1]).astype(np.float64))
        usual = np.abs(given[self.logits].astype(np.float64) - self.wanted[self.logits]).max()
        return wrong, count, stepped, usual

    def compare_last(self, result):
        """The model's result lies between what logits of a step less and a step more would make."""
        node = self.model.makers[self.last]
        scale, zero = self.model.parameters(node)
        real = (self.wanted[self.logits].astype(np.float64) - float(zero)) * float(scale)
        step = STEP * float(scale)
        if not self.ends_in_softmax():
            off = np.abs(result - real).max() / float(scale)
            return [f"the result is {off:g} steps off onnxruntime's"] if off > STEP + 1e-3 else []
        own = np.exp(real - real.max(-1, keepdims=True))
        others = own.sum(-1, keepdims=True) - own
        low, high = (own * np.exp(d) / (own * np.exp(d) + others * np.exp(-d)) for d in (-step, step))
        off = np.maximum(low - result, result - high).max()
        return [f"probabilities are {off:g} off those of onnxruntime's logits"] if not off <= ROUNDED else []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--part", default="0/4")
    parser.add_argument("--only", default="")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--inputs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if not MODELS.is_dir():
        print(f"skipped: the MLPerf Tiny networks, as there is no {MODELS}")
        return 0
    count = args.inputs or (20 if args.full else 3)
    part = int(args.part.split("/")[0])
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        networks = {name: Network(name, count, args.seed, work) for name in (args.only.split(",") if args.only else NAMES)}
        for number, target in enumerate(args.targets.split(",")):
            if program := missing(target):
                print(f"skipped: {target}, no {program}")
                continue
            names = list(networks)
            for name in names if args.full else [names[(number + part) % len(names)]]:
                place = work / f"{target}_{name}"
                place.mkdir()
                wrong, compared, stepped, last = networks[name].check(args.tilewright.resolve(), target, place)
                bad += bool(wrong)
                print(f"{'FAIL' if wrong else 'ok  '} {target:16} {name:4} {count} inputs, {compared} bytes of {len(networks[name].model.quantized)} "
                      f"tensors, {stepped} a step off; logits {last:g} off onnxruntime's", *wrong, sep="\n     ", flush=True)
    if not args.full:
        print("one network for each target, and few inputs: --full runs all")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
