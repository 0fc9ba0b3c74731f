#!/usr/bin/env python3
"""A model of 5 GiB of weights in external data, inside the library and apart: both compile in little memory, and give what numpy gives.

    five_gib.py --tilewright BUILD/tilewright [--folder DIR] [--gib 5]

It needs three times that on the disk. Where disk or memory is short, it says so and does nothing.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "runtime"))
import tilewright  # noqa: E402

SIZE = 16384   # a product's weights are 1 GiB
GIB = 2**30
LARGEST = 4 * SIZE * SIZE   # bytes of one weight: all of it is in memory while it is packed


def rows_of(layer):
    """Blocks of rows of a layer's weights: a pattern that fits no period of blocks, small so that sums stay small."""
    for first in range(0, SIZE, 1024):
        index = np.arange(first, first + 1024, dtype=np.int64)[:, None] * 131 + np.arange(SIZE, dtype=np.int64)[None, :] * 71 + layer
        yield ((index % 257).astype(np.float32) - 128) / (128 * 64)


def write_model(folder, layers):
    tensors, nodes = [], []
    with open(folder / "weights.bin", "wb") as data:
        for layer in range(layers):
            tensor = TensorProto(name=f"w{layer}", data_type=TensorProto.FLOAT, dims=[SIZE, SIZE], data_location=TensorProto.EXTERNAL)
            for key, text in (("location", "weights.bin"), ("offset", str(layer * SIZE * SIZE * 4)), ("length", str(SIZE * SIZE * 4))):
                entry = tensor.external_data.add()
                entry.key, entry.value = key, text
            tensors.append(tensor)
            nodes.append(helper.make_node("MatMul", [f"v{layer}" if layer else "x", f"w{layer}"], [f"v{layer + 1}"]))
            for rows in rows_of(layer):
                data.write(rows.tobytes())
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, SIZE])   # noqa: E731
    graph = helper.make_graph(nodes, "large", [value("x")], [value(f"v{layers}")], tensors)
    path = folder / "large.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def expected(x, layers):
    for layer in range(layers):
        x = sum(x[:, i * 1024:(i + 1) * 1024].astype(np.float64) @ rows for i, rows in enumerate(rows_of(layer)))
    return x


def compile_in(command):
    """Seconds, and the most memory, files that it maps among it."""
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c",
                           "import resource, subprocess, sys\n"
                           "code = subprocess.call(sys.argv[1:])\n"
                           "print('memory', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\n"
                           "sys.exit(code)\n", *map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return time.monotonic() - begin, int(done.stderr.rsplit("memory", 1)[1]) * 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--folder", help="where there is room for it")
    parser.add_argument("--gib", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as temporary:
        folder = pathlib.Path(temporary)
        memory = int(next(line.split()[1] for line in open("/proc/meminfo") if line.startswith("MemAvailable"))) * 1024
        free = shutil.disk_usage(folder).free
        if free < (3 * args.gib + 2) * GIB or memory < (args.gib + 4) * GIB:
            print(f"skipped: {free / GIB:.0f} GiB of disk and {memory / GIB:.0f} GiB of memory are free; it takes {3 * args.gib + 2} and {args.gib + 4}")
            return
        model = write_model(folder, args.gib)
        x = np.random.default_rng(1).standard_normal((1, SIZE)).astype(np.float32)
        wanted, weights = expected(x, args.gib), args.gib * GIB
        for name, flags in (("inside", []), ("apart", ["--weights", folder / "apart.weights"])):
            library = folder / f"{name}.so"
            seconds, most = compile_in([args.tilewright, "compile", model, "-o", library, *flags])
            made = tilewright.Model(library)(x)
            error = np.abs(made - wanted).max() / np.abs(wanted).max()
            print(f"{name}: {weights / GIB:.0f} GiB compiled in {seconds:.0f} s, {most / 2**20:.0f} MiB of memory; error {error:.1e}", flush=True)
            assert error < args.gib * 1e-4, "more than the error that a product may have by default"
            assert most <= max(0.3 * weights, LARGEST) + 300e6, f"{most} bytes of memory"
            library.unlink()


if __name__ == "__main__":
    main()
