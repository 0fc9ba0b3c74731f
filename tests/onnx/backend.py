#!/usr/bin/env python3
"""Tilewright as a backend of ONNX (onnx.backend.base.Backend), for the public scoreboard: `tilewright compile`, then the library through ctypes.
As a program it runs the ONNX package's own backend tests; arguments are unittest's. TILEWRIGHT names the compiler.

    TILEWRIGHT=build/release/tilewright backend.py [-k test_abs_cpu] [-q]
"""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnx.backend.base
import onnx.backend.test

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ABI = 1
COMPUTED = -2**63   # TW_DIM_COMPUTED


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("dims", ctypes.POINTER(ctypes.c_int64))]


class TensorView(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("dims", ctypes.POINTER(ctypes.c_int64))]


DIMS = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_int64))


class Api(ctypes.Structure):
    """tw_api (runtime/tilewright.h)."""
    _fields_ = [("version", ctypes.c_uint32), ("size", ctypes.c_uint32), ("name", ctypes.c_char_p), ("target", ctypes.c_char_p), ("manifest", ctypes.c_char_p),
                ("input_count", ctypes.c_int32), ("output_count", ctypes.c_int32), ("symbol_count", ctypes.c_int32),
                ("inputs", ctypes.POINTER(TensorInfo)), ("outputs", ctypes.POINTER(TensorInfo)), ("symbols", ctypes.POINTER(ctypes.c_char_p)),
                ("weight_bytes", ctypes.c_uint64), ("check_cpu", ctypes.CFUNCTYPE(ctypes.c_int)),
                ("arena_bytes", ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.POINTER(ctypes.c_int64))), ("input_dims", DIMS), ("output_dims", DIMS),
                ("create", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))),
                ("destroy", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
                ("run", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(TensorView), ctypes.POINTER(TensorView))),
                ("status_text", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int)), ("last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
                ("call_count", ctypes.c_int32), ("profile", ctypes.c_void_p), ("run_async", ctypes.c_void_p), ("wait", ctypes.c_void_p), ("device_count", ctypes.c_int32),
                ("device_stats", ctypes.c_void_p), ("output_of_run", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64),
                                                                                      ctypes.POINTER(ctypes.c_void_p)))]


def int64s(values):
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def byte_count(dims, dtype):
    """Of a dense tensor: as NumPy stores it, elements narrower than a byte in a byte each."""
    return int(np.prod(dims, dtype=np.int64)) * onnx.helper.tensor_dtype_to_np_dtype(dtype).itemsize


def to_array(data, dims, dtype):
    return np.frombuffer(bytes(data), onnx.helper.tensor_dtype_to_np_dtype(dtype)).reshape(tuple(dims))


class Library(onnx.backend.base.BackendRep):
    """A compiled model, loaded; run takes and gives arrays in the model's order."""

    def __init__(self, path, name):
        query = getattr(ctypes.CDLL(str(path)), f"tw_{name}_query")
        query.restype = ctypes.POINTER(Api)
        self.api = query(ctypes.c_uint32(ABI)).contents
        self.check(self.api.check_cpu(), None)

    def check(self, status, context):
        if status:
            text = (context and self.api.last_error(context)) or self.api.status_text(status)
            raise RuntimeError(text.decode())

    def symbols(self, inputs):
        values = [1] * self.api.symbol_count
        for i, array in enumerate(inputs):
            info = self.api.inputs[i]
            for axis in range(info.rank):
                if COMPUTED < info.dims[axis] < 0:
                    values[-1 - info.dims[axis]] = array.shape[axis]
        return int64s(values)

    def output(self, i, symbols):
        """Memory for output i and its dims; without memory where the data decide about its size: then the library has it."""
        info = self.api.outputs[i]
        dims = int64s([0] * info.rank)
        self.api.output_dims(i, symbols, dims)
        known = all(dim >= 0 for dim in dims[:info.rank])
        return (ctypes.create_string_buffer(max(1, byte_count(dims[:info.rank], info.dtype))) if known else None), dims

    def result(self, context, i, memory, dims):
        info = self.api.outputs[i]
        if memory is None:
            place = ctypes.c_void_p()
            self.check(self.api.output_of_run(context, i, dims, ctypes.byref(place)), context)
            size = byte_count(dims[:info.rank], info.dtype)
            memory = ctypes.string_at(place, size) if size else b""
        return to_array(memory[:byte_count(dims[:info.rank], info.dtype)], dims[:info.rank], info.dtype)

    def run(self, inputs, **kwargs):
        if len(inputs) != self.api.input_count:
            raise ValueError(f"{len(inputs)} inputs, expected {self.api.input_count}")
        dtypes = [self.api.inputs[i].dtype for i in range(len(inputs))]
        arrays = [np.asarray(value, onnx.helper.tensor_dtype_to_np_dtype(dtype)) for value, dtype in zip(inputs, dtypes)]
        raw = [ctypes.create_string_buffer(array.tobytes() + b"\0") for array in arrays]
        symbols = self.symbols(arrays)
        outputs = [self.output(i, symbols) for i in range(self.api.output_count)]
        ins = (TensorView * max(1, len(arrays)))(*(TensorView(ctypes.addressof(memory), byte_count(array.shape, dtype), dtype, array.ndim, int64s(array.shape))
                                                   for memory, array, dtype in zip(raw, arrays, dtypes)))
        outs = (TensorView * max(1, len(outputs)))(*(TensorView(memory and ctypes.addressof(memory), len(memory) if memory else 0, self.api.outputs[i].dtype,
                                                                self.api.outputs[i].rank, dims if memory else None) for i, (memory, dims) in enumerate(outputs)))
        context = ctypes.c_void_p()
        self.check(self.api.create(None, ctypes.byref(context)), None)
        try:
            self.check(self.api.run(context, ins, outs), context)
            return tuple(self.result(context, i, memory, dims) for i, (memory, dims) in enumerate(outputs))
        finally:
            self.api.destroy(context)


def compiled(model, dims):
    with tempfile.TemporaryDirectory() as folder:
        path, library = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.so")
        onnx.save(model, path)
        compiler = os.environ.get("TILEWRIGHT", ROOT / "build/release/tilewright")
        bound = [part for name, size in dims.items() for part in ("--dim", f"{name}={size}")]
        done = subprocess.run([compiler, "compile", path, "-o", library, "--name", "model", *bound], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return Library(library, "model")


def tensor_type(type_proto):
    """Of a tensor, or of those that a sequence or an optional holds."""
    kind = type_proto.WhichOneof("value")
    return tensor_type(getattr(type_proto, kind).elem_type) if kind in ("sequence_type", "optional_type") else getattr(type_proto, "tensor_type")


def items_of(rows, sizes):
    """The items of a sequence whose length the run knows (docs/reference/c-interface.md)."""
    for row, size in zip(rows, sizes):
        shape = tuple(extent for extent in size if extent >= 0)
        yield np.asarray(row[tuple(slice(extent) for extent in shape) + (0,) * (row.ndim - len(shape))])


class Fitted(onnx.backend.base.BackendRep):
    """A model with sequences, optionals or free dims, compiled when its inputs are there: how many tensors a list holds and of what rank, and which
    dims may be 0, is said to the compiler. Lists are Python's, an empty optional is None."""

    def __init__(self, model):
        initializers = {tensor.name for tensor in model.graph.initializer}
        self.model, self.inputs = model, [value for value in model.graph.input if value.name not in initializers]

    def run(self, inputs, **kwargs):
        tensors, dims = [], {}
        for value, given in zip(self.inputs, inputs):
            if value.type.WhichOneof("value") == "tensor_type":
                tensors.append(given)
                dims |= {dim.dim_param: "0..1024" for dim, extent in zip(value.type.tensor_type.shape.dim, np.shape(given)) if extent == 0 and dim.dim_param}
                continue
            held = [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]
            dims[value.name] = len(held)
            tensors += held
            if held and not (kind := tensor_type(value.type)).HasField("shape"):
                kind.shape.SetInParent()
                for _ in np.shape(held[0]):
                    kind.shape.dim.add()
        library = compiled(self.model, dims)
        names = [library.api.outputs[i].name.decode() for i in range(library.api.output_count)]
        made = dict(zip(names, library.run(tensors)))
        return tuple(self.output(value, made) for value in self.model.graph.output)

    @staticmethod
    def output(value, made):
        name, kind = value.name, value.type.WhichOneof("value")
        if kind == "tensor_type":
            return made[name]
        if name + "_there" in made and not made[name + "_there"]:
            return None
        if name + "_rows" in made:
            return list(items_of(made[name + "_rows"], made[name + "_sizes"]))
        numbered = [made[f"{name}_{i}"] for i in range(len(made)) if f"{name}_{i}" in made]
        holds_list = kind == "sequence_type" or value.type.optional_type.elem_type.WhichOneof("value") == "sequence_type"
        return numbered if holds_list else numbered[0] if numbered else None


class TilewrightBackend(onnx.backend.base.Backend):
    @classmethod
    def supports_device(cls, device):
        return device == "CPU"

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        values = list(model.graph.input) + list(model.graph.output)
        fixed = all(value.type.WhichOneof("value") == "tensor_type" and all(not dim.dim_param for dim in value.type.tensor_type.shape.dim) for value in values)
        return compiled(model, {}) if fixed else Fitted(model)

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        return cls.prepare(model, device, **kwargs).run(inputs)


def main():
    tests = onnx.backend.test.BackendTest(TilewrightBackend, __name__)
    globals().update(tests.exclude(r"_cuda$").test_cases)
    unittest.main()


if __name__ == "__main__":
    main()
