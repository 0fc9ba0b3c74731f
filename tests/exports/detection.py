"""Detectors: sizes that their data decide go through pools, products and suppression."""
import torch
import torchvision
from torch import nn

from export import by_torch, export


class Found(nn.Module):
    """A torchvision detector's lists for one picture."""

    def __init__(self, network, *names):
        super().__init__()
        self.network, self.names = network, names

    def forward(self, x):
        found = self.network([x])[0]
        return tuple(found[name] for name in self.names)


def detector(path, network, h=320, w=320, names=("boxes", "labels", "scores")):
    for part, gain in ((network, 1), (getattr(getattr(network, "head", None), "classification_head", nn.Identity()), 0.3)):   # so that random weights tell boxes apart
        for module in part.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                module.weight.data *= gain
    torch.manual_seed(7)
    return by_torch(path, Found(network, *names), lambda h=h, w=w: {"x": torch.rand(3, h, w)}, {"x": {1: "h", 2: "w"}}, [{}, {"h": h - 64, "w": w + 32}], outputs=len(names))


def tiny_backbone(levels=2):
    from torchvision.models.detection.backbone_utils import BackboneWithFPN
    body = torchvision.models.mobilenet_v3_small(weights=None).features
    return BackboneWithFPN(body, {"3": "0", "8": "1"}, [24, 48], 32)


ANCHORS = torchvision.models.detection.anchor_utils.AnchorGenerator(((32,), (64,), (128,)), ((0.5, 1.0, 2.0),) * 3)


@export("torchvision, legacy", tolerance=2e-3)
def ssdlite(path):
    return detector(path, torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5, topk_candidates=60, detections_per_img=20))


@export("torchvision, legacy", tolerance=2e-3)
def faster_rcnn(path):
    network = torchvision.models.detection.FasterRCNN(tiny_backbone(), 5, min_size=160, max_size=320, rpn_anchor_generator=ANCHORS, rpn_pre_nms_top_n_test=100, rpn_post_nms_top_n_test=30,
                                                      box_score_thresh=0.0, box_detections_per_img=20)
    return detector(path, network, 160, 192)


@export("torchvision, legacy", tolerance=2e-3)
def mask_rcnn(path):
    network = torchvision.models.detection.MaskRCNN(tiny_backbone(), 5, min_size=160, max_size=320, rpn_anchor_generator=ANCHORS, rpn_pre_nms_top_n_test=60, rpn_post_nms_top_n_test=20,
                                                    box_score_thresh=0.0, box_detections_per_img=8)
    return detector(path, network, 160, 192, ("boxes", "labels", "scores", "masks"))


@export("torchvision, legacy", tolerance=2e-3)
def retinanet(path):
    return detector(path, torchvision.models.detection.RetinaNet(tiny_backbone(), 5, min_size=160, max_size=320, anchor_generator=ANCHORS, score_thresh=0.0, topk_candidates=60, detections_per_img=20),
                    160, 192)


@export("torchvision, legacy", tolerance=2e-3)
def fcos(path):
    anchors = torchvision.models.detection.anchor_utils.AnchorGenerator(((32,), (64,), (128,)), ((1.0,),) * 3)
    return detector(path, torchvision.models.detection.FCOS(tiny_backbone(), 5, min_size=160, max_size=320, anchor_generator=anchors, score_thresh=0.0, topk_candidates=60, detections_per_img=20), 160, 192)


class Grid(nn.Module):
    """A one-stage detector's head with its boxes filtered by a mask, and suppression of what overlaps."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.SiLU(), nn.Conv2d(16, 24, 3, 2, 1), nn.SiLU(), nn.Conv2d(24, 7, 1))
        self.then = nn.Linear(4, 8)

    def forward(self, x):
        y = self.body(x)
        h, w = y.shape[2], y.shape[3]
        place = torch.stack(torch.meshgrid(torch.arange(w), torch.arange(h), indexing="xy"), -1).reshape(-1, 2) * 4.0
        flat = y[0].permute(1, 2, 0).reshape(-1, 7)
        middle, extent, score = place + flat[:, :2], flat[:, 2:4].exp() * 8, flat[:, 4].sigmoid()
        kept = score > 0.5
        boxes, score = torch.cat([middle - extent, middle + extent], 1)[kept], score[kept]
        best = torchvision.ops.nms(boxes, score, 0.3)
        return boxes[best], score[best], self.then(boxes[best])


@export("torch, legacy")
def grid_detector(path):
    return by_torch(path, Grid(), lambda h=64, w=64: {"x": torch.randn(1, 3, h, w)}, {"x": {2: "h", 3: "w"}}, [{}, {"h": 96, "w": 80}], outputs=3)


@export("torch, dynamo")
def grid_detector_dynamo(path):
    return by_torch(path, Grid(), lambda h=64, w=72: {"x": torch.randn(1, 3, h, w)}, {"x": {2: "h", 3: "w"}}, [{}, {"h": 96, "w": 80}], outputs=3, dynamo=True)
