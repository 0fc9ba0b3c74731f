"""compute-sanitizer over small networks: accesses beside buffers, and races in the memory that a block shares."""
import shutil
import subprocess
import time

from gpu.session import python

TOOLS = ("memcheck", "racecheck")


def run(session, end):
    names = ["small_dqn"] if session.dry else ["small_resnet", "small_bert", "small_lstm", "small_head", "small_mobilenet"]
    folder = session.out / "small"
    python("bench/networks", folder, "--small", "--half", *names)
    checker = shutil.which("compute-sanitizer")
    found, missing = {}, []
    for model in sorted(folder.glob("*.onnx")):
        library, _ = session.compile(model, f"sanitized_{model.stem}")
        for tool in TOOLS:
            if time.monotonic() > end:
                missing.append(f"{model.stem} {tool}")
                continue
            command = [session.tilewright, "run", library, "--random", "1"]
            if checker:
                command = [checker, "--tool", tool, "--error-exitcode", "9", *command]
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
            found[f"{model.stem} {tool}"] = "clean" if done.returncode == 0 else (done.stdout + done.stderr)[-2000:]
    wrong = [name for name, said in found.items() if said != "clean"]
    result = {"checker": checker or "no compute-sanitizer: the libraries ran alone", "runs": found, "no time for": missing}
    if wrong or (not checker and not session.dry):
        result["failed"] = f"not clean: {', '.join(wrong)}" if wrong else "no compute-sanitizer on this machine"
    return result
