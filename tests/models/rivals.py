#!/usr/bin/env python3
"""bench/rivals/compare_rivals.py's check of outputs: an 8-bit model whose readings round apart, contenders that are right, and such that are not.

    rivals.py --tilewright BUILD/tilewright
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/rivals"))
import rival_truth   # noqa: E402


def quantized_network(path, layers=12, channels=16):
    """Residual 8-bit convolutions, QDQ: each sum of two tensors is rounded once more. Weights have 7 bits: without VNNI onnxruntime adds two products
    of bytes in 16 bits, which saturates with 8."""
    rng, nodes, weights = np.random.default_rng(3), [], []

    def constant(name, value):
        weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def pair(name, scale, zero):
        nodes.append(helper.make_node("QuantizeLinear", [name, constant(name + "s", np.float32(scale)), constant(name + "z", zero)], [name + "q"]))
        nodes.append(helper.make_node("DequantizeLinear", [name + "q", name + "s", name + "z"], [name + "d"]))
        return name + "d"
    value = pair("x", 4 / 255, np.uint8(128))
    for i in range(layers):
        w = rng.integers(-63, 64, (channels, channels, 3, 3)).astype(np.int8)
        nodes.append(helper.make_node("DequantizeLinear", [constant(f"w{i}", w), constant(f"w{i}s", np.float32(0.0028)), constant(f"w{i}z", np.int8(0))], [f"w{i}d"]))
        nodes.append(helper.make_node("Conv", [value, f"w{i}d"], [f"c{i}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Add", [pair(f"c{i}", 8.3 / 255, np.uint8(127)), value], [f"a{i}"]))
        value = pair(f"a{i}", (5.1 + i / 4) / 255, np.uint8(128))
    nodes[-1].output[0] = "y"
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, 12, 12])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, 12, 12])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def worker(tilewright, contender, path, work, *flags):
    done = subprocess.run([sys.executable, ROOT / "bench/rivals/rival_worker.py", contender, path, "--work", work, "--threads", "1", "--tilewright", tilewright, *flags],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return json.loads(done.stdout.splitlines()[0])


def check_model(tilewright, path, work):
    work.mkdir()
    answer = worker(tilewright, "reference", path, work, "--prepare")
    assert answer["ok"], answer
    truth = rival_truth.Truth.load(work)
    for contender in ("onnxruntime", "tilewright"):
        answer = worker(tilewright, contender, path, work)
        assert answer["ok"], (contender, answer)
    tilted = [v + np.linspace(0, 2 * truth.tolerance() * truth.units()[0], v.size, dtype=v.dtype).reshape(v.shape) for v in truth.readings["graph"]]
    for wrong in (tilted, [v[::-1] * -1 for v in truth.readings["graph"]], [v * np.nan for v in truth.readings["graph"]], []):
        assert not truth.error(wrong) <= truth.tolerance(), "what is wrong passes"
    return truth


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=lambda text: pathlib.Path(text).resolve(), required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        quantized_network(folder / "residual.onnx")
        truth = check_model(args.tilewright, folder / "residual.onnx", folder / "residual")
        assert set(truth.readings) == {"graph", "integers"} and len(truth.steps) == 1, truth.readings.keys()
        print(f"residual: readings {rival_truth.distance(truth.readings['graph'], truth.readings['integers'], truth.steps):.0f} steps apart, {truth.show(truth.tolerance())} pass")
        check_model(args.tilewright, ROOT / "examples/digits/digits_int8.onnx", folder / "int8")
        assert check_model(args.tilewright, ROOT / "examples/digits/digits.onnx", folder / "float").tolerance() == rival_truth.FLOAT_TOLERANCE
        far = rival_truth.Truth(["y"], {"graph": [np.zeros(4)], "integers": [np.full(4, 9.0)]}, [0.1])
        try:
            far.tolerance()
            raise AssertionError("readings 90 steps apart are taken")
        except RuntimeError as error:
            assert "90 quantization steps apart" in str(error), error
    print("rivals: what is right passes, what is wrong does not")


if __name__ == "__main__":
    main()
