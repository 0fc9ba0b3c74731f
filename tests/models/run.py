#!/usr/bin/env python3
"""Compiles whole models and compares their outputs with onnxruntime, on this machine at one and two threads, for AArch64 and ARMv7 under qemu, for OpenCL,
for CUDA on the tests' fake driver, and with the whole model in f64 (tilewright verify); the quantized digits to the bit. Real models and architectures
come from ../shared/models where that folder is present.

    run.py --tilewright BUILD/tilewright [--work DIR] [--only NAME,...] [--full]
"""
import argparse
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/gpu"))
from gpu_models import emulated_target  # noqa: E402

SHARED = ROOT.parent / "shared" / "models"
TOLERANCE = 1e-4   # of an output's range
MISMATCH = 4       # tilewright verify's exit status for outputs that are off
EXAMPLES = {"digits": ROOT / "examples/digits/digits.onnx"}
SKELETONS = ["resnet18", "resnet50", "mobilenet_v2", "squeezenet1_1", "vgg16", "dcgan", "dqn", "lstm_lm", "bert_base_s128",
             "gpt2_s64"]
REAL = ["face_rfb320", "yolox_nano"]
ARM = ["digits", "resnet18", "mobilenet_v2"]
OPENCL = ["digits", "resnet18", "face_rfb320", "lstm_lm"]
CUDA = ["digits", "resnet18", "face_rfb320"]   # on the tests' fake driver
GROWTHS = (1.0, 1.5, 4.0)   # of weights, for the small models; the others are verified at the default
GROWN = ["digits", "squeezenet1_1", "dqn", "face_rfb320"]
QUICK = ["digits", "mobilenet_v2", "squeezenet1_1", "dqn", "resnet18", "face_rfb320", "bert_base_s128"]


def model_files(names, work):
    """name -> path; skeletons are filled in the work folder."""
    files, skipped = {}, []
    for name in names:
        if name in EXAMPLES:
            files[name] = EXAMPLES[name]
        elif not SHARED.is_dir():
            skipped.append(name)
        elif name in REAL:
            files[name] = SHARED / "real" / f"{name}.onnx"
        else:
            path = work / f"{name}.onnx"
            if not path.exists():
                subprocess.run([sys.executable, SHARED / "make_models.py", work, name], check=True, stdout=subprocess.DEVNULL)
            files[name] = path
    return files, skipped


def quiet():
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return options


def random_inputs(session, seed=1):
    generator = np.random.default_rng(seed)
    inputs = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else 1 for d in i.shape]
        if i.type == "tensor(float)":
            inputs[i.name] = generator.standard_normal(shape, dtype=np.float32)
        elif "mask" in i.name:
            inputs[i.name] = np.ones(shape, np.int64)
        elif "type" in i.name:
            inputs[i.name] = generator.integers(0, 2, shape, dtype=np.int64)
        else:
            inputs[i.name] = generator.integers(0, 1000, shape, dtype=np.int64)
    return inputs


def compare(expected, got):
    """Largest error over the outputs, relative to each output's range."""
    worst = 0.0
    for name, want in expected.items():
        have = got[name]
        if have.shape != want.shape:
            return float("inf")
        if want.size == 0:
            continue
        span = float(want.max() - want.min()) or 1.0
        error = float(np.abs(have.astype(np.float64) - want.astype(np.float64)).max()) / span
        worst = max(worst, error if np.isfinite(have).all() else float("inf"))
    return worst


class Runner:
    def __init__(self, tilewright, work):
        self.tilewright, self.work = tilewright, work
        self.qemu = self.build_driver("aarch64", "qemu-aarch64", "/usr/aarch64-linux-gnu")
        self.qemu32 = self.build_driver("armv7", "qemu-arm", "/usr/arm-linux-gnueabihf")

    def build_driver(self, machine, emulator, root):
        """The command that runs an artifact of that machine; None: something is not installed."""
        if not shutil.which(emulator):
            return None
        driver = self.work / f"driver.{machine}"
        clang = shutil.which("clang-22") or "/usr/lib/llvm-22/bin/clang"
        lld = shutil.which("ld.lld-22") or "/usr/lib/llvm-22/bin/ld.lld"
        env = dict(os.environ, CLANG=clang, LLD=lld)
        built = subprocess.run([ROOT / "tests/cross_cc.sh", machine, ROOT / "tests/models/driver.c", driver, "-I", ROOT], env=env)
        return [emulator, "-L", root, driver] if built.returncode == 0 else None

    def compile(self, model, target, output, *flags, cwd=None):
        subprocess.run([self.tilewright, "compile", model, "-t", target, "-o", output, "--name", "model", *flags], check=True, cwd=cwd,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def verify(self, artifact, model):
        """The largest error against the model in f64, relative to an output's range."""
        told = subprocess.run([self.tilewright, "verify", artifact, model, "--json"], capture_output=True, text=True)
        if told.returncode not in (0, MISMATCH):
            raise subprocess.CalledProcessError(told.returncode, told.args)
        return max(output["difference"].get("max_rel", float("inf")) for output in json.loads(told.stdout)["outputs"])

    def native(self, artifact, inputs, outputs, threads, *flags):
        folder = self.work / "out"
        shutil.rmtree(folder, ignore_errors=True)
        arguments = []
        for name, value in inputs.items():
            path = self.work / f"in_{len(arguments)}.npy"
            np.save(path, value)
            arguments += ["--input", f"{name}={path}"]
        subprocess.run([self.tilewright, "run", artifact, *arguments, "--threads", str(threads), "--output-dir", folder, *flags], check=True,
                       stdout=subprocess.DEVNULL)
        return {name: np.load(folder / f"{name.replace('/', '_')}.npy") for name in outputs}

    def arm(self, artifact, inputs, expected):
        return self.drive(self.qemu, artifact, inputs, expected)

    def arm32(self, artifact, inputs, expected):
        return self.drive(self.qemu32, artifact, inputs, expected)

    def drive(self, command, artifact, inputs, expected):
        paths = []
        for i, value in enumerate(inputs.values()):
            paths.append(self.work / f"in_{i}.raw")
            value.tofile(paths[-1])
        prefix = self.work / "driver_out"
        subprocess.run([*command, artifact, "model", "1", prefix, *paths], check=True)
        return {name: np.fromfile(f"{prefix}{i}.raw", dtype=want.dtype).reshape(want.shape)
                for i, (name, want) in enumerate(expected.items())}


def check_artifact(runner, model, artifact):
    """What every artifact promises; returns a list of breaches."""
    breaches = []
    dynamic = subprocess.run(["readelf", "-d", artifact], check=True, capture_output=True, text=True).stdout
    if "NEEDED" in dynamic:
        breaches.append("has a NEEDED entry")
    symbols = subprocess.run(["nm", "-D", artifact], check=True, capture_output=True, text=True).stdout.split("\n")
    defined = [line.split()[-1] for line in symbols if len(line.split()) == 3]
    undefined = {line.split()[-1].split("@")[0] for line in symbols if len(line.split()) == 2}
    if defined != ["tw_model_query", "tw_query"]:
        breaches.append(f"defines {defined}")
    extra = undefined - {"mmap", "munmap", "syscall", "memset", "memcpy", "pthread_create", "pthread_join"}
    if extra:
        breaches.append(f"needs {sorted(extra)}")
    elsewhere = runner.work / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    runner.compile(model, "host", pathlib.Path("model.so"), cwd=elsewhere)
    if (elsewhere / "model.so").read_bytes() != artifact.read_bytes():
        breaches.append("a second compile, in another folder, gives other bytes")
    return breaches


def check_schedules(tilewright, model, work, target):
    """Of the printed kernels and schedules, opt makes the kernels that are compiled."""
    for stage in ("schedules", "scheduled"):
        subprocess.run([tilewright, "compile", model, "-t", target, "--emit", stage, "-o", work / stage], check=True, stderr=subprocess.DEVNULL)
    made = subprocess.run([tilewright, "opt", "-t", target, "--as-run", work / "schedules"], check=True, capture_output=True).stdout
    return made == (work / "scheduled").read_bytes()


def check_musl(runner, artifact, inputs, expected):
    """The same file in a musl program; None without musl-gcc."""
    if not shutil.which("musl-gcc"):
        return None
    driver = runner.work / "driver.musl"
    subprocess.run(["musl-gcc", "-O1", "-I", ROOT, ROOT / "tests/models/driver.c", "-o", driver], check=True)
    return compare(expected, runner.drive([driver], artifact, inputs, expected))


def has_opencl():
    """Whether some OpenCL platform answers."""
    try:
        library = ctypes.CDLL("libOpenCL.so.1")
    except OSError:
        return False
    count = ctypes.c_uint(0)
    library.clGetPlatformIDs(0, None, ctypes.byref(count))
    return count.value > 0


def check_labels(runner, targets):
    """The digits of all test images: yields the target, how many labels are not what the host says, how many are right, of how many."""
    images = np.load(ROOT / "examples/digits/test_images.npy").reshape(-1, 1, 8, 8).astype(np.float32)
    truth = np.load(ROOT / "examples/digits/test_labels.npy")
    like = {"logits": np.zeros((len(images), 10), np.float32)}
    host = None
    for name, (target, run) in targets.items():
        artifact = runner.work / "labels.so"
        runner.compile(ROOT / "examples/digits/digits_batch.onnx", target, artifact, "--dim", f"batch={len(images)}")
        labels = run(artifact, {"image": images}, like)["logits"].argmax(axis=1)
        host = labels if host is None else host
        yield name, int((labels != host).sum()), int((labels == truth).sum()), len(images)


def check_quantized(runner):
    """The quantized digits on all test images, alone and as one batch: how many results are not onnxruntime's to the bit, and how
    many labels are right."""
    model = ROOT / "examples/digits/digits_int8.onnx"
    images = np.load(ROOT / "examples/digits/test_images.npy").reshape(-1, 1, 8, 8).astype(np.float32)
    session = onnxruntime.InferenceSession(str(model), quiet(), providers=["CPUExecutionProvider"])
    expected = np.concatenate([session.run(None, {"image": image[None]})[0] for image in images])
    artifact, batch = runner.work / "quantized.so", runner.work / "quantized_batch.onnx"
    runner.compile(model, "host", artifact)
    some = range(0, len(images), 90)
    unlike = sum(int((runner.native(artifact, {"image": images[i:i + 1]}, ["logits"], 1)["logits"] != expected[i]).any()) for i in some)
    free = onnx.load(model)
    for value in (*free.graph.input, *free.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(free, batch)
    runner.compile(batch, "host", artifact)
    got = runner.native(artifact, {"image": images}, ["logits"], 2)["logits"]
    unlike += int((got != expected).any(axis=1).sum())
    right = int((got.argmax(axis=1) == np.load(ROOT / "examples/digits/test_labels.npy")).sum())
    return unlike, right, len(images)


def check_quantized_arm(runner, count=4):
    """The quantized digits for AArch64 under qemu, by instructions that sum products: yields (instructions, how many results are not onnxruntime's
    to the bit). A batch of them too, whose rows smmla takes in pairs."""
    model = ROOT / "examples/digits/digits_int8.onnx"
    images = np.load(ROOT / "examples/digits/test_images.npy").reshape(-1, 1, 8, 8).astype(np.float32)[:count]
    session = onnxruntime.InferenceSession(str(model), quiet(), providers=["CPUExecutionProvider"])
    expected = np.concatenate([session.run(None, {"image": image[None]})[0] for image in images])
    target, artifact, batch = runner.work / "products.yaml", runner.work / "quantized_arm.so", runner.work / "quantized_batch.onnx"
    fixed = onnx.load(model)
    for value in (*fixed.graph.input, *fixed.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = count
    onnx.save(fixed, batch)
    for features in ("neon", "neon, dotprod", "neon, dotprod, i8mm"):
        target.write_text(f"triple: aarch64-linux-gnu\nfeatures: [{features}]\n")
        runner.compile(model, target, artifact)
        def differs(some, wanted):
            return int((runner.arm(artifact, {"image": some}, {"logits": wanted})["logits"] != wanted).any())
        unlike = sum(differs(images[i:i + 1], expected[i:i + 1]) for i in range(count))
        runner.compile(batch, target, artifact)
        unlike += differs(images, expected)
        yield features, unlike


def check_vdla(runner, count=100):
    """The quantized digits on the VDLA's simulator, races told, and on its core where Verilator has built that: yields (device, results that are
    not onnxruntime's to the bit, cycles of an image by virtual threads); None instead of numbers where there is no core."""
    model = ROOT / "examples/digits/digits_int8.onnx"
    images = np.load(ROOT / "examples/digits/test_images.npy").reshape(-1, 1, 8, 8).astype(np.float32)[:count]
    session = onnxruntime.InferenceSession(str(model), quiet(), providers=["CPUExecutionProvider"])
    expected = [session.run(None, {"image": image[None]})[0] for image in images]
    artifact = runner.work / "vdla.so"
    for device, library in (("iss:?races=1", "libtilewright_vdla_iss.so"), ("rtl:", "libtilewright_vdla_rtl.so")):
        if not (runner.tilewright.parent / library).exists():
            yield device, None, None
            continue
        runner.compile(model, "vdla-16x16", artifact)
        unlike = sum(int((runner.native(artifact, {"image": images[i:i + 1]}, ["logits"], 1, "--device", device)["logits"] != want).any()) for i, want in enumerate(expected))
        cycles = []
        for threads in (1, 2):
            told = subprocess.run([runner.tilewright, "bench", model, "-t", "vdla-16x16", "--virtual-threads", str(threads), "--device", device, "--runs", "1", "--warmup", "0", "--json"],
                                  check=True, capture_output=True, text=True)
            cycles.append(json.loads(told.stdout)["devices"][0]["cycles"])
        yield device, unlike, cycles


def check_no_driver(runner, artifact, inputs, environment, words):
    """Without a driver the library says so in one line and does not crash."""
    paths = []
    for name, value in inputs.items():
        np.save(runner.work / "in.npy", value)
        paths += ["--input", f"{name}={runner.work / 'in.npy'}"]
    told = subprocess.run([runner.tilewright, "run", artifact, *paths], capture_output=True, text=True, env=dict(os.environ, **environment))
    return told.returncode not in (0, -11) and words in told.stderr


def check_pictures(tilewright, work):
    """Detections on real pictures equal onnxruntime's; yields (name, ok)."""
    detect = tilewright.parent / "examples/detect"
    for kind, model, pattern in (("face", "face_rfb320", "faces_*.jpg"), ("yolox", "yolox_nano", "coco_*.jpg")):
        path = SHARED / "real" / f"{model}.onnx"
        artifact = work / f"{model}.so"
        subprocess.run([tilewright, "compile", path, "-o", artifact], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for picture in sorted((SHARED / "real/images").glob(pattern))[:4]:
            found = subprocess.run([detect, kind, artifact, picture, "--dump-input", work / "picture.npy"], check=True, capture_output=True).stdout
            (work / "found.txt").write_bytes(found)
            compared = subprocess.run([sys.executable, ROOT / "examples/detect/reference.py", kind, path, work / "picture.npy", picture,
                                       "--compare", work / "found.txt"], stdout=subprocess.DEVNULL)
            yield f"{picture.name}: {len(found.splitlines())} found", compared.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--only")
    parser.add_argument("--full", action="store_true", help="all models, not the quick set")
    args = parser.parse_args()
    temporary = None if args.work else tempfile.TemporaryDirectory()
    work = args.work or pathlib.Path(temporary.name)
    work.mkdir(parents=True, exist_ok=True)
    names = args.only.split(",") if args.only else [*EXAMPLES, *SKELETONS, *REAL] if args.full else QUICK
    files, skipped = model_files(names, work)
    runner = Runner(args.tilewright.resolve(), work)
    passed = failed = 0
    opencl = has_opencl()
    cuda = emulated_target(runner.tilewright, work)
    os.environ.setdefault("POCL_CACHE_DIR", str(work))   # what PoCL compiles goes with the rest

    def check(name, what, action):
        nonlocal passed, failed
        try:
            error = action()
        except subprocess.CalledProcessError as e:
            error = float("inf")
            print(f"  {e}")
        good = error <= TOLERANCE
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok  ' if good else 'FAIL'} {name:16} {what:18} error {error:.2e} of the range", flush=True)

    def told(name, good, what):
        nonlocal passed, failed
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok  ' if good else 'FAIL'} {name:16} {what}", flush=True)

    for name, path in files.items():
        session = onnxruntime.InferenceSession(str(path), quiet(), providers=["CPUExecutionProvider"])
        inputs = random_inputs(session)
        outputs = [o.name for o in session.get_outputs()]
        expected = dict(zip(outputs, session.run(None, inputs)))
        artifact = work / "model.so"
        try:
            runner.compile(path, "host", artifact)
        except subprocess.CalledProcessError as e:
            failed += 1
            print(f"FAIL {name:16} compile: {e}")
            continue
        for threads in (1, 2):
            check(name, f"host, {threads} thread(s)", lambda: compare(expected, runner.native(artifact, inputs, outputs, threads)))
        for growth in GROWTHS if name in GROWN else (None,):
            verified = artifact
            if growth is not None:
                verified = work / "grown.so"
                runner.compile(path, "host", verified, "--max-weight-growth", str(growth))
            check(name, "f64" + (f", growth {growth}" if growth else ""), lambda: runner.verify(verified, path))
        for target in ("host", "nvidia-sm80"):
            told(name, check_schedules(runner.tilewright, path, work, target), f"{target}: schedules reproduce the kernels")
        if name in EXAMPLES:
            breaches = check_artifact(runner, path, artifact)
            told(name, not breaches, f"artifact {breaches or 'as promised'}")
            if shutil.which("musl-gcc"):
                check(name, "in a musl program", lambda: check_musl(runner, artifact, inputs, expected))
            else:
                skipped.append(f"{name} under musl (no musl-gcc)")
        if name in ARM and runner.qemu:
            runner.compile(path, "aarch64-generic", artifact)
            check(name, "aarch64 under qemu", lambda: compare(expected, runner.arm(artifact, inputs, expected)))
        elif name in ARM:
            skipped.append(f"{name} for aarch64 (no qemu or no cross libc)")
        if name in ARM and runner.qemu32:
            runner.compile(path, "armv7-generic", artifact)
            check(name, "ARMv7 under qemu", lambda: compare(expected, runner.arm32(artifact, inputs, expected)))
        elif name in ARM:
            skipped.append(f"{name} for ARMv7 (no qemu or no cross libc)")
        if name in OPENCL and opencl:
            runner.compile(path, "opencl-generic", artifact)
            check(name, "OpenCL", lambda: compare(expected, runner.native(artifact, inputs, outputs, 1)))
            if name in EXAMPLES:
                told(name, check_no_driver(runner, artifact, inputs, {"OCL_ICD_VENDORS": "/nonexistent"}, "there is no OpenCL platform"), "OpenCL: without a driver it says so")
        elif name in OPENCL:
            skipped.append(f"{name} on OpenCL (no platform)")
        if name in CUDA and cuda:
            runner.compile(path, cuda, artifact)
            check(name, "CUDA, fake driver", lambda: compare(expected, runner.native(artifact, inputs, outputs, 1)))
            if name in EXAMPLES:
                told(name, check_no_driver(runner, artifact, inputs, {"LD_LIBRARY_PATH": ""}, "no NVIDIA driver on this machine"), "CUDA: without a driver it says so")
        elif name in CUDA:
            skipped.append(f"{name} on the fake libcuda (no tests/fake/libcuda.so.1 beside tilewright, or no ld)")
        if name in EXAMPLES:
            def here(artifact, inputs, like):
                return runner.native(artifact, inputs, list(like), 1)

            targets = {"host": ("host", here)}
            targets.update({"aarch64-generic": ("aarch64-generic", runner.arm)} if runner.qemu else {})
            targets.update({"armv7-generic": ("armv7-generic", runner.arm32)} if runner.qemu32 else {})
            targets.update({"opencl-generic": ("opencl-generic", here)} if opencl else {})
            targets.update({"nvidia-sm80": (cuda, here)} if cuda else {})
            for target, other, right, count in check_labels(runner, targets):
                told(name, other == 0, f"{target}: {right} of {count} labels right, {other} unlike the host's")
    if "digits" in names:
        try:
            unlike, right, count = check_quantized(runner)
        except subprocess.CalledProcessError as e:
            unlike, right, count = 1, 0, 0
            print(f"  {e}")
        told("digits_int8", unlike == 0, f"{unlike} results unlike onnxruntime's, {right} of {count} labels right")
        try:
            for features, unlike in check_quantized_arm(runner) if runner.qemu else []:
                told("digits_int8", unlike == 0, f"AArch64 with {features} under qemu: {unlike} results unlike onnxruntime's")
        except subprocess.CalledProcessError as e:
            told("digits_int8", False, f"for AArch64: {e}")
        try:
            for device, unlike, cycles in check_vdla(runner):
                if unlike is None:
                    skipped.append(f"digits_int8 on the VDLA at {device} (scripts/setup.sh vdla)")
                    continue
                told("digits_int8", unlike == 0 and cycles[1] < cycles[0],
                     f"VDLA {device}: {unlike} results unlike onnxruntime's; {cycles[0]} cycles, with two virtual threads {cycles[1]}")
        except subprocess.CalledProcessError as e:
            told("digits_int8", False, f"on the VDLA: {e}")
    if SHARED.is_dir() and not args.only:
        try:
            for what, good in check_pictures(args.tilewright.resolve(), work):
                passed, failed = passed + good, failed + (not good)
                print(f"{'ok  ' if good else 'FAIL'} {what}", flush=True)
        except (subprocess.CalledProcessError, FileNotFoundError) as e:
            failed += 1
            print(f"FAIL pictures: {e}")
    for name in skipped:
        print(f"skip {name}: not on this machine")
    print(f"{passed} passed, {failed} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
