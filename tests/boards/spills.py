#!/usr/bin/env python3
"""No innermost loop of a product or a convolution saves registers on the stack: the models that the repository has, for every AArch64
processor in configs/. Nothing runs.

    spills.py [--tilewright BUILD/tilewright] [--only NAME,...]
"""
import argparse
import json
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODELS = sorted((ROOT / "examples/digits").glob("*.onnx"))
KERNELS = ("conv", "matmul", "winograd", "strassen")
ALLOWED = {}   # (description, model, kernel) -> why it may
LEAST = 3   # such kernels in a model: else the names above are others now


def descriptions():
    for path in sorted((ROOT / "configs").glob("*.yaml")):
        if re.search(r"^triple: (aarch64|arm64)-", path.read_text(), re.M):
            yield path.stem


def kernels_of(tilewright, model, target, folder):
    command = [tilewright, "compile", model, "-t", target, "-o", folder / "m.so", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return [k for k in json.loads(done.stdout)["kernel_reports"] if k["name"].startswith(KERNELS)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", default=ROOT / "build/release/tilewright", type=pathlib.Path)
    parser.add_argument("--only", help="descriptions, with commas between them")
    args = parser.parse_args()
    chosen, seen, wrong = args.only.split(",") if args.only else list(descriptions()), set(), []
    assert chosen and MODELS
    with tempfile.TemporaryDirectory() as folder:
        for target in chosen:
            for model in MODELS:
                kernels = kernels_of(args.tilewright.resolve(), model, target, pathlib.Path(folder))
                assert len(kernels) >= LEAST, f"{target}, {model.stem}: {kernels}"
                for kernel in kernels:
                    key = (target, model.stem, kernel["name"])
                    if kernel["spills"] + kernel["reloads"] == 0:
                        continue
                    seen.add(key)
                    if key not in ALLOWED:
                        wrong.append(f"{', '.join(key)}: {kernel['spills']} saved, {kernel['reloads']} loaded")
    wrong += [f"{', '.join(key)}: it does not spill any more" for key in ALLOWED if key[0] in chosen and key not in seen]
    print("\n".join(wrong) or f"spills: none on {len(chosen)} processors, {len(ALLOWED)} of which may")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
