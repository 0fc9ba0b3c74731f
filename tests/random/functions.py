"""Some nodes of a model as functions of it, whose attributes the calls give or leave to a default."""
import onnx
from onnx import helper

from graph import reads

DOMAIN = "functions"


def with_functions(model, rng, name="f"):
    """The same model, in which a few neighbouring nodes are one call; now and then the function has a function in it."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for depth in range(1 + int(rng.integers(3))):
        one_function(result, rng, f"{name}{depth}")
    return result


def one_function(model, rng, name):
    nodes = list(model.graph.node)
    first = int(rng.integers(len(nodes)))
    last = min(len(nodes), first + 1 + int(rng.integers(4)))
    inside, outside = nodes[first:last], nodes[:first] + nodes[last:]
    made = {o for node in inside for o in node.output if o}
    needed = {i for node in outside for i in reads(node)} | {o.name for o in model.graph.output}
    inputs, outputs = sorted({i for node in inside for i in reads(node)} - made), sorted(made & needed)
    if not outputs or not inputs:
        return
    body, required, defaults, given = [], [], [], []
    for node in inside:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        del copy.attribute[:]
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH or attribute.ref_attr_name or rng.integers(2):
                copy.attribute.add().CopyFrom(attribute)
                continue
            outer = f"{attribute.name}{len(required) + len(defaults)}"
            reference = copy.attribute.add()
            reference.name, reference.ref_attr_name, reference.type = attribute.name, outer, attribute.type
            named = onnx.AttributeProto()
            named.CopyFrom(attribute)
            named.name = outer
            how = rng.integers(3)
            if how == 0:
                required.append(outer)
            else:
                defaults.append(named if how == 1 else other_default(named))
            if how != 1:
                given.append(named)
        body.append(copy)
    function = helper.make_function(DOMAIN, name, inputs, outputs, body, model.opset_import, required, defaults)
    call = helper.make_node(name, inputs, outputs, inside[0].name, domain=DOMAIN)
    call.attribute.extend(given)
    model.functions.append(function)
    del model.graph.node[:]
    model.graph.node.extend(nodes[:first] + [call] + nodes[last:])


def other_default(attribute):
    """A default that the call overrides must not be seen."""
    other = onnx.AttributeProto()
    other.CopyFrom(attribute)
    if attribute.type == onnx.AttributeProto.FLOAT:
        other.f = attribute.f + 1
    return other
