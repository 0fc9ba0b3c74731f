#!/usr/bin/env python3
"""Compiles models for every description in configs/ whose architecture is not this machine's, runs them in an emulator that
has what the description asks for, and compares the results with those of this machine. Of RISC-V, without vectors and with.

    boards.py --tilewright BUILD/tilewright [--only NAME,...] [--full]

Without --full, one model for each description; with it, all of MODELS.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOLERANCE = 1e-4   # of an output's range
MODELS = {"digits": "examples/digits/digits.onnx", "digits_int8": "examples/digits/digits_int8.onnx"}
# machine of tests/cross_cc.sh: (emulator, its processor that has all features, folder of the C library)
MACHINES = {"aarch64": ("qemu-aarch64", "max", "/usr/aarch64-linux-gnu"),
            "armv7": ("qemu-arm", "max", "/usr/arm-linux-gnueabihf"),
            "riscv64": ("qemu-riscv64", "rv64,v=true,vlen=128", "/usr/riscv64-linux-gnu")}
LEFT_OUT = {("spacemit-x60", "digits_int8"): "8-bit products with V crash under qemu"}
PLAIN_RISCV = "rv64,v=false"   # for descriptions without V: code that uses it all the same is an illegal instruction


def descriptions():
    """Name of a description -> (machine, features), of processors without devices that an emulator has."""
    found = {}
    for path in sorted((ROOT / "configs").glob("*.yaml")):
        text = path.read_text()
        machine = re.search(r"^triple: ([a-z0-9]+)", text, re.M)[1].replace("_", "-")
        if machine in MACHINES and not re.search(r"^devices:", text, re.M):
            features = re.search(r"^features: \[(.*)\]", text, re.M)
            found[path.stem] = (machine, features[1].split(", ") if features else [])
    return found


def driver(machine, work):
    """The program that runs an artifact of that machine; None: something is not installed."""
    out = work / f"driver.{machine}"
    if not shutil.which(MACHINES[machine][0]):
        return None
    tools = {name: shutil.which(tool) or f"/usr/lib/llvm-22/bin/{tool.removesuffix('-22')}"
             for name, tool in (("CLANG", "clang-22"), ("LLD", "ld.lld-22"))}
    built = subprocess.run([ROOT / "tests/cross_cc.sh", machine, ROOT / "tests/models/driver.c", out, "-I", ROOT],
                           env=dict(os.environ, **tools))
    return out if built.returncode == 0 else None


def emulator(machine, features):
    command, processor, root = MACHINES[machine]
    if machine == "riscv64" and "v" not in features:
        processor = PLAIN_RISCV
    return [command, "-cpu", processor, "-L", root]


class Model:
    """With inputs, and this machine's results for them."""

    def __init__(self, tilewright, name, work):
        self.path, self.work = ROOT / MODELS[name], work
        artifact, folder = work / f"{name}.so", work / f"{name}.outputs"
        subprocess.run([tilewright, "compile", self.path, "-o", artifact], check=True, capture_output=True)
        self.input = np.load(ROOT / "examples/digits/test_images.npy")[3:4]
        np.save(work / "input.npy", self.input)
        subprocess.run([tilewright, "run", artifact, "--input", f"image={work / 'input.npy'}", "--output-dir", folder], check=True,
                       capture_output=True)
        self.expected = np.load(folder / "logits.npy")

    def error(self, command, artifact):
        """The largest difference from this machine's results, of an output's range."""
        self.input.tofile(self.work / "input.raw")
        subprocess.run([*command, artifact, "model", "1", self.work / "out", self.work / "input.raw"], check=True)
        got = np.fromfile(self.work / "out0.raw", np.float32).reshape(self.expected.shape)
        return float(np.abs(got - self.expected).max() / np.ptp(self.expected))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("--only", help="descriptions, with commas between them")
    parser.add_argument("--full", action="store_true")
    args = parser.parse_args()
    tilewright = args.tilewright.resolve()
    chosen = descriptions()
    if args.only:
        chosen = {name: chosen[name] for name in args.only.split(",")}
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        drivers = {machine: driver(machine, work) for machine in sorted({machine for machine, _ in chosen.values()})}
        for machine in [m for m, built in drivers.items() if built is None]:
            print(f"skipped: {machine}, no {MACHINES[machine][0]} or no C library for it")
        models = {name: Model(tilewright, name, work) for name in MODELS}
        for number, (name, (machine, features)) in enumerate(chosen.items()):
            if drivers[machine] is None:
                continue
            for model in models if args.full else [list(models)[number % len(models)]]:
                if (name, model) in LEFT_OUT:
                    print(f"left out: {name} {model}, {LEFT_OUT[name, model]}")
                    continue
                artifact = work / "board.so"
                subprocess.run([tilewright, "compile", models[model].path, "-t", ROOT / f"configs/{name}.yaml", "-o", artifact, "--name",
                                "model"], check=True, capture_output=True)
                error = models[model].error([*emulator(machine, features), drivers[machine]], artifact)
                bad += not error <= TOLERANCE
                print(f"{'ok  ' if error <= TOLERANCE else 'FAIL'} {name:18} {model:12} {error:.1e}", flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
