#!/usr/bin/env bash
# Sets up, builds and runs every test. --quick: no sanitizer build. --full: all of the long suites.
# Without it, the commit's hash chooses between two halves: whole models by the release build, or the
# unit tests under sanitizers. It also chooses a sixth of the files for clang-tidy; of the models' half
# a quarter of the networks with free sizes, large models or resizes; of the sanitizers' half a twentieth of
# the ONNX suite, and half of the suites that take longest, beside those whose folders the last commits touched.
set -euo pipefail
cd "$(dirname "$0")/.."
quick=0
full=0
for argument in "$@"; do
  case $argument in
    --quick) quick=1 ;;
    --full) full=1 ;;
    *) echo "usage: scripts/test.sh [--quick] [--full]" >&2; exit 2 ;;
  esac
done
jobs=$(nproc)
hash=$((0x$(git rev-parse --short=6 HEAD 2>/dev/null || echo 0)))   # 0: no checkout
# Which half it is: whole models, or sanitizers. --quick has the first, --full both.
half=(models sanitizers)
[ $full = 1 ] || half=("${half[$((hash / 4 % 2))]}")
[ $quick = 0 ] || half=(models)
has() { [[ " ${half[*]} " == *" $1 "* ]]; }
stage() { printf '\n== %s (after %d min %02d s)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

stage set-up
scripts/setup.sh core test sanitizers vdla opencl cuda
python=.venv/bin/python
$python scripts/check_layout.py
scripts/format.sh --check
$python tests/docs/check_docs.py
stage likely mistakes
if [ $full = 1 ]; then scripts/tidy.sh --all; else scripts/tidy.sh --part $((hash % 6))/6; fi

stage release build
cmake --preset release >/dev/null
cmake --build build/release -j "$jobs"
stage release tests
ctest --test-dir build/release --output-on-failure -j "$jobs"
scripts/demo.sh
$python tests/onnx/operators.py build/release/tests/onnx/cases --check
$python tests/operators/operator_table.py --check
share=$((hash % 8))/8   # of the cases of single operators against ONNX's reference and onnxruntime
[ $full = 0 ] || share=0/1
echo "of the operators' random cases: part $share; --full runs all"
$python tests/operators/operator_table.py --share $share --tilewright build/release/tilewright
stage packages and builds
$python tests/packages/packages.py --build build/release
$python tests/packages/ci.py --build build/release
$python tests/builds/builds.py --build build/release
# In a Debian of its own, as root: only in the long run.
if [ $full = 1 ]; then $python tests/packages/packages.py --build build/release --clean-root; $python tests/packages/ci.py --build build/release --clean-root; $python tests/packages/readme.py; else echo "packages and README's commands in a clean root: --full runs them"; fi
if [ $full = 1 ]; then
  scripts/setup.sh aarch64
  cmake --preset aarch64 >/dev/null
  cmake --build build/aarch64 --target product -j "$jobs"
  $python tests/packages/aarch64.py --tilewright build/release/tilewright
else echo "packages for AArch64 hosts: --full builds and tries them"; fi
stage docs
$python tests/docs/check_docs.py --tilewright build/release/tilewright
echo "of the halves 'models' and 'sanitizers': ${half[*]}; --full runs both"
model_test() { $python "tests/models/$1.py" "${@:2}" --tilewright build/release/tilewright; }
$python tests/report/report.py --tilewright build/release/tilewright
$python tests/interfaces/interfaces.py --tilewright build/release/tilewright
if [ $full = 1 ]; then $python tests/interfaces/five_gib.py --tilewright build/release/tilewright; else echo "a model of 5 GiB: --full runs it"; fi
for suite in attacks untrusted depfiles changing_files growth bounds logs; do $python tests/trust/$suite.py --tilewright build/release/tilewright; done
$python tests/accuracy/verified.py --tilewright build/release/tilewright
$python tests/micro/micro.py --tilewright build/release/tilewright
$python tests/real_models/real_models.py --tilewright build/release/tilewright
for suite in boards spills runner android small_floats free_rows strings; do $python tests/boards/$suite.py --tilewright build/release/tilewright; done
part=$((hash % 6))/6   # of ONNX's cases of single operators, on AArch64 and ARMv7
[ $full = 0 ] || part=0/1
echo "of ONNX's cases on other processors: part $part; --full runs all"
$python tests/boards/node_cases.py build/release/tests/onnx/cases --shard $part --tilewright build/release/tilewright
if has models; then
  stage models
  model_test run --full
  for suite in algorithms contrib decoder sizes rivals reduce extents tails declarations hostile_sizes \
      reports functions grid_sample empty rounding meeting_extents out_of_range wrapping as_exported; do
    model_test $suite
  done
  parts=4   # of the networks with free sizes one, unless all are asked for
  [ $full = 0 ] || parts=1
  model_test bindings --shard $((hash % parts))/$parts
  slow=(large resize)
  [ $full = 1 ] || slow=("${slow[$((hash / 2 % 2))]}")
  echo "of large.py and resize.py: ${slow[*]}; --full runs both"
  for suite in "${slow[@]}"; do model_test "$suite"; done
  numbers=(floats integers)   # of reduced precision
  [ $full = 1 ] || numbers=("${numbers[$((hash / 8 % 2))]}")
  echo "of reduced precision in floats and in integers: ${numbers[*]}; --full runs both"
  for kind in "${numbers[@]}"; do
    if [ "$kind" = floats ]; then
      for suite in bf16 tf32 tuned three_types; do $python tests/precision/$suite.py --tilewright build/release/tilewright; done
    else
      for suite in quantize integers zero_points tuned; do $python tests/quantize/$suite.py --tilewright build/release/tilewright; done
      tiny=(--part $((hash % 4))/4)   # of the four networks one for each target
      [ $full = 0 ] || tiny=(--full)
      $python tests/quantize/mlperf_tiny.py "${tiny[@]}" --tilewright build/release/tilewright
      # Chains of quantized operators: a twelfth of them here, and a thirtieth on one other machine.
      machines=(x86-64-v2 x86-64-v3 aarch64-generic armv7-generic rv64gc cortex-m4 cortex-m33 cortex-m55)
      if [ $full = 1 ]; then $python tests/quantize/pairs.py --full --target host "${machines[@]}" --tilewright build/release/tilewright
      else
        machine=${machines[$((hash / 16 % ${#machines[@]}))]}
        echo "of chains of quantized operators: a part, here and on $machine; --full runs all on all"
        $python tests/quantize/pairs.py --share $((hash % 12))/12 --tilewright build/release/tilewright
        $python tests/quantize/pairs.py --share $((hash % 30))/30 --target "$machine" --tilewright build/release/tilewright
      fi
      for suite in integer_products grouped_products; do model_test $suite; done
    fi
  done
  tiles=()
  if [ $full = 1 ]; then tiles=(--full); else echo "whole networks by tiles: --full runs them"; fi
  $python tests/precision/tiles.py "${tiles[@]}" --tilewright build/release/tilewright
  for suite in accuracy locked; do $python tests/precision/$suite.py --tilewright build/release/tilewright; done
  special=()
  [ $full = 0 ] || special=(--full)
  $python tests/precision/special_values.py "${special[@]}" --tilewright build/release/tilewright
  stage networks on GPUs
  for suite in networks probes; do $python tests/gpu/$suite.py --tilewright build/release/tilewright; done
  if [ $full = 1 ]; then $python tests/gpu/budgets.py --full --tilewright build/release/tilewright
  else $python tests/gpu/budgets.py --part $((hash % 3))/3 --tilewright build/release/tilewright; fi
  gpu_dry_run=$(mktemp -d)
  bench/gpu.sh "$gpu_dry_run" --dry-run
  rm -rf "$gpu_dry_run"
  stage random models
  echo "random models: seeds from $((hash * 1000)) on"
  $python tests/random/random_models.py --count 500 --seed $((hash * 1000)) --tilewright build/release/tilewright
  stage tuner
  for suite in kill_tuner dataset worker one_shot signals; do model_test $suite; done
  model_test lock --trials 6
  scripts/setup.sh train
  .venv-train/bin/python tests/autotune/predictors.py
  if [ $full = 1 ]; then .venv-train/bin/python tests/gpu/rival_graphs.py; else echo "rivals of GPUs on the processor: --full runs them"; fi
  stage exports
  share=$((hash % 24))/24   # of the models of other packages, where these are installed already
  [ $full = 0 ] || share=0/1
  if [ $full = 1 ] || [ -d .venv-rivals ]; then
    scripts/setup.sh rivals
    echo "of the exports: part $share; --full runs all"
    .venv-rivals/bin/python tests/exports/exports.py --part "$share" --tilewright build/release/tilewright
  else echo "exports of other packages: --full installs these and runs all"; fi
fi

if has sanitizers; then
  stage sanitizer build
  cmake --preset asan >/dev/null
  cmake --build build/asan -j "$jobs"
  stage sanitizer tests
  leave_out=none
  if [ $full = 0 ]; then
    export TW_ONNX_SHARD=$((hash % 20))/20
    touched=$(git log -8 --name-only --format= 2>/dev/null | sort -u)
    halves=("cli cli_operators backends" "autotune cuda opencl")
    declare -A folders=([cli]='cli|driver' [cli_operators]='frontend/onnx/ops' [backends]='backends/llvm'
      [autotune]='autotune' [cuda]='backends/(cuda|device)' [opencl]='backends/(opencl|device)')
    for suite in ${halves[$((hash % 2))]}; do
      grep -qE "^(${folders[$suite]}|tests/$suite)/" <<< "$touched" || leave_out+="|$suite"
    done
    echo "sanitizers: not $leave_out this time, and of the ONNX suite the part $TW_ONNX_SHARD; --full runs all"
  fi
  ctest --test-dir build/asan --output-on-failure -j "$jobs" -E "^($leave_out)\$"
fi
stage done
