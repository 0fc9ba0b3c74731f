#!/usr/bin/env bash
# Formats the C and C++ sources as .clang-format says. --check: changes nothing; exit status 1 where a file differs.
set -euo pipefail
cd "$(dirname "$0")/.."
flags=(-i)
case ${1:-} in
  "") ;;
  --check) flags=(--dry-run --Werror) ;;
  *) echo "usage: scripts/format.sh [--check]" >&2; exit 2 ;;
esac
git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.h' '*.c' | xargs -0 -P "$(nproc)" -n 64 .venv/bin/clang-format "${flags[@]}"
