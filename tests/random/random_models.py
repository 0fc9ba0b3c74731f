#!/usr/bin/env python3
"""Random valid graphs over ONNX's operators, types, free extents, functions and control flow, a third of them quantized, compiled for
targets in turn: compared with onnxruntime, and on this machine by `tilewright verify` with the reference evaluators. Graphs that
onnxruntime does not run are evaluated alone. A failing graph is shrunk to the nodes that it takes, and kept.

    random_models.py --tilewright BUILD/tilewright [--count N] [--seed FIRST] [--nodes N] [--target NAME] [--keep DIR] [--state FILE]

Graphs are compiled and run by batches of neighbouring seeds, each one model: what a batch takes is mostly code generation. With
--state, batches that the file names are left out, and each that ends is added to it, with what failed: a long run may be ended and
gone on with.
"""
import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

import onnx
from onnx import TensorProto, helper

from batch import results_of_batch
from draw import case_of
from machines import BOARDS, FLUSHES, TARGETS, machines_here
from merged import merged
from shrink import shrunk

BATCH, BOARD_BATCH = 16, 8   # graphs; a board's memory is small
# A batch's is chosen by its number.
TURNS = ["host", "x86-64-v3", "aarch64-generic", "host", "x86-64-v2", "armv7-generic", "host", "x86-64-v4", "cortex-m4", "host", "rv64gc", "x86-64-v3",
         "cortex-m55", "opencl-generic"]


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


def run_batch(work):
    """The batch, counts of what became of its graphs, and a line for each that failed or was refused."""
    args, target, seeds = work
    if target not in args.machines:
        return target, seeds, {"no machine": len(seeds)}, [], []
    try:
        return target, seeds, *tried(args, target, seeds)
    except Exception:   # of this program: the others go on
        return target, seeds, {"failed": len(seeds)}, [f"FAIL seeds {seeds}, {target}: {traceback.format_exc()}"], list(seeds)


def tried(args, target, seeds):
    counts, lines, failed = collections.Counter(), [], []
    cases = [case for seed in seeds if (case := case_of(seed, args.nodes, target not in FLUSHES))]
    counts["empty"] = len(seeds) - len(cases)
    results = results_of_batch(cases, args.tilewright, target)
    counts["onnxruntime does not run it"] = len(cases) - len(results)
    for case, what, why in results:
        counts[what] += 1
        if what == "refused":
            lines.append(f"left out seed {case.seed}, {target}: {why}")
        elif what == "failed":
            failed.append(case.seed)
            small = shrunk(case, args.tilewright, target)
            nodes = [n.op_type for n in small.graph.node] if small else "nothing: it fails as a whole alone"
            lines.append(f"FAIL seed {case.seed}, {target}, {case.style}: {why}; shrunk to {nodes}")
            if args.keep:
                args.keep.mkdir(parents=True, exist_ok=True)
                if why.startswith("only "):
                    onnx.save(merged([c.model for c in cases]), args.keep / f"seeds{seeds.start}_{len(seeds)}.onnx")
                onnx.save(case.model, args.keep / f"seed{case.seed}.onnx")
                if small:
                    onnx.save(small, args.keep / f"seed{case.seed}_small.onnx")
    return +counts, lines, failed


def batches(args):
    """Targets in turn and the seeds of each batch, those that the state file names left out."""
    known = [json.loads(line) for line in args.state.read_text().splitlines()] if args.state and args.state.exists() else []
    ended = {(line["target"], line["first"], line["count"]) for line in known}
    first, end, number = args.seed, args.seed + args.count, args.seed // BATCH
    while first < end:
        target = args.target or TURNS[number % len(TURNS)]
        seeds = range(first, min(end, first + (BOARD_BATCH if target in BOARDS else BATCH)))
        if (target, first, len(seeds)) not in ended:
            yield args, target, seeds
        first, number = seeds.stop, number + 1


def run_all(args):
    """Counts, and the state file's new lines."""
    counts, started = collections.Counter(), time.monotonic()
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        for target, seeds, some, lines, failed in pool.imap_unordered(run_batch, batches(args)):
            counts.update(some)
            for line in lines:
                print(line, flush=True)
            if args.state:
                with args.state.open("a") as file:
                    file.write(json.dumps({"target": target, "first": seeds.start, "count": len(seeds), "results": some, "failed": failed}) + "\n")
    seconds = time.monotonic() - started
    print(f"{sum(counts.values())} graphs from seed {args.seed} on in {seconds:.0f} s: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TW_SEED", 1)), help="the first; default: TW_SEED, or 1")
    parser.add_argument("--nodes", type=int, default=16, help="most nodes of a graph")
    parser.add_argument("--target", choices=TARGETS, help="one alone, instead of all in turn")
    parser.add_argument("--keep", type=pathlib.Path, help="where failing models go, whole and shrunk")
    parser.add_argument("--state", type=pathlib.Path, help="what is done: batches in it are left out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    args.tilewright = args.tilewright.resolve()
    args.machines = machines_here()
    with tempfile.TemporaryDirectory() as folder:
        reduces = check_reduce(args.tilewright, pathlib.Path(folder))
        if not reduces:
            print("FAIL tilewright reduce does not find the node that cannot be compiled")
    counts = run_all(args)
    return 1 if counts["failed"] or not counts["compared"] or not reduces else 0


if __name__ == "__main__":
    sys.exit(main())
