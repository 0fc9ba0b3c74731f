"""Operators that move, take and put elements."""
import math

import numpy as np

from graph import F32, F64, I64, is_free


def transpose(g):
    x = g.one(None, 1)
    if x:
        perm = [int(i) for i in g.rng.permutation(len(x.shape))]
        g.add("Transpose", [x.name], [(x.dtype, [x.shape[i] for i in perm])], exact=x.exact, perm=perm)


def reshape(g):
    """Into divisors of the number of elements; with a free extent, some axes are joined into one."""
    x = g.one()
    if not x:
        return
    if any(is_free(d) for d in x.shape):
        first = g.pick(len(x.shape))
        last = first + 1 + g.pick(len(x.shape) - first)
        shape = x.shape[:first] + (math.prod(x.shape[first:last]),) + x.shape[last:]
        wanted = [0] * first + [-1] + list(x.shape[last:])
        g.add("Reshape", [x.name, g.ints(wanted)], [(x.dtype, shape)], exact=x.exact)
        return
    left, shape = math.prod(x.shape), []
    while left > 1 and len(shape) < 3:
        shape.append(g.among([d for d in range(1, left + 1) if left % d == 0]))
        left //= shape[-1]
    shape = shape + [left] if left > 1 or g.pick(2) else shape
    wanted = list(shape)
    if wanted and g.pick(2):
        wanted[g.pick(len(wanted))] = -1
    g.add("Reshape", [x.name, g.ints(wanted)], [(x.dtype, shape)], exact=x.exact)


def flatten(g):
    x = g.one(None, 1)
    if x:
        axis = g.pick(len(x.shape) + 1)
        g.add("Flatten", [x.name], [(x.dtype, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))], exact=x.exact, axis=axis)


def unsqueeze(g):
    x = g.one(None, 0, 4)
    if x:
        axis = g.pick(len(x.shape) + 1)
        g.add("Unsqueeze", [x.name, g.ints([axis])], [(x.dtype, x.shape[:axis] + (1,) + x.shape[axis:])], exact=x.exact)


def squeeze(g):
    x = g.one(None, 1)
    axes = [i for i, d in enumerate(x.shape) if d == 1] if x else []
    if axes:
        axis = g.among(axes)
        g.add("Squeeze", [x.name, g.ints([axis])], [(x.dtype, x.shape[:axis] + x.shape[axis + 1:])], exact=x.exact)


def concat(g):
    x = g.one(None, 1)
    if not x:
        return
    axis = g.pick(len(x.shape))
    parts = [v for v in g.values if v.dtype == x.dtype and len(v.shape) == len(x.shape)
             and all(i == axis or a == b for i, (a, b) in enumerate(zip(v.shape, x.shape)))]
    chosen = [x] + [g.among(parts) for _ in range(1 + g.pick(2))]
    shape = list(x.shape)
    shape[axis] = sum(v.shape[axis] for v in chosen)
    g.add("Concat", [v.name for v in chosen], [(x.dtype, shape)], exact=all(v.exact for v in chosen), axis=axis)


def slice_(g):
    x = g.one(None, 1)
    if not x:
        return
    axis, step = g.pick(len(x.shape)), g.among([1, 1, 2, -1])
    extent = int(x.shape[axis])
    start, end = sorted((g.pick(extent), 1 + g.pick(extent)))
    end = max(end, start + 1)
    given = (start, end, step) if step > 0 else (end - 1, start - 1 if start else -1000, step)
    shape = list(x.shape)
    shape[axis] = len(range(start, end, abs(step)))
    if is_free(x.shape[axis]) and step == 1 and g.pick(2):   # to the end, wherever it is
        given, shape[axis] = (start, np.iinfo(np.int64).max, 1), x.shape[axis] - start
    g.add("Slice", [x.name, *(g.ints([v]) for v in (given[0], given[1], axis, given[2]))], [(x.dtype, shape)], exact=x.exact)


def gather(g):
    x = g.one(None, 1)
    if not x:
        return
    axis = g.pick(len(x.shape))
    shape = [1 + g.pick(3) for _ in range(g.pick(3))]
    indices = g.rng.integers(-int(x.shape[axis]), int(x.shape[axis]), shape).astype(np.int64)
    g.add("Gather", [x.name, g.weight(np.asarray(indices))], [(x.dtype, x.shape[:axis] + tuple(shape) + x.shape[axis + 1:])],
          exact=x.exact, axis=axis)


def gather_elements(g):
    x = g.one(None, 1)
    if x:
        axis = g.pick(len(x.shape))
        shape = [1 + g.pick(int(d)) for d in x.shape]
        indices = g.rng.integers(-int(x.shape[axis]), int(x.shape[axis]), shape).astype(np.int64)
        g.add("GatherElements", [x.name, g.weight(indices)], [(x.dtype, shape)], exact=x.exact, axis=axis)


def gather_nd(g):
    x = g.one(None, 1)
    if x:
        depth, rows = 1 + g.pick(len(x.shape)), 1 + g.pick(3)
        indices = np.stack([g.rng.integers(0, int(d), rows) for d in x.shape[:depth]], -1).astype(np.int64)
        g.add("GatherND", [x.name, g.weight(indices)], [(x.dtype, (rows, *x.shape[depth:]))], exact=x.exact)


def pad(g):
    x = g.one((F32, F64, I64), 1)
    if not x:
        return
    begins, ends = ([g.pick(3) for _ in x.shape] for _ in range(2))
    mode = g.among(["constant", "constant", "edge", "reflect"])
    if mode == "reflect" and any(max(b, e) >= d for b, e, d in zip(begins, ends, x.shape)):
        return
    fill = [g.numbers(dtype=x.dtype)] if mode == "constant" else []
    g.add("Pad", [x.name, g.ints(begins + ends), *fill], [(x.dtype, [b + d + e for b, d, e in zip(begins, x.shape, ends)])],
          exact=x.exact, mode=mode)


def expand(g):
    x = g.one()
    if x:
        wanted = [1 + g.pick(2)] + [1 if is_free(d) else d if d > 1 else 1 + g.pick(3) for d in x.shape]
        shape = wanted[:1] + [d if is_free(d) else w for d, w in zip(x.shape, wanted[1:])]
        g.add("Expand", [x.name, g.ints(wanted)], [(x.dtype, shape)], exact=x.exact)


def like(g):
    """A constant of the shape that another value has."""
    x = g.one(None, 1)
    if x:
        shape = g.add("Shape", [x.name], [(I64, (len(x.shape),))], exact=True)
        y = g.one((F32, I64), 0, 0) or g.values[-1]
        if not y.shape:
            g.add("Expand", [y.name, shape.name], [(y.dtype, x.shape)], exact=y.exact)


def split(g):
    x = g.one(None, 1)
    if not x:
        return
    axis = g.pick(len(x.shape))
    if x.shape[axis] < 2:
        return
    first = 1 + g.pick(int(x.shape[axis]) - 1)
    shapes = [[n if i == axis else d for i, d in enumerate(x.shape)] for n in (first, x.shape[axis] - first)]
    g.add("Split", [x.name, g.ints([first, x.shape[axis] - first])], [(x.dtype, s) for s in shapes], exact=x.exact, axis=axis)


def tile(g):
    x = g.one(None, 1)
    if x:
        times = [1 + g.pick(3) for _ in x.shape]
        g.add("Tile", [x.name, g.ints(times)], [(x.dtype, [d * t for d, t in zip(x.shape, times)])], exact=x.exact)


def scatter(g):
    x = g.one((F32, F64), 1)
    if not x:
        return
    axis = g.pick(len(x.shape))
    shape = tuple(1 + g.pick(int(d)) for d in x.shape)
    places = np.argsort(g.rng.random(shape[:axis] + (int(x.shape[axis]),) + shape[axis + 1:]), axis).take(range(shape[axis]), axis)   # none twice
    g.add("ScatterElements", [x.name, g.weight(places.astype(np.int64)), g.numbers(*shape, dtype=x.dtype)], [(x.dtype, x.shape)],
          axis=axis, reduction=g.among(["none", "add", "mul"]))


def scatter_nd(g):
    x = g.one((F32, I64), 1)
    if x:
        rows = g.rng.permutation(int(x.shape[0]))[:1 + g.pick(int(x.shape[0]))].astype(np.int64)[:, None]
        g.add("ScatterND", [x.name, g.weight(rows), g.numbers(len(rows), *x.shape[1:], dtype=x.dtype)], [(x.dtype, x.shape)], exact=x.exact)


def trilu(g):
    x = g.one((F32, F64, I64), 2)
    if x:
        g.add("Trilu", [x.name, g.ints(g.pick(3) - 1)], [(x.dtype, x.shape)], exact=x.exact, upper=g.pick(2))


def depth_to_space(g):
    x = g.one((F32,), 4, 4)
    if not x:
        return
    n, c, h, w = x.shape
    if c % 4 == 0 and not is_free(c):
        g.add("DepthToSpace", [x.name], [(x.dtype, (n, c // 4, h * 2, w * 2))], exact=x.exact, blocksize=2, mode=g.among(["DCR", "CRD"]))
    elif h % 2 == 0 and w % 2 == 0 and not is_free(h) and not is_free(w):
        g.add("SpaceToDepth", [x.name], [(x.dtype, (n, c * 4, h // 2, w // 2))], exact=x.exact, blocksize=2)


def one_hot(g):
    x = g.one((I64,), 0, 3)
    if x:
        depth = 2 + g.pick(4)
        g.add("OneHot", [x.name, g.ints(depth), g.weight(np.array([0.25, 1], np.float32))], [(F32, (*x.shape, depth))], exact=True, axis=-1)


def arg(g):
    x = g.one((F32, F64), 1)
    if x and x.exact:
        axis = g.pick(len(x.shape))
        g.add(g.among(["ArgMax", "ArgMin"]), [x.name], [(I64, x.shape[:axis] + (1,) + x.shape[axis + 1:])], exact=True, axis=axis)


def topk(g):
    x = g.one((F32, F64), 1)
    if x and x.exact:
        axis = g.pick(len(x.shape))
        k = 1 + g.pick(int(x.shape[axis]))
        shape = x.shape[:axis] + (k,) + x.shape[axis + 1:]
        g.add("TopK", [x.name, g.ints([k])], [(x.dtype, shape), (I64, shape)], exact=True, axis=axis, largest=g.pick(2))


FAMILIES = [transpose, reshape, reshape, flatten, unsqueeze, squeeze, concat, slice_, gather, gather_elements, gather_nd, pad, expand, like,
            split, tile, scatter, scatter_nd, trilu, depth_to_space, one_hot, arg, topk]
NETWORK = [transpose, reshape, concat, slice_, pad, split]
