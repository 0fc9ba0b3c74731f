"""Sequences, optionals and control flow. `graph` of a case gives the nodes that make what is no tensor, and the bodies."""
import numpy as np
from draw import TYPES, Const, operators, type_name
from onnx import helper

I64 = np.int64
ELEMENTS = ["float", "double", "int64", "int32", "uint8", "bool", "float16"]


def items(d, count, shape=None):
    """Tensors of one element type, of one shape or of several."""
    name = d.among(ELEMENTS)
    one = d.maybe(d.shape(1, 3, most=4)) if shape is None else shape
    return [d.values(name, one or d.shape(1, 3, most=4)) for _ in range(count)]


def of_sequence(d, values, *others, **attributes):
    """An operator whose first operand is a sequence: an input of the model, whose items have one shape then, or one that is constructed."""
    if len({v.shape for v in values}) == 1 and d.chance(0.5):
        return d.case(values, *others, **attributes)
    case = d.case(*values, *others, **attributes)
    count = len(values)

    def graph(names, outputs, prefix):
        return [helper.make_node("SequenceConstruct", names[:count], [f"{prefix}_s"], name=prefix),
                helper.make_node(d.op, [f"{prefix}_s", *names[count:]], outputs, name=prefix + "/of", **case.attributes)]
    case.graph = graph
    return case


def place(d, count, end=False):
    index = d.between(-count, count - 1 + end)
    return Const(np.array(index).astype(d.among([np.int32, np.int64])))


@operators("SequenceConstruct")
def sequence_construct(d):
    return d.case(*items(d, d.between(1, 4)))


@operators("SequenceEmpty")
def sequence_empty(d):
    """An empty one, and its length."""
    case = d.case(dtype=d.maybe(TYPES[d.among(ELEMENTS)]))
    case.graph = lambda names, outputs, prefix: [helper.make_node("SequenceEmpty", [], [f"{prefix}_s"], name=prefix, **case.attributes),
                                                 helper.make_node("SequenceLength", [f"{prefix}_s"], outputs, name=prefix + "/length")]
    return case


@operators("SequenceAt")
def sequence_at(d):
    count = d.between(1, 4)
    return of_sequence(d, items(d, count), place(d, count))


@operators("SequenceErase")
def sequence_erase(d):
    count = d.between(2, 4)
    return of_sequence(d, items(d, count), *d.among([[], [place(d, count)]]))


@operators("SequenceInsert")
def sequence_insert(d):
    values = items(d, d.between(2, 4))
    at = d.among([[], [place(d, len(values) - 1, end=True)]])
    case = of_sequence(d, values[1:], values[0], *at)
    split = int(at[0].value) if at else len(values) - 1
    case.definition = lambda: [[*values[1:][:split], values[0], *values[1:][split:]]]
    return case


@operators("SequenceLength")
def sequence_length(d):
    return of_sequence(d, items(d, d.between(1, 5)))


@operators("ConcatFromSequence")
def concat_from_sequence(d):
    new, shape, count = d.pick(2), d.shape(1, 3, most=4), d.between(1, 4)
    axis = d.axis(len(shape) + new)
    values = items(d, count, shape)
    if not new:   # other extents along the axis
        values = [np.concatenate([v] * d.between(1, 2), axis) for v in values]
    return of_sequence(d, values, axis=axis, new_axis=new or d.maybe(0))


@operators("SplitToSequence")
def split_to_sequence(d):
    shape = list(d.shape(1, 3))
    axis = d.axis(len(shape))
    kind = d.pick(3)
    parts = Const(np.array(d.between(1, 4))) if kind == 1 else None
    if kind == 2:
        sizes = [d.between(1, 3) for _ in range(d.between(1, 3))]
        shape[axis] = sum(sizes)
        parts = Const(d.ints(sizes))
    return d.case(d.values(d.among(ELEMENTS), shape), parts, axis=axis, keepdims=d.maybe(d.pick(2)) if parts is None else None)


@operators("SequenceMap")
def sequence_map(d):
    shape = d.shape(1, 2)
    values = [d.values("float", shape) for _ in range(d.between(1, 3))]
    scale = d.values("float", (1,))

    def body():
        names = [helper.make_tensor_value_info(n, TYPES["float"], None) for n in ("e", "f", "r")]
        return helper.make_graph([helper.make_node("Mul", ["e", "f"], ["m"]), helper.make_node("Neg", ["m"], ["r"])], "body", names[:2], names[2:])
    return of_sequence(d, values, scale, body=body())


@operators("Optional OptionalHasElement OptionalGetElement")
def optional(d):
    """An optional with an element or without one, what it holds, and whether it does."""
    x = d.values(d.among(ELEMENTS), d.shape())
    empty = d.op == "OptionalHasElement" and d.chance(0.5)
    kind = helper.make_tensor_type_proto(TYPES[type_name(x.dtype)], None)
    case = d.case(x)

    def graph(names, outputs, prefix):
        held = f"{prefix}_o"
        made = helper.make_node("Optional", [] if empty else names, [held], name=prefix, **({"type": kind} if empty else {}))
        last = "OptionalGetElement" if d.op == "Optional" else d.op
        return [made, helper.make_node(last, [held], outputs, name=prefix + "/read")]
    case.graph = graph
    if d.op == "OptionalHasElement":
        case.definition = lambda: [np.array(not empty)]
    return case


def branch(name, ops, captured, result, kind):
    """A graph without inputs: a chain of unary operators over what it captures."""
    values = [captured, *[f"{result}_{name}{i}" for i in range(len(ops))]]
    nodes = [helper.make_node(op, [a], [b]) for op, a, b in zip(ops, values, values[1:])]
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(values[-1], kind, None)])


@operators("If")
def if_else(d):
    name = d.among(["float", "double", "float16", "int64", "int32"])
    condition = np.array(d.chance(0.5))
    chains = [[d.among(["Neg", "Abs", "Identity"]) for _ in range(d.between(1, 3))] for _ in range(2)]
    case = d.case(Const(condition) if d.chance(0.3) else condition, d.values(name, d.shape()))

    def graph(names, outputs, prefix):
        branches = {key: branch(key[:4], ops, names[1], outputs[0], TYPES[name]) for key, ops in zip(("then_branch", "else_branch"), chains)}
        return [helper.make_node("If", names[:1], outputs, name=prefix, **branches)]
    case.graph = graph
    return case


@operators("Loop")
def loop(d):
    """Carries one value, and gives a row an iteration; the count, the condition or both end it."""
    name, shape, trips = d.among(["float", "double", "int64", "int32"]), d.shape(0, 2), d.between(0, 5)
    op, until = d.among(["Add", "Sub", "Mul"]), d.between(1, 6)
    counted = d.chance(0.7)
    count = np.array(trips, I64)
    case = d.case((Const(count) if d.chance(0.5) else count) if counted else None, Const(np.array(True)), d.plain().values(name, shape, low=-2, high=2), Const(d.values(name, (), low=1, high=2)), outputs=2)

    def graph(names, outputs, prefix):
        own = {n: f"{prefix}_b_{n}" for n in ("i", "go", "v", "stay", "w", "row", "end")}
        end = helper.make_node("Constant", [], [own["end"]], value_int=until)
        nodes = [end, helper.make_node("Less", [own["i"], own["end"]], [own["stay"]]), helper.make_node(op, [own["v"], names[3]], [own["w"]]), helper.make_node("Neg", [own["v"]], [own["row"]])]
        kinds = {"i": TYPES["int64"], "go": TYPES["bool"], "stay": TYPES["bool"]}
        infos = {n: helper.make_tensor_value_info(own[n], kinds.get(n, TYPES[name]), [] if n in kinds else list(shape)) for n in own}
        body = helper.make_graph(nodes, "body", [infos[n] for n in ("i", "go", "v")], [infos[n] for n in ("stay", "w", "row")])
        return [helper.make_node("Loop", names[:3], outputs, name=prefix, body=body)]
    case.graph = graph
    return case


@operators("Scan")
def scan(d):
    """A state and a row an iteration, forwards or backwards, from any axis and to any."""
    name, rest, rows = d.among(["float", "double", "int64", "int32"]), d.shape(1, 1), d.between(1, 5)
    first = d.version == 8   # which has a batch in front
    axis = 0 if first or d.version < 9 else d.between(0, 1)
    shape = (*rest, rows) if axis else (rows, *rest)
    lead = (d.between(1, 3),) if first else ()
    attributes = {"num_scan_inputs": 1}
    if not first:
        attributes |= {"scan_input_axes": [axis] if axis or d.chance(0.5) else None, "scan_input_directions": d.maybe([d.pick(2)]), "scan_output_directions": d.maybe([d.pick(2)]),
                       "scan_output_axes": d.maybe([d.pick(2)])}
    case = d.case(*([None] if first else []), d.plain().values(name, (*lead, *rest)), d.values(name, (*lead, *shape)), outputs=2, **attributes)

    def graph(names, outputs, prefix):
        own = {n: f"{prefix}_b_{n}" for n in ("s", "x", "t", "y")}
        infos = {n: helper.make_tensor_value_info(own[n], TYPES[name], list(rest)) for n in own}
        nodes = [helper.make_node("Add", [own["s"], own["x"]], [own["t"]]), helper.make_node("Mul", [own["t"], own["x"]], [own["y"]])]
        body = helper.make_graph(nodes, "body", [infos["s"], infos["x"]], [infos["t"], infos["y"]])
        return [helper.make_node("Scan", names, outputs, name=prefix, body=body, **case.attributes)]
    case.graph = graph
    return case
