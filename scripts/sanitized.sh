#!/usr/bin/env bash
# Builds targets with sanitizers, and runs the tests that a pattern names there.
#   scripts/sanitized.sh PATTERN TARGET...
set -euo pipefail
cd "$(dirname "$0")/.."
pattern=$1
shift
cmake --preset asan -DTW_UNITY=ON >/dev/null
cmake --build build/asan -j "$(nproc)" --target "$@"
ctest --test-dir build/asan --output-on-failure -j "$(nproc)" -R "$pattern"
