#!/usr/bin/env bash
# Looks for likely mistakes with clang-tidy (.clang-tidy) in the C++ sources of the compiler.
#   scripts/tidy.sh                 files that differ from the branch `main`
#   scripts/tidy.sh --all           all files: ten minutes on two cores
#   scripts/tidy.sh --part K/N      every N-th file, from the K-th on, and those of the last commit
#   scripts/tidy.sh FILE...
set -euo pipefail
cd "$(dirname "$0")/.."
tidy=$(command -v clang-tidy-22 || true)
if [ -z "$tidy" ]; then
  echo "tidy: no clang-tidy-22; scripts/setup.sh sanitizers installs it" >&2
  exit 1
fi
rooms=(support ir frontend kernels passes program autotune backends packager driver cli)
# Sources that no library of the compiler has: the VDLA's simulators, built from generated code.
all() { git ls-files -- "${rooms[@]/%//*.cpp}" | grep -vE '^backends/vdla/(rtl|iss)/'; }
changed() { git diff --name-only --diff-filter=d "$1" -- "${rooms[@]/%//*.cpp}" | grep -vE '^backends/vdla/(rtl|iss)/' || true; }
case ${1:-} in
  "") files=$(changed "$(git merge-base HEAD main)") ;;
  --all) files=$(all) ;;
  --part)
    [[ ${2:-} =~ ^([0-9]+)/([1-9][0-9]*)$ ]] || { echo "usage: scripts/tidy.sh --part K/N" >&2; exit 2; }
    files=$({ all | awk -v k="${BASH_REMATCH[1]}" -v n="${BASH_REMATCH[2]}" 'NR % n == k % n'
              changed HEAD~1 2>/dev/null || true; } | sort -u) ;;
  -*) echo "usage: scripts/tidy.sh [--all | --part K/N | FILE...]" >&2; exit 2 ;;
  *) files=$(printf '%s\n' "$@") ;;
esac
[ -n "$files" ] || { echo "tidy: nothing changed"; exit 0; }
mkdir -p build
flock build/tidy.lock cmake --preset tidy >/dev/null   # parts may run side by side
echo "tidy: $(wc -l <<< "$files") files"
xargs -P "$(nproc)" -n 4 "$tidy" --quiet -p build/tidy <<< "$files"
