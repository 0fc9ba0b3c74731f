"""What is checked: the reference evaluator and the compiled library, many cases in a model."""
import json
import pathlib
import shutil
import subprocess

import numpy as np
import onnx
from draw import numpy_type, type_name
from onnx import TensorProto
from sources import info, model_of

UNSUPPORTED = 3   # exit status
STORED_AS_BYTES = ("float8", "float4", "int4", "uint4", "int2", "uint2")


class Checked:
    """A case with what the sources say of it."""
    def __init__(self, node, answers, lacking):
        self.node, self.case, self.answers, self.lacking = node, node.case, answers, lacking
        self.infos = [info(n, v) for n, v in zip(node.outputs, next(iter(answers.values())))]


def told(process):
    lines = (process.stderr or process.stdout).strip().splitlines() or [f"ended with {process.returncode}"]
    return next((line for line in lines if "error" in line), lines[0])[:300]


def stored(value):
    if value.dtype == object:
        return value.astype(str)
    return value.view(np.uint8) if type_name(value.dtype).startswith(STORED_AS_BYTES) else value


def loaded(path, kind):
    value = np.load(path)
    if value.dtype.kind == "U":
        return value.astype(object)
    dtype = numpy_type(TensorProto.DataType.Name(kind).lower()) if kind else value.dtype
    named = type_name(dtype)
    return value.view(dtype) if named == "bfloat16" or (named.startswith(STORED_AS_BYTES) and value.dtype == np.uint8) or value.dtype.kind == "V" else value


class Outcome:
    """results by case name; and of those without, whether they were refused, and what was said."""
    def __init__(self):
        self.results, self.refused, self.failed = {}, {}, {}


class Engine:
    def __init__(self, tilewright, work):
        self.tilewright, self.work = tilewright, pathlib.Path(work)

    def call(self, *arguments):
        return subprocess.run([self.tilewright, *map(str, arguments)], capture_output=True, encoding="utf-8")

    def gaps(self, path):
        """{node's name: what is refused}"""
        process = self.call("inspect", path, "--json")
        try:
            return {node: f"{gap['op']}: {gap['problem']}" for gap in json.loads(process.stdout).get("gaps", []) if gap["code"] != "invalid model" for node in gap["nodes"]}
        except (json.JSONDecodeError, KeyError):
            return {}

    def run(self, batch, outcome=None):
        """Runs all in one model; those that fail alone are told so."""
        outcome = outcome or Outcome()
        if not batch:
            return outcome
        path, data, out = self.work / "model.onnx", self.work / "in.npz", self.work / "out"
        shutil.rmtree(out, ignore_errors=True)
        onnx.save(model_of([c.node for c in batch], [i for c in batch for i in c.infos]), path)
        feeds = {name: v for c in batch for name, value in c.node.feeds.items() for name, v in flat(name, value)}
        np.savez(data, **{name: stored(value) for name, value in feeds.items()})
        lists = [f for c in batch for name, value in c.node.feeds.items() if isinstance(value, list) for f in ("--dim", f"{name}={len(value)}")]
        code, text = self.compute(path, ["--input", data] if feeds else [], lists, out)
        if code == 0:
            for c in batch:
                outcome.results[c.case.name()] = [self.output(out, i) for i in c.infos]
            return outcome
        gaps = self.gaps(path) if code == UNSUPPORTED and len(batch) > 1 else {}
        names = {c.case.name(): next((why for node, why in gaps.items() if node.split("/")[0] == c.case.name()), None) for c in batch}
        if any(names.values()):
            outcome.refused.update({name: why for name, why in names.items() if why})
            return self.run([c for c in batch if not names[c.case.name()]], outcome)
        if len(batch) == 1:
            (outcome.refused if code == UNSUPPORTED else outcome.failed)[batch[0].case.name()] = text
            return outcome
        middle = len(batch) // 2
        return self.run(batch[middle:], self.run(batch[:middle], outcome))

    def output(self, out, value):
        kind = value.type.tensor_type.elem_type
        if value.type.WhichOneof("value") == "sequence_type":
            kind = value.type.sequence_type.elem_type.tensor_type.elem_type
            found = sorted(out.glob(f"{value.name}_*.npy"), key=lambda p: int(p.stem.rsplit("_", 1)[1]))
            return [loaded(p, kind) for p in found]
        return loaded(out / f"{value.name}.npy", kind)


def flat(name, value):
    """A sequence is numbered tensors."""
    return [(f"{name}_{i}", v) for i, v in enumerate(value)] if isinstance(value, list) else [(name, value)]


class Evaluator(Engine):
    def compute(self, path, inputs, lists, out):
        process = self.call("run", path, *inputs, *lists, "--output-dir", out)
        return process.returncode, told(process) if process.returncode else ""


class Compiled(Engine):
    def compute(self, path, inputs, lists, out):
        library = self.work / "model.so"
        for arguments in (["compile", path, "-j", "1", "-o", library, "--name", "model", *lists], ["run", library, *inputs, "--threads", "1", "--output-dir", out]):
            process = self.call(*arguments)
            if process.returncode:
                return process.returncode, f"{arguments[0]}: {told(process)}"
        return 0, ""


ENGINES = {"evaluator": Evaluator, "compiled": Compiled}
