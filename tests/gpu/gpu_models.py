"""Models and targets of the tests beside this file: the small networks of bench/networks in f32 and f16, and descriptions of GPUs."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORMS = ("f32", "f16")


def small_networks(folder, only=None):
    """(network, form) -> its file."""
    command = [sys.executable, ROOT / "bench/networks", folder, "--small", "--half", *(only or [])]
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    plain = sorted(path for path in folder.glob("small_*.onnx") if not path.stem.endswith("_f16"))
    return {(path.stem, form): path if form == "f32" else path.with_name(f"{path.stem}_f16.onnx") for path in plain for form in FORMS}


def emulated_target(tilewright, folder):
    """nvidia-sm80 with the code that the tests' fake libcuda runs, which this process's children find from now on; None without it."""
    fake = tilewright.parent / "tests/fake"
    if not (fake / "libcuda.so.1").exists() or not shutil.which("ld"):
        return None
    os.environ.update(LD_LIBRARY_PATH=str(fake), TW_FAKE_CUDA_LINKER="ld", TW_FAKE_CUDA_STRICT="1")
    path = folder / "emulated.yaml"
    path.write_text((ROOT / "configs/nvidia-sm80.yaml").read_text().replace("features: [", "features: [emulated, "))
    return path


def call(tilewright, *arguments):
    """(exit status, the JSON document, what it said besides)."""
    done = subprocess.run([str(a) for a in (tilewright, *arguments, "--json")], capture_output=True, text=True)
    try:
        return done.returncode, json.loads(done.stdout), done.stderr
    except ValueError:
        return done.returncode, {}, done.stdout + done.stderr


def problem_of(document, said):
    errors = document.get("error") if isinstance(document, dict) else None
    return "; ".join(e["message"] for e in errors) if errors else said.strip()[-300:]
