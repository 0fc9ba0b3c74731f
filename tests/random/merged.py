"""Several models as one, whose parts have nothing to do with each other: one compile for all of them."""
import onnx

from graph import OPSETS


def prefix_of(index):
    return f"g{index}_"


def rename_graph(graph, prefix, functions):
    """Of a whole graph every name, in inner ones too."""
    for node in graph.node:
        rename_node(node, prefix, functions)
    for value in [*graph.input, *graph.output, *graph.value_info, *graph.initializer]:
        value.name = prefix + value.name
    for value in [*graph.input, *graph.output, *graph.value_info]:
        for d in value.type.tensor_type.shape.dim:
            if d.dim_param:
                d.dim_param = prefix + d.dim_param


def rename_node(node, prefix, functions):
    node.name = prefix + node.name
    for names in (node.input, node.output):
        names[:] = [name and prefix + name for name in names]
    call_renamed(node, prefix, functions)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            rename_graph(attribute.g, prefix, functions)


def call_renamed(node, prefix, functions):
    if (node.domain, node.op_type) in functions:
        node.op_type = prefix + node.op_type


def merged(models):
    """Their names have a prefix with the model's index. Dimensions keep theirs apart, too."""
    whole = onnx.ModelProto()
    whole.ir_version = 10
    for domain, version in OPSETS:
        opset = whole.opset_import.add()
        opset.domain, opset.version = domain, version
    whole.graph.name = "merged"
    for index, model in enumerate(models):
        part, prefix = onnx.ModelProto(), prefix_of(index)
        part.CopyFrom(model)
        functions = {(f.domain, f.name) for f in part.functions}
        rename_graph(part.graph, prefix, functions)
        for function in part.functions:
            function.name = prefix + function.name
            for node in function.node:
                call_renamed(node, prefix, functions)
        whole.functions.extend(part.functions)
        for field in ("node", "input", "output", "initializer"):
            getattr(whole.graph, field).extend(getattr(part.graph, field))
    return whole
