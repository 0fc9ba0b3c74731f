#!/usr/bin/env python3
"""Models as they are exported, and inputs as the caller has them: --inputs, --const, --dim H=A..B/S, strings. Compiled
libraries are compared with onnxruntime, or with numbers made here.

    real_models.py [--tilewright BUILD/tilewright] [NAME...]
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Tilewright:
    def __init__(self, program, work):
        self.program, self.work = program, work

    def call(self, *words, fails=None):
        """Standard output; with fails: the message, which must hold that text."""
        done = subprocess.run([self.program, *map(str, words)], cwd=self.work, capture_output=True, text=True)
        if fails is None:
            assert done.returncode == 0, f"{words}: {done.stderr}"
            return done.stdout
        assert done.returncode not in (0, 70), f"{words}: exit code {done.returncode}: {done.stderr}"
        assert fails in done.stderr, f"{words}: no '{fails}' in {done.stderr}"
        return done.stderr

    def run(self, library, inputs, *words):
        """The outputs of a run, by name."""
        flags = []
        for i, (name, array) in enumerate(inputs.items()):
            np.save(self.work / f"in{i}.npy", array)
            flags += ["--input", f"{name}=in{i}.npy"]
        self.call("run", library, *flags, "--output-dir", self.work / "outputs", *words)
        return {path.stem: np.load(path) for path in sorted((self.work / "outputs").glob("*.npy"))}


def model(path, nodes, inputs, outputs, constants=(), opset=18, **more):
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(v, k) for k, v in constants], **more)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 4)],
                                ir_version=8), path)
    return path


def tensor(name, kind, dims):
    return helper.make_tensor_value_info(name, kind, dims)


def classifier(path, channels=3, dims=(1, 3, 32, 48)):
    """y = global mean of relu(conv(image))."""
    weights = np.random.default_rng(1).normal(size=(8, channels, 3, 3)).astype(np.float32) * 0.2
    return model(path, [helper.make_node("Conv", ["image", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["r"]),
                        helper.make_node("GlobalAveragePool", ["r"], ["y"])],
                 [tensor("image", TensorProto.FLOAT, dims)], [tensor("y", TensorProto.FLOAT, [dims[0], 8, 1, 1])], [("w", weights)])


def expect(path, **inputs):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, inputs)


def check_layout_and_scale(tw):
    path = classifier(tw.work / "net.onnx")
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    (tw.work / "inputs.yaml").write_text(f"image: {{layout: nhwc, dtype: u8, scale: {1 / 255}, mean: {mean}, std: {std}}}\n")
    tw.call("compile", path, "-o", "net.so", "--inputs", "inputs.yaml")
    picture = np.random.default_rng(2).integers(0, 256, (1, 32, 48, 3)).astype(np.uint8)
    prepared = ((picture / 255 - mean) / std).astype(np.float32).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(list(tw.run("net.so", {"image": picture}).values())[0], expect(path, image=prepared)[0], rtol=1e-4, atol=1e-5)
    assert "u8[1, 32, 48, 3]" in tw.call("inspect", path, "--inputs", "inputs.yaml")
    assert "u8[1, 32, 48, 3]" in tw.call("inspect", "net.so")
    header = (tw.work / "net.h").read_text()
    assert "uint8_t" in header, header
    tw.call("verify", "net.so", path, "--random", "1")
    calls = json.loads(tw.call("inspect", "net.so", "--json"))["manifest"]["calls"]
    assert len(calls) == 3, f"the preparation is not one kernel: {[c['name'] for c in calls]}"


def check_resize(tw):
    path = classifier(tw.work / "net.onnx")
    picture = np.zeros((1, 64, 64, 3), np.uint8)
    picture[:, :, 32:] = 200
    for fit, wanted in (("stretch", 100), ("letterbox", 200 * (16 / 48) + 7 * (16 / 48)), ("crop", 100)):
        tw.call("compile", path, "-o", "fit.so", "--inputs", f"{{image: {{layout: nhwc, dtype: u8, size: [64, 64], fit: {fit}, fill: 7}}}}")
        got = list(tw.run("fit.so", {"image": picture}).values())[0]
        frame = np.zeros((32, 48), np.float32)
        if fit == "letterbox":
            frame[:], frame[:, :32] = 7, 0
            frame[:, 16:32] = 200
        else:
            frame[:, 24:] = 200
        want = expect(path, image=np.broadcast_to(frame, (1, 3, 32, 48)).astype(np.float32))[0]
        # The two columns at the step are between both
        np.testing.assert_allclose(got, want, atol=np.abs(want).max() * 0.05 + 1)
        tw.call("verify", "fit.so", path, "--random", "3")


def check_channels(tw):
    path = classifier(tw.work / "net.onnx")
    picture = np.random.default_rng(2).normal(size=(1, 3, 32, 48)).astype(np.float32)
    tw.call("compile", path, "-o", "bgr.so", "--inputs", "{image: {channels: bgr}}")
    np.testing.assert_allclose(list(tw.run("bgr.so", {"image": picture}).values())[0], expect(path, image=picture[:, ::-1].copy())[0], rtol=1e-4, atol=1e-5)
    path = classifier(tw.work / "gray.onnx", 1, (1, 1, 32, 48))
    tw.call("compile", path, "-o", "gray.so", "--inputs", "{image: {channels: gray}}")
    gray = np.einsum("nchw,c->nhw", picture, [0.299, 0.587, 0.114])[:, None].astype(np.float32)
    np.testing.assert_allclose(list(tw.run("gray.so", {"image": picture}).values())[0], expect(path, image=gray)[0], rtol=1e-4, atol=1e-5)


def check_wrong_forms(tw):
    path = classifier(tw.work / "net.onnx")
    for form, text in (("{picture: {}}", "no input 'picture'; its inputs are image"),
                       ("{image: {layout: chw, dtype: u9}}", "one of nchw, nhwc"),
                       ("{image: {layout: chw, dtype: u9}}", "a type such as u8 or f32"),
                       ("{image: {mean: [1, 2]}}", "no 2 channels"),
                       ("{image: {std: 0}}", "none of them 0"),
                       ("{image: {size: [0, 4]}}", "height and width"),
                       ("{image: {channels: gray}}", "'channels: gray' is for 1"),
                       ("[", "--inputs"), ("none.yaml", "none.yaml")):
        tw.call("compile", path, "-o", "bad.so", "--inputs", form, fails=text)
    assert not (tw.work / "bad.so").exists()


def voice_detector(path):
    """Two rates of sampling, each with weights of its own for a frame of its own length: the branch of the other rate does
    not fit a frame."""
    def branch(name, frame, first):
        weights = numpy_helper.from_array(np.arange(frame, dtype=np.float32).reshape(frame, 1) / frame + first, f"w_{name}")
        return helper.make_graph([helper.make_node("MatMul", ["x", f"w_{name}"], [f"y_{name}"])], name, [],
                                 [tensor(f"y_{name}", TensorProto.FLOAT, [1, 1])], [weights])

    return model(path, [helper.make_node("Equal", ["sr", "rate"], ["fast"]),
                        helper.make_node("If", ["fast"], ["y"], then_branch=branch("fast", 512, 0), else_branch=branch("slow", 256, 1))],
                 [tensor("x", TensorProto.FLOAT, [1, "frame"]), tensor("sr", TensorProto.INT64, [])],
                 [tensor("y", TensorProto.FLOAT, [1, 1])], [("rate", np.array(16000, np.int64))])


def check_constants(tw):
    path = voice_detector(tw.work / "voice.onnx")
    for rate, frame in ((16000, 512), (8000, 256)):
        x = np.random.default_rng(rate).normal(size=(1, frame)).astype(np.float32)
        tw.call("compile", path, "-o", "voice.so", "--const", f"sr={rate}", "--dim", f"frame={frame}")
        got = list(tw.run("voice.so", {"x": x}).values())[0]
        np.testing.assert_allclose(got, expect(path, x=x, sr=np.array(rate, np.int64))[0], rtol=1e-4)
        inputs = json.loads(tw.call("inspect", "voice.so", "--json"))["manifest"]["inputs"]
        assert [i["name"] for i in inputs] == ["x"], inputs
        tw.call("verify", "voice.so", path, "--random", "1")
    tw.call("compile", path, "-o", "bad.so", "--const", "sr=8000", "--dim", "frame=512", fails="MatMul")
    for flag, text in (("sr=fast", "'fast' is no such number"), ("sr=1,2", "takes 1 values, here are 2"), ("rate=1", "its inputs are x, sr"),
                       ("sr", "NAME=V"), ("x=1,2", "free dimensions")):
        tw.call("compile", path, "-o", "bad.so", "--const", flag, fails=text)


def check_steps(tw):
    """A network that halves a picture five times and adds what it doubled again to what it had."""
    nodes, skips, value = [], [], "x"
    for level in range(5):
        skips.append(value)
        nodes.append(helper.make_node("MaxPool", [value], [f"p{level}"], kernel_shape=[2, 2], strides=[2, 2]))
        value = f"p{level}"
    for level in reversed(range(5)):
        nodes.append(helper.make_node("Resize", [value, "", "twice"], [f"u{level}"], mode="nearest"))
        nodes.append(helper.make_node("Add", [f"u{level}", skips[level]], [f"a{level}" if level else "y"]))
        value = f"a{level}"
    path = model(tw.work / "skips.onnx", nodes, [tensor("x", TensorProto.FLOAT, [1, 2, "H", "W"])],
                 [tensor("y", TensorProto.FLOAT, [1, 2, "h", "w"])], [("twice", np.array([1, 1, 2, 2], np.float32))])
    x = np.random.default_rng(1).normal(size=(1, 2, 96, 64)).astype(np.float32)
    want = expect(path, x=x)[0]
    tw.call("compile", path, "-o", "free.so")
    np.testing.assert_allclose(tw.run("free.so", {"x": x})["y"], want)
    np.save(tw.work / "odd.npy", x[:, :, :90])
    message = tw.call("run", "free.so", "--input", "odd.npy", fails="H = 90")
    assert "multiples of" in message, message
    tw.call("compile", path, "-o", "steps.so", "--dim", "H=32..960/32", "--dim", "W=32..960/32")
    np.testing.assert_allclose(tw.run("steps.so", {"x": x})["y"], want)
    tw.call("run", "steps.so", "--input", "odd.npy", fails="H ('x', axis 2) must be a multiple of 32")
    tw.call("run", "steps.so", "--random", "1", "--dim", "H=992", "--dim", "W=32", fails="960")
    tw.call("compile", path, "-o", "bad.so", "--dim", "H=33..63/32", fails="multiples of S")


WORDS = ["Monday", "tuesday", "", "TUESDAY", "Grün", "ΑΒΓ", "a", "Привет"]


def check_normalizer(tw):
    for case in ("NONE", "LOWER", "UPPER"):
        for exact in (0, 1):
            path = model(tw.work / "n.onnx", [helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action=case, is_case_sensitive=exact,
                                                               stopwords=["tuesday", "a"])],
                         [tensor("x", TensorProto.STRING, ["n"])], [tensor("y", TensorProto.STRING, ["m"])])
            tw.call("compile", path, "-o", "n.so")
            for words in (WORDS, ["a"]):
                x = np.array(words)
                got = tw.run("n.so", {"x": x})["y"]
                kept = [w for w in words if (w if exact else w.lower()) not in ("tuesday", "a")]
                want = [{"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[case](w) for w in kept] or [""]
                assert got.tolist() == want, (case, exact, got, want)
    tw.call("verify", "n.so", path, "--random", "1", "--dim", "n=5")


def check_split_and_concat(tw):
    path = model(tw.work / "s.onnx", [helper.make_node("StringConcat", ["a", "b"], ["c"]), helper.make_node("StringSplit", ["c"], ["y", "z"], delimiter=", "),
                                      helper.make_node("Equal", ["a", "b"], ["same"]), helper.make_node("Where", ["same", "other", "a"], ["w"]),
                                      helper.make_node("Transpose", ["y"], ["t"])],
                 [tensor("a", TensorProto.STRING, ["n"]), tensor("b", TensorProto.STRING, [1])],
                 [tensor("t", TensorProto.STRING, ["m", "n"]), tensor("z", TensorProto.INT64, ["n"]), tensor("w", TensorProto.STRING, ["n"])],
                 [("other", np.array("same", object))], opset=20)
    tw.call("compile", path, "-o", "s.so")
    got = tw.run("s.so", {"a": np.array(["a, b", "", ", x", "é, ü, ö"]), "b": np.array([", x"])})
    parts = [(a + ", x").split(", ") for a in ("a, b", "", ", x", "é, ü, ö")]
    assert got["z"].tolist() == [len(p) for p in parts], got
    assert got["t"].T.tolist() == [p + [""] * (4 - len(p)) for p in parts], got
    assert got["w"].tolist() == ["a, b", "", "same", "é, ü, ö"], got
    tw.call("verify", "s.so", path, "--random", "1", "--dim", "n=9")


def check_regex(tw):
    import re
    texts = ["", "a", "abc", "ab12", "www.google.com", "x@y.org", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ÄÖ", "one two", "A-1\n"]
    for pattern in (r"www\.[\w.-]+\.com", r"(\w|[-.])+@\w+\.\w+", r"(a*)*b?", r"[^a-z]*", r"\D*\d{2}", r"(?i)ABC|\b.\b", r"(?s).*", ".*",
                    r"^(?:one|two)( (one|two))?$", r"\S+ \S+", r"[[:alpha:]]{1,3}", r"(?P<x>a)|\x{C4}."):
        plain = pattern.replace("[[:alpha:]]", "[a-zA-Z]").replace(r"\x{C4}", "Ä")
        path = model(tw.work / "r.onnx", [helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)],
                     [tensor("x", TensorProto.STRING, [len(texts)])], [tensor("y", TensorProto.BOOL, [len(texts)])], opset=20)
        tw.call("compile", path, "-o", "r.so")
        got = tw.run("r.so", {"x": np.array(texts)})["y"].tolist()
        assert got == [bool(re.fullmatch(plain, t, re.ASCII)) for t in texts], (pattern, got)
    for pattern, text in ((r"(?=a)b", "looks around"), (r"(a)\1", "refers to a group"), (r"\pL", r"\p"), ("a**", "repetition of a repetition"),
                          ("(a", "without its ')'"), ("[a", "without its ']'"), ("((a{1000}){1000}){1000}", "instructions"), ("((){1000}){1000}", "instructions")):
        path = model(tw.work / "r.onnx", [helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)],
                     [tensor("x", TensorProto.STRING, [1])], [tensor("y", TensorProto.BOOL, [1])], opset=20)
        tw.call("compile", path, "-o", "r.so", fails=text)


def check_text_classifier(tw):
    """Labels and words in, labels out: what exporters of feature pipelines write."""
    ml = dict(domain="ai.onnx.ml")
    nodes = [helper.make_node("LabelEncoder", ["colour"], ["number"], keys_strings=["red", "green", "blue"], values_floats=[1., 2., 4.], default_float=-1., **ml),
             helper.make_node("TfIdfVectorizer", ["words"], ["counts"], mode="TFIDF", min_gram_length=1, max_gram_length=2, max_skip_count=1,
                              ngram_counts=[0, 2], ngram_indexes=[0, 1, 2], pool_strings=["good", "bad", "not", "good"], weights=[1., 2., 3.]),
             helper.make_node("Reshape", ["number", "column"], ["n1"]), helper.make_node("Concat", ["counts", "n1"], ["features"], axis=1),
             helper.make_node("LinearClassifier", ["features"], ["label", "scores"], classlabels_strings=["no", "yes"], multi_class=1,
                              coefficients=[-1., 1., 2., 0.1, 1., -1., -2., 0.2], intercepts=[0., 0.1], **ml),
             helper.make_node("ZipMap", ["scores"], ["maps"], classlabels_strings=["no", "yes"], **ml)]
    maps = helper.make_value_info("maps", helper.make_sequence_type_proto(helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))))
    path = model(tw.work / "text.onnx", nodes, [tensor("colour", TensorProto.STRING, ["n"]), tensor("words", TensorProto.STRING, ["n", 4])],
                 [tensor("label", TensorProto.STRING, ["n"]), maps], [("column", np.array([-1, 1], np.int64))])
    message = subprocess.run([tw.program, "compile", path, "-o", "text.so"], cwd=tw.work, capture_output=True, text=True)
    assert message.returncode == 0 and "a column for each of no, yes" in message.stderr, message.stderr
    colours, words = np.array(["red", "blue", "grey"]), np.array([["not", "good", "x", "good"], ["bad", "bad", "", "y"], ["not", "x", "good", "bad"]])
    got = tw.run("text.so", {"colour": colours, "words": words})
    label, rows = expect(path, colour=colours.astype(object), words=words.astype(object))
    assert got["label"].tolist() == label.tolist(), (got, label)
    np.testing.assert_allclose(got["maps"], [[row["no"], row["yes"]] for row in rows], rtol=1e-5)
    assert "const char*" in (tw.work / "text.h").read_text()


def check_strings_in_c(tw):
    """A program that gives strings and keeps those that it gets until the next run."""
    path = model(tw.work / "c.onnx", [helper.make_node("StringConcat", ["x", "tail"], ["y"])], [tensor("x", TensorProto.STRING, [2])],
                 [tensor("y", TensorProto.STRING, [2])], [("tail", np.array("!", object))], opset=20)
    tw.call("compile", path, "-o", "c.so")
    (tw.work / "main.c").write_text("""#include <stdio.h>
#include "c.h"
int main(void) {
  const tw_api* api = tw_c_query(TW_ABI_VERSION);
  tw_context* c = NULL;
  const int64_t dims[1] = {2};
  const char *words[2] = {"hello", NULL}, *made[2];
  tw_tensor in = {words, sizeof words, TW_STRING, 1, dims}, out = {made, sizeof made, TW_STRING, 1, dims};
  if (api->create(NULL, &c) != TW_OK) return 1;
  for (int i = 0; i < 20000; ++i)
    if (api->run(c, &in, &out) != TW_OK) return 2;
  printf("%s %s\\n", made[0], made[1]);
  api->destroy(c);
  return 0;
}
""")
    subprocess.run(["cc", "-I", ROOT / "runtime", "main.c", "./c.so", "-Wl,-rpath,.", "-o", "main"], cwd=tw.work, check=True)
    assert subprocess.run(["./main"], cwd=tw.work, check=True, capture_output=True, text=True).stdout == "hello! !\n"
    # The same from Python
    sys.path.insert(0, str(ROOT / "runtime"))
    import tilewright
    concatenate = tilewright.Model(tw.work / "c.so")
    made = [concatenate(np.array(words, object)) for words in (["hello", "world"], ["grüße", ""])]
    assert [m.tolist() for m in made] == [["hello!", "world!"], ["grüße!", "!"]], made
    for wrong, kind in ((np.zeros(2, np.float32), TypeError), (np.array(["a", "b\0c"], object), ValueError)):
        try:
            concatenate(wrong)
        except kind:
            continue
        raise AssertionError(f"{wrong} is no array of texts")


def check_refused_strings(tw):
    path = model(tw.work / "bad.onnx", [helper.make_node("Add", ["x", "x"], ["y"])], [tensor("x", TensorProto.STRING, [2])], [tensor("y", TensorProto.STRING, [2])])
    tw.call("compile", path, "-o", "bad.so", fails="string")
    path = model(tw.work / "bad.onnx", [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], [tensor("x", TensorProto.STRING, [2])],
                 [tensor("y", TensorProto.FLOAT, [2])])
    tw.call("compile", path, "-o", "bad.so", fails="string")


CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", default=ROOT / "build/release/tilewright", type=pathlib.Path)
    parser.add_argument("names", nargs="*", choices=[*CHECKS, []])
    args = parser.parse_args()
    failed = 0
    for name in args.names or CHECKS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                CHECKS[name](Tilewright(args.tilewright.resolve(), pathlib.Path(folder)))
                print(f"ok {name}", flush=True)
            except AssertionError as error:
                failed += 1
                print(f"FAIL {name}: {error}", flush=True)
    print(f"real models: {len(args.names or CHECKS) - failed} good, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    raise SystemExit(main())
