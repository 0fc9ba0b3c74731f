#!/usr/bin/env python3
"""Casts of f16 and of smaller floats, on this machine and in the emulators of others: every code to f32, and to codes the f32 of
every code, what lies halfway between two, and their neighbours. Expected is what ml_dtypes and numpy make of them, bit for bit.

    small_floats.py --tilewright BUILD/tilewright
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save_model

from emulators import EMULATORS

MACHINES = {"host": [], **{target: EMULATORS[target] for target in ("aarch64-generic", "armv7-generic")}}
TYPES = {"FLOAT16": np.float16, "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn, "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
         "FLOAT8E5M2": ml_dtypes.float8_e5m2, "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "FLOAT4E2M1": ml_dtypes.float4_e2m1fn}


def codes_of(name):
    if name == "FLOAT16":
        return np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    return np.arange(16 if name == "FLOAT4E2M1" else 256, dtype=np.uint8).view(TYPES[name])


def near_borders(codes):
    """Finite numbers where rounding changes, and those beside them."""
    values = np.unique(codes.astype(np.float64)[np.isfinite(codes.astype(np.float64))])
    last = values[-1] - values[-2]
    places = np.concatenate([values, (values[1:] + values[:-1]) / 2, [values[-1] + last / 2, -values[-1] - last / 2]]).astype(np.float32)
    normal = places[np.abs(places) > 1e-37]   # a neighbour of 0 is subnormal in f32
    return np.concatenate([places, np.nextafter(normal, np.float32(np.inf)), np.nextafter(normal, np.float32(-np.inf))])


def model(name, path, codes, numbers):
    small = getattr(TensorProto, name)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Cast", ["codes"], ["decoded"], to=TensorProto.FLOAT),
         helper.make_node("Cast", ["numbers"], ["encoded"], to=small, **({} if name in ("FLOAT16", "FLOAT4E2M1") else {"saturate": 0}))],
        "casts", [info("codes", small, codes.shape), info("numbers", TensorProto.FLOAT, numbers.shape)],
        [info("decoded", TensorProto.FLOAT, codes.shape), info("encoded", small, numbers.shape)])
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11), path)


def check(tilewright, name, work):
    """Machines where it went wrong, which it prints."""
    codes = codes_of(name)
    numbers = near_borders(codes)
    bad = []
    model(name, work / "casts.onnx", codes, numbers)
    np.save(work / "numbers.npy", numbers)
    (work / "codes.pb").write_bytes(numpy_helper.from_array(codes).SerializeToString())
    for target, emulator in MACHINES.items():
        if emulator and not shutil.which(emulator[0]):
            print(f"skipped: {target}, no {emulator[0]}")
            continue
        library = work / f"{target}.so"
        subprocess.run([tilewright, "compile", work / "casts.onnx", "-t", target, "--with-runner", "-o", library], check=True,
                       capture_output=True)
        run = subprocess.run([*emulator, library.with_suffix(".run"), "run", "--input", f"codes={work / 'codes.pb'}", "--input",
                              f"numbers={work / 'numbers.npy'}", "-d", work], capture_output=True, text=True)
        assert run.returncode == 0, f"{name} {target}: {run.stdout}{run.stderr}"
        decoded, encoded = np.load(work / "decoded.npy"), np.load(work / "encoded.npy").view(codes.dtype)
        expected = codes.astype(np.float32)
        same = (decoded.view(np.uint32) == expected.view(np.uint32)) | np.isnan(decoded) & np.isnan(expected)
        with np.errstate(over="ignore"):
            rounded = numbers.astype(codes.dtype)
        bits = np.dtype(f"u{codes.itemsize}")
        right = (encoded.view(bits) == rounded.view(bits)) | np.isnan(encoded.astype(np.float32)) & np.isnan(rounded.astype(np.float32))
        if not same.all() or not right.all():
            bad.append(target)
            print(f"FAIL {name} {target}: codes {codes[~same][:8].view(bits)} are {decoded[~same][:8]}; {numbers[~right][:8]} become "
                  f"{encoded[~right][:8]}, expected {rounded[~right][:8]}")
        else:
            print(f"ok   {name:15} {target:16} {len(codes)} codes, {len(numbers)} numbers")
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    tilewright = parser.parse_args().tilewright.resolve()
    with tempfile.TemporaryDirectory() as folder:
        return any([check(tilewright, name, pathlib.Path(folder)) for name in TYPES])


if __name__ == "__main__":
    sys.exit(main())
