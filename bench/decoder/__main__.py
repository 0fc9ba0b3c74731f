#!/usr/bin/env python3
"""A language model's decoder with weights of 4 bits, beside onnxruntime and llama.cpp: tokens a second of a prompt and of one token behind it.

    bench/decoder --tilewright BUILD/tilewright [--llama VENV/bin/python] [--threads 1] [--rounds 5] [--layers 24] [--work DIR] [--json FILE]

The model is that of examples/decoder/model.py with half a billion parameters. All run the same inputs in turns; each round gives each its minimum, the
table their median over rounds. llama.cpp gets the same weights, with scales in f16, and its own default for the cache, which is f16. Needs: numpy, onnx,
onnxruntime, and what llama_worker.py says.
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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "examples/decoder"))
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


class Llama:
    """llama_worker.py, in an interpreter that has llama.cpp."""

    def __init__(self, python, model, work, threads):
        worker = pathlib.Path(__file__).resolve().parent / "llama_worker.py"
        self.process = subprocess.Popen([python, worker, model, work, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit("llama_worker.py ended")
        return line.strip()

    def distance(self, ids, want, work):
        """How far its logits are from these, as a part of their range."""
        np.save(work / "ids.npy", ids)
        self.ask("logits", work / "ids.npy", work / "logits.npy")
        return float(np.abs(np.load(work / "logits.npy") - want).max() / np.ptp(want))

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        return self.answer()


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
    parser.add_argument("--llama", type=pathlib.Path, help="the interpreter that has llama-cpp-python and gguf")
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
    work.mkdir(parents=True, exist_ok=True)
    onnx.save(decoder.model, work / "decoder.onnx")
    subprocess.run([args.tilewright, "compile", work / "decoder.onnx", "-o", work / "decoder.so", "--dim", f"past=0..{PLACES}"], check=True)
    session, rows = rival(work / "decoder.onnx", args.threads), []
    llama = Llama(args.llama, work / "decoder.onnx", work, args.threads) if args.llama else None
    for title, past, seq in (("prompt", 0, PROMPT), ("token", PROMPT, 1)):
        feeds = feeds_of(decoder, past, seq)
        inputs = saved(feeds, work / title)
        command = [args.tilewright, "bench", work / "decoder.so", *inputs, "--threads", args.threads, "--seconds", args.seconds, "--json"]
        if llama and not past:
            apart = llama.distance(feeds["ids"][0], session.run(["logits"], feeds)[0][0], work)
            print(f"logits of llama.cpp: {apart:.1e} of the range from onnxruntime's", flush=True)
        times = {"tilewright": [], "onnxruntime": [], **({"llama.cpp": []} if llama else {})}
        for _ in range(args.rounds):
            times["tilewright"].append(json.loads(subprocess.check_output([str(c) for c in command], stderr=subprocess.DEVNULL))["min"] / 1e3)
            times["onnxruntime"].append(least(lambda: session.run(None, feeds), args.seconds))
            if llama:
                times["llama.cpp"].append(float(llama.ask("time", past, seq, args.seconds)))
        seconds = {who: statistics.median(of) for who, of in times.items()}
        rows.append({"what": title, "past": past, "tokens": seq, "threads": args.threads, "seconds": seconds})
        rates = ", ".join(f"{who} {seq / of:.1f} ({of / seconds['tilewright']:.2f} x)" for who, of in seconds.items() if who != "tilewright")
        print(f"{title}: {seq / seconds['tilewright']:.1f} tokens a second, {rates}, {args.threads} threads", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
