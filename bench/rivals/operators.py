#!/usr/bin/env python3
"""Times operators alone, ours beside rivals' in turns: each operator and shape is a model of its own.

    operators.py --tilewright BUILD/tilewright --python VENV/bin/python --folder OUT [--only NAME,..] [--rivals onnxruntime,openvino] [--threads 1]

Writes the models to OUT/models, all times to OUT/operators.json, and OUT/operators.md with a row an operator, the slowest beside its best rival first,
and the geometric mean. Called again it goes on with what is missing; --quick takes three short blocks of each. compare_rivals.py does the timing.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import rival_report

HERE = pathlib.Path(__file__).resolve().parent
F, U8, I8, I32, I64, B = (TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL)
RANDOM = np.random.default_rng(7)


def weights(*shape, kind=np.float32):
    """A constant input."""
    if kind == np.float32:
        return (RANDOM.standard_normal(shape) / max(1, np.prod(shape[1:]))**0.5).astype(kind)
    return RANDOM.integers(-127 if kind == np.int8 else 0, 128, shape).astype(kind)


def ints(*values):
    return np.array(values, np.int64)


def real(value):
    return np.array(value, np.float32)


class Row:
    """One operator. An input is a shape, of f32 unless `types` says, or the array of a constant; `positive`: all values are above 0;
    `shape`: of the outputs, where ONNX does not infer it."""

    def __init__(self, name, op, inputs, types=(), out=F, outputs=1, domain="", version=21, positive=False, shape=None, **attributes):
        self.name, self.op, self.inputs, self.types, self.out = name, op, inputs, types, out
        self.outputs, self.domain, self.version, self.shape, self.attributes = outputs, domain, version, shape, attributes
        self.prefix = "positive" if positive else "x"   # what rival_worker.py makes values by

    def model(self):
        names, graph_inputs, constants, types = [], [], [], list(self.types)
        for at, value in enumerate(self.inputs):
            name = "" if value is None else f"{self.prefix}{at}"
            names.append(name)
            if isinstance(value, np.ndarray):
                constants.append(numpy_helper.from_array(value, name))
            elif value is not None:
                kind = types[len(graph_inputs)] if len(graph_inputs) < len(types) else F
                graph_inputs.append(helper.make_tensor_value_info(name, kind, value))
        outputs = [f"y{at}" for at in range(self.outputs)]
        node = helper.make_node(self.op, names, outputs, domain=self.domain, **self.attributes)
        kinds = [self.out] if isinstance(self.out, int) else self.out
        results = [helper.make_tensor_value_info(name, kind, self.shape) for name, kind in zip(outputs, kinds)]
        graph = helper.make_graph([node], self.name, graph_inputs, results, constants)
        imports = [helper.make_opsetid("", self.version)] + ([helper.make_opsetid(self.domain, 3)] if self.domain else [])
        return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=imports, ir_version=10))


def convolution(name, image, filters, **attributes):
    spatial = len(image) - 2
    attributes.setdefault("pads", [(k - 1) // 2 for k in filters[2:]] * 2)
    return Row(name, "Conv", [image, weights(*filters), weights(filters[0])], kernel_shape=list(filters[2:]), strides=attributes.pop("strides", [1] * spatial),
               **attributes)


def transposed(name, image, filters, stride, pad):
    return Row(name, "ConvTranspose", [image, weights(*filters)], strides=[stride] * 2, pads=[pad] * 4)


def recurrent(op, gates, length, size, hidden):
    return Row(f"{op.lower()}_{length}x{size}_{hidden}", op, [[length, 1, size], weights(1, gates * hidden, size), weights(1, gates * hidden, hidden)],
               hidden_size=hidden)


def trees(count, depth, features):
    """A regressor of whole trees."""
    inner, leaves = 2**depth - 1, 2**depth
    fields = {key: [] for key in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")}
    targets = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(count):
        for node in range(inner + leaves):
            leaf = node >= inner
            for key, value in zip(fields, (tree, node, 0 if leaf else int(RANDOM.integers(features)), 0.0 if leaf else float(RANDOM.standard_normal()),
                                           "LEAF" if leaf else "BRANCH_LEQ", 0 if leaf else 2 * node + 1, 0 if leaf else 2 * node + 2)):
                fields[key].append(value)
            if leaf:
                for key, value in zip(targets, (tree, node, 0, float(RANDOM.standard_normal()))):
                    targets[key].append(value)
    return {**{f"nodes_{key}": value for key, value in fields.items()}, **{f"target_{key}": value for key, value in targets.items()}, "n_targets": 1}


def convolutions():
    return [
        convolution("conv_3x3_64_56", [1, 64, 56, 56], [64, 64, 3, 3]), convolution("conv_3x3_256_14", [1, 256, 14, 14], [256, 256, 3, 3]),
        convolution("conv_3x3_s2_128_56", [1, 128, 56, 56], [128, 128, 3, 3], strides=[2, 2]),
        convolution("conv_1x1_256_64_56", [1, 256, 56, 56], [64, 256, 1, 1]), convolution("conv_1x1_odd_116_28", [1, 116, 28, 28], [116, 116, 1, 1]),
        convolution("conv_1x1_s2_256_512_56", [1, 256, 56, 56], [512, 256, 1, 1], strides=[2, 2], pads=[0] * 4),
        convolution("conv_7x7_s2_rgb_224", [1, 3, 224, 224], [64, 3, 7, 7], strides=[2, 2]),
        convolution("conv_5x5_32_28", [1, 32, 28, 28], [64, 32, 5, 5]), convolution("conv_dilated_64_56", [1, 64, 56, 56], [64, 64, 3, 3], dilations=[2, 2], pads=[2] * 4),
        convolution("conv_grouped_32x4_56", [1, 128, 56, 56], [128, 4, 3, 3], group=32),
        convolution("depthwise_3x3_144_56", [1, 144, 56, 56], [144, 1, 3, 3], group=144),
        convolution("depthwise_5x5_120_28", [1, 120, 28, 28], [120, 1, 5, 5], group=120),
        convolution("depthwise_x2_64_56", [1, 64, 56, 56], [128, 1, 3, 3], group=64),
        convolution("conv_to_1_64_112", [1, 64, 112, 112], [1, 64, 3, 3]), convolution("conv_1x1_to_1_256_80", [1, 256, 80, 80], [1, 256, 1, 1]),
        convolution("conv_1d_k3_64_1000", [1, 64, 1000], [64, 64, 3]), convolution("conv_1d_s4_1_16000", [1, 1, 16000], [32, 1, 9], strides=[4]),
        convolution("conv_nc_l1_64_500", [1, 64, 500, 1], [64, 64, 3, 1], pads=[1, 0, 1, 0]),
        convolution("conv_filter_bank_400_16000", [1, 1, 16000], [256, 1, 400], strides=[160], pads=[0, 0]),
        convolution("conv_3d_32_28", [1, 32, 16, 28, 28], [32, 32, 3, 3, 3]),
        transposed("transposed_4x4_s2_64_28", [1, 64, 28, 28], [64, 32, 4, 4], 2, 1), transposed("transposed_to_3_64_64", [1, 64, 64, 64], [64, 3, 4, 4], 2, 1),
        transposed("transposed_2x2_s2_128_32", [1, 128, 32, 32], [128, 64, 2, 2], 2, 0),
    ]


def products():
    return [
        Row("matmul_128x768x768", "MatMul", [[1, 128, 768], weights(768, 768)]), Row("matmul_197x768x3072", "MatMul", [[1, 197, 768], weights(768, 3072)]),
        Row("matmul_1x768x3072", "MatMul", [[1, 768], weights(768, 3072)]), Row("matmul_heads_scores", "MatMul", [[12, 128, 64], [12, 64, 128]]),
        Row("matmul_heads_197_values", "MatMul", [[12, 197, 197], [12, 197, 64]]),
        Row("gemm_64x512x1000", "Gemm", [[64, 512], weights(1000, 512), weights(1000)], transB=1),
        Row("gemm_1x2048x1000", "Gemm", [[1, 2048], weights(1000, 2048), weights(1000)], transB=1),
        Row("einsum_bhid_bhjd", "Einsum", [[1, 8, 64, 32], [1, 8, 64, 32]], equation="bhid,bhjd->bhij"),
        Row("matmul_integer_128x768", "MatMulInteger", [[128, 768], weights(768, 768, kind=np.int8), np.array(128, np.uint8)], types=[U8], out=I32),
        Row("conv_integer_u8_u8_64_28", "ConvInteger", [[1, 64, 28, 28], weights(64, 64, 3, 3, kind=np.uint8), np.array(120, np.uint8), np.array(64, np.uint8)],
            types=[U8], out=I32, pads=[1] * 4),
        Row("qlinear_conv_64_28", "QLinearConv", [[1, 64, 28, 28], real(0.02), np.array(128, np.uint8), weights(64, 64, 3, 3, kind=np.int8), real(0.01),
                                                  np.array(0, np.int8), real(0.2), np.array(128, np.uint8)], types=[U8], out=U8, pads=[1] * 4),
        Row("dynamic_quantize_128x768", "DynamicQuantizeLinear", [[128, 768]], outputs=3, out=[U8, F, U8]),
        Row("quantize_64_112", "QuantizeLinear", [[1, 64, 112, 112], real(0.03), np.array(128, np.uint8)], out=U8),
        Row("dequantize_64_112", "DequantizeLinear", [[1, 64, 112, 112], real(0.03), np.array(128, np.uint8)], types=[U8]),
        recurrent("LSTM", 4, 50, 64, 128), recurrent("GRU", 3, 50, 64, 128), recurrent("RNN", 1, 50, 64, 128),
        Row("trees_100x6_batch_1", "TreeEnsembleRegressor", [[1, 30]], domain="ai.onnx.ml", shape=[1, 1], **trees(100, 6, 30)),
        Row("trees_100x6_batch_256", "TreeEnsembleRegressor", [[256, 30]], domain="ai.onnx.ml", shape=[256, 1], **trees(100, 6, 30)),
    ]


def pools_and_sums():
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}
    return [
        Row("max_pool_3x3_s2_64_112", "MaxPool", [[1, 64, 112, 112]], **pool),
        Row("max_pool_2x2_s2_64_112", "MaxPool", [[1, 64, 112, 112]], kernel_shape=[2, 2], strides=[2, 2]),
        Row("max_pool_5x5_256_20", "MaxPool", [[1, 256, 20, 20]], kernel_shape=[5, 5], pads=[2] * 4),
        Row("average_pool_3x3_64_56", "AveragePool", [[1, 64, 56, 56]],
                                                                                                            kernel_shape=[3, 3], pads=[1] * 4),
        Row("global_average_2048_7", "GlobalAveragePool", [[1, 2048, 7, 7]]), Row("global_max_512_14", "GlobalMaxPool", [[1, 512, 14, 14]]),
        Row("sum_axis_0_512x1024", "ReduceSum", [[512, 1024], ints(0)], keepdims=0),
        Row("sum_axis_1_512x1024", "ReduceSum", [[512, 1024], ints(1)], keepdims=0),
        Row("mean_middle_16x256x128", "ReduceMean", [[16, 256, 128], ints(1)], keepdims=0),
        Row("max_last_512x1000", "ReduceMax", [[512, 1000], ints(1)], keepdims=0),
        Row("l2_last_512x512", "ReduceL2", [[512, 512], ints(1)], keepdims=1),
        Row("mean_spatial_512_14", "ReduceMean", [[1, 512, 14, 14], ints(2, 3)], keepdims=1),
        Row("sum_all_1m", "ReduceSum", [[1024, 1024]], keepdims=0), Row("argmax_channels_21_256", "ArgMax", [[1, 21, 256, 256]], out=I64, axis=1, keepdims=0),
        Row("argmax_last_64x1000", "ArgMax", [[64, 1000]], out=I64, axis=1),
        Row("topk_5_of_1000", "TopK", [[1, 1000], ints(5)], outputs=2, out=[F, I64], axis=1),
        Row("topk_100_of_8400", "TopK", [[1, 8400], ints(100)], outputs=2, out=[F, I64], axis=1),
        Row("topk_10_rows_64x1000", "TopK", [[64, 1000], ints(10)], outputs=2, out=[F, I64], axis=1),
        Row("softmax_256x1000", "Softmax", [[256, 1000]], axis=1), Row("softmax_12x128x128", "Softmax", [[12, 128, 128]], axis=-1),
        Row("softmax_channels_21_128", "Softmax", [[1, 21, 128, 128]], axis=1), Row("log_softmax_64x1000", "LogSoftmax", [[64, 1000]], axis=1),
        Row("cumsum_last_256x1024", "CumSum", [[256, 1024], ints(1).reshape(())]), Row("cumsum_first_1024x256", "CumSum", [[1024, 256], ints(0).reshape(())]),
        Row("layer_norm_128x768", "LayerNormalization", [[128, 768], weights(768), weights(768)], axis=-1),
        Row("instance_norm_64_56", "InstanceNormalization", [[1, 64, 56, 56], weights(64), weights(64)]),
        Row("group_norm_32_of_128_28", "GroupNormalization", [[1, 128, 28, 28], weights(128), weights(128)], num_groups=32),
        Row("batch_norm_64_56", "BatchNormalization", [[1, 64, 56, 56], weights(64), weights(64), weights(64), np.abs(weights(64)) + real(1)]),
        Row("lrn_64_28", "LRN", [[1, 64, 28, 28]], size=5), Row("lp_normalize_256x512", "LpNormalization", [[256, 512]], axis=-1, p=2),
    ]


def elementwise():
    image = [1, 64, 56, 56]
    plain = [Row(f"{op.lower()}_64_56", op, [image]) for op in ("Tanh", "Sigmoid", "Erf", "Exp", "Sin", "Cos", "Gelu", "HardSwish", "Softplus", "Mish", "Relu", "Elu",
                                                                "LeakyRelu", "Abs", "Floor", "Round", "Softsign", "Atan")]
    return plain + [
        Row("log_64_56", "Log", [image], positive=True), Row("sqrt_64_56", "Sqrt", [image], positive=True), Row("clip_64_56", "Clip", [image, real(0), real(6)]),
        Row("pow_2_64_56", "Pow", [image, real(2)]),
        Row("pow_tensor_64_56", "Pow", [image, image], positive=True),
        Row("add_64_56", "Add", [image, image]), Row("mul_channel_64_56", "Mul", [image, [1, 64, 1, 1]]), Row("sub_rows_128x768", "Sub", [[128, 768], [768]]),
        Row("div_columns_128x768", "Div", [[128, 768], [128, 1]]), Row("where_64_56", "Where", [image, image, image], types=[B, F, F]),
        Row("greater_64_56", "Greater", [image, image], out=B), Row("cast_f32_i32_64_56", "Cast", [image], out=I32, to=I32),
        Row("cast_u8_f32_3_224", "Cast", [[1, 3, 224, 224]], types=[U8], to=F), Row("cast_f32_i64_64_56", "Cast", [image], out=I64, to=I64),
        Row("prelu_64_56", "PRelu", [image, weights(64, 1, 1)]), Row("max_of_three_64_56", "Max", [image, image, image]),
    ]


def layouts():
    return [
        Row("transpose_1024x1024", "Transpose", [[1024, 1024]], perm=[1, 0]), Row("nhwc_to_nchw_64_112", "Transpose", [[1, 112, 112, 64]], perm=[0, 3, 1, 2]),
        Row("nchw_to_nhwc_64_112", "Transpose", [[1, 64, 112, 112]], perm=[0, 2, 3, 1]),
        Row("nhwc_to_nchw_rgb_224", "Transpose", [[1, 224, 224, 3]], perm=[0, 3, 1, 2]),
        Row("heads_1x128x12x64", "Transpose", [[1, 128, 12, 64]], perm=[0, 2, 1, 3]),
        Row("shuffle_2x58_28", "Transpose", [[1, 2, 58, 28, 28]], perm=[0, 2, 1, 3, 4]),
        Row("concat_channels_64_56", "Concat", [[1, 64, 56, 56], [1, 64, 56, 56]], axis=1), Row("concat_last_256", "Concat", [[256, 100], [256, 28]], axis=1),
        Row("slice_step_2_64_112", "Slice", [[1, 64, 112, 112], ints(0, 0), ints(112, 112), ints(2, 3), ints(2, 2)]),
        Row("split_last_128x2304", "Split", [[128, 2304]], outputs=3, out=[F, F, F], axis=1, num_outputs=3),
        Row("gather_rows_30522x768", "Gather", [weights(30522, 768), [128]], types=[I64], axis=0),
        Row("gather_middle_16x1000x64", "Gather", [[16, 1000, 64], ints(*range(0, 1000, 7))], axis=1),
        Row("gather_elements_1000x64", "GatherElements", [[1000, 64], [500, 64]], types=[F, I64], axis=0),
        Row("gather_nd_1000x64", "GatherND", [[1000, 64], [500, 1]], types=[F, I64]),
        Row("scatter_nd_1000x64", "ScatterND", [[1000, 64], RANDOM.permutation(1000)[:300].reshape(300, 1).astype(np.int64), [300, 64]]),
        Row("one_hot_128x1000", "OneHot", [[128], ints(1000), real([0, 1])], types=[I64]),
        Row("pad_constant_64_56", "Pad", [[1, 64, 56, 56], ints(0, 0, 1, 1, 0, 0, 1, 1)]),
        Row("pad_reflect_64_56", "Pad", [[1, 64, 56, 56], ints(0, 0, 1, 1, 0, 0, 1, 1)], mode="reflect"),
        Row("pad_edge_64_56", "Pad", [[1, 64, 56, 56], ints(0, 0, 2, 2, 0, 0, 2, 2)], mode="edge"),
        Row("expand_64_1_to_56", "Expand", [[1, 64, 56, 1], ints(1, 64, 56, 56)]),
        Row("tile_2x2_64_28", "Tile", [[1, 64, 28, 28], ints(1, 1, 2, 2)]), Row("depth_to_space_64_56", "DepthToSpace", [[1, 64, 56, 56]], blocksize=2),
        Row("space_to_depth_16_112", "SpaceToDepth", [[1, 16, 112, 112]], blocksize=2),
        Row("resize_nearest_x2_64_28", "Resize", [[1, 64, 28, 28], None, real([1, 1, 2, 2])], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
        Row("resize_linear_x2_64_28", "Resize", [[1, 64, 28, 28], None, real([1, 1, 2, 2])], mode="linear"),
        Row("resize_linear_odd_21_65_to_513", "Resize", [[1, 21, 65, 65], None, None, ints(1, 21, 257, 257)], mode="linear", coordinate_transformation_mode="align_corners"),
        Row("resize_cubic_x2_3_112", "Resize", [[1, 3, 112, 112], None, real([1, 1, 2, 2])], mode="cubic"),
        Row("grid_sample_32_64", "GridSample", [[1, 32, 64, 64], [1, 64, 64, 2]], mode="linear"), Row("not_zero_1000x64", "NonZero", [[100, 64]], out=I64),
        Row("trilu_512x512", "Trilu", [[512, 512]], upper=0),
    ]


def rows():
    return convolutions() + products() + pools_and_sums() + elementwise() + layouts()


def table(data):
    """Markdown: an operator a row, ratio of the best rival's median over ours, the smallest ratio first."""
    lines = []
    for name, by_threads in data["results"].items():
        for threads, entry in by_threads.items():
            ms, best = rival_report.medians(entry), rival_report.best_rival(entry)
            if best and ms.get(rival_report.OURS):
                ratio, low, high = rival_report.ratio(entry, best)
                lines.append((ratio, name, threads, ms, best, low, high))
    if not lines:
        return "No operator was timed beside a rival.\n"
    out = [f"{len(lines)} rows; geometric mean {math.exp(sum(math.log(line[0]) for line in lines) / len(lines)):.3f}; below 0.9: "
           f"{sum(line[0] < 0.9 for line in lines)}.", "", "| operator | threads | ours, us | best rival | its us | ratio |", "| --- | --- | --- | --- | --- | --- |"]
    for ratio, name, threads, ms, best, low, high in sorted(lines):
        out.append(f"| {name} | {threads} | {1e3 * ms[rival_report.OURS]:.1f} | {best} | {1e3 * ms[best]:.1f} | {ratio:.2f} ({low:.2f} to {high:.2f}) |")
    for name, by_threads in data["results"].items():
        for entry in by_threads.values():
            out += [f"\n{name}: {contender}: {reason}" for contender, reason in entry["failed"].items()]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--python", type=pathlib.Path, default=sys.executable, help="the interpreter that has the rivals")
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], help="beginnings of names")
    parser.add_argument("--rivals", default="onnxruntime,openvino")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--compile-flags", default="")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    models = args.folder / "models"
    models.mkdir(parents=True, exist_ok=True)
    chosen = [row for row in rows() if not args.only or row.name.startswith(tuple(args.only))]
    for row in chosen:
        path = models / f"{row.name}.onnx"
        if not path.exists():
            model = row.model()
            onnx.save(model, path)
    result = args.folder / "operators.json"
    command = [args.python, HERE / "compare_rivals.py", "--tilewright", args.tilewright, "--python", args.python, "--rivals", args.rivals, "--threads", args.threads,
               "--json", result, "--resume", "--compile-flags=" + args.compile_flags, "--seconds", 0.1, "--warmup", 0.05, "--processes", 1 if args.quick else 3,
               "--blocks", 3 if args.quick else 5, *(models / f"{row.name}.onnx" for row in chosen)]
    code = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True).returncode
    if result.exists():
        (args.folder / "operators.md").write_text(table(json.loads(result.read_text())))
    return code


if __name__ == "__main__":
    sys.exit(main())
