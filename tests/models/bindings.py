#!/usr/bin/env python3
"""Networks with free sizes (free_models.py, those of sizes.py, the examples), compiled with every subset of their free dimensions bound, and run at random sizes
against onnxruntime. A default schedule that does not apply fails here (--strict).

    bindings.py --tilewright BUILD/tilewright [--shard I/N] [--seeds 2] [--bindings 20] [--models DIR] [--only NAME]
"""
import argparse
import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

import free_models
import sizes as transformers
from sizes import worst

DIGITS = pathlib.Path(__file__).parents[2] / "examples" / "digits" / "digits_batch.onnx"
TOLERANCE = 1e-4   # of an output's largest element


def drawn(dims, rng):
    """A size of each dimension; now and then the smallest or 1 of the multiples."""
    return {name: step * int(low if rng.random() < 0.2 else rng.integers(low, high + 1)) for name, (step, low, high) in dims.items()}


def subsets(names):
    return [set(some) for count in range(len(names) + 1) for some in itertools.combinations(names, count)]


def feeds_of(session, sizes, rng):
    """Words and masks are 0 or 1."""
    shapes = {i: [sizes[d] if isinstance(d, str) else d for d in i.shape] for i in session.get_inputs()}
    return {i.name: rng.integers(0, 2, shape) if i.type == "tensor(int64)" else rng.standard_normal(shape).astype(np.float32) for i, shape in shapes.items()}


def all_networks(seeds):
    """Names, and what makes each: the model and its free dimensions."""
    words = {"batch": (1, 1, 5), "seq": (1, 1, transformers.PLACES)}
    yield "digits_batch", lambda: (onnx.load(DIGITS), {"batch": (1, 1, 7)})
    yield "bert", lambda: (transformers.bert(), words)
    yield "gpt", lambda: (transformers.gpt(), words)
    for family in free_models.FAMILIES:
        for seed in range(seeds):
            yield f"{family.__name__}_{seed}", lambda family=family, seed=seed: family(seed)


def run(tilewright, artifact, feeds, names, folder):
    arguments = []
    for name, value in feeds.items():
        np.save(folder / f"{name}.npy", value)
        arguments += ["--input", f"{name}={folder / name}.npy"]
    done = subprocess.run([tilewright, "run", artifact, *arguments, "--threads", "2", "--output-dir", folder / "out"], capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr
    return [np.load(folder / "out" / f"{name}.npy") for name in names], ""


class Check:
    def __init__(self, args, folder):
        self.args, self.folder, self.failed, self.compiled, self.ran = args, folder, 0, 0, 0

    def off(self, what, why):
        self.failed += 1
        print("OFF ", what, why.strip(), flush=True)

    def compile(self, model, bound, what):
        flags = [flag for name, size in sorted(bound.items()) for flag in ("--dim", f"{name}={size}")]
        artifact = self.folder / "model.so"
        done = subprocess.run([self.args.tilewright, "compile", model, "-o", artifact, "--strict", *flags], capture_output=True, text=True)
        self.compiled += 1
        if done.returncode:
            self.off(what, f"compile {' '.join(flags)}: exit {done.returncode}: {done.stderr[:1500]}")
        return None if done.returncode else artifact

    def sizes(self, session, artifact, sizes, rng, what):
        feeds = feeds_of(session, sizes, rng)
        expected = session.run(None, feeds)
        got, problem = run(self.args.tilewright, artifact, feeds, [o.name for o in session.get_outputs()], self.folder)
        self.ran += 1
        error = problem if got is None else worst(expected, got)
        if isinstance(error, str) or error > TOLERANCE:
            self.off(f"{what} at {sizes}", error if isinstance(error, str) else f"{error:.1e}")

    def model(self, path, dims, seed, what):
        rng = np.random.default_rng(seed)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        choices = subsets(sorted(dims))
        every = len(choices)
        left = max(self.args.bindings, every)
        for at, names in enumerate(choices):
            runs = left // every + (at < left % every)
            bound = {name: size for name, size in drawn(dims, rng).items() if name in names}
            label = f"{what} with {bound or 'nothing'} bound"
            artifact = self.compile(path, bound, label)
            for _ in range(runs if artifact else 0):
                self.sizes(session, artifact, drawn(dims, rng) | bound, rng, label)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--shard", default="0/1", help="only the models whose number is I modulo N")
    parser.add_argument("--seeds", type=int, default=2, help="networks of each family")
    parser.add_argument("--bindings", type=int, default=20, help="sizes that each network runs at")
    parser.add_argument("--models", type=pathlib.Path, help="keep the networks there")
    parser.add_argument("--only", default="", help="those whose name begins so")
    args = parser.parse_args()
    part, parts = map(int, args.shard.split("/"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        check = Check(args, folder)
        for number, (what, make) in enumerate(all_networks(args.seeds)):
            if number % parts != part % parts or not what.startswith(args.only):
                continue
            model, dims = make()
            path = (args.models or folder) / f"{what}.onnx"
            onnx.save(model, path)
            before = check.failed
            check.model(path, dims, number, what)
            if check.failed == before:
                print("ok  ", what, flush=True)
    print(f"{check.compiled} compiles, {check.ran} runs, {check.failed} off")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
