#!/usr/bin/env python3
"""Models as their exporters write them: torch's two, timm, torchvision, Transformers, onnxruntime's quantizers, scikit-learn, LightGBM, XGBoost. Each is made here, with
seeded random weights, compiled with free sizes and with bound ones, and held against onnxruntime without optimizations. Runs in .venv-rivals.

    exports.py --tilewright BUILD/tilewright [--only NAME,...] [--part I/N] [--list] [--models FOLDER] [--write]
"""
import argparse
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

import detection, export, networks, quantized, speech, tabular, text   # noqa: E401, F401
EXPORTS = export.EXPORTS


def reference(path, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    wanted = session.run(None, {name: value.astype(object) if value.dtype.kind == "U" else value for name, value in feeds.items()})
    return {output.name: value for output, value in zip(session.get_outputs(), wanted)}


def bound_dims(path, feeds):
    """--dim flags for the sizes that these inputs have."""
    flags = {}
    for given in onnx.load(path, load_external_data=False).graph.input:
        for axis, (dim, extent) in enumerate(zip(given.type.tensor_type.shape.dim, feeds[given.name].shape)):
            if not dim.HasField("dim_value"):
                named = dim.dim_param and dim.dim_param not in ("?", "-1")
                flags[dim.dim_param if named else f"{given.name}[{axis}]"] = extent
    return [word for name, extent in flags.items() for word in ("--dim", f"{name}={extent}")]


def difference(got, want, tolerance):
    if got.shape != want.shape:
        return f"has shape {list(got.shape)}, expected {list(want.shape)}"
    if want.dtype.kind not in "fiub":
        return "" if got.tolist() == want.tolist() else "has other strings"
    if not want.size:
        return ""
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return ""
    off = np.abs(a - b)[~same].max()
    limit = tolerance * max(np.abs(b[np.isfinite(b)]).max(initial=0), 1) if want.dtype.kind == "f" or tolerance > 1e-3 else 0
    return "" if off <= limit else f"is {off:.3g} off, {(~same).mean():.1%} of its values differ"


class Runs:
    def __init__(self, tilewright, folder):
        self.tilewright, self.folder = tilewright, folder

    def command(self, *words, seconds=600):
        try:
            return subprocess.run([self.tilewright, *map(str, words)], capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{words[0]} takes more than {seconds} s") from None

    def check(self, entry, path, feeds, flags):
        """Compiled with these flags, it gives what onnxruntime gives; else an AssertionError says what is wrong."""
        library = self.folder / "m.so"
        done = self.command("compile", path, "-t", "host", "-o", library, *flags)
        assert done.returncode == 0, f"compile exits with {done.returncode}: {done.stderr.strip()}"
        assert "this is a bug" not in done.stderr, done.stderr.strip()
        for run in feeds:
            np.savez(self.folder / "in.npz", **run)
            done = self.command("run", library, "--input", self.folder / "in.npz", "--output-dir", self.folder / "out", "--threads", "1")
            assert done.returncode == 0, f"run exits with {done.returncode}: {done.stderr.strip()}"
            for name, want in reference(path, run).items():
                file = self.folder / "out" / f"{name}.npy"
                if isinstance(want, list):   # a map for each row, of which the library has the values
                    want = np.array([list(row.values()) for row in want], np.float32)
                problem = difference(np.load(file), want, entry.tolerance)
                assert not problem, f"output {name} {problem}"


def written(entry, folder):
    """The model's file and the inputs of its runs; they are kept."""
    path, inputs = folder / f"{entry.name}.onnx", folder / f"{entry.name}.inputs"
    if not inputs.exists():
        runs = entry.write(path)
        inputs.write_bytes(pickle.dumps(runs))
    return path, pickle.loads(inputs.read_bytes())


def checked(entry, folder, tilewright):
    """'' or what is wrong: with free sizes, with bound ones."""
    path, feeds = written(entry, folder)
    bound = bound_dims(path, feeds[0])
    found = []
    for runs, flags in ((feeds, entry.flags), (feeds[:1], bound)) if bound else ((feeds[:1], ()),):
        with tempfile.TemporaryDirectory() as temporary:
            try:
                Runs(tilewright, pathlib.Path(temporary)).check(entry, path, runs, flags)
                found.append("")
            except AssertionError as problem:
                found.append(str(problem))
    return found if bound else ["-", *found]


PAGE = """# Exports

`tests/exports/exports.py --write` writes this page. It makes these models with the packages' own
exporters, with seeded random weights, and holds the compiled ones against onnxruntime without
optimizations: with free sizes in runs of two sizes, with bound ones in a run of that size.

* `free`: the model as it is written; `bound`: with `--dim` for each of its sizes; –: it has none;
* a model that gives a list of maps (`ZipMap`) gives the tensor of their values.

**{count} models, {wrong} of them refused or wrong.**

| model | exporter | free | bound |
|---|---|---|---|
"""


def is_wrong(result):
    return any(problem not in ("", "-") for problem in result[1])


def write_page(results):
    """results: entry -> what is wrong."""
    rows = [f"| {entry.name} | {entry.kind} | " + " | ".join("–" if problem == "-" else problem.splitlines()[0] if problem else "yes" for problem in found) + " |\n"
            for entry, found in results]
    wrong = sum(map(is_wrong, results))
    (pathlib.Path(__file__).resolve().parents[2] / "docs/reference/exports.md").write_text(PAGE.format(count=len(rows), wrong=wrong) + "".join(rows))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--models", type=pathlib.Path, help="where the models are kept; default: a folder that is removed")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--write", action="store_true", help="the page of docs/reference, of all models")
    args = parser.parse_args()
    part, parts = map(int, args.part.split("/"))
    chosen = args.only.split(",") if args.only else list(EXPORTS)[part::parts]
    if args.list:
        for entry in EXPORTS.values():
            print(f"{entry.name}: {entry.kind}")
        return
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.models or pathlib.Path(temporary)
        folder.mkdir(exist_ok=True)
        for name in chosen:
            start, entry = time.monotonic(), EXPORTS[name]
            found = checked(entry, folder, args.tilewright)
            words = [problem if problem == "-" else "WRONG" if problem else "ok" for problem in found]
            print(f"{name:28} {entry.kind:22} free {words[0]:6} bound {words[1]:6} {time.monotonic() - start:5.0f} s", flush=True)
            for sizes, problem in zip(("free", "bound"), found):
                if problem not in ("", "-"):
                    print(f"    {sizes}: {problem}", flush=True)
            results.append((entry, found))
    if args.write:
        write_page(results)
    wrong = sum(map(is_wrong, results))
    print(f"{len(chosen)} exports, {wrong} of them wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
