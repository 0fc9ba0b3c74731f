#!/usr/bin/env python3
"""What free sizes cost: two recognition networks compiled for a range of widths against the same compiled for each width, one thread, interleaved.

    free_sizes.py --tilewright BUILD/tilewright [--widths 100,320,800] [--rounds 5]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import onnx

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "models"))
from free_models import FLOAT, Network  # noqa: E402

MOBILE = ((32, 3, 1), (64, 3, (2, 1)), (64, 3, 1), (128, 3, (2, 1)), (128, 5, 1), (256, 5, 1), (256, 5, 1), (256, 5, 1), (512, 5, (2, 1)), (512, 5, 1))
CHARACTERS = 6625


def recogniser(mobile):
    """mobile: depthwise and pointwise convolutions, else residual blocks of 3x3."""
    m = Network(5)
    x = m.conv(m.image(3, 48, "W"), 16, [3, 3], 2, act="HardSwish")
    if mobile:
        for channels, kernel, strides in MOBILE:
            x = m.separable(x, channels, [kernel, kernel], strides)
        x = m.pool(m.squeeze_excite(x), "AveragePool", [3, 2], [3, 2])
    else:
        for channels, strides in ((64, 1), (128, (2, 1)), (256, (2, 1))):
            x = m.residual(m.conv(x, channels, [3, 3], strides), [3, 3])
        x = m.pool(x, "MaxPool", [6, 1], [6, 1])
    x = m.dense(m.sequence(m.conv(x, 64, [1, 1], act="Swish"), "squeeze"), 120)
    for _ in range(2):
        x = m.block(x, 8)
    return m.finish((m.add("Softmax", m.dense(m.layer_norm(x), CHARACTERS), axis=2), FLOAT, 3))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--widths", default="100,320,800")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()

    def compile_to(artifact, model, width):
        subprocess.run([args.tilewright, "compile", model, "-o", artifact, "--dim", "batch=1", "--dim", f"W={width}"], check=True, capture_output=True)

    def least(artifact, *dims):
        done = subprocess.run([args.tilewright, "bench", artifact, "--threads", "1", "--seconds", "0.3", "--json", *dims], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)["min"]

    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        for mobile in (True, False):
            name = "mobile" if mobile else "residual"
            model, free, fixed = (work / f"{name}.{end}" for end in ("onnx", "so", "fixed.so"))
            onnx.save(recogniser(mobile), model)
            compile_to(free, model, "8..1024")
            for width in args.widths.split(","):
                compile_to(fixed, model, width)
                pairs = [(least(free, "--dim", f"W={width}"), least(fixed)) for _ in range(args.rounds)]
                print(f"{name} at {width}: free {min(a for a, _ in pairs):.2f} ms, fixed {min(b for _, b in pairs):.2f} ms, "
                      f"median ratio {statistics.median(a / b for a, b in pairs):.2f}", flush=True)


if __name__ == "__main__":
    main()
