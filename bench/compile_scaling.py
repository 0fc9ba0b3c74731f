#!/usr/bin/env python3
"""Compile time and memory over a model's size.

Makes models of one shape (a chain, a fan-out, a concat of many parts, ...) in several sizes, compiles each and prints user CPU seconds,
peak memory and the slope: the exponent k of time ~ size^k between the two largest sizes, less what the smallest model takes. Linear is 1.
With --max-slope, a larger slope or a compile that fails is a failure of the script (exit status 1).

  bench/compile_scaling.py build/release/tilewright --sizes 1000,2000,4000
  bench/compile_scaling.py build/release/tilewright --only conv_chain,concat --sizes 500,1000 --max-slope 1.5
"""
import argparse
import math
import os
import resource
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper as h, numpy_helper

SHAPES = {}


def shape(make):
    SHAPES[make.__name__] = make
    return make


def info(name, dims, dtype=TensorProto.FLOAT):
    return h.make_tensor_value_info(name, dtype, dims)


def weight(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def turned(name, n):
    """Moves columns on: a chain of such products neither dies out nor grows."""
    return weight(name, np.roll(np.eye(n, dtype=np.float32), 1, 0))


def model(nodes, inputs, outputs, weights=()):
    graph = h.make_graph(nodes, "g", inputs, outputs, list(weights))
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


@shape
def conv_chain(n):
    """n convolutions with one weight."""
    w = weight("w", np.pad(np.roll(np.eye(4, dtype=np.float32), 1, 0)[:, :, None, None], ((0, 0), (0, 0), (1, 1), (1, 1))))
    nodes = [h.make_node("Conv", [f"v{i}", "w"], [f"v{i + 1}"], pads=[1] * 4) for i in range(n)]
    return model(nodes, [info("v0", [1, 4, 8, 8])], [info(f"v{n}", [1, 4, 8, 8])], [w])


@shape
def conv_relu_chain(n):
    """n / 2 convolutions, each with its weight and a relu behind it."""
    nodes, weights = [], []
    for i in range(n // 2):
        weights.append(weight(f"w{i}", np.full((4, 4, 1, 1), 0.01 + i * 1e-6, np.float32)))
        nodes += [h.make_node("Conv", [f"v{i}", f"w{i}"], [f"c{i}"]), h.make_node("Relu", [f"c{i}"], [f"v{i + 1}"])]
    return model(nodes, [info("v0", [1, 4, 8, 8])], [info(f"v{n // 2}", [1, 4, 8, 8])], weights)


@shape
def matmul_chain(n):
    w = turned("w", 8)
    nodes = [h.make_node("MatMul", [f"v{i}", "w"], [f"v{i + 1}"]) for i in range(n)]
    return model(nodes, [info("v0", [4, 8])], [info(f"v{n}", [4, 8])], [w])


@shape
def free_matmul_chain(n):
    """The same with a free number of rows."""
    w = turned("w", 8)
    nodes = [h.make_node("MatMul", [f"v{i}", "w"], [f"v{i + 1}"]) for i in range(n)]
    return model(nodes, [info("v0", ["rows", 8])], [info(f"v{n}", ["rows", 8])], [w])


@shape
def elementwise_chain(n):
    nodes = [h.make_node(["Sigmoid", "Exp", "Tanh"][i % 3], [f"v{i}"], [f"v{i + 1}"]) for i in range(n)]
    return model(nodes, [info("v0", [16])], [info(f"v{n}", [16])])


@shape
def identity_chain(n):
    """Nodes that all go while the graph is simplified."""
    nodes = []
    for i in range(n):
        if i % 2: nodes.append(h.make_node("Transpose", [f"v{i}"], [f"v{i + 1}"], perm=[1, 0]))
        else: nodes.append(h.make_node("Neg", [f"v{i}"], [f"v{i + 1}"]))
    dims = [4, 6] if (n // 2) % 2 == 0 else [6, 4]
    return model(nodes, [info("v0", [4, 6])], [info(f"v{n}", dims)])


@shape
def fan_out(n):
    """One value read by n nodes, each an output's part."""
    nodes = [h.make_node("Add", ["x", f"s{i}"], [f"y{i}"]) for i in range(n)]
    nodes.append(h.make_node("Sum", [f"y{i}" for i in range(n)], ["y"]))
    return model(nodes, [info("x", [16])], [info("y", [16])], [weight(f"s{i}", np.full(16, i + np.arange(16), np.float32)) for i in range(n)])


@shape
def wide(n):
    """n products of one input, all alive until a concat reads them."""
    nodes, weights = [], []
    for i in range(n):
        weights.append(weight(f"w{i}", np.full((8, 8), 0.01 * i, np.float32)))
        nodes += [h.make_node("MatMul", ["x", f"w{i}"], [f"y{i}"])]
    nodes.append(h.make_node("Concat", [f"y{i}" for i in range(n)], ["y"], axis=1))
    return model(nodes, [info("x", [4, 8])], [info("y", [4, 8 * n])], weights)


@shape
def residuals(n):
    """A chain whose values are read once more, from its end backwards: all are alive in the middle."""
    half = n // 2
    w = turned("w", 8)
    nodes = [h.make_node("MatMul", [f"v{i}", "w"], [f"v{i + 1}"]) for i in range(half)]
    last = f"v{half}"
    for i in range(half - 1, -1, -1):
        nodes.append(h.make_node("Add", [last, f"v{i}"], [f"r{i}"]))
        last = f"r{i}"
    return model(nodes, [info("v0", [4, 8])], [info(last, [4, 8])], [w])


@shape
def concat(n):
    nodes = [h.make_node("Relu", [f"x{i % 8}"], [f"y{i}"]) if i % 2 else h.make_node("Neg", [f"x{i % 8}"], [f"y{i}"]) for i in range(n)]
    nodes.append(h.make_node("Concat", [f"y{i}" for i in range(n)], ["y"], axis=1))
    return model(nodes, [info(f"x{i}", [3, 4]) for i in range(8)], [info("y", [3, 4 * n])])


@shape
def inputs_and_outputs(n):
    nodes = [h.make_node("Relu", [f"x{i}"], [f"y{i}"]) for i in range(n)]
    return model(nodes, [info(f"x{i}", [4]) for i in range(n)], [info(f"y{i}", [4]) for i in range(n)])


@shape
def concat_inputs(n):
    nodes = [h.make_node("Concat", [f"x{i}" for i in range(n)], ["y"], axis=0)]
    return model(nodes, [info(f"x{i}", [4]) for i in range(n)], [info("y", [4 * n])])


@shape
def split(n):
    nodes = [h.make_node("Split", ["x"], [f"p{i}" for i in range(n)], axis=0)]
    nodes[0].attribute.append(h.make_attribute("num_outputs", n))
    nodes += [h.make_node("Exp", [f"p{i}"], [f"y{i}"]) for i in range(n)]
    made = model(nodes, [info("x", [4 * n])], [info(f"y{i}", [4]) for i in range(n)])
    made.opset_import[0].version = 18
    return made


@shape
def branches(n):
    """A tree of Ifs with n leaves whose conditions are inputs."""
    def tree(first, last, name):
        out = [info(f"{name}_y", [4])]
        if last - first == 1:
            return h.make_graph([h.make_node("Add", ["x", f"s{first}"], [f"{name}_y"])], name, [], out)
        middle = (first + last) // 2
        node = h.make_node("If", [f"c{(last - first).bit_length() % 16}"], [f"{name}_y"], then_branch=tree(first, middle, name + "t"), else_branch=tree(middle, last, name + "e"))
        return h.make_graph([node], name, [], out)
    top = tree(0, n, "r")
    weights = [weight(f"s{i}", np.full(4, i, np.float32)) for i in range(n)]
    return model(list(top.node), [info("x", [4])] + [info(f"c{i}", [], TensorProto.BOOL) for i in range(16)], [info("r_y", [4])], weights)


@shape
def if_chain(n):
    """n / 3 Ifs, one behind the other."""
    nodes = []
    for i in range(n // 3):
        def branch(op, name, i=i):
            return h.make_graph([h.make_node(op, [f"v{i}"], [f"{name}{i}"])], f"{name}{i}", [], [info(f"{name}{i}", [4])])
        nodes.append(h.make_node("If", ["c"], [f"v{i + 1}"], then_branch=branch("Exp", "t"), else_branch=branch("Neg", "e")))
    return model(nodes, [info("v0", [4]), info("c", [], TensorProto.BOOL)], [info(f"v{n // 3}", [4])])


@shape
def loops(n):
    """n / 2 loops of a trip count that is an input, one behind the other."""
    nodes = []
    for i in range(n // 2):
        body = h.make_graph([h.make_node("Tanh", [f"a{i}"], [f"b{i}"]), h.make_node("Identity", [f"k{i}"], [f"m{i}"])], f"body{i}",
                            [info(f"t{i}", [], TensorProto.INT64), info(f"k{i}", [], TensorProto.BOOL), info(f"a{i}", [4])],
                            [info(f"m{i}", [], TensorProto.BOOL), info(f"b{i}", [4])])
        nodes.append(h.make_node("Loop", ["trip", "", f"v{i}"], [f"v{i + 1}"], body=body))
    return model(nodes, [info("v0", [4]), info("trip", [], TensorProto.INT64)], [info(f"v{n // 2}", [4])])


@shape
def initializers(n):
    """n constants, added one by one to a value of a few rows."""
    nodes = [h.make_node("Mul" if i % 2 else "Add", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(n)]
    rng = np.random.default_rng(0)
    return model(nodes, [info("v0", [2, 8])], [info(f"v{n}", [2, 8])], [weight(f"w{i}", rng.random(8, np.float32)) for i in range(n)])


@shape
def distinct_dims(n):
    """n inputs, each with a dimension of its own name."""
    nodes = [h.make_node("Relu", [f"x{i}"], [f"y{i}"]) for i in range(n)]
    return model(nodes, [info(f"x{i}", [f"d{i}", 2]) for i in range(n)], [info(f"y{i}", [f"d{i}", 2]) for i in range(n)])


@shape
def data_sizes(n):
    """n / 2 values whose size an element of an input decides."""
    nodes, outputs = [], []
    for i in range(n // 2):
        nodes += [h.make_node("NonZero", [f"x{i % 4}"], [f"z{i}"]), h.make_node("Cast", [f"z{i}"], [f"y{i}"], to=TensorProto.FLOAT)]
        outputs.append(info(f"y{i}", [1, f"k{i}"]))
    nodes = [node for node in nodes]
    return model(nodes, [info(f"x{i}", [8]) for i in range(4)], outputs)


@shape
def sequences(n):
    """A sequence of n / 2 tensors, put together one by one and concatenated."""
    nodes = [h.make_node("SequenceConstruct", ["x0"], ["s0"])]
    for i in range(n // 2):
        nodes += [h.make_node("Exp" if i % 2 else "Neg", [f"x{i % 4}"], [f"e{i}"]), h.make_node("SequenceInsert", [f"s{i}", f"e{i}"], [f"s{i + 1}"])]
    nodes.append(h.make_node("ConcatFromSequence", [f"s{n // 2}"], ["y"], axis=0))
    return model(nodes, [info(f"x{i}", [4]) for i in range(4)], [info("y", [4 * (n // 2 + 1)])])


@shape
def long_names(n):
    """A chain of products whose names have 2000 letters."""
    w = turned("w", 8)
    name = lambda i: "v" * 2000 + str(i)
    nodes = [h.make_node("MatMul", [name(i), "w"], [name(i + 1)], name="n" * 2000 + str(i)) for i in range(n)]
    return model(nodes, [info(name(0), [4, 8])], [info(name(n), [4, 8])], [w])


@shape
def shape_math(n):
    """Reshapes to sizes that are computed from a free dimension."""
    nodes = []
    for i in range(n // 4):
        nodes += [h.make_node("Shape", [f"v{i}"], [f"s{i}"]), h.make_node("Mul", [f"s{i}", "one"], [f"t{i}"]),
                  h.make_node("Reshape", [f"v{i}", f"t{i}"], [f"r{i}"]), h.make_node("Exp", [f"r{i}"], [f"v{i + 1}"])]
    return model(nodes, [info("v0", ["rows", 8])], [info(f"v{n // 4}", ["rows", 8])], [weight("one", np.array([1, 1], np.int64))])


@shape
def distinct_shapes(n):
    """n / 16 kernels, no two alike: matrix products of growing width."""
    nodes, weights = [], []
    for i in range(n // 16):
        weights.append(weight(f"w{i}", np.full((8 + i % 64, 8 + (i * 7 + 1) % 61), 0.01, np.float32)))
        nodes.append(h.make_node("MatMul", [f"x{i % 64}", f"w{i}"], [f"y{i}"]))
    return model(nodes, [info(f"x{i}", [4, 8 + i]) for i in range(64)], [info(f"y{i}", [4, 8 + (i * 7 + 1) % 61]) for i in range(n // 16)], weights)


def compile_once(binary, path, folder, limit):
    command = [binary, "compile", path, "-o", os.path.join(folder, "m.so"), "-t", "x86-64-v3", "-j", "1"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)))
    text = child.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--sizes", default="1000,2000,4000", type=lambda s: [int(x) for x in s.split(",")])
    parser.add_argument("--only", default="", help="shapes, with commas; one of " + ", ".join(SHAPES))
    parser.add_argument("--cpu-limit", type=int, default=120, help="seconds, of one compile")
    parser.add_argument("--max-slope", type=float, default=math.inf)
    parser.add_argument("--keep", help="a folder for the models")
    options = parser.parse_args()
    bad = []
    print("| shape | " + " | ".join(f"{n}" for n in options.sizes) + " | peak MB | slope |\n|---|" + "---|" * (len(options.sizes) + 2))
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only.split(",") if options.only else SHAPES:
            times, peak, note = [], 0, ""
            _, base, _, _ = run(options, name, 16, folder)
            for n in options.sizes:
                status, seconds, memory, text = run(options, name, n, folder)
                times.append(seconds)
                peak = max(peak, memory)
                if status == 0: continue
                note = f"exit status {status}" + (f": {text.splitlines()[0]}" if text else "")
                break
            slope = math.nan
            if not note and len(times) > 1:
                slope = math.log(max(times[-1] - base, 1e-3) / max(times[-2] - base, 1e-3)) / math.log(options.sizes[-1] / options.sizes[-2])
            if note or slope > options.max_slope: bad.append(name)
            cells = [f"{t:.2f}" for t in times] + [""] * (len(options.sizes) - len(times))
            print(f"| {name} | " + " | ".join(cells) + f" | {peak:.0f} | {note or format(slope, '.2f')} |", flush=True)
    return 1 if bad and (options.max_slope < math.inf) else 0


def run(options, name, n, folder):
    path = os.path.join(options.keep or folder, f"{name}_{n}.onnx")
    if not (options.keep and os.path.exists(path)): onnx.save(SHAPES[name](n), path)
    return compile_once(options.binary, path, folder, options.cpu_limit)


if __name__ == "__main__":
    sys.exit(main())
