#!/usr/bin/env python3
"""What tuning finds on the VDLA: 8-bit convolutions one by one, by predicted cycles, beside what each of the core's engines needs at least.

    vdla_layers.py --tilewright BUILD/tilewright [--target vdla-16x16] [--trials 2000] [--markdown FILE] [CxHxW:OUTPUTS:KERNEL:STRIDE ...]

Without layers: the 1x1 convolutions of stride 2 of ResNet-18 and ResNet-50. compute: a step of the array a cycle; store: four cycles for 16 outputs (requant_lanes 4);
port: every byte of input (of stride 2 only what is read), weights and output once, at 8 bytes a cycle. No schedule is faster than the largest of them. Needs: onnx, numpy.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS = ["64x56x56:128:1:2", "128x28x28:256:1:2", "256x14x14:512:1:2", "256x56x56:512:1:2", "512x28x28:1024:1:2", "1024x14x14:2048:1:2"]
BLOCK, REQUANT_CYCLES, PORT_BYTES = 16, 4, 8


def parse(text):
    shape, outputs, kernel, stride = text.split(":")
    channels, height, width = map(int, shape.split("x"))
    return channels, height, width, int(outputs), int(kernel), int(stride)


def save(path, layer):
    channels, height, width, outputs, kernel, stride = layer
    random = np.random.default_rng(1)
    pad = kernel // 2
    constants = {"xs": np.float32(0.05), "xz": np.int8(3), "ws": np.float32(0.01), "wz": np.int8(0), "ys": np.float32(0.1), "yz": np.int8(-5),
                 "w": random.integers(-127, 128, (outputs, channels, kernel, kernel), dtype=np.int8), "b": random.integers(-1000, 1000, outputs, dtype=np.int32),
                 "fs": np.float32(0.05), "fz": np.int8(3)}
    # A convolution in front brings the input into blocks of channels, one behind reads 8 bits, as in a network.
    constants |= {"w0": random.integers(-127, 128, (channels, channels, 1, 1), dtype=np.int8), "w2": random.integers(-127, 128, (16, outputs, 1, 1), dtype=np.int8)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
             helper.make_node("QLinearConv", ["q", "xs", "xz", "w0", "ws", "wz", "fs", "fz"], ["a"], kernel_shape=[1, 1]),
             helper.make_node("QLinearConv", ["a", "fs", "fz", "w", "ws", "wz", "ys", "yz", "b"], ["c"], kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4),
             helper.make_node("QLinearConv", ["c", "ys", "yz", "w2", "ws", "wz", "ys", "yz"], ["d"], kernel_shape=[1, 1]),
             helper.make_node("DequantizeLinear", ["d", "ys", "yz"], ["y"])]
    out = [1, 16, (height + 2 * pad - kernel) // stride + 1, (width + 2 * pad - kernel) // stride + 1]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [1, channels, height, width]), ("y", out))]
    graph = helper.make_graph(nodes, "layer", values[:1], values[1:], [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def bounds(layer):
    channels, height, width, outputs, kernel, stride = layer
    pad = kernel // 2
    pixels = ((height + 2 * pad - kernel) // stride + 1) * ((width + 2 * pad - kernel) // stride + 1)
    read = height * width if kernel > 1 else pixels
    return {"compute": pixels * kernel * kernel * channels * outputs // BLOCK**2, "store": pixels * outputs // BLOCK * REQUANT_CYCLES,
            "port": (read * channels + kernel * kernel * channels * outputs + pixels * outputs) // PORT_BYTES}


def measure(args, layer, folder):
    model = folder / "layer.onnx"
    save(model, layer)
    lines = subprocess.run([str(c) for c in (args.tilewright, "tune", model, "-t", args.target, "--log", folder / "log.db", "--trials", args.trials, "--json")],
                           check=True, capture_output=True, text=True).stdout.splitlines()
    tasks = json.loads(lines[-1])["tasks"]
    channels, height, width, outputs, *_ = layer
    task = max((t for t in tasks if f"{channels}x{height}x{width} -> {outputs}x" in t["name"]), key=lambda t: t["trials"])
    return round(task["default_seconds"] * 1e8), round(task["seconds"] * 1e8)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("--target", default="vdla-16x16")
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("layers", nargs="*", default=LAYERS)
    args = parser.parse_args()
    lines = ["| layer | compute | store | port | default, cycles | tuned | gain | default, of the largest |", "|---|---|---|---|---|---|---|---|"]
    print("\n".join(lines))
    for text in args.layers:
        with tempfile.TemporaryDirectory() as folder:
            layer = parse(text)
            try:
                default, tuned = measure(args, layer, pathlib.Path(folder))
            except subprocess.CalledProcessError as error:
                print(f"{text}: {json.loads(error.stdout)['error'][0]['message']}", flush=True)
                continue
        need = bounds(layer)
        lines.append(f"| {text} | {need['compute']} | {need['store']} | {need['port']} | {default} | {tuned} | {default / tuned:.3f} | {max(need.values()) / default:.1%} |")
        print(lines[-1], flush=True)
    if args.markdown:
        args.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
