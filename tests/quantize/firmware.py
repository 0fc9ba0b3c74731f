"""Firmware of a model with many inputs and outputs of bytes, on the microcontrollers that QEMU emulates."""
import pathlib
import re
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/micro"))
BOARDS = ("cortex-m4", "cortex-m33", "cortex-m55")


def declared(arrays):
    """C declarations of constant inputs, on addresses that suit every kernel."""
    return [f"static const _Alignas(64) uint8_t input{i}[] = {{{', '.join(map(str, a.tobytes()))}}};" for i, a in enumerate(arrays)]


def run(tilewright, work, board, model, inputs, outputs):
    """The outputs, or what went wrong. outputs: empty arrays of their types and shapes."""
    import micro   # which needs a cross compiler
    machine, triple, _ = micro.MACHINES[board]
    made = subprocess.run([tilewright, "compile", model, "-t", board, "-j", "1", "--name", "pairs", "-o", "pairs.a"], cwd=work,
                          capture_output=True, text=True)
    if made.returncode:
        return f"compile ends with {made.returncode}: {(made.stderr.strip().splitlines() or [''])[-1][-300:]}"
    arena = re.search(r"#define TW_PAIRS_ARENA_BYTES (\d+)", (work / "pairs.h").read_text())[1]
    lines = declared(inputs) + [f"static _Alignas(64) uint8_t output{i}[{max(o.size, 1)}];" for i, o in enumerate(outputs)]
    lines += [f"#define {name} {', '.join(values)}" for name, values in (
        ("INPUTS", [f"input{i}" for i in range(len(inputs))]), ("OUTPUTS", [f"output{i}" for i in range(len(outputs))]),
        ("OUTPUT_BYTES", [str(o.size) for o in outputs]))]
    (work / "io.h").write_text("\n".join(lines) + "\n")
    for source in (micro.BOARD / "startup.c", ROOT / "tests/quantize/firmware.c"):
        micro.call(micro.CLANG, f"--target={triple}", f"-mcpu={board}", "-mfloat-abi=hard", "-Os", "-ffreestanding", "-Wall", "-Wextra", "-Werror",
                   "-I.", '-DMODEL_H="pairs.h"', "-DCOMPUTE=tw_pairs_compute", f"-DARENA_BYTES={arena}", "-c", source, "-o", f"{source.stem}.o",
                   cwd=work)
    linked = subprocess.run([micro.LLD, "-nostdlib", "--gc-sections", "-L", micro.BOARD, "-T", micro.BOARD / f"{board}.ld", "startup.o", "firmware.o",
                             "pairs.a", "-o", "pairs.elf"], cwd=work, capture_output=True, text=True)
    if linked.returncode:
        return f"the linker ends with {linked.returncode}: {linked.stderr.strip()[-300:]}"
    try:
        done = subprocess.run(["qemu-system-arm", "-M", machine, "-nographic", "-semihosting-config", "enable=on,target=native", "-kernel", "pairs.elf"],
                              cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "the firmware does not end"
    if done.returncode:
        return f"the firmware ends with {done.returncode}: {done.stdout[-200:]}"
    said, results = bytes.fromhex(done.stdout.strip()), []
    for o in outputs:
        results.append(np.frombuffer(said[:o.size], o.dtype).reshape(o.shape))
        said = said[o.size:]
    return results
