"""Models of cases, and what ONNX's reference evaluator and onnxruntime without optimizations say of them."""
import os

os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"   # the newest opset too
import numpy as np  # noqa: E402
import onnx
import onnxruntime
from draw import TYPES, Const, numpy_type, type_name
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

IR_VERSION = 12
# Types that onnxruntime's Python interface takes and gives. Others are initializers there, and outputs behind a cast.
NATIVE = {"float", "double", "float16", "bool", "string", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"}
MICROSOFT = "com.microsoft"


class Failed(Exception):
    """Why a source has no results."""


def opsets_of(cases):
    """One opset of each domain: cases of different ones are not put together."""
    domains = {"": max((c.opset for c in cases if c.domain == ""), default=20), **{c.domain: c.opset for c in cases if c.domain}}
    return [helper.make_opsetid(domain, version) for domain, version in sorted(domains.items())]


def info(name, value, symbolic=False):
    if isinstance(value, list):
        elements = helper.make_tensor_type_proto(TYPES[type_name(value[0].dtype)], value[0].shape if len({v.shape for v in value}) == 1 else None) if value else \
            helper.make_tensor_type_proto(TensorProto.FLOAT, None)
        return helper.make_value_info(name, helper.make_sequence_type_proto(elements))
    return helper.make_tensor_value_info(name, TYPES[type_name(value.dtype)], [None] * value.ndim if symbolic else value.shape)


def initializer(value, name):
    if value.dtype.kind in "OU":
        return helper.make_tensor(name, TensorProto.STRING, value.shape, [str(s).encode() for s in value.ravel()])
    return numpy_helper.from_array(np.asarray(value), name)


class Node:
    """A case's node, with the names of its operands in a model that may hold others."""
    def __init__(self, case, prefix):
        self.case, self.feeds, self.weights, names = case, {}, {}, []
        for i, operand in enumerate(case.operands):
            name = f"{prefix}_{i}"
            names.append("" if operand is None else name)
            if isinstance(operand, Const):
                self.weights[name] = np.asarray(operand.value)
            elif operand is not None:
                self.feeds[name] = operand if isinstance(operand, list) else np.asarray(operand)
        self.outputs = [f"{prefix}_y{k}" for k in range(case.outputs)]
        self.nodes = case.graph(names, self.outputs, prefix) if case.graph else \
            [helper.make_node(case.op, names, self.outputs, name=prefix, domain=case.domain, **case.attributes)]

    def inputs(self):
        return [info(name, value) for name, value in self.feeds.items()]

    def initializers(self):
        return [initializer(value, name) for name, value in self.weights.items()]


def model_of(nodes, outputs):
    """outputs: their infos."""
    graph = helper.make_graph([p for n in nodes for p in n.nodes], "g", [i for n in nodes for i in n.inputs()], outputs, [w for n in nodes for w in n.initializers()])
    return helper.make_model(graph, opset_imports=opsets_of([n.case for n in nodes]), ir_version=IR_VERSION)


def output_types(node):
    """The element type of each output by the schema's type variables, else by ONNX's inference; None: not known, or no tensor."""
    case = node.case
    inferred = inferred_types(node)
    if case.graph or case.domain == MICROSOFT:
        return inferred
    schema = onnx.defs.get_schema(case.op, case.opset, case.domain)
    known = {}
    for i, operand in enumerate(case.operands):
        value = operand.value if isinstance(operand, Const) else operand
        if isinstance(value, np.ndarray):
            known[schema.inputs[min(i, len(schema.inputs) - 1)].type_str] = TYPES[type_name(value.dtype)]
    kinds = []
    for i, kind in enumerate(inferred):
        variable = schema.outputs[min(i, len(schema.outputs) - 1)].type_str
        fixed = TYPES.get(variable[7:-1]) if variable.startswith("tensor(") else None
        kinds.append(fixed or known.get(variable) or kind)
    return kinds


def inferred_types(node):
    model = model_of([node], [onnx.ValueInfoProto(name=name) for name in node.outputs])
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:
        return [None] * len(node.outputs)
    kinds = {v.name: v.type.tensor_type.elem_type for v in inferred.graph.output if v.type.WhichOneof("value") == "tensor_type"}
    return [kinds.get(name) or None for name in node.outputs]


def by_reference(node, kinds):
    if node.case.domain == MICROSOFT:
        raise Failed("an operator of onnxruntime")
    outputs = [helper.make_tensor_value_info(n, k, None) if k else onnx.ValueInfoProto(name=n) for n, k in zip(node.outputs, kinds)]
    try:
        with np.errstate(all="ignore"):
            return ReferenceEvaluator(model_of([node], outputs)).run(None, node.feeds)
    except Exception as problem:
        raise Failed(f"{type(problem).__name__}: {problem}") from problem


def by_onnxruntime(node, kinds):
    feeds, weights, casts, outputs = {}, {}, [], []
    for name, value in node.feeds.items():
        native = isinstance(value, list) or type_name(value.dtype) in NATIVE
        (feeds if native else weights)[name] = value
    for name, kind in zip(node.outputs, kinds):
        if kind and TensorProto.DataType.Name(kind).lower() not in NATIVE:
            casts.append(helper.make_node("Cast", [name], [name + "_f"], to=TensorProto.FLOAT))
            outputs.append(helper.make_tensor_value_info(name + "_f", TensorProto.FLOAT, None))
        else:
            outputs.append(helper.make_tensor_value_info(name, kind, None) if kind else onnx.ValueInfoProto(name=name))
    graph = helper.make_graph([*node.nodes, *casts], "g", [info(n, v) for n, v in feeds.items()], outputs,
                              [*node.initializers(), *(initializer(v, n) for n, v in weights.items())])
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads, options.inter_op_num_threads = 4, 1, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        model = helper.make_model(graph, opset_imports=opsets_of([node.case]), ir_version=IR_VERSION)
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = session.run(None, feeds)
    except Exception as problem:
        raise Failed(f"{type(problem).__name__}: {problem}") from problem
    return [r.astype(numpy_type(TensorProto.DataType.Name(k).lower())) if k and isinstance(r, np.ndarray) and r.dtype.kind != "O" else r for r, k in zip(results, kinds)]


def by_definition(node, kinds):
    if not node.case.definition:
        raise Failed("it has other sources")
    return node.case.definition()


SOURCES = {"reference": by_reference, "onnxruntime": by_onnxruntime, "numpy": by_definition}


def plain(result, kind):
    """Numpy's view of what a source gave, in the output's element type: a list stays one, but where a tensor is told of."""
    if isinstance(result, (list, tuple)):
        values = [np.asarray(r) for r in result]
        if not kind or len(values) != 1:
            return values
        result = values[0]
    value = np.asarray(result)
    if value.dtype.kind in "USO":
        return value.astype(object)
    with np.errstate(all="ignore"):
        return value.astype(numpy_type(TensorProto.DataType.Name(kind).lower())) if kind else value


def answers_of(node):
    """(element types, {source: results}, {source: why there are none})."""
    kinds, answers, lacking = output_types(node), {}, {}
    for name, source in SOURCES.items():
        try:
            answers[name] = [plain(r, k) for r, k in zip(source(node, kinds), kinds)]
        except Failed as why:
            lacking[name] = str(why).splitlines()[0][:200]
    return kinds, answers, lacking
