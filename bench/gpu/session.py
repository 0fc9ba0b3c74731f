"""What the stages share: the compiler, the target, the models, and a folder for what they find."""
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared/models"
KNOWN = ["resnet18", "resnet50", "mobilenet_v2", "dqn", "dcgan", "lstm_lm", "bert_base_s128"]
SMALL = ["small_dqn", "small_bert"]   # of a dry run


class Session:
    def __init__(self, args):
        self.args, self.dry = args, args.dry_run
        self.out = args.out.resolve()
        self.models = self.out / "models"
        self.models.mkdir(parents=True, exist_ok=True)
        self.tilewright = args.tilewright.resolve()
        if not self.tilewright.exists():
            sys.exit(f"bench/gpu.sh: no compiler {self.tilewright}: build it, or say --tilewright")
        self.target = args.target or (self.fake() if self.dry else chip_here())

    def fake(self):
        """The target of the tests' fake libcuda, which this process and its children find from now on."""
        folder = self.tilewright.parent / "tests/fake"
        if not (folder / "libcuda.so.1").exists():
            sys.exit(f"bench/gpu.sh --dry-run: no {folder}/libcuda.so.1: build the target fake_libcuda")
        linker = shutil.which("ld") or shutil.which("ld.lld-22") or sys.exit("bench/gpu.sh --dry-run: no linker ld")
        ctypes.CDLL(str(folder / "libcuda.so.1"), ctypes.RTLD_GLOBAL)   # this process looked at the variable when it began
        os.environ.update(LD_LIBRARY_PATH=str(folder), TW_FAKE_CUDA_LINKER=linker)
        path = self.out / "emulated.yaml"
        path.write_text((ROOT / "configs/nvidia-sm80.yaml").read_text().replace("features: [", "features: [emulated, "))
        return path

    def call(self, *arguments, timeout=600, check=True):
        """The JSON document of a command. It raises what the compiler says unless check is false; then (exit status, document)."""
        done = subprocess.run([str(a) for a in (self.tilewright, *arguments, "--json")], capture_output=True, text=True, timeout=timeout)
        try:
            document = json.loads(done.stdout.splitlines()[-1] if arguments[0] == "tune" else done.stdout)
        except (ValueError, IndexError):
            document = {"error": [{"message": (done.stderr or done.stdout).strip()[-500:]}]}
        if not check:
            return done.returncode, document
        if done.returncode:
            raise RuntimeError(f"tilewright {arguments[0]}: " + "; ".join(e["message"] for e in document.get("error", [{"message": f"ended with {done.returncode}"}])))
        return document

    def compile(self, model, name=None, *flags):
        library = self.out / f"{name or model.stem}.so"
        return library, self.call("compile", model, "-t", self.target, "-o", library, *flags)

    def networks(self):
        """name -> file: the known networks and those of bench/networks, in f32 and f16; in a dry run two small ones."""
        known = SMALL if self.dry else KNOWN
        if self.dry:
            python("bench/networks", self.models, "--small", "--half", *SMALL)
        else:
            python("bench/networks", self.models, "--half")
            if SHARED.is_dir():
                python(SHARED / "make_models.py", self.models, *KNOWN)
            for name in KNOWN:
                if (self.models / f"{name}.onnx").exists() and not (self.models / f"{name}_f16.onnx").exists():
                    halve(self.models / f"{name}.onnx")
        paths = {path.stem: path for path in sorted(self.models.glob("*.onnx"))}
        first = [name + form for name in known for form in ("", "_f16") if name + form in paths]
        return {name: paths[name] for name in [*first, *(n for n in paths if n not in first)]}

    def known(self):
        """Of these the known ones."""
        names = SMALL if self.dry else KNOWN
        return {name: path for name, path in self.networks().items() if name.removesuffix("_f16") in names}


def python(*arguments):
    subprocess.run([sys.executable, *map(str, arguments)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def halve(path):
    sys.path.insert(0, str(ROOT / "bench"))
    from networks import half
    half.halve(path, path.with_name(f"{path.stem}_f16.onnx"))


def chip_here():
    """The description of the GPU of this machine, by nvidia-smi."""
    if not shutil.which("nvidia-smi"):
        sys.exit("bench/gpu.sh: no nvidia-smi, so no NVIDIA GPU: --dry-run runs all stages on the tests' fake driver")
    said = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True).stdout.split()
    major, minor = map(int, said[0].split("."))
    there = [path.stem.removeprefix("nvidia-sm") for path in (ROOT / "configs").glob("nvidia-sm*.yaml")]
    exact = [name for name in there if name.rstrip("a") == f"{major}{minor}"]
    older = sorted((int(name) for name in there if name.isdigit() and int(name) // 10 == major and int(name) % 10 <= minor), reverse=True)
    if not exact and not older:
        sys.exit(f"bench/gpu.sh: no description in configs/ for compute capability {major}.{minor}: say --target")
    return f"nvidia-sm{exact[0] if exact else older[0]}"
