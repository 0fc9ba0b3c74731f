#!/usr/bin/env python3
"""Kernels that leave their buffers, or stay inside of them, as `opt --bounds` shows it: the same is asked of a candidate, or of a schedule from a log or
a lock, before code is made of it.

    bounds.py [--tilewright BUILD/tilewright]
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def copy(index, extent="i in 16", where="", into="y[i]", shape="16"):
    return f"kernel @k(x: in f32[{shape}], y: out f32[16]) {{\n  for {extent} {{ y: {into} = x[{index}]{where} }}\n}}\n"


INSIDE = {
    "a copy": copy("i"),
    "backwards": copy("15 - i"),
    "clamped": copy("max(0, min(i + 3, 15))"),
    "under a condition": copy("i + 4", where=" where i + 4 < 16"),
    "a chosen side": "kernel @k(x: in f32[16], y: out f32[16]) {\n  for i in 16 { y: y[i] = select(i < 1, 0.0, x[i - 1]) }\n}\n",
    "a first element of a size that is at least 1": "kernel @k[n.1](x: in f32[n.1], y: out f32[1]) {\n  y: y[0] = x[0]\n}\n",
    "a free size": "kernel @k[n](x: in f32[n], y: out f32[n]) {\n  for i in n { y: y[i] = x[i] }\n}\n",
}
OUTSIDE = {
    "one behind the end": copy("i + 1"),
    "one before the beginning": copy("i - 1"),
    "far away": copy("i + 100000000"),
    "a store": copy("i", into="y[i + 1]"),
    "a loop that is too long": copy("i", extent="i in 17"),
    "a condition that says too little": copy("i + 4", where=" where i + 3 < 16"),
    "a store that its condition does not guard at the start": "kernel @k(x: in f32[16], y: out f32[16]) {\n  for i in 17 reduce { y: y[i] += x[0] where i < 16 init 0 }\n}\n",
    "a first element of a size that may be 0": "kernel @k[n.0](x: in f32[n.0], y: out f32[1]) {\n  y: y[0] = x[0]\n}\n",
    "more bytes than can be counted": copy("0, i", shape="281474976710656, 281474976710656"),
}


def shown(tilewright, folder, text):
    path = pathlib.Path(folder) / "k.tilewright"
    path.write_text(text)
    done = subprocess.run([tilewright, "opt", path, "--verify", "--bounds"], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", default=ROOT / "build/release/tilewright", type=pathlib.Path)
    tilewright, problems = parser.parse_args().tilewright.resolve(), []
    with tempfile.TemporaryDirectory() as folder:
        for name, text in INSIDE.items():
            code, said = shown(tilewright, folder, text)
            if code != 0:
                problems.append(f"{name}: refused: {said.strip()[:300]}")
        for name, text in OUTSIDE.items():
            code, said = shown(tilewright, folder, text)
            if code != 1 or ("is not shown to lie in" not in said and "than can be counted" not in said):
                problems.append(f"{name}: status {code}: {said.strip()[:300]}")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"bounds: {len(INSIDE)} kernels inside, {len(OUTSIDE)} outside, {len(problems)} not told")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
