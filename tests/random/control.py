"""If, Loop and Scan, whose graphs read what is outside of them."""
import math

from onnx import TensorProto, helper

from elementwise import SMOOTH, zero
from graph import BOOL, F32, FLOATS, INTEGERS, is_free



def condition(g):
    """A bool that only the run knows, and that never hangs on rounding."""
    x = g.one(FLOATS + INTEGERS, 1, exact=True)
    if not x:
        return None
    count = math.prod(x.shape)
    y = g.add("Reshape", [x.name, g.ints([-1])], [(x.dtype, (count,))], exact=True)
    y = g.add("Gather", [y.name, g.ints(g.pick(int(count)))], [(x.dtype, ())], exact=True, axis=0)
    return g.add("Less", [y.name, g.weight(zero(x.dtype), x.dtype)], [(BOOL, ())], exact=True).name


def info(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, [None if is_free(d) else d for d in shape])


def chain(g, start, shape, prefix, captured=(), condition_name=None):
    """Nodes of a body: some operators on `start`, which also read constants, values from outside, and an inner choice. Returns them and
    the name of the last value."""
    nodes, last = [], start
    for k in range(1 + g.pick(3)):
        name, how = f"{prefix}_{k}", g.pick(4)
        if how == 0 and condition_name:
            sides = [helper.make_graph([helper.make_node(g.among(SMOOTH), [last], [f"{name}_{side}"])], f"{name}_{side}", [],
                                       [info(f"{name}_{side}", TensorProto.FLOAT, shape)]) for side in ("yes", "no")]
            nodes.append(helper.make_node("If", [condition_name], [name], then_branch=sides[0], else_branch=sides[1]))
        elif how < 2:
            nodes.append(helper.make_node(g.among(SMOOTH), [last], [name]))
        else:
            others = [c for c in captured if c != start]
            other = g.among(others) if others and g.pick(2) else g.numbers()
            nodes.append(helper.make_node(g.among(["Add", "Mul", "Sub", "Max"]), [last, other], [name]))
        last = name
    return nodes, last


def like_it(g, y):
    """Values of the same type and shape, which a body may read."""
    return [v.name for v in g.values if v.dtype == y.dtype and v.shape == y.shape]


def choice(g):
    y = g.one((F32,))
    what = condition(g) if y else None
    if not what:
        return
    n, graphs = len(g.nodes), []
    for side in ("then", "else"):
        nodes, last = chain(g, y.name, y.shape, f"{side}{n}", like_it(g, y), what)
        graphs.append(helper.make_graph(nodes, side, [], [info(last, TensorProto.FLOAT, y.shape)]))
    g.add("If", [what], [(F32, y.shape)], then_branch=graphs[0], else_branch=graphs[1])


def loop(g):
    """So many iterations over a carried value, with a row an iteration; the number is known, or an element of the data ends it."""
    y = g.one((F32,))
    if not y:
        return
    n, iterations = len(g.nodes), 1 + g.pick(4)
    stop, inner = (condition(g) if g.pick(3) == 0 else None for _ in range(2))
    names = {k: f"loop{n}_{k}" for k in ("i", "c", "state", "mixed", "next", "row", "go")}
    nodes = [helper.make_node(g.among(["Add", "Mul", "Sub"]), [names["state"], y.name], [names["mixed"]])]
    more, last = chain(g, names["mixed"], y.shape, f"loop{n}", like_it(g, y), inner)
    nodes += [*more, helper.make_node("Tanh", [last], [names["next"]]),
              helper.make_node("Identity", [last if g.pick(2) else names["next"]], [names["row"]]),
              helper.make_node("Identity", [stop or names["c"]], [names["go"]])]
    body = helper.make_graph(
        nodes, "body", [info(names["i"], TensorProto.INT64, []), info(names["c"], TensorProto.BOOL, []), info(names["state"], TensorProto.FLOAT, y.shape)],
        [info(names["go"], TensorProto.BOOL, []), info(names["next"], TensorProto.FLOAT, y.shape), info(names["row"], TensorProto.FLOAT, y.shape)])
    start = y.name if any(is_free(d) for d in y.shape) else g.numbers(*y.shape)
    rows = [] if stop else [(F32, (iterations, *y.shape))]   # how many a condition leaves is not drawn on
    if stop:
        del body.output[-1]
    g.add("Loop", [g.ints(iterations), "", start], [(F32, y.shape), *rows], body=body)


def scan(g):
    x = g.one((F32,), 2)
    if not x:
        return
    n, rest = len(g.nodes), x.shape[1:]
    names = {k: f"scan{n}_{k}" for k in ("state", "row", "sum", "next", "out")}
    more, last = chain(g, names["sum"], rest, f"scan{n}")
    nodes = [helper.make_node("Add", [names["state"], names["row"]], [names["sum"]]), *more, helper.make_node("Sigmoid", [last], [names["next"]]),
             helper.make_node("Identity", [names["sum"]], [names["out"]])]
    body = helper.make_graph(nodes, "body", [info(names[k], TensorProto.FLOAT, rest) for k in ("state", "row")],
                             [info(names[k], TensorProto.FLOAT, rest) for k in ("next", "out")])
    g.add("Scan", [g.numbers(*rest), x.name], [(F32, rest), (F32, x.shape)], body=body, num_scan_inputs=1, scan_input_directions=[g.pick(2)])


FAMILIES = [choice, loop, scan]
