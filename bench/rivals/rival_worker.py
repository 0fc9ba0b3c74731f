#!/usr/bin/env python3
"""One contender of compare_rivals.py in its own process: loads a model, checks its outputs, and times runs on request.

    rival_worker.py CONTENDER MODEL.onnx --work DIR --threads N [--tilewright EXE] [--torch-models FILE.py] [--prepare]

It answers in JSON lines: one after loading, then one for every {"warmup": seconds, "seconds": seconds} on standard input.
With --prepare it only converts the model (reference outputs, ncnn, MNN) into the work folder.
"""
import argparse
import importlib
import importlib.metadata
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time
import traceback

import numpy as np

import rival_truth


# Types with few values: numpy's type, the least value, and one above the greatest
SMALL = {"tensor(uint8)": (np.uint8, 0, 256), "tensor(int8)": (np.int8, -128, 128), "tensor(bool)": (np.bool_, 0, 2)}


class Contender:
    """run() is what is timed; outputs() gives one array per model output, in the model's order."""
    package = None

    def __init__(self, args):
        self.args, self.model, self.threads = args, args.model, args.threads
        self.folder = args.work
        self.inputs = rival_truth.load_arrays(self.folder / "inputs.npz") if (self.folder / "inputs.npz").exists() else {}

    def prepare(self):
        pass

    def truth(self):
        return rival_truth.Truth.load(self.folder)

    def output_names(self):
        return self.truth().names

    def version(self):
        return importlib.metadata.version(self.package)

    def time(self, warmup, seconds):
        repeat(self.run, warmup)
        return repeat(self.run, seconds)


def repeat(run, seconds):
    """Milliseconds of every run; at least three runs."""
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def execute(command, folder, log):
    with open(folder / log, "wb") as out:
        done = subprocess.run([str(c) for c in command], cwd=folder, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    if done.returncode:
        tail = (folder / log).read_text(errors="replace").strip().splitlines()[-1:]
        raise RuntimeError(f"{pathlib.Path(command[0]).name} ended with {done.returncode}: {''.join(tail)[:200]}")


class Onnxruntime(Contender):
    package = "onnxruntime"

    def session(self, level, entries=None):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = self.threads, 1, 3
        for key, value in (entries or {}).items():
            options.add_session_config_entry(key, value)
        return onnxruntime.InferenceSession(str(self.model), options, providers=["CPUExecutionProvider"])

    def load(self):
        session = self.session("ORT_ENABLE_ALL")
        self.run = self.outputs = lambda: session.run(None, self.inputs)


class Reference(Onnxruntime):
    """Writes the inputs and the outputs that every contender is checked against: of the graph as it stands, operator by operator, and of an 8-bit
    model those in integers too, exactly on any processor: without products of 8 bits that saturate where there is no VNNI."""

    def prepare(self):
        session, generator = self.session("ORT_DISABLE_ALL"), np.random.default_rng(1)
        inputs = {}
        for i in session.get_inputs():
            shape = [d if isinstance(d, int) else 1 for d in i.shape]
            if i.type == "tensor(float)":
                values = generator.standard_normal(shape, dtype=np.float32)
                inputs[i.name] = np.abs(values) + np.float32(0.01) if i.name.startswith("positive") else values
            elif i.type in SMALL:
                inputs[i.name] = generator.integers(*SMALL[i.type][1:], shape).astype(SMALL[i.type][0])
            else:   # token ids, masks, token types
                dtype = np.int32 if i.type == "tensor(int32)" else np.int64
                inputs[i.name] = np.ones(shape, dtype) if "mask" in i.name else generator.integers(0, 2 if "type" in i.name else 1000, shape, dtype=dtype)
        readings = {"graph": session.run(None, inputs)}
        steps = rival_truth.steps_of(self.model, readings["graph"])
        if steps:
            readings["integers"] = self.session("ORT_ENABLE_ALL", {"session.x64quantprecision": "1"}).run(None, inputs)
        truth = rival_truth.Truth([o.name for o in session.get_outputs()], readings, steps)
        truth.tolerance()   # an error where the readings have nothing in common
        np.savez(self.folder / "inputs.npz", **inputs)
        truth.save(self.folder)


class Openvino(Contender):
    package, precision = "openvino", "f32"

    def load(self):
        import openvino
        settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": self.threads, "NUM_STREAMS": 1,
                    "ENABLE_CPU_PINNING": False, "INFERENCE_PRECISION_HINT": self.precision}
        request = openvino.Core().compile_model(str(self.model), "CPU", settings).create_infer_request()
        self.run = lambda: request.infer(self.inputs, share_inputs=True, share_outputs=True)
        self.outputs = lambda: [np.array(v) for v in self.run().values()]


class OpenvinoBf16(Openvino):
    precision = "bf16"


class TorchModels:
    """PyTorch modules: those of --torch-models (a file with ZOO and torch_model(name)), else what pnnx made of the ONNX file."""

    def __init__(self, contender):
        self.contender, self.name, self.source = contender, contender.model.stem, contender.args.torch_models

    def has_original(self):
        return self.source is not None and self.name in load_module(self.source).ZOO

    def original(self):
        return load_module(self.source).torch_model(self.name)

    def converted(self):
        folder = self.contender.folder / "ncnn"
        if not (folder / "m_pnnx.py").exists():
            raise RuntimeError("no PyTorch source, and pnnx could not convert the model")
        os.chdir(folder)   # the generated module opens its weights there
        return load_module(folder / "m_pnnx.py").Model().float().eval()


def load_module(path):
    sys.path.insert(0, str(path.parent))
    return importlib.import_module(path.stem)


class Inductor(Contender):
    package = "torch"

    def load(self):
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(self.folder / f"inductor-{self.threads}")
        import torch
        import torch._inductor.config
        torch.set_num_threads(self.threads)
        torch._inductor.config.freezing = True
        models = TorchModels(self)
        own_weights = models.has_original()
        module = models.original() if own_weights else models.converted()
        values = [torch.from_numpy(v) for v in self.inputs.values()]
        torch.set_grad_enabled(False)
        if own_weights:   # other weights than the ONNX file's: PyTorch itself is the reference
            eager = rival_truth.Truth.of_floats(self.arrays(module(*values)))
            self.truth = lambda: eager
        compiled = torch.compile(module, backend="inductor", fullgraph=True)
        self.run = lambda: compiled(*values)
        self.outputs = lambda: self.arrays(self.run())

    @staticmethod
    def arrays(result):
        return [v.numpy() for v in (result if isinstance(result, (tuple, list)) else [result])]


class Ncnn(Contender):
    package = "ncnn"

    def prepare(self):
        folder = self.folder / "ncnn"
        if (folder / "m.ncnn.param").exists():
            return
        folder.mkdir(exist_ok=True)
        pnnx = pathlib.Path(sys.executable).parent / "pnnx"
        try:
            shutil.copyfile(self.model, folder / "m.onnx")
            execute([pnnx, "m.onnx", "fp16=0"], folder, "pnnx.log")
        except RuntimeError:   # it folds constants by running the model on made-up indices, which may be out of range
            if not TorchModels(self).has_original():
                raise
            self.trace(folder)
            execute([pnnx, "m.pt", "fp16=0", "inputshape=" + self.shapes()], folder, "pnnx.log")
        unneeded = [p for p in folder.iterdir() if p.suffix in (".onnx", ".pt")]
        for path in unneeded:
            path.unlink()

    def trace(self, folder):
        import torch
        with torch.no_grad():
            module, values = TorchModels(self).original(), tuple(torch.from_numpy(v) for v in self.inputs.values())
            np.savez(folder / "expected.npz", *Inductor.arrays(module(*values)))   # other weights than the ONNX file's
            torch.jit.trace(module, values, check_trace=False).save(folder / "m.pt")

    def truth(self):
        traced = self.folder / "ncnn" / "expected.npz"
        return rival_truth.Truth.of_floats(rival_truth.load_arrays(traced).values()) if traced.exists() else super().truth()

    def shapes(self):
        kinds = {"float32": "f32", "int64": "i64", "int32": "i32"}
        return ",".join(f"[{','.join(map(str, v.shape))}]{kinds[v.dtype.name]}" for v in self.inputs.values())

    def load(self):
        import ncnn
        param = self.folder / "ncnn" / "m.ncnn.param"
        types = {line.split()[0] for line in param.read_text().splitlines()[2:] if line}
        unknown = sorted(t for t in types if "." in t or "::" in t)
        if unknown:
            raise RuntimeError(f"layers that ncnn does not know: {', '.join(unknown)}")
        self.net = ncnn.Net()
        options = self.net.opt
        options.num_threads, options.lightmode, options.use_vulkan_compute = self.threads, True, False
        for name in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_packed", "use_bf16_storage"):
            if hasattr(options, name):
                setattr(options, name, False)
        if self.net.load_param(str(param)) or self.net.load_model(str(param.with_suffix(".bin"))):
            raise RuntimeError("ncnn cannot load the converted model")
        self.arrays = [self.without_batch(v) for v in self.inputs.values()]   # a Mat does not keep its array alive
        self.mats = list(zip(self.net.input_names(), [ncnn.Mat(v).clone() for v in self.arrays]))
        self.outputs = lambda: [np.array(o) for o in self.run()]

    @staticmethod
    def without_batch(value):
        value = value[0] if value.ndim > 1 and value.shape[0] == 1 else value
        return np.ascontiguousarray(value.astype(np.int32) if value.dtype == np.int64 else value)

    def run(self):
        extractor = self.net.create_extractor()
        for name, mat in self.mats:
            extractor.input(name, mat)
        results = []
        for name in self.net.output_names():
            status, out = extractor.extract(name)
            if status:
                raise RuntimeError(f"ncnn: output {name}: error {status}")
            results.append(out)
        return results


class Mnn(Contender):
    package = "mnn"

    def prepare(self):
        target = self.folder / "m.mnn"
        if target.exists():
            return
        # The converter itself: the package's command would install a logging client and report usage.
        convert = "import sys, MNN, _tools; _tools.mnnconvert(sys.argv)"
        execute([sys.executable, "-c", convert, "-f", "ONNX", "--modelFile", self.model, "--MNNModel", target, "--bizCode", "bench"],
                self.folder, "mnn.log")
        if not target.exists():
            raise RuntimeError("the converter wrote nothing")

    def load(self):
        import MNN
        self.mnn, self.net = MNN, MNN.Interpreter(str(self.folder / "m.mnn"))
        self.session = self.net.createSession({"backend": "CPU", "numThread": self.threads, "precision": "high"})
        self.feeds = []
        for name, value in self.inputs.items():
            tensor, real = self.net.getSessionInput(self.session, name), value.dtype == np.float32
            value = np.ascontiguousarray(value if real else value.astype(np.int32))
            self.net.resizeTensor(tensor, value.shape)
            kind = MNN.Halide_Type_Float if real else MNN.Halide_Type_Int
            self.feeds.append((tensor, MNN.Tensor(value.shape, kind, value, MNN.Tensor_DimensionType_Caffe), value))
        self.net.resizeSession(self.session)

    def run(self):
        for tensor, source, _ in self.feeds:
            tensor.copyFrom(source)
        self.net.runSession(self.session)

    def outputs(self):
        self.run()
        results = []
        for name in self.output_names():
            tensor = self.net.getSessionOutput(self.session, name)
            shape = tensor.getShape()
            copy = self.mnn.Tensor(shape, self.mnn.Halide_Type_Float, np.zeros(shape, np.float32), self.mnn.Tensor_DimensionType_Caffe)
            tensor.copyToHostTensor(copy)
            results.append(np.array(copy.getNumpyData()).reshape(shape))
        return results


class Tilewright(Contender):
    def load(self):
        self.exe, self.library = self.args.tilewright, self.folder / "m.so"
        execute([self.exe, "compile", self.model, "-o", self.library, *self.args.compile_flags.split()], self.folder, "tilewright.log")

    def version(self):
        return subprocess.run([self.exe, "--version"], capture_output=True, text=True).stdout.strip().splitlines()[0]

    def outputs(self):
        folder = self.folder / "tilewright-out"
        shutil.rmtree(folder, ignore_errors=True)
        execute([self.exe, "run", self.library, "--input", self.folder / "inputs.npz", "--threads", self.threads, "--output-dir", folder],
                self.folder, "tilewright-run.log")
        return [np.load(folder / f"{name.replace('/', '_')}.npy") for name in self.output_names()]

    def time(self, warmup, seconds):
        command = [self.exe, "bench", self.library, "--input", self.folder / "inputs.npz", "--threads", self.threads,
                   "--seconds", warmup + seconds, "--json"]
        done = subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True)
        times, spent = json.loads(done.stdout)["ms"], 0.0
        warm = 0
        while warm < len(times) - 3 and spent < warmup * 1e3:
            spent, warm = spent + times[warm], warm + 1
        return times[warm:]


CONTENDERS = {"reference": Reference, "tilewright": Tilewright, "onnxruntime": Onnxruntime, "openvino": Openvino, "openvino-bf16": OpenvinoBf16, "ncnn": Ncnn,
              "mnn": Mnn, "inductor": Inductor}


def serve(contender, say):
    contender.load()
    truth = contender.truth()
    error, tolerance = truth.error(contender.outputs()), truth.tolerance(contender.args.tolerance, contender.args.steps)
    if not error <= tolerance:
        raise RuntimeError(f"wrong output: off by {truth.show(error)}, of which {truth.show(tolerance)} pass")
    say({"ok": True, "error": error, "version": contender.version()})
    for line in sys.stdin:
        request = json.loads(line)
        say({"ms": statistics.median(contender.time(request["warmup"], request["seconds"]))})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--tilewright", type=pathlib.Path)
    parser.add_argument("--compile-flags", default="")
    parser.add_argument("--tolerance", type=float, default=rival_truth.FLOAT_TOLERANCE)
    parser.add_argument("--steps", type=float, default=rival_truth.LEAST_STEPS)
    parser.add_argument("--torch-models", type=pathlib.Path)
    parser.add_argument("--prepare", action="store_true")
    args = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)   # libraries print on standard output

    def say(message):
        answers.write(json.dumps(message) + "\n")

    try:
        contender = CONTENDERS[args.contender](args)
        if args.prepare:
            contender.prepare()
            say({"ok": True})
        else:
            serve(contender, say)
    except BaseException as e:
        traceback.print_exc()
        say({"ok": False, "reason": f"{type(e).__name__}: {e}".replace("\n", " ")[:300]})
    answers.flush()
    os._exit(0)   # some libraries hang in their exit handlers


if __name__ == "__main__":
    main()
