#!/usr/bin/env python3
"""Compiles models with their runners for every description in configs/ whose architecture is not this machine's, and lets the
runner verify them, in an emulator that has what the description asks for, against the results of this machine.

    boards.py --tilewright BUILD/tilewright [--only NAME,...] [--full]

Without --full, one model for each description; with it, all of MODELS. Of RISC-V, without vectors and with.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODELS = {"digits": "examples/digits/digits.onnx", "digits_int8": "examples/digits/digits_int8.onnx"}
# architecture: (emulator, its processor that has all features)
MACHINES = {"aarch64": ("qemu-aarch64", "max"), "armv7": ("qemu-arm", "max"), "riscv64": ("qemu-riscv64", "rv64,v=true,vlen=128")}
# What the emulator knows itself: code for another one would be an illegal instruction.
OWN = {"cortex-a7": "cortex-a7", "cortex-a9": "cortex-a9"}
# qemu's own assertion (decode_save_opc) fails on vectors of floats: its issue 1441, mended in 8.1
LEFT_OUT = {("spacemit-x60", "digits_int8"): "this qemu is older than 8.1, and ends itself on its vectors"}
PLAIN_RISCV = "rv64,v=false"   # for descriptions without V: code that uses it all the same is an illegal instruction


def descriptions():
    """Name of a description -> (machine, features), of processors without devices that an emulator has."""
    found = {}
    for path in sorted((ROOT / "configs").glob("*.yaml")):
        text = path.read_text()
        machine, system = re.search(r"^triple: ([^-\n]+)-([a-z]+)", text, re.M).groups()
        if machine in MACHINES and system == "linux" and not re.search(r"^devices:", text, re.M):
            features = re.search(r"^features: \[(.*)\]", text, re.M)
            found[path.stem] = (machine, features[1].split(", ") if features else [])
    return found


def qemu_version(command):
    found = re.search(r"version (\d+)\.(\d+)", subprocess.run([command, "--version"], capture_output=True, text=True).stdout)
    return tuple(map(int, found.groups()))


def emulator(name, machine, features):
    command, processor = MACHINES[machine]
    processor = OWN.get(name, processor)
    if machine == "riscv64" and "v" not in features:
        processor = PLAIN_RISCV
    return [command, "-cpu", processor]


class Model:
    """With a folder of its inputs, and of this machine's results for them."""

    def __init__(self, tilewright, name, work):
        self.path, self.data = ROOT / MODELS[name], work / f"{name}.data"
        self.data.mkdir()
        artifact = work / f"{name}.so"
        subprocess.run([tilewright, "compile", self.path, "-o", artifact], check=True, capture_output=True)
        np.save(self.data / "input_0.npy", np.load(ROOT / "examples/digits/test_images.npy")[3:4])
        subprocess.run([tilewright, "run", artifact, "--input", f"image={self.data / 'input_0.npy'}", "--output-dir", self.data],
                       check=True, capture_output=True)
        (self.data / "logits.npy").rename(self.data / "output_0.npy")


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
    for command in sorted({MACHINES[machine][0] for machine, _ in chosen.values()}):
        if not shutil.which(command):
            print(f"skipped: no {command}")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        models = {name: Model(tilewright, name, work) for name in MODELS}
        for number, (name, (machine, features)) in enumerate(chosen.items()):
            if not shutil.which(MACHINES[machine][0]):
                continue
            for model in models if args.full else [list(models)[number % len(models)]]:
                if (name, model) in LEFT_OUT and qemu_version(MACHINES[machine][0]) < (8, 1):
                    print(f"left out: {name} {model}, {LEFT_OUT[name, model]}")
                    continue
                subprocess.run([tilewright, "compile", models[model].path, "-t", ROOT / f"configs/{name}.yaml", "--with-runner", "-o",
                                work / "board.so"], check=True, capture_output=True)
                run = subprocess.run([*emulator(name, machine, features), work / "board.run", "verify", "--data", models[model].data],
                                     capture_output=True, text=True)
                bad += run.returncode != 0
                print(f"{'FAIL' if run.returncode else 'ok  '} {name:18} {model:12} {(run.stdout + run.stderr).strip()}", flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
