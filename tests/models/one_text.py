#!/usr/bin/env python3
"""The kernels of networks, as they are lowered, have one text on all processors and devices. Layouts and precisions stand beside a text, and the algorithm
is the direct one. Devices have copies of their own, and read some tensors in a shape with other dimensions of one element.

    one_text.py --tilewright BUILD/tilewright [--full]
--full: also the large networks of bench/networks.
"""
import argparse
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROCESSORS = ("x86-64-v3", "x86-64-v1", "x86-64-v4", "cortex-a72", "neoverse-v1", "armv7-generic", "cortex-m4", "rv64gcv")
DEVICES = ("nvidia-sm75", "nvidia-sm90a", "opencl-generic")
# Attention in blocks of a device's threads has a running maximum.
OTHER_ALGORITHM = re.compile(r"attention")
# Kernels of devices whose groups hold other nodes: a view of what another launch makes, or no follower where the processor goes on
OTHER_GROUPS = {"densenet121": 6, "recurrent_audio": 4, "shifted_windows": 7, "small_audio": 4, "small_bert": 1, "small_head": 11, "small_vit": 1, "vit_small": 1}


def kernels_of(tilewright, model, target, folder):
    """Texts by the name in front of them, without a list's order and without dimensions of one element."""
    file = folder / "kernels.txt"
    done = subprocess.run([tilewright, "compile", model, "-t", target, "--algorithm", "direct", "--emit", "kernels", "-o", file], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{model.name} for {target}: {done.stderr.strip().splitlines()[-1]}")
    texts = [f"kernel {text}".strip() for text in re.split(r"^kernel ", file.read_text(), flags=re.MULTILINE)[1:]]
    return {re.sub(r", [01](?=[,\]])|(?<=\[)[01], ", "", text) for text in texts}


def name_of(text):
    return re.match(r"kernel @(\w+?)(_\d+)?\(", text)[1]


def without_names(texts):
    """Kernels of one name are numbered in the order of the model."""
    return {re.sub(r"^kernel @(\w+?)(_\d+)?(?=[\[(])", r"kernel @\1", text) for text in texts}


def unlike(texts, usual, device):
    """The texts that the usual ones lack."""
    return [text for text in sorted(texts - usual) if not device or not (name_of(text) == "copy" or OTHER_ALGORITHM.match(name_of(text)))]


def check(tilewright, model, folder):
    """The number of kernels, and what is wrong."""
    usual = without_names(kernels_of(tilewright, model, PROCESSORS[0], folder))
    problems = []
    for target in PROCESSORS[1:] + DEVICES:
        texts = without_names(kernels_of(tilewright, model, target, folder))
        others = unlike(texts, usual, target in DEVICES)
        if len(others) > (OTHER_GROUPS.get(model.stem, 0) if target in DEVICES else 0):
            other = others[-1]
            near = max(usual, key=lambda text: difflib.SequenceMatcher(None, text[:400], other[:400]).ratio())
            shown = [line for line in difflib.unified_diff(near.splitlines(), other.splitlines(), PROCESSORS[0], target, lineterm="", n=0)]
            problems.append(f"{target}, {len(others)} texts: " + "\n    ".join(line[:160] for line in shown[:8]))
    return len(usual), problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("--full", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for flags in ([["--small"]] + ([[]] if arguments.full else [])):
            subprocess.run([sys.executable, ROOT / "bench/networks", folder / "models", *flags], check=True, stdout=subprocess.DEVNULL)
        models, kernels, wrong = sorted((folder / "models").glob("*.onnx")), 0, 0
        for model in models:
            count, problems = check(arguments.tilewright, model, folder)
            kernels, wrong = kernels + count, wrong + bool(problems)
            print(f"{'WRONG' if problems else 'ok   '} {model.stem}: {count} kernels", *problems, sep="\n  ", flush=True)
    print(f"one text: {len(models)} networks, {kernels} kernels, {len(PROCESSORS)} processors, {len(DEVICES)} devices: {wrong} networks differ")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
