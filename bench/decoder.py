#!/usr/bin/env python3
"""A language model's decoder with weights of 4 bits, beside onnxruntime: tokens a second of a prompt and of one token behind it.

    decoder.py --tilewright BUILD/tilewright [--threads 1] [--rounds 5] [--layers 24] [--work DIR] [--json FILE]

Shapes of a public model of 0.5 billion parameters (Qwen2: 24 layers of 896, 14 heads of 64 that share 2 of keys, 4864 inside, 151936 words), random
weights as MatMulNBits (blocks of 32, accuracy_level 4) and GroupQueryAttention. The caches are inputs and outputs. Both run the same inputs in turns in
one process tree; each round gives each its minimum, the table their median over rounds. Needs: numpy, onnx, onnxruntime.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HIDDEN, HEADS, KV_HEADS, SIZE, INSIDE, WORDS, PLACES, BLOCK = 896, 14, 2, 64, 4864, 151936, 4096, 32
PROMPT = 512


class Decoder:
    """The graph as exporters for onnxruntime write it."""

    def __init__(self, layers):
        self.random, self.nodes, self.weights = np.random.default_rng(7), [], []
        angle = np.arange(PLACES)[:, None] / 10000.0 ** (np.arange(SIZE // 2)[None] * 2 / SIZE)
        self.constant("cos", np.cos(angle).astype(np.float32))
        self.constant("sin", np.sin(angle).astype(np.float32))
        self.constant("axis", np.array([1], np.int64))
        self.constant("one", np.array(1, np.int64))
        self.caches = [f"{layer}.{kind}" for layer in range(layers) for kind in ("key", "value")]
        info = helper.make_tensor_value_info
        inputs = [info("ids", TensorProto.INT64, [1, "seq"]), info("mask", TensorProto.INT64, [1, "total"])]
        inputs += [info(f"past.{name}", TensorProto.FLOAT, [1, KV_HEADS, "past", SIZE]) for name in self.caches]
        outputs = [info("logits", TensorProto.FLOAT, [1, "seq", WORDS])]
        outputs += [info(f"present.{name}", TensorProto.FLOAT, [1, KV_HEADS, "total", SIZE]) for name in self.caches]
        self.constant("words", self.random.standard_normal((WORDS, HIDDEN), np.float32))
        summed = self.add("ReduceSum", ["mask", "axis"], keepdims=0)
        self.ends = self.add("Cast", [self.add("Sub", [summed, "one"])], to=TensorProto.INT32)
        self.length = self.add("Cast", [self.add("Gather", [self.add("Shape", ["mask"]), "one"], axis=0)], to=TensorProto.INT32)
        x = self.add("Gather", ["words", "ids"])
        for layer in range(layers):
            x = self.layer(layer, x)
        self.add("MatMulNBits", [self.norm(x), *self.matrix(HIDDEN, WORDS)], out="logits", domain="com.microsoft", K=HIDDEN, N=WORDS, bits=4,
                 block_size=BLOCK, accuracy_level=4)
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, self.weights)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        self.model = helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def constant(self, name, value):
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def add(self, op, inputs, out=None, **attributes):
        out = out or f"v{len(self.nodes)}"
        more = attributes.pop("outputs", [])
        self.nodes.append(helper.make_node(op, inputs, [out, *more], f"n{len(self.nodes)}", **attributes))
        return out

    def matrix(self, depth, columns):
        name, blocks = f"w{len(self.weights)}", depth // BLOCK
        codes = self.random.integers(0, 256, (columns, blocks, BLOCK // 2), dtype=np.uint8)
        scales = (0.3 + self.random.random((columns, blocks), dtype=np.float32)) * (depth ** -0.5 / 8)
        return self.constant(name, codes), self.constant(name + ".scales", scales)

    def product(self, x, depth, columns):
        return self.add("MatMulNBits", [x, *self.matrix(depth, columns)], domain="com.microsoft", K=depth, N=columns, bits=4, block_size=BLOCK, accuracy_level=4)

    def norm(self, x):
        scale = self.constant(f"g{len(self.weights)}", np.ones(HIDDEN, np.float32))
        return self.add("SimplifiedLayerNormalization", [x, scale], axis=-1, epsilon=1e-6)

    def layer(self, layer, x):
        y = self.norm(x)
        q, k, v = (self.product(y, HIDDEN, heads * SIZE) for heads in (HEADS, KV_HEADS, KV_HEADS))
        held = [f"past.{layer}.{kind}" for kind in ("key", "value")]
        made = [f"present.{layer}.{kind}" for kind in ("key", "value")]
        seen = self.add("GroupQueryAttention", [q, k, v, *held, self.ends, self.length, "cos", "sin"], outputs=made, domain="com.microsoft", num_heads=HEADS,
                        kv_num_heads=KV_HEADS, do_rotary=1)
        x = self.add("Add", [x, self.product(seen, HEADS * SIZE, HIDDEN)])
        y = self.norm(x)
        gate, up = self.product(y, HIDDEN, INSIDE), self.product(y, HIDDEN, INSIDE)
        gated = self.add("Mul", [self.add("Mul", [gate, self.add("Sigmoid", [gate])]), up])
        return self.add("Add", [x, self.product(gated, INSIDE, HIDDEN)])

    def feeds(self, past, seq):
        feeds = {"ids": self.random.integers(0, WORDS, (1, seq)), "mask": np.ones((1, past + seq), np.int64)}
        for name in self.caches:
            feeds[f"past.{name}"] = self.random.standard_normal((1, KV_HEADS, past, SIZE), np.float32)
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
    decoder = Decoder(args.layers)
    onnx.save(decoder.model, work / "decoder.onnx")
    subprocess.run([args.tilewright, "compile", work / "decoder.onnx", "-o", work / "decoder.so", "--dim", f"past=0..{PLACES}"], check=True)
    session, rows = rival(work / "decoder.onnx", args.threads), []
    for title, past, seq in (("prompt", 0, PROMPT), ("token", PROMPT, 1)):
        feeds = decoder.feeds(past, seq)
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
