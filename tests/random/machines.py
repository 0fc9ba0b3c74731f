"""Compiling models for a target, and running them where the target is: on this machine, by a runner in an emulator, or as firmware of
an emulated board."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "tests/boards"), str(ROOT / "tests/micro")]
from emulators import EMULATORS  # noqa: E402

UNSUPPORTED = 3   # exit status
SECONDS = 300     # for any command
HOSTS = {"host": "sse4_2", "x86-64-v2": "sse4_2", "x86-64-v3": "avx2", "x86-64-v4": "avx512bw", "opencl-generic": "sse4_2"}   # what the processor must have
MEMORY = "MEMORY {{ FLASH (rx) : ORIGIN = 0, LENGTH = {} RAM (rw) : ORIGIN = {}, LENGTH = 16M }}\nINCLUDE sections.ld\n"
BOARDS = {"cortex-m4": ("mps2-an386", "thumbv7em-none-eabihf", MEMORY.format("4M", "0x21000000")),
          "cortex-m55": ("mps3-an547", "thumbv8.1m.main-none-eabihf", MEMORY.format("512K", "0x60000000"))}
FLUSHES = {"armv7-generic", "cortex-m55"}   # whose vectors take subnormal numbers of f32 for 0
TARGETS = [*HOSTS, *EMULATORS, *BOARDS]


class Refused(Exception):
    """What this version does not support."""


class Fault(Exception):
    """A command ends as it must not."""


def call(words, **options):
    try:
        return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=SECONDS, **options)
    except subprocess.TimeoutExpired:
        raise Fault(f"{pathlib.Path(words[0]).name} takes more than {SECONDS} s") from None


def done(what, words, **options):
    told = call(words, **options)
    if told.returncode:
        raise Fault(f"{what} ends with {told.returncode}: {last_line(told)}")
    return told.stdout + (told.stderr if words[0] == "qemu-system-arm" else "")   # semihosting writes to it


def error_of(process):
    """Without the path, which is another one each time."""
    lines = [line for line in process.stderr.splitlines() if "error" in line] or [last_line(process)]
    return re.sub(r"/\S*/model.onnx", "model.onnx", lines[0])[-400:]


def last_line(process):
    return ((process.stderr or process.stdout).strip().splitlines() or [""])[-1][-400:]


def compiled(tilewright, work, target, dims, output, *flags):
    """Of work/model.onnx. dims: each free dimension's values in the runs."""
    dims = [flag for name, values in dims.items() for flag in ("--dim", f"{name}={min(values)}..{max(values)}")]
    told = call([tilewright, "compile", work / "model.onnx", "-t", target, "-j", "1", "-o", work / output, *dims, *flags])
    # A refusal that speaks of a kernel is a fault of the lowering or the schedule that made it.
    if told.returncode == UNSUPPORTED and not error_of(told).startswith("error: kernel '"):
        raise Refused(error_of(told))
    if told.returncode:
        raise Fault(f"compile ends with {told.returncode}: {error_of(told)}")


def stored(work, feeds):
    """A folder with the inputs' data."""
    data = work / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    for i, value in enumerate(feeds.values()):
        np.save(data / f"input_{i}.npy", value)
    return data


class Library:
    """By `tilewright run`, or with an emulator by the library's runner. A crash is theirs alone."""
    def __init__(self, tilewright, work, target, dims):
        self.tilewright, self.work, self.emulator = tilewright, work, EMULATORS.get(target)
        compiled(tilewright, work, target, dims, "model.so", *(["--with-runner"] if self.emulator else []))

    def run(self, number, feeds, expected):
        data, out = stored(self.work, feeds), self.work / "out"
        shutil.rmtree(out, ignore_errors=True)
        inputs = [word for i, name in enumerate(feeds) for word in ("--input", f"{name}={data}/input_{i}.npy")]
        command = [*self.emulator, self.work / "model.run", "run"] if self.emulator else [self.tilewright, "run", self.work / "model.so"]
        done("run", [*command, *inputs, "--threads", "1" if self.emulator else "2", "--output-dir", out])
        return {path.stem: np.load(path) for path in out.iterdir()}

    def verified(self, feeds):
        """What `verify` says of each output, compared with the operators' evaluators."""
        told = call([self.tilewright, "verify", self.work / "model.so", self.work / "model.onnx", "--data", stored(self.work, feeds),
                     "--reference", "operators", "--json"])
        if told.returncode not in (0, 4):
            raise Fault(f"verify ends with {told.returncode}: {last_line(told)}")
        return {output["name"]: output["difference"] for output in json.loads(told.stdout)["outputs"]}


class Firmware:
    """A program for a board without an operating system, with the data of a run in it. It prints the bytes of the outputs."""
    def __init__(self, tilewright, work, target, dims):
        self.work, self.target = work, target
        self.machine, self.triple, memory = BOARDS[target]
        (work / "memory.ld").write_text(memory)
        compiled(tilewright, work, target, dims, "model.a")
        header = (work / "model.h").read_text()
        self.arena = max(map(int, re.findall(r"#define TW_MODEL_(?:MAX_)?ARENA_BYTES (\d+)", header)), default=None)
        if self.arena is None:
            raise Fault("the header does not say how large the arena is at most")
        self.symbols = [dims[name] for name in re.findall(r"^  int64_t (\w+);", header, re.MULTILINE)]
        self.compile("startup", ROOT / "examples/microcontroller/startup.c")

    def compile(self, name, source):
        done("clang", [shutil.which("clang-22") or "clang", f"--target={self.triple}", f"-mcpu={self.target}", "-mfloat-abi=hard", "-Os", "-ffreestanding",
                       "-I", self.work, "-c", source, "-o", self.work / f"{name}.o"])

    def run(self, number, feeds, expected):
        work = self.work
        (work / "data.h").write_text(self.data(number, feeds, expected))
        self.compile("main", ROOT / "tests/random/firmware.c")
        done("ld.lld", [shutil.which("ld.lld-22") or "ld.lld", "-nostdlib", "--gc-sections", "-L", ROOT / "examples/microcontroller", "-T",
                        work / "memory.ld", work / "startup.o", work / "main.o", work / "model.a", "-o", work / "model.elf"])
        said = done("qemu", ["qemu-system-arm", "-M", self.machine, "-nographic", "-semihosting-config", "enable=on,target=native", "-kernel", work / "model.elf"])
        if len(said.split()) != len(expected):
            raise Fault(f"the board says {said[-200:]}")
        return {name: np.frombuffer(bytes.fromhex(text.removeprefix("o")), want.dtype).reshape(want.shape)
                for (name, want), text in zip(expected.items(), said.split())}

    def data(self, number, feeds, expected):
        sizes = ", ".join(str(values[number]) for values in self.symbols) or "0"
        lines = ["#include <stdint.h>", f"static const int64_t symbols[] = {{{sizes}}};", f"static _Alignas(64) uint8_t arena[{max(64, self.arena)}];"]
        for i, value in enumerate(feeds.values()):
            numbers = ",".join(map(str, value.tobytes())) or "0"
            lines.append(f"static const _Alignas(64) uint8_t input_{i}[] = {{{numbers}}};")
        for i, value in enumerate(expected.values()):
            lines.append(f"static _Alignas(64) uint8_t output_{i}[{max(1, value.nbytes)}];")
        lines.append(f"static const void* const inputs[] = {{{', '.join(f'input_{i}' for i in range(len(feeds)))}}};")
        lines.append(f"static void* const outputs[] = {{{', '.join(f'output_{i}' for i in range(len(expected)))}}};")
        lines.append(f"static const uint32_t sizes[] = {{{', '.join(str(v.nbytes) for v in expected.values())}}};")
        return "\n".join(lines)


def machine_of(target):
    return Firmware if target in BOARDS else Library


def machines_here():
    """The targets that this machine runs, or an emulator does; what is left out is printed."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    found = [t for t, feature in HOSTS.items() if feature in flags]
    if not pathlib.Path("/etc/OpenCL/vendors").is_dir():
        found.remove("opencl-generic")
    found += [t for t, emulator in EMULATORS.items() if shutil.which(emulator[0])]
    found += [t for t in BOARDS if shutil.which("qemu-system-arm")]
    for target in TARGETS:
        if target not in found:
            print(f"left out: {target}, which this machine does not run")
    return found
