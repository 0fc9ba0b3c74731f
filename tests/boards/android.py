#!/usr/bin/env python3
"""Libraries for Android, by their file: what its loader (bionic's linker) takes, pages of 16 KiB; code that leaves x18 alone on
64 bits, and floats in general registers on 32.

    android.py --tilewright BUILD/tilewright
"""
import argparse
import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODELS = ("examples/digits/digits.onnx", "examples/digits/digits_int8.onnx", "examples/digits/digits_batch.onnx")
BIONIC = {"mmap", "munmap", "syscall", "memset", "memcpy", "pthread_create", "pthread_join", "getenv"}   # of libc.so
PAGE = 16 << 10


def tool(name):
    found = shutil.which(f"{name}-22") or shutil.which(name) or f"/usr/lib/llvm-22/bin/{name}"
    return found if pathlib.Path(found).exists() else None


def printed(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def check_dynamic(readelf, library):
    """Needed libraries, names, versions, and where the dynamic section is: Android compares it with its program header."""
    text = printed(readelf, "-dW", library)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    assert needed == ["libc.so"], needed
    assert f"[{library.name}]" in text and "SONAME" in text, text
    for bad in ("TEXTREL", "VERNEED", "VERSYM", "RPATH", "RUNPATH", "SYMBOLIC"):
        assert bad not in text, bad
    assert "GNU_HASH" in text and re.search(r"\(HASH\)", text), "both tables of names"
    symbols = [line.split() for line in printed(readelf, "--dyn-syms", "-W", library).splitlines() if re.match(r"\s+\d+:", line)]
    undefined = {s[7] for s in symbols if len(s) > 7 and s[6] == "UND"}
    assert undefined and undefined <= BIONIC, undefined
    assert not any("@" in s[7] for s in symbols if len(s) > 7), symbols


def check_segments(readelf, library):
    text = printed(readelf, "-lW", library)
    assert "INTERP" not in text
    loads = [line.split() for line in text.splitlines() if line.split()[:1] == ["LOAD"]]
    end = 0
    for segment in loads:
        offset, address, _, file_size, memory_size = (int(word, 16) for word in segment[1:6])
        flags, alignment = "".join(segment[6:-1]), int(segment[-1], 16)
        assert alignment >= PAGE and (address - offset) % PAGE == 0, segment
        assert address // PAGE * PAGE >= end, "two segments share a page of 16 KiB"
        assert not ("W" in flags and "E" in flags), segment
        end = (address + memory_size + PAGE - 1) // PAGE * PAGE
    dynamic = next(line.split() for line in text.splitlines() if line.split()[:1] == ["DYNAMIC"])
    section = re.search(r"\.dynamic\s+DYNAMIC\s+([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", printed(readelf, "-SW", library))
    assert (int(dynamic[2], 16), int(dynamic[1], 16), int(dynamic[4], 16)) == tuple(int(word, 16) for word in section.groups())
    relro = next(line.split() for line in text.splitlines() if line.split()[:1] == ["GNU_RELRO"])
    begin, size = int(relro[2], 16), int(relro[5], 16)
    assert all(not (int(s[2], 16) < begin + size and "E" in "".join(s[6:-1]) and int(s[2], 16) + int(s[5], 16) > begin) for s in loads)


def check_arm64(readelf, objdump, library):
    code = printed(objdump, "-d", "--mattr=+all", "--no-show-raw-insn", library)
    assert code.count("\n") > 1000, "no code"
    used = [line for line in code.splitlines() if re.search(r"\b[xw]18\b", line)]
    assert not used, used[:3]


def check_armv7(readelf, objdump, library):
    """Android's calling convention, and processors that compute with floats themselves."""
    assert "soft-float ABI" in printed(readelf, "-hW", library)
    code = printed(objdump, "-d", "--triple=armv7", "--mattr=+neon,+vfp4", "--no-show-raw-insn", library)
    assert re.search(r"\bvfma\.f32\s+q", code), "no vectors"


TARGETS = {"android-arm64": check_arm64, "android-armv7": check_armv7}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    tilewright = parser.parse_args().tilewright.resolve()
    readelf, objdump = tool("readelf") or tool("llvm-readelf"), tool("llvm-objdump")
    if not readelf or not objdump:
        print("skipped: no readelf, or no llvm-objdump")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        for target, model in itertools.product(TARGETS, MODELS):
            library = pathlib.Path(folder) / f"lib{pathlib.Path(model).stem}.so"
            subprocess.run([tilewright, "compile", ROOT / model, "-t", target, "-o", library], check=True, capture_output=True)
            check_dynamic(readelf, library)
            check_segments(readelf, library)
            TARGETS[target](readelf, objdump, library)
            print(f"ok   {target} {library.name}")
        plain = pathlib.Path(folder) / "plain.so"   # other systems' libraries need none by name
        subprocess.run([tilewright, "compile", ROOT / MODELS[0], "-t", "aarch64-generic", "-o", plain], check=True, capture_output=True)
        assert "NEEDED" not in printed(readelf, "-dW", plain)
    return 0


if __name__ == "__main__":
    sys.exit(main())
