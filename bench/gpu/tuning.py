"""A search on the device over a network's kernels: its records (OUT/tuned.db), and the network before and after."""
import time


def run(session, end):
    name = "small_dqn" if session.dry else "resnet50_f16"
    path = session.networks()[name]
    log = session.out / "tuned.db"
    seconds = max(10, int(end - time.monotonic() - 60))
    stop = ["--trials", "4"] if session.dry else ["--time", f"{seconds}s"]
    summary = session.call("tune", path, "-t", session.target, "--log", log, *stop, timeout=seconds + 600)
    before, _ = session.compile(path, "untuned")
    after, _ = session.compile(path, "tuned", "--log", log)
    best = {}
    for _ in range(1 if session.dry else 5):
        for kind, library in (("before", before), ("after", after)):
            least = session.call("bench", library, "--seconds", "0.02" if session.dry else "0.5")["min"]
            best[kind] = min(best.get(kind, least), least)
    return {"network": name, "log": log.name, "ms": best, "summary": summary}
