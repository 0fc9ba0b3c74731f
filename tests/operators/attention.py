"""Attention, rotary embeddings, and layers that carry a state."""
import numpy as np
from draw import numpy_type, operators

I64 = np.int64


@operators("Attention")
def attention(d):
    d.plain()
    batch, q_heads, size, value_size = d.between(1, 2), d.among([1, 2, 4]), d.among([1, 2, 4]), d.among([1, 2, 3])
    kv_heads = d.among([h for h in (1, 2, 4) if q_heads % h == 0])
    q_rows, kv_rows, past = d.between(1, 5), d.between(1, 5), d.maybe(d.between(1, 3), 0.3)
    flat = d.chance(0.4)

    def operand(i, heads, rows, width):
        return d.tensor(i, (batch, rows, heads * width) if flat else (batch, heads, rows, width))
    lengths = None
    if d.version >= 24 and past is None and d.chance(0.3):
        lengths = d.rng.integers(1, kv_rows + 1, batch).astype(I64)
    total = kv_rows + (past or 0)
    mask = None
    if d.chance(0.5):
        shape = d.among([(q_rows, total), (1, 1, q_rows, total), (batch, 1, q_rows, total), (batch, q_heads, q_rows, total)])
        name = d.among([d.type(0), "bool"])
        mask = d.values(name, shape)
        if name == "bool":
            mask[..., 0] = True   # a row without any would be NaN
    states = [d.tensor(1, (batch, kv_heads, past, size)), d.tensor(2, (batch, kv_heads, past, value_size))] if past else [None, None]
    attributes = dict(is_causal=d.maybe(d.pick(2)), scale=d.maybe(d.real(0.2, 1)), softcap=d.maybe(d.real(1, 3), 0.3))
    attributes |= {"q_num_heads": q_heads, "kv_num_heads": kv_heads} if flat else {}
    outputs = 1
    if past:
        outputs = 3
    if d.chance(0.2):
        outputs, attributes["qk_matmul_output_mode"] = 4, d.between(0, 3)
        if not past:   # outputs 1 and 2 are those of a cache
            outputs = 1
            del attributes["qk_matmul_output_mode"]
    return d.case(operand(0, q_heads, q_rows, size), operand(1, kv_heads, kv_rows, size), operand(2, kv_heads, kv_rows, value_size), mask, *states, lengths, outputs=outputs, **attributes)


@operators("RotaryEmbedding")
def rotary(d):
    d.plain()
    batch, heads, rows, size = d.between(1, 2), d.between(1, 3), d.between(1, 4), d.among([2, 4, 8])
    part = d.maybe(d.among([p for p in (2, 4) if p <= size]), 0.4)
    half = (part or size) // 2
    flat, placed = d.chance(0.5), d.chance(0.6)
    x = d.tensor(0, (batch, rows, heads * size) if flat else (batch, heads, rows, size))
    shape = (6, half) if placed else (batch, rows, half)
    places = d.rng.integers(0, 6, (batch, rows)).astype(I64) if placed else None
    return d.case(x, d.tensor(1, shape), d.tensor(2, shape), places, interleaved=d.maybe(d.pick(2)), num_heads=heads if flat or part else None, rotary_embedding_dim=part)


@operators("CausalConvWithState")
def causal_conv(d):
    d.plain()
    batch, channels, rows, taps = d.between(1, 2), d.between(1, 4), d.between(1, 6), d.between(1, 4)
    state = d.maybe(d.tensor(0, (batch, channels, taps - 1))) if taps > 1 else None
    return d.case(d.tensor(0, (batch, channels, rows)), d.tensor(0, (channels, 1, taps)), d.maybe(d.tensor(0, (channels,))), state, outputs=2, activation=d.maybe(d.among(["none", "silu", "swish"])))


@operators("LinearAttention")
def linear_attention(d):
    d.plain()
    batch, heads, rows, key, value = d.between(1, 2), d.between(1, 2), d.between(1, 4), d.between(1, 3), d.between(1, 3)
    rule = d.among(["linear", "gated", "delta", "gated_delta"])
    decay = -np.abs(d.tensor(0, (batch, rows, heads * key) if d.chance(0.5) else (batch, rows, heads), low=-2, high=2)) if rule.startswith("gated") else None
    beta = np.abs(d.tensor(0, (batch, rows, heads), low=0, high=1)) if rule.endswith("delta") else None
    state = d.maybe(d.values(d.type(3), (batch, heads, key, value)))
    name = numpy_type(d.type(0))
    return d.case(d.tensor(0, (batch, rows, heads * key), low=-1, high=1), d.tensor(1, (batch, rows, heads * key), low=-1, high=1), d.tensor(2, (batch, rows, heads * value)), state,
                  None if decay is None else decay.astype(name), None if beta is None else beta.astype(name), outputs=2, update_rule=d.maybe(rule) if rule == "gated_delta" else rule,
                  q_num_heads=heads, kv_num_heads=heads, scale=d.maybe(d.real(0.2, 1)), chunk_size=d.maybe(d.between(1, 8)))
