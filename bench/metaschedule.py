#!/usr/bin/env python3
"""Tilewright beside TVM with its tuner MetaSchedule: each network is compiled by both, untuned, after --first and after --minutes minutes of tuning, and the
six libraries are timed in turns, every time in a process of its own on as many cores as --threads says, for one.

    python3 -m venv VENV
    VENV/bin/pip install 'apache-tvm==0.27.*' apache-tvm-ffi==0.1.14.post1 onnx psutil cloudpickle tornado pandas scipy xgboost
    metaschedule.py --tilewright BUILD/tilewright --python VENV/bin/python --folder OUT [--minutes 10] [--first 1] MODEL.onnx ...

The environment has TVM alone: each of its builders loads PyTorch where that is installed, and is ended for taking so long. With apache-tvm-ffi 0.1.15
apache-tvm 0.27 ends in a fault as its tuning begins. Builders and the runner get two minutes a candidate, not half a one: each loads TVM anew, which takes seconds,
and on a busy machine all were ended before they had built anything.

The minutes count from a process's start and are for both searches alike, and each tool searches once for either. MetaSchedule counts measurements and knows no
time: after the minutes its runner measures nothing more, and what was measured is written down. Both build candidates on all cores. What a compile takes comes on
top.

OUT keeps everything, and called again it goes on where it was; --retry does again what failed. It takes 2 * (MINUTES + FIRST) and some five minutes a
network, and writes OUT/metaschedule.md and OUT/metaschedule.json after each. A ratio is that of the least times, in brackets the median over the rounds of the ratio of
a round's medians.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import time

WORKER = pathlib.Path(__file__).resolve().parent / "metaschedule_worker.py"
TOLERANCE = 1e-2   # of an output's range
SHARE = 0.9        # of a core that a process has to have while it is timed, else it is timed again on the next core
TRIES = 4
GRACE = 120        # seconds that MetaSchedule may take to write down what it measured


class Failed(Exception):
    pass


def reason(code, text):
    """How a process ended, with the last line that names an error, else the last line; a signal's trace has no such line."""
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"exit code {code}: " + next((line for line in reversed(lines) if "Error" in line or "error:" in line), lines[-1] if lines else "no word")[:200]


def run(command, timeout=1800):
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failed(f"not done after {timeout} s") from None
    if done.returncode:
        raise Failed(reason(done.returncode, done.stderr or done.stdout))
    return done.stdout


def children_seconds():
    """Processor time of all processes that were waited for."""
    told = resource.getrusage(resource.RUSAGE_CHILDREN)
    return told.ru_utime + told.ru_stime


def processor_seconds(group):
    """Of all processes of the group that run, and of those that they waited for."""
    ticks = 0
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):   # it has ended
            continue
        if int(fields[2]) == group:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def measured_in(records):
    """How many candidates that ran; a failed one has a time of 1e10 seconds."""
    path = records / "database_tuning_record.json"
    lines = path.read_text().splitlines() if path.exists() else []
    return sum(min(json.loads(line)[1][1]) < 1e9 for line in lines)


def label(minutes):
    return f"{minutes:g} min"


class Network:
    """One model's folder: libraries, logs, and state.json with what each step came to."""

    def __init__(self, args, model):
        self.args, self.model, self.folder = args, model, args.folder / model.stem
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path, self.points = self.folder / "state.json", [label(args.first), label(args.minutes)]
        self.state = json.loads(self.path.read_text()) if self.path.exists() else {"points": self.points, "threads": args.threads, "steps": {}, "rounds": []}
        if (self.state["points"], self.state["threads"]) != (self.points, args.threads):
            raise SystemExit(f"{self.folder} is of {' and '.join(self.state['points'])} on {self.state['threads']} thread(s): take another --folder")
        if args.retry:
            self.state["steps"] = {name: step for name, step in self.state["steps"].items() if "failed" not in step}
        self.variants = [f"{side} {point}" for side in ("tilewright", "tvm") for point in ("untuned", *self.points)]

    def save(self):
        self.path.write_text(json.dumps(self.state, indent=1))

    def step(self, name, work, *needed):
        """Does it once; after a step that failed it has failed too."""
        steps = self.state["steps"]
        if name in steps:
            return
        lacking = next((n for n in needed if "failed" in steps[n]), None)
        try:
            steps[name] = {"failed": f"after {lacking}"} if lacking else work() or {}
        except Failed as e:
            steps[name] = {"failed": str(e)}
        self.save()
        print(f"{self.model.stem}: {name}: {steps[name].get('failed', 'done')}", flush=True)

    def library(self, variant):
        return self.folder / (variant.replace(" ", "-") + (".so" if variant.startswith("tilewright") else ""))

    def compile(self, variant, *flags):
        run([self.args.tilewright, "compile", self.model, "-t", self.args.target, "-o", self.library(variant), *flags])

    def make_arrays(self):
        run([self.args.tilewright, "run", self.library("tilewright untuned"), "--random", "1", "--save-inputs", self.folder / "inputs",
             "-d", self.folder / "outputs"])

    def tune_ours(self, minutes):
        log = self.folder / f"tilewright-{label(minutes).replace(' ', '-')}.db"
        log.unlink(missing_ok=True)   # of a search that was interrupted
        start, before = time.monotonic(), children_seconds()
        threads = ("--threads", self.args.threads)
        told = run([self.args.tilewright, "tune", self.model, "-t", self.args.target, *threads, "--log", log, "--time", f"{minutes * 60:.0f}s", "--json"],
                   timeout=minutes * 60 + 600)
        seconds, processor = time.monotonic() - start, children_seconds() - before
        self.compile(f"tilewright {label(minutes)}", "--log", log, *threads)
        return {"measured": json.loads(told.splitlines()[-1])["trials"], "seconds": seconds, "processor_seconds": processor}

    def worker(self, *words):
        return [str(w) for w in (self.args.python, WORKER, *words, "--threads", self.args.threads)]

    def tune_tvm(self, minutes):
        variant = f"tvm {label(minutes)}"
        records, log = self.folder / variant.replace(" ", "-records-", 1).replace(" ", "-"), self.folder / f"tvm-tune-{minutes:g}.log"
        shutil.rmtree(records, ignore_errors=True)   # of a search that was interrupted
        start = time.monotonic()
        with open(log, "w") as out:
            command = self.worker("tune", self.model, "--records", records, "--seconds", minutes * 60)
            process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
            try:
                code = self.wait(process, start + minutes * 60 + GRACE)
                result = {"seconds": time.monotonic() - start, "processor_seconds": processor_seconds(process.pid)}
            finally:
                os.killpg(process.pid, signal.SIGKILL)   # its pools too; it is waited for only below, so the number is still its own
                process.wait()
        if code:
            raise Failed("the tuning: " + reason(code, log.read_text(errors="replace")))
        self.build_tvm(variant, records)
        return {"measured": measured_in(records), **result}

    @staticmethod
    def wait(process, end):
        """The exit code, negative a signal; None where it had to be ended."""
        while time.monotonic() < end:
            ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended:
                return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
            time.sleep(0.05)
        return None

    def build_tvm(self, variant, records):
        run(self.worker("build", self.model, "--records", records, "--out", self.library(variant)))

    def make(self):
        self.step("tilewright untuned", lambda: self.compile("tilewright untuned"))
        self.step("inputs", self.make_arrays, "tilewright untuned")
        self.step("tvm untuned", lambda: self.build_tvm("tvm untuned", self.folder / "no-records"))
        for point, minutes in zip(self.points, (self.args.first, self.args.minutes)):
            self.step(f"tilewright {point}", lambda: self.tune_ours(minutes))
            self.step(f"tvm {point}", lambda: self.tune_tvm(minutes), "tvm untuned")

    def times_of(self, variant, pinned):
        if variant.startswith("tilewright"):
            told = run([*pinned, self.args.tilewright, "bench", self.library(variant), "--random", "1", "--threads", self.args.threads,
                        "--seconds", self.args.seconds, "--json"])
            return json.loads(told)["ms"]
        told = run([*pinned, *self.worker("time", "--out", self.library(variant), "--inputs", self.folder / "inputs", "--expected", self.folder / "outputs",
                                          "--seconds", self.args.seconds)])
        answer = json.loads(told.splitlines()[-1])
        if not answer["error"] <= TOLERANCE:
            raise Failed(f"wrong output: off by {answer['error']:.1e} of its range")
        return answer["ms"]

    def time_of(self, variant):
        """Of the try that had the largest share of its core."""
        cores, best = sorted(os.sched_getaffinity(0), reverse=True), {"share": -1}
        for _ in range(TRIES):
            start, before = time.monotonic(), children_seconds()
            times = self.times_of(variant, ["taskset", "-c", ",".join(map(str, cores[:self.args.threads]))])
            share = (children_seconds() - before) / (time.monotonic() - start)
            best = max(best, {"least": min(times), "median": statistics.median(times), "share": share}, key=lambda t: t["share"])
            if share >= SHARE:
                break
            cores = cores[1:] + cores[:1]
        return best

    def measure(self):
        rounds, steps = self.state["rounds"], self.state["steps"]
        while len(rounds) < self.args.rounds:
            turn = {}
            for variant in self.variants[::1 if len(rounds) % 2 else -1]:
                if "failed" in steps[variant]:
                    continue
                try:
                    turn[variant] = self.time_of(variant)
                except Failed as e:
                    steps[variant] = {**steps[variant], "failed": str(e)}
            rounds.append(turn)
            self.save()

    def summary(self):
        rounds, steps = self.state["rounds"], self.state["steps"]
        good = [v for v in self.variants if "failed" not in steps[v]]
        times = {v: {"least": min(r[v]["least"] for r in rounds), "median": statistics.median(r[v]["median"] for r in rounds)} for v in good}

        def ratio(a, b):
            if a not in good or b not in good:
                return None
            return {"least": times[a]["least"] / times[b]["least"], "median": statistics.median(r[a]["median"] / r[b]["median"] for r in rounds)}

        ratios = {f"tvm / tilewright, {p}": ratio(f"tvm {p}", f"tilewright {p}") for p in ("untuned", *self.points)}
        ratios |= {f"{side}, untuned / {p}": ratio(f"{side} untuned", f"{side} {p}") for side in ("tilewright", "tvm") for p in self.points}
        shares = [r[v]["share"] for r in rounds for v in good]
        return {"variants": self.variants, "times": times, "ratios": ratios, "steps": steps, "rounds": len(rounds), "share": statistics.median(shares)}


def table(head, rows):
    return ["| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *rows)]


def both(value, digits):
    return f"{value['least']:.{digits}f} ({value['median']:.{digits}f})" if value else "-"


def effort(step):
    return f"{step['measured']} in {step['processor_seconds'] / 60:.1f}" if "measured" in step else "-"


def report(results):
    first = next(iter(results.values()))
    variants = first["variants"]
    tuned = [v for v in variants if "untuned" not in v]
    rows = {name: [both(r["times"].get(v), 3) for v in variants] for name, r in results.items()}
    lines = ["Milliseconds of a run, least (median):", "", *table(["network", *variants], [[name, *row] for name, row in rows.items()])]
    rows = {name: [both(ratio, 2) for ratio in r["ratios"].values()] for name, r in results.items()}
    lines += ["", "Ratios, of the least times (median):", "", *table(["network", *first["ratios"]], [[name, *row] for name, row in rows.items()])]
    rows = {name: [*(effort(r["steps"][v]) for v in tuned), f"{r['share']:.0%}"] for name, r in results.items()}
    lines += ["", "Candidates measured, in minutes of processor time, and what the timed processes had of a core:", "",
              *table(["network", *tuned, "of a core"], [[name, *row] for name, row in rows.items()])]
    failures = [f"* {name}: {step}: {told['failed']}" for name, r in results.items() for step, told in r["steps"].items() if "failed" in told]
    return "\n".join(lines + ["", *failures]).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", type=pathlib.Path, required=True)
    parser.add_argument("--python", type=pathlib.Path, required=True, help="the interpreter that has apache-tvm")
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--target", default="host")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--first", type=float, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=0.5, help="timed of a library in a round")
    parser.add_argument("--retry", action="store_true")
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL.onnx")
    args = parser.parse_args()
    for name in ("tilewright", "python", "folder"):   # not resolve(): a virtual environment's interpreter is a link
        setattr(args, name, pathlib.Path(os.path.abspath(getattr(args, name))))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))   # so that a search ends with this script
    results = {}
    for model in args.models:
        network = Network(args, model.resolve())
        network.make()
        network.measure()
        results[model.stem] = network.summary()
        (args.folder / "metaschedule.json").write_text(json.dumps(results, indent=1))
        (args.folder / "metaschedule.md").write_text(report(results))
    print(report(results), end="")


if __name__ == "__main__":
    main()
