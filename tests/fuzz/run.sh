#!/bin/sh
# run.sh FUZZER SEEDS... : a short run from a copy of the seeds; FUZZ_SECONDS=600 for a long one.
set -e
fuzzer=$1
shift
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
cp "$@" "$corpus"
"$fuzzer" -max_total_time="${FUZZ_SECONDS:-20}" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 "$corpus"
