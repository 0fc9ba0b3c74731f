"""What a model's outputs are, for rival_worker.py: one reading of a float model, two of an 8-bit one, and how far from them a contender may be.

An 8-bit model (QDQ or QLinear operators) may be read as it stands, in floats that are rounded to 8 bits now and then, or in integers, as fast libraries do. Both
follow the standard, and they round at different places: the outputs of an 8-bit ResNet-50 are up to 22 quantization steps apart, 9 % of their range. So
errors are counted in steps, to the nearer reading, and a contender may be as far from it as the two are from each other.
"""
import dataclasses
import json

import numpy as np

FLOAT_TOLERANCE = 1e-2   # of an output's range
LEAST_STEPS = 4          # that always pass
MOST_STEPS = 64          # readings further apart mean that one of them is wrong


def load_arrays(path):
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def span(value):
    return float(np.max(value) - np.min(value)) or 1.0


def distance(wanted, got, units):
    """The largest error over the outputs, in each one's unit; infinite where the sizes differ or something is not finite."""
    if len(got) < len(wanted):
        return float("inf")
    worst = 0.0
    for want, have, unit in zip(wanted, got, units):
        have = np.asarray(have, np.float64)
        if have.size != want.size or not np.isfinite(have).all():
            return float("inf")
        worst = max(worst, float(np.abs(have.reshape(want.shape) - want).max()) / unit)
    return worst


def steps_of(path, outputs):
    """Of an 8-bit model the quantization step of each output, else an empty list: the scale that dequantizes it, or where it is made otherwise a part in 255 of
    its range."""
    import onnx
    graph = onnx.load(str(path), load_external_data=False).graph
    if not any(n.op_type in ("QuantizeLinear", "DynamicQuantizeLinear") or n.op_type.startswith("QLinear") or n.op_type.endswith("Integer") for n in graph.node):
        return []
    makers = {name: node for node in graph.node for name in node.output}
    weights = {t.name: t for t in graph.initializer}
    steps = []
    for info, value in zip(graph.output, outputs):
        node = makers.get(info.name)
        scale = weights.get(node.input[1]) if node is not None and node.op_type == "DequantizeLinear" else None
        steps.append(float(np.max(onnx.numpy_helper.to_array(scale))) if scale is not None else span(value) / 255)
    return steps


@dataclasses.dataclass
class Truth:
    names: list      # of the outputs
    readings: dict   # name -> outputs
    steps: list      # of the outputs; empty: a float model

    def units(self):
        return self.steps or [span(v) for v in self.readings["graph"]]

    def tolerance(self, of_floats=FLOAT_TOLERANCE, steps=LEAST_STEPS):
        """In units(): of_floats for a float model; for an 8-bit one at least that many steps."""
        if not self.steps:
            return of_floats
        apart = max(distance(a, b, self.steps) for a in self.readings.values() for b in self.readings.values())
        if not apart <= MOST_STEPS:
            raise RuntimeError(f"the readings of the model are {apart:.0f} quantization steps apart, more than {MOST_STEPS}: {', '.join(self.readings)}")
        return max(apart, steps)

    def error(self, got):
        """To the nearest reading."""
        return min(distance(reading, got, self.units()) for reading in self.readings.values())

    def show(self, error):
        return f"{error:.1f} quantization steps" if self.steps else f"{error:.1e} of its range"

    def save(self, folder):
        for reading, outputs in self.readings.items():
            np.savez(folder / f"expected-{reading}.npz", **{f"{i}": value for i, value in enumerate(outputs)})
        (folder / "expected.json").write_text(json.dumps({"names": self.names, "readings": list(self.readings), "steps": self.steps}))

    @staticmethod
    def of_floats(outputs):
        outputs = list(outputs)
        return Truth([str(i) for i in range(len(outputs))], {"graph": outputs}, [])

    @staticmethod
    def load(folder):
        told = json.loads((folder / "expected.json").read_text())
        readings = {reading: list(load_arrays(folder / f"expected-{reading}.npz").values()) for reading in told["readings"]}
        return Truth(told["names"], readings, told["steps"])
