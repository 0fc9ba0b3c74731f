#!/usr/bin/env bash
# Sets up, builds, and runs the tests that the last plan chose (scripts/suites.py plan), which takes under forty minutes on
# two cores. --quick: short ones that need little. --full: all of them, which takes hours.
set -euo pipefail
cd "$(dirname "$0")/.."
which=()
for argument in "$@"; do
  case $argument in
    --quick | --full) which+=("$argument") ;;
    *) echo "usage: scripts/test.sh [--quick | --full]" >&2; exit 2 ;;
  esac
done
stage() { printf '\n== %s (after %d min %02d s)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

stage set-up
scripts/setup.sh core test
python=.venv/bin/python
$python scripts/check_layout.py
scripts/format.sh --check
$python tests/docs/check_docs.py
cmake --preset release >/dev/null
# shellcheck disable=SC2046
scripts/setup.sh core $($python scripts/suites.py needs "${which[@]}")
cmake --preset release >/dev/null   # finds what is new
stage build
# shellcheck disable=SC2046
cmake --build build/release -j "$(nproc)" --target product $($python scripts/suites.py targets "${which[@]}")
stage tests
$python scripts/suites.py run "${which[@]}"
stage done
