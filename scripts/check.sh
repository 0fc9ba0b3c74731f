#!/usr/bin/env bash
# What a pull request has to pass first, in under ten minutes once ccache is warm: layout of code and folders, likely
# mistakes in what changed, build, unit tests, docs. scripts/test.sh runs everything.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 0 ] || { echo "usage: scripts/check.sh" >&2; exit 2; }
stage() { printf '\n== %s (after %d min %02d s)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }
stage set-up
scripts/setup.sh core test sanitizers
stage layout
.venv/bin/python scripts/check_layout.py
scripts/format.sh --check
stage likely mistakes
scripts/tidy.sh
stage build
cmake --preset release >/dev/null
cmake --build build/release -j "$(nproc)"
stage tests
ctest --test-dir build/release -L unit --output-on-failure -j "$(nproc)"
stage docs
.venv/bin/python tests/docs/check_docs.py --tilewright build/release/tilewright
stage done
