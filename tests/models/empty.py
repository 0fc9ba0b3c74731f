#!/usr/bin/env python3
"""Tensors without elements: every family of operators with each of its extents 0 in turn, known and free, against onnx's reference evaluator
or onnxruntime, and for the targets with devices compiled.

    empty.py --tilewright BUILD/tilewright [--only NAME,NAME] [--devices]

A model compiles and gives the right shapes and values, or is refused (exit status 1 or 3) with a sentence: a maximum of nothing has no value.
"""
import argparse
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper as h, numpy_helper
from onnx.reference import ReferenceEvaluator

DEVICES = ["nvidia-sm80", "opencl-generic", "vdla-16x16"]
CASES = {}
TYPES = {"f": np.float32, "u": np.uint8, "i": np.int8, "l": np.int64, "n": np.int32, "b": np.bool_}


class Case:
    """inputs and weights: name -> "type letters...", a letter an extent and a digit itself. The letters are what becomes 0; kept: those
    that cannot be, as a kernel's."""

    def __init__(self, nodes, sizes, inputs, weights=(), constants=(), kept="", outputs=("y",), opset=21, refused=""):
        self.nodes, self.sizes, self.inputs, self.weights = nodes if isinstance(nodes, list) else [nodes], sizes, inputs, dict(weights)
        self.constants, self.outputs, self.opset = [numpy_helper.from_array(np.array(v), n) for n, v in dict(constants).items()], outputs, opset
        self.refused = refused   # letters of which 0 may be refused
        used = [c for spec in [*inputs.values(), *self.weights.values()] for c in spec.split(" ", 1)[1]]
        self.letters = sorted({c for c in used if c.isupper() and c not in kept})
        self.free = [c for c in self.letters if not any(c in spec for spec in self.weights.values())]

    def shape(self, spec, zero):
        return [0 if c == zero else self.sizes[c] if c.isupper() else int(c) for c in spec.split(" ", 1)[1].replace(" ", "")]

    def array(self, spec, zero, rng):
        kind = TYPES[spec[0]]
        shape = self.shape(spec, zero)
        if kind in (np.float32,):
            return rng.standard_normal(shape).astype(kind)
        return rng.integers(0, 2, shape).astype(kind)

    def model(self, zero, free):
        rng = np.random.default_rng(7)
        feeds = {name: self.array(spec, zero, rng) for name, spec in self.inputs.items()}
        weights = [numpy_helper.from_array(self.array(spec, zero, rng), name) for name, spec in self.weights.items()]
        dims = {name: [c if free and c in self.free else s for c, s in zip(spec.split(" ", 1)[1].replace(" ", ""), self.shape(spec, zero))]
                for name, spec in self.inputs.items()}
        given = [h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(value.dtype), dims[name]) for name, value in feeds.items()]
        made = [onnx.ValueInfoProto(name=name) for name in self.outputs]
        graph = h.make_graph(self.nodes, "empty", given, made, weights + self.constants)
        return h.make_model(graph, opset_imports=[h.make_opsetid("", self.opset), h.make_opsetid("com.microsoft", 1)], ir_version=9), feeds


def case(name, *args, **more):
    CASES[name] = Case(*args, **more)


def families():
    n = h.make_node
    mkn = {"M": 3, "K": 4, "N": 5}
    case("matmul", n("MatMul", ["a", "b"], ["y"]), mkn, {"a": "f MK", "b": "f KN"})
    case("matmul_batched", n("MatMul", ["a", "b"], ["y"]), {"B": 2, **mkn}, {"a": "f BMK", "b": "f BKN"})
    case("matmul_weights", n("MatMul", ["a", "b"], ["y"]), mkn, {"a": "f MK"}, {"b": "f KN"})
    case("matmul_relu", [n("MatMul", ["a", "b"], ["t"]), n("Add", ["t", "c"], ["s"]), n("Relu", ["s"], ["y"])], mkn, {"a": "f MK"}, {"b": "f KN", "c": "f N"})
    case("gemm", n("Gemm", ["a", "b", "c"], ["y"], alpha=0.5, beta=2.0), mkn, {"a": "f MK", "b": "f KN", "c": "f N"})
    case("gemm_transposed", n("Gemm", ["a", "b", "c"], ["y"], transA=1, transB=1), mkn, {"a": "f KM"}, {"b": "f NK", "c": "f N"})
    case("einsum", n("Einsum", ["a", "b"], ["y"], equation="bmk,bnk->bmn"), {"B": 2, **mkn}, {"a": "f BMK", "b": "f BNK"})
    case("matmul_integer", n("MatMulInteger", ["a", "b"], ["y"]), mkn, {"a": "u MK"}, {"b": "i KN"})
    case("matmul_integer_zeros", n("MatMulInteger", ["a", "b", "za", "zb"], ["y"]), mkn, {"a": "u MK", "b": "u KN"}, constants={"za": np.uint8(1), "zb": np.uint8(2)})
    scales = {"s": np.float32(0.5), "z": np.uint8(3)}
    case("qlinear_matmul", n("QLinearMatMul", ["a", "s", "z", "b", "s", "z", "s", "z"], ["y"]), mkn, {"a": "u MK", "b": "u KN"}, constants=scales)
    case("quantize", n("QuantizeLinear", ["a", "s", "z"], ["y"]), mkn, {"a": "f MK"}, constants=scales)
    case("dequantize", n("DequantizeLinear", ["a", "s", "z"], ["y"]), mkn, {"a": "u MK"}, constants=scales)
    case("dynamic_quantize", n("DynamicQuantizeLinear", ["a"], ["y"]), mkn, {"a": "f MK"}, refused="MK")
    case("qdq_matmul", [n("QuantizeLinear", ["a", "s", "z"], ["qa"]), n("DequantizeLinear", ["qa", "s", "z"], ["da"]), n("DequantizeLinear", ["b", "s", "z"], ["db"]),
                        n("MatMul", ["da", "db"], ["m"]), n("QuantizeLinear", ["m", "s", "z"], ["y"])], mkn, {"a": "f MK"}, {"b": "u KN"}, constants=scales)
    image = {"B": 2, "C": 4, "H": 6, "W": 7, "O": 3}
    small = {"B": 2, "C": 4, "H": 6, "W": 6, "O": 3}
    case("conv", n("Conv", ["x", "w"], ["y"], pads=[1] * 4), image, {"x": "f BCHW"}, {"w": "f OC33"}, refused="HW")
    case("conv_bias", n("Conv", ["x", "w", "c"], ["y"], pads=[1] * 4), image, {"x": "f BCHW"}, {"w": "f OC33", "c": "f O"}, refused="HW")
    case("conv_1x1", n("Conv", ["x", "w"], ["y"]), image, {"x": "f BCHW"}, {"w": "f OC11"}, refused="HW")
    case("conv_depthwise", n("Conv", ["x", "w"], ["y"], group=4, pads=[1] * 4), image, {"x": "f B4HW"}, {"w": "f 4133"}, refused="HW")
    case("conv_1d", n("Conv", ["x", "w"], ["y"], pads=[1, 1]), image, {"x": "f BCW"}, {"w": "f OC3"}, refused="W")
    case("conv_transpose", n("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2]), image, {"x": "f BCHW"}, {"w": "f CO33"}, refused="HW")
    case("conv_integer", n("ConvInteger", ["x", "w"], ["y"]), image, {"x": "u BCHW"}, {"w": "u OC33"}, refused="HW")
    case("qlinear_conv", n("QLinearConv", ["x", "s", "z", "w", "s", "z", "s", "z"], ["y"]), image, {"x": "u BCHW"}, {"w": "u OC33"}, constants=scales, refused="HW")
    case("conv_chain", [n("Conv", ["x", "w"], ["t"], pads=[1] * 4), n("Relu", ["t"], ["r"]), n("Conv", ["r", "v"], ["s"]), n("MaxPool", ["s"], ["y"], kernel_shape=[2, 2], strides=[2, 2])],
         small, {"x": "f BCHW"}, {"w": "f OC33", "v": "f 4O11"}, refused="HW")
    for kind in ("Max", "Average", "Lp"):
        case(f"{kind.lower()}_pool", n(kind + "Pool", ["x"], ["y"], kernel_shape=[2, 2]), image, {"x": "f BCHW"}, refused="HW")
        case(f"global_{kind.lower()}_pool", n(f"Global{kind}Pool", ["x"], ["y"]), image, {"x": "f BCHW"}, refused="HW")
    for kind in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"):
        for axes in ([0], [1], [0, 1, 2]):
            case(f"reduce_{kind.lower()}_{''.join(map(str, axes))}", n("Reduce" + kind, ["x", "axes"], ["y"]), {"A": 2, "B": 3, "C": 4}, {"x": "f ABC"},
                 constants={"axes": np.array(axes)}, refused="ABC" if kind in ("Max", "Min", "Mean", "LogSumExp") else "")
    abc = {"A": 2, "B": 3, "C": 4}
    case("arg_max", n("ArgMax", ["x"], ["y"], axis=1), abc, {"x": "f ABC"}, refused="B")
    for name in ("Softmax", "LogSoftmax", "Hardmax"):
        case(name.lower(), n(name, ["x"], ["y"], axis=1), abc, {"x": "f ABC"}, refused="B")
        case(name.lower() + "_last", n(name, ["x"], ["y"]), abc, {"x": "f ABC"}, refused="C")
    case("layer_norm", n("LayerNormalization", ["x", "s", "c"], ["y"]), abc, {"x": "f ABC"}, {"s": "f C", "c": "f C"})
    case("rms_norm", n("RMSNormalization", ["x", "s"], ["y"]), abc, {"x": "f ABC"}, {"s": "f C"}, opset=23)
    case("instance_norm", n("InstanceNormalization", ["x", "s", "c"], ["y"]), image, {"x": "f BCHW"}, {"s": "f C", "c": "f C"})
    case("group_norm", n("GroupNormalization", ["x", "s", "c"], ["y"], num_groups=2), image, {"x": "f B4HW"}, {"s": "f 4", "c": "f 4"})
    case("batch_norm", n("BatchNormalization", ["x", "p", "p", "p", "p"], ["y"]), image, {"x": "f BCHW"}, {"p": "f C"})
    case("mean_variance_norm", n("MeanVarianceNormalization", ["x"], ["y"]), image, {"x": "f BCHW"})
    case("lrn", n("LRN", ["x"], ["y"], size=3), image, {"x": "f BCHW"}, refused="CHW")
    case("lp_normalization", n("LpNormalization", ["x"], ["y"]), abc, {"x": "f ABC"})
    case("concat", n("Concat", ["x", "z"], ["y"], axis=1), {**abc, "D": 5}, {"x": "f ABC", "z": "f ADC"})
    case("concat_conv", [n("Relu", ["x"], ["r"]), n("Concat", ["r", "z"], ["y"], axis=0)], {**abc, "D": 5}, {"x": "f ABC", "z": "f DBC"})
    case("split", n("Split", ["x"], ["y", "y1"], axis=0, num_outputs=2), {"A": 4, "B": 3}, {"x": "f AB"}, outputs=("y", "y1"))
    case("split_sizes", n("Split", ["x", "sizes"], ["y", "y1"], axis=0), {"B": 3}, {"x": "f 4B"}, constants={"sizes": np.array([4, 0])}, outputs=("y", "y1"))
    case("gather", n("Gather", ["x", "i"], ["y"]), {**abc, "D": 5}, {"x": "f ABC", "i": "l D"}, refused="A")
    case("gather_elements", n("GatherElements", ["x", "i"], ["y"], axis=0), {"A": 3, "B": 4, "D": 2}, {"x": "f AB", "i": "l DB"}, refused="A")
    case("gather_nd", n("GatherND", ["x", "i"], ["y"]), {**abc, "D": 5}, {"x": "f ABC", "i": "l D1"}, refused="A")
    case("scatter_nd", n("ScatterND", ["x", "i", "u"], ["y"]), {**abc, "D": 1}, {"x": "f ABC", "i": "l D1", "u": "f DBC"}, refused="A")
    case("scatter_elements", n("ScatterElements", ["x", "i", "u"], ["y"], axis=0), {"A": 3, "B": 4, "D": 2}, {"x": "f AB", "i": "l DB", "u": "f DB"}, refused="A")
    case("top_k", n("TopK", ["x", "k"], ["y", "y1"]), {"A": 3, "B": 4}, {"x": "f AB"}, constants={"k": np.array([2])}, refused="B", outputs=("y", "y1"))
    case("top_k_0", n("TopK", ["x", "k"], ["y", "y1"]), {"A": 3, "B": 4}, {"x": "f AB"}, constants={"k": np.array([0])}, outputs=("y", "y1"))
    case("non_zero", n("NonZero", ["x"], ["y"]), {"A": 3, "B": 4}, {"x": "f AB"})
    case("unique", n("Unique", ["x"], ["y"]), {"A": 3}, {"x": "f A"})
    case("compress", n("Compress", ["x", "c"], ["y"], axis=0), {"A": 3, "B": 4}, {"x": "f AB", "c": "b A"})
    case("cum_sum", n("CumSum", ["x", "axis"], ["y"]), abc, {"x": "f ABC"}, constants={"axis": np.array(1)})
    case("transpose", n("Transpose", ["x"], ["y"], perm=[2, 0, 1]), abc, {"x": "f ABC"})
    case("reshape", n("Reshape", ["x", "shape"], ["y"]), abc, {"x": "f ABC"}, constants={"shape": np.array([0, -1])}, refused="A")
    case("flatten", n("Flatten", ["x"], ["y"]), abc, {"x": "f ABC"})
    case("expand", n("Expand", ["x", "shape"], ["y"]), abc, {"x": "f AB1"}, constants={"shape": np.array([1, 1, 0])})
    case("tile", n("Tile", ["x", "t"], ["y"]), abc, {"x": "f ABC"}, constants={"t": np.array([2, 0, 1])})
    case("pad", n("Pad", ["x", "p"], ["y"]), {"A": 3, "B": 4}, {"x": "f AB"}, constants={"p": np.array([1, 0, 1, 2])})
    for mode in ("reflect", "edge", "wrap"):
        case("pad_" + mode, n("Pad", ["x", "p"], ["y"], mode=mode), {"A": 3, "B": 4}, {"x": "f AB"}, constants={"p": np.array([1, 0, 1, 2])}, refused="AB")
    case("slice", n("Slice", ["x", "a", "b"], ["y"]), {"A": 3, "B": 4}, {"x": "f AB"}, constants={"a": np.array([1, 1]), "b": np.array([3, 3])})
    case("resize", n("Resize", ["x", "", "s"], ["y"], mode="linear"), image, {"x": "f BCHW"}, constants={"s": np.array([1, 1, 2, 2], np.float32)}, refused="HW")
    case("depth_to_space", n("DepthToSpace", ["x"], ["y"], blocksize=2), image, {"x": "f BCHW"})
    case("one_hot", n("OneHot", ["x", "d", "v"], ["y"]), {"A": 3}, {"x": "l A"}, constants={"d": np.array(4), "v": np.array([0, 1], np.float32)})
    case("where", n("Where", ["c", "x", "z"], ["y"]), {"A": 3, "B": 4}, {"c": "b AB", "x": "f AB", "z": "f B"})
    case("chain", [n("Exp", ["x"], ["e"]), n("Add", ["e", "w"], ["s"]), n("Tanh", ["s"], ["y"])], {"A": 3, "B": 4}, {"x": "f AB"}, {"w": "f B"})
    case("grid_sample", n("GridSample", ["x", "g"], ["y"]), {**image, "P": 3}, {"x": "f BCHW", "g": "f BP52"}, refused="HW")
    case("attention", [n("MatMul", ["q", "k"], ["s"]), n("Softmax", ["s"], ["p"]), n("MatMul", ["p", "v"], ["y"])],
         {"B": 2, "H": 2, "S": 5, "D": 4, "T": 6, "E": 3}, {"q": "f BHSD", "k": "f BHDT", "v": "f BHTE"}, refused="T")
    case("attention_23", n("Attention", ["q", "k", "v"], ["y"]), {"B": 2, "H": 2, "S": 5, "D": 4, "T": 6}, {"q": "f BHSD", "k": "f BHTD", "v": "f BHTD"}, opset=23, refused="HTD")
    for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        case(kind.lower(), n(kind, ["x", "w", "r"], ["y", "y1"], hidden_size=3), {"S": 4, "B": 2, "I": 5}, {"x": "f SBI"},
             {"w": f"f 1{'3' if gates == 1 else 'G'}I", "r": f"f 1{'3' if gates == 1 else 'G'}3"}, outputs=("y", "y1"), kept="G", refused="I")
        CASES[kind.lower()].sizes["G"] = 3 * gates
    case("nested", n("If", ["c"], ["y"], then_branch=h.make_graph([n("MatMul", ["a", "b"], ["t"])], "t", [], [onnx.ValueInfoProto(name="t")]),
                     else_branch=h.make_graph([n("MatMul", ["b2", "a2"], ["e"])], "e", [], [onnx.ValueInfoProto(name="e")])),
         {"M": 3, "K": 4}, {"c": "b 1", "a": "f MK", "b": "f KM", "a2": "f KM", "b2": "f MK"})


def by_onnxruntime(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def expected(model, feeds):
    """None where neither says. onnxruntime has a process of its own, which some empty inputs end."""
    try:
        return ReferenceEvaluator(model).run(None, feeds), "onnx"
    except Exception:   # numpy's and the evaluator's own kinds of error share no other base
        pass
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        try:
            return pool.submit(by_onnxruntime, model.SerializeToString(), feeds).result(), "onnxruntime"
        except Exception:
            return None, ""


def last_line(process):
    lines = (process.stderr or process.stdout).strip().splitlines()
    return next((line for line in lines if "error" in line), (lines or [""])[-1])[:200]


def differs(got, want):
    if got.shape != want.shape:
        return f"shape {list(got.shape)} for {list(want.shape)}"
    if got.dtype != want.dtype:
        return f"type {got.dtype} for {want.dtype}"
    fine = np.allclose(got, want, rtol=1e-4, atol=1e-5, equal_nan=True) if got.dtype.kind == "f" else (got == want).all()
    return "" if fine else f"{got.ravel()[:6]} for {want.ravel()[:6]}"


class Suite:
    def __init__(self, tilewright, folder):
        self.tilewright, self.folder = tilewright, folder
        self.counts = {"right": 0, "refused": 0, "without a reference": 0, "failed": 0}

    def told(self, name, way, what, problem=""):
        self.counts[what] += 1
        if problem:
            print(f"{name}, {way}: {problem}", flush=True)

    def compiled(self, model, target, options=()):
        path, library = self.folder / "m.onnx", self.folder / "m.so"
        onnx.save(model, path)
        return subprocess.run([self.tilewright, "compile", path, "-t", target, "-j", "1", "-o", library, *options], capture_output=True, text=True), library

    def ran(self, library, feeds, outputs):
        np.savez(self.folder / "in.npz", **feeds)
        out = self.folder / "out"
        told = subprocess.run([self.tilewright, "run", library, "--input", self.folder / "in.npz", "--output-dir", out], capture_output=True, text=True)
        return told, {} if told.returncode else {name: np.load(out / f"{name}.npy") for name in outputs}

    def check(self, name, case, letter, free_library):
        model, feeds = case.model(letter, False)
        want, source = expected(model, feeds)
        told, library = self.compiled(model, "host")
        self.judge(name, f"{letter} is 0", case, letter, told, library, feeds, want, source)
        if free_library and letter in case.free:
            self.judge(name, f"{letter} becomes 0", case, letter, None, free_library, feeds, want, source)

    def judge(self, name, way, case, letter, told, library, feeds, want, source):
        if told and told.returncode in (1, 3) and letter in case.refused:
            return self.told(name, way, "refused")
        if told and told.returncode:
            return self.told(name, way, "failed", f"compile ends with {told.returncode}: {last_line(told)}")
        ran, got = self.ran(library, feeds, case.outputs)
        if ran.returncode and letter in case.refused and 0 < ran.returncode < 64:
            return self.told(name, way, "refused")
        if ran.returncode:
            return self.told(name, way, "failed", f"run ends with {ran.returncode}: {last_line(ran)}")
        if want is None:
            return self.told(name, way, "without a reference")
        wrong = [f"{o}: {text} ({source})" for o, w in zip(case.outputs, want) if (text := differs(got[o], np.asarray(w)))]
        if wrong and letter in case.refused and all("shape" not in w for w in wrong):   # the value of nothing: any
            return self.told(name, way, "without a reference")
        self.told(name, way, "failed" if wrong else "right", "; ".join(wrong))

    def free(self, name, case):
        """A library whose extents may all be 0; None: its operator wants them known, which it says."""
        model, _ = case.model("", True)
        told, library = self.compiled(model, "host", [option for letter in case.free for option in ("--dim", f"{letter}=0..16")])
        if told.returncode == 0:
            kept = self.folder / "free.so"
            library.rename(kept)
            return kept
        if told.returncode not in (1, 3):
            self.told(name, "free", "failed", f"compile ends with {told.returncode}: {last_line(told)}")
        return None

    def devices(self, name, case):
        for letter in case.letters:
            model, _ = case.model(letter, False)
            for target in DEVICES:
                told, _ = self.compiled(model, target)
                fine = told.returncode == 0 or (told.returncode in (1, 3) and letter in case.refused)
                self.told(name, target, "right" if fine else "failed", "" if fine else f"{letter} is 0: compile ends with {told.returncode}: {last_line(told)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--devices", action="store_true")
    args = parser.parse_args()
    families()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(args.tilewright.resolve(), pathlib.Path(folder))
        for name in args.only.split(",") if args.only else CASES:
            case = CASES[name]
            if args.devices:
                suite.devices(name, case)
                continue
            free = suite.free(name, case)
            for letter in case.letters:
                suite.check(name, case, letter, free)
    print(f"{len(CASES)} families: " + ", ".join(f"{count} {what}" for what, count in suite.counts.items()))
    return 1 if suite.counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
