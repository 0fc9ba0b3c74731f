#!/usr/bin/env python3
"""Where a result has one right rounding: divisions by constants, scales of DynamicQuantizeLinear, norms of constant rows, and operators of bf16 and
f16 behind each other, each of which rounds to its type. Where numbers leave a type: products with constant scales, means and quantized sums of integers.

    rounding.py --tilewright BUILD/tilewright [--target TARGET]

The target's programs run on this machine, or by an emulator.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper as h, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "boards"))
from emulators import EMULATORS  # noqa: E402

BF16, F16 = TensorProto.BFLOAT16, TensorProto.FLOAT16
STORED = {BF16: "V2", F16: np.float16}   # in files
CASES = {}
n = h.make_node


def case(name, nodes, feeds, want, weights=None, types=None):
    """want: the values that are right to the bit, in the bits of their type. types: of inputs and outputs that are not f32."""
    CASES[name] = nodes, feeds, want, weights or {}, types or {}


def model_of(cases):
    """All of them side by side; names get that of the case in front."""
    nodes, given, made, constants = [], [], [], []
    for name, (own, feeds, want, weights, types) in cases.items():
        called = lambda value: f"{name}.{value}" if value else ""
        kind = lambda key, value: types.get(key, h.np_dtype_to_tensor_dtype(value.dtype))
        for node in own:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.input[:], copy.output[:] = map(called, node.input), map(called, node.output)
            nodes.append(copy)
        given += [h.make_tensor_value_info(called(k), kind(k, v), v.shape) for k, v in feeds.items()]
        made += [h.make_tensor_value_info(called(k), kind(k, v), v.shape) for k, v in want.items()]
        constants += [numpy_helper.from_array(np.asarray(v), called(k)) for k, v in weights.items()]
    return h.make_model(h.make_graph(nodes, "rounding", given, made, constants), opset_imports=[h.make_opsetid("", 22)], ir_version=10)


def divisions(rng):
    x = np.concatenate([np.arange(0, 600), rng.standard_normal(400) * 1e3]).astype(np.float32)
    for divisor in (255, 3, 7, 49, 0.1, 1.4142135, 1e-3, 6e20, 8, 0.125, -3):
        c = np.float32(divisor)
        case(f"div_{divisor}", [n("Div", ["x", "c"], ["y"])], {"x": x}, {"y": x / c}, {"c": c})
    case("div_then", [n("Div", ["x", "c"], ["t"]), n("Floor", ["t"], ["y"])], {"x": x}, {"y": np.floor(x / np.float32(0.1))}, {"c": np.float32(0.1)})
    rows, channels = rng.standard_normal((4, 3, 5, 5)).astype(np.float32), np.array([0.229, 0.224, 0.225], np.float32).reshape(3, 1, 1)
    case("div_channels", [n("Div", ["x", "c"], ["y"])], {"x": rows}, {"y": rows / channels}, {"c": channels})
    tiny = np.array([1e-38, 3e-39, 1e-44, 2, np.inf, -0.0], np.float32)
    case("div_by_a_large_power", [n("Div", ["x", "c"], ["y"])], {"x": np.array([1, 3, 2e38], np.float32)}, {"y": np.array([1, 3, 2e38], np.float32) / np.float32(2.0 ** 127)},
         {"c": np.float32(2.0 ** 127)})
    case("div_by_a_small_power", [n("Div", ["x", "c"], ["y"])], {"x": np.array([0, 3e-38, 1e-3], np.float32)}, {"y": np.array([0, 3e-38, 1e-3], np.float32) / np.float32(2.0 ** -126)},
         {"c": np.float32(2.0 ** -126)})
    case("div_special", [n("Div", ["x", "c"], ["y"])], {"x": tiny[3:]}, {"y": tiny[3:] / np.float32(3)}, {"c": np.float32(3)})


def means(rng):
    whole = rng.integers(-999, 999, (5, 7, 11)).astype(np.float32)   # sums are exact
    for axes in ([2], [1], [0], [1, 2], [0, 1, 2]):
        count = np.float32(np.prod([whole.shape[a] for a in axes]))
        want = whole.sum(axis=tuple(axes), keepdims=True, dtype=np.float32) / count
        case(f"mean_{''.join(map(str, axes))}", [n("ReduceMean", ["x", "a"], ["y"])], {"x": whole}, {"y": want}, {"a": np.array(axes)})
    image = rng.integers(-99, 99, (1, 5, 9, 9)).astype(np.float32)
    case("global_average", [n("GlobalAveragePool", ["x"], ["y"])], {"x": image}, {"y": image.sum((2, 3), keepdims=True) / np.float32(81)})
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (2, 3))
    case("average", [n("AveragePool", ["x"], ["y"], kernel_shape=[3, 3])], {"x": image}, {"y": windows.sum((4, 5), dtype=np.float32) / np.float32(9)})
    case("average_apart", [n("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], strides=[3, 3])], {"x": image}, {"y": windows[:, :, ::3, ::3].sum((4, 5), dtype=np.float32) / np.float32(9)})
    weights = np.eye(5, dtype=np.float32).reshape(5, 5, 1, 1)
    case("average_of_conv", [n("Conv", ["x", "w"], ["t"]), n("AveragePool", ["t"], ["y"], kernel_shape=[3, 3], strides=[3, 3])], {"x": image},
         {"y": windows[:, :, ::3, ::3].sum((4, 5), dtype=np.float32) / np.float32(9)}, {"w": weights})


def constant_rows(rng):
    """0 (then the bias), however small epsilon is: sums of these numbers are exact."""
    for columns in (3, 7, 100, 768, 1000):
        values = np.array([5, -7, 1024, 0.5, 96], np.float32)
        rows = np.repeat(values[:, None], columns, 1)
        scale, bias = np.full(columns, 2, np.float32), rng.standard_normal(columns).astype(np.float32)
        want = np.tile(bias, (5, 1))
        weights = {"s": scale, "c": bias}
        case(f"layer_norm_{columns}", [n("LayerNormalization", ["x", "s", "c"], ["y"], epsilon=1e-12)], {"x": rows}, {"y": want}, weights)
        written = [n("ReduceMean", ["x", "last"], ["m"]), n("Sub", ["x", "m"], ["d"]), n("Mul", ["d", "d"], ["q"]), n("ReduceMean", ["q", "last"], ["v"]),
                   n("Add", ["v", "e"], ["ve"]), n("Sqrt", ["ve"], ["r"]), n("Div", ["d", "r"], ["z"]), n("Mul", ["z", "s"], ["t"]), n("Add", ["t", "c"], ["y"])]
        case(f"written_out_{columns}", written, {"x": rows}, {"y": want}, {**weights, "e": np.float32(1e-12), "last": np.array([-1])})
        centred = [n("ReduceMean", ["x", "last"], ["m"]), n("Sub", ["x", "m"], ["y"])]
        case(f"centred_{columns}", centred, {"x": rows}, {"y": np.zeros_like(rows)}, {"last": np.array([-1])})
    planes = np.broadcast_to(np.array([5, -7, 1024, 0.5], np.float32).reshape(1, 4, 1, 1), (2, 4, 5, 7)).copy()
    bias = np.array([1, 2, 3, 4], np.float32)
    want = np.broadcast_to(bias.reshape(1, 4, 1, 1), planes.shape)
    weights = {"s": np.ones(4, np.float32), "c": bias}
    case("instance_norm", [n("InstanceNormalization", ["x", "s", "c"], ["y"], epsilon=1e-12)], {"x": planes}, {"y": want}, weights)
    same = np.full((2, 4, 5, 7), -7, np.float32)
    case("group_norm", [n("GroupNormalization", ["x", "s", "c"], ["y"], epsilon=1e-12, num_groups=2)], {"x": same}, {"y": want}, weights)
    case("mean_variance_norm", [n("MeanVarianceNormalization", ["x"], ["y"])], {"x": planes}, {"y": np.zeros_like(planes)})
    # The mean of a batch. Its variance is 0.
    stats = {**weights, "m": np.zeros(4, np.float32), "v": np.ones(4, np.float32)}
    case("batch_norm_training", [n("BatchNormalization", ["x", "s", "c", "m", "v"], ["y"], training_mode=1, epsilon=1e-12)], {"x": planes}, {"y": want}, stats)


def dynamic_quantize(rng):
    def want(x):
        low, high = np.float32(min(x.min(), 0)), np.float32(max(x.max(), 0))
        scale = np.float32(high - low) / np.float32(255)
        scale = scale if scale else np.float32(1)
        zero = np.clip(np.rint((np.float32(0) - low) / scale), 0, 255).astype(np.uint8)
        return {"q": np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8), "s": np.array(scale), "z": np.array(zero)}
    for name, x in (("zeros", np.zeros((3, 5))), ("ones", np.ones((3, 5))), ("minus", -np.ones(4)), ("normal", rng.standard_normal((16, 100))), ("large", rng.standard_normal(1000) * 1e6)):
        case(f"dynamic_quantize_{name}", [n("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])], {"x": x.astype(np.float32)}, want(x.astype(np.float32)))


def to_bits(x, kind):
    """Rounded to the nearest, halves to even."""
    x = np.asarray(x, np.float32)
    if kind == F16:
        return x.astype(np.float16).view(np.uint16)
    bits = x.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def of_bits(bits, kind):
    return bits.view(np.float16).astype(np.float32) if kind == F16 else (bits.astype(np.uint32) << 16).view(np.float32)


def short_floats(rng):
    steps = {"Mul": np.multiply, "Add": np.add, "Sub": np.subtract, "Div": np.divide, "Max": np.maximum, "Relu": lambda a: np.maximum(a, 0), "Neg": np.negative, "Sqrt": np.sqrt,
             "Abs": np.abs}
    chains = [["Mul", "Mul"], ["Add", "Mul"], ["Mul", "Add"], ["Mul", "Add", "Relu"], ["Div", "Mul"], ["Sub", "Div", "Add"], ["Abs", "Sqrt", "Mul"], ["Mul", "Neg", "Mul", "Max", "Add"]]
    for kind, label in ((BF16, "bf16"), (F16, "f16")):
        for chain in chains:
            for width in (7, 64):
                feeds, nodes, types = {}, [], {}
                value = None
                for i, op in enumerate(chain):
                    operands = []
                    if value is None:
                        feeds["x"] = to_bits(rng.uniform(0.3, 3, (5, width)), kind)
                        value, name = of_bits(feeds["x"], kind), "x"
                    operands, names = [value], [name]
                    if op in ("Mul", "Add", "Sub", "Div", "Max"):
                        feeds[f"w{i}"] = to_bits(rng.uniform(0.3, 3, (5, width)), kind)
                        operands.append(of_bits(feeds[f"w{i}"], kind))
                        names.append(f"w{i}")
                    bits = to_bits(steps[op](*[o.astype(np.float32) for o in operands]), kind)
                    value, name = of_bits(bits, kind), "y" if i == len(chain) - 1 else f"v{i}"
                    nodes.append(n(op, names, [name]))
                types = {k: kind for k in [*feeds, "y"]}
                case(f"{label}_{'_'.join(chain)}_{width}", nodes, feeds, {"y": bits}, types=types)


def constant_scales(rng):
    """A scale goes into weights, or two into one, only where none of them overflows or underflows by it."""
    for label, kind, x, w, s, want in (("f16", np.float16, 0.01, 1000, 100, 2000), ("large", np.float32, 1e-20, 1e25, 1e25, 2e30), ("small", np.float32, 1e30, 1e-25, 1e-25, 2e-20)):
        numbers = {"w": np.full((1, 2, 1, 1), w, kind), "s": np.array(s, kind)}
        image = np.full((1, 2, 1, 1), x, kind)
        products = (np.float32(image.ravel().astype(np.float32) @ numbers["w"].ravel().astype(np.float32)).astype(kind) * numbers["s"]).astype(kind)
        assert np.isclose(float(products), want, rtol=1e-2), products
        types = {"y": F16} if kind == np.float16 else {}
        products = np.array(products).view(np.uint16 if types else kind)
        case(f"conv_{label}", [n("Conv", ["x", "w"], ["c"]), n("Mul", ["c", "s"], ["y"])], {"x": image}, {"y": products.reshape(1, 1, 1, 1)}, numbers, types)
        matrix = {**numbers, "w": numbers["w"].reshape(2, 1)}
        case(f"matmul_{label}", [n("MatMul", ["x", "w"], ["c"]), n("Mul", ["c", "s"], ["y"])], {"x": image.reshape(1, 2)}, {"y": products.reshape(1, 1)}, matrix, types)
    x = np.array([1e10, 1, -1e10], np.float32)
    for label, a, b in (("large", 1e30, 1e-30), ("small", 1e-30, 1e30)):
        scales = {"a": np.float32(a), "b": np.float32(b)}
        value = x if a > 1 else 1 / x
        case(f"scales_{label}", [n("Mul", ["x", "a"], ["m"]), n("Mul", ["m", "b"], ["y"])], {"x": value}, {"y": value * scales["a"] * scales["b"]}, scales)


def integer_means(rng):
    """Of the exact sum, truncated."""
    for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        bounds = np.iinfo(kind)
        low, high = (bounds.min, bounds.max) if bounds.bits < 64 else (bounds.min // 128, bounds.max // 128)
        rows = np.stack([np.full(100, high, kind), np.full(100, low, kind), rng.integers(low, high, 100, kind, endpoint=True)])
        for axis, name in ((1, "rows"), (0, "columns")):
            sums, count = rows.astype(object).sum(axis), rows.shape[axis]
            want = np.array([abs(v) // count * (1 if v >= 0 else -1) for v in sums], kind)
            case(f"mean_{name}_{np.dtype(kind)}", [n("ReduceMean", ["x", "a"], ["y"], keepdims=0)], {"x": rows}, {"y": want}, {"a": np.array([axis])})


def quantized_sums(rng):
    """Sums that 32 bits do not hold, and windows of nothing."""
    f = np.float32
    scales = {"s": f(0.01), "bs": f(0.01) * f(0.01), "ys": f(1000), "z": np.int8(0)}
    ends = [n("DequantizeLinear", ["xq", "s"], ["x"]), n("DequantizeLinear", ["wq", "s"], ["w"]), n("DequantizeLinear", ["bq", "bs"], ["b"])]
    bias = {"wq": np.full((2, 4, 1, 1), 127, np.int8), "bq": np.array([2**31 - 1, -2**31], np.int32)}
    case("bias", [*ends, n("Conv", ["x", "w", "b"], ["c"]), n("QuantizeLinear", ["c", "ys", "z"], ["y"])], {"xq": np.full((1, 4, 1, 1), 127, np.int8)},
         {"y": np.array([127, -128], np.int8).reshape(1, 2, 1, 1)}, {**scales, **bias})
    for depth in (80000, 66000):
        x, w = np.full((1, depth), 255, np.uint8), np.full((depth, 1), 127, np.int8)
        numbers = {"wq": w, "s": f(0.001), "xz": np.uint8(0), "wz": np.int8(0), "ys": f(100), "z": np.int8(0)}
        sum_of = [n("DequantizeLinear", ["xq", "s", "xz"], ["x"]), n("DequantizeLinear", ["wq", "s", "wz"], ["w"]), n("MatMul", ["x", "w"], ["c"])]
        want = np.array([[round(depth * 255 * 127 * 1e-6 / 100)]], np.int8)
        case(f"depth_{depth}", [*sum_of, n("QuantizeLinear", ["c", "ys", "z"], ["y"])], {"xq": x}, {"y": want}, numbers)
    around = [n("DequantizeLinear", ["xq", "s", "z"], ["f"]), n("AveragePool", ["f"], ["g"], count_include_pad=1, kernel_shape=[2, 2], dilations=[3, 3], pads=[2, 2, 2, 2]),
              n("QuantizeLinear", ["g", "ys", "yz"], ["y"])]
    case("padding_alone", around, {"xq": np.full((1, 1, 1, 1), 50, np.int8)}, {"y": np.full((1, 1, 2, 2), -5, np.int8)},
         {"s": f(0.05), "z": np.int8(3), "ys": f(0.06), "yz": np.int8(-5)})


def difference(got, value, kind):
    got = got.view(np.uint16) if kind in (BF16, F16) else got
    if got.shape != value.shape:
        return f"shape {got.shape}"
    off = (got != value) & ~((got != got) & (value != value))
    place = int(off.ravel().argmax()) if off.any() else 0
    return f"{int(off.sum())} of {off.size} differ: {got.ravel()[place]!r}, not {value.ravel()[place]!r}, at {place}" if off.any() else ""


def failures(tilewright, target, cases, folder):
    """Case -> what is wrong."""
    path, library, out = folder / "m.onnx", folder / "m.so", folder / "out"
    model = model_of(cases)
    onnx.save(model, path)
    kinds = {o.name: o.type.tensor_type.elem_type for o in [*model.graph.input, *model.graph.output]}
    inputs = [(f"{name}.{key}", value) for name, (_, feeds, *_) in cases.items() for key, value in feeds.items()]
    for i, (name, value) in enumerate(inputs):
        np.save(folder / f"input_{i}.npy", value.view(STORED[kinds[name]]) if kinds[name] in STORED else value)
    emulated = target in EMULATORS
    if emulated:
        program = [*EMULATORS[target], library.with_suffix(".run"), "run", "--data", folder]
    else:
        program = [tilewright, "run", library, *(word for i, (name, _) in enumerate(inputs) for word in ("--input", f"{name}={folder / f'input_{i}.npy'}"))]
    for command in ([tilewright, "compile", path, "-t", target, "-o", library, *(["--with-runner"] if emulated else [])], [*program, "--output-dir", out]):
        told = subprocess.run(command, capture_output=True, text=True)
        if told.returncode:
            return {"all": f"ends with {told.returncode}: {(told.stderr.strip().splitlines() or [''])[-1][:200]}"}
    wrong = {f"{name}.{key}": difference(np.load(out / f"{name}.{key}.npy"), value, kinds[f"{name}.{key}"]) for name, (_, _, want, *_) in cases.items() for key, value in want.items()}
    return {name: text for name, text in wrong.items() if text}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--target", default="host")
    args = parser.parse_args()
    failed = count = 0
    for add in (divisions, means, constant_rows, dynamic_quantize, short_floats, constant_scales, integer_means, quantized_sums):
        CASES.clear()
        with np.errstate(all="ignore"):
            add(np.random.default_rng(3))
        count += len(CASES)
        with tempfile.TemporaryDirectory() as folder:
            for name, text in failures(args.tilewright.resolve(), args.target, CASES, pathlib.Path(folder)).items():
                failed += 1
                print(f"FAILED {name}: {text}", flush=True)
    print(f"{count} cases for {args.target}, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
