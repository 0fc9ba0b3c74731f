"""ONNX's own cases of single operators, with the outputs that it stores: those of the installed package, and of an older release, Debian's
libonnx-testdata, whose operators have other versions."""
import pathlib

import numpy as np
import onnx
from draw import UNUSED_TYPES, Const, type_name
from onnx import numpy_helper

FOLDERS = [pathlib.Path(onnx.__file__).parent / "backend/test/data/node", pathlib.Path("/usr/share/libonnx-testdata/data/node")]
SOURCE = "ONNX's cases"
# Outputs of a random generator, and older data that are not what their models say
LEFT_OUT = ("test_bernoulli", "test_training_dropout", "test_cast_BFLOAT16", "test_cast_FLOAT_to_BFLOAT16", "test_castlike_BFLOAT16", "test_castlike_FLOAT_to_BFLOAT16")


class StoredCase:
    """A case whose operands and outputs are stored; as Case otherwise."""
    special, definition = False, None

    def __init__(self, folder, index):
        model = onnx.load(folder / "model.onnx")
        self.node, = model.graph.node
        self.op, self.domain, self.index = self.node.op_type, self.node.domain, index
        self.text = folder.name + "_older" * (FOLDERS[1] in folder.parents)
        self.opset = next(o.version for o in model.opset_import if o.domain in (self.domain, "ai.onnx" if not self.domain else ""))
        self.version = onnx.defs.get_schema(self.op, self.opset, self.domain).since_version
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in self.node.attribute}
        self.attributes = {k: v.decode() if isinstance(v, bytes) else v for k, v in self.attributes.items()}
        data = folder / "test_data_set_0"
        fed = [i.name for i in model.graph.input]
        known = {name: tensor(data / f"input_{i}.pb") for i, name in enumerate(fed)}
        known |= {w.name: Const(numpy_helper.to_array(w)) for w in model.graph.initializer if w.name not in known}
        self.operands = [known.get(name) for name in self.node.input]
        self.outputs = len(self.node.output)
        self.stored = [tensor(data / f"output_{i}.pb") for i in range(len(model.graph.output))]
        if self.domain not in ("", "ai.onnx.ml") or len(self.stored) != self.outputs or any(type_name(v.dtype) in UNUSED_TYPES for v in [*known.values(), *self.stored] if isinstance(v, np.ndarray)):
            raise ValueError("outputs that are left out, types that nothing reads, or operators for training")

    def graph(self, names, outputs, prefix):
        node = onnx.NodeProto()
        node.CopyFrom(self.node)
        node.name = prefix
        node.input[:], node.output[:] = names, outputs
        return [node]

    def name(self):
        return self.text

    def types(self):
        return [type_name((o.value if isinstance(o, Const) else o).dtype) for o in self.operands if o is not None]

    def least_precise(self):
        return None

    def __str__(self):
        return f"opset {self.opset}: {self.text}"


def tensor(path):
    proto = onnx.TensorProto()
    proto.ParseFromString(path.read_bytes())
    value = numpy_helper.to_array(proto)
    if value.dtype == object:
        return np.array([v.decode() if isinstance(v, bytes) else str(v) for v in value.ravel()], object).reshape(value.shape)
    return value


def single(model):
    """One node, whose operands and results are tensors."""
    values = [*model.graph.input, *model.graph.output]
    return len(model.graph.node) == 1 and all(v.type.WhichOneof("value") == "tensor_type" for v in values) and \
        not any(a.HasField("g") for a in model.graph.node[0].attribute)


def folders():
    for place, root in enumerate(FOLDERS):
        for path in sorted(root.glob("*/model.onnx")):
            if not path.parent.name.startswith(LEFT_OUT) and single(onnx.load(path)):
                yield path.parent


def load(folder, index):
    """The case, or None where it is none of these."""
    try:
        return StoredCase(folder, index)
    except Exception:
        return None
