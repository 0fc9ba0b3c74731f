"""What a graph's outputs must be: by onnxruntime, without its optimizations. And how two tensors differ."""
import numpy as np
import onnx
import onnxruntime
from onnx import helper

WORDS = (onnx.TensorProto.UINT16, onnx.TensorProto.INT16)
NARROW = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
NEAR = 1e-3   # of a step of bytes: so near to a tie, floats that are summed in another order may be rounded to its other side
LEAST_SPAN = 1e-3   # for an output's range: smaller ones are differences of what should be equal
# Operators that give the same bits everywhere, for the same ones
SAME = {"DequantizeLinear", "Relu", "Clip", "Max", "Min", "Neg", "Abs", "Identity", "MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "Reshape", "Transpose",
        "Slice", "Gather", "Flatten", "Squeeze", "Unsqueeze", "Split", "Expand", "Tile", "Pad", "Concat", "DepthToSpace", "SpaceToDepth", "Shape"}


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def results_of(model, runs):
    """onnxruntime's outputs of each run; None: it does not run the graph."""
    try:
        session = session_of(model)
        names = [o.name for o in session.get_outputs()]
        return [dict(zip(names, session.run(names, feeds))) for feeds in runs]
    except Exception:
        return None


def with_outputs(model, names, values=None):
    """The same model with these outputs alone. values: from which types and ranks are taken; onnxruntime needs none."""
    full = onnx.ModelProto()
    full.CopyFrom(model)
    del full.graph.output[:]
    full.graph.output.extend(helper.make_empty_tensor_value_info(name) if values is None else
                             helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(values[name].dtype), [None] * values[name].ndim)
                             for name in names)
    return full


def inner_values(model):
    return [o for node in model.graph.node for o in node.output if o]


def in_f32(model):
    """The same model with f32 for f16 and bf16."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)

    def widen(message):
        if isinstance(message, onnx.TensorProto):
            if message.data_type in NARROW:
                message.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(message).astype(np.float32), message.name))
        elif isinstance(message, onnx.TypeProto.Tensor):
            message.elem_type = onnx.TensorProto.FLOAT if message.elem_type in NARROW else message.elem_type
        elif isinstance(message, onnx.NodeProto) and message.op_type == "Cast":
            message.attribute[0].i = onnx.TensorProto.FLOAT if message.attribute[0].i in NARROW else message.attribute[0].i
        else:
            for field, value in message.ListFields():
                for inner in (value if field.is_repeated else [value]) if field.message_type else []:
                    widen(inner)
    widen(wide)
    return wide


def distance(a, b):
    """Of two tensors of floats, in the first one's range; 0 where they are not finite, or no floats."""
    if a.dtype.kind != "f":
        return 0.0
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    return float(np.abs(a - b)[finite].max(initial=0) / max(LEAST_SPAN, np.abs(a[finite]).max(initial=0)))


class Steps:
    """What the nodes of a model round to whole steps, and where it lies near a tie. What they round to is the same everywhere, and so is
    what operators of SAME make of it: an element of that is rounded by one rule, tie or not."""
    def __init__(self, model):
        self.numbers = {w.name: w for w in model.graph.initializer}
        self.words_given = set()   # words that inputs are rounded to: the same in f32 everywhere, but not in the evaluators' f64
        self.made, same = {}, {*self.numbers, *(i.name for i in model.graph.input), ""}
        for node in model.graph.node:
            if node.op_type in SAME and same.issuperset(node.input):
                same |= set(node.output)
            if node.op_type in ("QuantizeLinear", "DynamicQuantizeLinear"):
                if node.input[0] not in same or node.op_type == "DynamicQuantizeLinear":
                    self.made[node.output[0]] = node.input[0], node.input[1] if node.op_type == "QuantizeLinear" else node.output[1], node
                elif len(node.input) > 2 and node.input[2] in self.numbers and self.numbers[node.input[2]].data_type in WORDS:
                    self.words_given.add(node.output[0])
                same.add(node.output[0])

    def read(self):
        """What must be known of a run besides its outputs: what is rounded, and scales that the graph computes."""
        return sorted({name for x, scale, _ in self.made.values() for name in (x, scale) if name not in self.numbers})

    def zero_unclear(self, results):
        """Whether the graph computes a zero point that is near a tie: then all numbers may be a step off."""
        for x, scale, node in self.made.values():
            if node.op_type == "DynamicQuantizeLinear":
                zero = -min(0.0, float(results[x].min(initial=0))) / float(results[scale])
                if abs(zero - np.floor(zero) - 0.5) < NEAR:
                    return True
        return False

    def near(self, name, results):
        x, scale, node = self.made[name]
        scale = results[scale] if scale in results else onnx.numpy_helper.to_array(self.numbers[scale])
        x = np.asarray(results[x], np.float64)
        given = {a.name: a.i for a in node.attribute}
        if scale.ndim == x.ndim and given.get("block_size"):
            axis = given["axis"] % x.ndim
            scale = np.repeat(scale, given["block_size"], axis).take(range(x.shape[axis]), axis)
        elif scale.ndim == 1:
            scale = scale.reshape([-1 if i == given.get("axis", 1) % x.ndim else 1 for i in range(x.ndim)])
        of_words = node.op_type == "QuantizeLinear" and self.numbers[node.input[2]].data_type in WORDS
        with np.errstate(all="ignore"):
            steps = x / scale
            return np.abs(steps - np.floor(steps) - 0.5) < (256 * NEAR if of_words else NEAR)


def difference(name, have, want, tolerance, may_step=None, special=False):
    """What is wrong, in a line; None: nothing. may_step: where integers may be a step off."""
    if have.shape != want.shape or have.dtype != want.dtype:
        return f"{name} is {have.dtype}{have.shape}, expected {want.dtype}{want.shape}"
    if want.dtype.kind != "f":
        if np.array_equal(want, have):
            return None
        off = np.abs(want.astype(np.int64) - have.astype(np.int64)) if want.dtype.kind in "iu" else (want != have).astype(int)
        wrong = off > (0 if may_step is None else may_step.astype(int))
        where = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.any() else None
        return f"{name}{list(where)} is {have[where]}, expected {want[where]}; {wrong.sum()} of {wrong.size} are wrong" if where is not None else None
    want, have = want.astype(np.float64), have.astype(np.float64)
    finite = np.isfinite(want)
    others = np.array_equal(want[~finite], have[~finite], equal_nan=True) and bool(np.isfinite(have[finite]).all())
    if not others:
        where = tuple(np.argwhere(~((want == have) | (np.isnan(want) & np.isnan(have)) | (finite & np.isfinite(have))))[0])
        return f"{name}{[int(i) for i in where]} is {have[where]}, expected {want[where]}"
    sizes = np.abs(want[finite])
    span = max(LEAST_SPAN, float(sizes[sizes < 1e6].max(initial=0)) if special else float(sizes.max(initial=0)))
    off = np.abs(want[finite] - have[finite]) / (np.maximum(sizes, span) if special else span)
    if off.max(initial=0) > tolerance:
        return f"{name} is off by {off.max():.2g} of its range"
    return None
