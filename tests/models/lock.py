#!/usr/bin/env python3
"""A lock is the compile that made it: over models that were tuned, `compile --log L`, and `lock --log L` with `compile --frozen`, write the same bytes.

    lock.py --tilewright BUILD/tilewright [--work DIR] [--trials N] [--only NAME,...]

Small models of several kinds, made here; the digits; and, where ../shared/models is, a recognition network.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from run import model_files


class Net:
    def __init__(self, seed):
        self.random, self.nodes, self.weights = np.random.default_rng(seed), [], []

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        depth = np.prod(shape[1:]) if len(shape) > 1 else 16
        self.weights.append(numpy_helper.from_array((self.random.standard_normal(shape) / np.sqrt(depth)).astype(np.float32), name))
        return name

    def add(self, op, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def conv(self, x, channels, to, kernel=3, relu=True, **attributes):
        pad = kernel // 2
        group = attributes.get("group", 1)
        y = self.add("Conv", [x, self.weight(to, channels // group, kernel, kernel), self.weight(to)], kernel_shape=[kernel] * 2, pads=[pad] * 4, **attributes)
        return self.add("Relu", [y]) if relu else y

    def save(self, path, x_shape, y):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, x_shape)
        self.nodes[[n.output[0] for n in self.nodes].index(y)].output[0] = "y"
        for node in self.nodes:
            node.input[:] = ["y" if name == y else name for name in node.input]
        out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, path.stem, [x], [out], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def alike(net):   # one task many times: the budget of errors gives it several algorithms
    x = "x"
    for _ in range(8):
        x = net.conv(x, 48, 48)
    return [1, 48, 20, 20], x


def residual(net):
    x = net.conv("x", 3, 32)
    for _ in range(3):
        x = net.add("Relu", [net.add("Add", [x, net.conv(net.conv(x, 32, 32), 32, 32, relu=False)])])
    return [1, 3, 28, 28], net.conv(x, 32, 64, strides=[2, 2])


def pooled(net):
    x = net.conv("x", 3, 24)
    x = net.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = net.add("MaxPool", [net.conv(x, 24, 48)], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    return [1, 3, 32, 32], net.add("GlobalAveragePool", [net.conv(x, 48, 40)])


def depthwise(net):
    x = net.conv("x", 8, 32, kernel=1)
    for _ in range(2):
        x = net.conv(net.conv(x, 32, 32, group=32), 32, 32, kernel=1)
    return [1, 8, 24, 24], x


def branches(net):
    x = net.conv("x", 16, 32)
    return [1, 16, 20, 20], net.conv(net.add("Concat", [net.conv(x, 32, 16, kernel=1), net.conv(x, 32, 32), net.conv(x, 32, 24, kernel=5)], axis=1), 72, 32, kernel=1)


def odd(net):
    return [2, 5, 17, 19], net.conv(net.conv(net.conv("x", 5, 37), 37, 37), 37, 11)


def perceptron(net):
    x = "x"
    for depth, width in ((96, 192), (192, 192), (192, 192), (192, 10)):
        x = net.add("Relu", [net.add("Add", [net.add("MatMul", [x, net.weight(depth, width)]), net.weight(width)])])
    return [64, 96], x


def encoder(net):
    q, k, v = (net.add("MatMul", ["x", net.weight(64, 64)]) for _ in range(3))
    scores = net.add("Softmax", [net.add("MatMul", [q, net.add("Transpose", [k], perm=[0, 2, 1])])], axis=-1)
    x = net.add("Add", [net.add("MatMul", [scores, v]), "x"])
    x = net.add("LayerNormalization", [x, net.weight(64), net.weight(64)], axis=-1)
    return [1, 32, 64], net.add("MatMul", [net.add("Relu", [net.add("MatMul", [x, net.weight(64, 256)])]), net.weight(256, 64)])


def free(net):   # the width stays free
    return [1, 3, 16, "W"], net.conv(net.conv(net.conv("x", 3, 32), 32, 32), 32, 32)


def upward(net):
    x = net.conv("x", 16, 32)
    x = net.add("ConvTranspose", [x, net.weight(32, 16, 2, 2)], kernel_shape=[2, 2], strides=[2, 2])
    return [1, 16, 14, 14], net.conv(x, 16, 16)


def decided(net):   # by data: kernels of both branches, one of them as outside
    x = net.conv("x", 16, 16)
    begin = len(net.nodes)
    deeper, plain = net.conv(net.conv(x, 16, 16), 16, 16), net.conv(x, 16, 16, kernel=1)
    inner = net.nodes[begin:]
    del net.nodes[begin:]
    def branch(result, nodes):
        return helper.make_graph(nodes, result, [], [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)])
    split = next(i for i, node in enumerate(inner) if node.output[0] == deeper) + 1
    net.weights.append(numpy_helper.from_array(np.float32(1), "one"))
    net.nodes.append(helper.make_node("ReduceSum", [x], ["total"], name="total", keepdims=0))
    net.nodes.append(helper.make_node("Greater", ["total", "one"], ["large"], name="large"))
    net.nodes.append(helper.make_node("If", ["large"], ["chosen"], name="chosen", then_branch=branch(deeper, inner[:split]),
                                      else_branch=branch(plain, inner[split:])))
    return [1, 16, 20, 20], "chosen"


def bodies(net):   # branches whose values have the names of each other, and a loop
    x = net.conv("x", 64, 64)
    begin = len(net.nodes)
    def body(layers, prefix):
        y, depth = x, 64
        for to in layers:
            y, depth = net.conv(y, depth, to, relu=False), to
        nodes = net.nodes[begin:]
        del net.nodes[begin:]
        names = {name: f"{prefix}{i}" for i, name in enumerate(node.output[0] for node in nodes)}
        for node in nodes:
            node.input[:] = [names.get(name, name) for name in node.input]
            node.output[:] = [names[name] for name in node.output]
        return nodes, names[y]
    def value(name, kind=TensorProto.FLOAT, shape=None):
        return helper.make_tensor_value_info(name, kind, shape)
    then, last = body((64, 64), "inner")
    other, other_last = body((16, 64), "inner")
    turns, turned = body((64,), "turn")
    turns = [*turns, helper.make_node("Add", [turned, "before"], ["after"]), helper.make_node("Identity", ["go"], ["goes"])]
    net.weights += [numpy_helper.from_array(np.float32(1), "one"), numpy_helper.from_array(np.bool_(True), "always")]
    net.nodes += [helper.make_node("ReduceSum", [x], ["total"], name="total", keepdims=0), helper.make_node("Greater", ["total", "one"], ["large"], name="large"),
                  helper.make_node("Cast", ["total"], ["times"], name="times", to=TensorProto.INT64),
                  helper.make_node("If", ["large"], ["chosen"], name="chosen", then_branch=helper.make_graph(then, "then", [], [value(last, shape=[1, 64, 24, 24])]),
                                   else_branch=helper.make_graph(other, "else", [], [value(other_last, shape=[1, 64, 24, 24])])),
                  helper.make_node("Loop", ["times", "always", "chosen"], ["looped"], name="looped", body=helper.make_graph(
                      turns, "body", [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("before", shape=[1, 64, 24, 24])],
                      [value("goes", TensorProto.BOOL, []), value("after", shape=[1, 64, 24, 24])]))]
    net.weights.append(numpy_helper.from_array(np.array([1, 64, 24, 24], np.int64), "shape"))   # of a loop it is not inferred
    return [1, 64, 24, 24], net.add("Reshape", ["looped", "shape"])


MADE = [alike, residual, pooled, depthwise, branches, odd, perceptron, encoder, free, upward, decided, bodies]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(tilewright, model, work, trials):
    """What differs; the schedules in use."""
    place = work / model.stem
    place.mkdir(exist_ok=True)
    model_here, log = place / "model.onnx", place / "tuned.db"
    model_here.write_bytes(model.read_bytes())
    run(tilewright, "tune", model_here, "--log", log, "--trials", trials, "--batch", 4, "--no-prove")
    for name, flags in (("logged", ["--log", log]), ("frozen", ["--frozen"])):
        (place / name).mkdir(exist_ok=True)
        if name == "frozen":
            run(tilewright, "lock", model_here, "--log", log)
        out = run(tilewright, "compile", model_here, "-o", place / name / "model.so", *flags)
    schedules = next(line for line in out.splitlines() if line.startswith("schedules"))
    same = [(place / "logged" / file).read_bytes() == (place / "frozen" / file).read_bytes() for file in ("model.so", "model.h")]
    return [] if all(same) else ["the bytes differ"], schedules


def check_algorithms(tilewright, model, work):
    """A lock keeps the algorithms that other budgets chose, those of bodies too. What is wrong."""
    place = work / f"{model.stem}_algorithms"
    place.mkdir(exist_ok=True)
    here, kernels, budget = place / "model.onnx", {}, ["--max-weight-growth", "8", "--tune", "off"]
    here.write_bytes(model.read_bytes())
    for name, flags in (("usual", ["--tune", "off"]), ("wide", budget), ("frozen", ["--frozen"])):
        if name == "frozen":
            run(tilewright, "lock", here, *budget[:2])
        run(tilewright, "compile", here, "-o", place / f"{name}.so", *flags)
        told = json.loads(run(tilewright, "inspect", place / f"{name}.so", "--json"))
        kernels[name] = sorted(kernel["name"] for kernel in told["manifest"]["kernels"])
    several = sum("winograd" in name for name in kernels["wide"]) > 1
    return [text for wrong, text in ((kernels["usual"] == kernels["wide"] or not several, f"no other algorithms: {kernels['wide']}"),
                                     (kernels["wide"] != kernels["frozen"], f"{kernels['wide']} is not {kernels['frozen']}")) if wrong]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--only", type=lambda text: text.split(","))
    args = parser.parse_args()
    tilewright = args.tilewright.resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = args.work or pathlib.Path(folder)
        work.mkdir(exist_ok=True)
        models = {}
        for seed, make in enumerate(MADE):
            net, path = Net(seed), work / f"{make.__name__}.onnx"
            shape, y = make(net)
            net.save(path, shape, y)
            models[make.__name__] = path
        more, skipped = model_files(["digits", "face_rfb320"], work)
        models |= more
        wrong = 0
        for name, path in models.items():
            if args.only and name not in args.only:
                continue
            problems, schedules = check(tilewright, path, work, args.trials)
            wrong += bool(problems)
            print(f"{name:12} {'; '.join(problems) or 'same'}  ({schedules})", flush=True)
        if not args.only or "bodies" in args.only:
            problems = check_algorithms(tilewright, models["bodies"], work)
            wrong += bool(problems)
            print(f"algorithms   {'; '.join(problems) or 'same'}", flush=True)
        for name in skipped:
            print(f"{name:12} skipped: ../shared/models is not there")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
