"""How exact each operator is asked to be, where a source does not say what is right, and what is not drawn."""
import numpy as np
from draw import Const, is_float

# Sums, and functions whose values cancel: their error is measured in steps of the output's largest element, others in steps of each element.
SUMS = set("""AffineGrid Attention AveragePool BatchNormalization BlackmanWindow CausalConvWithState Celu Col2Im Conv ConvTranspose CumProd CumSum DFT DeformConv Det
Einsum Elu GRU Gelu Gemm GlobalAveragePool GlobalLpPool GridSample GroupNormalization HammingWindow HannWindow HardSigmoid HardSwish InstanceNormalization LRN LSTM
LayerNormalization LinearAttention LogSoftmax LpNormalization LpPool MatMul Mean MeanVarianceNormalization MelWeightMatrix Mish NegativeLogLikelihoodLoss
RMSNormalization RNN ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd ReduceSum ReduceSumSquare Resize RoiAlign RotaryEmbedding STFT
ScatterElements ScatterND Selu Shrink Softmax SoftmaxCrossEntropyLoss Sum SwiGLU Swish Upsample""".split())
# Steps of the last place. The reference evaluator rounds each operation to the type, where the compiler's rounds a sum once.
LIMIT, LIMIT_OF_SUMS = 4, 32
# onnxruntime's polynomials, which end at some point, and its sums of f32
SOURCE_LIMITS = {("Sigmoid", "onnxruntime"): 64, ("Cos", "onnxruntime"): 64, ("Sin", "onnxruntime"): 64, ("Tanh", "onnxruntime"): 64, ("Erf", "onnxruntime"): 64,
                 ("Softplus", "onnxruntime"): 64}


# The compiled power of f64: 2 steps, and 3 times as many as the logarithm of the result is large
COMPILED_LIMITS = {"Pow": 64}


def is_summing(domain, op):
    return op in SUMS or domain != ""


def limit_of(case, source, engine):
    """(measured by the range, how many steps)"""
    by_range = is_summing(case.domain, case.op)
    compiled = COMPILED_LIMITS.get(case.op, 0) if engine == "compiled" else 0
    return by_range, max(LIMIT_OF_SUMS if by_range else LIMIT, SOURCE_LIMITS.get((case.op, source), 0), compiled)


def has(case, name):
    return name in case.types()


def value(case, index):
    operand = case.operands[index]
    return operand.value if isinstance(operand, Const) else operand


def attribute(case, name, default=None):
    return case.attributes.get(name, default)


class Waiver:
    """Where a source is not followed, or all of them, by what is checked, or by one of it: of these operators, in the cases that `when` takes, as far as so
    many steps."""
    def __init__(self, ops, source, reason, when=lambda case: True, engine=None, within=float("inf")):
        self.ops, self.source, self.reason, self.when, self.engine, self.within = ops.split(), source, reason, when, engine, within

    def covers(self, case, source, engine, error):
        return case.op in self.ops and self.source in (None, source) and self.engine in (None, engine) and error <= self.within and self.when(case)


def has_nan(case):
    """Whether an operand holds a NaN."""
    return any(isinstance(v, np.ndarray) and v.dtype.kind not in "biuOU" and bool(np.isnan(v.astype(np.float64)).any()) for v in case.values())


def class_count(case):
    return len(next(v for k, v in case.attributes.items() if k.startswith("classlabels")))


def doubles(case):
    return has(case, "double")


FOUR_DIGITS = 2e4   # steps of float32
RECURRENT = "LSTM GRU RNN"
WAIVERS = [
    Waiver("BlackmanWindow HammingWindow HannWindow GridSample RoiAlign", "ONNX's cases", "the older release stores four digits, or has a pi of five",
           lambda c: c.text.endswith("_older"), within=FOUR_DIGITS),
    Waiver(RECURRENT, "reference", "it leaves out lengths, clip, other directions and most activations"),
    Waiver("LRN", "reference", "it normalizes as many channels as there are images, by constants of float32", lambda c: value(c, 0).shape[0] != value(c, 0).shape[1] or doubles(c)),
    Waiver("LogSoftmax", "reference", "a probability that is 0 has no logarithm for it", lambda c: c.special),
    Waiver("LogSoftmax", "onnxruntime", "numbers at the ends of the type overflow in it", lambda c: c.special),
    Waiver("MeanVarianceNormalization", "reference", "it adds 1e-9 to the deviation, and takes the variance as a difference of squares"),
    Waiver("NegativeLogLikelihoodLoss", "reference", "its mean counts what is ignored, where there are no weights", lambda c: "ignore_index" in c.attributes),
    Waiver("ReduceLogSumExp", "onnxruntime", "an infinity less itself", lambda c: c.special),
    Waiver("Erf", "reference", "it computes in float32", lambda c: c.types()[0] not in ("float", "float16", "bfloat16")),
    Waiver("Gelu HardSwish", "reference", "constants of the function's body are float32", doubles),
    Waiver("AffineGrid DeformConv", "reference", "it computes in float32"),
    Waiver("AffineGrid", "onnxruntime", "it computes on in float16", lambda c: has(c, "float16")),
    Waiver("Softmax LogSoftmax Hardmax", "reference", "before version 13 the axes from `axis` on are one; it takes one alone", lambda c: c.version < 13),
    Waiver("GlobalMaxPool", "reference", "it is right for two spatial axes alone", lambda c: value(c, 0).ndim != 4),
    Waiver("MaxPool", "reference", "another shape than ONNX infers", lambda c: attribute(c, "pads") or attribute(c, "auto_pad")),
    Waiver("QLinearConv", "reference", "another shape than ONNX infers, where there is one spatial axis", lambda c: value(c, 0).ndim == 3),
    Waiver("Col2Im", "onnxruntime", "along one or three axes it reads other places where there are dilations", lambda c: len(value(c, 1)) != 2 and attribute(c, "dilations")),
    Waiver("AveragePool", "reference", "it counts a last window as its own padding", lambda c: attribute(c, "ceil_mode") and attribute(c, "dilations")),
    Waiver("BatchNormalization", "reference", "at version 9 it trains", lambda c: c.version == 9),
    Waiver("RoiAlign", "reference", "before version 16 coordinates have no half pixel taken off; it takes it", lambda c: c.version < 16),
    Waiver("Loop", "reference", "it joins the rows of iterations along an axis that they have"),
    Waiver("OptionalHasElement", "reference", "it says that an empty one has an element"),
    Waiver("SequenceInsert", "reference", "it does not insert behind the last one"),
    Waiver("Unique", "reference", "with one output it does not look at `sorted`, and unsorted it takes rows along axis 0", lambda c: attribute(c, "sorted") == 0),
    Waiver("StringNormalizer", "reference", "it takes accents off, and leaves out words by another rule than the standard's"),
    Waiver("StringSplit", "onnxruntime", "it splits an empty string into no parts"),
    Waiver("Gather", "onnxruntime", "it gives empty strings at negative indices", lambda c: has(c, "string")),
    Waiver("Dropout", "onnxruntime", "before version 12 it gives a mask of false", lambda c: c.version < 12 and c.outputs == 2),
    Waiver("Cast CastLike", "onnxruntime", "to 4 bits it rounds down", lambda c: True),
    Waiver("QuantizeLinear", "reference", "a scale of bf16 divides in bf16, as the standard says; in the reference in float32", lambda c: has(c, "bfloat16")),
    Waiver("PRelu", "reference", "it multiplies zeros by the slope too, infinite ones", lambda c: c.special),
    Waiver("Cast CastLike", "reference", "it saturates infinities of a type that stays", lambda c: c.special and c.types()[0].startswith("float8")),
    Waiver("AffineGrid", "onnxruntime", "aligned corners of an extent of 1 lie at -1 for it", lambda c: attribute(c, "align_corners")),
    Waiver("CenterCropPad Trilu", "reference", "it fills strings with \"0\"", lambda c: has(c, "string")),
    Waiver("QuantizeLinear", "reference", "what leaves int32 wraps in it", lambda c: c.special),
    Waiver("ReduceSum ReduceSumSquare ReduceL1", "onnxruntime", "sums of integers saturate in it", lambda c: c.special and not is_float(c.types()[0])),
    Waiver("Slice", "onnxruntime", "an end of 2^63 - 1 is the begin for it, where steps are negative", lambda c: c.version >= 10),
    Waiver("Upsample Resize", "onnxruntime", "it truncates interpolated integers, where the standard's reference rounds", lambda c: not is_float(c.types()[0])),
    Waiver("TfIdfVectorizer", "onnxruntime", "it takes the weights in the order of the output, not of the pool", lambda c: "weights" in c.attributes),
    Waiver("MeanVarianceNormalization", "onnxruntime", "NaN of a variance of 0, where the function's body adds 1e-9"),
    Waiver("GroupNormalization", None, "stage one is float32 there, whatever the type", doubles, within=32 * 2.0 ** 29),
    Waiver("ScatterND ScatterElements", "onnxruntime", "its max and min lose a NaN", lambda c: c.special and attribute(c, "reduction") in ("max", "min")),
    Waiver("RegexFullMatch", "reference", "its \\w takes letters beyond ASCII", lambda c: "\\w" in c.attributes["pattern"]),
    Waiver("QLinearSoftmax", "onnxruntime", "a probability of 1 wraps to 0 in it"),
    Waiver("TreeEnsembleClassifier TreeEnsemble", "reference", "it takes another branch than onnxruntime at a NaN, and another first leaf"),
    Waiver("HammingWindow HannWindow BlackmanWindow DFT Shrink", "onnxruntime", "its constants are float32", lambda c: doubles(c) or attribute(c, "output_datatype") == 11),
    Waiver("ReduceLogSumExp ReduceProd", "onnxruntime", "of integers it rounds or saturates between the steps", lambda c: not is_float(c.types()[0])),
    Waiver("QLinearAveragePool", "onnxruntime", "it counts what lies beyond the padding in a last window",
           lambda c: attribute(c, "ceil_mode") and attribute(c, "count_include_pad")),
    Waiver("LayerNormalization", "reference", "it rounds the mean to the type", lambda c: c.outputs > 1),
    Waiver("LabelEncoder", "reference", "it finds no key NaN, which the standard says to match", lambda c: "keys_floats" in c.attributes),
    Waiver("LabelEncoder", "onnxruntime", "at version 2 it finds no key NaN, which the standard says to match", lambda c: "keys_floats" in c.attributes and c.version == 2),
    Waiver("LinearRegressor", "reference", "without intercepts its results are NaN", lambda c: "intercepts" not in c.attributes),
    Waiver("LinearRegressor", "onnxruntime", "it transforms no scores", lambda c: "post_transform" in c.attributes),
    Waiver("LinearClassifier SVMClassifier", "onnxruntime", "it gives and transforms the score of the second of two classes otherwise", lambda c: class_count(c) == 2),
    Waiver("SVMClassifier", "reference", "its matrix for the probabilities of three classes has one number a row beside the diagonal", lambda c: "prob_a" in c.attributes),
    Waiver("TreeEnsembleClassifier", "onnxruntime", "a class without a weight in the leaves that are met is no candidate for it; of two classes it gives other scores"),
    Waiver("SVMRegressor TreeEnsembleRegressor TreeEnsemble", "onnxruntime", "it transforms no single score", lambda c: attribute(c, "n_targets", 1) == 1),
    Waiver("TreeEnsembleRegressor", "onnxruntime", "it leaves base values out, or transforms other scores, where a target has no weight",
           lambda c: "base_values" in c.attributes),
    Waiver("TreeEnsembleRegressor TreeEnsemble", "reference", "without a weight, MIN and MAX give the ends of the numbers",
           lambda c: attribute(c, "aggregate_function") in ("MIN", "MAX", 2, 3)),
    Waiver("TreeEnsemble", "onnxruntime", "it takes 1 for LOGISTIC and 2 for SOFTMAX, where the standard says the reverse; of f64 it transforms in float32",
           lambda c: attribute(c, "post_transform")),
    Waiver("TreeEnsemble", "reference", "it does not transform the scores", lambda c: attribute(c, "post_transform")),
    Waiver("Normalizer Scaler SVMRegressor SVMClassifier LinearRegressor TreeEnsembleRegressor", "reference", "it computes in integers, and normalizes by absolute values"),
    Waiver("Max Min ReduceMax ReduceMin ArgMax ArgMin Hardmax MaxPool GlobalMaxPool TopK", "reference", "it loses a NaN, or takes another place", has_nan),
    Waiver("Max Min ReduceMax ReduceMin ArgMax ArgMin Hardmax MaxPool GlobalMaxPool TopK", "onnxruntime", "it loses a NaN, or takes another place", has_nan),
    Waiver("GridSample", "reference", "weights of integers are integers in it, so 0 or 1; the standard does not say how sums are rounded",
           lambda c: not is_float(c.types()[0]) and attribute(c, "mode") != "nearest"),
    Waiver("DynamicQuantizeLinear", "reference", "zeros have the scale 1, as in onnxruntime; the standard's text leaves it open"),
]
# Faults that are known and not mended.
KNOWN = []
# Operators without cases, with the reason.
NOT_DRAWN = {
    **dict.fromkeys(["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"],
                    "random: their distribution is tested in tests/frontend"),
    "ImageDecoder": "not supported: decoding files is no tensor operator", "CastMap": "not supported: maps", "DictVectorizer": "not supported: maps",
    "ZipMap": "its maps stay the tensor that it takes",
}


def waiver_of(case, source, engine, error):
    return next((w for w in WAIVERS + KNOWN if w.covers(case, source, engine, error)), None)
