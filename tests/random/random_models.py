#!/usr/bin/env python3
"""Random valid graphs over ONNX's operators, types, free extents and control flow, compiled for targets in turn: compared with
onnxruntime, and on this machine by `tilewright verify` with the reference evaluators in f64. Graphs that onnxruntime does not
run are verified alone. A failing graph is shrunk to the nodes that it takes, and kept.

    random_models.py --tilewright BUILD/tilewright [--count N] [--seed FIRST] [--nodes N] [--target NAME] [--keep DIR]
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "boards"))
import control
import elementwise
import layers
import shapes
from emulators import EMULATORS
from graph import BF16, F16, F32, FLOATS, Generator, make_model, reads

FAMILIES = elementwise.FAMILIES + shapes.FAMILIES + layers.FAMILIES + control.FAMILIES
TOLERANCE = {F32: 1e-4, F16: 2e-2, BF16: 1e-1}   # of an output's range, by the least precise type of the graph
UNSUPPORTED = 3                                  # exit status
# Which machine runs a target's runner; None: this one, by the library itself.
MACHINES = {"host": None, "x86-64-v2": None, "x86-64-v3": None, "x86-64-v4": None, "opencl-generic": None, **EMULATORS}
# A graph's is chosen by its seed.
TURNS = ["host", "x86-64-v3", "aarch64-generic", "host", "x86-64-v2", "armv7-generic", "host", "x86-64-v4", "aarch64-generic", "host",
         "rv64gc", "host", "x86-64-v3", "armv7-generic", "host", "opencl-generic"]


class LeftOut(Exception):
    """Why a graph is not counted."""


def expected_of(model, feeds):
    """onnxruntime's outputs; None: it does not run the graph."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        return dict(zip(names, session.run(names, feeds)))
    except Exception:
        return None


def difference(name, have, want, tolerance):
    if have.shape != want.shape or have.dtype != want.dtype:
        return f"{name} is {have.dtype}{have.shape}, expected {want.dtype}{want.shape}"
    if want.dtype not in FLOATS:
        return None if np.array_equal(want, have) else f"{name} differs"
    want, have = want.astype(np.float64), have.astype(np.float64)
    finite = np.isfinite(want)
    span = max(1e-3, float(np.abs(want[finite]).max(initial=0)))
    off = float(np.abs(want[finite] - have[finite]).max(initial=0)) / span
    return None if np.array_equal(finite, np.isfinite(have)) and off <= tolerance else f"{name} is off by {off:.2g} of its range"


def stored(work, feeds):
    """The flags that give a library these inputs, which it writes into files."""
    flags = []
    for i, (name, value) in enumerate(feeds.items()):
        np.save(work / f"in_{i}.npy", value)
        flags += ["--input", f"{name}={work / f'in_{i}.npy'}"]
    return flags


class Trial:
    """A model, the data of its runs, and onnxruntime's outputs of each run, or None. free: the free extent, or None."""
    def __init__(self, model, runs, tolerance, free=None):
        self.model, self.runs, self.tolerance, self.free = model, runs, tolerance, free

    def failure(self, tilewright, work, target):
        """What is wrong, in a line; None: nothing."""
        path, library = work / "model.onnx", work / "model.so"
        onnx.save(self.model, path)
        runner = ["--with-runner"] if MACHINES[target] else []
        limits = ["--dim", f"n={int(self.free)}..{self.free.second}"] if self.free else []   # what is cut from it is known to be there
        compiled = subprocess.run([tilewright, "compile", path, "-t", target, "-j", "1", "-o", library, *runner, *limits], capture_output=True, text=True)
        if compiled.returncode == UNSUPPORTED:
            raise LeftOut(f"not supported: {last_line(compiled)}")
        if compiled.returncode:
            return f"compile ends with {compiled.returncode}: {last_line(compiled)}"
        for feeds, expected in self.runs:
            check = self.by_runner if runner else self.by_library
            wrong = check(tilewright, work, target, library, feeds, expected)
            if wrong:
                return wrong
        return None if runner else self.verified(tilewright, work, library, path)

    def by_library(self, tilewright, work, target, library, feeds, expected):
        if expected is None:
            return None
        folder = work / "out"
        ran = subprocess.run([tilewright, "run", library, *stored(work, feeds), "--threads", "2", "--output-dir", folder], capture_output=True, text=True)
        if ran.returncode:
            return f"run ends with {ran.returncode}: {last_line(ran)}"
        wrong = (difference(name, np.load(folder / f"{name}.npy"), want, self.tolerance) for name, want in expected.items())
        return next(filter(None, wrong), None)

    def verified(self, tilewright, work, library, path):
        """By the reference evaluators, on the data of the last run."""
        sizes = ["--dim", f"n={self.free.second}"] if self.free else []
        told = subprocess.run([tilewright, "verify", library, path, *sizes, *stored(work, self.runs[-1][0]), "--tolerance", str(self.tolerance)],
                              capture_output=True, text=True)
        return None if told.returncode == 0 else f"verify ends with {told.returncode}: {last_line(told)}"

    def by_runner(self, tilewright, work, target, library, feeds, expected):
        if expected is None:
            raise LeftOut("onnxruntime does not run it")
        data = work / "data"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir()
        for kind, tensors in (("input", feeds), ("output", expected)):
            for i, value in enumerate(tensors.values()):
                np.save(data / f"{kind}_{i}.npy", value)
        told = subprocess.run([*MACHINES[target], library.with_suffix(".run"), "verify", "--data", data, "--threads", "1",
                               "--tolerance", str(self.tolerance)], capture_output=True, text=True)
        return None if told.returncode == 0 else f"the runner ends with {told.returncode}: {last_line(told)}"


def last_line(process):
    return ((process.stderr or process.stdout).strip().splitlines() or [""])[-1][-200:]


def shrunk(trial, wrong_with):
    """The model with as few nodes as still fail: one output at a time, then values that nodes make given as inputs instead. It is
    made of the first run."""
    model, feeds = trial.model, trial.runs[0][0]
    inner = [o for node in model.graph.node for o in node.output if o]
    full = onnx.ModelProto()
    full.CopyFrom(model)
    del full.graph.output[:]
    for name in inner:
        full.graph.output.add().name = name
    everything = expected_of(full, feeds)
    if everything is None:
        return model
    everything.update(feeds)

    def cut(nodes, outputs):
        needed, kept = set(outputs), []
        for node in reversed(nodes):
            if set(node.output) & needed:
                kept.insert(0, node)
                needed |= reads(node)
        made = {o for node in kept for o in node.output}
        weights = {w.name for w in model.graph.initializer}
        own = {name: everything[name] for name in sorted(needed) if name in everything and name not in made and name not in weights}
        types = {name: (value.dtype, value.shape) for name, value in own.items()}
        smaller = make_model(kept, types, list(model.graph.initializer), {o: (everything[o].dtype, everything[o].ndim) for o in outputs})
        return Trial(smaller, [(own, {o: everything[o] for o in outputs})], trial.tolerance)

    nodes, outputs = list(model.graph.node), [o.name for o in model.graph.output]
    for name in inner:   # the first value that is wrong
        if wrong_with(cut(nodes, [name])):
            outputs = [name]
            break
    again = True
    while again:
        again = False
        for node in list(nodes):
            rest = [n for n in nodes if n is not node]
            if not set(outputs) <= {o for n in rest for o in n.output}:
                continue
            smaller = cut(rest, outputs)
            if len(smaller.model.graph.node) and wrong_with(smaller):
                nodes, again = list(smaller.model.graph.node), True
                break
    return cut(nodes, outputs).model


def check_reduce(tilewright, work):
    """`tilewright reduce` finds the one node that cannot be compiled."""
    def info(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Tanh", ["a"], ["b"]), helper.make_node("Foo", ["b"], ["c"], domain="acme"),
             helper.make_node("Add", ["c", "a"], ["d"]), helper.make_node("Exp", ["d"], ["e"])]
    graph = helper.make_graph(nodes, "g", [info("x")], [info("e")], value_info=[info("c"), info("d")])
    path, small = work / "foo.onnx", work / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("acme", 1)], ir_version=8), path)
    told = subprocess.run([tilewright, "reduce", path, "-o", small], capture_output=True, text=True)
    return told.returncode == 0 and [n.op_type for n in onnx.load(small).graph.node] == ["Foo"]


def trial_of(seed, count):
    """None: nothing could be drawn."""
    generator = Generator(seed)
    for _ in range(4 * count):
        if len(generator.nodes) < count:
            generator.step(FAMILIES)
    if not generator.nodes:
        return None
    model = generator.finish()
    feeds = [generator.feeds(second) for second in ((False, True) if generator.free else (False,))]
    return Trial(model, [(f, expected_of(model, f)) for f in feeds], TOLERANCE[generator.least_precise()],
                 generator.free)


def run_seed(args, seed):
    """What became of the graph, its target, and what there is to say."""
    target = args.target or TURNS[seed % len(TURNS)]
    if target not in args.machines:
        return "no machine", target, None
    trial = trial_of(seed, args.nodes)
    if not trial:
        return "empty", target, None
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)

        def wrong_with(candidate):
            try:
                return candidate.failure(args.tilewright, work, target)
            except LeftOut:
                return None
        try:
            wrong = trial.failure(args.tilewright, work, target)
        except LeftOut as why:
            return "left out", target, f"left out seed {seed}, {target}: {why}"
        if not wrong:
            return ("compared" if trial.runs[0][1] else "verified alone"), target, None
        small = shrunk(trial, wrong_with)
        if args.keep:
            args.keep.mkdir(parents=True, exist_ok=True)
            onnx.save(trial.model, args.keep / f"seed{seed}.onnx")
            onnx.save(small, args.keep / f"seed{seed}_small.onnx")
    return "failed", target, f"FAIL seed {seed}, {target}: {wrong}; shrunk to {[n.op_type for n in small.graph.node]}"


def machines_here():
    """The targets that this machine runs, or an emulator does."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    lacking = {"x86-64-v4": "avx512bw", "x86-64-v3": "avx2", "x86-64-v2": "sse4_2"}
    found = [t for t, command in MACHINES.items() if lacking.get(t, "") in flags and (not command or shutil.which(command[0]))]
    if not pathlib.Path("/etc/OpenCL/vendors").is_dir():
        found.remove("opencl-generic")
    for target in MACHINES.keys() - set(found):
        print(f"left out: {target}, which this machine does not run")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--target", choices=MACHINES, help="one alone, instead of all in turn")
    parser.add_argument("--keep", type=pathlib.Path, help="where failing models go, whole and shrunk")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    args.tilewright = args.tilewright.resolve()
    args.machines = machines_here()
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        if not check_reduce(args.tilewright, pathlib.Path(folder)):
            counts["failed"] += 1
            print("FAIL tilewright reduce does not find the node that cannot be compiled")
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for result, target, line in pool.map(lambda seed: run_seed(args, seed), range(args.seed, args.seed + args.count)):
            counts[result] += 1
            if line:
                print(line, flush=True)
    print(f"{args.count} graphs from seed {args.seed} on: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    return 1 if counts["failed"] or not counts["compared"] else 0


if __name__ == "__main__":
    sys.exit(main())
