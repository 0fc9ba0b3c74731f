#!/usr/bin/env python3
"""Processor time of a run in f32 and in bf16, on one thread: that of many runs less that of few, least of several rounds, the two in turn. It counts what
the process used, so that work beside it disturbs less than it does a clock.

    precision.py --tilewright BUILD/tilewright MODEL.onnx... [--rounds N] [--seconds S]
"""
import argparse
import pathlib
import resource
import subprocess
import tempfile


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tilewright", required=True)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1, help="that the many runs take, about")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    args = parser.parse_args()

    def used(library, runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([args.tilewright, "bench", library, "--runs", str(runs), "--warmup", "1", "--threads", "1", "--no-check"], check=True,
                       capture_output=True)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    with tempfile.TemporaryDirectory() as folder:
        for model in args.models:
            least = {}
            for precision in ("fp32", "bf16"):
                library = pathlib.Path(folder) / f"{precision}.so"
                subprocess.run([args.tilewright, "compile", model, "--precision", precision, "-o", library], check=True, capture_output=True)
                runs = max(3, int(args.seconds / max(1e-4, used(library, 3) - used(library, 2))))
                least[library] = (float("inf"), runs)
            for _ in range(args.rounds):
                for library, (best, runs) in least.items():
                    least[library] = (min(best, (used(library, runs + 1) - used(library, 1)) / runs), runs)
            wide, narrow = (best * 1e3 for best, _ in least.values())
            print(f"{model.stem}: f32 {wide:.2f} ms, bf16 {narrow:.2f} ms, {wide / narrow:.2f} times as fast", flush=True)


if __name__ == "__main__":
    main()
