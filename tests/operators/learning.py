"""Operators of ai.onnx.ml: features, linear models, support vector machines, trees."""
import definitions
import numpy as np
from draw import STRINGS, TYPES, numpy_type, operators
from onnx import helper, numpy_helper

ML = "ai.onnx.ml"
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]
NUMBERS = ["float", "double", "int64", "int32"]


def reals(d, *shape):
    return [d.real() for _ in range(int(np.prod(shape)))]


def rows(d, features=None, whole=False):
    """A batch; some operators take one row without an axis for the batch."""
    features = features or d.between(1, 5)
    return d.plain().tensor(0, (d.between(1, 5), features), only=NUMBERS, whole=whole), features


@operators("Scaler", ML)
def scaler(d):
    x, count = rows(d)
    one = d.chance(0.3)
    return d.case(x, offset=reals(d, 1 if one else count), scale=reals(d, 1 if one else count))


@operators("Normalizer", ML)
def normalizer(d):
    x, _ = rows(d)
    return d.case(x, norm=d.maybe(d.among(["MAX", "L1", "L2"])))


@operators("Binarizer", ML)
def binarizer(d):
    return d.case(rows(d, whole=True)[0], threshold=d.maybe(float(d.between(-1, 1))))


@operators("Imputer", ML)
def imputer(d):
    x, count = rows(d, whole=True)
    one = d.chance(0.4)
    if x.dtype.kind == "f":
        x = np.where(d.rng.random(x.shape) < 0.3, np.nan, x).astype(x.dtype)
        return d.case(x, imputed_value_floats=reals(d, 1 if one else count), replaced_value_float=d.among([float("nan"), 1.0]))
    return d.case(x, imputed_value_int64s=[d.between(5, 9) for _ in range(1 if one else count)], replaced_value_int64=d.between(-1, 1))


@operators("FeatureVectorizer", ML)
def feature_vectorizer(d):
    batch, widths = d.between(1, 4), [d.between(1, 3) for _ in range(d.between(1, 4))]
    return d.plain().case(*[d.tensor(0, (batch, w), only=NUMBERS) for w in widths], inputdimensions=widths)


@operators("OneHotEncoder", ML)
def one_hot_encoder(d):
    text = d.chance(0.3)
    if text:
        return d.case(d.values("string", d.shape(1, 2)), cats_strings=STRINGS[1:5], zeros=d.maybe(1, 0.8))
    x = d.plain().tensor(0, d.shape(1, 2), only=NUMBERS, low=-2, high=4, whole=True)
    return d.case(x if d.chance(0.7) else np.abs(x) % 2, cats_int64s=[0, 1, 3], zeros=d.maybe(1))


@operators("ArrayFeatureExtractor", ML)
def array_feature_extractor(d):
    shape = d.shape(1, 3)
    index = d.rng.integers(0, shape[-1], (1, d.between(1, 4)) if d.chance(0.5) else (d.between(1, 4),))
    return d.case(d.tensor(0, shape), index.astype(np.int64))


@operators("LabelEncoder", ML)
def label_encoder(d):
    kinds = ["int64s", "floats", "strings"]
    source, target = d.among(kinds), d.among(kinds)
    if source == target and d.version < 4:   # an earlier version maps strings and integers only to others
        target = kinds[(kinds.index(source) + 1) % 3]
    keys = {"int64s": [-1, 0, 2, 7], "floats": [0.5, -1.0, float("nan"), 3.0], "strings": STRINGS[1:5]}[source]
    values = {"int64s": [5, 6, 7, 8], "floats": [0.25, 1.5, -2.0, 0.0], "strings": ["w", "x", "y", "z"]}[target]
    default = {"int64s": ("default_int64", -9), "floats": ("default_float", 0.75), "strings": ("default_string", "other")}[target]
    shape = d.shape(1, 2)
    x = np.array([d.among(keys + keys[:1] + {"int64s": [9], "floats": [8.0], "strings": ["none"]}[source]) for _ in range(int(np.prod(shape)))],
                 {"int64s": np.int64, "floats": np.float32, "strings": object}[source]).reshape(shape)
    if d.version < 2:
        text = d.chance(0.5)
        x = d.values("string", shape) if text else d.values("int64", shape, low=0, high=5, special=False)
        return d.case(x, classes_strings=STRINGS[1:5], default_int64=d.maybe(-3), default_string=d.maybe("other"))
    return d.case(x, **{f"keys_{source}": keys, f"values_{target}": values, default[0]: d.maybe(default[1])}).defined(definitions.label_encoder)


@operators("CategoryMapper", ML)
def category_mapper(d):
    x = d.values("string", d.shape(1, 2)) if d.chance(0.5) else d.values("int64", d.shape(1, 2), low=0, high=5, special=False)
    return d.case(x, cats_int64s=[0, 1, 2, 5], cats_strings=STRINGS[1:5], default_int64=d.maybe(-3), default_string=d.maybe("other"))


def labels(d, count):
    return {"classlabels_strings": STRINGS[1:1 + count]} if d.chance(0.3) else {"classlabels_ints": [int(i) for i in d.rng.permutation(9)[:count]]}


@operators("LinearClassifier", ML)
def linear_classifier(d):
    x, features = rows(d)
    count = d.between(2, 4)
    single = count == 2 and d.chance(0.5)   # one row of coefficients for two classes
    lines = 1 if single else count
    return d.case(x, outputs=2, coefficients=reals(d, lines, features), intercepts=d.maybe(reals(d, lines), 0.8) or reals(d, lines), post_transform=d.maybe(d.among(TRANSFORMS)),
                  multi_class=d.maybe(d.pick(2)), **labels(d, count))


@operators("LinearRegressor", ML)
def linear_regressor(d):
    x, features = rows(d)
    targets = d.between(1, 3)
    case = d.case(x, coefficients=reals(d, targets, features), intercepts=d.maybe(reals(d, targets)), targets=targets, post_transform=d.maybe(d.among(TRANSFORMS)))
    return case if case.attributes.get("post_transform") == "PROBIT" else case.defined(definitions.linear_regressor)


KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]


@operators("SVMRegressor", ML)
def svm_regressor(d):
    x, features = rows(d)
    count = d.between(1, 5)
    if d.chance(0.2):
        return d.case(x, coefficients=reals(d, features), rho=reals(d, 1), kernel_type="LINEAR", n_supports=0, post_transform=d.maybe("NONE"))
    return d.case(x, coefficients=reals(d, count), support_vectors=reals(d, count, features), rho=reals(d, 1), n_supports=count, kernel_type=d.among(KERNELS),
                  kernel_params=[0.25, 0.5, float(d.between(1, 3))], one_class=d.maybe(d.pick(2)), post_transform=d.maybe(d.among(TRANSFORMS)))


@operators("SVMClassifier", ML)
def svm_classifier(d):
    x, features = rows(d)
    count = d.between(2, 4)
    per = [d.between(1, 3) for _ in range(count)]
    pairs, total = count * (count - 1) // 2, sum(per)
    chances = {"prob_a": [d.real(-1, -0.1) for _ in range(pairs)], "prob_b": reals(d, pairs)} if d.chance(0.3) else {}
    return d.case(x, outputs=2, coefficients=reals(d, count - 1, total), support_vectors=reals(d, total, features), vectors_per_class=per, rho=reals(d, pairs), kernel_type=d.among(KERNELS),
                  kernel_params=[0.25, 0.5, float(d.between(1, 3))], post_transform=d.maybe(d.among(TRANSFORMS)), **labels(d, count), **chances)


class Forest:
    """Random trees in the lists of attributes of versions 1 and 3."""
    KEYS = ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true"]
    MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]

    def __init__(self, d, features, targets):
        self.d, self.features, self.targets = d, features, targets
        self.nodes, self.leaves = {key: [] for key in self.KEYS}, []
        self.modes = self.MODES if d.chance(0.5) else [d.among(self.MODES[:4])]
        for tree in range(d.between(1, 3)):
            self.count = 0
            self.grow(tree, d.between(0, 3))

    def grow(self, tree, depth):
        d, own, at = self.d, self.count, len(self.nodes["nodeids"])
        self.count += 1
        leaf = depth == 0
        entry = [tree, own, 0 if leaf else d.pick(self.features), 0.0 if leaf else float(d.between(-2, 2)), "LEAF" if leaf else d.among(self.modes), 0, 0, d.pick(2)]
        for key, value in zip(self.KEYS, entry):
            self.nodes[key].append(value)
        if leaf:
            for target in d.rng.permutation(self.targets)[:d.between(1, self.targets)]:
                self.leaves.append((tree, own, int(target), d.real()))
        else:
            self.nodes["truenodeids"][at] = self.grow(tree, depth - 1)
            self.nodes["falsenodeids"][at] = self.grow(tree, depth - 1)
        return own

    def attributes(self, prefix):
        named = {f"nodes_{key}": value for key, value in self.nodes.items()}
        return named | {f"{prefix}_{key}": list(column) for key, column in zip(["treeids", "nodeids", "ids", "weights"], zip(*self.leaves))}


def with_holes(d, x):
    return np.where(d.rng.random(x.shape) < 0.1, np.nan, x).astype(x.dtype) if x.dtype.kind == "f" else x


@operators("TreeEnsembleRegressor", ML)
def tree_regressor(d):
    x, features = rows(d, whole=True)
    targets = d.between(1, 3)
    return d.case(with_holes(d, x), n_targets=targets, aggregate_function=d.maybe(d.among(["SUM", "AVERAGE", "MIN", "MAX"])), base_values=d.maybe(reals(d, targets)),
                  post_transform=d.maybe(d.among(TRANSFORMS)), **Forest(d, features, targets).attributes("target"))


@operators("TreeEnsembleClassifier", ML)
def tree_classifier(d):
    x, features = rows(d, whole=True)
    count = d.between(2, 4)
    named = {"classlabels_strings": STRINGS[1:1 + count]} if d.chance(0.3) else {"classlabels_int64s": [int(i) for i in d.rng.permutation(9)[:count]]}
    return d.case(with_holes(d, x), outputs=2, base_values=d.maybe(reals(d, count), 0.3), post_transform=d.maybe(d.among(TRANSFORMS)), **named, **Forest(d, features, count).attributes("class"))


@operators("TreeEnsemble", ML)
def tree_ensemble(d):
    """Version 5: nodes and leaves apart, a set of values for BRANCH_MEMBER."""
    name = d.type(0)
    features, targets = d.between(1, 4), d.between(1, 3)
    x = d.plain().tensor(0, (d.between(1, 5), features), whole=True)
    nodes = {key: [] for key in ("featureids", "splits", "modes", "truenodeids", "trueleafs", "falsenodeids", "falseleafs", "missing_value_tracks_true")}
    leaves, members, roots = [], [], []

    def grow(depth):
        at = len(nodes["modes"])
        member = d.chance(0.3)
        for key, value in zip(nodes, [d.pick(features), float(d.between(-2, 2)), 6 if member else d.pick(6), 0, 0, 0, 0, d.pick(2)]):
            nodes[key].append(value)
        if member:
            members.extend([float(d.between(-3, 3)), float(d.between(-3, 3)), float("nan")])
        for side in ("true", "false"):
            leaf = depth == 0 or d.chance(0.3)
            nodes[f"{side}leafs"][at] = int(leaf)
            if leaf:
                nodes[f"{side}nodeids"][at] = len(leaves)
                leaves.append((d.pick(targets), d.real()))
            else:
                nodes[f"{side}nodeids"][at] = grow(depth - 1)
        return at
    for _ in range(d.between(1, 3)):
        roots.append(grow(d.between(0, 2)))

    def numbers(values):
        return helper.make_tensor("t", TYPES[name], [len(values)], np.array(values).astype(numpy_type(name)))
    modes = numpy_helper.from_array(np.array(nodes.pop("modes"), np.uint8), "modes")
    attributes = {f"nodes_{key}": value for key, value in nodes.items()} | {"nodes_modes": modes, "nodes_splits": numbers(nodes["splits"])}
    return d.case(x, n_targets=targets, tree_roots=roots, aggregate_function=d.maybe(d.pick(4)), post_transform=d.maybe(d.pick(4)), leaf_targetids=[t for t, _ in leaves],
                  leaf_weights=numbers([w for _, w in leaves]), membership_values=numbers(members) if members else None, **attributes)
