"""Models whose sequences only the run knows, of which the ONNX package has five cases: parts of a computed size, sequences that loops make longer,
branches with sequences of different lengths; and loops that make a tensor longer. With the outputs of ONNX's own reference evaluator."""
import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

HEADER = '<ir_version: 9, opset_import: ["": 20]> '
SPLIT = 's = SplitToSequence<axis = 1>(x, k) '
GROWS = '''s = Loop (k, c, e) <body = b (int64 i, bool go, seq(float[a, b]) v) => (bool stay, seq(float[a, b]) w)
    { stay = Identity(go) one = Constant<value_int = 1>() two = Constant<value_ints = [1]>() zero = Constant<value_ints = [0]>() end = Add(i, one) to = Reshape(end, two)
      part = Slice(x, zero, to, two) w = SequenceInsert(v, part) }> '''
CHOICE = '''s = If (c) <then_branch = a () => (seq(float[a, b]) t) { n = Neg(x) t = SequenceConstruct(x, n) },
    else_branch = b () => (seq(float[a, b]) t2) { d = Transpose<perm = [1, 0]>(x) t2 = SequenceConstruct(d) }> '''
LONGER = '''y = Loop (%s) <body = b (int64 i, bool go, float[p, q] v) => (bool stay, float[r, t] w)
    { %s one = Constant<value_ints = [1]>() m = ReduceMean<keepdims = 1>(v, one) w = Concat<axis = 1>(v, m) }> '''
# name: (result, nodes, k by data set, c)
CASES = {
    "split": ("seq(float[a, b]) s", SPLIT, 4, True),
    "split_whole": ("seq(float[a, b]) s", SPLIT, 50, True),
    "split_length": ("int64 n", SPLIT + "n = SequenceLength(s)", 2, True),
    "split_at": ("float[a, b] y", SPLIT + "m = Constant<value_int = -1>() y = SequenceAt(s, m)", 4, True),
    "split_at_computed": ("float[a, b] y", SPLIT + "n = SequenceLength(s) m = Constant<value_int = 2>() i = Sub(n, m) y = SequenceAt(s, i)", 3, True),
    "split_insert": ("seq(float[a, b]) t", SPLIT + "t = SequenceInsert(s, x)", 4, True),
    "split_insert_at": ("seq(float[a, b]) t", SPLIT + "m = Constant<value_int = 1>() t = SequenceInsert(s, x, m)", 4, True),
    "split_erase": ("seq(float[a, b]) t", SPLIT + "t = SequenceErase(s)", 3, True),
    "split_erase_at": ("seq(float[a, b]) t", SPLIT + "m = Constant<value_int = -2>() t = SequenceErase(s, m)", 3, True),
    "split_concat": ("float[a, b] y", SPLIT + "y = ConcatFromSequence<axis = 1>(s)", 3, True),
    "split_concat_other_axis": ("float[a, b] y", SPLIT + "y = ConcatFromSequence<axis = 0>(s)", 5, True),
    "split_concat_new_axis": ("float[a, b, d] y", SPLIT + "y = ConcatFromSequence<axis = 2, new_axis = 1>(s)", 2, True),
    "loop": ("seq(float[a, b]) s", "e = SequenceEmpty() " + GROWS, 3, True),
    "loop_behind": ("seq(float[a, b]) s", "m = Neg(x) e = SequenceConstruct(m, x) " + GROWS, 7, True),
    "loop_concat": ("float[a, b] y", "e = SequenceEmpty() " + GROWS + "y = ConcatFromSequence<axis = 1>(s)", 4, True),
    "tensor_grows": ("float[a, b] y", LONGER % ("k, c, x", "stay = Identity(go)"), 9, True),
    "tensor_grows_not": ("float[a, b] y", LONGER % ("k, c, x", "stay = Identity(go)"), 0, True),
    "tensor_grows_until": ("float[a, b] y", "f = Constant<value_int = 40>() " + LONGER % ("f, c, x", "stay = Less(i, k)"), 4, True),
    "tensor_grows_never": ("float[a, b] y", "f = Constant<value_int = 40>() " + LONGER % ("f, c, x", "stay = Less(i, k)"), 4, False),
    "if_two": ("seq(float[a, b]) s", CHOICE, 1, True),
    "if_one": ("seq(float[a, b]) s", CHOICE, 1, False),
    "if_length_at": ("int64 n, float[a, b] y", CHOICE + "n = SequenceLength(s) z = Constant<value_int = -1>() y = SequenceAt(s, z)", 1, False),
}


def list_cases():
    """(name, model, inputs, outputs); an output is an array or a list of them."""
    x = np.random.default_rng(5).standard_normal((3, 10)).astype(np.float32)
    for name, (outputs, nodes, k, c) in CASES.items():
        model = onnx.parser.parse_model(HEADER + f"g (float[3, 10] x, int64 k, bool c) => ({outputs}) {{ {nodes} }}")
        inputs = [x, np.array(k, np.int64), np.array(c)]
        yield f"test_list_{name}", model, inputs, ReferenceEvaluator(model).run(None, dict(zip("xkc", inputs)))
