"""Networks with branches and loops whose bodies hold products and convolutions: what `If`, `Loop` and `Scan` of exported models are like. Conditions are made of the data, so that nothing is
decided while compiling, and loops are too long to be unrolled."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Body:
    """Nodes of a graph. Weights are the outermost one's."""

    def __init__(self, name, around=None):
        self.name, self.nodes, self.around = name, [], around
        self.whole = around.whole if around else self
        if not around:
            self.weights, self.random, self.count = [], np.random.default_rng(11), 0

    def op(self, op, *inputs, outputs=1, **attributes):
        self.whole.count += 1
        names = [f"v{self.whole.count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, f"{self.name}{self.whole.count}", **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value):
        self.whole.count += 1
        self.whole.weights.append(numpy_helper.from_array(np.asarray(value), f"w{self.whole.count}"))
        return self.whole.weights[-1].name

    def weight(self, *shape, fan):
        return self.constant((self.whole.random.standard_normal(shape) * fan ** -0.5).astype(np.float32))

    def number(self, value, dtype=np.float32):
        return self.constant(np.array(value, dtype))

    def conv(self, x, channels, out):
        return self.op("Relu", self.op("Conv", x, self.weight(out, channels, 3, 3, fan=9 * channels), pads=[1, 1, 1, 1]))

    def graph(self, inputs, outputs):
        """Of (name, type, shape); outputs' shapes may be None."""
        def info(name, dtype, shape):
            return helper.make_tensor_value_info(name, dtype, shape)
        return helper.make_graph(self.nodes, self.name, [info(*i) for i in inputs], [info(*o) for o in outputs], self.weights if self.whole is self else [])


def early_exit():
    """A branch behind the first layers: two convolutions and a product, or what there is, pooled."""
    net = Body("exit")
    x = net.conv("x", 3, 8)
    gate = net.op("ReduceMean", x, keepdims=0)
    more, done = Body("more", net), Body("done", net)
    y = more.conv(more.conv(x, 8, 8), 8, 8)
    y = more.op("MatMul", more.op("Flatten", more.op("GlobalAveragePool", y)), more.weight(8, 16, fan=8))
    z = done.op("MatMul", done.op("Flatten", done.op("GlobalMaxPool", x)), done.weight(8, 16, fan=8))
    y = net.op("If", net.op("Less", gate, net.number(0.05)), then_branch=more.graph([], [(y, FLOAT, None)]), else_branch=done.graph([], [(z, FLOAT, None)]))
    y = net.op("Softmax", y, axis=1)
    return net.graph([("x", FLOAT, [2, 3, 12, 12])], [(y, FLOAT, [2, 16])])


def refine(batch=2):
    """A picture that a convolution and a product change until it is calm, at most 90 times."""
    net = Body("refine")
    body = Body("step", net)
    flat = body.op("Reshape", body.op("Tanh", body.op("Conv", "h", body.weight(4, 4, 3, 3, fan=50), pads=[1, 1, 1, 1])), body.constant(np.array([0, 4, 36], np.int64)))
    mixed = body.op("Add", body.op("MatMul", flat, body.weight(36, 36, fan=60)), body.op("Reshape", "x", body.constant(np.array([0, 4, 36], np.int64))))
    h = body.op("Reshape", body.op("Tanh", mixed), body.constant(np.array([0, 4, 6, 6], np.int64)))
    change = body.op("ReduceMax", body.op("Abs", body.op("Sub", h, "h")), keepdims=0)
    go = body.op("Greater", change, body.number(1e-3))
    graph = body.graph([("i", INT64, []), ("go", BOOL, []), ("h", FLOAT, [batch, 4, 6, 6])], [(go, BOOL, []), (h, FLOAT, None), (change, FLOAT, [])])
    last, changes = net.op("Loop", net.number(90, np.int64), net.number(True, bool), net.op("Tanh", "x"), outputs=2, body=graph)
    y = net.op("Mul", last, net.op("ReduceMean", changes, keepdims=0))
    return net.graph([("x", FLOAT, [batch, 4, 6, 6])], [(y, FLOAT, [batch, 4, 6, 6])])


def recurrent(batch=3):
    """A Scan over rows of words, a gated step each, and a branch in every step."""
    net = Body("recurrent")
    step = Body("cell", net)
    joined = step.op("Add", step.op("MatMul", "row", step.weight(16, 24, fan=16)), step.op("MatMul", "h", step.weight(24, 24, fan=30)))
    made = step.op("Tanh", joined)
    keep, reset = Body("keep", step), Body("reset", step)
    kept = keep.op("Add", made, "h")
    again = reset.op("MatMul", made, reset.weight(24, 24, fan=24))
    h = step.op("If", step.op("Less", step.op("ReduceMax", step.op("Abs", "h"), keepdims=0), step.number(1.5)),
                then_branch=keep.graph([], [(kept, FLOAT, None)]), else_branch=reset.graph([], [(again, FLOAT, None)]))
    out = step.op("MatMul", h, step.weight(24, 10, fan=24))
    graph = step.graph([("h", FLOAT, [batch, 24]), ("row", FLOAT, [batch, 16])], [(h, FLOAT, [batch, 24]), (out, FLOAT, [batch, 10])])
    start = net.op("Tanh", net.op("MatMul", "first", net.weight(16, 24, fan=16)))
    last, rows = net.op("Scan", start, "x", outputs=2, body=graph, num_scan_inputs=1)
    return net.graph([("first", FLOAT, [batch, 16]), ("x", FLOAT, [40, batch, 16])], [(rows, FLOAT, [40, batch, 10]), (last, FLOAT, [batch, 24])])


def growing(length=30):
    """A decoder of fixed length, or of one that the data say: every step appends a row to what it attends to."""
    net = Body("growing")
    body = Body("token", net)
    query = body.op("MatMul", "h", body.weight(16, 16, fan=16))
    scores = body.op("Softmax", body.op("MatMul", query, body.op("Transpose", "cache", perm=[1, 0])), axis=1)
    h = body.op("Tanh", body.op("MatMul", body.op("MatMul", scores, "cache"), body.weight(16, 16, fan=16)))
    cache = body.op("Concat", "cache", h, axis=0)
    graph = body.graph([("i", INT64, []), ("go", BOOL, []), ("h", FLOAT, [1, 16]), ("cache", FLOAT, [None, 16])],
                       [(body.op("Identity", "go"), BOOL, []), (h, FLOAT, [1, 16]), (cache, FLOAT, [None, 16])])
    steps = net.number(length, np.int64) if length else net.op("Cast", net.op("ReduceSum", net.op("Abs", "x"), keepdims=0), to=INT64)
    _, all_rows = net.op("Loop", steps, "", "x", net.op("Relu", "x"), outputs=2, body=graph)
    return net.graph([("x", FLOAT, [1, 16])], [(all_rows, FLOAT, [31 if length else None, 16])])


def decoder(batch=2):
    """A decoder that the data end: every step appends a row of keys to each sequence, and attends to all that there are."""
    net = Body("decoder")
    body = Body("token", net)
    row = body.op("Unsqueeze", "h", body.constant(np.array([1], np.int64)))
    cache = body.op("Concat", "cache", body.op("MatMul", row, body.weight(16, 16, fan=16)), axis=1)
    scores = body.op("Softmax", body.op("MatMul", row, body.op("Transpose", cache, perm=[0, 2, 1])), axis=2)
    mixed = body.op("Squeeze", body.op("MatMul", scores, cache), body.constant(np.array([1], np.int64)))
    h = body.op("Tanh", body.op("MatMul", body.op("Add", mixed, "h"), body.weight(16, 16, fan=24)))
    go = body.op("Greater", body.op("ReduceMax", body.op("Abs", h), keepdims=0), body.number(0.02))
    graph = body.graph([("i", INT64, []), ("go", BOOL, []), ("h", FLOAT, [batch, 16]), ("cache", FLOAT, [batch, None, 16])],
                       [(go, BOOL, []), (h, FLOAT, [batch, 16]), (cache, FLOAT, [batch, None, 16])])
    last, _ = net.op("Loop", net.number(40, np.int64), net.number(True, bool), "x", net.op("Unsqueeze", net.op("Relu", "x"), net.constant(np.array([1], np.int64))), outputs=2, body=graph)
    return net.graph([("x", FLOAT, [batch, 16])], [(last, FLOAT, [batch, 16])])


NETWORKS = {"early_exit": early_exit, "refine": refine, "refine_free": lambda: refine("batch"), "recurrent": recurrent, "recurrent_free": lambda: recurrent("batch"), "growing": growing, "growing_by_data": lambda: growing(None),
            "decoder": decoder, "decoder_free": lambda: decoder("batch")}
# What the processor does of each, in words of the reasons. How many rows 'refine' has is the data's.
ON_PROCESSOR = {"early_exit": ["takes one of its branches"], "recurrent": ["counts its iterations", "takes one of its branches"]}
ON_PROCESSOR |= {"refine": ["counts its iterations", "its sizes are made from data"], "growing": ["counts its iterations"],
                 "growing_by_data": ["counts its iterations", "its sizes grow with the iteration, and data say how many there are"], "decoder": ["counts its iterations"]}


def write(folder, only=None):
    """name -> its file. A name that ends in _free has a free batch."""
    files = {}
    for name, make in NETWORKS.items():
        if only and name not in only:
            continue
        model = helper.make_model(make(), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        files[name] = folder / f"{name}.onnx"
        onnx.save(model, files[name])
    return files
