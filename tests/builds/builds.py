#!/usr/bin/env python3
"""The examples of builds: CMake with Ninja and with Make, and Meson. Each is built, built again with nothing to do, and
built once more after one of its models changed: then that one alone is compiled.

    builds.py --build build/release [--only cmake-ninja|cmake-make|cross|meson|pkg-config]
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ARM64 = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Place:
    """The examples in a folder of their own, and an installed Tilewright."""

    def __init__(self, build, folder):
        self.folder = folder
        self.prefix = folder / "prefix"
        for name in ("cmake", "digits", "meson"):
            shutil.copytree(ROOT / "examples" / name, folder / name)
        subprocess.run(["cmake", "--install", build, "--prefix", self.prefix], check=True, stdout=subprocess.DEVNULL)
        # The program of the build tree, which finds the libraries of this machine
        (self.prefix / "bin/tilewright").unlink()
        (self.prefix / "bin/tilewright").symlink_to(build / "tilewright")
        self.environment = {**os.environ, "PATH": f"{self.prefix / 'bin'}:{os.environ['PATH']}"}

    def run(self, *command, good=True):
        done = subprocess.run([str(word) for word in command], cwd=self.folder, capture_output=True, text=True, env=self.environment)
        if (done.returncode == 0) != good:
            sys.exit(f"{' '.join(map(str, command))}: ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def change(self, model):
        """Other bytes, the same graph: a property is added (field 14 of ModelProto)."""
        with open(self.folder / "digits" / model, "ab") as file:
            file.write(b"\x72\x08\x0a\x03key\x12\x01v")

    def classifies(self, *program):
        said = self.run(*program, "digits/test_images.npy", "digits/test_labels.npy", "predictions.txt")
        assert "359" in said, said


def compiled(place, library, *more):
    """When the files were written."""
    return [(place.folder / file).stat().st_mtime_ns for file in (library, *more)]


def check_cmake(place, generator, *flags):
    name = generator.split()[-1].lower() + ("-cross" if flags else "")
    first, second = f"{name}/digits/digits.so", f"{name}/digits_arm/digits_arm.so"

    def build():
        place.run("cmake", "--build", name)
        return compiled(place, first, second)

    place.run("cmake", "-S", "cmake", "-B", name, "-G", generator, f"-Dtilewright_DIR={place.prefix / 'lib/cmake/tilewright'}", *flags)
    before = build()
    assert build() == before, f"{name}: a build with nothing to do compiled a model"
    place.change("digits_batch.onnx")
    after = build()
    assert after[0] == before[0] and after[1] > before[1], f"{name}: not the changed model alone was compiled"
    place.classifies(*(ARM64 if flags else ()), f"{name}/classify")
    # An installed program has its model beside it, wherever both are moved
    place.run("cmake", "--install", name, "--prefix", place.folder / f"{name}-installed")
    moved, hidden = place.folder / f"{name}-moved", place.folder / f"{name}-hidden"
    (place.folder / f"{name}-installed").rename(moved)
    (place.folder / name).rename(hidden)
    place.classifies(*(ARM64 if flags else ()), moved / "bin/classify")
    hidden.rename(place.folder / name)
    board = place.folder / "cmake/board.yaml"
    text = board.read_text()
    board.write_text(text.replace("artifact_bytes: 384KiB", "artifact_bytes: 1KiB"))
    said = place.run("cmake", "--build", name, good=False)
    assert "artifact_bytes" in said and "over by" in said, said
    assert not (place.folder / second).exists(), f"{name}: a library over its budget was left"
    board.write_text(text)
    assert build()[0] == before[0], f"{name}: the other model was compiled, too"
    print(f"cmake with {generator}{' for ARM64' if flags else ''}: only what changed is compiled, a budget fails the build", flush=True)


def check_pkg_config(place):
    """A program that loads libraries takes the headers, and the compiler, from pkg-config."""
    place.environment["PKG_CONFIG_PATH"] = str(place.prefix / "lib/pkgconfig")
    (place.folder / "load.cpp").write_text(
        '#include <tilewright.hpp>\nint main(int, char** words) { return tilewright::Model(words[1]).inputs().size() == 1 ? 0 : 1; }\n')
    place.run("sh", "-ec", '"$(pkg-config --variable=compiler tilewright)" compile digits/digits.onnx -o loaded.so')
    place.run("sh", "-ec", "c++ -std=c++20 load.cpp $(pkg-config --cflags tilewright) -o load -ldl")
    place.run("./load", "./loaded.so")
    workers = place.run("pkg-config", "--variable=workers", "tilewright").strip()
    assert any(pathlib.Path(workers).glob("tilewright-worker.*")), workers
    print("pkg-config: headers, compiler and workers", flush=True)


def check_meson(place):
    place.run("meson", "setup", "meson-build", "meson")
    place.run("ninja", "-C", "meson-build")
    before = compiled(place, "meson-build/digits.so")
    place.run("ninja", "-C", "meson-build")
    assert compiled(place, "meson-build/digits.so") == before
    place.change("digits.onnx")
    place.run("ninja", "-C", "meson-build")
    assert compiled(place, "meson-build/digits.so") > before
    place.classifies("meson-build/classify")
    print("meson: only what changed is compiled", flush=True)


CHECKS = {
    "cmake-ninja": lambda place: check_cmake(place, "Ninja"),
    "cmake-make": lambda place: check_cmake(place, "Unix Makefiles"),
    "cross": lambda place: check_cmake(place, "Ninja", f"-DCMAKE_TOOLCHAIN_FILE={place.folder / 'cmake/aarch64.cmake'}"),
    "meson": check_meson,
    "pkg-config": check_pkg_config,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--only", choices=CHECKS)
    arguments = parser.parse_args()
    for name, check in CHECKS.items():
        if arguments.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                check(Place(arguments.build.resolve(), pathlib.Path(folder)))


if __name__ == "__main__":
    main()
