"""Networks on pictures and maps, by torch's two exporters."""
import timm
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

from export import by_torch, export

BATCH = {"x": {0: "n"}}
ANY_SIZE = {"x": {0: "n", 2: "h", 3: "w"}}


def pictures(n=1, h=64, w=64):
    return {"x": torch.randn(n, 3, h, w)}


def of_timm(name, model=None, size=64, any_size=False, dynamo=False, **options):
    """Registers an export of timm's network of that name."""
    def make(path):
        module = timm.create_model(model or name, pretrained=False, num_classes=10, **options)
        sizes = [{"n": 2, "h": size, "w": size}, {"n": 3, "h": size + 32 * any_size, "w": size + 64 * any_size}]
        return by_torch(path, module, pictures, ANY_SIZE if any_size else BATCH, sizes, dynamo=dynamo)
    make.__name__ = f"timm_{name}"
    export("timm, dynamo" if dynamo else "timm, legacy")(make)


of_timm("mobilenetv3_small_050", any_size=True, dynamo=True)
of_timm("resnet", "test_resnet", any_size=True, dynamo=True)
of_timm("convnext", "test_convnext", any_size=True, dynamo=True)
of_timm("vit", "test_vit", size=160, dynamo=True)
of_timm("efficientnet_gn", "test_efficientnet_gn", any_size=True, dynamo=True)
of_timm("mobilevitv2_050", any_size=False, dynamo=True)
of_timm("edgenext_xx_small", dynamo=True)
of_timm("levit_128s", size=224, dynamo=True)
of_timm("ghostnet_050", any_size=True)
of_timm("regnetx_002", any_size=True)
of_timm("xcit_nano_12_p16_224", size=64, img_size=64)
of_timm("efficientvit_b0", any_size=True)
of_timm("mambaout", "test_mambaout", any_size=True)
of_timm("nfnet", "test_nfnet", any_size=True)
of_timm("repvit_m0_9", any_size=True)
of_timm("swin", "swin_tiny_patch4_window7_224", size=56, img_size=56, embed_dim=24, depths=(2, 2), num_heads=(2, 4))
of_timm("fastvit_t8", any_size=True)


@export("torchvision, legacy")
def shufflenet(path):
    return by_torch(path, torchvision.models.shufflenet_v2_x0_5(weights=None, num_classes=10), pictures, ANY_SIZE, [{}, {"n": 2, "h": 96}])


@export("torchvision, dynamo")
def squeezenet(path):
    return by_torch(path, torchvision.models.squeezenet1_1(weights=None, num_classes=10), pictures, ANY_SIZE, [{"n": 2}, {"n": 3, "h": 97, "w": 75}], dynamo=True)


@export("torchvision, dynamo")
def vision_transformer(path):
    module = torchvision.models.VisionTransformer(image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=10)
    return by_torch(path, module, pictures, BATCH, [{"n": 2}, {"n": 5}], dynamo=True)


class Mask(nn.Module):
    """A segmentation network's map alone."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network(x)["out"].argmax(1), self.network(x)["out"]


@export("torchvision, legacy", tolerance=5e-4)
def lraspp(path):
    module = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)
    return by_torch(path, Scores(module), pictures, ANY_SIZE, [{}, {"h": 96, "w": 128}])


class Scores(Mask):
    def forward(self, x):
        return self.network(x)["out"]


@export("torchvision, dynamo", tolerance=5e-4)
def deeplab(path):
    module = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)
    return by_torch(path, Scores(module), pictures, ANY_SIZE, [{"n": 2}, {"n": 2, "h": 96, "w": 128}], dynamo=True)


class UNet(nn.Module):
    """Pads what it has up-sampled to what it joins it with."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(3, 8, 3, 1, 1), nn.Conv2d(8, 16, 3, 1, 1), nn.Conv2d(16, 32, 3, 1, 1)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)])
        self.mix = nn.ModuleList([nn.Conv2d(32, 16, 3, 1, 1), nn.Conv2d(16, 8, 3, 1, 1)])

    def forward(self, x):
        kept = []
        for i, conv in enumerate(self.down):
            x = F.relu(conv(x))
            if i < 2:
                kept.append(x)
                x = F.max_pool2d(x, 2)
        for up, mix in zip(self.up, self.mix):
            x, other = up(x), kept.pop()
            h, w = other.shape[2] - x.shape[2], other.shape[3] - x.shape[3]
            x = F.relu(mix(torch.cat([F.pad(x, [w // 2, w - w // 2, h // 2, h - h // 2]), other], 1)))
        return x


@export("torch, legacy")
def unet(path):
    return by_torch(path, UNet(), pictures, ANY_SIZE, [{}, {"n": 2, "h": 71, "w": 50}])


@export("torch, dynamo")
def unet_dynamo(path):
    return by_torch(path, UNet(), pictures, ANY_SIZE, [{"n": 2}, {"n": 3, "h": 68, "w": 52}], dynamo=True)


@export("torchvision, legacy", tolerance=2e-3)
def optical_flow(path):
    """RAFT, which looks things up by GridSample and a GRU of convolutions, three times."""
    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = torchvision.models.optical_flow.raft_small(weights=None)

        def forward(self, x, y):
            return self.network(x, y, num_flow_updates=3)[-1]
    return by_torch(path, Flow(), lambda n=1: {"x": torch.rand(n, 3, 128, 136), "y": torch.rand(n, 3, 128, 136)}, {"x": {0: "n"}, "y": {0: "n"}}, [{}, {"n": 2}])


@export("torch, legacy")
def super_resolution(path):
    module = nn.Sequential(nn.Conv2d(3, 16, 5, 1, 2), nn.PReLU(), nn.Conv2d(16, 27, 3, 1, 1), nn.PixelShuffle(3), nn.Upsample(scale_factor=1.5, mode="bicubic"))
    return by_torch(path, module, pictures, ANY_SIZE, [{}, {"n": 2, "h": 20, "w": 36}])


@export("torch, dynamo")
def video(path):
    module = nn.Sequential(nn.Conv3d(3, 8, (1, 3, 3), 2, (0, 1, 1)), nn.BatchNorm3d(8), nn.ReLU(), nn.Conv3d(8, 16, 3, 1, 1), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(16, 5))
    return by_torch(path, module, lambda n=2, t=8: {"x": torch.randn(n, 3, t, 32, 32)}, {"x": {0: "n", 2: "t"}}, [{}, {"n": 3, "t": 11}], dynamo=True)


def renamed(path, name):
    """Every free dimension with that name, as Paddle's exporter has it."""
    import onnx
    model = onnx.load(path)
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = name
    del model.graph.value_info[:]
    onnx.save(model, path)


class TextRows(nn.Module):
    """Recognizes a line of text: convolutions, then an LSTM over the columns."""

    def __init__(self):
        super().__init__()
        self.maps = nn.Sequential(nn.Conv2d(3, 16, 3, (2, 2), 1), nn.Hardswish(), nn.Conv2d(16, 32, 3, (2, 1), 1), nn.Hardswish(), nn.MaxPool2d(2))
        self.rows = nn.LSTM(32 * 4, 24, 2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(48, 20)

    def forward(self, x):
        maps = self.maps(x)
        return self.out(self.rows(maps.permute(0, 3, 1, 2).flatten(2))[0]).softmax(-1)


@export("Paddle's names")
def text_rows(path):
    runs = by_torch(path, TextRows(), lambda n=1, w=80: {"x": torch.randn(n, 3, 32, w)}, {"x": {0: "n", 3: "w"}}, [{}, {"n": 3, "w": 121}])
    renamed(path, "?")
    return runs


@export("Paddle's names")
def text_places(path):
    runs = by_torch(path, UNet(), pictures, ANY_SIZE, [{}, {"n": 2, "h": 72, "w": 52}])
    renamed(path, "-1")
    return runs
