#!/usr/bin/env python3
"""Two compiled models in turns, one round after the other: least and median time of each, and their ratios.

two_libraries.py TILEWRIGHT OLD.so NEW.so --out ROUNDS.jsonl [--rounds 30] [--threads 1] [--seconds 0.5]
                 [--old-tilewright PATH]      the program that times OLD.so, where that has an older interface
A round is a line of the file; what is there already is not measured again.
"""
import argparse
import json
import pathlib
import statistics
import subprocess


def time_of(args, library):
    program = args.old_tilewright if library == args.old and args.old_tilewright else args.tilewright
    told = subprocess.run([program, "bench", library, "--threads", str(args.threads), "--seconds", str(args.seconds), "--json"],
                          check=True, capture_output=True, text=True)
    return json.loads(told.stdout)["min"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilewright")
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--old-tilewright")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5)
    args = parser.parse_args()
    rounds = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    while len(rounds) < args.rounds:
        pair = [(side, getattr(args, side)) for side in ("old", "new")]
        if len(rounds) % 2:
            pair.reverse()
        rounds.append({side: time_of(args, library) for side, library in pair})
        with args.out.open("a") as file:
            file.write(json.dumps(rounds[-1]) + "\n")
    for side in ("old", "new"):
        times = [r[side] for r in rounds]
        print(f"{side}: least {min(times):.3f} ms, median {statistics.median(times):.3f} ms of {len(times)} rounds")
    print(f"old / new: of the least {min(r['old'] for r in rounds) / min(r['new'] for r in rounds):.3f}, "
          f"median of the rounds {statistics.median(r['old'] / r['new'] for r in rounds):.3f}")


if __name__ == "__main__":
    main()
