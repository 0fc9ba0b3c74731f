"""Operators that move elements, make them, or search among them."""
import functools

import definitions
import extremes
import numpy as np
from draw import TYPES, Const, is_float, numpy_type, operators
from onnx import helper, numpy_helper

I64 = np.int64


@operators("Concat")
def concat(d):
    shape, count = d.shape(1, 4), d.between(1, 4)
    axis = d.axis(len(shape))
    parts = []
    for _ in range(count):
        own = list(shape)
        own[axis] = d.between(0 if d.chance(0.1) else 1, 4)
        parts.append(d.tensor(0, own))
    return d.case(*parts, axis=axis)


@operators("Split")
def split(d):
    shape = list(d.shape(1, 4))
    axis, count = d.axis(len(shape)), d.between(1, 4)
    sizes = [d.between(1, 3) for _ in range(count)]
    if d.has("num_outputs") and d.chance(0.5):   # the last part may be smaller
        part = d.between(1, 3)
        shape[axis] = part * (count - 1) + d.between(1, part)
        if -(-shape[axis] // count) * (count - 1) < shape[axis]:
            return d.case(d.tensor(0, shape), outputs=count, axis=axis, num_outputs=count)
    equal = d.chance(0.3) and not d.has("num_outputs")
    shape[axis] = count * 2 if equal else sum(sizes)
    if d.version < 13:
        return d.case(d.tensor(0, shape), outputs=count, axis=axis, split=None if equal else sizes)
    return d.case(d.tensor(0, shape), None if equal else Const(d.ints(sizes)), outputs=count, axis=axis)


@operators("Transpose")
def transpose(d):
    shape = d.shape(0, 5, zero=True)
    return d.case(d.tensor(0, shape), perm=d.maybe([int(a) for a in d.rng.permutation(len(shape))]) if shape else None)


@operators("Reshape")
def reshape(d):
    shape = d.shape(0, 4)
    count = int(np.prod(shape))
    new = []
    while count > 1 and len(new) < 4:
        factor = d.among([f for f in range(1, count + 1) if count % f == 0])
        new.append(factor)
        count //= factor
    new += [count] if count > 1 else []
    new.insert(d.pick(len(new) + 1), 1)
    if d.chance(0.3):
        new[d.pick(len(new))] = -1
    if d.chance(0.2) and shape and new[0] == shape[0]:
        new[0] = 0
    return d.case(d.tensor(0, shape), Const(d.ints(new)))


@operators("Expand")
def expand(d):
    a, b = d.broadcast(2, zero=True)
    return d.case(d.tensor(0, a), Const(d.ints(list(b))))


@operators("Tile")
def tile(d):
    shape = d.shape(1, 4, most=4)
    return d.case(d.tensor(0, shape), Const(d.ints([d.among([1, 1, 2, 3, 0] if d.chance(0.1) else [1, 1, 2, 3]) for _ in shape])))


@operators("Squeeze")
def squeeze(d):
    shape = [d.among([1, 1, 2, 3]) for _ in range(d.between(1, 5))]
    ones = [i for i, e in enumerate(shape) if e == 1]
    axes = [int(a) - len(shape) * (d.pick(2) if d.version > 1 else 0) for a in d.rng.permutation(ones)[:d.between(1, max(1, len(ones)))]]
    axes = axes if axes and d.chance(0.7) else None
    if d.version < 13:
        return d.case(d.tensor(0, shape), axes=axes)
    return d.case(d.tensor(0, shape), None if axes is None else Const(d.ints(axes)))


@operators("Unsqueeze")
def unsqueeze(d):
    shape = d.shape(0, 3)
    count = d.between(1, 2)
    rank = len(shape) + count
    axes = [int(a) - rank * (d.pick(2) if d.version > 1 else 0) for a in d.rng.permutation(rank)[:count]]
    if d.version < 13:
        return d.case(d.tensor(0, shape), axes=axes)
    return d.case(d.tensor(0, shape), Const(d.ints(axes)))


@operators("Flatten")
def flatten(d):
    shape = d.shape(0, 5)
    return d.case(d.tensor(0, shape), axis=d.maybe(d.between(0 if d.version < 11 else -len(shape), len(shape))) if shape else 0)


@operators("Slice")
def slicing(d):
    shape = d.shape(1, 4)
    axes = d.axes(len(shape), least=1) if d.version >= 10 else sorted(a % len(shape) for a in d.axes(len(shape), least=1))
    starts, ends, steps = [], [], []
    for axis in axes:
        extent = shape[axis]
        step = d.among([1, 1, 2, 3, -1, -2]) if d.version >= 10 else 1
        far = d.chance(0.3)
        starts.append(d.among([-2 ** 63 + 1, 2 ** 63 - 1, -100, 100]) if far else d.between(-extent, extent))
        ends.append(d.among([-2 ** 63, 2 ** 63 - 1, -100, 100, -2 ** 31]) if d.chance(0.3) else d.between(-extent - 1, extent + 1))
        steps.append(step)
    everything = axes == list(range(len(axes)))
    if d.version < 10:
        return d.case(d.tensor(0, shape), starts=starts, ends=ends, axes=None if everything and d.chance(0.5) else axes)
    steps_given = any(s != 1 for s in steps) or d.chance(0.5)
    named = steps_given or not everything or d.chance(0.5)
    return d.case(d.tensor(0, shape), *[Const(d.ints(v)) for v in (starts, ends, *([axes] if named else []), *([steps] if steps_given else []))])


@operators("Pad")
def pad(d):
    shape = d.shape(1, 4)
    mode = d.among([m for m in ("constant", "reflect", "edge", "wrap") if m != "wrap" or d.version >= 19])
    axes = [a for a in d.axes(len(shape), least=1)] if d.version >= 18 and d.chance(0.4) else None
    named = range(len(shape)) if axes is None else axes
    most = [shape[a] - 1 if mode == "reflect" else shape[a] if mode == "wrap" else 3 for a in named]
    pads = [d.between(0, m) for m in most * 2]
    for i, a in enumerate(named):   # elements taken away
        if d.chance(0.2) and shape[a] > 2 and mode in ("constant", "edge"):
            pads[i] = -1
    name = d.type()
    if d.version < 11:
        return d.case(d.tensor(0, shape), mode=d.maybe(mode) if mode == "constant" else mode, pads=pads, value=d.maybe(d.real()))
    value = d.maybe(Const(d.values(name, (), low=0))) if mode == "constant" else None
    last = None if axes is None else Const(d.ints(axes))
    return d.case(d.tensor(0, shape), Const(d.ints(pads)), value, last, mode=d.maybe(mode) if mode == "constant" else mode)


@operators("CenterCropPad")
def center_crop_pad(d):
    shape = d.shape(1, 4)
    axes = d.axes(len(shape), least=1) if d.chance(0.5) else None
    count = len(shape) if axes is None else len(axes)
    return d.case(d.tensor(0, shape), Const(d.ints([d.between(1, 7) for _ in range(count)])), axes=axes).defined(definitions.center_crop_pad)


@operators("DepthToSpace SpaceToDepth")
def blocks(d):
    b, (n, c, h, w) = d.between(1, 3), (d.between(1, 2), d.between(1, 3), d.between(1, 4), d.between(1, 4))
    mode = d.maybe(d.among(["DCR", "CRD"])) if d.has("mode") else None
    return d.case(d.tensor(0, (n, c * b * b, h, w) if d.op == "DepthToSpace" else (n, c, h * b, w * b)), blocksize=b, mode=mode)


@operators("Gather")
def gather(d):
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    extent = shape[axis]
    low = -extent if d.version >= 11 else 0
    return d.case(d.tensor(0, shape), d.rng.integers(low, extent, d.shape(0, 2)).astype(numpy_type(d.type(1))), axis=d.maybe(axis) if axis == 0 else axis)


@operators("GatherElements")
def gather_elements(d):
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    own = [d.between(1, e) for e in shape]
    own[axis] = d.between(1, 4)
    return d.case(d.tensor(0, shape), d.rng.integers(-shape[axis], shape[axis], own).astype(numpy_type(d.type(1))), axis=axis)


@operators("GatherND")
def gather_nd(d):
    shape = d.shape(1, 4)
    batch = d.between(0, len(shape) - 1) if d.version >= 12 else 0
    depth = d.between(1, len(shape) - batch)
    own = list(shape[:batch]) + list(d.shape(0 if batch else 1, 2, most=3))
    index = np.stack([d.rng.integers(-e, e, own) for e in shape[batch:batch + depth]], -1)
    return d.case(d.tensor(0, shape), index.astype(I64), batch_dims=batch if d.version >= 12 else None)


def reduction_of(d):
    return d.maybe(d.among(["none", "add", "mul"] + ["max", "min"] * (d.version >= 18))) if d.has("reduction") else None


@operators("Scatter ScatterElements")
def scatter_elements(d):
    shape = d.shape(1, 3)
    axis = d.axis(len(shape))
    reduction = reduction_of(d)
    own = [d.between(1, e) for e in shape]
    extent = shape[axis]
    if reduction in (None, "none"):   # without a reduction an element is written once
        index = np.apply_along_axis(lambda line: d.rng.permutation(extent)[:len(line)], axis, np.zeros(own))
    else:
        own[axis] = d.between(1, extent + 2)
        index = d.rng.integers(0, extent, own)
    index = index - extent * d.rng.integers(0, 2 if d.version >= 11 else 1, index.shape)
    return d.case(d.tensor(0, shape, low=-2, high=3), index.astype(numpy_type(d.type(1))), d.tensor(0, own, low=-2, high=3), axis=axis, reduction=reduction)


@operators("ScatterND")
def scatter_nd(d):
    shape = d.shape(1, 4)
    depth = d.between(1, len(shape))
    reduction = reduction_of(d)
    places = np.stack(np.meshgrid(*[np.arange(e) for e in shape[:depth]], indexing="ij"), -1).reshape(-1, depth)
    count = d.between(1, len(places))
    chosen = d.rng.permutation(len(places))[:count] if reduction in (None, "none") else d.rng.integers(0, len(places), count)
    index = places[chosen]
    index = index - np.array(shape[:depth]) * d.rng.integers(0, 2, index.shape)
    return d.case(d.tensor(0, shape, low=-2, high=3), index.astype(I64), d.tensor(0, (count, *shape[depth:]), low=-2, high=3), reduction=reduction)


@operators("TensorScatter")
def tensor_scatter(d):
    shape = [d.between(1, 3), *d.shape(1, 3, most=5)]
    axis = d.between(1, len(shape) - 1)
    mode = d.among(["linear", "circular"])
    update = list(shape)
    update[axis] = d.between(1, shape[axis])
    most = shape[axis] - update[axis] if mode == "linear" else shape[axis] - 1
    at = d.rng.integers(0, most + 1, shape[0]).astype(I64)
    return d.case(d.tensor(0, shape), d.tensor(1, update), d.maybe(at, 0.8), axis=axis - len(shape) * d.pick(2), mode=d.maybe(mode) if mode == "linear" else mode)


@operators("OneHot")
def one_hot(d):
    depth, indices = d.between(1, 6), d.shape(0, 3)
    name = d.type(0)
    low = 0 if name.startswith("u") or d.version < 11 else -depth - 2
    index = d.values(name, indices, low=low, high=depth + 2, special=False, whole=True)
    axis = d.maybe(d.between(-len(indices) - 1, len(indices)))
    sized = d.values(d.type(1, only=["int64", "int32", "float", "int8", "uint8"]), (), low=depth, high=depth, special=False, whole=True)
    return d.case(index, Const(sized), d.tensor(2, (2,)), axis=axis)


@operators("EyeLike")
def eye_like(d):
    kind = d.maybe(d.type(0, output=True))
    return d.case(d.tensor(0, (d.between(1, 6), d.between(1, 6))), dtype=TYPES[kind] if kind else None, k=d.maybe(d.between(-4, 4)))


@operators("Trilu")
def trilu(d):
    return d.case(d.tensor(0, d.shape(2, 4, zero=True)), d.maybe(Const(np.array(d.between(-5, 5)))), upper=d.maybe(d.pick(2)))


@operators("ReverseSequence")
def reverse_sequence(d):
    shape = d.shape(2, 4)
    batch = d.pick(2)
    lengths = d.rng.integers(1, shape[1 - batch] + 1, shape[batch]).astype(I64)
    return d.case(d.tensor(0, shape), lengths, batch_axis=batch, time_axis=1 - batch)


@operators("Compress")
def compress(d):
    shape = d.shape(1, 3)
    axis = d.maybe(d.axis(len(shape)))
    extent = int(np.prod(shape)) if axis is None else shape[axis]
    return d.case(d.tensor(0, shape), d.rng.integers(0, 2, d.between(1, extent)).astype(bool), axis=axis)


@operators("NonZero")
def nonzero(d):
    return d.case(d.tensor(0, d.shape(1, 4), low=-1, high=1, whole=True))


@operators("Unique")
def unique(d):
    shape = d.shape(1, 3)
    return d.case(d.tensor(0, shape, low=-2, high=2, whole=True), outputs=d.between(1, 4), axis=d.maybe(d.axis(len(shape))), sorted=d.maybe(d.pick(2)))


@operators("TopK")
def top_k(d):
    shape = d.shape(1, 4)
    axis = d.axis(len(shape)) if d.version >= 11 else d.between(-1, len(shape) - 1)
    k = d.between(1, shape[axis])
    x = d.tensor(0, shape, low=-3, high=3, whole=d.chance(0.5))
    if d.version < 10:
        return d.case(x, outputs=2, axis=axis, k=k).defined(extremes.top_k)
    case = d.case(x, Const(d.ints([k])), outputs=2, axis=axis, largest=d.maybe(d.pick(2)) if d.has("largest") else None, sorted=d.maybe(1) if d.has("sorted") else None)
    return case.defined(lambda x, k, sorted=1, **rest: extremes.top_k(x, int(k[0]), **rest))


@operators("ArgMax ArgMin")
def arg_extreme(d):
    shape = d.shape(1, 4)
    axis = d.axis(len(shape)) if d.version >= 11 else d.between(0, len(shape) - 1)
    case = d.case(d.tensor(0, shape, low=-2, high=2, whole=True), axis=d.maybe(axis), keepdims=d.maybe(d.pick(2)),
                  select_last_index=d.maybe(d.pick(2)) if d.has("select_last_index") else None)
    return case.defined(functools.partial(extremes.place, d.op))


@operators("CumSum CumProd")
def cumulate(d):
    shape = d.shape(1, 4)
    axis = np.array(d.axis(len(shape))).astype(numpy_type(d.type(1)))
    return d.plain().case(d.tensor(0, shape, low=-2, high=2), Const(axis), exclusive=d.maybe(d.pick(2)), reverse=d.maybe(d.pick(2)))


@operators("Shape")
def shape_of(d):
    shape = d.shape(0, 5, zero=True)
    ends = {name: d.maybe(d.between(-len(shape) - 1, len(shape) + 1)) for name in ("start", "end") if d.has(name)}
    return d.case(d.tensor(0, shape), **ends)


@operators("Size")
def size_of(d):
    return d.case(d.tensor(0, d.shape(0, 5, zero=True)))


@operators("Constant")
def constant(d):
    kinds = [k for k in d.schema.attributes if k != "sparse_value"]
    kind = d.among(kinds)
    value = {"value": lambda: numpy_helper.from_array(d.values(d.type(0, output=True), d.shape())), "value_float": d.real, "value_int": lambda: d.between(-9, 9),
             "value_floats": lambda: [d.real() for _ in range(3)], "value_ints": lambda: [d.between(-9, 9) for _ in range(3)],
             "value_string": lambda: "text", "value_strings": lambda: ["a", "", "été"]}[kind]()
    return d.case(**{kind: value})


@operators("ConstantOfShape")
def constant_of_shape(d):
    kind = d.type(0, output=True)
    value = helper.make_tensor("value", TYPES[kind], [1], d.values(kind, (1,)).astype(np.float64 if is_float(kind) else I64)) if kind != "string" else None
    return d.case(Const(d.ints(list(d.shape(0, 4, zero=True)))), value=d.maybe(value))


@operators("Range")
def range_of(d):
    name = d.type()
    start, delta, count = d.between(-4, 4), d.among([1, 2, 3, -1, -2]), d.between(0, 8)
    step = delta / 2 if is_float(name) else delta
    kind = (Const if d.chance(0.6) else np.asarray)
    return d.case(*[kind(np.asarray(v).astype(numpy_type(name))) for v in (start, start + step * count, step)], stash_type=d.maybe(1) if d.has("stash_type") else None)


@operators("HannWindow HammingWindow BlackmanWindow")
def window(d):
    kinds = ["float", "double", "float16"]
    return d.case(Const(np.array(d.between(2, 12)).astype(numpy_type(d.type(0)))), periodic=d.maybe(d.pick(2)), output_datatype=d.maybe(TYPES[d.among(kinds)], 0.4))


@operators("MelWeightMatrix")
def mel_weights(d):
    whole, real = numpy_type(d.type(0)), numpy_type(d.type(3, only=["float", "double", "float16"]))
    values = [(d.between(2, 12), whole), (d.among([16, 32, 64]), whole), (d.among([1000, 8000, 16000]), whole), (d.among([0, 20, 100]), real), (d.among([300, 450]), real)]
    return d.case(*[Const(np.array(v).astype(t)) for v, t in values], output_datatype=d.maybe(TYPES[d.among(["float", "double"])], 0.4))
