"""What the figures are of."""
import datetime
import platform
import shutil
import subprocess


def said(*command):
    if not shutil.which(command[0]):
        return f"no {command[0]}"
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def version_of(package):
    try:
        return __import__(package).__version__
    except ImportError:
        return "not installed"


def run(session, _end):
    gpu = "the tests' fake driver" if session.dry else said("nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm", "--format=csv,noheader")
    return {"date": f"{datetime.date.today()}", "gpu": gpu, "target": str(session.target), "processor": platform.processor() or platform.machine(),
            "commit": said("git", "rev-parse", "HEAD"), "tilewright": session.call("--version"),
            "ptxas": said("ptxas", "--version").splitlines()[-1:], "python": platform.python_version(),
            "torch": version_of("torch")}
