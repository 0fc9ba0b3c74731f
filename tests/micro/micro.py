#!/usr/bin/env python3
"""Firmware around compiled models, on microcontrollers that QEMU emulates: bare metal, the start-up code and the linker
scripts of examples/microcontroller, 256 KiB of RAM. Outputs must be those of the same model on this machine, and what
`compile` says of flash and RAM what the linker's map has. Also freestanding objects for other machines: what they leave
undefined, and that building twice gives the same bytes.

    micro.py --tilewright BUILD/tilewright [--only BOARD] [--figures]
"""
import argparse
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from networks import counted_by_data, keyword_network, save, thirteenth  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BOARD = ROOT / "examples/microcontroller"
DIGITS = ROOT / "examples/digits"
MACHINES = {  # the emulated board, what clang calls its processor, and nanoseconds of a clock
    "cortex-m4": ("mps2-an386", "thumbv7em-none-eabihf", 40),
    "cortex-m7": ("mps2-an500", "thumbv7em-none-eabihf", 40),
    "cortex-m33": ("mps2-an505", "thumbv8m.main-none-eabihf", 50),
    "cortex-m55": ("mps3-an547", "thumbv8.1m.main-none-eabihf", 31.25),
}
HOSTS = ["x86-64-v3", "aarch64-generic", "armv7-generic", "riscv64"]
ALLOWED = {"memcpy", "memset", "memmove"}
TOLERANCE = 1e-4


def tool(*names):
    for name in names:
        if found := shutil.which(name):
            return found
    sys.exit(f"micro: none of {', '.join(names)} is installed: scripts/setup.sh test")


CLANG, LLD, NM = tool("clang-22", "clang"), tool("ld.lld-22", "ld.lld"), tool("llvm-nm-22", "nm")


def call(*words, cwd, **options):
    """What the command says, on whichever of the two streams."""
    with tempfile.TemporaryFile("w+") as said:   # of a pipe that is full the emulator loses what a board prints
        done = subprocess.run([str(w) for w in words], cwd=cwd, stdout=said, stderr=subprocess.STDOUT, **options)
        said.seek(0)
        text = said.read()
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.returncode}\n{text}"
    return text


def c_values(array):
    return "\n".join(f"{v!r}f," if array.dtype == np.float32 else f"{v}," for v in array.reshape(-1).tolist())


class Firmware:
    """One model, on one board."""

    def __init__(self, program, work, board, model, name):
        self.work, self.board, self.name = work, board, name
        self.report = json.loads(call(program, "compile", model, "-t", board, "-o", f"{name}.a", "--json", cwd=work))
        self.header = (work / f"{name}.h").read_text()

    def macro(self, name):
        return int(re.search(rf"#define TW_{self.name.upper()}_{name} (\d+)", self.header)[1])

    def run(self, inputs, output_words):
        """The words that it prints: the outputs', the bytes of stack, the clocks of a run."""
        machine, triple, _ = MACHINES[self.board]
        (self.work / "input.h").write_text(c_values(inputs))
        kind = {np.dtype("float32"): "float", np.dtype("int8"): "int8_t", np.dtype("int32"): "int32_t"}[inputs.dtype]
        defines = [f'-DMODEL_H="{self.name}.h"', f"-DMODEL={self.name}", f"-DINPUT_TYPE={kind}", f"-DOUTPUT_WORDS={output_words}",
                   f"-DARENA_BYTES={self.macro('ARENA_BYTES')}"]
        for source in (BOARD / "startup.c", ROOT / "tests/micro/main.c"):
            call(CLANG, f"--target={triple}", f"-mcpu={self.board}", "-mfloat-abi=hard", "-Os", "-ffreestanding", "-Wall", "-Wextra",
                 "-Werror", "-I.", *defines, "-c", source, "-o", f"{source.stem}.o", cwd=self.work)
        call(LLD, "-nostdlib", "--gc-sections", "--fatal-warnings", "-L", BOARD, "-T", BOARD / f"{self.board}.ld",
             "startup.o", "main.o", f"{self.name}.a", "-Map", f"{self.name}.map", "-o", f"{self.name}.elf", cwd=self.work)
        said = call("qemu-system-arm", "-M", machine, "-nographic", "-icount", "shift=0", "-semihosting-config", "enable=on,target=native", "-kernel",
                    f"{self.name}.elf", cwd=self.work, timeout=120)
        return [int(word, 16) for word in said.split()]

    def check_map(self):
        """Flash and RAM of the model, as the linker has placed it."""
        flash = written = 0
        for line in (self.work / f"{self.name}.map").read_text().splitlines():
            found = re.match(rf"\s*[0-9a-f]+\s+[0-9a-f]+\s+([0-9a-f]+)\s+\d+\s+{self.name}\.a\(.*\):\((\S+)\)", line)
            if not found:
                continue
            if found[2].startswith((".text", ".rodata")):
                flash += int(found[1], 16)
            elif found[2].startswith((".data", ".bss")):
                written += int(found[1], 16)
        memory = self.report["memory"]
        said = memory["code_bytes"] + memory["constant_bytes"]
        assert flash == said, f"{self.name}: flash {flash} in the map, {said} in the report"
        assert written == memory["written_bytes"], f"{self.name}: written {written}, {memory['written_bytes']}"
        return flash


def on_host(program, work, model, inputs, output):
    np.save(work / "in.npy", inputs)
    call(program, "compile", model, "-o", "host.so", cwd=work)
    call(program, "run", "host.so", "--input", "in.npy", "--output-dir", "out", cwd=work)
    return np.load(work / "out" / f"{output}.npy").astype(np.float32).reshape(-1)


def models(program, work):
    """Name, file, one input, the output's name."""
    image = np.load(DIGITS / "test_images.npy")[:1]
    save(keyword_network(), work / "keywords.onnx")
    random = np.random.default_rng(3)
    frames = random.normal(0, 1, (1, 1, 49, 10)).astype(np.float32)
    (work / "samples").mkdir(exist_ok=True)
    for number in range(16):
        np.save(work / "samples" / f"{number}.npy", random.normal(0, 1, (1, 1, 49, 10)).astype(np.float32))
    yield "digits", DIGITS / "digits.onnx", image, "logits"
    yield "digits8", DIGITS / "digits_int8.onnx", image, "logits"
    yield "keywords", work / "keywords.onnx", frames, "words"
    call(program, "quantize", work / "keywords.onnx", "-o", "keywords8.onnx", "--data", "samples", cwd=work)
    yield "keywords8", work / "keywords8.onnx", frames, "words"


def check_board(program, work, board, figures):
    for name, model, inputs, output in models(program, work):
        expected = on_host(program, work, model, inputs, output)
        firmware = Firmware(program, work, board, model, name)
        words = firmware.run(inputs, expected.size)
        got = np.array([struct.unpack("<f", struct.pack("<I", w))[0] for w in words[:-2]], np.float32)
        error = float(np.abs(got - expected).max()) / max(1.0, float(np.abs(expected).max()))
        assert got.size == expected.size and error <= TOLERANCE, f"{board}, {name}: {error}\n{got}\n{expected}"
        flash = firmware.check_map()
        memory = firmware.report["memory"]
        assert firmware.report["weight_bytes"] <= firmware.report["model_bytes"], f"{name}: weights larger than the model"
        instructions = words[-1] * MACHINES[board][2]  # the emulator takes a nanosecond for each
        print(f"{board:11} {name:10} error {error:.1e}, flash {flash} (code {memory['code_bytes']}), "
              f"arena {firmware.macro('ARENA_BYTES')}, stack {words[-2]}" + (f", model {firmware.report['model_bytes']}, "
              f"weights {firmware.report['weight_bytes']}, instructions {instructions:.0f}" if figures else ""), flush=True)


def check_freestanding(program, work):
    for target in HOSTS:
        description = target
        if target == "riscv64":
            description = work / "riscv64.yaml"
            description.write_text("triple: riscv64-linux-gnu\n")
        objects = []
        for copy in ("a", "b"):
            call(program, "compile", DIGITS / "digits_batch.onnx", "-t", description, "--freestanding", "-o", f"{copy}.o", "--name", "digits",
                 cwd=work)
            objects.append((work / f"{copy}.o").read_bytes())
        assert objects[0] == objects[1], f"{target}: two builds differ"
        undefined = set(re.findall(r"[Uw] (\S+)", call(NM, "-u", "a.o", cwd=work)))
        defined = re.findall(r" [A-TV-Z] (\S+)", call(NM, "--defined-only", "-g", "a.o", cwd=work))
        assert undefined <= ALLOWED, f"{target}: {undefined}"
        assert defined == ["tw_digits_compute"], f"{target}: {defined}"
        print(f"{target}: freestanding, undefined: {', '.join(sorted(undefined)) or 'nothing'}", flush=True)


def check_native(program, work):
    """Objects for this machine, one with an operating system and two without, in one program."""
    images = np.load(DIGITS / "test_images.npy")[:3]
    (work / "input.h").write_text(c_values(images))
    call(program, "compile", DIGITS / "digits.onnx", "--emit", "obj", "-o", "digits.a", cwd=work)
    call(program, "compile", DIGITS / "digits_batch.onnx", "--freestanding", "--dim", "batch=1..8", "-o", "batch.o", cwd=work)
    save(thirteenth(), work / "thirteenth.onnx")
    call(program, "compile", "thirteenth.onnx", "--freestanding", "--dim", "n=2..4", "-o", "thirteenth.o", cwd=work)
    call("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I.", ROOT / "tests/micro/native.c", "digits.a", "batch.o", "thirteenth.o", "-o", "native",
         cwd=work)
    said = np.array([float(word) for word in call("./native", cwd=work).split()], np.float32).reshape(2, 3, 10)
    for i, image in enumerate(images):
        expected = on_host(program, work, DIGITS / "digits.onnx", image[None], "logits")
        assert np.abs(said[:, i] - expected).max() <= TOLERANCE, f"{said[:, i]}, not {expected}"
    print("an object and a freestanding one in a program of this machine: ok", flush=True)


def check_refusals(program, work):
    save(counted_by_data(), work / "counted.onnx")
    digits = DIGITS / "digits.onnx"
    for words, text in [
            ((digits, "--emit", "obj", "-o", "x.so"), "NAME.o, or a static library, NAME.a"),
            ((digits, "-t", "cortex-m4", "--emit", "so", "-o", "x.so"), "no operating system to load a library"),
            ((digits, "--emit", "obj", "--tune", "1s"), "--tune runs the library"),
            ((digits, "--optimize", "fast"), "one of speed, size"),
            ((work / "counted.onnx", "-t", "cortex-m4", "-o", "x.o"), "sizes that data decide")]:
        done = subprocess.run([program, "compile", *map(str, words)], cwd=work, capture_output=True, text=True)
        assert done.returncode in (1, 3) and text in done.stderr, f"{words}: {done.returncode}, {done.stderr}"
        assert not (work / "x.so").exists() and not (work / "x.o").exists(), f"{words}: a file stayed"
    print("what cannot be is refused: ok", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--only", choices=MACHINES)
    parser.add_argument("--figures", action="store_true")
    args = parser.parse_args()
    program = pathlib.Path(args.tilewright).resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        if not args.only:
            check_refusals(program, work)
            check_native(program, work)
            check_freestanding(program, work)
        if not shutil.which("qemu-system-arm"):
            print("left out: firmware on emulated boards, as qemu-system-arm is not installed (scripts/setup.sh test)")
            return
        for board in [args.only] if args.only else MACHINES:
            check_board(program, work, board, args.figures)


if __name__ == "__main__":
    main()
