"""A run of a library, or of a model by its operators, on arrays."""
import subprocess

import numpy as np


def run_library(tilewright, artifact, feeds, outputs, work):
    """The finished command, and the outputs by name; None where it failed. Files of the run are in the folder `work`."""
    folder = work / "out"
    folder.mkdir(exist_ok=True)
    arguments = []
    for name, value in feeds.items():
        np.save(work / f"{name}.npy", value)
        arguments += ["--input", f"{name}={work / f'{name}.npy'}"]
    done = subprocess.run([tilewright, "run", artifact, *arguments, "--threads", "1", "--output-dir", folder], capture_output=True, text=True)
    return done, {name: np.load(folder / f"{name}.npy") for name in outputs} if done.returncode == 0 else None
