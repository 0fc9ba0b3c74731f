#!/usr/bin/env python3
"""Each quantized operator alone, and behind and before each other one, as QDQ and as integer operators: against exact integers
(exact_integers.py) and onnxruntime without its optimizations. Elements are equal, but where a number lies on a rounding tie: these are
counted. Many chains are one model, of which each has inputs and outputs of its own.

    pairs.py --tilewright BUILD/tilewright [--full | --share I/N] [--target NAME...] [--seed N] [--only INDEX] [--keep DIR]
"""
import argparse
import concurrent.futures
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "boards"))
from firmware import BOARDS, run as run_on_board
from chains import MS, OPERATORS, TYPES, Case
from emulators import EMULATORS

FORMS = ("qdq", "qlinear")
FOUND = (1, 576, 675, 700, 27, 202)   # have found faults: a part of every share
ALONE, PAIRS, TRIPLES = 12, 2, 1200   # draws of each operator and pair in each form; of triples in all
MACHINES = {"host": [], "x86-64-v2": [], "x86-64-v3": [], **EMULATORS, **{board: ["qemu-system-arm"] for board in BOARDS}}
BOARD_CHAINS = 10   # as many as the flash of a board holds


def plan():
    """The operators and the form of each case, by index."""
    rng = np.random.default_rng(5)
    names = list(OPERATORS)
    cases = [((name,), form) for _ in range(ALONE) for form in FORMS for name in names]
    cases += [(pair, form) for _ in range(PAIRS) for form in FORMS for pair in itertools.product(names, names)]
    cases += [(tuple(names[i] for i in rng.integers(0, len(names), 3)), FORMS[k % 2]) for k in range(TRIPLES)]
    return cases


def model_of(cases):
    outputs = [helper.make_tensor_value_info(c.result.name, TYPES[c.result.by.type], c.result.shape) for c in cases]
    graph = helper.make_graph(sum((c.nodes for c in cases), []), "pairs", sum((c.values for c in cases), []), outputs,
                              sum((c.weights for c in cases), []))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)], ir_version=8)


def feeds_of(cases):
    return {name: value for c in cases for name, value in c.feeds.items()}


def by_onnxruntime(cases):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model_of(cases).SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run([c.result.name for c in cases], feeds_of(cases))


def compiled_and_run(tilewright, work, target, cases):
    """The outputs, or what went wrong."""
    path, library, data, out = work / "model.onnx", work / "model.so", work / "data", work / "out"
    for folder in (data, out):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    onnx.save(model_of(cases), path)
    if target in BOARDS:
        return run_on_board(tilewright, work, target, path, list(feeds_of(cases).values()),
                            [np.empty(c.result.shape, c.result.by.type) for c in cases])
    done = subprocess.run([tilewright, "compile", path, "-t", target, "-j", "1", "--with-runner", "-o", library], capture_output=True, text=True)
    if done.returncode:
        return f"compile ends with {done.returncode}: {last_line(done)}"
    for i, value in enumerate(feeds_of(cases).values()):
        np.save(data / f"input_{i}.npy", value)
    done = subprocess.run([*MACHINES[target], library.with_suffix(".run"), "run", "--data", data, "-d", out, "--threads", "1"],
                          capture_output=True, text=True)
    if done.returncode:
        return f"the runner ends with {done.returncode}: {last_line(done)}"
    return [np.load(out / f"{c.result.name}.npy") for c in cases]


def last_line(process):
    return ((process.stderr or process.stdout).strip().splitlines() or [""])[-1][-300:]


def outside(got, bounds):
    """How many elements are neither, and by how much at most."""
    got = got.astype(np.int64)
    off = np.maximum(bounds.low - got, got - bounds.high)
    return int(np.count_nonzero(off > 0)), int(off.max(initial=0))


class Tally:
    def __init__(self):
        self.cases = self.elements = self.ties = self.theirs = 0
        self.failures = []

    def add(self, other):
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def judge(tally, case, got, theirs):
    strict, loose = case.result.strict, case.result.loose
    tally.cases += 1
    tally.elements += strict.low.size
    tally.ties += int(np.count_nonzero(strict.low != strict.high))
    count, most = outside(theirs, loose)
    if count:
        tally.failures.append((case, f"onnxruntime and the exact integers differ: {count} of {strict.low.size}, by {most}"))
    tally.theirs += int(np.count_nonzero(theirs != got)) if got.shape == theirs.shape else 0
    if got.shape != strict.low.shape or got.dtype != case.result.by.type:
        return tally.failures.append((case, f"is {got.dtype}{got.shape}, expected {strict.low.shape}"))
    count, most = outside(got, strict)
    if count:
        tally.failures.append((case, f"{count} of {got.size} elements are off, by {most} at most"))


def check(tilewright, target, cases, theirs):
    """Halves what is not compiled, until it is one chain."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        got = compiled_and_run(tilewright, pathlib.Path(folder), target, cases)
    if isinstance(got, str) and len(cases) > 1:
        half = len(cases) // 2
        for part in (slice(0, half), slice(half, None)):
            tally.add(check(tilewright, target, cases[part], theirs[part]))
    elif isinstance(got, str):
        tally.cases = 1
        tally.failures.append((cases[0], got))
    else:
        for case, mine, other in zip(cases, got, theirs):
            judge(tally, case, mine, other)
    return tally


def chosen(args):
    cases = plan()
    if args.only is not None:
        return [(args.only, *cases[args.only])]
    index, count = (0, 1) if args.full else map(int, args.share.split("/"))
    mixed = np.random.default_rng(7).permutation(len(cases))   # so that a share has all operators
    return [(i, *cases[i]) for i in dict.fromkeys([*FOUND, *mixed[index::count].tolist()])]


def run_batch(args, target, batch):
    cases = [Case(i, args.seed).build(kinds, form) for i, kinds, form in batch]
    return check(args.tilewright, target, cases, by_onnxruntime(cases))


def run_target(args, target):
    """True: all chains of the share are right, or the machine is not here."""
    if MACHINES[target] and not shutil.which(MACHINES[target][0]):
        print(f"left out: {target}, as {MACHINES[target][0]} is not installed")
        return True
    size = BOARD_CHAINS if target in BOARDS else args.batch
    cases, total = chosen(args), Tally()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for tally in pool.map(lambda i: run_batch(args, target, cases[i:i + size]), range(0, len(cases), size)):
            total.add(tally)
    for case, why in total.failures:
        print(f"FAIL {case.text()}: {why}")
        if args.keep:
            args.keep.mkdir(parents=True, exist_ok=True)
            onnx.save(model_of([case]), args.keep / f"case{case.index}.onnx")
    print(f"{target}: {total.cases} chains of {len(plan())}, {total.elements} elements, {total.ties} on ties, {total.theirs} others than "
          f"onnxruntime's, {len(total.failures)} wrong", flush=True)
    return total.cases > 0 and not total.failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--full", action="store_true", help="all cases")
    parser.add_argument("--share", default="0/12", help="the Ith of N parts")
    parser.add_argument("--target", choices=MACHINES, nargs="+", default=["host"])
    parser.add_argument("--seed", type=int, default=1, help="of what each case draws")
    parser.add_argument("--only", type=int, help="one case")
    parser.add_argument("--batch", type=int, default=64, help="chains of a model")
    parser.add_argument("--keep", type=pathlib.Path, help="where models of failing chains go")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    args.tilewright = args.tilewright.resolve()
    return 0 if all([run_target(args, target) for target in args.target]) else 1


if __name__ == "__main__":
    sys.exit(main())
