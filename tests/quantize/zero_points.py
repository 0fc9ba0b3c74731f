#!/usr/bin/env python3
"""Sums and products between quantized values whose exact results lie on ties, next to odd zero points: rounded by the standard, as onnxruntime
without optimizations does, and with `--quantized-rounding onnxruntime` as its optimized kernels do. `verify` goes by the library's rule.

    zero_points.py --tilewright BUILD/tilewright
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

RULES = {"standard": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, "onnxruntime": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL}
KINDS = {np.int8: TensorProto.INT8, np.uint8: TensorProto.UINT8}


def model(op, kind):
    """Every byte with eight others, and the result with itself."""
    low = np.iinfo(kind).min
    numbers = {"xs": np.float32(0.03125), "xz": kind(low + 103), "ws": np.float32(0.0625), "wz": kind(low + 128),
               "ys": np.float32(0.05 if op == "Add" else 0.0625), "yz": kind(low + 129), "w": (np.arange(8) * 16 + low + 64).astype(kind).reshape(8, 1)}
    nodes = [helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["a"]), helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["b"]),
             helper.make_node(op, ["a", "b"], ["s"]), helper.make_node("QuantizeLinear", ["s", "ys", "yz"], ["y"]),
             helper.make_node("DequantizeLinear", ["y", "ys", "yz"], ["d"]), helper.make_node(op, ["d", "d"], ["t"]),
             helper.make_node("QuantizeLinear", ["t", "ys", "yz"], ["z"])]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "ties", [info("x", KINDS[kind], [256])], [info(n, KINDS[kind], [8, 256]) for n in ("y", "z")],
                              [numpy_helper.from_array(np.asarray(v), n) for n, v in numbers.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), np.arange(low, low + 256).astype(kind)


def by_onnxruntime(path, x, level):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.graph_optimization_level = 3, level
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(["y", "z"], {"x": x})


def call(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True)


def check(tilewright, work, op, kind, target):
    proto, x = model(op, kind)
    path = work / "ties.onnx"
    onnx.save(proto, path)
    np.save(work / "x.npy", x)
    good, results = True, {}
    for rule, level in RULES.items():
        library = work / f"{rule}.so"
        made = call(tilewright, "compile", path, "-t", target, "--quantized-rounding", rule, "-o", library)
        ran = call(tilewright, "run", library, "--input", f"x={work}/x.npy", "--output-dir", work)
        assert made.returncode == 0 and ran.returncode == 0, made.stderr + ran.stderr
        results[rule] = [np.load(work / f"{name}.npy") for name in ("y", "z")]
        off = [int(np.count_nonzero(have != want)) for have, want in zip(results[rule], by_onnxruntime(path, x, level))]
        said = [call(tilewright, "verify", library, path, "--input", f"x={work}/x.npy", "--reference", reference) for reference in ("f64", "operators")]
        recorded = json.loads(call(tilewright, "inspect", library, "--json").stdout)["manifest"]["options"].get("quantized_rounding", "standard")
        fine = not any(off) and not any(s.returncode for s in said) and recorded == rule
        good &= fine
        print(f"{'ok  ' if fine else 'FAIL'} {target} {op} {kind.__name__} {rule}: {off} others than onnxruntime's; verify ends with "
              f"{[s.returncode for s in said]}; the manifest says {recorded}")
    apart = sum(int(np.count_nonzero(a != b)) for a, b in zip(*results.values()))
    print(f"{'ok  ' if apart else 'FAIL'} {target} {op} {kind.__name__}: the rules differ in {apart} bytes")
    return good and apart > 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    tilewright = parser.parse_args().tilewright.resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        good = [check(tilewright, work, op, kind, target) for target in ("host", "x86-64-v2") for op in ("Add", "Mul") for kind in KINDS]
        refused = call(tilewright, "compile", work / "ties.onnx", "--quantized-rounding", "up", "-o", work / "no.so")
        good.append(refused.returncode == 1 and "standard, onnxruntime" in refused.stderr)
        print(f"{'ok  ' if good[-1] else 'FAIL'} another rule: {refused.stderr.strip()}")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
