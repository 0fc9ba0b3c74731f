"""A model on a list of inputs, where code of a target runs: on this machine, by its runner in an emulator, or as firmware of an
emulated microcontroller."""
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "runtime"), str(ROOT / "tests/boards")]
import tilewright  # noqa: E402
from emulators import EMULATORS  # noqa: E402

MICRO = {  # the emulated board, what clang calls its processor, and memories that any of the tests' models fits: flash and RAM
    "cortex-m4": ("mps2-an386", "thumbv7em-none-eabihf", ("0x00000000", "4M"), ("0x20000000", "4M")),
    "cortex-m33": ("mps2-an505", "thumbv8m.main-none-eabihf", ("0x10000000", "4M"), ("0x38000000", "4M")),
    "cortex-m55": ("mps3-an547", "thumbv8.1m.main-none-eabihf", ("0x00000000", "512K"), ("0x01000000", "2M")),
}


def call(*words, cwd, timeout=900):
    done = subprocess.run([str(w) for w in words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}"
    return done.stdout


def missing(target):
    """The first program that this target's tests need and that is not here; None: all are."""
    if target in MICRO:
        needed = ["qemu-system-arm", "clang-22", "ld.lld-22"]
    else:
        needed = EMULATORS.get(target, [])[:1]
    return next((program for program in needed if not shutil.which(program)), None)


def outputs_of(program, target, model, runs, like, work):
    """The outputs of each run, by name: arrays with one axis in front. runs: the inputs of each, in the model's order. like: by
    the name of an output, in the model's order, its type and shape. work: an empty folder."""
    made = _on_board if target in MICRO else _emulated if target in EMULATORS else _here
    return {name: np.stack(values) for name, values in zip(like, zip(*made(program, target, model, runs, like, work)))}


def _here(program, target, model, runs, like, work):
    call(program, "compile", model, "-t", target, "-o", "model.so", cwd=work)
    library = tilewright.Model(work / "model.so", threads=2)
    assert [o.name for o in library.outputs] == list(like)
    for inputs in runs:
        outputs = library(*inputs)
        yield outputs if isinstance(outputs, tuple) else (outputs,)


def _emulated(program, target, model, runs, like, work):
    call(program, "compile", model, "-t", target, "--with-runner", "-o", "model.so", cwd=work)
    for inputs in runs:
        for i, array in enumerate(inputs):
            np.save(work / f"input_{i}.npy", array)
        call(*EMULATORS[target], "model.run", "run", "--data", ".", "--output-dir", "out", cwd=work)
        yield [np.load(work / "out" / f"{name.replace('/', '_')}.npy") for name in like]


def _on_board(program, target, model, runs, like, work):
    machine, triple, flash, ram = MICRO[target]
    board = ROOT / "examples/microcontroller"
    call(program, "compile", model, "-t", target, "-o", "model.a", "--name", "model", cwd=work)
    arena = re.search(r"#define TW_MODEL_ARENA_BYTES (\d+)", (work / "model.h").read_text())[1]
    (work / "tensors.h").write_text(_buffers("input", [array.nbytes for array in runs[0]]) +
                                    _buffers("output", [dtype.itemsize * int(np.prod(shape)) for dtype, shape in like.values()]))
    (work / "board.ld").write_text(f"MEMORY {{ FLASH (rx) : ORIGIN = {flash[0]}, LENGTH = {flash[1]}\n"
                                   f"RAM (rw) : ORIGIN = {ram[0]}, LENGTH = {ram[1]} }}\nINCLUDE sections.ld\n")
    for source in (board / "startup.c", ROOT / "tests/micro/batch.c"):
        call("clang-22", f"--target={triple}", f"-mcpu={target}", "-mfloat-abi=hard", "-Os", "-ffreestanding", "-Wall", "-Wextra", "-Werror",
             "-I.", '-DMODEL_H="model.h"', "-DMODEL=model", f"-DARENA_BYTES={arena}", "-c", source, "-o", f"{source.stem}.o", cwd=work)
    call("ld.lld-22", "-nostdlib", "--gc-sections", "--fatal-warnings", "-L", board, "-T", "board.ld", "startup.o", "batch.o", "model.a",
         "-o", "model.elf", cwd=work)
    (work / "in.bin").write_bytes(b"".join(array.tobytes() for inputs in runs for array in inputs))
    call("qemu-system-arm", "-M", machine, "-nographic", "-semihosting-config", "enable=on,target=native", "-kernel", "model.elf", cwd=work)
    written = (work / "out.bin").read_bytes()
    record = sum(dtype.itemsize * int(np.prod(shape)) for dtype, shape in like.values())
    assert len(written) == record * len(runs), f"{target}: {len(written)} bytes of outputs, not {record * len(runs)}"
    for run in range(len(runs)):
        at, outputs = run * record, []
        for dtype, shape in like.values():
            outputs.append(np.frombuffer(written, dtype, int(np.prod(shape)), at).reshape(shape))
            at += outputs[-1].nbytes
        yield outputs


def _buffers(stem, sizes):
    lines = [f"static _Alignas(64) uint8_t {stem}_{i}[{size}];" for i, size in enumerate(sizes)]
    return "\n".join([*lines, f"static void* const {stem}s[] = {{{', '.join(f'{stem}_{i}' for i in range(len(sizes)))}}};",
                      f"static const uint32_t {stem}_bytes[] = {{{', '.join(map(str, sizes))}}};", ""])
