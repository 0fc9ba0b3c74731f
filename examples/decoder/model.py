#!/usr/bin/env python3
"""Writes a decoder as exporters of language models do: weights of 4 bits as MatMulNBits, GroupQueryAttention, caches as inputs and outputs. Its weights are
random: it shows speed and how a program drives it, and says nothing of sense.

    model.py -o decoder.onnx [--size small|half_billion] [--layers N] [--cache f32|i8]

ids [1, seq], mask [1, total] of ones (total = past + seq), past.N.key and .value [1, heads of keys, past, size of a head]
-> logits [1, seq, words], present.N.key and .value [1, heads of keys, total, size of a head]. Needs: numpy, onnx. A cache of i8 has one scale, and generate.c
drives one of f32.
"""
import argparse
import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCK, PLACES = 32, 4096   # numbers of weights with one scale; places that rotations are known of


@dataclasses.dataclass
class Sizes:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head: int
    inside: int
    words: int


SIZES = {"small": Sizes(2, 64, 4, 2, 16, 128, 256), "half_billion": Sizes(24, 896, 14, 2, 64, 4864, 151936)}   # the latter: Qwen2's of 0.5 billion parameters


class Decoder:
    def __init__(self, sizes, cache="f32"):
        self.sizes = s = sizes
        held = {"f32": TensorProto.FLOAT, "i8": TensorProto.INT8}[cache]
        self.random, self.nodes, self.weights = np.random.default_rng(7), [], []
        angle = np.arange(PLACES)[:, None] / 10000.0 ** (np.arange(s.head // 2)[None] * 2 / s.head)
        self.constant("cos", np.cos(angle).astype(np.float32))
        self.constant("sin", np.sin(angle).astype(np.float32))
        self.constant("axis", np.array([1], np.int64))
        self.constant("one", np.array(1, np.int64))
        bytes_held = cache == "i8"
        self.quantized = {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR", "kv_cache_bit_width": 8} if bytes_held else {}
        self.scales = ["", "", ""] + [self.constant("cache_scale", np.array([0.03], np.float32))] * 2 if bytes_held else []
        self.caches = [f"{layer}.{kind}" for layer in range(s.layers) for kind in ("key", "value")]
        info = helper.make_tensor_value_info
        inputs = [info("ids", TensorProto.INT64, [1, "seq"]), info("mask", TensorProto.INT64, [1, "total"])]
        inputs += [info(f"past.{name}", held, [1, s.kv_heads, "past", s.head]) for name in self.caches]
        outputs = [info("logits", TensorProto.FLOAT, [1, "seq", s.words])]
        outputs += [info(f"present.{name}", held, [1, s.kv_heads, "total", s.head]) for name in self.caches]
        self.constant("words", self.random.standard_normal((s.words, s.hidden), np.float32))
        summed = self.add("ReduceSum", ["mask", "axis"], keepdims=0)
        self.ends = self.add("Cast", [self.add("Sub", [summed, "one"])], to=TensorProto.INT32)
        self.length = self.add("Cast", [self.add("Gather", [self.add("Shape", ["mask"]), "one"], axis=0)], to=TensorProto.INT32)
        x = self.add("Gather", ["words", "ids"])
        for layer in range(s.layers):
            x = self.layer(layer, x)
        self.product(self.norm(x), s.hidden, s.words, out="logits")
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

    def product(self, x, depth, columns, out=None):
        return self.add("MatMulNBits", [x, *self.matrix(depth, columns)], out=out, domain="com.microsoft", K=depth, N=columns, bits=4, block_size=BLOCK,
                        accuracy_level=4)

    def norm(self, x):
        scale = self.constant(f"g{len(self.weights)}", np.ones(self.sizes.hidden, np.float32))
        return self.add("SimplifiedLayerNormalization", [x, scale], axis=-1, epsilon=1e-6)

    def layer(self, layer, x):
        s, y = self.sizes, self.norm(x)
        q, k, v = (self.product(y, s.hidden, heads * s.head) for heads in (s.heads, s.kv_heads, s.kv_heads))
        held = [f"past.{layer}.{kind}" for kind in ("key", "value")]
        made = [f"present.{layer}.{kind}" for kind in ("key", "value")]
        seen = self.add("GroupQueryAttention", [q, k, v, *held, self.ends, self.length, "cos", "sin", *self.scales], outputs=made, domain="com.microsoft",
                        num_heads=s.heads, kv_num_heads=s.kv_heads, do_rotary=1, **self.quantized)
        x = self.add("Add", [x, self.product(seen, s.heads * s.head, s.hidden)])
        y = self.norm(x)
        gate, up = self.product(y, s.hidden, s.inside), self.product(y, s.hidden, s.inside)
        gated = self.add("Mul", [self.add("Mul", [gate, self.add("Sigmoid", [gate])]), up])
        return self.add("Add", [x, self.product(gated, s.inside, s.hidden)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default="decoder.onnx")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--cache", choices=["f32", "i8"], default="f32")
    args = parser.parse_args()
    sizes = SIZES[args.size]
    onnx.save(Decoder(dataclasses.replace(sizes, layers=args.layers or sizes.layers), args.cache).model, args.output)


if __name__ == "__main__":
    main()
