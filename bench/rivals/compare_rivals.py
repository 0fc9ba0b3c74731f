#!/usr/bin/env python3
"""Times Tilewright and its rivals on whole models, interleaved block by block, and writes a table for a page of docs/journal.

    compare_rivals.py --tilewright BUILD/tilewright --python VENV/bin/python [--torch-models FILE.py] [--markdown FILE] MODEL.onnx ...

Every contender lives in a process of its own (rival_worker.py) on the same cores; all but the one being timed are stopped,
so that no idle thread pool spins beside it. Each of --processes rounds starts all of them afresh and times --blocks blocks,
in each every contender once, in random order. A contender that fails or computes something else (rival_truth.py) is reported as n/a.
--quick: one thread, one round of three short blocks, about 20 s a model. --resume: what --json has whole is not measured again, so an interrupted run goes on.
Architectures of many families: python3 bench/networks OUT.
--busy: another process keeps one of the cores busy meanwhile, by which a contender whose slowest thread decides is seen.
Of bf16: --rivals openvino,openvino-bf16 --compile-flags="--precision auto" --tolerance 0.05.
VENV holds onnxruntime, openvino, ncnn, MNN, pnnx and torch ($TW_RIVALS_PYTHON is the default); a missing one is n/a.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import rival_report
import rival_truth

HERE = pathlib.Path(__file__).resolve().parent
RIVALS = ["onnxruntime", "openvino", "ncnn", "mnn", "inductor"]
ASKED = ["openvino-bf16"]   # that only --rivals brings
PREPARED = ["ncnn", "mnn"]   # contenders that convert the model first; inductor may use what ncnn's converter wrote


class Failed(Exception):
    pass


class Worker:
    """A rival_worker process, stopped except while it answers."""

    def __init__(self, name, command, cores, log):
        self.name, self.pending = name, b""
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(["taskset", "-c", cores, *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=errors, start_new_session=True)

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def read(self, timeout):
        """The next JSON line."""
        end, fd = time.monotonic() + timeout, self.process.stdout.fileno()
        while b"\n" not in self.pending:
            left = end - time.monotonic()
            if left <= 0:
                raise Failed(f"no answer in {timeout:.0f} s")
            if select.select([fd], [], [], left)[0]:
                data = os.read(fd, 1 << 16)
                if not data:
                    raise Failed(f"the process ended with {self.process.wait()}")
                self.pending += data
        line, self.pending = self.pending.split(b"\n", 1)
        answer = json.loads(line)
        if answer.get("ok") is False:
            raise Failed(answer["reason"])
        return answer

    def ask(self, message, timeout):
        self.signal(signal.SIGCONT)
        try:
            self.process.stdin.write((json.dumps(message) + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed("the process ended") from None
        answer = self.read(timeout)
        self.signal(signal.SIGSTOP)
        return answer

    def close(self):
        self.signal(signal.SIGKILL)
        self.process.wait()


class Comparison:
    def __init__(self, args, work, data):
        self.args, self.work, self.data = args, work, data
        self.random = random.Random(1)
        self.contenders = [*args.rivals, rival_report.OURS]

    def cores(self, threads):
        usable = sorted(os.sched_getaffinity(0))
        return ",".join(map(str, usable[-1:] if threads == 1 else usable[:threads]))

    def start(self, name, model, threads, *flags):
        folder = self.work / model.stem
        folder.mkdir(parents=True, exist_ok=True)
        python = sys.executable if name == rival_report.OURS and self.args.python is None else self.args.python or sys.executable
        command = [python, HERE / "rival_worker.py", name, model, "--work", folder, "--threads", threads, "--tilewright", self.args.tilewright,
                   "--compile-flags=" + self.args.compile_flags, "--tolerance", self.args.tolerance, "--steps", self.args.steps, *flags]
        if self.args.torch_models:
            command += ["--torch-models", self.args.torch_models]
        return Worker(name, command, self.cores(threads), folder / f"{name}.log")

    def prepare(self, model):
        """Writes inputs and reference outputs, and converts the model; returns contender -> reason for those that cannot."""
        failed = {}
        for name in ["reference", *[n for n in PREPARED if n in self.contenders or (n == "ncnn" and "inductor" in self.contenders)]]:
            worker = self.start(name, model, len(os.sched_getaffinity(0)), "--prepare")
            try:
                worker.read(self.args.load_timeout)
            except Failed as e:
                if name == "reference":
                    raise
                failed[name] = str(e)
            finally:
                worker.close()
        return failed

    def measure_peak(self, threads):
        done = subprocess.run(["taskset", "-c", self.cores(threads), self.work / "machine_peak", str(threads)], capture_output=True, text=True)
        if done.returncode == 0:
            self.data["peaks"].setdefault(str(threads), []).append(json.loads(done.stdout))

    def load_all(self, model, threads, failed):
        workers = {}
        for name in self.contenders:
            if name in failed:
                continue
            worker = self.start(name, model, threads)
            try:
                answer = worker.read(self.args.load_timeout)
                self.data["versions"][name] = answer["version"]
                self.data["results"][model.stem][str(threads)].setdefault("errors", {})[name] = answer["error"]
                worker.signal(signal.SIGSTOP)
                workers[name] = worker
            except Failed as e:
                failed[name] = str(e)
                worker.close()
        return workers

    def run_block(self, workers, failed):
        times, request = {}, {"warmup": self.args.warmup, "seconds": self.args.seconds}
        for name in self.random.sample(sorted(workers), len(workers)):
            try:
                times[name] = workers[name].ask(request, self.args.block_timeout)["ms"]
            except Failed as e:
                failed[name] = str(e)
                workers.pop(name).close()
        return times

    @contextlib.contextmanager
    def busy_core(self):
        """With --busy, a process that never sleeps on the first core."""
        if not self.args.busy:
            yield
            return
        core = str(min(os.sched_getaffinity(0)))
        process = subprocess.Popen(["taskset", "-c", core, sys.executable, "-c", "while True: pass"])
        try:
            yield
        finally:
            process.kill()
            process.wait()

    def compare(self, model, threads):
        entry = self.data["results"].setdefault(model.stem, {}).setdefault(str(threads), {"blocks": [], "failed": {}})
        failed = entry["failed"]
        failed.clear()
        failed.update(self.prepare(model))
        for _ in range(self.args.processes):
            self.measure_peak(threads)
            workers = self.load_all(model, threads, failed)
            try:
                with self.busy_core():
                    for _ in range(self.args.blocks):
                        entry["blocks"].append(self.run_block(workers, failed))
            finally:
                for worker in workers.values():
                    worker.close()
            self.save()
        self.print_line(model, threads, entry)

    def whole(self, model, threads):
        entry = self.data["results"].get(model.stem, {}).get(str(threads))
        return entry is not None and len(entry["blocks"]) >= self.args.processes * self.args.blocks

    def print_line(self, model, threads, entry):
        ms, best = rival_report.medians(entry), rival_report.best_rival(entry)
        ratio = rival_report.ratio(entry, best) if best else None
        shown = "  ".join(f"{name} {rival_report.show_ms(ms.get(name))}" for name in self.contenders)
        print(f"{model.stem:16} {threads} thread(s)  {shown}" + (f"  ratio {ratio[0]:.2f} ({ratio[1]:.2f} .. {ratio[2]:.2f})" if ratio else ""), flush=True)
        for name, reason in entry["failed"].items():
            print(f"    {name}: {reason}", flush=True)

    def save(self):
        if self.args.json:
            self.args.json.write_text(json.dumps(self.data, indent=1))
        if self.args.markdown:
            self.args.markdown.write_text(rival_report.report(self.data, self.args.rivals))


def build_machine_peak(work):
    compiler = next((c for c in ("clang-22", "clang", "gcc", "cc") if shutil.which(c)), "cc")
    subprocess.run([compiler, "-O3", "-march=native", "-ffp-contract=fast", "-pthread", HERE.parent / "machine_peak.c", "-o", work / "machine_peak"], check=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path, metavar="MODEL.onnx", help="none: only write the table of --json again")
    parser.add_argument("--tilewright", type=pathlib.Path)
    parser.add_argument("--compile-flags", default="", help="for tilewright compile, in one string")
    parser.add_argument("--python", type=pathlib.Path, default=os.environ.get("TW_RIVALS_PYTHON"), help="the interpreter that has the rivals")
    parser.add_argument("--torch-models", type=pathlib.Path, help="a Python file with ZOO and torch_model(name), for inductor; else pnnx's module")
    parser.add_argument("--rivals", type=lambda text: text.split(","), default=RIVALS, help=f"default {','.join(RIVALS)}; also {','.join(ASKED)}")
    parser.add_argument("--tolerance", type=float, default=rival_truth.FLOAT_TOLERANCE, help="of outputs of a float model, relative to their range; default %(default)s")
    parser.add_argument("--steps", type=float, default=rival_truth.LEAST_STEPS,
                        help="quantization steps that always pass for an 8-bit model, where its readings are nearer; default %(default)s")
    parser.add_argument("--threads", type=lambda text: [int(t) for t in text.split(",")], default=[1, 2])
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=5, help="in each process")
    parser.add_argument("--seconds", type=float, default=0.4, help="timed in a block; at least three runs")
    parser.add_argument("--warmup", type=float, default=0.15)
    parser.add_argument("--load-timeout", type=float, default=600)
    parser.add_argument("--block-timeout", type=float, default=120)
    parser.add_argument("--work", type=pathlib.Path, help="keeps converted models and logs here")
    parser.add_argument("--json", type=pathlib.Path, help="all block times; with --append, earlier ones are kept")
    parser.add_argument("--append", action="store_true")
    parser.add_argument("--resume", action="store_true", help="leave what --json has whole")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--markdown", type=pathlib.Path)
    args = parser.parse_args()
    if args.quick:
        args.threads, args.processes, args.blocks, args.seconds = [1], 1, 3, 0.25
    for name in ("tilewright", "python", "torch_models", "work"):
        if getattr(args, name):   # not resolve(): a virtual environment's interpreter is a link
            setattr(args, name, pathlib.Path(os.path.abspath(getattr(args, name))))
    if args.models and not args.tilewright:
        parser.error("--tilewright is needed")
    unknown = set(args.rivals) - {*RIVALS, *ASKED}
    if unknown:
        parser.error(f"unknown rivals: {', '.join(sorted(unknown))}")
    return args


def main():
    args = parse_arguments()
    data = {"versions": {}, "peaks": {}, "results": {}}
    if args.json and args.json.exists() and (args.append or args.resume or not args.models):
        data = json.loads(args.json.read_text())
    with tempfile.TemporaryDirectory() as temporary:
        work = args.work or pathlib.Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        comparison = Comparison(args, work, data)
        if args.models:
            build_machine_peak(work)
        for model in args.models:
            for threads in args.threads:
                if args.resume and comparison.whole(model, threads):
                    continue
                try:
                    comparison.compare(pathlib.Path(os.path.abspath(model)), threads)
                except Failed as e:
                    print(f"{model.stem}: no reference: {e}", flush=True)
        comparison.save()
    print(rival_report.report(data, args.rivals))


if __name__ == "__main__":
    main()
