"""A network in f16: weights, inputs, outputs and all that is computed between them. What ONNX wants in f32 (scales of a Resize) stays."""
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

F32, F16 = TensorProto.FLOAT, TensorProto.FLOAT16
STAYS = {("Resize", 2), ("Upsample", 1)}   # inputs of an operator that are f32 whatever it works on


def halved(tensor):
    array = numpy_helper.to_array(tensor)
    return numpy_helper.from_array(np.clip(array, -65504, 65504).astype(np.float16), tensor.name)


def halve_attributes(node):
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == F32:
            attribute.t.CopyFrom(halved(attribute.t))
        if node.op_type == "Cast" and attribute.name == "to" and attribute.i == F32:
            attribute.i = F16


def halve(source, target):
    model = onnx.load(source)
    graph = model.graph
    kept = {node.input[i] for node in graph.node for op, i in STAYS if node.op_type == op and i < len(node.input)}
    for i, tensor in enumerate(graph.initializer):
        if tensor.data_type == F32 and tensor.name not in kept:
            graph.initializer[i].CopyFrom(halved(tensor))
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type == F32:
            value.type.tensor_type.elem_type = F16
    for node in graph.node:
        if node.output[0] not in kept:
            halve_attributes(node)
    del graph.value_info[:]
    onnx.save(model, target)
