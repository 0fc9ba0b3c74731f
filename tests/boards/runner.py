#!/usr/bin/env python3
"""What compile --with-runner writes: the runner gives the results of `tilewright run`, reads what it says that it reads, and
refuses the rest by name. On this machine, and where they are installed in the emulators of the others.

    runner.py --tilewright BUILD/tilewright
"""
import argparse
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DIGITS, BATCH = ROOT / "examples/digits/digits.onnx", ROOT / "examples/digits/digits_batch.onnx"
MACHINES = {"host": [], "aarch64-generic": ["qemu-aarch64"], "armv7-generic": ["qemu-arm", "-cpu", "max"],
            "rv64gc": ["qemu-riscv64", "-cpu", "rv64,v=false"]}
failures = 0


def check(good, what):
    global failures
    failures += not good
    if not good:
        print(f"FAIL {what}")


class Runner:
    def __init__(self, tilewright, model, target, work, *flags):
        self.tilewright, self.library, self.emulator = tilewright, work / f"{model.stem}-{target}.so", MACHINES[target]
        made = subprocess.run([tilewright, "compile", model, "-t", target, "--with-runner", "-o", self.library, *flags], capture_output=True,
                              text=True)
        check(made.returncode == 0, f"{target}: compile: {made.stderr}")
        self.program = self.library.with_suffix(".run")
        check(str(self.program) in made.stdout, f"{target}: the summary names the runner")

    def __call__(self, *words, env=None):
        return subprocess.run([*self.emulator, self.program, *words], capture_output=True, text=True, env=env)

    def expect(self, words, status, text):
        got = self(*words)
        check(got.returncode == status and text in got.stdout + got.stderr,
              f"{self.library.name} {' '.join(map(str, words))}: {got.returncode}, expected {status} and '{text}': {got.stdout}{got.stderr}")
        return got


def same_as_run(runner, tilewright_output, work):
    """Results of seeded inputs, on one thread and on three."""
    for threads in ("1", "3"):
        out = work / "out"
        runner.expect(["run", "--random", "7", "--threads", threads, "-d", out], 0, "logits: f32[1, 10]  min ")
        got = np.load(out / "logits.npy")
        check(np.abs(got - tilewright_output).max() <= 1e-4 * np.ptp(tilewright_output), f"{runner.library.name}: results of {threads}")


def forms_of_inputs(runner, work):
    """.npy, .pb with raw and with typed data, bytes alone, and a folder with results to verify."""
    image = np.load(ROOT / "examples/digits/test_images.npy")[3:4]
    np.save(work / "image.npy", image)
    image.tofile(work / "image.raw")
    (work / "image.pb").write_bytes(numpy_helper.from_array(image).SerializeToString())
    typed = helper.make_tensor("image", TensorProto.FLOAT, image.shape, image.ravel().tolist())
    (work / "typed.pb").write_bytes(typed.SerializeToString())
    lines = {runner("run", "-i", f"image={work / name}").stdout for name in ("image.npy", "image.raw", "image.pb", "typed.pb")}
    lines.add(runner("run", "--input", work / "image.npy").stdout)
    check(len(lines) == 1 and "argmax" in next(iter(lines)), f"the same of all forms: {lines}")
    data = work / "data"
    data.mkdir(exist_ok=True)
    np.save(data / "input_0.npy", image)
    runner.expect(["run", "--data", data, "-d", data], 0, "logits")
    logits = np.load(data / "logits.npy")
    (data / "output_0.pb").write_bytes(numpy_helper.from_array(logits).SerializeToString())
    runner.expect(["verify", "--data", data], 0, "logits: max abs 0, max rel 0  ok")
    (data / "output_0.pb").unlink()
    logits[0, 4] += 1e-3 * np.ptp(logits)
    np.save(data / "output_0.npy", logits)
    runner.expect(["verify", "--data", data], 4, "worst at 4")
    runner.expect(["verify", "--data", data, "--tolerance", "1e-2"], 0, "ok")
    np.save(data / "output_0.npy", logits[0])
    runner.expect(["verify", "--data", data], 4, "has shape [1, 10], expected [10]")
    runner.expect(["bench", "--runs", "5", "--warmup", "0"], 0, "ms in 5 runs")


def no_elements(tilewright, target, work):
    """Tensors of 0 elements: as inputs of all forms, as results and to compare with."""
    shapes = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [0, 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "empty", shapes[:1], shapes[1:])
    model, data, empty = work / "empty.onnx", work / "empty", np.zeros((0, 3), np.float32)
    model.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    data.mkdir(exist_ok=True)
    runner = Runner(tilewright, model, target, work)
    np.save(work / "empty.npy", empty)
    (work / "empty.raw").write_bytes(b"")
    (work / "empty.pb").write_bytes(numpy_helper.from_array(empty).SerializeToString())
    for words in (["-i", f"x={work / 'empty.npy'}"], ["-i", f"x={work / 'empty.pb'}"], ["-i", f"x={work / 'empty.raw'}"], ["--random", "1"]):
        runner.expect(["run", *words, "-d", data], 0, "y: f32[0, 3]")
        check(np.load(data / "y.npy").shape == (0, 3), f"{target}: the result of {words}")
    np.save(data / "input_0.npy", empty)
    np.save(data / "output_0.npy", empty)
    runner.expect(["verify", "--data", data], 0, "y: max abs 0, max rel 0  ok")
    (work / "number.raw").write_bytes(b"1234")
    runner.expect(["run", "-i", f"x={work / 'number.raw'}"], 1, "its size is not that of its shape")


def refusals(runner, work):
    np.save(work / "short.npy", np.zeros((1, 1, 8, 7), np.float32))
    np.save(work / "wrong.npy", np.zeros((1, 1, 8, 8), np.float64))
    np.save(work / "fortran.npy", np.asfortranarray(np.zeros((1, 1, 8, 8), np.float32).transpose(0, 1, 3, 2)[..., ::1]))
    good = (work / "image.npy").read_bytes()
    (work / "cut.npy").write_bytes(good[:-3])
    (work / "huge.npy").write_bytes(good.replace(b"(1, 1, 8, 8)", b"(9,9,9999,8)"))
    (work / "damaged.pb").write_bytes(b"\x08\x01\xff\xff\xff")
    (work / "short.raw").write_bytes(b"1234")
    for words, status, text in (
            ([], 2, "usage:"), (["walk"], 2, "there is no command walk"), (["run", "--speed", "1"], 2, "there is no flag --speed"),
            (["run", "--threads"], 2, "a value is expected behind --threads"), (["run", "--threads", "two"], 2, "a number is expected"),
            (["run"], 1, "no data for the input image"), (["verify"], 2, "verify needs --data"),
            (["run", "-i", f"picture={work / 'image.npy'}"], 1, "with the name of an input"),
            (["run", "-i", work / "none.npy"], 1, "none.npy"), (["run", "-i", f"image={work / 'none.npy'}"], 5, "cannot read"),
            (["run", "-i", f"image={work / 'short.npy'}"], 1, "expected 8"), (["run", "-i", f"image={work / 'wrong.npy'}"], 1, "expected f32"),
            (["run", "-i", f"image={work / 'cut.npy'}"], 1, "its size is not that of its shape"),
            (["run", "-i", f"image={work / 'huge.npy'}"], 1, "its size is not that of its shape"),
            (["run", "-i", f"image={work / 'damaged.pb'}"], 1, "no ONNX tensor"),
            (["run", "-i", f"image={work / 'short.raw'}"], 1, "its size is not that of its shape"),
            (["run", work / "none.so", "--random", "1"], 5, "cannot open the library"),
            (["run", work / "image.npy", "--random", "1"], 1, "not a library"),
            (["run", "--random", "1", "-d", "/proc/none"], 5, "cannot write /proc/none/logits.npy"),
            (["verify", "--data", work], 5, "to compare with")):
        runner.expect(words, status, text)
    library = runner.library.read_bytes()
    for size in (40, 64, 300, len(library) // 2, len(library) - 5000):
        (work / "cut.so").write_bytes(library[:size])
        got = runner("run", work / "cut.so", "--random", "1")
        check(got.returncode == 1 and "cut.so" in got.stderr, f"cut to {size}: {got.returncode} {got.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    tilewright = parser.parse_args().tilewright.resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        expected = None
        for target, emulator in MACHINES.items():
            if emulator and not shutil.which(emulator[0]):
                print(f"skipped: {target}, no {emulator[0]}")
                continue
            if target == "host" and platform.machine() not in ("x86_64", "aarch64", "riscv64"):
                continue
            runner = Runner(tilewright, DIGITS, target, work)
            if expected is None:
                subprocess.run([tilewright, "run", runner.library, "--random", "7", "-d", work], check=True, capture_output=True)
                expected = np.load(work / "logits.npy")
            same_as_run(runner, expected, work)
            forms_of_inputs(runner, work)
            refusals(runner, work)
            no_elements(tilewright, target, work)
            # Weights apart, found beside the library; a free dimension; no environment
            Runner(tilewright, DIGITS, target, work, "--weights", work / "digits.weights").expect(["run", "--random", "7"], 0, "logits")
            batch = Runner(tilewright, BATCH, target, work)
            batch.expect(["run", "--random", "7"], 1, "is free: give --dim")
            batch.expect(["run", "--random", "7", "--dim", "batch=3"], 0, "[3, 10]")
            check(batch("run", "--random", "7", "--dim", "batch=3", env={}).returncode == 0, "without an environment")
            print(f"ok   {target}, runner of {runner.program.stat().st_size} bytes", flush=True)
        for flags, text in ((["--emit", "obj", "-o", work / "a.o"], "--emit so"), (["-o", work / "library"], "NAME.run loads NAME.so"),
                            (["-t", "opencl-generic", "-o", work / "a.so"], "device")):
            got = subprocess.run([tilewright, "compile", DIGITS, "--with-runner", *flags], capture_output=True, text=True)
            check(got.returncode != 0 and text in got.stderr, f"{flags}: {got.returncode} {got.stderr}")
    print(f"{failures} failures")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
