#!/usr/bin/env python3
"""Writes the ONNX backend suite of the installed onnx package, what an older release's has besides (older_cases.py), and the models of ml_cases.py and list_cases.py, as folders KIND/CASE: model.onnx as it is, symbolic.onnx with
symbols for the dims of the inputs, constant.onnx with the inputs as initializers (the last two where they differ), data.json with tolerances that are not
the suite's usual ones and how many tensors the sequences and optionals among the inputs hold and which dims are 0, and test_data_set_N/input_I.pb, output_I.pb.

    export.py FOLDER
"""
import copy
import glob
import json
import os
import pathlib
import re
import shutil
import sys
import warnings

import numpy as np
import onnx
from list_cases import list_cases
from ml_cases import ml_cases
from older_cases import older_cases
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner
from symbolic import symbolic

KINDS = ["node", "simple", "pytorch-converted", "pytorch-operator", "real"]
PACKAGE = pathlib.Path(onnx.__file__).parent.parent
RTOL, ATOL = 1e-3, 1e-7


def to_proto(value, type_proto):
    """A case's input or output as the message that the type asks for."""
    kind = type_proto.WhichOneof("value")
    if isinstance(value, onnx.TensorProto):
        return value
    if kind == "sequence_type" and not isinstance(value, onnx.SequenceProto):
        return numpy_helper.from_list(list(value))
    if kind == "optional_type":
        return numpy_helper.from_optional(value)
    return value if hasattr(value, "SerializeToString") else numpy_helper.from_array(np.asarray(value))


def tensors_of(message):
    """Those of a sequence or an optional are numbered tensors of the compiled model's interface."""
    if isinstance(message, onnx.SequenceProto):
        return list(message.tensor_values)
    if isinstance(message, onnx.OptionalProto):
        if message.HasField("tensor_value"):
            return [message.tensor_value]
        return list(message.sequence_value.tensor_values) if message.HasField("sequence_value") else []
    return [message]


def tensor_type(type_proto):
    """Of a tensor, or of those that a sequence or an optional holds."""
    kind = type_proto.WhichOneof("value")
    return tensor_type(getattr(type_proto, kind).elem_type) if kind in ("sequence_type", "optional_type") else getattr(type_proto, "tensor_type")


def with_ranks(model, inputs):
    """The types of sequences say at least the rank, which their first tensor has."""
    for value, message in zip(free_inputs(model), inputs):
        held = tensor_type(value.type)
        if tensors_of(message) and not held.HasField("shape") and not isinstance(message, onnx.TensorProto):
            held.shape.SetInParent()
            for _ in tensors_of(message)[0].dims:
                held.shape.dim.add()


def write(path, message):
    path.write_bytes(message.SerializeToString(deterministic=True))


def holding_nodes(value, names):
    """Nodes that make a sequence or an optional of tensors."""
    nodes, held, kind = [], value.type, value.type.WhichOneof("value")
    if kind == "optional_type":
        held = value.type.optional_type.elem_type
    if held.WhichOneof("value") == "sequence_type" and (names or kind == "sequence_type"):
        made = value.name if kind == "sequence_type" else value.name + "_held"
        dtype = {} if names else {"dtype": tensor_type(held).elem_type}
        nodes.append(onnx.helper.make_node("SequenceConstruct" if names else "SequenceEmpty", names, [made], **dtype))
        names = [made]
    if kind == "optional_type":
        nodes.append(onnx.helper.make_node("Optional", names, [value.name], **({} if names else {"type": held})))
    return nodes


def constant(model, inputs):
    """The inputs are initializers, and sequences and optionals of them. None where there are none."""
    model = copy.deepcopy(model)
    graph = model.graph
    initializers = {tensor.name for tensor in graph.initializer}
    free = [value for value in graph.input if value.name not in initializers]
    if not free or len(free) != len(inputs):
        return None
    holders = []
    for value, message in zip(free, inputs):
        names = [value.name] if isinstance(message, onnx.TensorProto) else [f"{value.name}_{i}" for i in range(len(tensors_of(message)))]
        for name, tensor in zip(names, tensors_of(message)):
            graph.initializer.add().CopyFrom(tensor)
            graph.initializer[-1].name = name
        if not isinstance(message, onnx.TensorProto):
            holders += holding_nodes(value, names)
    nodes = holders + list(graph.node)
    del graph.node[:]
    graph.node.extend(nodes)
    del graph.input[:]
    model.ir_version = max(model.ir_version, 4)   # from here on initializers need not be inputs
    return model


def free_inputs(model):
    initializers = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initializers]


def parse(path, type_proto):
    message = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}.get(type_proto.WhichOneof("value"), onnx.TensorProto)()
    message.ParseFromString(path.read_bytes())
    return message


def stored_sets(model, folder):
    """The data sets beside a stored model, as messages."""
    for data in sorted(glob.glob(str(folder / "test_data_set_*"))):
        def load(stem, values):
            count = len(glob.glob(f"{data}/{stem}_*.pb"))
            return [parse(pathlib.Path(data) / f"{stem}_{i}.pb", values[i].type) for i in range(count)]
        yield load("input", model.graph.input), load("output", model.graph.output)


def load_case(case):
    """(model, [(inputs, outputs)]) as messages."""
    if case.model is not None:
        free = free_inputs(case.model)
        return case.model, [([to_proto(v, t.type) for v, t in zip(ins, free)], [to_proto(v, t.type) for v, t in zip(outs, case.model.graph.output)])
                            for ins, outs in case.data_sets]
    if case.url:   # light models: made-up inputs, the outputs are beside the model
        path = PACKAGE / case.url
        model = onnx.load(path)
        inputs = [numpy_helper.from_array(Runner.generate_dummy_data(value, seed=0, name=case.model_name, random=False)) for value in free_inputs(model)]
        outputs = [parse(path.with_name(f"{path.stem}_output_{i}.pb"), value.type) for i, value in enumerate(model.graph.output)]
        return model, [(inputs, outputs)]
    folder = pathlib.Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    return model, list(stored_sets(model, folder))


def export(folder, model, sets, rtol=RTOL, atol=ATOL, like=None):
    folder.mkdir(parents=True)
    with_ranks(model, sets[0][0])
    write(folder / "model.onnx", model)
    if (other := symbolic(model, like or model, tensor_type)) is not None:
        write(folder / "symbolic.onnx", other)
    if (other := constant(model, sets[0][0])) is not None:
        write(folder / "constant.onnx", other)
    lengths = {value.name: len(tensors_of(message)) for value, message in zip(free_inputs(model), sets[0][0]) if not isinstance(message, onnx.TensorProto)}
    empty = [dim.dim_param for value, message in zip(free_inputs(model), sets[0][0]) if isinstance(message, onnx.TensorProto)
             for dim, extent in zip(value.type.tensor_type.shape.dim, message.dims) if extent == 0 and dim.dim_param]
    if (rtol, atol) != (RTOL, ATOL) or lengths or empty:
        (folder / "data.json").write_text(json.dumps({"rtol": rtol, "atol": atol, "dims": lengths, "empty": empty}))
    for n, (inputs, outputs) in enumerate(sets):
        data = folder / f"test_data_set_{n}"
        data.mkdir()
        for stem, messages in (("input", inputs), ("output", outputs)):
            for i, message in enumerate(messages):
                write(data / f"{stem}_{i}.pb", message)
                if not isinstance(message, onnx.TensorProto):
                    (data / f"{stem}_{i}.count").write_text(str(len(tensors_of(message))))
                    for k, part in enumerate(tensors_of(message)):
                        write(data / f"{stem}_{i}_{k}.pb", part)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = pathlib.Path(sys.argv[1])
    fresh = target.with_name(target.name + ".new")
    for folder in (target, fresh):
        shutil.rmtree(folder, ignore_errors=True)
    warnings.simplefilter("ignore", RuntimeWarning)   # overflows that the cases are about
    counts, models = {}, []
    for kind in KINDS:
        cases = load_model_tests(kind=kind)
        loaded = {case.name: load_case(case) for case in cases}
        for case in cases:
            operator = loaded.get(re.sub("_expanded(_ver[0-9]+)?$", "", case.name), loaded[case.name])[0]
            export(fresh / kind / case.name, *loaded[case.name], case.rtol, case.atol, operator)
        counts[kind] = len(cases)
        models += [model for model, _ in loaded.values()]
    counts["older"] = 0
    for name, folder in older_cases(models):
        model = onnx.load(folder / "model.onnx")
        export(fresh / "older" / name, model, list(stored_sets(model, folder)))
        counts["older"] += 1
    for kind, own in (("ml", ml_cases()), ("list", list_cases())):
        counts[kind] = 0
        for name, model, inputs, outputs in own:
            wanted = [numpy_helper.from_list(v) if isinstance(v, list) else numpy_helper.from_array(v) for v in outputs]
            export(fresh / kind / name, model, [([numpy_helper.from_array(v) for v in inputs], wanted)], 1e-3, 1e-5)
            counts[kind] += 1
    os.rename(fresh, target)
    print(f"onnx {onnx.__version__}:", ", ".join(f"{count} {kind}" for kind, count in counts.items()))


if __name__ == "__main__":
    main()
