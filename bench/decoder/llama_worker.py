#!/usr/bin/env python3
"""The decoder of examples/decoder in llama.cpp, for bench/decoder: the same weights as its format Q4_0 has them, scales rounded to f16.

    llama_worker.py DECODER.onnx FOLDER THREADS      answers lines of standard input:
    time PAST TOKENS SECONDS    the least seconds that so many tokens behind so many take, logits of all
    logits IDS.npy OUT.npy      the logits of these tokens

Needs: numpy, onnx, gguf, llama-cpp-python.
"""
import ctypes
import pathlib
import sys
import time

import gguf
import llama_cpp
import numpy as np
import onnx
from onnx import numpy_helper

NAMES = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]   # a layer's products, in the order of the model's nodes
PLACES = 1024


def q4_0(codes, scales):
    """Rows of blocks of 32 codes, two neighbours a byte, as blocks of an f16 scale and 16 bytes with codes i and i + 16."""
    low, high = codes & 15, codes >> 4
    numbers = np.stack([low, high], axis=-1).reshape(*codes.shape[:2], 32)
    packed = numbers[..., :16] | numbers[..., 16:] << 4
    return np.concatenate([scales.astype(np.float16)[..., None].view(np.uint8), packed], axis=-1).reshape(len(codes), -1)


def neighbours(rows, heads):
    """llama.cpp turns neighbours of a head, the model its halves."""
    return rows.reshape(heads, 2, -1, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def written(model, path):
    weights = {w.name: numpy_helper.to_array(w) for w in model.graph.initializer}
    products = [n for n in model.graph.node if n.op_type == "MatMulNBits"]
    attention = next(n for n in model.graph.node if n.op_type == "GroupQueryAttention")
    heads = {a.name: a.i for a in attention.attribute}
    layers, words = len(products) // len(NAMES), weights["words"]
    norms = [weights[n.input[1]] for n in model.graph.node if n.op_type == "SimplifiedLayerNormalization"]
    out = gguf.GGUFWriter(path, "llama")
    out.add_context_length(PLACES)
    out.add_embedding_length(words.shape[1])
    out.add_vocab_size(len(words))
    out.add_block_count(layers)
    out.add_feed_forward_length(len(weights[products[4].input[1]]))
    out.add_head_count(heads["num_heads"])
    out.add_head_count_kv(heads["kv_num_heads"])
    out.add_layer_norm_rms_eps(1e-6)
    out.add_rope_freq_base(10000.0)
    out.add_tokenizer_model("none")
    out.add_tensor("token_embd.weight", words)
    for i, product in enumerate(products):
        layer, place = divmod(i, len(NAMES))
        rows = q4_0(weights[product.input[1]], weights[product.input[2]])
        name = NAMES[place] if layer < layers else "output"
        if name in ("attn_q", "attn_k"):
            rows = neighbours(rows, heads["num_heads" if name == "attn_q" else "kv_num_heads"])
        out.add_tensor(f"blk.{layer}.{name}.weight" if layer < layers else "output.weight", rows, raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    for i, scale in enumerate(norms):
        layer, place = divmod(i, 2)
        out.add_tensor(f"blk.{layer}.{['attn_norm', 'ffn_norm'][place]}.weight" if layer < layers else "output_norm.weight", scale)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return len(words)


class Llama:
    def __init__(self, path, words, threads):
        self.words = words
        llama_cpp.llama_backend_init()
        self.silent = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self.silent, None)
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), llama_cpp.llama_model_default_params())
        how = llama_cpp.llama_context_default_params()
        how.n_ctx = how.n_batch = how.n_ubatch = PLACES
        how.n_threads = how.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, how)
        if not self.model or not self.context:
            sys.exit("llama.cpp does not load the model")
        self.batch = llama_cpp.llama_batch_init(PLACES, 0, 1)

    def run(self, past, ids):
        """Tokens behind `past` others; what stood there is forgotten first."""
        llama_cpp.llama_memory_seq_rm(llama_cpp.llama_get_memory(self.context), 0, past, -1)
        self.batch.n_tokens = len(ids)
        for i, word in enumerate(ids):
            self.batch.token[i], self.batch.pos[i], self.batch.n_seq_id[i], self.batch.seq_id[i][0], self.batch.logits[i] = int(word), past + i, 1, 0, 1
        if llama_cpp.llama_decode(self.context, self.batch):
            sys.exit("llama.cpp does not run the model")
        llama_cpp.llama_synchronize(self.context)

    def logits(self, ids):
        self.run(0, ids)
        values = llama_cpp.llama_get_logits(self.context)
        return np.ctypeslib.as_array(ctypes.cast(values, ctypes.POINTER(ctypes.c_float)), (len(ids), self.words)).copy()

    def least(self, past, tokens, seconds):
        ids = np.random.default_rng(1).integers(0, self.words, past + tokens)
        if past:
            self.run(0, ids[:past])
        times, end = [], time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            self.run(past, ids[past:])
            times.append(time.perf_counter() - start)
        return min(times)


def main():
    model, folder, threads = sys.argv[1:]
    path = pathlib.Path(folder) / "decoder.gguf"
    llama = Llama(path, written(onnx.load(model), path), int(threads))
    print("ready", flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "time":
            print(llama.least(int(rest[0]), int(rest[1]), float(rest[2])), flush=True)
        else:
            np.save(rest[1], llama.logits(np.load(rest[0])))
            print("saved", flush=True)


if __name__ == "__main__":
    main()
