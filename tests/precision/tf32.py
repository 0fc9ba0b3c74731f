#!/usr/bin/env python3
"""Products of tf32 on the tests' fake libcuda: they are off by as much as the rounding of both operands, a limit of accuracy takes layers back, and a target
without an instruction for it is an error.

    tf32.py --tilewright BUILD/tilewright
"""
import argparse
import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "gpu"))
import gpu_models   # noqa: E402

LAYERS, ROWS, WIDTH = 3, 48, 64
LEAST, MOST = 1e-5, 2e-3   # of an output's range: more than f32 is off by, and what roundings by 2^-11 come to


def perceptron(path):
    random = np.random.default_rng(5)
    nodes, weights, last = [], [], "x"
    for i in range(LAYERS):
        weights.append(numpy_helper.from_array((random.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH)).astype(np.float32), f"w{i}"))
        nodes += [helper.make_node("MatMul", [last, f"w{i}"], [f"p{i}"]), helper.make_node("Relu", [f"p{i}"], [f"r{i}" if i + 1 < LAYERS else "y"])]
        last = f"r{i}"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [ROWS, WIDTH]) for name in ("x", "y")]
    onnx.save(helper.make_model(helper.make_graph(nodes, "m", values[:1], values[1:], weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    tilewright = parser.parse_args().tilewright.resolve()
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        model, library = work / "m.onnx", work / "m.so"
        perceptron(model)

        def compiled(target, *flags):
            return gpu_models.call(tilewright, "compile", model, "-t", target, "-o", library, "--precision", "tf32", *flags)

        for without in ("nvidia-sm75", "opencl-generic", "x86-64-v4"):
            status, report, said = compiled(without)
            assert status and "no instruction that threads multiply tf32" in gpu_models.problem_of(report, said), (without, said)
        target = gpu_models.emulated_target(tilewright, work)
        if not target:
            print("SKIPPED tf32: no tests/fake/libcuda.so.1 beside tilewright, or no ld")
            return
        status, report, said = compiled(target, "--max-error", 1)
        assert not status, said
        whole = report["accuracy"]
        assert [layer["choice"] for layer in whole["layers"]] == ["tf32"] * LAYERS and LEAST < whole["error"] < MOST, whole
        status, report, said = compiled(target, "--max-error", whole["error"] * 0.7)
        assert not status, said
        part = report["accuracy"]
        back = [layer["name"] for layer in part["layers"] if layer["taken_back"]]
        assert 0 < len(back) and part["error"] <= whole["error"] * 0.7, part
        print(f"tf32: {whole['error']:.1e} of the range, {part['error']:.1e} with {len(back)} of {LAYERS} layers taken back")


if __name__ == "__main__":
    main()
