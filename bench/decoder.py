#!/usr/bin/env python3
"""A language model's decoder with weights of 4 bits, beside onnxruntime: tokens a second of a prompt and of one token behind it.

    decoder.py --tilewright BUILD/tilewright [--threads 1] [--rounds 5] [--layers 24] [--work DIR] [--json FILE]

The model is that of examples/decoder/model.py with half a billion parameters. Both run the same inputs in turns; each round gives each its minimum, the
table their median over rounds. Needs: numpy, onnx, onnxruntime.
"""
import argparse
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "examples/decoder"))
from model import PLACES, SIZES, Decoder  # noqa: E402

PROMPT = 512


def feeds_of(decoder, past, seq):
    sizes, random = decoder.sizes, np.random.default_rng(1)
    feeds = {"ids": random.integers(0, sizes.words, (1, seq)), "mask": np.ones((1, past + seq), np.int64)}
    for name in decoder.caches:
        feeds[f"past.{name}"] = random.standard_normal((1, sizes.kv_heads, past, sizes.head), np.float32)
    return feeds


def saved(feeds, folder):
    """Arguments that give a run these inputs."""
    folder.mkdir(exist_ok=True)
    arguments = []
    for i, (name, value) in enumerate(feeds.items()):
        np.save(folder / f"{i}.npy", value)
        arguments += ["--input", f"{name}={folder / f'{i}.npy'}"]
    return arguments


def rival(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def least(run, seconds):
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True, type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    temporary = None if args.work else tempfile.TemporaryDirectory()
    work = args.work or pathlib.Path(temporary.name)
    decoder = Decoder(dataclasses.replace(SIZES["half_billion"], layers=args.layers))
    onnx.save(decoder.model, work / "decoder.onnx")
    subprocess.run([args.tilewright, "compile", work / "decoder.onnx", "-o", work / "decoder.so", "--dim", f"past=0..{PLACES}"], check=True)
    session, rows = rival(work / "decoder.onnx", args.threads), []
    for title, past, seq in (("prompt", 0, PROMPT), ("token", PROMPT, 1)):
        feeds = feeds_of(decoder, past, seq)
        inputs = saved(feeds, work / title)
        command = [args.tilewright, "bench", work / "decoder.so", *inputs, "--threads", args.threads, "--seconds", args.seconds, "--json"]
        ours, theirs = [], []
        for _ in range(args.rounds):
            ours.append(json.loads(subprocess.check_output([str(c) for c in command], stderr=subprocess.DEVNULL))["min"] / 1e3)
            theirs.append(least(lambda: session.run(None, feeds), args.seconds))
        mine, other = statistics.median(ours), statistics.median(theirs)
        rows.append({"what": title, "past": past, "tokens": seq, "seconds": mine, "onnxruntime_seconds": other, "ratio": other / mine})
        print(f"{title}: {seq / mine:.1f} tokens a second, onnxruntime {seq / other:.1f}: {other / mine:.2f} x ({args.threads} threads)", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
