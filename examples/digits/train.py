#!/usr/bin/env python3
"""Trains the digit classifier on the UCI digits that scikit-learn carries and writes digits.onnx, digits_batch.onnx
(the same weights with a free dimension `batch`), test_images.npy and test_labels.npy beside itself.

    scripts/setup.sh train && .venv-train/bin/python examples/digits/train.py [OUTPUT_DIR]

The held-out fifth is looked at once, after training; nothing is chosen by it. Seeds are fixed: on one machine and
library version two runs give the same files.
"""
import io
import pathlib
import sys

import numpy as np
import onnx
import torch
from data import SEED, load
from torch import nn

EPOCHS = 60
BATCH = 64


def conv_block(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


class Digits(nn.Module):
    """8x8 gray pixels in [0, 1] -> ten logits; about 30 000 weights."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(*conv_block(1, 16), *conv_block(16, 32), nn.MaxPool2d(2))
        self.residual = nn.Sequential(*conv_block(32, 32)[:2])
        self.pool = nn.MaxPool2d(2)
        self.hidden = nn.Linear(32 * 2 * 2, 64)
        self.classes = nn.Linear(64, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.stem(image)
        x = self.pool(torch.relu(x + self.residual(x)))
        return self.classes(torch.relu(self.hidden(torch.flatten(x, 1))))


def augment(images: torch.Tensor) -> torch.Tensor:
    """A small random rotation, scaling and shift of every image."""
    count = len(images)
    angle = (torch.rand(count) - 0.5) * 0.3
    scale = 1 + (torch.rand(count) - 0.5) * 0.2
    shift = (torch.rand(count, 2) - 0.5) * 0.3
    cos, sin = torch.cos(angle) * scale, torch.sin(angle) * scale
    theta = torch.stack([torch.stack([cos, -sin, shift[:, 0]], 1), torch.stack([sin, cos, shift[:, 1]], 1)], 1)
    grid = nn.functional.affine_grid(theta, list(images.shape), align_corners=False)
    return nn.functional.grid_sample(images, grid, align_corners=False)


def train(images: torch.Tensor, labels: torch.Tensor) -> Digits:
    model = Digits()
    steps = -(-len(images) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, epochs=EPOCHS, steps_per_epoch=steps)
    model.train()
    for epoch in range(EPOCHS):
        total = 0.0
        for chosen in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(augment(images[chosen])), labels[chosen], label_smoothing=0.05)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(chosen)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {total / len(images):.4f}")
    return model.eval()


def export(model: Digits, path: pathlib.Path, batch: bool) -> None:
    """Batch normalization stays a node of its own (training=PRESERVE): folding it is the compiler's work."""
    buffer = io.BytesIO()
    torch.onnx.export(model, (torch.zeros(1, 1, 8, 8),), buffer, dynamo=False, opset_version=17,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
                      input_names=["image"], output_names=["logits"],
                      dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}} if batch else None)
    proto = onnx.load_from_string(buffer.getvalue())
    proto.graph.name = "digits"
    proto.doc_string = proto.graph.doc_string = ""
    del proto.graph.value_info[:]
    for node in proto.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    onnx.checker.check_model(proto, full_check=True)
    onnx.save(proto, path)


def main() -> None:
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    train_images, test_images, train_labels, test_labels = load()
    model = train(torch.from_numpy(train_images), torch.from_numpy(train_labels).long())
    with torch.no_grad():
        guess = model(torch.from_numpy(test_images)).argmax(1).numpy()
    right = int((guess == test_labels).sum())
    print(f"held-out accuracy {right}/{len(test_labels)} = {right / len(test_labels):.4f}")
    export(model, out / "digits.onnx", batch=False)
    export(model, out / "digits_batch.onnx", batch=True)
    np.save(out / "test_images.npy", np.ascontiguousarray(test_images))
    np.save(out / "test_labels.npy", test_labels)


if __name__ == "__main__":
    main()
