#!/usr/bin/env python3
"""Small files whose work could grow beyond measure: chains, fans and nests of nodes, values that are read twice in each step, sizes that double. Each is
compiled at two lengths, and the processor time of the longer one stays in line with it; what doubles ends within a limit, with a library or an error
that says which limit; what runs ends too. Times are the processor's, in the compiler alone: a busy machine does not change them.

    growth.py [--tilewright BUILD/tilewright] [--only PART_OF_A_NAME] [--full]
"""
import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
TIMES = 4              # the longer model is so many times as long
MOST_RATIO = 2.0 * TIMES   # linear is TIMES, quadratic its square
SECONDS, BYTES = 20, 4 << 30
SMALL = 0.25           # seconds of processor time; less says nothing
N = helper.make_node


def value(name, shape, kind=F):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(np.asarray(v), k) for k, v in weights])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


def chained(step, length, shape=(2, 8), weights=(), before=(), kind=F):
    """step(from, to, number): the nodes of a link."""
    nodes = list(before)
    for i in range(length):
        nodes += step(f"v{i}", f"v{i + 1}", i)
    return model(nodes, [value("v0", shape, kind)], [value(f"v{length}", shape, kind)], weights)


EYE = ("w", np.eye(8, dtype=np.float32))


def residual(a, b, i):
    return [N("Sigmoid", [a], [f"s{i}"]), N("Add", [a, f"s{i}"], [b])]


def slices(length):
    nodes = [N("Slice", ["x", f"a{i}", f"b{i}"], [f"y{i}"]) for i in range(length)] + [N("Concat", [f"y{i}" for i in range(length)], ["y"], axis=0)]
    weights = [pair for i in range(length) for pair in ((f"a{i}", np.array([i], np.int64)), (f"b{i}", np.array([i + 1], np.int64)))]
    return model(nodes, [value("x", [length, 3])], [value("y", [length, 3])], weights)


def fan(length):
    nodes = [N("Sigmoid", ["x"], ["t"])] + [N("MatMul", ["t", "w"], [f"y{i}"]) for i in range(length)]
    return model(nodes, [value("x", [2, 8])], [value(f"y{i}", [2, 8]) for i in range(length)], [EYE])


def fan_in(length):
    nodes = [N("Softmax", ["x"], [f"t{i}"], axis=i % 2) for i in range(length)] + [N("Sum", [f"t{i}" for i in range(length)], ["y"])]
    return model(nodes, [value("x", [2, 8])], [value("y", [2, 8])])


def branches(length):
    graph = helper.make_graph([N("Relu", ["x"], ["y"])], "b", [], [value("y", [2, 3])])
    for _ in range(length):
        other = helper.make_graph([N("Neg", ["x"], ["y"])], "e", [], [value("y", [2, 3])])
        graph = helper.make_graph([N("If", ["c"], ["y"], then_branch=graph, else_branch=other)], "b", [], [value("y", [2, 3])])
    return model(list(graph.node), [value("x", [2, 3]), value("c", [], B)], [value("y", [2, 3])])


def symbols(length):
    names = [f"x{i}" for i in range(length)]
    return model([N("Concat", names, ["y"], axis=0)], [value(n, [f"s{i}", 3]) for i, n in enumerate(names)], [value("y", ["all", 3])])


def initializers(length):
    names = [f"w{i}" for i in range(length)]
    nodes = [N("Add", ["x" if i == 0 else f"t{i - 1}", n], [f"t{i}"]) for i, n in enumerate(names)]
    return model(nodes, [value("x", [2, 3])], [value(f"t{length - 1}", [2, 3])], [(n, np.full((2, 3), i, np.float32)) for i, n in enumerate(names)])


def moves(a, b, i):
    return [N("Transpose", [a], [f"t{i}"], perm=[1, 0]), N("Reshape", [f"t{i}", "shape"], [f"r{i}"]), N("Softmax", [f"r{i}"], [b])]


LINEAR = {  # name: what makes it, the shorter length
    "a chain of Relu": (lambda n: chained(lambda a, b, i: [N("Relu", [a], [b])], n), 2500),
    "a chain of Sigmoid": (lambda n: chained(lambda a, b, i: [N("Sigmoid", [a], [b])], n), 1000),
    "a residual chain": (lambda n: chained(residual, n // 2), 1500),
    "a chain of products": (lambda n: chained(lambda a, b, i: [N("MatMul", [a, "w"], [b])], n, weights=[EYE]), 800),
    "transposes, reshapes and softmaxes": (lambda n: chained(moves, n, weights=[("shape", np.array([2, 8], np.int64))]), 300),
    "slices of one tensor": (slices, 250),
    "a fan of outputs": (fan, 200),
    "a sum of many": (fan_in, 150),
    "branches in branches": (branches, 3),
    "many weights": (initializers, 800),
    "a Concat of sizes of their own": (symbols, 64),
}


def doubled(op, **attributes):
    return lambda n: chained(lambda a, b, i: [N(op, [a, a], [b], **attributes)], n)


def sizes(step, n):
    """The first size of x goes through `step` n times, and becomes that of y."""
    nodes, name = [N("Shape", ["x"], ["q"], start=0, end=1)], "q"
    for i in range(n):
        nodes += step(name, f"q{i}", i)
        name = f"q{i}"
    return model(nodes + [N("ConstantOfShape", [name], ["y"])], [value("x", ["n", 3])], [value("y", ["m"])])


def nonzeros(n):
    nodes = [N("NonZero", [f"v{i}"], [f"v{i + 1}"]) for i in range(n)]
    return model(nodes, [value("v0", [2, 3])], [value(f"v{n}", [2, "n"], I)])


def concats(n, shape=(2, 3)):
    nodes = [N("Concat", [f"v{i}", f"v{i}"], [f"v{i + 1}"], axis=0) for i in range(n)]
    return model(nodes, [value("v0", shape)], [value(f"v{n}", ["rows", 3])])


def squares(n):
    """x + x^T of what was before: each is read along two ways."""
    return chained(lambda a, b, i: [N("Transpose", [a], [f"t{i}"], perm=[1, 0]), N("Add", [a, f"t{i}"], [b])], n, shape=(8, 8))


DOUBLING = {  # name: the model, exit codes, words
    "Concat of a value with itself, 14 times": (concats(14), (0,), ""),
    "Concat of a value with itself, 30 times": (concats(30), (0, 3), ""),
    "Concat of a free size with itself, 80 times": (concats(80, ("n", 3)), (1, 3), "2^40"),
    "Add of a value with itself": (doubled("Add")(23), (0,), ""),
    "Pow of a value with itself": (doubled("Pow")(23), (0,), ""),
    "a value and its transpose": (squares(20), (0,), ""),
    "Add of a product with itself": (chained(lambda a, b, i: [N("Add", [a, a], [b])] if i else [N("MatMul", [a, "w"], [b])], 24, weights=[EYE]), (0,), ""),
    "a sum of Adds of a value with itself": (model([N("Add", ["x" if i == 0 else f"v{i - 1}"] * 2, [f"v{i}"]) for i in range(23)] + [N("ReduceSum", ["v22"], ["y"], keepdims=0)],
                                                   [value("x", [8, 8])], [value("y", [])]), (0,), ""),
    "a size times itself": (sizes(lambda a, b, i: [N("Mul", [a, a], [b])], 22), (0, 3), ""),
    "an input without elements": (model([N("ReduceSum", ["x"], ["y"], keepdims=0)], [value("x", [2**34, 0])], [value("y", [])]), (1,), "no elements"),
    "coordinates of coordinates, 30 times": (nonzeros(30), (0,), ""),
    "coordinates of coordinates, 62 times": (nonzeros(62), (0, 3), ""),
    "coordinates of coordinates, 120 times": (nonzeros(120), (0, 3), ""),
}


def windows(image, block, **attributes):
    """Col2Im of one window."""
    axes = len(block)
    weights = [("image", np.array(image, np.int64)), ("block", np.array(block, np.int64))]
    return model([N("Col2Im", ["x", "image", "block"], ["y"], **attributes)], [value("x", [1, int(np.prod(block)), 1])], [value("y", [None] * (2 + axes))], weights)


RUN = {  # name: a model whose library and reference are done within the time
    "Col2Im of a window of 2^20 taps": windows([2**20], [2**20]),
    "Col2Im of a window of 2^10 * 2^10 taps": windows([2**10, 2**10], [2**10, 2**10]),
    "Col2Im of two taps that lie far apart": windows([2**20 + 1], [2], dilations=[2**20], strides=[2]),
}


def compiled(tilewright, made, folder):
    """What `done` says of the compile."""
    onnx.save(made, pathlib.Path(folder) / "m.onnx")
    return done([tilewright, "compile", "m.onnx", "-t", "host", "-o", "m.so"], folder)


def done(command, folder):
    """Exit code (negative: a signal), processor time, what was said."""
    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=limited, cwd=folder)
    said = child.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_utime + usage.ru_stime, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", default=ROOT / "build/release/tilewright", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--full", action="store_true", help="longer chains: what passes there is in line up to tens of thousands of nodes")
    arguments = parser.parse_args()
    tilewright, problems, count = arguments.tilewright.resolve(), [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (made, codes, words) in DOUBLING.items():
            if arguments.only not in name:
                continue
            count += 1
            code, seconds, said = compiled(tilewright, made, folder)
            if code not in codes or words not in said:
                problems.append(f"{name}: status {code} after {seconds:.1f} s, expected {codes}: {said[-300:].strip()}")
        for name, made in RUN.items():
            if arguments.only not in name:
                continue
            count += 1
            code, _, said = compiled(tilewright, made, folder)
            if code == 0:
                code, _, said = done([tilewright, "verify", "m.so", "m.onnx", "--threads", "1"], folder)
            if code != 0:
                problems.append(f"{name}: status {code}: {said[-300:].strip()}")
        _, start, _ = compiled(tilewright, chained(residual, 1), folder)
        for name, (make, length) in LINEAR.items():
            if arguments.only not in name:
                continue
            count += 1
            length *= 4 if arguments.full and "branches" not in name else 1
            code, short, said = compiled(tilewright, make(length), folder)
            more, long, said_more = compiled(tilewright, make(TIMES * length), folder) if code == 0 else (code, 0, said)
            short, long = short - start, long - start
            ratio = long / max(short, SMALL / TIMES)
            print(f"{name}: {length} in {short:.2f} s, {TIMES * length} in {long:.2f} s, {ratio:.1f} times")
            if code != 0 or more != 0:
                problems.append(f"{name}: status {code}, {more}: {said_more[-300:].strip()}")
            elif ratio > MOST_RATIO:
                problems.append(f"{name}: {TIMES} times the length takes {ratio:.1f} times as long")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"growth: {count} shapes, {len(problems)} not in line")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
