#!/usr/bin/env python3
"""Decoders with key and value caches, compiled once with free batch, past and sequence lengths, against onnxruntime at several sizes.

    decoder.py --tilewright BUILD/tilewright [--work DIR]
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TOLERANCE = 2e-5   # of an output's range
HEADS, KV_HEADS, SIZE, HIDDEN, LAYERS, WORDS, PLACES = 4, 2, 16, 64, 2, 50, 64
SIZES = [(1, 1, 1), (2, 7, 1), (1, 33, 5), (3, 16, 16), (2, 1, 9), (1, 40, 20)]   # batch, past, sequence


class Model:
    def __init__(self):
        self.rng = np.random.default_rng(5)
        self.nodes, self.weights, self.count = [], [], 0

    def add(self, op, inputs, outputs=1, domain="", names=None, **attributes):
        self.count += 1
        outs = names or [f"v{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, outs, f"n{self.count}", domain=domain, **attributes))
        return outs[0] if len(outs) == 1 else outs

    def weight(self, *shape, scale=None):
        name = f"w{len(self.weights)}"
        value = self.rng.standard_normal(shape) * (scale if scale else shape[0] ** -0.5)
        self.weights.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def number(self, *values, dtype=np.int64):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, dtype).reshape(len(values)), name))
        return name


def caches():
    angle = np.arange(PLACES)[:, None] / 10000.0 ** (np.arange(SIZE // 2)[None] * 2 / SIZE)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def decoder(grouped):
    """grouped: com.microsoft's GroupQueryAttention as exporters of decoders write it; else ai.onnx's operators of opset 23."""
    m = Model()
    cos, sin = (numpy_helper.from_array(c, n) for c, n in zip(caches(), ("cos", "sin")))
    m.weights += [cos, sin]
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "seq"])]
    total = "total" if grouped else "past + seq"
    if grouped:
        inputs.append(helper.make_tensor_value_info("mask", TensorProto.INT64, ["batch", total]))
        summed = m.add("ReduceSum", ["mask", m.number(1)], keepdims=0)
        ends = m.add("Cast", [m.add("Sub", [summed, m.number(1)])], to=TensorProto.INT32)
        length = m.add("Cast", [m.add("Gather", [m.add("Shape", ["mask"]), "one"], axis=0)], to=TensorProto.INT32)
        m.weights.append(numpy_helper.from_array(np.array(1, np.int64), "one"))
    else:
        inputs.append(helper.make_tensor_value_info("places", TensorProto.INT64, ["batch", "seq"]))
    x, outputs = m.add("Gather", [m.weight(WORDS, HIDDEN, scale=1.0), "ids"]), []

    def norm(value):
        return m.add("SimplifiedLayerNormalization" if grouped else "RMSNormalization", [value, m.weight(HIDDEN, scale=1.0)], axis=-1, epsilon=1e-6)

    for layer in range(LAYERS):
        held = [f"past_{layer}_{kind}" for kind in ("key", "value")]
        made = [f"present_{layer}_{kind}" for kind in ("key", "value")]
        inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", KV_HEADS, "past", SIZE]) for name in held]
        outputs += made
        y = norm(x)
        q, k, v = (m.add("MatMul", [y, m.weight(HIDDEN, heads * SIZE)]) for heads in (HEADS, KV_HEADS, KV_HEADS))
        out = f"attention_{layer}"
        if grouped:
            m.add("GroupQueryAttention", [q, k, v, *held, ends, length, "cos", "sin"], domain="com.microsoft", names=[out, *made],
                  num_heads=HEADS, kv_num_heads=KV_HEADS, do_rotary=1)
        else:
            q, k = (m.add("RotaryEmbedding", [value, "cos", "sin", "places"], num_heads=heads) for value, heads in ((q, HEADS), (k, KV_HEADS)))
            m.add("Attention", [q, k, v, "", *held], names=[out, *made], q_num_heads=HEADS, kv_num_heads=KV_HEADS, is_causal=1)
        x = m.add("Add", [x, m.add("MatMul", [out, m.weight(HEADS * SIZE, HIDDEN)])])
        y = norm(x)
        gate, up = m.add("MatMul", [y, m.weight(HIDDEN, 2 * HIDDEN)]), m.add("MatMul", [y, m.weight(HIDDEN, 2 * HIDDEN)])
        y = m.add("Mul", [m.add("Mul", [gate, m.add("Sigmoid", [gate])]), up])
        x = m.add("Add", [x, m.add("MatMul", [y, m.weight(2 * HIDDEN, HIDDEN)])])
    m.add("MatMul", [norm(x), m.weight(HIDDEN, WORDS)], names=["logits"])
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * rank) for name, rank in [("logits", 3), *((name, 4) for name in outputs)]]
    graph = helper.make_graph(m.nodes, "decoder", inputs, infos, m.weights)
    opsets = [helper.make_opsetid("", 17 if grouped else 23)] + ([helper.make_opsetid("com.microsoft", 1)] if grouped else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8 if grouped else 10)


def feeds_of(grouped, batch, past, seq, rng):
    feeds = {"ids": rng.integers(0, WORDS, (batch, seq)).astype(np.int64)}
    if grouped:
        feeds["mask"] = np.ones((batch, past + seq), np.int64)
    else:
        feeds["places"] = np.tile(np.arange(past, past + seq), (batch, 1)).astype(np.int64)
    for layer in range(LAYERS):
        for kind in ("key", "value"):
            feeds[f"past_{layer}_{kind}"] = rng.standard_normal((batch, KV_HEADS, past, SIZE)).astype(np.float32)
    return feeds


def worst(expected, got):
    error = 0.0
    for name, want in expected.items():
        have = got[name]
        if want.shape != have.shape or not np.isfinite(have).all():
            return float("inf")
        error = max(error, float(np.abs(want - have).max()) / max(1e-9, float(want.max() - want.min())))
    return error


def run(tilewright, artifact, feeds, names, work):
    arguments, folder = [], work / "out"
    for i, (name, value) in enumerate(feeds.items()):
        np.save(work / f"in_{i}.npy", value)
        arguments += ["--input", f"{name}={work / f'in_{i}.npy'}"]
    subprocess.run([tilewright, "run", artifact, *arguments, "--threads", "2", "--output-dir", folder], check=True, stdout=subprocess.DEVNULL)
    return {name: np.load(folder / f"{name}.npy") for name in names}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path)
    args = parser.parse_args()
    temporary = None if args.work else tempfile.TemporaryDirectory()
    work = args.work or pathlib.Path(temporary.name)
    failed, rng = 0, np.random.default_rng(1)
    for grouped in (True, False):
        kind = "GroupQueryAttention" if grouped else "Attention-23"
        path, artifact = work / f"decoder{int(grouped)}.onnx", work / f"decoder{int(grouped)}.so"
        onnx.save(decoder(grouped), path)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        subprocess.run([args.tilewright, "compile", path, "-o", artifact], check=True, stdout=subprocess.DEVNULL)
        for batch, past, seq in SIZES:
            if grouped and batch > 1 and seq > 1:
                continue   # onnxruntime takes several new tokens behind a past for one sequence only
            feeds = feeds_of(grouped, batch, past, seq, rng)
            expected = dict(zip(names, session.run(None, feeds)))
            error = worst(expected, run(args.tilewright, artifact, feeds, names, work))
            failed += error > TOLERANCE
            print(f"{'ok  ' if error <= TOLERANCE else 'FAIL'} {kind:20} batch {batch}, past {past}, seq {seq}: error {error:.1e} of the range", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
