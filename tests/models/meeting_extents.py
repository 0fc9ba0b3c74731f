#!/usr/bin/env python3
"""Operators whose operands have extents that must be equal, where the model does not say that they are: equal ones give onnxruntime's values, others end the run.

    meeting_extents.py --tilewright BINARY [--only NAME,NAME] [--full]

An extent is a free one with a name of its own, half of a free one, or one that data decide; the one that it meets is another such extent or a constant.
Without --full each operator has some of these ways, all of them over the operators.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper as h, numpy_helper

from run_library import run_library

onnxruntime.set_default_logger_severity(4)
TYPES = {"f": (TensorProto.FLOAT, np.float32), "i": (TensorProto.INT64, np.int64), "b": (TensorProto.BOOL, bool), "8": (TensorProto.UINT8, np.uint8)}
WAYS = ("name", "half", "data")
CASES = {}


class Case:
    """`operands`: name -> (type, shape, values below), "K" and "L" stand for the extents that meet; L may be a number."""
    def __init__(self, name, nodes, operands, equal, weights=(), other=None, opset=20, outputs=1, out="f"):
        self.name, self.nodes, self.operands, self.equal, self.weights = name, nodes, operands, equal, list(weights)
        self.other = equal - 1 if other is None else other
        self.opset, self.outputs, self.out = opset, outputs, out
        CASES[name] = self


def constant(name, values, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def drawn(name, *shape):
    return constant(name, np.random.default_rng(len(name)).standard_normal(shape))


def made_by(way, name, kind, shape, letter, nodes, weights):
    """The input behind operand `name`, and what makes the extent `letter` of it."""
    dtype = TYPES[kind][0]
    axes = [i for i, d in enumerate(shape) if d == letter]
    dims = [f"{name}_{letter}" if d == letter else d for d in shape]
    inputs = [(f"{name}_in", dtype, dims)]
    at = f"{name}_in"
    for axis in axes:
        to = name if axis == axes[-1] else f"{name}_{axis}"
        if way == "name":
            nodes.append(h.make_node("Identity", [at], [to]))
        elif way == "half":
            for word, value in (("b", 0), ("e", 1 << 40), ("a", axis), ("s", 2)):
                weights.append(constant(f"{to}_{word}", [value], np.int64))
            nodes.append(h.make_node("Slice", [at] + [f"{to}_{w}" for w in "beas"], [to]))
        else:
            inputs.append((f"{to}_mask", TensorProto.BOOL, [8]))
            weights.append(constant(f"{to}_all", [-1], np.int64))
            nodes += [h.make_node("NonZero", [f"{to}_mask"], [f"{to}_found"]), h.make_node("Reshape", [f"{to}_found", f"{to}_all"], [f"{to}_at"]),
                      h.make_node("Gather", [at, f"{to}_at"], [to], axis=axis)]
        at = to
    return inputs


def model_of(case, ways):
    nodes, weights, inputs, used = [], list(case.weights), [], dict(ways)
    for name, (kind, shape, _) in case.operands.items():
        letters = [d for d in shape if d in ("K", "L")]
        if letters:
            inputs += made_by(used[letters[0]], name, kind, shape, letters[0], nodes, weights)
        else:
            inputs.append((name, TYPES[kind][0], shape))
    outputs = ["y"] + [f"y{i}" for i in range(1, case.outputs)]
    graph = h.make_graph(nodes + case.nodes, "g", [h.make_tensor_value_info(*i) for i in inputs], [h.make_empty_tensor_value_info(o) for o in outputs], weights)
    domains = [h.make_opsetid("", case.opset)] + ([h.make_opsetid("com.microsoft", 1)] if any(n.domain for n in case.nodes) else [])
    return h.make_model(graph, opset_imports=domains, ir_version=9)


def feeds_of(case, ways, extents, rng):
    feeds = {}
    for name, (kind, shape, below) in case.operands.items():
        letters = [d for d in shape if d in extents]
        way = ways.get(letters[0]) if letters else None
        own = [{None: d, "name": extents.get(d), "half": 2 * extents.get(d, 0) - 1, "data": 8}[way if d in extents else None] for d in shape]
        if kind == "f":
            values = rng.standard_normal(own)
        elif kind == "b":
            values = rng.integers(0, 2, own)
        else:
            values = rng.integers(0, below, own)
        feeds[f"{name}_in" if letters else name] = values.astype(TYPES[kind][1])
        axes = [i for i, d in enumerate(shape) if d in extents]
        for axis in axes if way == "data" else []:
            mask = np.zeros(8, bool)
            mask[rng.permutation(8)[:extents[letters[0]]]] = True
            feeds[f"{name if axis == axes[-1] else f'{name}_{axis}'}_mask"] = mask
    return feeds


def body(nodes, inputs, outputs):
    return h.make_graph(nodes, "body", [h.make_tensor_value_info(n, t, s) for n, t, s in inputs], [h.make_tensor_value_info(n, t, s) for n, t, s in outputs])


def cases():
    n = h.make_node
    f = lambda *shape: ("f", list(shape), 0)
    i = lambda below, *shape: ("i", list(shape), below)
    two = lambda a, b: {"a": a, "b": b}
    for op in ("Add", "Mul", "Pow", "PRelu", "Max"):
        Case(op.lower(), [n(op, ["a", "b"], ["y"], "node")], two(f(2, "K"), f(2, "L")), 5)
    Case("less", [n("Less", ["a", "b"], ["y"], "node")], two(f("K", 3), f("L", 3)), 4)
    Case("sum_of_three", [n("Sum", ["a", "b", "a"], ["y"], "node")], two(f(3, "K"), f("L")), 6)
    Case("where", [n("Where", ["c", "a", "b"], ["y"], "node")], {"a": f("K"), "b": f("L"), "c": ("b", [1], 0)}, 4)
    Case("mod", [n("Add", ["b", "one"], ["d"]), n("Mod", ["a", "d"], ["y"], "node")], two(i(50, "K"), i(5, "L")), 4, [constant("one", 1, np.int64)])
    Case("concat", [n("Concat", ["a", "b"], ["y"], "node", axis=0)], two(f(2, "K"), f(3, "L")), 5)
    Case("matmul", [n("MatMul", ["a", "b"], ["y"], "node")], two(f(3, "K"), f("L", 4)), 5)
    Case("matmul_batches", [n("MatMul", ["a", "b"], ["y"], "node")], two(f("K", 3, 4), f("L", 4, 5)), 3)
    Case("matmul_weights", [n("MatMul", ["a", "w"], ["y"], "node")], {"a": f(3, "K")}, 5, [drawn("w", 5, 7)])
    Case("gemm", [n("Gemm", ["a", "b", "w"], ["y"], "node", transB=1)], two(f(3, "K"), f(4, "L")), 5, [drawn("w", 4)])
    Case("einsum", [n("Einsum", ["a", "b"], ["y"], "node", equation="ij,jk->ik")], two(f(3, "K"), f("L", 4)), 5)
    Case("matmul_integer", [n("MatMulInteger", ["a", "b"], ["y"], "node")], two(("8", [3, "K"], 256), ("8", ["L", 4], 256)), 5)
    for group in (1, 3):
        Case(f"conv_{group}", [n("Conv", ["a", "w"], ["y"], "node", group=group)], {"a": f(1, "K", 5, 5)}, 6, [drawn("w", 6, 6 // group, 3, 3)])
        Case(f"conv_transpose_{group}", [n("ConvTranspose", ["a", "w"], ["y"], "node", group=group)], {"a": f(1, "K", 5, 5)}, 6, [drawn("w", 6, 2, 3, 3)])
    Case("conv_1d", [n("Conv", ["a", "w", "c"], ["y"], "node")], {"a": f(2, "K", 9)}, 4, [drawn("w", 8, 4, 3), drawn("c", 8)])
    Case("batch_norm", [n("BatchNormalization", ["a", "w", "w", "w", "v"], ["y"], "node")], {"a": f(2, "K", 3)}, 4, [drawn("w", 4), constant("v", [1, 2, 3, 4])])
    Case("instance_norm", [n("InstanceNormalization", ["a", "w", "w"], ["y"], "node")], {"a": f(2, "K", 3)}, 4, [drawn("w", 4)])
    Case("layer_norm", [n("LayerNormalization", ["a", "b"], ["y"], "node")], two(f(2, "K"), f("L")), 4)
    Case("layer_norm_weights", [n("LayerNormalization", ["a", "w"], ["y"], "node")], {"a": f(2, "K")}, 4, [drawn("w", 4)])
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        Case(op.lower(), [n(op, ["a", "w", "r", "", "", "b"], ["y"], "node", hidden_size=3)], two(f(5, "K", 4), f(1, "L", 3)), 2,
             [drawn("w", 1, 3 * gates, 4), drawn("r", 1, 3 * gates, 3)])
        Case(op.lower() + "_lengths", [n("Cast", ["b"], ["c"], to=TensorProto.INT32), n(op, ["a", "w", "r", "", "c"], ["y"], "node", hidden_size=3)],
             two(f(5, "K", 4), i(6, "L")), 3, [drawn("w", 1, 3 * gates, 4), drawn("r", 1, 3 * gates, 3)])
        Case(op.lower() + "_columns", [n(op, ["a", "w", "r"], ["y"], "node", hidden_size=3)], {"a": f(5, 2, "K")}, 4, [drawn("w", 1, 3 * gates, 4), drawn("r", 1, 3 * gates, 3)])
    Case("scatter_nd", [n("ScatterND", ["x", "a", "b"], ["y"], "node", reduction="add")], {"x": f(8), "a": i(8, "K", 1), "b": f("L")}, 4)
    Case("scatter_nd_rows", [n("ScatterND", ["a", "c", "b"], ["y"], "node")], two(f(8, "K"), f(2, "L")), 3, [constant("c", [[1], [5]], np.int64)])
    Case("scatter_elements", [n("ScatterElements", ["x", "a", "b"], ["y"], "node", reduction="add")], {"x": f(8), "a": i(8, "K"), "b": f("L")}, 4)
    Case("gather_nd_batch", [n("GatherND", ["a", "b"], ["y"], "node", batch_dims=1)], two(f("K", 4), i(4, "L", 1)), 3)
    Case("roi_align", [n("RoiAlign", ["x", "a", "b"], ["y"], "node", output_height=2, output_width=2, sampling_ratio=2)], {"x": f(2, 1, 8, 8), "a": f("K", 4), "b": i(2, "L")}, 3)
    Case("cross_entropy", [n("SoftmaxCrossEntropyLoss", ["a", "b"], ["y"], "node")], two(f("K", 5), i(5, "L")), 3)
    Case("cross_entropy_weights", [n("SoftmaxCrossEntropyLoss", ["a", "c", "w"], ["y"], "node")], {"a": f(2, "K"), "c": i(3, 2)}, 4, [constant("w", [1, 2, 3, 4])])
    Case("likelihood", [n("NegativeLogLikelihoodLoss", ["a", "b"], ["y"], "node", reduction="none")], two(f("K", 5), i(5, "L")), 3)
    Case("reshape_like", [n("Shape", ["b"], ["s"]), n("Reshape", ["a", "s"], ["y"], "node")], two(f("K"), f("L")), 4)
    Case("reshape_rows", [n("Reshape", ["a", "s"], ["y"], "node")], {"a": f(2, "K")}, 5, [constant("s", [5, 2], np.int64)])
    Case("reshape_rest", [n("Reshape", ["a", "s"], ["y"], "node")], {"a": f(3, "K")}, 4, [constant("s", [-1, 4], np.int64)])
    Case("squeeze", [n("Squeeze", ["a", "s"], ["y"], "node")], {"a": f("K", 3)}, 1, [constant("s", [0], np.int64)], other=2)
    Case("expand", [n("Shape", ["b"], ["s"]), n("Expand", ["a", "s"], ["y"], "node")], two(f("K"), f(2, "L")), 4)
    Case("split", [n("Split", ["a", "s"], ["y", "y1"], "node", axis=1)], {"a": f(2, "K")}, 5, [constant("s", [2, 3], np.int64)], outputs=2)
    Case("split_halves", [n("Split", ["a"], ["y", "y1"], "node", axis=1)], {"a": f(2, "K")}, 4, outputs=2, opset=13)
    Case("dequantize", [n("DequantizeLinear", ["a", "w"], ["y"], "node", axis=1)], {"a": ("8", [2, "K"], 256)}, 3, [constant("w", [.5, .25, .125])])
    Case("quantize", [n("QuantizeLinear", ["a", "w"], ["y"], "node", axis=1)], {"a": f(2, "K")}, 3, [constant("w", [.5, .25, .125])])
    Case("attention", [n("Attention", ["q", "a", "b"], ["y"], "node")], {"q": f(1, 2, 3, 4), "a": f(1, 2, "K", 4), "b": f(1, 2, "L", 4)}, 5, opset=23)
    Case("boxes", [n("NonMaxSuppression", ["a", "b", "m"], ["y"], "node")], two(f(1, "K", 4), f(1, 1, "L")), 4, [constant("m", [3], np.int64)])
    Case("reverse_sequence", [n("Add", ["b", "one"], ["c"]), n("ReverseSequence", ["a", "c"], ["y"], "node")], two(f(5, "K"), i(5, "L")), 3, [constant("one", 1, np.int64)])
    Case("grid_sample", [n("GridSample", ["a", "b"], ["y"], "node")], two(f("K", 1, 4, 4), f("L", 3, 3, 2)), 2)
    Case("det", [n("Concat", ["a", "c"], ["d"], axis=0), n("Det", ["d"], ["y"], "node")], {"a": f("K", 3)}, 2, [drawn("c", 1, 3)])
    Case("max_unpool", [n("MaxUnpool", ["a", "b"], ["y"], "node", kernel_shape=[2], strides=[2])], two(f(1, 1, "K"), i(8, 1, 1, "L")), 4)
    Case("bias_gelu", [n("BiasGelu", ["a", "b"], ["y"], "node", domain="com.microsoft")], two(f(2, "K"), f("L")), 4)
    Case("loop", [n("Loop", ["three", "", "a"], ["y"], "node", body=body([n("Add", ["s", "b"], ["s2"], "node"), n("Identity", ["c"], ["c2"])],
         [("i", TensorProto.INT64, []), ("c", TensorProto.BOOL, []), ("s", TensorProto.FLOAT, ["p"])], [("c2", TensorProto.BOOL, []), ("s2", TensorProto.FLOAT, ["q"])]))],
         two(f("K"), f("L")), 4, [constant("three", 3, np.int64)])
    Case("scan", [n("Scan", ["z", "a", "b"], ["y", "y1"], "node", num_scan_inputs=2, body=body([n("Mul", ["p", "q"], ["r"]), n("Add", ["s", "r"], ["s2"]), n("Identity", ["s2"], ["o"])],
         [("s", TensorProto.FLOAT, [3]), ("p", TensorProto.FLOAT, [3]), ("q", TensorProto.FLOAT, [3])], [("s2", TensorProto.FLOAT, [3]), ("o", TensorProto.FLOAT, [3])]))],
         {"z": f(3), "a": f("K", 3), "b": f("L", 3)}, 4, outputs=2)
    Case("scan_state", [n("Scan", ["a", "b"], ["y", "y1"], "node", num_scan_inputs=1, body=body([n("Add", ["s", "p"], ["s2"], "node"), n("Identity", ["s2"], ["o"])],
         [("s", TensorProto.FLOAT, ["u"]), ("p", TensorProto.FLOAT, ["v"])], [("s2", TensorProto.FLOAT, ["w"]), ("o", TensorProto.FLOAT, ["x"])]))],
         two(f("K"), f(3, "L")), 4, outputs=2)


def compiled(binary, model, work, name):
    path, artifact = work / f"{name}.onnx", work / f"{name}.so"
    onnx.save(model, path)
    made = subprocess.run([binary, "compile", path, "-o", artifact, "-j", "1"], capture_output=True, text=True)
    return path, artifact, made


def ways_of(case, full, number):
    letters = [l for l in "KL" if any(l in shape for _, shape, _ in case.operands.values())]
    if len(letters) == 1:
        return [{"K": w} for w in (WAYS if full else (WAYS[1], WAYS[number % 2 * 2]))]
    pairs = [(x, y) for x in WAYS for y in WAYS]
    return [dict(zip("KL", p)) for p in (pairs if full else (pairs[number % 9], pairs[(number + 4) % 9]))]


def check(binary, case, ways, work, rng):
    """Nothing, or what is wrong."""
    model = model_of(case, ways)
    path, artifact, made = compiled(binary, model, work, case.name)
    if made.returncode:
        return "does not compile: " + made.stderr.strip().splitlines()[-1 if "error" not in made.stderr else next(i for i, l in enumerate(made.stderr.strip().splitlines()) if "error" in l)]
    equal = dict.fromkeys(ways, case.equal)
    feeds = feeds_of(case, ways, equal, rng)
    expected = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, feeds)
    names = ["y"] + [f"y{i}" for i in range(1, case.outputs)]
    done, got = run_library(binary, artifact, feeds, names, work)
    if done.returncode:
        return "equal extents: " + done.stderr.strip()
    for e, g in zip(expected, got.values()):
        if e.shape != g.shape or not np.allclose(e, g, rtol=1e-4, atol=1e-5, equal_nan=True):
            return f"equal extents: {g.tolist()}, expected {e.tolist()}"
    for letter in ways:
        extents = {**equal, letter: case.other}
        done, got = run_library(binary, artifact, feeds_of(case, ways, extents, rng), names, work)
        if done.returncode == 0:
            return f"extents {extents} run to their end"
        if done.returncode < 0 or "internal" in done.stderr:
            return f"extents {extents}: status {done.returncode}, {done.stderr.strip()}"
        if not any(word in done.stderr for word in ("node", "the model takes", "(a_in): dim", "(b_in): dim")):
            return f"extents {extents}: no reason, {done.stderr.strip()}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--only")
    parser.add_argument("--full", action="store_true")
    args = parser.parse_args()
    cases()
    bad = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(CASES.values()):
            if args.only and case.name not in args.only.split(","):
                continue
            for ways in ways_of(case, args.full, number):
                count += 1
                problem = check(args.tilewright, case, ways, pathlib.Path(folder), np.random.default_rng(number))
                if problem:
                    bad += 1
                    print(f"{case.name} {'/'.join(ways.values())}: {problem}")
    print(f"{count} models whose extents meet: {bad} wrong")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
