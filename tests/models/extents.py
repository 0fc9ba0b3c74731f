#!/usr/bin/env python3
"""Models of a few hundred bytes that declare huge tensors: what compiling them takes is bounded by the file and the kernels, not by the extents.

    extents.py --tilewright BINARY [--only NAME,NAME]

Each compiles, or ends in one error that says what is too large (exit status 1 or 3), in at most LIMIT_MB of memory and LIMIT_S seconds of
the processor.
"""
import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper as h, numpy_helper

LIMIT_MB, LIMIT_S = 700, 20
BIG = 1 << 40
F, I64 = TensorProto.FLOAT, TensorProto.INT64
CASES = {}


def constant(name, values, dtype=np.int64):
    return numpy_helper.from_array(np.array(values, dtype), name)


def case(name, nodes, x=None, weights=(), dtype=F, out=F, opset=20):
    """The output's rank is what ONNX infers, the input's where it does not; its extents are left open."""
    inputs = [h.make_tensor_value_info("x", dtype, x)] if x is not None else []
    graph = h.make_graph(nodes, "g", inputs, [h.make_tensor_value_info("y", out, None)], list(weights))
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=9)
    made = onnx.shape_inference.infer_shapes(model).graph.output[0].type.tensor_type
    rank = len(made.shape.dim) if made.HasField("shape") else len(x or [0])
    del model.graph.output[:]
    model.graph.output.append(h.make_tensor_value_info("y", out, [f"d{i}" for i in range(rank)]))
    CASES[name] = model


def filled(name, shape):
    """A weight that the file only declares."""
    return constant(name + "_shape", shape), h.make_node("ConstantOfShape", [name + "_shape"], [name], value=h.make_tensor("v", F, [1], [0.5]))


def with_weights(name, node, x, shapes, **more):
    made = [filled(w, s) for w, s in shapes.items()]
    case(name, [m[1] for m in made] + [node], x, [m[0] for m in made] + list(more.pop("weights", [])), **more)


def cases():
    n = h.make_node
    case("exp", [n("Exp", ["x"], ["y"])], [BIG])
    case("softmax", [n("Softmax", ["x"], ["y"])], [BIG])
    case("softmax_first", [n("Softmax", ["x"], ["y"], axis=0)], [1 << 20, 1 << 20])
    case("reduce_sum", [n("ReduceSum", ["x"], ["y"])], [BIG])
    case("reduce_some", [n("ReduceSum", ["x", "a"], ["y"])], [1 << 20, 1 << 20], [constant("a", [0])])
    case("arg_max", [n("ArgMax", ["x"], ["y"], axis=0)], [BIG], out=I64)
    case("top_k", [n("TopK", ["x", "k"], ["y", "i"])], [BIG], [constant("k", [1 << 39])])
    case("non_zero", [n("NonZero", ["x"], ["y"])], [1 << 38], out=I64)
    case("transpose", [n("Transpose", ["x"], ["y"])], [1 << 20, 1 << 20])
    case("trilu", [n("Trilu", ["x"], ["y"])], [1 << 20, 1 << 20])
    case("det", [n("Det", ["x"], ["y"])], [1 << 19, 1 << 19])
    case("cum_sum", [n("CumSum", ["x", "a"], ["y"])], [BIG], [constant("a", 0)])
    case("cum_sum_rows", [n("CumSum", ["x", "a"], ["y"])], [1 << 20, 1 << 20], [constant("a", 1)])
    case("global_pool", [n("GlobalAveragePool", ["x"], ["y"])], [1, 1, 1 << 20, 1 << 20])
    case("max_pool", [n("MaxPool", ["x"], ["y"], kernel_shape=[1 << 20], strides=[1])], [1, 1, 1 << 30])
    case("max_pool_2d", [n("MaxPool", ["x"], ["y"], kernel_shape=[1 << 15, 1 << 15])], [1, 64, 1 << 16, 1 << 16])
    case("average_pool", [n("AveragePool", ["x"], ["y"], kernel_shape=[1 << 20, 1 << 9], pads=[1 << 8] * 4)], [1, 8, 1 << 20, 1 << 10])
    case("lp_pool", [n("LpPool", ["x"], ["y"], kernel_shape=[1 << 20])], [1, 1, 1 << 30])
    case("tiny_windows", [n("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])], [1, 16, 1 << 18, 1 << 18])
    case("expand", [n("Expand", ["x", "s"], ["y"])], [1], [constant("s", [BIG])])
    case("expand_constant", [n("Expand", ["c", "s"], ["e"]), n("Add", ["x", "e"], ["y"])], [1], [constant("s", [BIG]), constant("c", [1.0], np.float32)])
    case("constant_of_shape", [n("ConstantOfShape", ["s"], ["y"])], None, [constant("s", [BIG])])
    case("constant_added", [n("ConstantOfShape", ["s"], ["c"]), n("Exp", ["c"], ["e"]), n("Add", ["x", "e"], ["y"])], [1], [constant("s", [1 << 38])])
    case("constant_1gb", [n("ConstantOfShape", ["s"], ["c"]), n("Exp", ["c"], ["e"]), n("Transpose", ["e"], ["t"]), n("Add", ["x", "t"], ["y"])], [1], [constant("s", [1 << 14, 1 << 14])])
    case("range", [n("Range", ["a", "b", "d"], ["r"]), n("Cast", ["r"], ["y"], to=F)], None, [constant("a", 0), constant("b", 1 << 39), constant("d", 1)])
    case("tile", [n("Tile", ["x", "t"], ["y"])], [4], [constant("t", [1 << 37])])
    case("eye_like", [n("EyeLike", ["x"], ["y"])], [1 << 20, 1 << 20])
    case("pad", [n("Pad", ["x", "p"], ["y"])], [4], [constant("p", [1 << 38, 1 << 38])])
    case("pad_reflect", [n("Pad", ["x", "p"], ["y"], mode="wrap")], [4], [constant("p", [1 << 38, 1 << 38])])
    case("one_hot", [n("OneHot", ["x", "d", "v"], ["y"])], [4], [constant("d", 1 << 37), constant("v", [0, 1], np.float32)], dtype=I64)
    case("depth_to_space", [n("DepthToSpace", ["x"], ["y"], blocksize=1 << 10)], [1, 1 << 20, 1 << 8, 1 << 8])
    case("space_to_depth", [n("SpaceToDepth", ["x"], ["y"], blocksize=1 << 10)], [1, 1, 1 << 18, 1 << 18])
    case("split", [n("Split", ["x"], ["y"] + [f"y{i}" for i in range(200)], num_outputs=201, axis=0)], [1 << 39])
    case("reshape_slice", [n("Slice", ["x", "a", "b", "c", "s"], ["y"])], [BIG], [constant("a", [1]), constant("b", [1 << 39]), constant("c", [0]), constant("s", [3])])
    case("gather", [n("Gather", ["x", "i"], ["y"])], [BIG], [constant("i", [5, BIG - 1])])
    case("concat", [n("Concat", ["x"] * 100, ["y"], axis=1)], [1 << 12, 1 << 18])
    for mode in ("nearest", "linear", "cubic"):
        case("resize_" + mode, [n("Resize", ["x", "", "", "s"], ["y"], mode=mode)], [1, 1, 4, 4], [constant("s", [1, 1, 1 << 18, 1 << 18])])
        case("resize_down_" + mode, [n("Resize", ["x", "", "", "s"], ["y"], mode=mode, antialias=int(mode != "nearest"))], [1, 1, 1 << 19, 1 << 19], [constant("s", [1, 1, 4, 4])])
    case("grid_sample", [n("GridSample", ["x", "g"], ["y"])], [1, 1, 8, 8], [constant("g", np.zeros((1, 2, 2, 2)), np.float32)])
    for kind in ("Hann", "Hamming", "Blackman"):
        case(kind.lower(), [n(kind + "Window", ["n"], ["y"])], None, [constant("n", 1 << 38)])
    case("mel", [n("MelWeightMatrix", ["b", "d", "r", "l", "u"], ["y"])], None,
         [constant("b", 1 << 16), constant("d", 1 << 20), constant("r", 16000), constant("l", 0.0, np.float32), constant("u", 8000.0, np.float32)])
    case("dft", [n("DFT", ["x", "n"], ["y"])], [1, 1 << 30, 1], [constant("n", 1 << 30)])
    case("dft_odd", [n("DFT", ["x"], ["y"])], [1, (1 << 30) - 35, 1])
    case("dft_inverse", [n("DFT", ["x"], ["y"], inverse=1)], [1, 1 << 22, 2])
    case("stft", [n("STFT", ["x", "st", "", "f"], ["y"])], [1, 1 << 34, 1], [constant("st", 1 << 10), constant("f", 1 << 24)])
    case("random_normal", [n("RandomNormal", [], ["y"], shape=[1 << 38])])
    case("random_like", [n("RandomUniformLike", ["x"], ["y"])], [1 << 38])
    case("bernoulli", [n("Bernoulli", ["x"], ["y"])], [1 << 38])
    case("multinomial", [n("Multinomial", ["x"], ["y"], sample_size=1 << 30)], [1 << 4, 1 << 4], out=TensorProto.INT32)
    case("loop", [n("Loop", ["t", "", "x"], ["y"], body=h.make_graph([n("Exp", ["a"], ["b"]), n("Identity", ["c"], ["d"])], "body",
         [h.make_tensor_value_info("i", I64, []), h.make_tensor_value_info("c", TensorProto.BOOL, []), h.make_tensor_value_info("a", F, [4])],
         [h.make_tensor_value_info("d", TensorProto.BOOL, []), h.make_tensor_value_info("b", F, [4])]))], [4], [constant("t", 1 << 39)])
    case("one_row", [n("LayerNormalization", ["x", "s"], ["y"])], [4, 8], [constant("s", np.ones(8), np.float32)])
    high = [1] * 100000
    case("rank_of_constant", [n("Add", ["x", "w"], ["y"])], [2], [h.make_tensor("w", F, high, [1.0])])
    case("rank_of_input", [n("Exp", ["x"], ["y"])], high)
    case("rank_of_result", [n("Unsqueeze", ["x", "a"], ["y"])], [2], [constant("a", list(range(100000)))])
    with_weights("matmul", n("MatMul", ["x", "w"], ["y"]), [1, 1 << 20], {"w": [1 << 20, 1 << 20]})
    with_weights("matmul_1gb", n("MatMul", ["x", "w"], ["y"]), [1, 1 << 14], {"w": [1 << 14, 1 << 14]})
    with_weights("gemm", n("Gemm", ["x", "w"], ["y"], transB=1), [4, 1 << 18], {"w": [1 << 16, 1 << 18]})
    with_weights("conv", n("Conv", ["x", "w"], ["y"]), [1, 64, 1 << 13, 1 << 13], {"w": [64, 64, 1 << 12, 1 << 12]})
    with_weights("conv_channels", n("Conv", ["x", "w"], ["y"], pads=[1] * 4), [1, 1 << 18, 8, 8], {"w": [1 << 18, 1 << 18, 3, 3]})
    with_weights("conv_1gb", n("Conv", ["x", "w"], ["y"], pads=[1] * 4), [1, 1 << 12, 8, 8], {"w": [1 << 12, 1 << 12, 3, 3]})
    with_weights("conv_depthwise", n("Conv", ["x", "w"], ["y"], group=1 << 20), [1, 1 << 20, 64, 64], {"w": [1 << 20, 1, 64, 64]})
    with_weights("conv_transpose", n("ConvTranspose", ["x", "w"], ["y"], strides=[1 << 15, 1 << 15]), [1, 2, 4, 4], {"w": [2, 2, 3, 3]})
    with_weights("conv_transpose_kernel", n("ConvTranspose", ["x", "w"], ["y"]), [1, 2, 4, 4], {"w": [2, 2, 1 << 14, 1 << 14]})
    with_weights("einsum", n("Einsum", ["x", "w"], ["y"], equation="ab,cb->ca"), [4, 1 << 20], {"w": [1 << 20, 1 << 20]})
    with_weights("lstm", n("LSTM", ["x", "w", "r"], ["", "y"], hidden_size=1 << 18), [4, 1, 8], {"w": [1, 4 << 18, 8], "r": [1, 4 << 18, 1 << 18]})
    with_weights("gru", n("GRU", ["x", "w", "r"], ["", "y"], hidden_size=1 << 12), [4, 1, 8], {"w": [1, 3 << 12, 8], "r": [1, 3 << 12, 1 << 12]})
    with_weights("batch_norm", n("BatchNormalization", ["x", "w", "w", "w", "w"], ["y"]), [1, 1 << 36, 2], {"w": [1 << 36]})
    with_weights("where", n("Where", ["c", "x", "w"], ["y"]), [1], {"w": [1 << 36]}, weights=[constant("c", [True], bool)])


def compile_case(binary, path, folder):
    def limited():
        resource.setrlimit(resource.RLIMIT_CPU, (4 * LIMIT_S, 4 * LIMIT_S))
        resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
        resource.setrlimit(resource.RLIMIT_FSIZE, (6 << 30, 6 << 30))
    with open(folder / "errors", "w+b") as errors:
        child = subprocess.Popen([binary, "compile", path, "-t", "x86-64-v3", "-j", "1", "-o", folder / "m.so"], stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=limited)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        lines = [line for line in errors.read().decode(errors="replace").splitlines() if "error" in line]
    (folder / "m.so").unlink(missing_ok=True)
    return child.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, (lines or [""])[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    cases()
    failed = []
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        for name in options.only.split(",") if options.only else CASES:
            onnx.save(CASES[name], folder / "m.onnx")
            status, seconds, memory, error = compile_case(options.tilewright, folder / "m.onnx", folder)
            fine = status in (0, 1, 3) and (status == 0 or error) and seconds < LIMIT_S and memory < LIMIT_MB
            failed += [] if fine else [name]
            print(f"{'ok    ' if fine else 'FAILED'} {name}: exit status {status}, {seconds:.2f} s, {memory:.0f} MB {error[:150]}", flush=True)
    print(f"{len(failed)} failed: {', '.join(failed)}" if failed else "all within the limits")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
