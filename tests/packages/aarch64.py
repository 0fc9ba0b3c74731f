#!/usr/bin/env python3
"""The packages for AArch64 hosts, made from a cross build and used in an emulator, where the only libraries of the machine
are those that the .deb asks for: what the compiler says and writes there, it says and writes here, byte for byte.

    aarch64.py --tilewright build/release/tilewright [--build build/aarch64]
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

from packages import ROOT, check_package, package, run

sys.path.insert(0, str(ROOT / "scripts/package"))
from system import System

DIGITS = "examples/digits/digits.onnx"
# Model, target: one model for each architecture and kind of output, and several for one.
COMPILED = [
    (DIGITS, "aarch64-generic"), (DIGITS, "x86-64-v3"), (DIGITS, "armv7-generic"), (DIGITS, "rv64gc"), (DIGITS, "aarch64-fat"),
    ("examples/digits/digits_int8.onnx", "aarch64-generic"), ("examples/digits/digits_int8.onnx", "cortex-m4"),
    ("examples/digits/digits_batch.onnx", "aarch64-generic"), ("tests/models/reports/lstm_lengths.onnx", "aarch64-generic"),
    # Their importers make nodes within the arguments of one call, whose order C++ leaves open.
    ("autotune/predictor/trained/ranker-1.onnx", "aarch64-generic"), ("tests/models/reports/grid_sample_cubic.onnx", "aarch64-generic"),
]
LARGEST = 1e-4   # difference of the digits' results, which the machines round differently


def bare_root(system, deb, folder):
    """A folder with the files of the packages that the .deb asks for, and the packages' names."""
    depends = run("dpkg-deb", "--field", deb, "Depends")
    names = [part.split()[0] for part in depends.split(",")]
    for path in run("dpkg-query", "--admindir", system.place("/var/lib/dpkg"), "--listfiles", *names).split():
        file = pathlib.Path(system.place(path))
        if file.is_symlink() or file.is_file():
            (folder / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / path[1:], follow_symlinks=False)
    return names


def check_files(tree, library):
    """Programs and libraries of the package are the machine's; workers are for each board."""
    for file in [tree / "bin/tilewright", *(tree / "lib").rglob("*.so*"), *(tree / "share").rglob("*.so"), library]:
        assert file.read_bytes()[18] == 183, f"{file} is not for AArch64"
    assert len(list((tree / "share/tilewright/workers").iterdir())) >= 3
    assert list((tree / "share/tilewright/predictors").glob("*.so")), "no predictors"


class Host:
    """The compiler of a package, on its machine."""

    def __init__(self, tree, root):
        self.command = ["qemu-aarch64", "-L", root, tree / "bin/tilewright"]

    def __call__(self, *arguments):
        return run(*self.command, *arguments)


def written(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def check_equal(there, here, folder):
    """The same outputs of both compilers."""
    assert there("--version") == here("--version"), f"{there('--version')}\n{here('--version')}"
    for number, (model, target) in enumerate(COMPILED):
        made = []
        for compiler, name in ((there, "there"), (here, "here")):
            place = folder / f"{number}-{name}"
            place.mkdir()
            output = ["model.o"] if "cortex-m" in target else ["model.so", "--with-runner"]
            compiler("compile", ROOT / model, "-t", target, "-o", place / output[0], *output[1:])
            said = compiler("inspect", ROOT / model) + compiler("inspect", place / output[0])
            made.append({**written(place), "inspect": said.replace(str(place), "")})
        differ = [name for name in made[1] if made[0].get(name) != made[1][name]]
        assert made[0].keys() == made[1].keys() and not differ, f"{model} for {target}: {', '.join(differ)} differ"
    print(f"{len(COMPILED)} compilations: the same bytes and the same words as on this machine", flush=True)


def check_own(there, here, folder):
    """For the machine itself: a first result, which is this machine's too."""
    start = time.monotonic()
    there("compile", ROOT / DIGITS, "-o", folder / "own.so")
    there("run", folder / "own.so", "--random", 1, "-d", folder / "own")
    seconds = time.monotonic() - start
    here("compile", ROOT / DIGITS, "-o", folder / "this.so")
    here("run", folder / "this.so", "--random", 1, "-d", folder / "this")
    for file in (folder / "this").iterdir():
        error = np.abs(np.load(file) - np.load(folder / "own" / file.name)).max()
        assert error <= LARGEST, f"{file.name} is off by {error}"
    there("verify", folder / "own.so", ROOT / DIGITS)
    print(f"for the machine itself: compiles and runs the digits in {seconds:.1f} s of the emulator, and verifies them", flush=True)


def check_packages(build, tilewright, folder):
    system = System(build.resolve())
    wheel, deb = package(build, folder / "packages")
    for file in (wheel, deb):
        check_package(file)
    assert deb.name.endswith("_arm64.deb") and run("dpkg-deb", "--field", deb, "Architecture") == "arm64\n"
    names = bare_root(system, deb, folder / "root")
    run("dpkg-deb", "--extract", deb, folder / "deb")
    platform = f"manylinux_{system.glibc.replace('.', '_')}_aarch64"
    run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
        "--only-binary=:all:", "--platform", platform, "--target", folder / "wheel", wheel)
    trees = {"deb": folder / "deb/usr", "wheel": folder / "wheel/tilewright"}
    there = {name: Host(tree, folder / "root") for name, tree in trees.items()}

    def here(*arguments):
        return run(tilewright, *arguments)

    print(f"beside the package: {', '.join(names)}")
    for name, tree in trees.items():
        (folder / f"{name}-own").mkdir()
        check_own(there[name], here, folder / f"{name}-own")
        check_files(tree, folder / f"{name}-own/own.so")
    assert (trees["deb"] / "bin/tilewright").read_bytes() == (trees["wheel"] / "bin/tilewright").read_bytes()
    check_equal(there["deb"], here, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/aarch64")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        check_packages(arguments.build, arguments.tilewright.resolve(), pathlib.Path(name))


if __name__ == "__main__":
    main()
