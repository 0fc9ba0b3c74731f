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


def choice(g):
    y = g.one((F32,))
    what = condition(g) if y else None
    if not what:
        return
    n, graphs = len(g.nodes), []
    for side in ("then", "else"):
        first, last = f"{side}{n}_a", f"{side}{n}_b"
        nodes = [helper.make_node(g.among(SMOOTH), [y.name], [first]),
                 helper.make_node(g.among(["Add", "Mul", "Sub"]), [first, g.numbers()], [last])]
        graphs.append(helper.make_graph(nodes, side, [], [info(last, TensorProto.FLOAT, y.shape)]))
    g.add("If", [what], [(F32, y.shape)], then_branch=graphs[0], else_branch=graphs[1])


def loop(g):
    """So many iterations over a carried value, with a row an iteration; the number is known, or an element of the data ends it."""
    y = g.one((F32,))
    if not y:
        return
    n, iterations = len(g.nodes), 1 + g.pick(4)
    stop = condition(g) if g.pick(3) == 0 else None
    names = {k: f"loop{n}_{k}" for k in ("i", "c", "state", "mixed", "next", "row", "go")}
    nodes = [helper.make_node(g.among(["Add", "Mul", "Sub"]), [names["state"], y.name], [names["mixed"]]),
             helper.make_node("Tanh", [names["mixed"]], [names["next"]]),
             helper.make_node("Identity", [names["mixed"] if g.pick(2) else names["next"]], [names["row"]]),
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
    nodes = [helper.make_node("Add", [names["state"], names["row"]], [names["sum"]]), helper.make_node("Sigmoid", [names["sum"]], [names["next"]]),
             helper.make_node("Identity", [names["sum"]], [names["out"]])]
    body = helper.make_graph(nodes, "body", [info(names[k], TensorProto.FLOAT, rest) for k in ("state", "row")],
                             [info(names[k], TensorProto.FLOAT, rest) for k in ("next", "out")])
    g.add("Scan", [g.numbers(*rest), x.name], [(F32, rest), (F32, x.shape)], body=body, num_scan_inputs=1, scan_input_directions=[g.pick(2)])


FAMILIES = [choice, loop, scan]
