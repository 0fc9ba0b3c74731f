#!/usr/bin/env python3
"""What detect.cpp should print, by onnxruntime and numpy: the same decoding and non-maximum suppression on the input
tensor that `detect --dump-input` wrote.

    reference.py face|yolox MODEL.onnx INPUT.npy PICTURE.jpg [--dump-outputs DIR] [--compare DETECTIONS]

--dump-outputs writes DIR/NAME.npy for every output of the model. --compare reads what detect printed and fails unless
it lists the same labels in an order the scores allow, scores within 0.002 and boxes within half a pixel.
"""
import argparse
import pathlib
import sys

import numpy as np
import onnxruntime
from PIL import Image

FACE_SCORE, FACE_OVERLAP = 0.7, 0.3
YOLOX_SCORE, YOLOX_OVERLAP = 0.3, 0.45
SIDE, STRIDES = 416, (8, 16, 32)
SCORE_TOLERANCE, BOX_TOLERANCE = 0.002, 0.5

COCO_CLASSES = """person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,stop sign,
parking meter,bench,bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,backpack,umbrella,handbag,tie,suitcase,
frisbee,skis,snowboard,sports ball,kite,baseball bat,baseball glove,skateboard,surfboard,tennis racket,bottle,
wine glass,cup,fork,knife,spoon,bowl,banana,apple,sandwich,orange,broccoli,carrot,hot dog,pizza,donut,cake,chair,couch,
potted plant,bed,dining table,toilet,tv,laptop,mouse,remote,keyboard,cell phone,microwave,oven,toaster,sink,
refrigerator,book,clock,vase,scissors,teddy bear,hair drier,toothbrush""".replace("\n", "").split(",")


def suppress(labels: list[str], scores: np.ndarray, boxes: np.ndarray, limit: float, size: tuple[int, int]) -> list:
    """Greedy, within each label, best first; boxes are [n, 4] corners, clamped to the picture at the end."""
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        rivals = [k for k in kept if labels[k] == labels[i]]
        sides = np.minimum(boxes[rivals, 2:], boxes[i, 2:]) - np.maximum(boxes[rivals, :2], boxes[i, :2])
        both = np.prod(np.maximum(sides, 0), axis=1)
        if not np.any(both / (areas[rivals] + areas[i] - both) > limit):
            kept.append(i)
    clamped = np.clip(boxes, 0, np.tile(size, 2))
    return [(labels[i], scores[i], *clamped[i]) for i in kept]


def decode_face(outputs: dict, size: tuple[int, int]) -> list:
    scores = outputs["scores"][0, :, 1].astype(np.float64)
    chosen = scores > FACE_SCORE
    boxes = outputs["boxes"][0][chosen].astype(np.float64) * np.tile(size, 2)
    return suppress(["face"] * len(boxes), scores[chosen], boxes, FACE_OVERLAP, size)


def decode_yolox(outputs: dict, size: tuple[int, int]) -> list:
    cells = outputs["output"][0].astype(np.float64)
    sides = [SIDE // stride for stride in STRIDES]
    grid = np.concatenate([np.stack(np.meshgrid(np.arange(s), np.arange(s)), -1).reshape(-1, 2) for s in sides])
    stride = np.concatenate([np.full((s * s, 1), stride) for s, stride in zip(sides, STRIDES)])
    classes = cells[:, 5:].argmax(1)
    scores = cells[:, 4] * cells[:, 5:].max(1)
    center, half = (cells[:, :2] + grid) * stride, np.exp(cells[:, 2:4]) * stride / 2
    boxes = np.concatenate([center - half, center + half], 1) / min(SIDE / size[0], SIDE / size[1])
    chosen = scores > YOLOX_SCORE
    labels = [COCO_CLASSES[c] for c in classes[chosen]]
    return suppress(labels, scores[chosen], boxes[chosen], YOLOX_OVERLAP, size)


def difference(expected: list, path: pathlib.Path) -> str | None:
    """The first thing that differs between our detections and those in the file."""
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    found = [(row[0], *map(float, row[1:])) for row in rows]
    if len(found) != len(expected):
        return f"{len(found)} detections, expected {len(expected)}"
    if any(b[1] > a[1] for a, b in zip(found, found[1:])):
        return "not sorted by score"
    left = list(found)
    for want in expected:
        same = [f for f in left if f[0] == want[0] and abs(f[1] - want[1]) <= SCORE_TOLERANCE
                and np.abs(np.subtract(f[2:], want[2:])).max() <= BOX_TOLERANCE]
        if not same:
            return f"missing: {line_of(want)}"
        left.remove(same[0])
    return None


def line_of(detection: tuple) -> str:
    return "%s\t%.3f\t%.1f\t%.1f\t%.1f\t%.1f" % detection


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("detector", choices=["face", "yolox"])
    parser.add_argument("model")
    parser.add_argument("input")
    parser.add_argument("picture")
    parser.add_argument("--dump-outputs", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--compare", type=pathlib.Path, metavar="DETECTIONS")
    arguments = parser.parse_args()

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(arguments.model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    values = session.run(None, {session.get_inputs()[0].name: np.load(arguments.input)})
    if arguments.dump_outputs:
        arguments.dump_outputs.mkdir(parents=True, exist_ok=True)
        for name, value in zip(names, values):
            np.save(arguments.dump_outputs / f"{name}.npy", value)
    with Image.open(arguments.picture) as picture:
        size = picture.size
    decode = decode_face if arguments.detector == "face" else decode_yolox
    detections = decode(dict(zip(names, values)), size)
    if not arguments.compare:
        print("".join(line_of(d) + "\n" for d in detections), end="")
        return 0
    wrong = difference(detections, arguments.compare)
    print(f"{arguments.compare}: {wrong or f'{len(detections)} detections agree'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
