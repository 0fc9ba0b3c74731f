"""Transformers and recurrent networks."""
import numpy as np
from onnx import TensorProto

from networks.builder import Network


def block(net, x, heads, mask=None, hidden=4, act="gelu"):
    """A transformer's layer with norms in front."""
    x = net.add(x, net.attention(net.layer_norm(x), heads, mask=mask))
    return net.add(x, net.mlp(net.layer_norm(x), hidden * net.shape[x][-1], act))


def vit_small(size=224, patch=16, width=384, heads=6, layers=12):
    net = Network("vit_small")
    x = net.conv(net.input("x", [1, 3, size, size]), width, patch, patch, 0)
    tokens = (size // patch) ** 2
    x = net.transpose(net.reshape(x, 1, width, tokens), 0, 2, 1)
    x = net.concat(net.weights(1, 1, width, fan=800), x, axis=1)
    x = net.add(x, net.weights(1, tokens + 1, width, fan=800))
    for _ in range(layers):
        x = block(net, x, heads)
    net.output(net.classifier(net.slice(net.layer_norm(x), 0, 1, 1), 1000))
    return net


def shifted_windows(size=224, width=96, window=7):
    """Attention in windows of 7 x 7 patches, every second time moved by half a window, with a bias by relative position and a mask of what is no neighbour."""
    net = Network("shifted_windows")
    x = net.conv(net.input("x", [1, 3, size, size]), width, 4, 4, 0)
    side, heads = size // 4, 3
    x = net.layer_norm(net.transpose(x, 0, 2, 3, 1))
    for stage, count in enumerate((2, 2, 6, 2)):
        if stage:
            parts = [net.op("Slice", net.op("Slice", x, *(net.constant(np.array([v], np.int64)) for v in (i, side, 1, 2))),
                            *(net.constant(np.array([v], np.int64)) for v in (j, side, 2, 2)), shape=(1, side // 2, side // 2, width)) for j in (0, 1) for i in (0, 1)]
            x = net.linear(net.layer_norm(net.concat(*parts, axis=3)), 2 * width, False)
            side, width, heads = side // 2, width * 2, heads * 2
        for layer in range(count):
            shift = window // 2 if layer % 2 and side > window else 0
            x = net.add(x, windows(net, net.layer_norm(x), side, width, heads, window, shift))
            x = net.add(x, net.mlp(net.layer_norm(x), 4 * width))
    x = net.op("ReduceMean", net.layer_norm(x), axes=[1, 2], keepdims=0, shape=(1, width))
    net.output(net.classifier(x, 1000))
    return net


def windows(net, x, side, width, heads, window, shift):
    count, tokens = (side // window) ** 2, window * window
    if shift:
        x = net.roll(net.roll(x, -shift, 1), -shift, 2)
    x = net.transpose(net.reshape(x, 1, side // window, window, side // window, window, width), 0, 1, 3, 2, 4, 5)
    x = net.reshape(x, count, tokens, width)
    joined = net.transpose(net.reshape(net.linear(x, 3 * width), count, tokens, 3, heads, width // heads), 2, 0, 3, 1, 4)
    q, k, v = (net.op("Gather", joined, net.constant(np.array(i, np.int64)), axis=0, shape=(count, heads, tokens, width // heads)) for i in range(3))
    q = net.op("Mul", q, net.scalar((width // heads) ** -0.5))
    scores = net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2), shape=(count, heads, tokens, tokens))
    scores = net.add(scores, net.weights(1, heads, tokens, tokens, fan=50))
    if shift:
        region = np.zeros((side, side))
        for r, rows in enumerate((slice(0, -window), slice(-window, -shift), slice(-shift, None))):
            for c, columns in enumerate((slice(0, -window), slice(-window, -shift), slice(-shift, None))):
                region[rows, columns] = 3 * r + c
        region = region.reshape(side // window, window, side // window, window).transpose(0, 2, 1, 3).reshape(count, 1, tokens)
        mask = np.where(region != region.transpose(0, 2, 1), -100, 0).astype(np.float32)
        scores = net.reshape(scores, 1, count, heads, tokens, tokens)
        scores = net.add(scores, net.constant(mask[None, :, None]))
        scores = net.reshape(scores, -1, heads, tokens, tokens)
    y = net.op("MatMul", net.op("Softmax", scores, axis=-1), v, shape=(count, heads, tokens, width // heads))
    y = net.linear(net.reshape(net.transpose(y, 0, 2, 1, 3), count, tokens, width), width)
    y = net.reshape(y, 1, side // window, side // window, window, window, width)
    y = net.reshape(net.transpose(y, 0, 1, 3, 2, 4, 5), 1, side, side, width)
    return net.roll(net.roll(y, shift, 1), shift, 2) if shift else y


def embedded(net, name, tokens, words, width):
    ids = net.input(name, [1, tokens], TensorProto.INT64)
    return net.op("Gather", net.weights(words, width, fan=800), ids, axis=0, shape=(1, tokens, width))


def sentence_encoder(tokens=64, width=384, heads=12, layers=6):
    net = Network("sentence_encoder")
    x = net.add(embedded(net, "ids", tokens, 8192, width), net.weights(1, tokens, width, fan=800))
    x = net.layer_norm(x)
    mask = net.op("Mul", net.op("Sub", net.scalar(1), net.op("Unsqueeze", net.input("mask", [1, tokens]), net.constant(np.array([1, 2], np.int64)))), net.scalar(-10000))
    for _ in range(layers):   # norms behind
        x = net.layer_norm(net.add(x, net.attention(x, heads, mask=mask)))
        x = net.layer_norm(net.add(x, net.mlp(x, 4 * width)))
    net.output(net.op("ReduceMean", x, axes=[1], keepdims=0, shape=(1, width)))
    return net


def encoder_decoder(tokens=48, answer=12, width=512, heads=8, layers=4):
    """RMS norms, a gated feed-forward, biases by relative position; the decoder looks at the encoder."""
    net = Network("encoder_decoder")
    def gated(x):
        return net.linear(net.op("Mul", net.linear(x, 2 * width, False, "gelu"), net.linear(x, 2 * width, False)), width, False)
    x = embedded(net, "ids", tokens, 8192, width)
    bias = net.weights(1, heads, tokens, tokens, fan=50)
    for _ in range(layers):
        x = net.add(x, net.attention(net.rms_norm(x), heads, mask=bias, bias=False))
        x = net.add(x, gated(net.rms_norm(x)))
    memory = net.rms_norm(x)
    y = embedded(net, "answer", answer, 8192, width)
    causal = np.triu(np.full((answer, answer), -1e9, np.float32), 1)[None, None]
    own = net.constant(causal + net.random.standard_normal((1, heads, answer, answer)).astype("f"))
    for _ in range(layers):
        y = net.add(y, net.attention(net.rms_norm(y), heads, mask=own, bias=False))
        y = net.add(y, net.attention(net.rms_norm(y), heads, keys=memory, bias=False))
        y = net.add(y, gated(net.rms_norm(y)))
    net.output(net.linear(net.rms_norm(y), 8192, False))
    return net


def recurrent_audio(frames=100, bands=80, width=256):
    """Convolutions over a spectrogram, then recurrent layers in both directions."""
    net = Network("recurrent_audio")
    x = net.conv(net.input("x", [1, 1, frames, bands]), 32, 3, (2, 2), act="relu")
    x = net.conv(x, 32, 3, (1, 2), act="relu")
    n, c, t, f = net.shape[x]
    x = net.reshape(net.transpose(x, 2, 0, 1, 3), t, 1, c * f)
    for _ in range(2):
        into = net.shape[x][2]
        w, r = net.weights(2, 3 * width, into, fan=2 * into), net.weights(2, 3 * width, width, fan=2 * width)
        y = net.op("GRU", x, w, r, net.constant(np.zeros((2, 6 * width), np.float32)), hidden_size=width, direction="bidirectional", linear_before_reset=1,
                   shape=(t, 2, 1, width))
        x = net.reshape(net.transpose(y, 0, 2, 1, 3), t, 1, 2 * width)
    net.output(net.op("Softmax", net.linear(x, 64), axis=-1))
    return net


NETWORKS = [vit_small, shifted_windows, sentence_encoder, encoder_decoder, recurrent_audio]
