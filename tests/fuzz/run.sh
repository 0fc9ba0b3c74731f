#!/bin/sh
# run.sh FUZZER SEEDS... : a short run from a copy of the seeds, the same one every time; FUZZ_SEED and FUZZ_RUNS change it.
set -e
fuzzer=$1
shift
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
cp "$@" "$corpus"
"$fuzzer" -seed="${FUZZ_SEED:-1}" -runs="${FUZZ_RUNS:-10000}" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 "$corpus"
