#!/usr/bin/env python3
"""Operators of com.microsoft, each in several variants, against onnxruntime: all in one model, with static shapes and with free ones.

    contrib.py --tilewright BUILD/tilewright [--only NAME] [--one-by-one]
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
HALF = 2.0 ** -10   # the same of f16: a step
MS = "com.microsoft"
B, S, H, N, D = 2, 5, 24, 3, 8   # batch, sequence, hidden, heads, head size
rng = np.random.default_rng(11)


def f(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


class Case:
    """inputs: arrays in the operator's order, None for absent; constant: indices of those that are weights; free: index -> symbols of its axes;
    like: inputs that mean the same, for onnxruntime, where it does not take these; types: of outputs that are not f32."""

    def __init__(self, name, op, inputs, outputs=1, constant=(), free=None, domain=MS, skip=(), like=None, types=None, **attributes):
        self.name, self.op, self.inputs, self.outputs, self.domain = name, op, inputs, outputs, domain
        self.constant, self.free, self.attributes, self.skip = set(constant), free or {}, attributes, skip
        self.like, self.types = like, types or {}

    def nodes(self, symbolic, reference=False):
        inputs = self.like if reference and self.like else self.inputs
        names = [f"{self.name}_{i}" if x is not None else "" for i, x in enumerate(inputs)]
        while names and not names[-1]:
            names.pop()
        outs = ["" if i in self.skip else f"{self.name}_out{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, outs, self.name, domain=self.domain, **self.attributes)
        feeds, values, weights = {}, [], []
        for i, x in enumerate(inputs):
            if x is None:
                continue
            if i in self.constant:
                weights.append(numpy_helper.from_array(x, names[i]))
                continue
            feeds[names[i]] = x
            shape = list(x.shape)
            for axis, symbol in enumerate(self.free.get(i, [None] * x.ndim) if symbolic else []):
                shape[axis] = f"{self.name}_{symbol}" if symbol else shape[axis]
            values.append(helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(x.dtype), shape))
        return node, feeds, values, weights, [o for o in outs if o]


def lengths(values):
    return np.array(values, np.int32)


def norms_and_products():
    x, skip, gamma, beta, bias = f(B, S, H), f(B, S, H), f(H), f(H), f(H)
    bs = {0: ["b", "s", None], 1: ["b", "s", None]}
    yield Case("skip", "SkipLayerNormalization", [x, skip, gamma, beta, bias], 4, (2, 3, 4), bs, skip=(1, 2), epsilon=1e-5)
    yield Case("skip_broadcast", "SkipLayerNormalization", [x, f(1, S, H), gamma], 1, (2,))
    yield Case("skip_rms", "SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], 4, (2, 3), bs, skip=(1, 2))
    yield Case("rms", "SimplifiedLayerNormalization", [x, gamma], 2, (1,), {0: ["b", "s", None]}, domain="", axis=-1, epsilon=1e-6)
    yield Case("bias_gelu", "BiasGelu", [x, bias], 1, (1,), {0: ["b", "s", None]})
    yield Case("fast_gelu", "FastGelu", [x, bias], 1, (1,))
    yield Case("fast_gelu_alone", "FastGelu", [x])
    yield Case("quick_gelu", "QuickGelu", [x], alpha=1.5)
    yield Case("gelu", "Gelu", [x])
    yield Case("fused_matmul", "FusedMatMul", [f(B, 4, 5), f(B, 6, 4)], transA=1, transB=1, alpha=0.5)
    yield Case("fused_matmul_batches", "FusedMatMul", [f(4, B, 5), f(5, B, 6)], transBatchA=1, transBatchB=1)
    yield Case("fused_gemm", "FusedGemm", [f(4, 5), f(5, 6), f(6)], activation="LeakyRelu", activation_alpha=0.2, alpha=0.5, beta=2.0)
    yield Case("fused_gemm_relu", "FusedGemm", [f(4, 5), f(6, 5)], activation="Relu", transB=1)
    image, weights = f(1, 4, 7, 7), f(8, 4, 3, 3)
    for activation, parameters in (("Relu", None), ("Tanh", None), ("Sigmoid", None), ("LeakyRelu", [0.3]), ("Clip", [-0.5, 0.5]), ("HardSigmoid", [0.3, 0.4])):
        more = {"activation_params": parameters} if parameters else {}
        yield Case(f"conv_{activation}", "FusedConv", [image, weights, f(8)], 1, (1, 2), activation=activation, pads=[1, 1, 1, 1], **more)
    yield Case("conv_sum", "FusedConv", [image, weights, f(8), f(1, 8, 7, 7)], 1, (1, 2), activation="Relu", pads=[1, 1, 1, 1])
    ids, segments, mask = (rng.integers(0, n, (B, S)).astype(np.int32) for n in (30, 2, 2))
    tables = [f(30, H), f(12, H), f(2, H), gamma, beta]
    yield Case("embed", "EmbedLayerNormalization", [ids, segments, *tables, mask], 3, range(2, 7), {i: ["b", "s"] for i in (0, 1, 7)})
    yield Case("embed_ids", "EmbedLayerNormalization", [ids, None, tables[0], tables[1], None, gamma, beta, None, segments + 3], 2, range(2, 7))


def rotary():
    cos, sin = f(16, D // 2), f(16, D // 2)
    places = rng.integers(0, 16, (B, S)).astype(np.int64)
    for interleaved in (0, 1):
        yield Case(f"rotary{interleaved}", "RotaryEmbedding", [f(B, S, H), places, cos, sin], 1, (2, 3), {0: ["b", "s", None], 1: ["b", "s"]}, interleaved=interleaved)
        yield Case(f"rotary4d{interleaved}", "RotaryEmbedding", [f(B, N, S, D), np.array([3], np.int64), cos, sin], 1, (2, 3), interleaved=interleaved)
    part = [f(16, 2), f(16, 2)]
    yield Case("rotary_part", "RotaryEmbedding", [f(B, S, H), places, *part], 1, (2, 3), num_heads=N, rotary_embedding_dim=4)


def attention():
    x, w, bias = f(B, S, H), f(H, 3 * H, scale=0.3), f(3 * H)
    bs = {0: ["b", "s", None]}
    mask = np.ones((B, S), np.int32)
    mask[0, 3:] = 0
    full = np.tril(np.ones((B, S, S), np.int32))
    yield Case("attention", "Attention", [x, w, bias], 1, (1, 2), bs, num_heads=N)
    yield Case("attention_causal", "Attention", [x, w, bias], 2, (1, 2), bs, num_heads=N, unidirectional=1)
    yield Case("attention_mask2", "Attention", [x, w, bias, mask], 1, (1, 2), {0: ["b", "s", None], 3: ["b", "s"]}, num_heads=N, mask_filter_value=-5000.0)
    yield Case("attention_mask3", "Attention", [x, w, bias, full], 1, (1, 2), num_heads=N)
    yield Case("attention_mask1", "Attention", [x, w, bias, lengths([3, 5])], 1, (1, 2), {0: ["b", "s", None], 3: ["b"]}, num_heads=N)
    yield Case("attention_mask1b", "Attention", [x, w, bias, lengths([4, 5, 1, 2])], 1, (1, 2), num_heads=N)
    yield Case("attention_past", "Attention", [x, w, bias, None, f(2, B, N, 4, D)], 2, (1, 2), {0: ["b", "s", None], 4: [None, "b", None, "p", None]}, num_heads=N, unidirectional=1)
    yield Case("attention_bias", "Attention", [x, w, bias, None, None, f(1, N, S, S)], 1, (1, 2), num_heads=N, scale=0.2)
    sizes = f(H, 2 * 12 + 18, scale=0.3)
    yield Case("attention_sizes", "Attention", [x, sizes, f(42)], 1, (1, 2), num_heads=N, qkv_hidden_sizes=[12, 12, 18])


def multi_head():
    q, k, v, bias = f(B, S, H), f(B, 7, H), f(B, 7, H), f(3 * H)
    free = {0: ["b", "s", None], 1: ["b", "t", None], 2: ["b", "t", None], 4: ["b", "t"]}
    mask = np.ones((B, 7), np.int32)
    mask[1, 4:] = 0
    yield Case("mha", "MultiHeadAttention", [q, k, v], 1, (), free, num_heads=N)
    yield Case("mha_bias", "MultiHeadAttention", [q, k, v, bias, mask], 1, (3,), free, num_heads=N)
    yield Case("mha_lengths", "MultiHeadAttention", [q, k, v, None, lengths([7, 2])], 1, (), num_heads=N)
    yield Case("mha_added", "MultiHeadAttention", [q, k, v, None, None, f(1, 1, S, 7)], 1, (), num_heads=N, scale=0.3)
    yield Case("mha_past", "MultiHeadAttention", [q, f(B, S, H), f(B, S, H), bias, None, None, f(B, N, 4, D), f(B, N, 4, D)], 3, (3,),
               {0: ["b", "s", None], 1: ["b", "s", None], 2: ["b", "s", None], 6: ["b", None, "p", None], 7: ["b", None, "p", None]}, num_heads=N, unidirectional=1)
    yield Case("mha_cross", "MultiHeadAttention", [q, f(B, N, 7, D), f(B, N, 7, D)], 1, (), num_heads=N)
    packed, pair = f(B, S, N, 3, D), f(B, 7, N, 2, D)
    part = lambda x, i: x[:, :, :, i].reshape(x.shape[0], x.shape[1], H)
    yield Case("mha_packed", "MultiHeadAttention", [packed], 1, (), like=[part(packed, i) for i in range(3)], num_heads=N)
    yield Case("mha_packed_kv", "MultiHeadAttention", [q, pair], 1, (), like=[q, part(pair, 0), part(pair, 1)], num_heads=N)


def group_query():
    heads, size, most = 4, 16, 12
    cos, sin = f(most, size // 2), f(most, size // 2)

    def step(name, rows, past, buffer, batch=B, kv=2, packed=False, free=True, seen=None, caches=True, window=-1, rest=(), cache=None, **more):
        total = past + rows
        seen = [total - 1] * batch if seen is None else seen
        wide = f(batch, rows, (heads + 2 * kv) * size) if packed else f(batch, rows, heads * size)
        keys = [None, None] if packed else [f(batch, rows, kv * size), f(batch, rows, kv * size)]
        held = [f(batch, kv, buffer, size), f(batch, kv, buffer, size)] if buffer else [None, None]
        scales = []
        if cache:   # of i8: PER_TENSOR or PER_CHANNEL
            held = [rng.integers(-128, 128, (batch, kv, buffer, size)).astype(np.int8) for _ in range(2)]
            scales = [None] * (3 if caches else 5) + [np.abs(f(*((1,) if cache == "PER_TENSOR" else (1, kv, 1, size)), scale=0.02)) + np.float32(0.01) for _ in range(2)]
            more = {"k_quant_type": cache, "v_quant_type": cache, "kv_cache_bit_width": 8, "types": {1: TensorProto.INT8, 2: TensorProto.INT8}, **more}
        ends = [lengths(seen), np.array(total, np.int32)]
        inputs = [wide, *keys, *held, *ends, *([cos, sin] if caches else [])] + list(rest) + scales
        symbols = {i: ["b", "s", None] for i in (0, 1, 2) if inputs[i] is not None} | {5: ["b"]}
        if buffer:
            symbols |= {3: ["b", None, "p", None], 4: ["b", None, "p", None]}
        more = {"local_window_size": window, **more} if window >= 0 else more
        return Case(name, "GroupQueryAttention", inputs, 3, (6, 7, 8) if caches else (6,), symbols if free else None, num_heads=heads, kv_num_heads=kv, do_rotary=int(caches), **more)

    yield step("gqa_prompt", 5, 0, 0, free=False)
    yield step("gqa_prompt_ragged", 5, 0, 0, free=False, seen=[4, 2])
    yield step("gqa_token", 1, 6, 6, free=False)
    yield step("gqa_token_ragged", 1, 6, 6, free=False, seen=[6, 3])
    yield step("gqa_token_buffer", 1, 6, most, free=False)
    yield step("gqa_packed", 5, 0, 0, free=False, packed=True, rotary_interleaved=1)
    yield step("gqa_more", 3, 4, 4, batch=1, free=False, kv=4)
    yield step("gqa_window", 6, 0, 0, free=False, window=2)
    yield step("gqa_window_token", 1, 8, 8, free=False, window=3)
    yield step("gqa_softcap", 5, 0, 0, free=False, softcap=2.0, caches=False, scale=0.4)
    for cache in ("PER_TENSOR", "PER_CHANNEL"):
        yield step(f"gqa_bytes_{cache}", 1, 6, 6, free=False, cache=cache)
        yield step(f"gqa_bytes_more_{cache}", 3, 4, 4, batch=1, free=False, cache=cache, caches=False)
    yield step("gqa_one", 1, 6, 6, free=False, kv=1, caches=False)


def small_integers():
    for bits, block, depth, columns, rows in ((4, 32, 64, 40, 3), (2, 32, 64, 24, 2), (4, 16, 48, 33, 1), (8, 32, 64, 24, 2), (4, 32, 70, 19, 5)):
        blocks = -(-depth // block)
        b = rng.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8)
        scales = f(columns, blocks, scale=0.1)
        packed = rng.integers(0, 256, (columns, -(-blocks * bits // 8))).astype(np.uint8)
        name = f"nbits{bits}_{block}_{depth}"
        at = dict(K=depth, N=columns, bits=bits, block_size=block)
        x = f(B, rows, depth)
        yield Case(name, "MatMulNBits", [x, b, scales], 1, (1, 2), {0: ["b", "s", None]}, **at)
        yield Case(name + "_zeros", "MatMulNBits", [x, b, scales, packed], 1, (1, 2, 3), **at)
        yield Case(name + "_bytes", "MatMulNBits", [x, b, scales], 1, (1, 2), {0: ["b", "s", None]}, accuracy_level=4, **at)
        yield Case(name + "_bytes_zeros", "MatMulNBits", [x, b, scales, packed], 1, (1, 2, 3), accuracy_level=4, **at)
        half, f16 = [x.astype(np.float16), b, scales.astype(np.float16)], {0: TensorProto.FLOAT16}
        yield Case(name + "_half", "MatMulNBits", half, 1, (1, 2), {0: ["b", "s", None]}, types=f16, **at)
        yield Case(name + "_half_zeros", "MatMulNBits", [*half, packed], 1, (1, 2, 3), types=f16, **at)
        if bits == 4 and depth % block == 0:
            yield Case(name + "_float", "MatMulNBits", [x, b, scales, f(columns, blocks) + 8, None, f(columns)], 1, (1, 2, 3, 5), **at)
    data = rng.integers(0, 256, (10, 32)).astype(np.uint8)
    places = rng.integers(0, 10, (2, 3)).astype(np.int64)
    yield Case("gather_nbits", "GatherBlockQuantized", [data, places, f(10, 2), rng.integers(0, 256, (10, 1)).astype(np.uint8)], 1, (0, 2, 3), bits=4, block_size=32, gather_axis=0, quantize_axis=1)
    x, w = rng.integers(0, 256, (B, S, H)).astype(np.uint8), rng.integers(0, 256, (H, 3 * H)).astype(np.uint8)
    one = lambda value, dtype: np.array(value, dtype)
    yield Case("qattention", "QAttention", [x, w, f(3 * H), one(0.02, np.float32), one(0.01, np.float32), None, one(120, np.uint8), one(130, np.uint8)], 1, (1, 2, 3, 4, 6, 7), num_heads=N)


def all_cases():
    for family in (norms_and_products, rotary, attention, multi_head, group_query, small_integers):
        yield from family()


def build(cases, symbolic, reference=False):
    nodes, feeds, values, weights, wanted, types = [], {}, [], [], [], {}
    for case in cases:
        node, own, infos, constants, outs = case.nodes(symbolic, reference)
        nodes.append(node)
        feeds.update(own)
        values += infos
        weights += constants
        wanted += outs
        types |= {f"{case.name}_out{i}": t for i, t in case.types.items()}
    results = [helper.make_tensor_value_info(o, TensorProto.INT32 if o in ("embed_out1", "embed_ids_out1") else types.get(o, TensorProto.FLOAT), None) for o in wanted]
    graph = helper.make_graph(nodes, "contrib", values, results, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)], ir_version=8), feeds, wanted


def expected_of(model, feeds, wanted):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip(wanted, session.run(wanted, feeds)))


def run(tilewright, work, model, feeds, wanted):
    path, artifact, folder = work / "model.onnx", work / "model.so", work / "out"
    onnx.save(model, path)
    subprocess.run([tilewright, "compile", path, "-o", artifact], check=True, stdout=subprocess.DEVNULL)
    arguments = []
    for i, (name, value) in enumerate(feeds.items()):
        np.save(work / f"in_{i}.npy", value)
        arguments += ["--input", f"{name}={work / f'in_{i}.npy'}"]
    subprocess.run([tilewright, "run", artifact, *arguments, "--threads", "2", "--output-dir", folder], check=True, stdout=subprocess.DEVNULL)
    return {name: np.load(folder / f"{name}.npy") for name in wanted}


def check(tilewright, work, cases, symbolic):
    """Names of outputs that are off."""
    model, feeds, wanted = build(cases, symbolic)
    expected, off = expected_of(*build(cases, symbolic, True)), []
    for info in model.graph.output:
        info.CopyFrom(helper.make_tensor_value_info(info.name, info.type.tensor_type.elem_type, [None] * expected[info.name].ndim))
    got = run(tilewright, work, model, feeds, wanted)
    for name in wanted:
        want, have = expected[name], got[name]
        same = want.shape == have.shape and np.array_equal(np.isfinite(want), np.isfinite(have))
        error = float(np.abs(np.nan_to_num(want.astype(np.float64)) - np.nan_to_num(have.astype(np.float64))).max(initial=0)) if same else float("inf")
        if error > (HALF if want.dtype == np.float16 else TOLERANCE) * max(1.0, float(np.abs(np.nan_to_num(want)).max(initial=0))):
            off.append(f"{name} error {error:.2e} shapes {want.shape} {have.shape}")
    return off, len(wanted)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--one-by-one", action="store_true", help="a model a case")
    args = parser.parse_args()
    cases = [c for c in all_cases() if c.name.startswith(args.only)]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for symbolic in (False, True):
            for group in [[c] for c in cases] if args.one_by_one else [cases]:
                what = f"{group[0].name if args.one_by_one else 'all'}, {'free' if symbolic else 'static'} shapes"
                try:
                    off, count = check(args.tilewright.resolve(), pathlib.Path(folder), group, symbolic)
                except Exception as e:  # noqa: BLE001: told, and the next one runs
                    off, count = [str(e)[:400]], 0
                failed += len(off)
                for line in off:
                    print(f"FAIL {what}: {line}", flush=True)
                if not off:
                    print(f"ok   {what}: {count} outputs", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
