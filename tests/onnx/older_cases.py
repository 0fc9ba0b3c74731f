"""The backend suite of an older ONNX release, as Debian's package libonnx-testdata has it: cases of operator versions at opsets 7 to 17 that the installed onnx
package has at its newest opset only. A case whose graph the newer suite has at the same operator versions is left out, whatever its data."""
import pathlib

import onnx

DATA = pathlib.Path("/usr/share/libonnx-testdata/data")


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g] * attribute.HasField("g") + list(attribute.graphs):
                yield from nodes_of(inner)


def content(model):
    """What a model says, without names of nodes and texts for people: equal models import alike."""
    opsets = {"" if opset.domain == "ai.onnx" else opset.domain: opset.version for opset in model.opset_import}
    graph = onnx.GraphProto()
    graph.CopyFrom(model.graph)
    graph.name = graph.doc_string = ""
    versions = set()
    for node in nodes_of(graph):
        node.name = node.doc_string = ""
        domain = "" if node.domain == "ai.onnx" else node.domain
        try:
            version = onnx.defs.get_schema(node.op_type, opsets.get(domain, 1), domain).since_version
        except onnx.defs.SchemaError:
            version = 0
        versions.add((domain, node.op_type, version))
    functions = [function.SerializeToString(deterministic=True) for function in model.functions]
    return graph.SerializeToString(deterministic=True), tuple(sorted(versions)), tuple(sorted(functions))


def older_cases(newer):
    """(name, folder) of each case that none of these models equals."""
    if not DATA.exists():
        raise SystemExit(f"{DATA} is not there: scripts/setup.sh test installs libonnx-testdata")
    known = {content(model) for model in newer}
    for path in sorted(DATA.glob("*/*/model.onnx")):
        own = content(onnx.load(path))
        if own not in known:
            known.add(own)
            yield path.parent.name, path.parent
