#!/usr/bin/env python3
"""NaN, infinities, zeros, subnormal numbers and the ends of a type through operators: folded from constants and at run time, in vectors,
their tails and scalar code, on this machine and in emulators of others. Expected is what docs/reference/special-values.md says, in numpy.
Where onnx's reference evaluator or onnxruntime says otherwise stands in REFERENCE_DIFFERS and RUNTIME_DIFFERS, and nowhere else do they.

    special_values.py --tilewright BUILD/tilewright [--full] [--only TARGET,...] [--types f32,...] [--keep FOLDER]

Without --full: f32 on every target without a device, the other types on this machine.
"""
import argparse
import fnmatch
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
from onnx import TensorProto, helper, load, numpy_helper, save

for other in ("boards", "gpu", "micro"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / other))
import micro  # noqa: E402
from boards import qemu_version  # noqa: E402
from emulators import EMULATORS  # noqa: E402
from gpu_models import emulated_target  # noqa: E402
from special_cases import TYPES, cases, inputs_of  # noqa: E402

OPSET = 21
# Cases in which others say otherwise, in f32, as patterns of their names, and why
REFERENCE_DIFFERS = {
    "*Pool*": "compares, so that a NaN is lost where a number follows; an average leaves NaN out",
    "Pow_0_5": "numpy makes a root of it", "ScatterMax": "compares", "LogSoftmax*": "takes the logarithm of what softmax has rounded to 0",
    "ReduceLogSumExp*": "takes minus infinity from itself", "ResizeNearest": "multiplies neighbours by 0",
    "Cast_*INT*": "numpy's casts are the processor's", "Quantize_*": "the same", "PRelu": "infinity times 0 in the side that is not taken",
    "Gelu": "cancels for numbers below 0",
}
RUNTIME_DIFFERS = {
    "Reduce*": "a NaN comes through or not with its place", "ArgM*": "the same", "*Pool*": "the same", "TopK*": "the same", "Hardmax*": "the same",
    "ScatterMax": "the same", "ClipByNaN": "the same", "Cast_*INT*": "the processor's conversion, the least integer", "Cast_bf16": "Python has no such output",
    "Quantize_*": "NaN becomes the least integer", "Gelu": "cancels for numbers below 0",
}
SCALAR = """name: scalar
triple: x86_64-linux-gnu
cpu: x86-64-v2
cores: 1
caches: {l1: 32KiB, l2: 256KiB, l3: 8MiB}
vector_bits: 64
vector_registers: 16
"""
DEVICES = ["cuda", "opencl"]
FLUSHES = {"armv7-generic", "cortex-m55"}   # whose vectors take subnormal numbers of f32 for 0
NEVER_FLUSHED = {"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "Not", "Cast", "Sign", "IsNaN", "IsInf", "Where", "NonZero", "Neg", "Abs"}   # by operator
# (target, case): why it may differ
WAIVED = {(target, "PRelu"): "a subnormal number below 0 is multiplied by infinity as 0" for target in FLUSHES}
BOARD_TYPES = ["f32", "f16", "bf16"]   # a Cortex-M4 has no root of f64
NATIVE = ["host", "x86-64-v1", "x86-64-v2", "x86-64-v3", "x86-64-v4", "scalar"]


def model(path, type_name, folded):
    """Every case of the type as an output of its own; folded: of constants."""
    dtype, proto, _ = TYPES[type_name]
    chosen = [case for case in cases(type_name)]
    info = helper.make_tensor_value_info
    inputs = inputs_of(dtype)
    nodes, constants, outputs = [], [], []
    for case in chosen:
        made, given = case.nodes(proto, dtype)
        nodes += made
        constants += given
        outputs.append(info(case.name, case.proto or proto, np.shape(case.expected(inputs))))
    tensors = [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in inputs.items()]
    graph = helper.make_graph(nodes, "special", [] if folded else [info(name, t.data_type, t.dims) for name, t in zip(inputs, tensors)], outputs,
                              constants + (tensors if folded else []))
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10), path)
    return chosen, tensors


def differences(case, got, want, tolerance, other=None):
    """Places where they differ. other: what subnormal inputs that count as 0 give, where that is right too."""
    want = np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if want.dtype.kind in "biu":
        off = got.astype(np.int64) != want.astype(np.int64) if want.dtype != np.uint64 else got != want
        if other is not None:
            off &= got != other
    else:
        least = float(np.finfo(want.dtype).smallest_normal) if want.dtype.kind == "f" else 2.0 ** -126
        g, w = got.astype(np.float64), want.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            near = abs(g - w) <= (0 if case.exact else tolerance * abs(w) + least)
            if other is not None:
                other = other.astype(np.float64)
                near |= (abs(g) < least) & (abs(w) < least) | (g == other) | np.isnan(g) & np.isnan(other) | (abs(g - other) <= tolerance * abs(other) + least)
        off = ~((g == w) | np.isnan(g) & np.isnan(w) | near)
    if not off.any():
        return ""
    at = [int(i) for i in np.flatnonzero(off.ravel())[:4]]
    return f"{int(off.sum())} of {off.size}, first at {at}: {got.ravel()[at].tolist()}, expected {want.ravel()[at].tolist()}"


def flushed(target, type_name, case, inputs):
    """What the case gives where subnormal inputs count as 0; None: they do not."""
    if target not in FLUSHES or type_name not in ("f32", "bf16") or case.op in NEVER_FLUSHED:
        return None
    with np.errstate(invalid="ignore"):
        return np.asarray(case.expected({name: np.where(abs(x) < 2.0 ** -126, 0 * x, x) for name, x in inputs.items()}))


def from_npy(path, want):
    got = np.load(path)
    return got.view(want.dtype) if got.dtype.itemsize == want.dtype.itemsize and got.dtype != want.dtype else got


def check(tilewright, work, target, description, emulator, type_name, folded):
    """Number of wrong outputs, number of outputs."""
    path = work / "special.onnx"
    chosen, tensors = model(path, type_name, folded)
    dtype, _, tolerance = TYPES[type_name]
    library, out = work / "special.so", work / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    on_device = target in DEVICES
    done = subprocess.run([tilewright, "compile", path, "-t", description, *([] if on_device else ["--with-runner"]), "-o", library], capture_output=True, text=True)
    if done.returncode:
        print(f"FAIL {target} {type_name}: compile: {done.stderr[-2000:]}")
        return len(chosen), len(chosen)
    words = []
    for tensor in [] if folded else tensors:
        (work / f"{tensor.name}.pb").write_bytes(tensor.SerializeToString())
        words += ["--input", f"{tensor.name}={work / tensor.name}.pb"]
    program = [tilewright, "run", library] if on_device else [*emulator, library.with_suffix(".run"), "run"]
    done = subprocess.run([*program, *words, "--output-dir", out], capture_output=True, text=True)
    if done.returncode:
        print(f"FAIL {target} {type_name}: run: {done.stdout[-500:]}{done.stderr[-2000:]}")
        return len(chosen), len(chosen)
    bad = 0
    for case in chosen:
        if (target, case.name) in WAIVED:
            continue
        want = np.asarray(case.expected(inputs_of(dtype)))
        other = flushed(target, type_name, case, inputs_of(dtype))
        if said := differences(case, from_npy(out / f"{case.name}.npy", want), want, tolerance, other):
            bad += 1
            print(f"FAIL {target} {type_name} {'folded' if folded else 'at run time'} {case.name}: {said}")
    return bad, len(chosen)


def check_oracles(work, type_name):
    """Number of cases in which another evaluator says something else and that is not in its list."""
    from onnx.reference import ReferenceEvaluator
    import onnxruntime
    path = work / "oracle.onnx"
    chosen, tensors = model(path, type_name, False)
    dtype, _, tolerance = TYPES[type_name]
    given = {t.name: numpy_helper.to_array(t) for t in tensors}
    onnxruntime.set_default_logger_severity(4)
    bad = 0
    for name, listed, run in (("onnx's reference", REFERENCE_DIFFERS, lambda m: ReferenceEvaluator(m).run(None, given)),
                              ("onnxruntime", RUNTIME_DIFFERS, lambda m: run_onnxruntime(onnxruntime, m, given))):
        for case in chosen:
            one = load(path)
            keep_output(one, case.name)
            try:
                with np.errstate(all="ignore"):
                    got = np.asarray(run(one)[0])
                said = differences(case, got, np.asarray(case.expected(inputs_of(dtype))), max(tolerance, 1e-5))
            except Exception as e:  # it cannot run this one
                said = f"not there: {str(e)[:150]}"
            if said and not any(fnmatch.fnmatch(case.name, pattern) for pattern in listed):
                bad += 1
                print(f"FAIL {name}, {case.name}: {said}")
    return bad


def check_instructions(tilewright, work):
    """What NaN costs: nothing in clamps, a few tests a row in softmax, less than a test an element in pools."""
    bad = 0
    for name, shape, made, attributes, most in (("Relu", [8, 512], [8, 512], {}, 0), ("Softmax", [8, 512], [8, 512], {}, .5),
                                                ("MaxPool", [1, 64, 32, 32], [1, 64, 16, 16], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}, .75)):
        info = helper.make_tensor_value_info
        graph = helper.make_graph([helper.make_node(name, ["x"], ["y"], **attributes)], "g", [info("x", TensorProto.FLOAT, shape)], [info("y", TensorProto.FLOAT, made)])
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10), work / "one.onnx")
        for target in ("x86-64-v3", "x86-64-v4"):
            code = subprocess.run([tilewright, "compile", work / "one.onnx", "-t", target, "--emit", "asm"], capture_output=True, text=True, check=True).stdout
            maxima, tests = code.count("vmaxps"), code.count("vcmpunordps") + code.count("vcmpordps")
            wrong = tests > most * maxima
            bad += wrong
            print(f"{'FAIL' if wrong else 'ok  '} {target} {name}: {maxima} maxima, {tests} tests of NaN")
    return bad


def run_onnxruntime(onnxruntime, m, given):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(m.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: given[i.name] for i in session.get_inputs()})


def keep_output(m, name):
    """The model with this output, and the nodes that make it."""
    graph, wanted, nodes = m.graph, {name}, []
    for node in reversed(graph.node):
        if wanted & set(node.output):
            nodes.insert(0, node)
            wanted |= set(node.input)
    del graph.node[:]
    graph.node.extend(nodes)
    kept = [o for o in graph.output if o.name == name]
    del graph.output[:]
    graph.output.extend(kept)
    for field in (graph.input, graph.initializer):
        left = [v for v in field if v.name in wanted]
        del field[:]
        field.extend(left)


def check_board(tilewright, work, board, type_name):
    """On a microcontroller, which QEMU emulates: one input that holds all, one output of all, both in f32. Numbers of wrong outputs and of outputs."""
    dtype, proto, tolerance = TYPES[type_name]
    inputs = inputs_of(dtype, few=True)
    chosen = [case for case in cases(type_name) if case.fits_f32()]
    nodes, constants, at = [helper.make_node("Cast", ["given"], ["all"], to=proto)], [], 0
    for name, value in inputs.items():
        constants += [numpy_helper.from_array(np.array(v, np.int64), f"{name}_{i}") for i, v in enumerate(([at], [at + value.size], value.shape))]
        nodes += [helper.make_node("Slice", ["all", f"{name}_0", f"{name}_1"], [f"{name}_flat"]), helper.make_node("Reshape", [f"{name}_flat", f"{name}_2"], [name])]
        at += value.size
    constants.append(numpy_helper.from_array(np.array([-1]), "flat"))
    for case in chosen:
        made, given = case.nodes(proto, dtype)
        nodes += [*made, helper.make_node("Cast", [case.name], [f"{case.name}_real"], to=TensorProto.FLOAT),
                  helper.make_node("Reshape", [f"{case.name}_real", "flat"], [f"{case.name}_flat"])]
        constants += given
    nodes.append(helper.make_node("Concat", [f"{case.name}_flat" for case in chosen], ["y"], axis=0))
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "special", [info("given", TensorProto.FLOAT, [at])], [info("y", TensorProto.FLOAT, [sum(np.size(case.expected(inputs)) for case in chosen)])], constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10), work / "board.onnx")
    expected = [np.asarray(case.expected(inputs)) for case in chosen]
    words = micro.Firmware(tilewright, work, board, work / "board.onnx", "board").run(
        np.concatenate([v.ravel() for v in inputs.values()]).astype(np.float32).view(np.int32), sum(e.size for e in expected))
    got = np.array(words[:-2], np.uint32).view(np.float32)
    bad = at = 0
    for case, want in zip(chosen, expected):
        part = got[at:at + want.size].reshape(want.shape)
        at += want.size
        if (board, case.name) in WAIVED:
            continue
        if said := differences(case, part.astype(want.dtype), want, tolerance, flushed(board, type_name, case, inputs)):
            bad += 1
            print(f"FAIL {board} {type_name} {case.name}: {said}")
    return bad, len(chosen)


def targets(tilewright, work):
    """Name -> (description, command that runs its programs)."""
    (work / "scalar.yaml").write_text(SCALAR)
    flags = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    found = {name: (work / "scalar.yaml" if name == "scalar" else name, []) for name in NATIVE
             if not (name == "x86-64-v4" and "avx512vl" not in flags or name == "x86-64-v3" and "avx2" not in flags)}
    for name, command in {**EMULATORS, "rv64gcv": ["qemu-riscv64", "-cpu", "rv64,v=true,vlen=128"]}.items():
        if shutil.which(command[0]):
            found[name] = (name, command)
        else:
            print(f"skipped: {name}, no {command[0]}")
    if cuda := emulated_target(tilewright, work):
        found["cuda"] = (cuda, [])
    if any(pathlib.Path("/etc/OpenCL/vendors").glob("*.icd")):
        os.environ.setdefault("POCL_CACHE_DIR", str(work))
        found["opencl"] = ("opencl-generic", [])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", help="targets, with commas between them")
    parser.add_argument("--types", help="element types, with commas between them")
    parser.add_argument("--keep", type=pathlib.Path, help="where the models stay")
    args = parser.parse_args()
    tilewright = args.tilewright.resolve()
    bad = count = 0
    with tempfile.TemporaryDirectory() as folder:
        work = args.keep or pathlib.Path(folder)
        work.mkdir(exist_ok=True)
        chosen = targets(tilewright, work)
        if args.only:
            chosen = {name: chosen[name] for name in args.only.split(",") if name not in micro.MACHINES}
        else:
            if not args.full:
                print(f"left out: {', '.join(name for name in DEVICES if chosen.pop(name, None))}; --full runs them")
            bad += check_oracles(work, "f32") + check_instructions(tilewright, work)
        for target, (description, emulator) in chosen.items():
            for type_name in args.types.split(",") if args.types else TYPES if args.full or target == "host" else ["f32"]:
                if target == "rv64gcv" and type_name in ("f64", "f16") and qemu_version(emulator[0]) < (8, 1):
                    print(f"left out: {target} {type_name}, this qemu is older than 8.1, and ends itself on its vectors")
                    continue
                for folded in (False, True) if target == "host" else (False,):   # what is folded does not depend on the target
                    begin = time.time()
                    wrong, outputs = check(tilewright, work, target, description, emulator, type_name, folded)
                    bad, count = bad + wrong, count + outputs
                    print(f"{'FAIL' if wrong else 'ok  '} {target:16} {type_name:4} {'folded' if folded else 'at run time':11} {outputs} outputs, "
                          f"{wrong} wrong, {time.time() - begin:.1f} s", flush=True)
        for board in [b for b in micro.MACHINES if not args.only or b in args.only.split(",")] if shutil.which("qemu-system-arm") else []:
            for type_name in args.types.split(",") if args.types else BOARD_TYPES if args.full else ["f32"]:
                begin = time.time()
                wrong, outputs = check_board(tilewright, work, board, type_name)
                bad, count = bad + wrong, count + outputs
                print(f"{'FAIL' if wrong else 'ok  '} {board:16} {type_name:4} at run time {outputs} outputs, {wrong} wrong, {time.time() - begin:.1f} s", flush=True)
    if not args.full:
        print("types other than f32 on other targets: --full runs them")
    print(f"special values: {count} outputs, {bad} wrong")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
