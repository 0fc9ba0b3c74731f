#!/usr/bin/env python3
"""Products whose number of rows is free, beside onnxruntime: one row, which has a loop of its own, few, whole tiles and such that end early; in floats, bytes
and weights of 4 bits. On this machine, and in the emulators of others.

    free_rows.py --tilewright BUILD/tilewright
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

MACHINES = {"host": [], "x86-64-v3": [], "neoverse-v1": ["qemu-aarch64", "-cpu", "max"], "cortex-a76": ["qemu-aarch64", "-cpu", "max"],
            "armv7-generic": ["qemu-arm", "-cpu", "max"], "rv64gc": ["qemu-riscv64", "-cpu", "rv64,v=false"]}
DEPTH, COLUMNS, ROWS = 64, 90, (1, 2, 6, 13)
LIMITS = {"fp32": 1e-5, "bf16": 2e-2}   # of the range


def models(folder):
    random, node = np.random.default_rng(0), helper.make_node

    def save(name, nodes, constants, batches=()):
        info = [helper.make_tensor_value_info(at, TensorProto.FLOAT, [*batches, "n", size]) for at, size in (("x", DEPTH), ("y", COLUMNS))]
        graph = helper.make_graph(nodes, name, info[:1], info[1:], [numpy_helper.from_array(value, at) for at, value in constants.items()])
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / f"{name}.onnx")
        return name

    weights = {"w": random.standard_normal((DEPTH, COLUMNS), np.float32), "b": random.standard_normal(COLUMNS, np.float32)}
    sum_of = [node("MatMul", ["x", "w"], ["p"]), node("Add", ["p", "b"], ["s"]), node("Relu", ["s"], ["y"])]
    yield save("floats", sum_of, weights), ("fp32", "bf16")
    yield save("batches", sum_of, weights, ("m",)), ("fp32", "bf16")
    yield save("bytes", [node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]), node("MatMulInteger", ["q", "w", "z"], ["i"]), node("Cast", ["i"], ["f"], to=1),
                         node("Mul", ["f", "s"], ["y"])], {"w": random.integers(-127, 128, (DEPTH, COLUMNS)).astype(np.int8)}), ("fp32",)
    bits = {"w": random.integers(0, 256, (COLUMNS, DEPTH // 32, 16), dtype=np.uint8), "s": random.random((COLUMNS, DEPTH // 32), np.float32)}
    for level in (0, 4):
        product = node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=DEPTH, N=COLUMNS, bits=4, block_size=32, accuracy_level=level)
        yield save(f"bits_level_{level}", [product], bits), ("fp32",)


def largest_error(folder, name, program):
    """Of all numbers of rows, relative to the range."""
    session, random, worst = onnxruntime.InferenceSession(folder / f"{name}.onnx", providers=["CPUExecutionProvider"]), np.random.default_rng(1), 0
    for rows in ROWS:
        x = random.standard_normal((rows, DEPTH), np.float32)
        x = x[None] if name == "batches" else x
        np.save(folder / "x.npy", x)
        subprocess.run([*program, "run", "--input", f"x={folder / 'x.npy'}", "--threads", "1", "-d", folder / "out"], check=True, capture_output=True)
        want = session.run(None, {"x": x})[0]
        worst = max(worst, float(np.abs(np.load(folder / "out/y.npy") - want).max() / np.ptp(want)))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    args, failed = parser.parse_args(), 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name, precisions in models(folder):
            for target, emulator in MACHINES.items():
                for precision in precisions:
                    command = [args.tilewright, "compile", folder / f"{name}.onnx", "-t", target, "--precision", precision, "--with-runner", "-o", folder / "m.so"]
                    subprocess.run(command, check=True, capture_output=True)
                    error = largest_error(folder, name, [*emulator, folder / "m.run"])
                    failed += error > LIMITS[precision]
                    print(f"{'ok  ' if error <= LIMITS[precision] else 'FAIL'} {name}, {target}, {precision}: {error:.1e} of the range", flush=True)
    if failed:
        sys.exit(f"{failed} of them are off")


if __name__ == "__main__":
    main()
