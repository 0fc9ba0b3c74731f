#!/usr/bin/env python3
"""Models by AMX's tiles. They are compiled for this machine with AMX besides. Of integers the results are those without it, to the bit; of floats they are
those of the reference evaluators (tilewright verify). Where the machine lacks AMX, a library that each run begins with does its instructions
(tests/cli/amx_emulator.h), and the compiled model is told not to ask for them.

    tiles.py --tilewright BUILD/tilewright [--full] [--only NAME]
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "models"))
import bf16  # noqa: E402
import integer_products  # noqa: E402
from run import model_files  # noqa: E402

TILES = ["amx-tile", "amx-int8", "amx-bf16"]
PRESENT = "avx,avx2"   # as long as one of them, and in every processor that has AMX
# Of an output's range: sums in another order and operands rounded once; what that makes of several layers
ROUNDED, SEVERAL = 2e-3, 3e-2
# rows, depth, columns
PRODUCTS = [(50, 64, 32), (64, 64, 64), (197, 96, 48), (577, 64, 16), (45, 200, 70), (128, 512, 256)]
FREE_PRODUCTS = [(("n",), 256, 128), (("n", 9), 100, 48), (("n",), 64, 10)]   # of the last, threads share the copy of the rows alone
FREE = [1, 4, 16, 33]   # numbers for n
# channels in and out, pixels of a line, kernel, stride, zero point
CONVOLUTIONS = [(64, 32, 14, 1, 1, 128), (64, 64, 7, 1, 1, 128), (64, 64, 15, 3, 1, 128), (128, 96, 29, 3, 2, 128), (96, 64, 14, 3, 1, 0), (64, 48, 28, 5, 1, 77)]
# channels in, out, kernel, stride, padding, rows and columns
SHORT_CONVOLUTIONS = [(32, 64, 1, 1, 0, 9), (64, 32, 1, 2, 0, 31), (64, 48, 3, 1, 1, 15), (96, 64, 3, 2, 1, 28)]
# heads, queries, keys in a cache, depth, whether a mask is causal
ATTENTIONS = [(2, 64, 0, 64, False), (3, 197, 0, 64, False), (2, 64, 0, 64, True), (2, 100, 0, 32, True), (2, 48, 47, 33, False), (2, 56, 40, 32, True)]
NETWORKS = {"resnet50_int8": "fp32", "bert_base_s128": "bf16"}   # of ../shared/models


def cases(work, whole):
    """name, what makes the model's file, precision, tolerance: None for integers, which are the same without tiles."""
    lists = [(integer_products.product, PRODUCTS, "fp32", None), (integer_products.convolution, CONVOLUTIONS, "fp32", None),
             (bf16.product, [((rows,), depth, columns) for rows, depth, columns in PRODUCTS] + FREE_PRODUCTS, "bf16", ROUNDED),
             (bf16.convolution, SHORT_CONVOLUTIONS, "bf16", ROUNDED), (bf16.attention, ATTENTIONS, "bf16", SEVERAL), (bf16.network, [()], "bf16", SEVERAL)]
    for make, sizes, precision, tolerance in lists:
        for size in sizes:
            model = work / "m.onnx"
            make(model, *size)
            yield f"{precision} {make.__name__}{size}", model, precision, tolerance
    if whole:
        files, skipped = model_files(list(NETWORKS), work)
        for name in skipped:
            print(f"{name}: not at hand")
        for name, model in files.items():
            yield name, model, NETWORKS[name], None if "int8" in name else SEVERAL


def target_with_tiles(tilewright, path):
    """This machine's description with AMX. The result: whether it has it already."""
    text = subprocess.run([tilewright, "target", "host"], capture_output=True, text=True, check=True).stdout
    text = text[:text.index("rates:")]   # AMX changes them
    features = re.search(r"features: \[(.*?)\]", text, re.S)
    own = [name.strip() for name in features[1].split(",")]
    if "avx512f" not in own:   # as every processor with AMX has it
        sys.exit(print("tiles: this machine lacks AVX-512, so that nothing is run"))
    path.write_text(text[:features.start(1)] + ", ".join(own + [name for name in TILES if name not in own]) + text[features.end(1):])
    return all(name in own for name in TILES)


def ask_for_no_tiles(library):
    code = library.read_bytes()
    assert len(PRESENT) == len(TILES[0]) == len(TILES[1]) == len(TILES[2])
    for name in TILES:
        code = code.replace(name.encode(), PRESENT.encode())
    library.write_bytes(code)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--full", action="store_true", help="whole networks too: minutes")
    parser.add_argument("--only", help="cases whose names hold it")
    args = parser.parse_args()
    tilewright = args.tilewright.resolve()
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        target = work / "tiles.yaml"
        native = target_with_tiles(tilewright, target)
        environment = os.environ | ({} if native else {"LD_PRELOAD": str(tilewright.parent / "tests/libamx_emulator.so")})

        def call(*arguments):
            return subprocess.run([tilewright, *arguments], capture_output=True, text=True, env=environment)

        def results(library, model):
            """Of random inputs, bytes of all sizes among them."""
            inputs = []
            for i in onnx.load(model, load_external_data=False).graph.input:
                if i.type.tensor_type.elem_type == onnx.TensorProto.UINT8:
                    shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
                    np.save(work / "x.npy", np.random.default_rng(7).integers(0, 256, shape).astype(np.uint8))
                    inputs = ["-i", f"{i.name}={work / 'x.npy'}"]
            out = library.with_suffix("")
            ran = call("run", library, "--random", "7", "--no-check", "-d", out, *inputs)
            if ran.returncode:
                sys.exit(ran.stderr)
            return {file.name: np.load(file) for file in out.glob("*.npy")}

        def wrong(model, precision, tolerance):
            """What is wrong with the compiled model; None: nothing."""
            library, plain = work / "tiles.so", work / "plain.so"
            common = ["compile", model, "--precision", precision]
            compiled = [call(*common, "-t", target, "-o", library), call(*common, "-t", "host", "-o", plain), call(*common, "-t", target, "--emit", "asm")]
            if any(one.returncode for one in compiled):
                return "".join(one.stderr[-400:] for one in compiled)
            if "tdp" not in compiled[2].stdout:
                return "no product by tiles in its code"
            if not native:
                ask_for_no_tiles(library)
            if tolerance is not None:
                free = any(d.dim_param for i in onnx.load(model, load_external_data=False).graph.input for d in i.type.tensor_type.shape.dim)
                for bound in [["--dim", f"n={n}"] for n in FREE] if free else [[]]:
                    verified = call("verify", library, model, "--tolerance", str(tolerance), "--no-check", *bound)
                    if verified.returncode:
                        return " ".join(bound) + verified.stdout[-400:] + verified.stderr[-400:]
                return None
            got, want = results(library, model), results(plain, model)
            unlike = [name for name in want if not np.array_equal(got[name], want[name])]
            return f"{unlike} are not what they are without tiles" if unlike or not want else None

        for name, model, precision, tolerance in cases(work, args.full):
            if args.only and args.only not in name:
                continue
            count += 1
            problem = wrong(model, precision, tolerance)
            if problem:
                failed += 1
                print(f"FAIL {name}: {problem}")
    print(f"tiles ({'by this machine' if native else 'emulated'}): {count} models, {failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
