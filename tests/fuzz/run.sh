#!/bin/sh
# run.sh FUZZER RUNS SEEDS... : a short run from a copy of the seeds, the same one every time.
# FUZZ_SEED and FUZZ_RUNS change it; FUZZ_SECONDS=3600 makes it as long as that; FUZZ_CORPUS=FOLDER
# keeps what is found on the way, to go on from. What fails stays in the folder that it ran in.
set -e
fuzzer=$1 runs=${FUZZ_RUNS:-$2}
shift 2
if [ -n "$FUZZ_CORPUS" ]; then
  corpus=$FUZZ_CORPUS/$(basename "$fuzzer")
  mkdir -p "$corpus"
else
  corpus=$(mktemp -d)
  trap 'rm -rf "$corpus"' EXIT
fi
[ $# = 0 ] || cp "$@" "$corpus"
if [ -n "$FUZZ_SECONDS" ]; then length=-max_total_time=$FUZZ_SECONDS; else length=-runs=$runs; fi
"$fuzzer" -seed="${FUZZ_SEED:-1}" "$length" -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 "$corpus"
