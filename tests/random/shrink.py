"""A failing case with as few nodes as still fail."""
import dataclasses


from batch import run_alone
from draw import Case
from graph import make_model, reads
from oracle import inner_values, results_of, with_outputs


def shrunk(case, tilewright, target):
    """Its model: one output at a time, then values that nodes make given as inputs instead. It is made of the first run that fails, of the
    graph without functions. None: that does not fail, or onnxruntime does not run it."""
    def fails(candidate):
        return run_alone(candidate, tilewright, target).what == "failed"
    found = results_of(with_outputs(case.whole, inner_values(case.whole)), case.runs)
    plain = [dataclasses.replace(case, runs=[run], dims={name: values[i:i + 1] for name, values in case.dims.items()}) for i, run in enumerate(case.runs)]
    failing = next((i for i, candidate in enumerate(plain) if fails(candidate)), None)
    if found is None or failing is None:
        return None
    model, everything = case.whole, {**found[failing], **case.runs[failing]}

    def cut(nodes, outputs):
        needed, kept = set(outputs), []
        for node in reversed(nodes):
            if set(node.output) & needed:
                kept.insert(0, node)
                needed |= reads(node)
        made = {o for node in kept for o in node.output}
        weights = {w.name for w in model.graph.initializer}
        own = {name: everything[name] for name in sorted(needed) if name in everything and name not in made and name not in weights}
        types = {name: (value.dtype, value.shape) for name, value in own.items()}
        smaller = make_model(kept, types, list(model.graph.initializer), {o: (everything[o].dtype, everything[o].ndim) for o in outputs})
        return Case(case.seed, case.style, smaller, smaller, [own], case.tolerance)

    nodes, outputs = list(model.graph.node), [o.name for o in model.graph.output]
    for name in inner_values(model):   # the first value that is wrong
        if fails(cut(nodes, [name])):
            outputs = [name]
            break
    again = True
    while again:
        again = False
        for node in list(nodes):
            rest = [n for n in nodes if n is not node]
            if not set(outputs) <= {o for n in rest for o in n.output}:
                continue
            smaller = cut(rest, outputs)
            if len(smaller.model.graph.node) and fails(smaller):
                nodes, again = list(smaller.model.graph.node), True
                break
    return cut(nodes, outputs).model
