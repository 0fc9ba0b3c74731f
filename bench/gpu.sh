#!/usr/bin/env bash
# All that wants a machine with an NVIDIA GPU, in a row and within 25 minutes: probes of the instructions, compute-sanitizer, correctness of all networks,
# PyTorch beside it, matrix products, the slowest kernels, tuning. Each stage leaves a JSON file in OUT; a stage whose file is there is not run again, so an
# interrupted run goes on. The last stage makes a table for docs/journal of them.
#
#   bench/gpu.sh OUT [--tilewright EXE] [--target NAME] [--only STAGE,...] [--minutes N]
#   bench/gpu.sh OUT --dry-run         the same on the tests' fake driver, with small networks and without a GPU
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x $python ] || python=python3
exec $python bench/gpu "$@"
