"""Families for data with NaN, infinities, zeros with a sign and subnormal numbers: operators whose results these decide. A computed
zero may have either sign, and onnxruntime loses a NaN in some reductions."""
import numpy as np
from onnx import TensorProto

import shapes
from graph import BOOL, F16, F32, F64

UNARY = ["Abs", "Neg", "Tanh", "Sigmoid", "Relu", "Erf", "Atan", "Sqrt", "Exp", "Identity", "LeakyRelu"]
OF_EXACT = ["Reciprocal", "Floor", "Ceil", "Round", "Sign"]
SPECIAL_SAFE = {"transpose", "reshape", "flatten", "unsqueeze", "squeeze", "concat", "slice_", "gather", "gather_elements", "gather_nd", "expand", "split",
                "tile", "scatter_nd", "trilu"}


def unary(g):
    x = g.one((F32, F16, F64))
    if x:
        op = g.among(UNARY + OF_EXACT if x.exact else UNARY)
        g.add(op, [x.name], [(x.dtype, x.shape)], exact=x.exact and op in ("Neg", "Identity"))


def binary(g):
    x = g.one((F32, F16, F64))
    if x:
        op = g.among(["Add", "Sub", "Mul", "Div", "Max", "Min"])
        others = [v for v in g.values if v.dtype == x.dtype and v.shape == x.shape and (op != "Div" or v.exact)]
        other = g.among(others).name if others and g.pick(2) else g.numbers(dtype=x.dtype)
        g.add(op, [x.name, other], [(x.dtype, x.shape)])


def asked(g):
    x = g.one((F32, F16, F64))
    if not x:
        return
    op = g.among(["IsNaN", "IsInf", "Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"])
    others = [v for v in g.inputs if v.dtype == x.dtype and v.shape == x.shape]
    if op in ("IsNaN", "IsInf"):
        g.add(op, [x.name], [(BOOL, x.shape)], exact=True)
    elif x in g.inputs and others:   # what is computed may lie on either side
        g.add(op, [x.name, g.among(others).name], [(BOOL, x.shape)], exact=True)


def where(g):
    c, x = g.one((BOOL,)), g.one((F32,))
    if c and x and c.shape == x.shape:
        g.add("Where", [c.name, x.name, g.numbers()], [(F32, x.shape)])


def clip(g):
    x = g.one((F32,))
    if x:
        g.add("Clip", [x.name, g.weight(np.float32(-0.5)), g.weight(np.float32(0.75))], [(F32, x.shape)])


def cast(g):
    x = g.one((F32, F16))
    if x:
        g.add("Cast", [x.name], [(F64, x.shape)], to=TensorProto.DOUBLE)


def reduce(g):
    x = g.one((F32,), 1)
    if x:
        axis = g.pick(len(x.shape))
        shape = [1 if i == axis else d for i, d in enumerate(x.shape)]
        g.add(g.among(["ReduceSum", "ReduceMean", "ReduceL1"]), [x.name, g.ints([axis])], [(F32, shape)], keepdims=1)


def product(g):
    x = g.one((F32,), 2)
    if x:
        columns = 1 + g.pick(9)
        g.add("MatMul", [x.name, g.numbers(x.shape[-1], columns)], [(F32, (*x.shape[:-1], columns))])


FAMILIES = [unary, unary, unary, binary, binary, asked, where, clip, cast, reduce, product, *(f for f in shapes.FAMILIES if f.__name__ in SPECIAL_SAFE)]
