"""Convolutional networks of pictures, videos and sound."""
from networks.builder import Network


def resnext50(size=224):
    net = Network("resnext50")
    x = net.pool(net.conv(net.input("x", [1, 3, size, size]), 64, 7, 2, act="relu"), 3, 2, 1)
    for stage, (out, count) in enumerate(((256, 3), (512, 4), (1024, 6), (2048, 3))):
        for block in range(count):
            stride = 2 if stage and not block else 1
            y = net.conv(net.conv(x, out // 2, act="relu"), out // 2, 3, stride, group=32, act="relu")
            y = net.conv(y, out, gain=0.5)
            x = net.act(net.add(y, net.conv(x, out, 1, stride) if not block else x), "relu")
    net.output(net.classifier(net.mean(x), 1000))
    return net


def resnet3d18(frames=16, size=112):
    net = Network("resnet3d18")
    x = net.conv(net.input("x", [1, 3, frames, size, size]), 64, (3, 7, 7), (1, 2, 2), act="relu")
    for stage, out in enumerate((64, 128, 256, 512)):
        for block in range(2):
            stride = 2 if stage and not block else 1
            y = net.conv(net.conv(x, out, 3, stride, act="relu"), out, 3, gain=0.5)
            x = net.act(net.add(y, net.conv(x, out, 1, stride) if stride == 2 else x), "relu")
    net.output(net.classifier(net.mean(x), 400))
    return net


def densenet121(size=224):
    net = Network("densenet121")
    x = net.pool(net.conv(net.input("x", [1, 3, size, size]), 64, 7, 2, act="relu"), 3, 2, 1)
    for stage, layers in enumerate((6, 12, 24, 16)):
        for _ in range(layers):   # a norm in front of an activation stays: a convolution has other readers
            n = net.shape[x][1]
            y = net.act(net.op("BatchNormalization", x, *(net.constant(v) for v in norm(net, n))), "relu")
            x = net.concat(x, net.conv(net.conv(y, 128, act="relu"), 32, 3))
        if stage < 3:
            x = net.pool(net.conv(net.act(x, "relu"), net.shape[x][1] // 2), 2, 2, kind="AveragePool")
    net.output(net.classifier(net.mean(net.act(x, "relu")), 1000))
    return net


def norm(net, n):
    return [1 + 0.1 * net.random.standard_normal(n).astype("f"), 0.1 * net.random.standard_normal(n).astype("f"), 0.1 * net.random.standard_normal(n).astype("f"),
            1 + 0.1 * net.random.random(n).astype("f")]


def googlenet(size=224):
    net = Network("googlenet")
    x = net.pool(net.conv(net.input("x", [1, 3, size, size]), 64, 7, 2, act="relu"), 3, 2, 1)
    x = net.pool(net.conv(net.conv(x, 64, act="relu"), 192, 3, act="relu"), 3, 2, 1)
    blocks = [(64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None, (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64),
              (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128), None, (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)]
    for block in blocks:
        if block is None:
            x = net.pool(x, 3, 2, 1)
            continue
        one, three_in, three, five_in, five, pooled = block
        x = net.concat(net.conv(x, one, act="relu"), net.conv(net.conv(x, three_in, act="relu"), three, 3, act="relu"),
                       net.conv(net.conv(x, five_in, act="relu"), five, 5, act="relu"), net.conv(net.pool(x, 3, 1, 1), pooled, act="relu"))
    net.output(net.classifier(net.mean(x), 1000))
    return net


def inverted(net, x, hidden, out, kernel, stride, act, squeeze=None, gate="Sigmoid", squeeze_act="silu"):
    y = net.conv(x, hidden, act=act) if hidden != net.shape[x][1] else x
    y = net.conv(y, hidden, kernel, stride, group=hidden, act=act)
    if squeeze:
        y = net.squeeze_excite(y, squeeze, squeeze_act, gate)
    y = net.conv(y, out, gain=0.7)
    return net.add(y, x) if stride == 1 and out == net.shape[x][1] else y


def efficientnet_b0(size=224):
    net = Network("efficientnet_b0")
    x = net.conv(net.input("x", [1, 3, size, size]), 32, 3, 2, act="silu")
    for grow, out, count, stride, kernel in ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for i in range(count):
            channels = net.shape[x][1]
            x = inverted(net, x, channels * grow, out, kernel, stride if not i else 1, "silu", max(1, channels // 4))
    net.output(net.classifier(net.mean(net.conv(x, 1280, act="silu")), 1000))
    return net


def mobilenet_v3(size=224):
    net = Network("mobilenet_v3")
    x = net.conv(net.input("x", [1, 3, size, size]), 16, 3, 2, act="hardswish")
    rows = ((3, 16, 16, 0, "relu", 1), (3, 64, 24, 0, "relu", 2), (3, 72, 24, 0, "relu", 1), (5, 72, 40, 24, "relu", 2), (5, 120, 40, 32, "relu", 1), (5, 120, 40, 32, "relu", 1),
            (3, 240, 80, 0, "hardswish", 2), (3, 200, 80, 0, "hardswish", 1), (3, 184, 80, 0, "hardswish", 1), (3, 184, 80, 0, "hardswish", 1), (3, 480, 112, 120, "hardswish", 1),
            (3, 672, 112, 168, "hardswish", 1), (5, 672, 160, 168, "hardswish", 2), (5, 960, 160, 240, "hardswish", 1), (5, 960, 160, 240, "hardswish", 1))
    for kernel, hidden, out, squeeze, act, stride in rows:
        x = inverted(net, x, hidden, out, kernel, stride, act, squeeze, "HardSigmoid", "relu")
    x = net.mean(net.conv(x, 960, act="hardswish"))
    net.output(net.classifier(net.conv(x, 1280, act="hardswish"), 1000))
    return net


def shufflenet_v2(size=224):
    net = Network("shufflenet_v2")
    x = net.pool(net.conv(net.input("x", [1, 3, size, size]), 24, 3, 2, act="relu"), 3, 2, 1)
    for out, count in ((116, 4), (232, 8), (464, 4)):
        half = out // 2
        for i in range(count):
            channels = net.shape[x][1]
            left = net.conv(net.conv(x, channels, 3, 2, group=channels), half, act="relu") if not i else net.slice(x, 0, half, 1)
            right = net.conv(x if not i else net.slice(x, half, out, 1), half, act="relu")
            right = net.conv(net.conv(right, half, 3, 2 if not i else 1, group=half), half, act="relu")
            x = net.concat(left, right)
            n, c, h, w = net.shape[x]   # channels are shuffled
            x = net.reshape(net.transpose(net.reshape(x, n, 2, c // 2, h, w), 0, 2, 1, 3, 4), n, c, h, w)
    net.output(net.classifier(net.mean(net.conv(x, 1024, act="relu")), 1000))
    return net


def unet(size=256, width=32):
    net = Network("unet")
    def twice(x, out):
        return net.conv(net.conv(x, out, 3, act="relu"), out, 3, act="relu")
    x, skips = net.input("x", [1, 3, size, size]), []
    for level in range(4):
        x = twice(x, width << level)
        skips.append(x)
        x = net.pool(x, 2, 2)
    x = twice(x, width << 4)
    for level in reversed(range(4)):
        x = twice(net.concat(net.transposed(x, width << level), skips[level]), width << level)
    net.output(net.conv(x, 2))
    return net


def convnext_tiny(size=224):
    net = Network("convnext_tiny")
    def norm_channels(x):
        return net.transpose(net.layer_norm(net.transpose(x, 0, 2, 3, 1)), 0, 3, 1, 2)
    x = norm_channels(net.conv(net.input("x", [1, 3, size, size]), 96, 4, 4, 0))
    for stage, (out, count) in enumerate(((96, 3), (192, 3), (384, 9), (768, 3))):
        if stage:
            x = net.conv(norm_channels(x), out, 2, 2, 0)
        for _ in range(count):
            y = net.layer_norm(net.transpose(net.conv(x, out, 7, group=out), 0, 2, 3, 1))
            y = net.mlp(y, 4 * out)
            y = net.op("Mul", y, net.constant(net.random.random(out).astype("f") * 0.2))
            x = net.add(net.transpose(y, 0, 3, 1, 2), x)
    y = net.layer_norm(net.reshape(net.mean(x), net.batch, 768))
    net.output(net.classifier(y, 1000))
    return net


def super_resolution(size=128):
    """Residual blocks, then pixels out of channels."""
    net = Network("super_resolution")
    x = first = net.conv(net.input("x", [1, 3, size, size]), 32, 3)
    for _ in range(8):
        x = net.add(net.conv(net.conv(x, 32, 3, act="relu"), 32, 3, gain=0.3), x)
    x = net.conv(net.add(net.conv(x, 32, 3), first), 32 * 4, 3)
    x = net.op("DepthToSpace", x, blocksize=2, mode="CRD", shape=(1, 32, 2 * size, 2 * size))
    net.output(net.conv(x, 3, 3))
    return net


def style_transfer(size=192):
    """Instance norms between convolutions, nearest upsampling."""
    net = Network("style_transfer")
    def block(x, out, kernel, stride=1, act="relu"):
        return net.act(net.norm_planes(net.conv(x, out, kernel, stride)), act)
    x = block(block(block(net.input("x", [1, 3, size, size]), 32, 9), 64, 3, 2), 128, 3, 2)
    for _ in range(5):
        x = net.add(block(block(x, 128, 3), 128, 3, act=None), x)
    for out in (64, 32):
        n, c, h, w = net.shape[x]
        sizes = net.constant(net.random.random(0).astype("f"))
        x = net.op("Resize", x, sizes, net.constant(__import__("numpy").array([1, 1, 2, 2], "f")), mode="nearest", nearest_mode="floor",
                   coordinate_transformation_mode="asymmetric", shape=(n, c, 2 * h, 2 * w))
        x = block(x, out, 3)
    net.output(net.conv(x, 3, 9))
    return net


def keyword_spotter():
    """Depthwise convolutions over a spectrogram of 49 frames of 10 bands."""
    net = Network("keyword_spotter")
    x = net.conv(net.input("x", [1, 1, 49, 10]), 64, (10, 4), (2, 2), (4, 1), act="relu")
    for _ in range(4):
        x = net.conv(net.conv(x, 64, 3, group=64, act="relu"), 64, act="relu")
    net.output(net.classifier(net.mean(x), 12))
    return net


NETWORKS = [resnext50, resnet3d18, densenet121, googlenet, efficientnet_b0, mobilenet_v3, shufflenet_v2, unet, convnext_tiny, super_resolution, style_transfer,
            keyword_spotter]
