#!/usr/bin/env python3
"""Writes models of one matrix product of 8 bits each, for compare_rivals.py: dynamic_MxKxN.onnx (DynamicQuantizeLinear, MatMulInteger, a scale, as exporters of
dynamically quantized transformers write it) and static_MxKxN.onnx (QuantizeLinear, QLinearMatMul, DequantizeLinear; zero points 120 and 128).

    byte_products.py FOLDER [MxKxN ...]
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

SHAPES = ["128x768x768", "128x768x3072", "128x3072x768", "1x768x3072"]


def save(path, nodes, constants, rows, depth, columns):
    graph = helper.make_graph(nodes, path.stem, [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [rows, depth])],
                              [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [rows, columns])],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    node = helper.make_node
    for shape in sys.argv[2:] or SHAPES:
        rows, depth, columns = map(int, shape.split("x"))
        w = np.random.default_rng(0).integers(-127, 128, (depth, columns)).astype(np.int8)
        w_scale = np.float32(0.01)
        save(folder / f"dynamic_{shape}.onnx",
             [node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]), node("MatMulInteger", ["q", "w", "zero"], ["sums"]), node("Cast", ["sums"], ["real"], to=1),
              node("Mul", ["scale", "w_scale"], ["both"]), node("Mul", ["real", "both"], ["y"])], {"w": w, "w_scale": w_scale}, rows, depth, columns)
        save(folder / f"static_{shape}.onnx",
             [node("QuantizeLinear", ["x", "x_scale", "x_zero"], ["q"]), node("QLinearMatMul", ["q", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"], ["sums"]),
              node("DequantizeLinear", ["sums", "y_scale", "y_zero"], ["y"])],
             {"w": w, "w_scale": w_scale, "w_zero": np.int8(0), "x_scale": np.float32(0.02), "x_zero": np.uint8(120), "y_scale": np.float32(1), "y_zero": np.uint8(128)},
             rows, depth, columns)


if __name__ == "__main__":
    main()
