"""Convolutions, pools, resizing, sampling, and quantized layers."""
import definitions
import extremes
import numpy as np
from draw import TYPES, Const, is_float, limits, numpy_type, operators

I64 = np.int64


def out_extent(extent, window, stride, before, after, ceil=False):
    span = extent + before + after - window
    return (-(-span // stride) if ceil else span // stride) + 1


class Window:
    """Kernel, strides, dilations and padding over 1 to 3 axes, and an input that they fit."""
    def __init__(self, d, dilated=True, automatic=True, most=3, ceil=False):
        self.rank = d.among([1, 2, 2, 2, 3])
        self.kernel = [d.between(1, most) for _ in range(self.rank)]
        self.strides = d.maybe([d.between(1, 3) for _ in range(self.rank)])
        self.dilations = d.maybe([d.between(1, 2) for _ in range(self.rank)], 0.4) if dilated else None
        self.auto = d.among(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]) if automatic and d.chance(0.3) else None
        reach = self.reach()
        self.pads = None if self.auto not in (None, "NOTSET") else d.maybe([d.between(0, min(2, k - 1)) for k in self.kernel * 2])
        self.extents = [r + d.between(0, 5) for r in reach]
        self.ceil = d.maybe(d.pick(2)) if ceil else None

    def reach(self):
        return [(k - 1) * e + 1 for k, e in zip(self.kernel, self.dilations or [1] * self.rank)]

    def attributes(self):
        return dict(strides=self.strides, dilations=self.dilations, auto_pad=self.auto, pads=self.pads)


@operators("Conv")
def conv(d):
    w, group = Window(d), d.among([1, 1, 2, 3])
    cin, cout = group * d.between(1, 3), group * d.between(1, 3)
    d.plain()
    return d.case(d.tensor(0, (d.between(1, 2), cin, *w.extents)), d.tensor(1, (cout, cin // group, *w.kernel)), d.maybe(d.tensor(2, (cout,))),
                  kernel_shape=d.maybe(w.kernel), group=group if group > 1 else d.maybe(1), **w.attributes())


@operators("ConvTranspose")
def conv_transpose(d):
    w, group = Window(d), d.among([1, 1, 2])
    cin, cout = group * d.between(1, 3), group * d.between(1, 3)
    d.plain()
    strides, dilations = w.strides or [1] * w.rank, w.dilations or [1] * w.rank
    extra = d.maybe([d.between(0, max(s, e) - 1) for s, e in zip(strides, dilations)], 0.4)
    shape, attributes = None, w.attributes()
    if d.chance(0.2) and w.auto != "VALID":
        shape = [s * (e - 1) + r - d.between(0, min(r - 1, 2)) for s, e, r in zip(strides, w.extents, w.reach())]
        attributes["pads"] = extra = None
    if w.auto in ("SAME_UPPER", "SAME_LOWER") and any(r < s for r, s in zip(w.reach(), strides)):
        attributes["auto_pad"] = None   # nothing says where such an output would be padded
    return d.case(d.tensor(0, (d.between(1, 2), cin, *w.extents)), d.tensor(1, (cin, cout // group, *w.kernel)), d.maybe(d.tensor(2, (cout,))), kernel_shape=d.maybe(w.kernel),
                  group=group if group > 1 else d.maybe(1), output_padding=extra, output_shape=shape, **attributes)


@operators("DeformConv")
def deform_conv(d):
    w, group, offsets = Window(d, automatic=False), d.among([1, 1, 2]), d.among([1, 2])
    while w.rank != 2:
        w = Window(d, automatic=False)
    cin, cout, n = group * offsets, group * d.between(1, 2), d.between(1, 2)
    d.plain()
    pads, strides = w.pads or [0] * 4, w.strides or [1, 1]
    out = [out_extent(e, r, s, pads[i], pads[i + 2]) for i, (e, r, s) in enumerate(zip(w.extents, w.reach(), strides))]
    taps = int(np.prod(w.kernel))
    attributes = {k: v for k, v in w.attributes().items() if k != "auto_pad"}
    return d.case(d.tensor(0, (n, cin, *w.extents)), d.tensor(1, (cout, cin // group, *w.kernel)), d.tensor(2, (n, offsets * taps * 2, *out), low=-2, high=2), d.maybe(d.tensor(3, (cout,))),
                  d.maybe(d.tensor(4, (n, offsets * taps, *out), low=0, high=1)), group=group, offset_group=offsets, kernel_shape=d.maybe(w.kernel), **attributes)


@operators("MaxPool")
def max_pool(d):
    w = Window(d, dilated=d.has("dilations"), ceil=d.has("ceil_mode"))
    outputs = d.between(1, 2) if d.version >= 8 else 1
    order = d.maybe(d.pick(2), 0.3) if d.has("storage_order") and outputs == 2 else None
    case = d.case(d.tensor(0, (d.between(1, 2), d.between(1, 3), *w.extents), whole=d.chance(0.4)), outputs=outputs, kernel_shape=w.kernel, ceil_mode=w.ceil, storage_order=order, **w.attributes())
    return case.defined(lambda x, **attributes: extremes.max_pool(x, outputs, **attributes))


@operators("AveragePool LpPool")
def mean_pool(d):
    w = Window(d, dilated=d.has("dilations"), ceil=d.has("ceil_mode"))
    d.plain()
    extra = {"count_include_pad": d.maybe(d.pick(2))} if d.has("count_include_pad") else {"p": d.maybe(d.between(1, 3))}
    return d.case(d.tensor(0, (d.between(1, 2), d.between(1, 3), *w.extents)), kernel_shape=w.kernel, ceil_mode=w.ceil, **extra, **w.attributes())


@operators("GlobalAveragePool GlobalMaxPool GlobalLpPool")
def global_pool(d):
    d.special = d.special and d.op == "GlobalMaxPool"
    case = d.case(d.tensor(0, (d.between(1, 3), d.between(1, 4), *d.shape(1, 3))), p=d.maybe(d.between(1, 3)) if d.has("p") else None)
    if d.op == "GlobalLpPool":
        case.defined(definitions.global_lp_pool)
    if d.op == "GlobalMaxPool":
        case.defined(lambda x: extremes.reduced("ReduceMax", x, range(2, x.ndim)))
    return case


@operators("MaxUnpool")
def max_unpool(d):
    d.plain()
    n, c, h, w = d.between(1, 2), d.between(1, 2), d.between(1, 3), d.between(1, 3)
    places = np.stack([d.rng.permutation(4 * h * w)[:h * w].reshape(h, w) for _ in range(n * c)]).reshape(n, c, h, w)
    places = places + (np.arange(n * c) * 4 * h * w).reshape(n, c, 1, 1)
    shape = d.maybe(Const(d.ints([n, c, 2 * h, 2 * w])), 0.4)
    return d.case(d.tensor(0, (n, c, h, w)), places.astype(I64), shape, kernel_shape=[2, 2], strides=[2, 2])


@operators("MaxRoiPool")
def max_roi_pool(d):
    n, h, w, count = d.between(1, 2), d.between(3, 8), d.between(3, 8), d.between(1, 3)
    d.plain()
    rois = []
    for _ in range(count):
        x, y = d.between(0, w - 1), d.between(0, h - 1)
        rois.append([d.pick(n), x, y, d.between(x, w - 1), d.between(y, h - 1)])
    scale = d.among([1.0, 0.5])
    rois = np.array(rois) / np.array([1, scale, scale, scale, scale])
    return d.case(d.tensor(0, (n, d.between(1, 2), h, w)), rois.astype(numpy_type(d.type(0))), pooled_shape=[d.between(1, 3), d.between(1, 3)], spatial_scale=scale)


@operators("RoiAlign")
def roi_align(d):
    n, h, w, count = d.between(1, 2), d.between(3, 7), d.between(3, 7), d.between(1, 3)
    d.plain()
    corners = np.sort(d.rng.uniform(0, [[w], [h]], (count, 2, 2)), -1)   # x and y, from and to
    rois = np.stack([corners[:, 0, 0], corners[:, 1, 0], corners[:, 0, 1], corners[:, 1, 1]], -1) * d.among([1, 2])
    extra = {"coordinate_transformation_mode": d.maybe(d.among(["half_pixel", "output_half_pixel"]))} if d.has("coordinate_transformation_mode") else {}
    return d.case(d.tensor(0, (n, d.between(1, 2), h, w)), rois.astype(numpy_type(d.type(0))), d.rng.integers(0, n, count).astype(I64), mode=d.maybe(d.among(["avg", "max"])),
                  output_height=d.between(1, 3), output_width=d.between(1, 3), sampling_ratio=d.between(0, 3), spatial_scale=d.among([1.0, 0.5]), **extra)


@operators("GridSample")
def grid_sample(d):
    rank = 2 if d.version < 20 else d.among([2, 2, 3])
    n, c = d.between(1, 2), d.between(1, 2)
    d.plain()
    modes = ["bilinear", "nearest", "bicubic"] if d.version < 20 else ["linear", "nearest", "cubic"]
    mode = d.among(modes if rank == 2 else modes[:2])
    extents = [d.between(1, 5) for _ in range(rank)]
    grid = d.values(d.type(1) if len(d.schema.inputs[1].types) > 1 else "float", (n, *[d.between(1, 4) for _ in range(rank)], rank), low=-1, high=1) * d.among([1, 1, 1.5, 3])
    case = d.case(d.tensor(0, (n, c, *extents)), grid.astype(numpy_type(d.type(1))), mode=mode, padding_mode=d.maybe(d.among(["zeros", "border", "reflection"])), align_corners=d.maybe(d.pick(2)))
    return case if is_float(d.type(0)) or d.type(0) == "string" else case.defined(definitions.grid_sample_of_integers)


@operators("AffineGrid")
def affine_grid(d):
    rank = d.between(2, 3)
    n = d.between(1, 3)
    return d.plain().case(d.tensor(0, (n, rank, rank + 1)), Const(d.ints([n, d.between(1, 3), *[d.between(1, 4) for _ in range(rank)]])), align_corners=d.maybe(d.pick(2)))


@operators("Resize")
def resize(d):
    if d.version == 10:
        shape = [1, d.between(1, 2), d.between(1, 6), d.between(1, 6)]
        return d.plain().case(d.tensor(0, shape), Const(np.array([1, 1, *[d.among([0.5, 1, 1.5, 2, 3]) for _ in range(2)]], np.float32)), mode=d.maybe(d.among(["nearest", "linear"])))
    mode = d.among(["nearest", "linear", "cubic"])
    spatial = 2 if mode == "cubic" else d.between(1, 3)
    extents = [d.among([1, 2, 3, 4, 5, 7]) for _ in range(spatial)]
    d.plain()
    x = d.tensor(0, (d.between(1, 2), d.between(1, 2), *extents), low=0, high=6)
    coordinates = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"] + ["half_pixel_symmetric"] * (d.version >= 19) + ["tf_crop_and_resize"]
    coordinate = d.maybe(d.among(coordinates))
    attributes = dict(mode=d.maybe(mode) if mode == "nearest" else mode, coordinate_transformation_mode=coordinate)
    if mode == "nearest":
        attributes["nearest_mode"] = d.maybe(d.among(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if mode == "cubic":
        attributes |= {"cubic_coeff_a": d.maybe(d.real(-0.8, -0.4)), "exclude_outside": d.maybe(d.pick(2))}
    if d.version >= 18 and mode != "nearest" and coordinate != "tf_crop_and_resize":
        attributes["antialias"] = d.maybe(1, 0.3)
    axes = list(range(2, 2 + spatial)) if d.version >= 18 and d.chance(0.4) else None
    attributes["axes"] = axes
    whole = [1, 1] if axes is None else []
    roi = None
    if coordinate == "tf_crop_and_resize":
        attributes["extrapolation_value"] = d.maybe(d.real())
        begin = [float(d.rng.choice([0, 0.1, 0.25, -0.25])) for _ in range(spatial)]
        end = [float(d.rng.choice([1, 0.9, 0.75, 1.25])) for _ in range(spatial)]
        pad = len(whole)
        roi = Const(np.array([0] * pad + begin + [1] * pad + end).astype(numpy_type(d.type(1))))
    empty = Const(np.array([], np.float32))
    if d.version == 11 and roi is None:
        roi = Const(np.array([], numpy_type(d.type(1))))
    if d.chance(0.5):
        scales = whole + [d.among([0.5, 0.6, 0.75, 1, 1.5, 2, 2.6, 3]) for _ in extents]
        return d.case(x, roi, Const(np.array(scales, np.float32)), **attributes)
    sizes = [] if axes is not None else list(x.shape[:2])
    if d.version >= 18:
        attributes["keep_aspect_ratio_policy"] = d.maybe(d.among(["stretch", "not_larger", "not_smaller"]), 0.3) if axes is not None else None
    return d.case(x, roi, empty if d.version == 11 else None, Const(d.ints(sizes + [d.between(1, 9) for _ in extents])), **attributes)


@operators("Upsample")
def upsample(d):
    mode = d.among(["nearest", "linear"])
    shape = [1, d.between(1, 2), d.between(1, 5), d.between(1, 5)]
    scales = [1.0, 1.0, *[d.among([1.0, 1.5, 2.0, 3.0]) for _ in range(2)]]
    d.plain()
    if d.version < 9:
        return d.case(d.tensor(0, shape), mode=d.maybe(mode) if mode == "nearest" else mode, scales=scales)
    return d.case(d.tensor(0, shape), Const(np.array(scales, np.float32)), mode=d.maybe(mode) if mode == "nearest" else mode)


@operators("Col2Im")
def col_to_image(d):
    rank = d.between(1, 3)
    block, strides, dilations = [d.between(1, 3) for _ in range(rank)], [d.between(1, 2) for _ in range(rank)], [d.between(1, 2) for _ in range(rank)]
    image = [(k - 1) * e + 1 + d.between(0, 3) for k, e in zip(block, dilations)]
    pads = d.maybe([d.between(0, 1) for _ in range(2 * rank)])
    strides, dilations = d.maybe(strides), d.maybe(dilations)
    steps = 1
    for i in range(rank):
        reach = (block[i] - 1) * (dilations or [1] * rank)[i] + 1
        steps *= out_extent(image[i], reach, (strides or [1] * rank)[i], *(pads or [0] * 2 * rank)[i::rank])
    d.plain()
    return d.case(d.tensor(0, (d.between(1, 2), d.between(1, 2) * int(np.prod(block)), steps)), Const(d.ints(image)), Const(d.ints(block)), strides=strides, dilations=dilations, pads=pads)


@operators("NonMaxSuppression")
def non_max_suppression(d):
    n, count, classes = d.between(1, 2), d.between(1, 8), d.between(1, 3)
    d.plain()
    center = d.pick(2)
    low, size = d.rng.uniform(0, 5, (n, count, 2)), d.rng.uniform(0.5, 4, (n, count, 2))
    boxes = np.concatenate([low, size if center else low + size], -1)
    if not center and d.chance(0.5):   # any two corners that lie across
        boxes = boxes[..., [2, 1, 0, 3]]
    scores = d.rng.permutation(n * classes * count).reshape(n, classes, count) / (n * classes * count)
    most = d.maybe(Const(d.ints([d.between(0, 4)])), 0.8)
    return d.case(np.ascontiguousarray(boxes, np.float32), scores.astype(np.float32), most, d.maybe(Const(np.array([d.real(0, 1)], np.float32))), d.maybe(Const(np.array([d.real(0, 0.8)], np.float32))),
                  center_point_box=center or d.maybe(0))


def zero_point(d, name, shape, kind=Const):
    return kind(d.values(name, shape, low=-20 if not name.startswith("u") else 100, high=20 if not name.startswith("u") else 140, special=False))


def scale(d, shape, name="float"):
    return d.rng.uniform(0.01, 0.1, shape).astype(np.float32).astype(numpy_type(name))


@operators("QuantizeLinear")
def quantize(d):
    source = d.type(0)
    scales = source if d.schema.inputs[1].type_str == d.schema.inputs[0].type_str else d.type(1) if len(d.types(1)) > 1 else "float"
    if d.version >= 23 and scales == "float8e8m0":
        scales = d.bound[d.schema.inputs[1].type_str] = "float"
    target = d.among(d.types(2)) if len(d.schema.inputs) > 2 else "uint8"
    x = d.shape(1, 4)
    axis = d.axis(len(x))
    if target.startswith("float"):
        zero = None
    shape, block = (), None
    kind = d.pick(3)
    if kind == 1 and d.has("axis"):
        shape = (x[axis],)
    if kind == 2 and d.has("block_size"):
        block = d.among([1, 2, 3])
        x = tuple(e * block if i == axis % len(x) else e for i, e in enumerate(x))
        shape = tuple(e // block if i == axis % len(x) else e for i, e in enumerate(x))
    factor = d.rng.choice([0.25, 0.5, 0.1, 0.03, 1.0] if is_float(scales) else [1, 2, 3], shape).astype(np.float32).astype(numpy_type(scales))
    zero = Const(d.values(target, shape, low=-3 if not target.startswith("u") else 0, high=3, special=False)) if not target.startswith("float") else Const(np.zeros(shape, numpy_type(target)))
    given = d.has("output_dtype") and d.chance(0.3)
    attributes = dict(axis=axis if d.has("axis") and (shape or d.chance(0.3)) else None, block_size=block, output_dtype=TYPES[target] if given else None)
    if target.startswith("float8") and d.has("saturate"):
        attributes["saturate"] = d.maybe(d.pick(2))
    values = d.values(source, x, low=-8, high=8)
    if not target.startswith("float8"):
        values = np.where(np.isfinite(values.astype(np.float64)), values, np.ones((), values.dtype)) if is_float(source) else values
    absent = given or (target == "uint8" and d.chance(0.3))
    return d.case(values, Const(factor), None if absent else zero, **attributes)


@operators("DequantizeLinear")
def dequantize(d):
    source, scales = d.type(0), d.type(1)
    if scales == "float8e8m0":
        scales = "float"
    x = d.shape(1, 4)
    axis, shape, block, kind = d.axis(len(x)), (), None, d.pick(3)
    if kind == 1 and d.has("axis"):
        shape = (x[axis],)
    if kind == 2 and d.has("block_size"):
        block = d.among([1, 2, 3])
        x = tuple(e * block if i == axis % len(x) else e for i, e in enumerate(x))
        shape = tuple(e // block if i == axis % len(x) else e for i, e in enumerate(x))
    whole = not is_float(source)
    zero = Const(d.values(source, shape, low=-3, high=3, special=False)) if whole and source != "int32" else None
    values = d.values(source, x, low=-100, high=100) if whole else d.values(source, x, special=False)
    return d.case(values, Const(d.rng.choice([0.25, 0.5, 0.1, 0.03], shape).astype(np.float32).astype(numpy_type(scales))), d.maybe(zero), axis=axis if d.has("axis") and (shape or d.chance(0.3)) else None, block_size=block)


@operators("DynamicQuantizeLinear")
def dynamic_quantize(d):
    x = d.plain().tensor(0, d.shape(0, 3))
    return d.case(x * np.float32(d.among([1, 0, 1e-3, 100])) + np.float32(d.among([0, 0, 5, -5])), outputs=3)


@operators("MatMulInteger")
def matmul_integer(d):
    m, k, n = (d.between(1, 8) for _ in range(3))
    batches = d.broadcast(2, high=2) if d.chance(0.4) else [(), ()]
    a, b = d.type(0), d.type(1)
    rows = d.among([(), (1,), (m,)]) if not batches[0] else ()
    columns = d.among([(), (1,), (n,)]) if not batches[1] else ()
    return d.case(d.values(a, (*batches[0], m, k), *limits(a)), d.values(b, (*batches[1], k, n), *limits(b)), d.maybe(zero_point(d, a, rows)), d.maybe(zero_point(d, b, columns)))


@operators("ConvInteger")
def conv_integer(d):
    w, group = Window(d), d.among([1, 1, 2])
    while w.rank == 3:
        w = Window(d)
    cin, cout = group * d.between(1, 3), group * d.between(1, 3)
    x, k = d.type(0), d.type(1)
    zeros = d.maybe(zero_point(d, x, ()), 0.7)
    per = d.maybe(zero_point(d, k, d.among([(), (cout,)])), 0.7) if zeros else None
    return d.case(d.values(x, (d.between(1, 2), cin, *w.extents), *limits(x)), d.values(k, (cout, cin // group, *w.kernel), *limits(k)), zeros, per, kernel_shape=d.maybe(w.kernel), group=group, **w.attributes())


@operators("QLinearMatMul")
def qlinear_matmul(d):
    m, k, n = (d.between(1, 8) for _ in range(3))
    a, b, y = (d.type(i, only=["int8", "uint8"]) for i in (0, 3, 7))
    scales = d.type(1, only=["float"]) if len(d.types(1)) > 1 else "float"
    column = d.chance(0.3)
    out = np.asarray(scale(d, (), scales).astype(np.float32) * 0.6 * 8 * k ** 0.5).astype(numpy_type(scales))
    return d.case(d.values(a, (m, k), *limits(a)), Const(scale(d, (), scales)), zero_point(d, a, ()), d.values(b, (k, n), *limits(b)), Const(scale(d, (n,) if column else (), scales)),
                  zero_point(d, b, (n,) if column else ()), Const(out), zero_point(d, y, ()))


@operators("QLinearConv")
def qlinear_conv(d):
    w, group = Window(d), d.among([1, 1, 2])
    while w.rank == 3:
        w = Window(d)
    cin, cout = group * d.between(1, 3), group * d.between(1, 3)
    x, k, y = d.type(0), d.type(3), d.type(7)
    per = (cout,) if d.chance(0.4) else ()
    taps = cin // group * int(np.prod(w.kernel))
    return d.case(d.values(x, (d.between(1, 2), cin, *w.extents), *limits(x)), Const(scale(d, ())), zero_point(d, x, ()), d.values(k, (cout, cin // group, *w.kernel), *limits(k)), Const(scale(d, per)),
                  Const(np.zeros(per, numpy_type(k))) if k == "int8" else zero_point(d, k, per), Const(np.float32(scale(d, ()) * 5 * taps ** 0.5)), zero_point(d, y, ()),
                  d.maybe(Const(d.values("int32", (cout,), -500, 500, special=False))), kernel_shape=d.maybe(w.kernel), group=group, **w.attributes())
