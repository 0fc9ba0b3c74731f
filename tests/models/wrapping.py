#!/usr/bin/env python3
"""Random element-wise graphs of integers at the ends of their types, against numpy: + - * wrap, and no rule of arithmetic without ends may be taken for one of theirs.
Some numbers are inputs, and some are sizes, places of a Range and turns of a Loop, which hashes and generators of random numbers multiply by what no size reaches.

    wrapping.py --tilewright BINARY [--count 60] [--seed N] [--target host]
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper as h, numpy_helper

from run_library import run_library

ELEMENTS = 37
TYPES = {np.int64: TensorProto.INT64, np.int32: TensorProto.INT32, np.uint64: TensorProto.UINT64, np.uint32: TensorProto.UINT32}


def edges(rng, dtype):
    """Numbers at both ends, around zero, and anywhere."""
    info = np.iinfo(dtype)
    near = [info.max, info.max - 1, info.min, info.min + 1, 0, 1, 2, 3, 255, info.max // 2, info.max // 2 + 1, info.min // 2]
    values = [near[rng.integers(len(near))] if rng.random() < .6 else int(rng.integers(info.min, info.max, dtype=dtype, endpoint=True)) for _ in range(ELEMENTS)]
    return np.array([int(v) for v in values], dtype)


def floor_mod(a, b):
    return np.mod(a, b)


def truncated(a, b):
    quotient = np.floor_divide(a, b)
    return np.where((np.mod(a, b) != 0) & ((a < 0) != (b < 0)), quotient + quotient.dtype.type(1), quotient).astype(a.dtype)


class Graph:
    def __init__(self, rng, dtype):
        self.rng, self.dtype = rng, dtype
        self.nodes, self.weights = [], []
        self.numbers, self.truths = {}, {}  # name -> numpy's value

    def constant(self, value):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(value, self.dtype), name))
        return name, np.array(value, self.dtype)

    def add(self, op, inputs, value, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(h.make_node(op, inputs, [name], name, **attributes))
        (self.truths if value.dtype == bool else self.numbers)[name] = value
        return name

    def any(self, pool):
        names = list(pool)
        name = names[-1 - int(self.rng.integers(min(len(names), 4)))]
        return name, pool[name]

    def small(self):
        info = np.iinfo(self.dtype)
        value = int([1, 2, 3, 5, 10, 1000, 1 << 20, info.max, 6, 4, info.max // 3 * 2 + 1, info.max // 1447][self.rng.integers(12)])
        return self.constant(-value if info.min < 0 and self.rng.random() < .3 else value)

    def step(self):
        rng, (a, x) = self.rng, self.any(self.numbers)
        b, y = self.any(self.numbers) if rng.random() < .6 else self.small()
        kind = rng.integers(12)
        if kind < 3:
            op, f = [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)][kind]
            self.add(op, [a, b], f(x, y).astype(self.dtype))
        elif kind < 5:
            op, f = [("Min", np.minimum), ("Max", np.maximum)][kind - 3]
            self.add(op, [a, b], f(x, y))
        elif kind < 7:
            d, z = self.constant(int([2, 3, 5, 7, 16, 1000][rng.integers(6)]))
            op, f = [("Mod", floor_mod), ("Div", truncated)][kind - 5]
            self.add(op, [a, d], f(x, z))
        elif kind == 7 and np.iinfo(self.dtype).min < 0:
            self.add("Abs", [a], np.abs(x))
        elif kind == 8 and np.iinfo(self.dtype).min < 0:
            self.add("Neg", [a], np.negative(x))
        elif kind < 11 or not self.truths:
            op, f = [("Less", np.less), ("LessOrEqual", np.less_equal), ("Greater", np.greater), ("GreaterOrEqual", np.greater_equal), ("Equal", np.equal)][rng.integers(5)]
            t = self.add(op, [a, b], np.broadcast_to(f(x, y), np.broadcast(x, y).shape).copy())
            if rng.random() < .3:
                self.add("Not", [t], ~self.truths[t])
        else:
            t, truth = self.any(self.truths)
            self.add("Where", [t, a, b], np.where(truth, x, y).astype(self.dtype))


def count_places(graph):
    """Numbers that are made of a free size: the size itself, and the places below it."""
    for name, value in (("zero", 0), ("one", 1)):
        graph.weights.append(numpy_helper.from_array(np.array(value), name))
    graph.nodes += [h.make_node("Shape", ["x0"], ["sizes"]), h.make_node("Squeeze", ["sizes"], ["size"]), h.make_node("Range", ["zero", "size", "one"], ["range"]),
                    h.make_node("Cast", ["sizes"], ["n0"], to=TYPES[graph.dtype]), h.make_node("Cast", ["range"], ["n1"], to=TYPES[graph.dtype])]
    graph.numbers.update(n0=np.array([ELEMENTS], graph.dtype), n1=np.arange(ELEMENTS, dtype=graph.dtype))


def graph_of(rng):
    dtype = list(TYPES)[int(rng.choice(4, p=[.6, .2, .1, .1]))]
    graph = Graph(rng, dtype)
    feeds = {f"x{i}": edges(rng, dtype) for i in range(2)}
    graph.numbers.update(feeds)
    if rng.random() < .5:
        count_places(graph)
    with np.errstate(over="ignore", divide="ignore"):
        for _ in range(int(rng.integers(2, 9))):
            graph.step()
    made = {**graph.numbers, **graph.truths}
    outputs = [n for n in made if n.startswith("v")][-3:]
    shape = lambda value: ["n"] if "n1" in graph.numbers and value.shape == (ELEMENTS,) else value.shape
    typed = lambda name, value: h.make_tensor_value_info(name, TensorProto.BOOL if value.dtype == bool else TYPES[dtype], shape(value))
    proto = h.make_graph(graph.nodes, "g", [typed(n, v) for n, v in feeds.items()], [typed(n, made[n]) for n in outputs], graph.weights)
    return h.make_model(proto, opset_imports=[h.make_opsetid("", 18)], ir_version=9), feeds, {n: made[n] for n in outputs}


def loop_of(rng):
    """A loop whose every turn makes a number that wraps, its remainder, and a comparison of it."""
    dtype, turns = list(TYPES)[int(rng.integers(4))], int(rng.integers(2, 20))
    info = np.iinfo(dtype)
    times, more, less = (np.array(rng.integers(info.max // 4, info.max, dtype=dtype), dtype) for _ in range(3))
    body = h.make_graph([h.make_node("Identity", ["go"], ["on"]), h.make_node("Cast", ["turn"], ["t"], to=TYPES[dtype]), h.make_node("Mul", ["t", "times"], ["a"]),
                         h.make_node("Add", ["a", "more"], ["b"]), h.make_node("Mod", ["b", "thousand"], ["c"]), h.make_node("Less", ["b", "less"], ["d"])], "body",
                        [h.make_tensor_value_info("turn", TensorProto.INT64, []), h.make_tensor_value_info("go", TensorProto.BOOL, [])],
                        [h.make_tensor_value_info("on", TensorProto.BOOL, []), h.make_tensor_value_info("c", TYPES[dtype], []), h.make_tensor_value_info("d", TensorProto.BOOL, [])])
    weights = [numpy_helper.from_array(value, name) for name, value in (("times", times), ("more", more), ("less", less), ("thousand", np.array(1000, dtype)))]
    proto = h.make_graph([h.make_node("Loop", ["n", ""], ["c", "d"], body=body)], "g", [h.make_tensor_value_info("n", TensorProto.INT64, [])],
                         [h.make_tensor_value_info("c", TYPES[dtype], [None]), h.make_tensor_value_info("d", TensorProto.BOOL, [None])], weights)
    with np.errstate(over="ignore"):
        number = np.arange(turns).astype(dtype) * times + more
    return h.make_model(proto, opset_imports=[h.make_opsetid("", 18)], ir_version=9), {"n": np.array(turns)}, {"c": np.mod(number, dtype(1000)), "d": number < less}


def check(binary, target, model, feeds, wanted, work):
    """A difference of the compiled library or of the evaluator, or nothing."""
    path, artifact = work / "m.onnx", work / "m.so"
    onnx.save(model, path)
    made = subprocess.run([binary, "compile", path, "-t", target, "-o", artifact, "-j", "1"], capture_output=True, text=True)
    if made.returncode:
        return "does not compile: " + made.stderr.strip()
    for what in (artifact, path):
        done, got = run_library(binary, what, feeds, wanted, work)
        if done.returncode:
            return done.stderr.strip()
        for name, value in wanted.items():
            if not np.array_equal(got[name].reshape(value.shape), value):
                at = int(np.flatnonzero(got[name].reshape(-1) != value.reshape(-1))[0])
                return f"{what.name}: {name}[{at}] is {got[name].reshape(-1)[at]}, expected {value.reshape(-1)[at]}\n" + onnx.printer.to_text(model.graph)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", default="host")
    args = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.seed, args.seed + args.count):
            rng = np.random.default_rng(seed)
            made = loop_of(rng) if seed % 6 == 0 else graph_of(rng)
            problem = check(args.tilewright, args.target, *made, pathlib.Path(folder))
            if problem:
                bad += 1
                print(f"seed {seed}: {problem}")
    print(f"{args.count} graphs of integers at the ends of their types: {bad} wrong")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
