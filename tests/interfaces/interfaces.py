#!/usr/bin/env python3
"""What programs call: the Python module against onnxruntime, runs that are cancelled, a thousand contexts on 16 threads
(the host under the thread sanitizer), runs that make no system call, and the names in headers and libraries.

    interfaces.py --tilewright BUILD/tilewright
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "runtime"))
import tilewright  # noqa: E402

DIGITS = ROOT / "examples/digits"


def build(args, model, folder, *flags):
    output = folder / f"{model.stem}.so"
    subprocess.run([args.tilewright, "compile", model, "-o", output, *flags], check=True, capture_output=True, text=True)
    return output


def save(folder, name, nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, [numpy_helper.from_array(v, n) for n, v in constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return path


def value(name, dtype, *dims):
    return helper.make_tensor_value_info(name, dtype, dims)


def same(args, model, folder, *arrays):
    """The module's outputs are onnxruntime's."""
    compiled = tilewright.Model(build(args, model, folder))
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    for array in arrays:
        expected = session.run(None, {session.get_inputs()[0].name: array})
        made = compiled(array)
        for x, y in zip(expected, made if isinstance(made, tuple) else (made,)):
            assert x.shape == y.shape and x.dtype == y.dtype, (x.shape, y.shape, x.dtype, y.dtype)
            assert np.allclose(x, y, rtol=1e-4, atol=1e-4)
    return compiled


def refused(call, kind, *words):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words), error
        return error
    raise AssertionError(f"not refused: {words}")


def check_python(args, folder):
    rng = np.random.default_rng(1)
    digits = same(args, DIGITS / "digits.onnx", folder, rng.random((1, 1, 8, 8), np.float32))
    batch = same(args, DIGITS / "digits_batch.onnx", folder, *(rng.random((n, 1, 8, 8), np.float32) for n in (1, 3, 17)))
    image = rng.random((1, 1, 8, 8), np.float32)
    assert (digits(**{digits.inputs[0].name: image[..., ::-1]}) == digits(np.ascontiguousarray(image[..., ::-1]))).all()
    assert batch.symbols == ["batch"] and batch.inputs[0].dims[0] == "batch", batch.inputs
    assert len(digits.profile(image)) == len(digits.manifest["calls"]), digits.manifest.keys()
    refused(lambda: digits(image[:, :, :7]), tilewright.Error, "dim 2 is 7, expected 8")
    refused(lambda: digits(image.astype(np.complex64)), TypeError, "not complex64")
    refused(lambda: digits(image.astype(np.float64)), TypeError, "not float64", ".astype(np.float32)")
    assert (digits(image.tolist()) == digits(image)).all()   # numbers of Python have no type
    refused(lambda: digits(image, image), TypeError, "takes")
    nodes = [helper.make_node("NonZero", ["x"], ["where"]), helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0)]
    same(args, save(folder, "where", nodes, [value("x", TensorProto.FLOAT, "n", 4)],
                    [value("where", TensorProto.INT64, 2, "found"), value("sum", TensorProto.FLOAT)]), folder,
         *(np.float32(rng.random((n, 4)) > 0.5) for n in (1, 5)), np.zeros((2, 4), np.float32))
    print("ok   Python: digits, a free batch, outputs whose size data decide, a scalar; what does not fit is refused")


def chain(folder, count, size):
    """Many products in a row."""
    w = np.eye(size, dtype=np.float32)
    nodes = [helper.make_node("MatMul", [f"v{i}" if i else "x", f"w{i % 2}"], [f"v{i + 1}"]) for i in range(count)]
    return save(folder, "chain", nodes, [value("x", TensorProto.FLOAT, size, size)],
                [value(f"v{count}", TensorProto.FLOAT, size, size)], [("w0", w), ("w1", w)])


def loop(folder, size):
    """As many products as the run asks for, in a Loop."""
    body = helper.make_graph([helper.make_node("MatMul", ["v", "w"], ["next"]), helper.make_node("Identity", ["c"], ["go"])], "body",
                             [value("i", TensorProto.INT64), value("c", TensorProto.BOOL), value("v", TensorProto.FLOAT, size, size)],
                             [value("go", TensorProto.BOOL), value("next", TensorProto.FLOAT, size, size)])
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)]
    return save(folder, "loop", nodes, [value("x", TensorProto.FLOAT, size, size), value("n", TensorProto.INT64)],
                [value("y", TensorProto.FLOAT, size, size)], [("w", np.eye(size, dtype=np.float32))])


def check_cancel(args, folder):
    size = 256
    x = np.arange(size * size, dtype=np.float32).reshape(size, size) / size
    for path, long, short in ((chain(folder, 3000, size), (x,), (x,)), (loop(folder, size), (x, np.int64(10**6)), (x, np.int64(3)))):
        library = build(args, path, folder)
        for threads in (1, 2):
            model = tilewright.Model(library, threads)
            model.cancel()   # nothing runs
            ended = []

            def run():
                started.set()
                ended.append(refused(lambda: model(*long), tilewright.Error, "cancelled", "cancel ended the run"))

            started = threading.Event()
            thread = threading.Thread(target=run)
            thread.start()
            started.wait()
            begin = time.monotonic()
            while thread.is_alive() and time.monotonic() - begin < 60:   # the run may not have begun yet
                time.sleep(0.005)
                model.cancel()
            thread.join(timeout=1)
            assert ended and ended[0].status == tilewright.CANCELLED, f"{path.name}: not cancelled"
            assert (model(*short) == x).all(), f"{path.name}: the run behind a cancelled one"
    print("ok   cancel: a list of calls and a loop, of 1 and 2 threads; the next run is right")


def compile_c(folder, name, *flags):
    program = folder / name
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", *flags, "-I", ROOT, HERE / f"{name}.c", "-o", program,
                    "-ldl", "-lpthread"], check=True)
    return program


def check_contexts(args, folder):
    program = compile_c(folder, "contexts", "-g", "-fsanitize=thread")
    done = subprocess.run([program, folder / "digits.so"], capture_output=True, text=True)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stdout + done.stderr[:3000]
    print("ok   1,000 contexts on 16 threads: equal bytes")


def check_quiet(args, folder):
    program, trace = compile_c(folder, "quiet"), folder / "trace"
    done = subprocess.run(["strace", "-f", "-o", trace, program, folder / "digits.so"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    calls = trace.read_text().splitlines()
    begin, end = (next(i for i, line in enumerate(calls) if f'"runs {what}' in line) for what in ("begin", "end"))
    assert end == begin + 1, "\n".join(calls[begin:end + 1])
    print("ok   20 runs of one thread make no system call")


def check_weights(args, folder):
    """Weights apart: found beside the library or where they are said to be, and no others are taken."""
    x, apart = np.random.default_rng(2).random((1, 1, 8, 8), np.float32), folder / "apart.weights"
    inside = tilewright.Model(folder / "digits.so")(x)
    library = folder / "apart.so"
    subprocess.run([args.tilewright, "compile", DIGITS / "digits.onnx", "-o", library, "--weights", apart], check=True, capture_output=True)
    first = library.read_bytes(), apart.read_bytes()
    subprocess.run([args.tilewright, "compile", DIGITS / "digits.onnx", "-o", library, "--weights", apart], check=True, capture_output=True)
    assert first == (library.read_bytes(), apart.read_bytes()), "two builds differ"
    model = tilewright.Model(library)
    assert (model(x) == inside).all() and model._api.check_integrity() == 0
    del model
    verify = [args.tilewright, "verify", library, DIGITS / "digits.onnx", "--random", "1"]
    subprocess.run(verify, check=True, capture_output=True)
    told = subprocess.run([args.tilewright, "inspect", library], check=True, capture_output=True, text=True).stdout
    assert "in 'apart.weights'" in told, told
    elsewhere = apart.rename(folder / "elsewhere.weights")
    refused(lambda: tilewright.Model(library), tilewright.Error, str(apart), "cannot be opened")
    assert (tilewright.Model(library, weights=elsewhere)(x) == inside).all()
    good = elsewhere.read_bytes()
    for spoilt, why in ((b"ELF" + good[3:], "are no file of weights"), (good[:40] + b"?" + good[41:], "another compile"),
                        (good[:-1], "truncated"), (b"", "are no file of weights")):
        apart.write_bytes(spoilt)
        assert refused(lambda: tilewright.Model(library), tilewright.Error, str(apart), why).status == 11
        done = subprocess.run(verify, capture_output=True, text=True)
        assert done.returncode == 1 and str(apart) in done.stderr and why in done.stderr, done.stderr
    apart.write_bytes(good[:-2] + bytes([good[-2] ^ 1]) + good[-1:])   # create does not read them all
    assert tilewright.Model(library)._api.check_integrity() == 11
    done = subprocess.run(verify, capture_output=True, text=True)
    assert done.returncode == 1 and str(apart) in done.stderr and "are damaged" in done.stderr, done.stderr
    print("ok   weights apart: found, shared, refused when they are others; two builds are equal")


def check_file_names(args, folder):
    """A library's bytes know its own name, and not the model's file."""
    libraries = []
    for stem in ("a", "a-model-of-another-name"):
        model = folder / stem / f"{stem}.onnx"
        model.parent.mkdir()
        shutil.copy(DIGITS / "digits.onnx", model)
        subprocess.run([args.tilewright, "compile", model, "-o", model.parent / "lib.so"], check=True, capture_output=True)
        libraries.append((model.parent / "lib.so").read_bytes())
        assert tilewright.Model(model.parent / "lib.so").name == "lib"
    assert libraries[0] == libraries[1], "the model's file name is in the library"
    print("ok   a model under two file names: equal bytes")


FREE = """#include <stdio.h>
#include "free.h"
int main(void) {
  enum { kRows = 3, kPixels = DIGITS_INPUT_IMAGE_DIM_2 * DIGITS_INPUT_IMAGE_DIM_3 };
  static digits_input_image_t image[kRows * kPixels];
  static digits_output_logits_t logits[kRows * DIGITS_OUTPUT_LOGITS_DIM_1];
  int64_t dims[DIGITS_OUTPUT_LOGITS_RANK];
  digits_io io = {0};
  tw_context* context = NULL;
  const tw_api* api = digits_query(TW_ABI_VERSION);
  io.batch = kRows;
  io.image = image;
  io.logits = logits;
  io.logits_bytes = sizeof logits;
  digits_output_logits_dims(api, &io, dims);
  if (!api || dims[0] != kRows || dims[1] != 10 || digits_output_logits_bytes(api, &io) != sizeof logits) return 1;
  if (digits_arena_bytes(api, &io) != api->arena_bytes(dims)) return 2;   /* the first extent is the one size */
  if (digits_create(api, 1, &context) != TW_OK || digits_run(api, context, &io) != TW_OK) return 3;
  api->destroy(context);
  return logits[0] != logits[10] || logits[0] == 0;   /* equal rows */
}
"""


def check_prefix(args, folder):
    """The names of a header begin as the caller says; sizes are functions. No line is longer than a person reads."""
    flags = ["--prefix", "digits", "--name", "other"]
    made = subprocess.run([args.tilewright, "compile", DIGITS / "digits_batch.onnx", "-o", folder / "free.so", *flags], check=True,
                          capture_output=True, text=True)
    header = (folder / "free.h").read_text()
    longest = max(made.stdout.splitlines() + header.splitlines(), key=len)
    assert len(longest) <= 200, longest
    (folder / "free.c").write_text(FREE)
    subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", folder / "free.c", folder / "free.so", f"-Wl,-rpath,{folder}",
                    "-o", folder / "free"], check=True)
    done = subprocess.run([folder / "free"])
    assert done.returncode == 0, done.returncode
    for prefix, why in (("TW", "own"), ("2x", "C identifier"), ("a-b", "C identifier")):
        done = subprocess.run([args.tilewright, "compile", DIGITS / "digits.onnx", "-o", folder / "no.so", "--prefix", prefix],
                              capture_output=True, text=True)
        assert done.returncode == 1 and why in done.stderr and not (folder / "no.so").exists(), done.stderr
    print("ok   a header of free sizes with a prefix of one's own")


PATHS = {"Nehalem": "x86-64-v2", "Haswell": "x86-64-v3"}   # qemu's processors
ASK = """import sys
sys.path.insert(0, sys.argv[1])
from tilewright import Model
import numpy as np
model = Model(sys.argv[2])
np.save(sys.argv[3], model(np.load(sys.argv[4])))
print(model._api.target.decode(), len(model.profile(np.load(sys.argv[4]))), len(model.manifest["calls"]))
"""


def check_fat(args, folder):
    """A library for three levels of x86-64 takes the one that the processor has: this one's, and those that qemu makes."""
    library = folder / "fat.so"
    done = subprocess.run([args.tilewright, "compile", DIGITS / "digits.onnx", "-t", "x86-64-fat", "-o", library],
                          check=True, capture_output=True, text=True)
    assert "of them shared" in done.stdout, done.stdout
    single = {}
    for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
        single[level] = folder / f"{level}.so"
        subprocess.run([args.tilewright, "compile", DIGITS / "digits.onnx", "-t", level, "-o", single[level]], check=True, capture_output=True)
    told = subprocess.run([args.tilewright, "inspect", library], check=True, capture_output=True, text=True).stdout
    assert "path    x86-64-v4:" in told and "path    otherwise:" in told, told
    x = folder / "x.npy"
    np.save(x, np.random.default_rng(3).random((1, 1, 8, 8), np.float32))
    if not subprocess.run([args.tilewright, "run", library, "--random", "1"], capture_output=True).returncode == 0:
        raise AssertionError("does not run here")
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    here = "x86-64-v4" if "avx512vl" in flags and "avx512bw" in flags else "x86-64-v3" if "avx2" in flags else "x86-64-v2"
    # numpy chooses by the emulated processor, whatever is set for this one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    ways = [([], here), *((["qemu-x86_64", "-cpu", cpu], level) for cpu, level in PATHS.items())]
    for emulator, level in ways:
        said = subprocess.run([*emulator, sys.executable, "-c", ASK, ROOT / "runtime", library, folder / "fat.npy", x], env=environment,
                              capture_output=True, text=True)
        assert said.returncode == 0, said.stderr[-2000:]
        target, profiled, listed = said.stdout.split()
        assert target == level and profiled == listed, (emulator, said.stdout)
        subprocess.run([*emulator, sys.executable, "-c", ASK, ROOT / "runtime", single[level], folder / "one.npy", x], env=environment,
                       check=True, capture_output=True)
        assert np.load(folder / "fat.npy").tobytes() == np.load(folder / "one.npy").tobytes(), f"{level}: other bytes than its own library"
    bench = subprocess.run([args.tilewright, "profile", library, "--threads", "1", "--seconds", "0.1"], capture_output=True, text=True)
    assert bench.returncode == 0, bench.stderr
    subprocess.run([args.tilewright, "compile", ROOT / "examples/digits/digits_batch.onnx", "-t", "x86-64-fat", "-o", folder / "batch.so"],
                   check=True, capture_output=True)
    told = json.loads(subprocess.run([args.tilewright, "inspect", folder / "batch.so", "--json"], check=True, capture_output=True).stdout)["manifest"]
    examples = [path["example"] for path in (told, *told["paths"])]
    assert len(examples) == 3 and all(example == {"batch": 1} for example in examples), examples
    print("ok   a fat library:", ", ".join(level for _, level in ways), "give the bytes of libraries of their own")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for check in (check_python, check_cancel, check_contexts, check_quiet, check_weights, check_fat, check_file_names, check_prefix):
            check(args, folder)


if __name__ == "__main__":
    main()
