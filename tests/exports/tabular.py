"""scikit-learn, LightGBM and XGBoost: tables, with words in them too."""
import numpy as np

from export import export

WIDTH = 6


def numbers(seed=3, rows=80):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, WIDTH)).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(np.int64) + (x[:, 3] > 1), (x @ np.arange(1, WIDTH + 1)).astype(np.float32)


def runs(x):
    return [{"x": x[:4]}, {"x": x[10:41]}]


def of_sklearn(name, fit, target="classes", **options):
    """Registers an export of a model that fit(x, y) gives."""
    def make(path):
        from skl2onnx import to_onnx
        x, classes, values = numbers()
        model = fit(x, classes if target == "classes" else values)
        path.write_bytes(to_onnx(model, initial_types=[("x", float_table())], target_opset={"": 18, "ai.onnx.ml": 3}, options={id(model): options} if options else None).SerializeToString())
        return runs(x)
    make.__name__ = name
    export("scikit-learn", tolerance=1e-3)(make)


def float_table():
    from skl2onnx.common.data_types import FloatTensorType
    return FloatTensorType([None, WIDTH])


def sk(module, name, *args, **options):
    import importlib
    return getattr(importlib.import_module(f"sklearn.{module}"), name)(*args, **options)


def pipeline(*steps):
    return sk("pipeline", "make_pipeline", *steps)


of_sklearn("logistic", lambda x, y: pipeline(sk("preprocessing", "StandardScaler"), sk("linear_model", "LogisticRegression")).fit(x, y))
of_sklearn("forest", lambda x, y: sk("ensemble", "RandomForestClassifier", 20, max_depth=6, random_state=0).fit(x, y), zipmap=False)
of_sklearn("boosting", lambda x, y: sk("ensemble", "GradientBoostingRegressor", n_estimators=20, random_state=0).fit(x, y), "values")
of_sklearn("extra_trees", lambda x, y: sk("ensemble", "ExtraTreesRegressor", 20, max_depth=6, random_state=0).fit(x, y), "values")
of_sklearn("svc", lambda x, y: sk("svm", "SVC", probability=True, random_state=0).fit(x, y), zipmap=False)
of_sklearn("neighbours", lambda x, y: sk("neighbors", "KNeighborsClassifier", 3).fit(x, y), zipmap=False)
of_sklearn("perceptron", lambda x, y: sk("neural_network", "MLPClassifier", (16, 8), max_iter=30, random_state=0).fit(x, y), zipmap=False)
of_sklearn("bayes", lambda x, y: sk("naive_bayes", "GaussianNB").fit(x, y), zipmap=False)
of_sklearn("means", lambda x, y: sk("cluster", "KMeans", 4, random_state=0, n_init=1).fit(x))
of_sklearn("components", lambda x, y: pipeline(sk("preprocessing", "PolynomialFeatures", 2), sk("decomposition", "PCA", 5), sk("linear_model", "Ridge")).fit(x, y), "values")
of_sklearn("isolation", lambda x, y: sk("ensemble", "IsolationForest", n_estimators=10, random_state=0).fit(x))
of_sklearn("gaussian_process", lambda x, y: sk("gaussian_process", "GaussianProcessRegressor", sk("gaussian_process.kernels", "RBF"), alpha=0.1).fit(x, y), "values")
of_sklearn("votes", lambda x, y: sk("ensemble", "VotingClassifier", [("a", sk("linear_model", "LogisticRegression")), ("b", sk("tree", "DecisionTreeClassifier", max_depth=4, random_state=0))],
                                    voting="soft", flatten_transform=False).fit(x, y), zipmap=False)


@export("scikit-learn", tolerance=1e-3)
def columns(path):
    """Columns of numbers with holes and of words, each prepared in its way."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    rng = np.random.default_rng(2)
    table = np.empty((60, 3), object)
    table[:, 0], table[:, 1], table[:, 2] = rng.random(60) * 50, rng.random(60), rng.choice(["Bonn", "Ulm", "Kiel"], 60)
    table[::7, 1] = np.nan
    prepare = sk("compose", "ColumnTransformer", [("n", pipeline(sk("impute", "SimpleImputer"), sk("preprocessing", "MinMaxScaler")), [0, 1]),
                                                  ("c", sk("preprocessing", "OneHotEncoder", handle_unknown="ignore"), [2])])
    model = pipeline(prepare, sk("linear_model", "LogisticRegression")).fit(table, rng.integers(0, 2, 60))
    names = {"age": np.float32, "pay": np.float32, "town": str}
    types = [(name, (StringTensorType if kind is str else FloatTensorType)([None, 1])) for name, kind in names.items()]
    path.write_bytes(to_onnx(model, initial_types=types, target_opset={"": 18, "ai.onnx.ml": 3}, options={"zipmap": False}).SerializeToString())
    return [{name: part[:, [i]].astype(kind) for i, (name, kind) in enumerate(names.items())} for part in (table[:5], table[20:33])]


@export("scikit-learn", tolerance=1e-3)
def words_counted(path):
    """Texts as strings: their words' weights, and a linear model."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import StringTensorType
    texts = np.array([["the cat sat on the mat"], ["a dog ate my homework"], ["the dog and the cat"], ["no cat ate the mat"], ["homework is on the mat"]])
    flat = sk("feature_extraction.text", "TfidfVectorizer", lowercase=False)
    model = pipeline(flat, sk("linear_model", "LogisticRegression")).fit(texts[:, 0], [0, 1, 0, 1, 1])
    path.write_bytes(to_onnx(model, initial_types=[("x", StringTensorType([None]))], target_opset={"": 18, "ai.onnx.ml": 3}, options={"zipmap": False}).SerializeToString())
    return [{"x": texts[:2, 0]}, {"x": texts[:, 0]}]


def of_lightgbm(name, **options):
    def make(path):
        import lightgbm
        from onnxmltools import convert_lightgbm
        from onnxmltools.convert.common.data_types import FloatTensorType
        x, classes, values = numbers(rows=200)
        kind = options.get("objective", "multiclass")
        model = lightgbm.train({"num_leaves": 7, "verbose": -1, "min_data_in_leaf": 3, "seed": 1, **options}, lightgbm.Dataset(x, values if kind == "regression" else classes.clip(0, 1)
                               if kind == "binary" else classes), 10)
        path.write_bytes(convert_lightgbm(model, initial_types=[("x", FloatTensorType([None, WIDTH]))], target_opset=15, zipmap=False).SerializeToString())
        return runs(x)
    make.__name__ = f"lightgbm_{name}"
    export("LightGBM", tolerance=1e-3)(make)


of_lightgbm("classes", objective="multiclass", num_class=3)
of_lightgbm("binary", objective="binary")
of_lightgbm("values", objective="regression")


def of_xgboost(name, kind, **options):
    def make(path):
        import xgboost
        from onnxmltools import convert_xgboost
        from onnxmltools.convert.common.data_types import FloatTensorType
        x, classes, values = numbers(rows=200)
        target = {"classes": classes, "binary": classes.clip(0, 1), "values": values}[name]
        model = getattr(xgboost, kind)(n_estimators=10, max_depth=4, random_state=0, **options).fit(x, target)
        path.write_bytes(convert_xgboost(model, initial_types=[("x", FloatTensorType([None, WIDTH]))], target_opset=15).SerializeToString())
        return runs(x)
    make.__name__ = f"xgboost_{name}"
    export("XGBoost", tolerance=1e-3)(make)


of_xgboost("classes", "XGBClassifier")
of_xgboost("binary", "XGBClassifier")
of_xgboost("values", "XGBRegressor")
