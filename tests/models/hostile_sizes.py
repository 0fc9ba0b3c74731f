#!/usr/bin/env python3
"""Models whose sizes and indices data decide, or whose dims are free, run on hostile values: sizes that overflow, indices and windows outside. Each
run ends with a status, never outside of the caller's memory, behind and in front of which lie pages that nobody may touch; what succeeds is what
onnxruntime computes.

    hostile_sizes.py --tilewright BUILD/tilewright [--only NAME] [--runs 60] [--seed 1]
"""
import argparse
import ctypes
import mmap
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OK, ARGUMENT, SHAPE, SIZE, MEMORY = "OK", "ARGUMENT", "SHAPE", "SIZE", "MEMORY"
STATUS = {0: OK, 3: ARGUMENT, 4: "DTYPE", 5: SHAPE, 6: SIZE, 7: MEMORY}
MOST = 1 << 31            # bytes that a child may map
SMALL = 1 << 20           # bytes of outputs that are compared
COMPUTED = -(1 << 63)
EDGES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 100, -1, -2, -3, -4, -5, -9, 1000, -1000, 1 << 31, (1 << 31) - 1, 1 << 32, -(1 << 31), 1 << 40, 1 << 61, 1 << 62,
         (1 << 63) - 1, -(1 << 63), -(1 << 63) + 1, 6148914691236517206, 3074457345618258603, 1 << 20]
TYPES = {1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_}


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("dims", ctypes.POINTER(ctypes.c_int64))]


class Info(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("dims", ctypes.POINTER(ctypes.c_int64))]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("threads", ctypes.c_int32), ("parallel", ctypes.c_void_p), ("arena", ctypes.c_void_p), ("arena_bytes", ctypes.c_uint64),
                ("symbols", ctypes.POINTER(ctypes.c_int64)), ("queue", ctypes.c_void_p)]


I64P, P = ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p


def fn(result, *arguments):
    return ctypes.CFUNCTYPE(result, *arguments)


class Api(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("size", ctypes.c_uint32), ("name", ctypes.c_char_p), ("target", ctypes.c_char_p), ("manifest", ctypes.c_char_p),
                ("input_count", ctypes.c_int32), ("output_count", ctypes.c_int32), ("symbol_count", ctypes.c_int32), ("inputs", ctypes.POINTER(Info)),
                ("outputs", ctypes.POINTER(Info)), ("symbols", ctypes.POINTER(ctypes.c_char_p)), ("weight_bytes", ctypes.c_uint64), ("check_cpu", fn(ctypes.c_int)),
                ("arena_bytes", fn(ctypes.c_uint64, I64P)), ("input_dims", fn(None, ctypes.c_int32, I64P, I64P)), ("output_dims", fn(None, ctypes.c_int32, I64P, I64P)),
                ("create", fn(ctypes.c_int, ctypes.POINTER(Options), ctypes.POINTER(P))), ("destroy", fn(None, P)),
                ("run", fn(ctypes.c_int, P, ctypes.POINTER(Tensor), ctypes.POINTER(Tensor))), ("status_text", fn(ctypes.c_char_p, ctypes.c_int)),
                ("last_error", fn(ctypes.c_char_p, P)), ("call_count", ctypes.c_int32), ("profile", P), ("run_async", P), ("wait", P), ("device_count", ctypes.c_int32),
                ("device_stats", P), ("output_of_run", fn(ctypes.c_int, P, ctypes.c_int32, I64P, ctypes.POINTER(P)))]


libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
PAGE = mmap.PAGESIZE


class Guarded:
    """Memory between two pages that nobody may touch, at the end of its own pages or at their beginning."""

    def __init__(self, size, at_end=True, align=8):
        pages = max(1, (size + PAGE - 1) // PAGE)
        self.length = (pages + 2) * PAGE
        self.base = libc.mmap(None, self.length, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        assert self.base not in (None, ctypes.c_void_p(-1).value), "no memory"
        assert libc.mprotect(self.base, PAGE, 0) == 0 and libc.mprotect(self.base + self.length - PAGE, PAGE, 0) == 0
        room = pages * PAGE - size
        self.at, self.size = self.base + PAGE + (room // align * align if at_end else 0), size

    def fill(self, array):
        ctypes.memmove(self.at, array.ctypes.data, array.nbytes)
        return self

    def free(self):
        libc.munmap(self.base, self.length)


def numbers(values):
    return (ctypes.c_int64 * max(1, len(values)))(*values)


class Library:
    def __init__(self, path, name):
        query = getattr(ctypes.CDLL(str(path)), f"tw_{name}_query")
        query.restype = ctypes.POINTER(Api)
        self.api = query(1).contents

    def create(self, symbols=None, arena=None):
        options = Options(ctypes.sizeof(Options), 1, None, arena.at if arena else None, arena.size if arena else 0, numbers(symbols) if symbols else None, None)
        context = P()
        return STATUS[self.api.create(ctypes.byref(options), ctypes.byref(context))], context

    def arena(self, symbols):
        return self.api.arena_bytes(numbers(symbols))

    def symbols_of(self, feeds):
        found = {}
        for i in range(self.api.input_count):
            info = self.api.inputs[i]
            for d in range(info.rank):
                if COMPUTED < info.dims[d] < 0:
                    found[-1 - info.dims[d]] = feeds[info.name.decode()].shape[d]
        return [found[s] for s in range(self.api.symbol_count)]

    def run(self, feeds, given=None, at_end=True, own_arena=False):
        """Status, text, outputs. given: bytes that the caller offers for outputs whose size data decide; None: the library's memory."""
        kept, inputs, outputs = [], (Tensor * self.api.input_count)(), (Tensor * self.api.output_count)()
        symbols = self.symbols_of(feeds)
        arena = None
        status, context = self.create(symbols or None)
        if status == OK and own_arena and 0 < self.arena(symbols) < SMALL:
            self.api.destroy(context)
            arena = Guarded(self.arena(symbols), at_end, 64)
            status, context = self.create(symbols or None, arena)
        if status != OK:
            return status, (self.api.last_error(None) or b"").decode(), None
        for i in range(self.api.input_count):
            array = np.ascontiguousarray(feeds[self.api.inputs[i].name.decode()])
            kept.append(Guarded(array.nbytes, at_end).fill(array))
            inputs[i] = Tensor(kept[-1].at, array.nbytes, self.api.inputs[i].dtype, array.ndim, numbers(array.shape))
        for i in range(self.api.output_count):
            info, dims = self.api.outputs[i], numbers([0] * 64)
            self.api.output_dims(i, numbers(symbols), dims)
            shape = list(dims[: info.rank])
            size = given if -1 in shape else int(np.prod(shape, dtype=object)) * np.dtype(TYPES[info.dtype]).itemsize
            if size is not None and 0 <= size < 64 * SMALL:
                kept.append(Guarded(size, at_end))
                outputs[i] = Tensor(kept[-1].at, size, info.dtype, info.rank, None)
            else:
                outputs[i] = Tensor(None, 0, info.dtype, info.rank, None)
        status = STATUS[self.api.run(context, inputs, outputs)]
        text = (self.api.last_error(context) or b"").decode() if status != OK else ""
        results = self.results(context, outputs, symbols) if status == OK else None
        self.api.destroy(context)
        for memory in kept + ([arena] if arena else []):
            memory.free()
        return status, text, results

    def results(self, context, outputs, symbols):
        results = []
        for i in range(self.api.output_count):
            info, dims, data = self.api.outputs[i], numbers([0] * 64), P()
            assert self.api.output_of_run(context, i, dims, ctypes.byref(data)) == 0
            if any(d > 1 << 40 for d in dims[: info.rank]):   # empty along another axis, and nothing that NumPy takes
                return []
            array = np.empty(list(dims[: info.rank]), TYPES[info.dtype])
            if array.nbytes:
                ctypes.memmove(array.ctypes.data, data, array.nbytes)
            results.append(array)
        return results


def ints(*values):
    return np.array(values, np.int64)


class Model:
    """nodes: (op, inputs, attributes); inputs: name -> (type, dims); fixed: constants. draw(random) makes feeds; cases: (feeds, statuses, word of the text)."""

    def __init__(self, name, nodes, inputs, draw, cases=(), fixed=None, opset=21, outputs=1, refuse=None, types=None):
        self.name, self.nodes, self.inputs, self.draw, self.cases, self.fixed = name, nodes, inputs, draw, cases, fixed or {}
        self.opset, self.outputs, self.refuse, self.types = opset, outputs, refuse, types   # types: (type, rank) of the outputs

    def proto(self):
        nodes, made = [], {}
        for k, (op, inputs, attributes) in enumerate(self.nodes):
            last = k == len(self.nodes) - 1
            outs = [f"y{i}" for i in range(self.outputs)] if last else [f"t{k}"]
            nodes.append(helper.make_node(op, inputs, outs, f"{op.lower()}_{k}", **attributes))
        weights = [numpy_helper.from_array(np.asarray(v), k) for k, v in self.fixed.items()]
        values = [helper.make_tensor_value_info(k, t, dims) for k, (t, dims) in self.inputs.items()]
        if self.types:
            outputs = [helper.make_tensor_value_info(f"y{i}", t, [f"y{i}_{d}" for d in range(rank)]) for i, (t, rank) in enumerate(self.types)]
        else:
            outputs = [onnx.ValueInfoProto(name=f"y{i}") for i in range(self.outputs)]
        graph = helper.make_graph(nodes, self.name, values, outputs, weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 10
        return model


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.proto().SerializeToString(), options, providers=["CPUExecutionProvider"])


def find_types(model):
    """Of the outputs, from a run of onnxruntime: the checker wants them."""
    session, r = session_of(model), random.Random(0)
    for _ in range(1000):
        feeds = {k: np.asarray(v) for k, v in model.draw(r).items()}
        if any(v.dtype == np.int64 and np.any(np.abs(v) > 20) for v in feeds.values()) or any(not np.all(np.abs(v) < 100) for v in feeds.values()):
            continue
        try:
            model.types = [(helper.np_dtype_to_tensor_dtype(y.dtype), y.ndim) for y in session.run(None, feeds)]
            return
        except Exception:   # not with these numbers
            continue
    raise RuntimeError(f"onnxruntime takes no feeds of {model.name}")


F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def floats(*shape):
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape) - 3


def edge(r):
    return r.choice(EDGES) if r.random() < 0.7 else r.randint(-12, 12)


def edges(r, count):
    return ints(*[edge(r) for _ in range(count)])


def places(r, count):
    """Of slices; onnxruntime takes the largest numbers for the beginning where a step is negative."""
    return ints(*[v if v not in ((1 << 31) - 1, (1 << 63) - 1) else 1 << 40 for v in (edge(r) for _ in range(count))])


def small(r, count, most=6):
    return ints(*[edge(r) if r.random() < 0.25 else r.randint(0, most) for _ in range(count)])


BIG = [ints(1, 1 << 62), ints(1 << 31, 1 << 31), ints(3, 6148914691236517206)]
NOT = {SHAPE, MEMORY}


def data_models():
    x44, x88 = floats(4, 4), floats(8, 8)
    yield Model("constant_of_shape", [("ConstantOfShape", ["s"], {})], {"s": (I, [2])}, lambda r: {"s": small(r, 2)}, [({"s": b}, NOT, "") for b in BIG])
    yield Model("constant_then_sum", [("ConstantOfShape", ["s"], {}), ("Add", ["t0", "one"], {}), ("ReduceMax", ["t1"], {"keepdims": 0})], {"s": (I, [2])},
                lambda r: {"s": ints(*[r.choice([0, 1, 3, -1, 1 << 62, 6148914691236517206, -(1 << 63)]) for _ in range(2)])}, [({"s": BIG[2]}, NOT, "")],
                fixed={"one": np.float32(1)})
    empty = [ints(1 << 34, 0), ints(0, 1 << 34), ints(1 << 40, 0)]
    yield Model("constant_of_empty", [("ConstantOfShape", ["s"], {}), ("ReduceMax", ["t0"], {"keepdims": 0})], {"s": (I, [2])}, lambda r: {"s": ints(r.randint(1, 4), r.randint(1, 4))},
                [({"s": e}, {SHAPE}, "") for e in empty])
    yield Model("tile_empty", [("Tile", ["x", "s"], {})], {"x": (F, [1, 1]), "s": (I, [2])}, lambda r: {"x": floats(1, 1), "s": small(r, 2)},
                [({"x": floats(1, 1), "s": e}, {SHAPE}, "") for e in empty])
    yield Model("expand_empty", [("Expand", ["x", "s"], {})], {"x": (F, [1, 1]), "s": (I, [2])}, lambda r: {"x": floats(1, 1), "s": small(r, 2)},
                [({"x": floats(1, 1), "s": e}, {SHAPE}, "") for e in empty])
    yield Model("range", [("Range", ["a", "b", "c"], {})], {k: (I, []) for k in "abc"}, lambda r: {k: np.array(edge(r) or 1, np.int64) for k in "abc"},
                [({"a": np.int64(0), "b": np.int64(1 << 62), "c": np.int64(1)}, NOT, "")])
    yield Model("tile", [("Tile", ["x", "s"], {})], {"x": (F, [2, 3]), "s": (I, [2])}, lambda r: {"x": floats(2, 3), "s": small(r, 2)},
                [({"x": floats(2, 3), "s": BIG[1]}, NOT, "")])
    yield Model("expand", [("Expand", ["x", "s"], {})], {"x": (F, [3, 1]), "s": (I, [2])}, lambda r: {"x": floats(3, 1), "s": small(r, 2)},
                [({"x": floats(3, 1), "s": ints(3, 1 << 61)}, NOT, "")])
    yield Model("expand_any", [("Expand", ["x", "s"], {})], {"x": (F, ["n"]), "s": (I, [1])}, lambda r: {"x": floats(r.randint(1, 5)), "s": small(r, 1)},
                [({"x": floats(3), "s": ints(5)}, {SHAPE}, "")])
    yield Model("reshape", [("Reshape", ["x", "s"], {}), ("Relu", ["t0"], {})], {"x": (F, [4, 4]), "s": (I, [3])},
                lambda r: {"x": x44, "s": ints(*[r.choice([1, 2, 4, 8, 16, -1, 0, 1 << 31, 1 << 32, 1 << 62, 3]) for _ in range(3)])},
                [({"x": x44, "s": ints(1 << 32, 1 << 32, 16)}, {SHAPE}, "")])
    for steps in ((1, 1), (-1, 2)):
        yield Model(f"slice_{len(str(steps))}_{steps[1]}", [("Slice", ["x", "a", "b", "axes", "c"], {})], {"x": (F, [8, 8]), "a": (I, [2]), "b": (I, [2])},
                    lambda r: {"x": x88, "a": places(r, 2), "b": places(r, 2)}, fixed={"axes": ints(0, 1), "c": ints(*steps)})
    yield Model("slice_steps", [("Slice", ["x", "a", "b", "axes", "c"], {})], {"x": (F, [8, 8]), "a": (I, [2]), "b": (I, [2]), "c": (I, [2])},
                lambda r: {"x": x88, "a": places(r, 2), "b": places(r, 2), "c": ints(*[edge(r) or 1 for _ in range(2)])}, fixed={"axes": ints(0, 1)})
    for mode in ("constant", "edge", "reflect", "wrap"):
        yield Model(f"pad_{mode}", [("Pad", ["x", "s"], {"mode": mode})], {"x": (F, [4, 4]), "s": (I, [4])},
                    lambda r: {"x": x44, "s": ints(*[r.choice([0, 1, 2, 3, -1, -2, edge(r)]) for _ in range(4)])})
    yield Model("nonzero", [("NonZero", ["x"], {}), ("Transpose", ["t0"], {}), ("GatherND", ["x", "t1"], {})], {"x": (F, [4, 4])},
                lambda r: {"x": np.array([r.randint(-1, 1) for _ in range(16)], np.float32).reshape(4, 4)})
    yield Model("resize", [("Resize", ["x", "", "", "s"], {"mode": "nearest"})], {"x": (F, [1, 1, 4, 4]), "s": (I, [4])},
                lambda r: {"x": floats(1, 1, 4, 4), "s": ints(1, 1, *[r.choice([1, 2, 4, 9, edge(r)]) for _ in range(2)])})
    yield Model("upsample", [("Upsample", ["x", "s"], {"mode": "nearest"})], {"x": (F, [1, 1, 2, 2]), "s": (F, [4])},
                lambda r: {"x": floats(1, 1, 2, 2), "s": np.array([1, 1] + [r.choice([1, 2, 3, 1e9, 1e19, -1, 0, float("nan"), float("inf")]) for _ in range(2)], np.float32)},
                opset=9)
    yield Model("topk", [("TopK", ["x", "k"], {"axis": 0})], {"x": (F, [8]), "k": (I, [1])}, lambda r: {"x": floats(8), "k": edges(r, 1)}, outputs=2,
                cases=[({"x": floats(8), "k": ints(9)}, {SHAPE}, ""), ({"x": floats(8), "k": ints(1 << 62)}, NOT, "")])
    yield Model("one_hot", [("OneHot", ["i", "d", "v"], {})], {"i": (I, [4]), "d": (I, [1]), "v": (F, [2])},
                lambda r: {"i": edges(r, 4), "d": ints(r.choice([1, 2, 4, 7, 1 << 31, 1 << 61, 1 << 62, (1 << 63) - 1, -1, 0])), "v": floats(2)},
                [({"i": ints(0, 1, 2, 3), "d": ints(1 << 62), "v": floats(2)}, {ARGUMENT}, "depth")])
    yield Model("split", [("Split", ["x", "s"], {"axis": 0})], {"x": (F, [8]), "s": (I, [2])}, lambda r: {"x": floats(8), "s": small(r, 2, 8)}, outputs=2)
    yield Model("cumsum", [("CumSum", ["x", "a"], {})], {"x": (F, [4, 4]), "a": (I, [])}, lambda r: {"x": x44, "a": np.array(edge(r), np.int64)})
    yield Model("trilu", [("Trilu", ["x", "k"], {})], {"x": (F, [4, 4]), "k": (I, [])}, lambda r: {"x": x44, "k": np.array(edge(r), np.int64)})


def index_models():
    x = floats(4, 8)
    bad = [4, -5, 1000, 1 << 40, -(1 << 63), (1 << 63) - 1]
    near = lambda r, n: ints(*[r.randint(-5, 4) if r.random() < 0.9 else edge(r) for _ in range(n)])
    outside = lambda *shape: lambda f: bool(np.any((f["i"] < -4) | (f["i"] >= 4)))
    yield Model("gather", [("Gather", ["x", "i"], {})], {"x": (F, [4, 8]), "i": (I, [3])}, lambda r: {"x": x, "i": near(r, 3)},
                [({"x": x, "i": ints(0, b, 1)}, {ARGUMENT}, str(b)) for b in bad], refuse=outside())
    yield Model("gather_computed", [("Mul", ["i", "two"], {}), ("Sub", ["t0", "i"], {}), ("Gather", ["x", "t1"], {}), ("Relu", ["t2"], {})],
                {"x": (F, [4, 8]), "i": (I, [3])}, lambda r: {"x": x, "i": near(r, 3)}, [({"x": x, "i": ints(0, b, 1)}, {ARGUMENT}, str(b)) for b in bad[:4]],
                fixed={"two": ints(2)}, refuse=outside())
    yield Model("gather_elements", [("GatherElements", ["x", "i"], {})], {"x": (F, [4, 8]), "i": (I, [1, 2])}, lambda r: {"x": x, "i": near(r, 2).reshape(1, 2)},
                [({"x": x, "i": ints(0, b).reshape(1, 2)}, {ARGUMENT}, str(b)) for b in bad], refuse=outside())
    yield Model("gather_nd", [("GatherND", ["x", "i"], {})], {"x": (F, [4, 4]), "i": (I, [2, 2])}, lambda r: {"x": floats(4, 4), "i": near(r, 4).reshape(2, 2)},
                [({"x": floats(4, 4), "i": ints(0, 0, b, 0).reshape(2, 2)}, {ARGUMENT}, str(b)) for b in bad], refuse=outside())
    yield Model("scatter_elements", [("ScatterElements", ["x", "i", "u"], {})], {"x": (F, [4, 8]), "i": (I, [1, 2]), "u": (F, [1, 2])},
                lambda r: {"x": x, "i": ints(*r.sample(range(-4, 4), 2)).reshape(1, 2) if r.random() < 0.5 else near(r, 2).reshape(1, 2), "u": floats(1, 2)},
                [({"x": x, "i": ints(0, b).reshape(1, 2), "u": floats(1, 2)}, {ARGUMENT}, str(b)) for b in bad], refuse=outside())
    yield Model("scatter_nd", [("ScatterND", ["x", "i", "u"], {})], {"x": (F, [4, 8]), "i": (I, [1, 1]), "u": (F, [1, 8])},
                lambda r: {"x": x, "i": near(r, 1).reshape(1, 1), "u": floats(1, 8)}, [({"x": x, "i": ints(b).reshape(1, 1), "u": floats(1, 8)}, {ARGUMENT}, str(b)) for b in bad],
                refuse=outside())
    yield Model("gather_free", [("Gather", ["x", "i"], {})], {"x": (F, ["n", 2])}, lambda r: {"x": floats(r.randint(1, 6), 2)},
                [({"x": floats(3, 2)}, {SHAPE}, "n = 3"), ({"x": floats(4, 2)}, {OK}, "")], fixed={"i": ints(0, 3)})


def size_models():
    image = lambda h, w: {"x": floats(1, 2, h, w)}
    free = {"x": (F, [1, 2, "h", "w"])}
    draw = lambda r: image(r.randint(1, 6), r.randint(1, 6))
    too_small = [(image(1, 4), {SHAPE}, "h = 1"), (image(4, 1), {SHAPE}, "w = 1")]
    for kind in ("MaxPool", "AveragePool", "LpPool"):
        yield Model(kind.lower(), [(kind, ["x"], {"kernel_shape": [2, 2], "strides": [2, 2]})], free, draw, too_small)
    yield Model("max_pool_ceil", [("MaxPool", ["x"], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1})], free, draw, [(image(1, 4), {SHAPE}, "h = 1")])
    yield Model("max_pool_places", [("MaxPool", ["x"], {"kernel_shape": [2, 2]})], free, draw, too_small, outputs=2)
    yield Model("conv", [("Conv", ["x", "w"], {})], free, draw, too_small, fixed={"w": floats(3, 2, 2, 2)})
    yield Model("pools_in_a_row", [("MaxPool", ["x"], {"kernel_shape": [2, 2], "strides": [2, 2]}), ("Conv", ["t0", "w"], {}), ("Relu", ["t1"], {})], free, draw,
                [(image(2, 6), {SHAPE}, "h = 2")], fixed={"w": floats(3, 2, 2, 2)})
    up = [("MaxPool", ["x"], {"kernel_shape": [2, 2], "strides": [2, 2]}), ("Resize", ["t0", "", "s"], {"mode": "nearest"})]
    odd = [(image(3, 4), {SHAPE}, "h = 3"), (image(4, 5), {SHAPE}, "w = 5"), (image(4, 6), {OK}, "")]
    scales = {"s": np.array([1, 1, 2, 2], np.float32)}
    yield Model("pyramid_add", [*up, ("Add", ["t1", "x"], {})], free, draw, odd, fixed=scales)
    yield Model("pyramid_concat", [*up, ("Concat", ["t1", "x"], {"axis": 1}), ("Relu", ["t2"], {})], free, draw, odd, fixed=scales)
    yield Model("pyramid_where", [*up, ("Greater", ["x", "zero"], {}), ("Where", ["t2", "t1", "x"], {})], free, draw, odd, fixed={**scales, "zero": np.float32(0)})
    yield Model("split_fixed", [("Split", ["x", "s"], {"axis": 0})], {"x": (F, ["n"])}, lambda r: {"x": floats(r.randint(1, 6))},
                [({"x": floats(n)}, {SHAPE} if n != 5 else {OK}, "") for n in (1, 3, 4, 5, 6)], fixed={"s": ints(2, 3)}, outputs=2)
    yield Model("crop", [("Pad", ["x", "s"], {})], {"x": (F, ["n"])}, lambda r: {"x": floats(r.randint(1, 6))}, [({"x": floats(3)}, {SHAPE}, "n = 3")], fixed={"s": ints(-2, -2)})
    yield Model("slice_fixed", [("Slice", ["x", "a", "b"], {})], {"x": (F, ["n"])}, lambda r: {"x": floats(r.randint(1, 9))}, fixed={"a": ints(2), "b": ints(5)})
    yield Model("topk_fixed", [("TopK", ["x", "k"], {})], {"x": (F, ["n"])}, lambda r: {"x": floats(r.randint(1, 9))}, [({"x": floats(3)}, {SHAPE}, "")], fixed={"k": ints(4)},
                outputs=2)


def bind(value):
    return value.astype(np.float32) if value.dtype == np.float64 else value


def check(library, model, session, feeds, wanted, word, r, say):
    say(f"{model.name} {({k: v.tolist() if v.size < 20 else list(v.shape) for k, v in feeds.items()})}")
    for given in (None, 64):
        status, text, results = library.run(feeds, given, at_end=r.random() < 0.5, own_arena=r.random() < 0.5)
        offered = status == SIZE and given is not None
        if wanted and status not in wanted and not offered:
            return f"{status} ({text}), expected {' or '.join(sorted(wanted))}"
        if word and status != OK and not offered and word not in text:
            return f"the text '{text}' does not say '{word}'"
        if status != OK and not text:
            return f"{status} without a text"
        if not wanted and model.refuse and not offered and (status != OK) != model.refuse(feeds):
            return f"{status} ({text})"
        if status == OK and sum(a.nbytes for a in results) < SMALL and not wanted:
            try:
                want = session.run(None, feeds)
            except Exception:   # onnxruntime refuses more
                continue
            for got, expected in zip(results, want):
                if got.shape != expected.shape or not np.allclose(got, expected, 1e-5, 1e-5, equal_nan=True):
                    return f"{got.shape} {got.ravel()[:8]}, onnxruntime {expected.shape} {expected.ravel()[:8]}"
    return None


def run_model(path, model, runs, seed, write):
    """In a process of its own: writes a line a case before it runs, and the reason of a failure."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST + (1 << 32), MOST + (1 << 32)))
    say = lambda text: os.write(write, (text + "\n").encode())
    library, r = Library(path, model.name), random.Random(f"{seed} {model.name}")
    session = session_of(model)
    todo = [(feeds, wanted, word) for feeds, wanted, word in model.cases] + [(model.draw(r), None, "") for _ in range(runs)]
    for feeds, wanted, word in todo:
        problem = check(library, model, session, {k: np.asarray(v) for k, v in feeds.items()}, wanted, word, r, say)
        if problem:
            say("FAILED " + problem)
            return 1
    edge_symbols = [1, 2, 3, 1 << 31, 1 << 40, 1 << 58, 1 << 60, 1 << 62, (1 << 63) - 1]
    for _ in range(runs if library.api.symbol_count else 0):   # nothing is run: sizes alone
        symbols = [r.choice(edge_symbols) for _ in range(library.api.symbol_count)]
        say(f"{model.name} created for {symbols}")
        status, context = library.create(symbols)
        if status == OK:
            library.api.destroy(context)
        elif status not in NOT:
            say("FAILED " + status)
            return 1
    return 0


def in_child(path, model, runs, seed):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        code = 2
        try:
            signal.alarm(60)
            code = run_model(path, model, runs, seed, write)
        except BaseException as error:   # the parent tells
            os.write(write, f"FAILED {type(error).__name__}: {error}\n".encode())
        os._exit(code)
    os.close(write)
    lines = os.fdopen(read).read().splitlines()
    _, status = os.waitpid(child, 0)
    if status == 0:
        return None
    how = f"signal {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else lines.pop() if lines and lines[-1].startswith("FAILED") else "failed"
    return f"{how} at: {lines[-1] if lines else 'the start'}"


def refused(args, work):
    """Constant indices that lie outside are errors while compiling, that name the node."""
    bad, x = [4, -5, 1000, 1 << 40], floats(4, 8)
    problems = []
    for op, extra in (("Gather", []), ("GatherElements", []), ("GatherND", []), ("ScatterElements", ["u"]), ("ScatterND", ["u"])):
        for index in bad:
            i = ints(index) if op == "Gather" else ints(index).reshape(1, 1)
            u = floats(1, 8) if op == "ScatterND" else floats(1, 1)
            model = Model("constant_index", [(op, ["x", "i"] + extra, {})], {"x": (F, [4, 8])}, None, types=[(F, 2)], fixed={"i": i, "u": u} if extra else {"i": i})
            path = work / "constant_index.onnx"
            onnx.save(model.proto(), path)
            done = subprocess.run([args.tilewright, "compile", path, "-t", "host", "-o", work / "constant_index.so"], capture_output=True, text=True)
            if done.returncode == 0 or str(index) not in done.stderr or op not in done.stderr:
                problems.append(f"{op} with the constant index {index}: exit status {done.returncode}, {done.stderr.strip()[:200]}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", type=int, default=60, help="of each model, at random")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    problems, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        if not args.only:
            problems += refused(args, work)
        for model in [*data_models(), *index_models(), *size_models()]:
            if args.only and args.only != model.name:
                continue
            find_types(model)
            onnx.save(model.proto(), work / f"{model.name}.onnx")
            done = subprocess.run([args.tilewright, "compile", work / f"{model.name}.onnx", "-t", "host", "-o", work / f"{model.name}.so"], capture_output=True, text=True)
            if done.returncode != 0:
                problems.append(f"{model.name} does not compile: {done.stderr.strip()}")
                continue
            problem = in_child(work / f"{model.name}.so", model, args.runs, args.seed)
            count += 1
            if problem:
                problems.append(f"{model.name}: {problem}")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{count} models, {args.runs} runs of each: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
