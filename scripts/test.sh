#!/usr/bin/env bash
# Set up, build, run every test. --quick: no sanitizer build.
set -euo pipefail
cd "$(dirname "$0")/.."
quick=0
for argument in "$@"; do
  case $argument in
    --quick) quick=1 ;;
    *) echo "usage: scripts/test.sh [--quick]" >&2; exit 2 ;;
  esac
done
jobs=$(nproc)

scripts/setup.sh core test sanitizers vdla opencl cuda
python=.venv/bin/python
$python scripts/check_layout.py

cmake --preset release >/dev/null
cmake --build build/release -j "$jobs"
ctest --test-dir build/release --output-on-failure -j "$jobs"
scripts/demo.sh
$python tests/docs/check_docs.py --tilewright build/release/tilewright
$python tests/models/run.py --full --tilewright build/release/tilewright
$python tests/models/algorithms.py --tilewright build/release/tilewright

if [ $quick = 0 ]; then
  cmake --preset asan >/dev/null
  cmake --build build/asan -j "$jobs"
  ctest --test-dir build/asan --output-on-failure -j "$jobs"
fi
