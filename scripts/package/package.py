#!/usr/bin/env python3
"""Packages of Tilewright from a finished build: a wheel and a .deb, each with all that the compiler needs but glibc and
libstdc++. A cross-compiled build gives packages for the machine that it was compiled for. Equal builds give equal bytes:
times are SOURCE_DATE_EPOCH's, or those of the last commit.

    package.py --build build/release --output build/packages [--wheel] [--deb] [--home URL]      (default: both)

--home: where the repository's files are on the web, for the links of the page that PyPI makes of README.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import deb
import wheel
from system import System

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What every Debian has: glibc's libraries, and those of GCC that everything else there is linked to.
OF_THE_SYSTEM = ("ld-linux", "libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so", "libstdc++.so", "libgcc_s.so")


def needed_libraries(system):
    """Name and file of each shared library that is not the system's."""
    for name, file in system.libraries():
        if name.startswith(OF_THE_SYSTEM):
            continue
        if not file.startswith("/"):
            sys.exit(f"package: {system.program} needs {name}, which is not here")
        yield name, file


def licences(system, build, libraries, folder):
    """The copyright files of the Debian packages that the libraries and the static ones in the program are of."""
    folder.mkdir(parents=True)
    for file in [*libraries, *system.archives(build)]:
        package = system.package_of(file)
        if not package:
            sys.exit(f"package: {file} is of no Debian package, so its licence is not known")
        shutil.copyfile(system.place(f"/usr/share/doc/{package}/copyright"), folder / package)


def install_tree(build, tree):
    """What `cmake --install` writes, stripped, with the libraries that it needs beside it. Returns the system of the program."""
    done = subprocess.run(["cmake", "--install", build, "--prefix", tree, "--strip"], capture_output=True, text=True)
    if done.returncode:
        why = " ".join(done.stderr.split())
        sys.exit(f"package: {build} is no finished build, 'cmake --build {build}' makes it one: {why}")
    system = System(build)
    folder = tree / "lib/tilewright/lib"
    folder.mkdir(parents=True)
    libraries = dict(needed_libraries(system))
    for name, file in libraries.items():
        shutil.copyfile(system.place(file), folder / name)
    licences(system, build, libraries.values(), tree / "share/doc/tilewright/licences")
    return system


def epoch():
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    return int(subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--wheel", action="store_true")
    parser.add_argument("--deb", action="store_true")
    parser.add_argument("--home", metavar="URL")
    arguments = parser.parse_args()
    both = arguments.wheel == arguments.deb
    arguments.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "tree"
        system = install_tree(arguments.build.resolve(), tree)
        if both or arguments.wheel:
            print(wheel.write(tree, system, epoch(), arguments.output, arguments.home))
        if both or arguments.deb:
            print(deb.write(tree, system, epoch(), arguments.output, pathlib.Path(folder) / "deb"))


if __name__ == "__main__":
    main()
