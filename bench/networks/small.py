"""Small networks of the known families: few channels, small pictures, short texts. Every kind of layer of the large ones is in them, so that an interpreter or
an emulator runs them in seconds."""
import numpy as np
from onnx import TensorProto

from networks import convolutional, sequences
from networks.builder import Network
from networks.sequences import block, embedded


def small_resnet(size=32):
    """Basic blocks and a bottleneck."""
    net = Network("small_resnet")
    x = net.pool(net.conv(net.input("x", [1, 3, size, size]), 16, 7, 2, act="relu"), 3, 2, 1)
    for out, stride in ((16, 1), (32, 2)):
        y = net.conv(net.conv(x, out, 3, stride, act="relu"), out, 3, gain=0.5)
        x = net.act(net.add(y, net.conv(x, out, 1, stride) if stride == 2 else x), "relu")
    y = net.conv(net.conv(net.conv(x, 16, act="relu"), 16, 3, act="relu"), 64, gain=0.5)
    x = net.act(net.add(y, net.conv(x, 64)), "relu")
    net.output(net.classifier(net.mean(x), 40))
    return net


def small_mobilenet(size=32):
    net = Network("small_mobilenet")
    x = net.conv(net.input("x", [1, 3, size, size]), 16, 3, 2, act="relu6")
    for hidden, out, stride in ((16, 8, 1), (48, 16, 2), (96, 16, 1)):
        x = convolutional.inverted(net, x, hidden, out, 3, stride, "relu6")
    net.output(net.classifier(net.mean(net.conv(x, 96, act="relu6")), 40))
    return net


def small_lstm(tokens=6, words=64, width=32):
    """A language model: two recurrent layers over embedded words."""
    net = Network("small_lstm")
    ids = net.input("ids", [tokens, 1], TensorProto.INT64)
    x = net.op("Gather", net.weights(words, width, fan=2), ids, axis=0, shape=(tokens, 1, width))
    for _ in range(2):
        w, r = (net.weights(1, 4 * width, width, fan=2 * width) for _ in range(2))
        y = net.op("LSTM", x, w, r, net.constant(np.zeros((1, 8 * width), np.float32)), hidden_size=width, shape=(tokens, 1, 1, width))
        x = net.reshape(y, tokens, 1, width)
    net.output(net.linear(x, words))
    return net


def small_dqn(size=36):
    net = Network("small_dqn")
    x = net.conv(net.input("x", [1, 4, size, size]), 16, 8, 4, 0, act="relu")
    x = net.conv(net.conv(x, 32, 4, 2, 0, act="relu"), 32, 3, 1, 0, act="relu")
    x = net.act(net.classifier(x, 64), "relu")
    net.output(net.classifier(x, 6))
    return net


def small_dcgan(width=8):
    net = Network("small_dcgan")
    x = net.classifier(net.input("z", [1, 20]), 4 * width * 16)
    x = net.act(net.reshape(x, 1, 4 * width, 4, 4), "relu")
    for out in (2 * width, width):
        x = net.transposed(x, out, 4, 2, 1)
        x = net.act(net.op("BatchNormalization", x, *(net.constant(v) for v in convolutional.norm(net, out))), "relu")
    net.output(net.act(net.transposed(x, 3, 4, 2, 1), "tanh"))
    return net


def small_bert(tokens=24, words=100, width=64, heads=4, layers=2):
    """Norms behind, a mask, a pooled first token."""
    net = Network("small_bert")
    x = net.add(net.add(embedded(net, "ids", tokens, words, width), net.weights(1, tokens, width, fan=800)), embedded(net, "types", tokens, 2, width))
    x = net.layer_norm(x)
    mask = net.op("Cast", net.input("mask", [1, tokens], TensorProto.INT64), to=TensorProto.FLOAT)
    mask = net.op("Unsqueeze", mask, net.constant(np.array([1, 2], np.int64)), shape=(1, 1, 1, tokens))
    mask = net.op("Mul", net.op("Sub", net.scalar(1), mask), net.scalar(-10000))
    for _ in range(layers):
        x = net.layer_norm(net.add(x, net.attention(x, heads, mask=mask)))
        x = net.layer_norm(net.add(x, net.mlp(x, 4 * width)))
    net.output(net.act(net.classifier(net.slice(x, 0, 1, 1), width), "tanh"))
    return net


def small_gpt(tokens=24, words=100, width=64, heads=4, layers=2):
    """A causal mask, norms in front, words out."""
    net = Network("small_gpt")
    x = net.add(embedded(net, "ids", tokens, words, width), net.weights(1, tokens, width, fan=800))
    mask = net.constant(np.triu(np.full((tokens, tokens), -1e4, np.float32), 1)[None, None])
    for _ in range(layers):
        x = block(net, x, heads, mask=mask)
    net.output(net.linear(net.layer_norm(x), words, False))
    return net


def small_head(size=16, anchors=64, best=10):
    """What a detector ends with: boxes of the best scores, by TopK and gathers."""
    net = Network("small_head")
    x = net.conv(net.input("x", [1, 3, size, size]), 16, 3, 4, act="relu")
    scores = net.op("Sigmoid", net.reshape(net.conv(x, 4), 1, anchors))
    boxes = net.reshape(net.transpose(net.conv(x, 16), 0, 2, 3, 1), anchors, 4)
    _, places = net.op("TopK", scores, net.constant(np.array([best], np.int64)), axis=1, outputs=2)
    places = net.op("Reshape", places, net.constant(np.array([best], np.int64)), shape=(best,))
    net.output(net.op("Gather", boxes, places, axis=0, shape=(best, 4)))
    return net


def renamed(build, name):
    net = build()
    net.name = name
    return net


def small_vit():
    return renamed(lambda: sequences.vit_small(32, 8, 64, 4, 2), "small_vit")


def small_translator():
    return renamed(lambda: sequences.encoder_decoder(16, 8, 64, 4, 1), "small_translator")


def small_audio():
    return renamed(lambda: sequences.recurrent_audio(16, 16, 32), "small_audio")


def small_unet():
    return renamed(lambda: convolutional.unet(32, 8), "small_unet")


def small_shufflenet():
    return renamed(lambda: convolutional.shufflenet_v2(32), "small_shufflenet")


def small_styles():
    return renamed(lambda: convolutional.style_transfer(16), "small_styles")


NETWORKS = [small_resnet, small_mobilenet, small_lstm, small_dqn, small_dcgan, small_bert, small_gpt, small_head, small_vit, small_translator, small_audio,
            small_unet, small_shufflenet, small_styles]
