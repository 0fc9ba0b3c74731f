"""Models of one product each, whose kernels are an instruction of a GPU: for each type of operands one with small whole numbers, of which any order of sums gives
the same, and one with random numbers."""
import dataclasses
import pathlib
import subprocess

import numpy as np
import onnx
from onnx import TensorProto, helper

ROWS, DEPTH, COLUMNS = 64, 64, 64
ONNX = {"f32": TensorProto.FLOAT, "tf32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "s8": TensorProto.INT8}


@dataclasses.dataclass(frozen=True)
class Probe:
    name: str
    dtype: str         # of the operands
    whole: bool        # numbers without a fraction, whose products and sums are exact
    tolerance: float   # of the result's range


PROBES = [Probe(f"{dtype}_{'whole' if whole else 'random'}", dtype, whole, 0 if whole else tolerance)
          for dtype, tolerance in (("f16", 1e-3), ("bf16", 8e-3), ("tf32", 1e-6), ("f32", 1e-6)) for whole in (True, False)] + [Probe("s8_whole", "s8", True, 0)]


def flags(probe):
    """What compile takes besides: operands of f32 are rounded to tf32 where the precision says so."""
    return ["--precision", "tf32"] if probe.dtype == "tf32" else []


def write(probe, folder):
    """y = a * b; operands of bf16 are made of f32 ones, because numpy has none."""
    dtype = ONNX[probe.dtype]
    outside = TensorProto.FLOAT if probe.dtype == "bf16" else dtype
    nodes, operands = [], ["a", "b"]
    if probe.dtype == "bf16":
        nodes = [helper.make_node("Cast", [name], [f"{name}16"], to=dtype) for name in operands]
        operands = ["a16", "b16"]
    product = "MatMulInteger" if probe.dtype == "s8" else "MatMul"
    nodes.append(helper.make_node(product, operands, ["p" if probe.dtype == "bf16" else "y"]))
    if probe.dtype == "bf16":
        nodes.append(helper.make_node("Cast", ["p"], ["y"], to=outside))
    graph = helper.make_graph(nodes, probe.name, [helper.make_tensor_value_info("a", outside, [ROWS, DEPTH]), helper.make_tensor_value_info("b", outside, [DEPTH, COLUMNS])],
                              [helper.make_tensor_value_info("y", TensorProto.INT32 if probe.dtype == "s8" else outside, [ROWS, COLUMNS])])
    path = folder / f"{probe.name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def inputs_of(probe):
    random = np.random.default_rng(sum(map(ord, probe.name)))
    shapes = {"a": (ROWS, DEPTH), "b": (DEPTH, COLUMNS)}
    numbers = {name: random.integers(-2, 3, shape) if probe.whole else random.standard_normal(shape) for name, shape in shapes.items()}
    return {name: value.astype({"f16": np.float16, "s8": np.int8}.get(probe.dtype, np.float32)) for name, value in numbers.items()}


def held(probe, x):
    """As the operands' type holds it."""
    if probe.dtype not in ("bf16", "tf32"):
        return x.astype(np.float64)
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000 if probe.dtype == "bf16" else (bits + 0x1000) & 0xFFFFE000
    return rounded.astype(np.uint32).view(np.float32).astype(np.float64)


def error_of(probe, inputs, got):
    """Of the range of the exact result; one that the result's type cannot hold is rounded to it."""
    want = held(probe, inputs["a"]) @ held(probe, inputs["b"])
    span = float(np.ptp(want))
    return float(np.abs(got.astype(np.float64) - want).max()) / span


def outputs(tilewright, probe, library, folder, inputs=None):
    """(inputs, y) of a run of the library."""
    inputs = inputs or inputs_of(probe)
    arguments = []
    for name, value in inputs.items():
        np.save(folder / f"{probe.name}.{name}.npy", value)
        arguments += ["--input", f"{name}={folder / f'{probe.name}.{name}.npy'}"]
    results = pathlib.Path(folder) / f"{probe.name}.out"
    subprocess.run([str(a) for a in (tilewright, "run", library, *arguments, "--output-dir", results)], check=True, stdout=subprocess.DEVNULL)
    return inputs, np.load(results / "y.npy")
