"""Nodes that know their results before the run: they fold, and what they make is drawn on as other values are."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from graph import F32, I64


def of_weights(g):
    """A constant that another constant is made of."""
    rows, columns = 1 + g.pick(5), 1 + g.pick(5)
    w = g.numbers(rows, columns)
    how = g.pick(4)
    if how == 0:
        g.add("Transpose", [w], [(F32, (columns, rows))], exact=True, perm=[1, 0])
    elif how == 1:
        g.add("Mul", [w, g.numbers(columns)], [(F32, (rows, columns))])
    elif how == 2:
        g.add("Reshape", [w, g.ints([-1])], [(F32, (rows * columns,))], exact=True)
    else:
        y = g.add("Cast", [w], [(np.dtype(np.float64), (rows, columns))], exact=True, to=TensorProto.DOUBLE)
        g.add("Cast", [y.name], [(F32, (rows, columns))], exact=True, to=TensorProto.FLOAT)


def constant(g):
    """A Constant node instead of an initializer."""
    shape = [1 + g.pick(4) for _ in range(g.pick(3))]
    value = g.draw(F32, shape, least=1)
    g.add("Constant", [], [(F32, shape)], exact=True, value=numpy_helper.from_array(np.asarray(value), "value"))


def filled(g):
    shape = [1 + g.pick(4) for _ in range(1 + g.pick(3))]
    value = helper.make_tensor("value", TensorProto.FLOAT, [1], [g.among([0.0, 1.0, -0.5])])
    g.add("ConstantOfShape", [g.ints(shape)], [(F32, shape)], exact=True, value=value)


def counted(g):
    """As many numbers as another value has rows: a position of each."""
    x = g.one(None, 1)
    if not x:
        return
    axis = g.pick(len(x.shape))
    extent = x.shape[axis]
    y = g.add("Shape", [x.name], [(I64, (len(x.shape),))], exact=True)
    y = g.add("Gather", [y.name, g.ints(axis)], [(I64, ())], exact=True, axis=0)
    y = g.add("Range", [g.ints(0), y.name, g.ints(1)], [(I64, (extent,))], exact=True)
    if x.dtype == F32 and axis == len(x.shape) - 1:
        y = g.add("Cast", [y.name], [(F32, (extent,))], exact=True, to=TensorProto.FLOAT)
        g.add("Add", [x.name, y.name], [(F32, x.shape)])


def reshaped_by_shape(g):
    """As exporters write a flattening: the new shape is put together of the old one's elements."""
    x = g.one(None, 2)
    if not x:
        return
    y = g.add("Shape", [x.name], [(I64, (len(x.shape),))], exact=True)
    y = g.add("Slice", [y.name, g.ints([0]), g.ints([1])], [(I64, (1,))], exact=True)
    y = g.add("Concat", [y.name, g.ints([-1])], [(I64, (2,))], exact=True, axis=0)
    rest = x.shape[1]
    for d in x.shape[2:]:
        rest = rest * d
    g.add("Reshape", [x.name, y.name], [(x.dtype, (x.shape[0], rest))], exact=x.exact)


FAMILIES = [of_weights, constant, filled, counted, reshaped_by_shape]
