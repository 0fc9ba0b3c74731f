#!/usr/bin/env bash
# All tables of docs/tuning-science.md by one command, from the data sets of the repository. It takes many hours; called again it goes on with what is
# missing, so parts, rows and seeds can be asked for one after the other.
#   bench/predictors.sh FOLDER [MODELS] [--parts NAME,..] [--only CONFIGURATION,..] [--seeds 1,2,3] [--set KEY=VALUE].. [--data DIR] [--features DIR]
#                       [--targets TARGET[:SOURCE[+SOURCE..]],..] [--share-by tasks|programs]
# MODELS is a folder with resnet18, mobilenet_v2, lstm_lm, dqn, dcgan and bert_base_s128 as .onnx, none of which is trained on; only kernels and
# networks need it. DIR are an exported data set and its features in the place of datasets/tileset-1 and of FOLDER/features. The parts:
#   features    of all programs, for training                          -> FOLDER/features
#   train       every model on x86-64-v4 (one thread), or on several platforms; every seed -> FOLDER/study/runs
#   tables      top-1, 5 and 10 on test families, of all that is trained -> FOLDER/study/tables*.md
#   shipped     the rankers that are shipped, from all data sets of times, on direct kernels and on Winograd's -> FOLDER/shipped/*.md
#   transfer    MTL-TLP and the ranker with few labels, to chips that are left out and to another instruction set -> FOLDER/study/transfer-*.md
#   vdla        the ranker on counted cycles, with few and all labels  -> FOLDER/vdla/study/transfer-0.md
#   predictors  the trained networks, compiled for searches            -> FOLDER/predictors
#   kernels     quality against budget and seconds on twelve kernels   -> FOLDER/kernels/budgets.md
#   networks    the same on all kernels of TVM's five networks         -> FOLDER/networks/budgets.md
# kernels and networks measure on this machine: nothing else should run, and its chip should be the platform's.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n '2,20s/^# \{0,1\}//p' "$0" >&2; exit 2; }
folder=$1 models="" parts=features,train,tables,shipped,transfer,vdla,predictors,kernels,networks seeds=1,2,3 only=""
data=datasets/tileset-1 features=$1/features targets=0,6,2:1 share_by=tasks changes=()
shift
case ${1:-} in --* | '') ;; *) models=$1; shift ;; esac
while [ $# -gt 0 ]; do
  case $1 in
    --parts) parts=$2 ;;
    --seeds) seeds=$2 ;;
    --only) only=$2 ;;
    --data) data=$2 ;;
    --features) features=$2 ;;
    --targets) targets=$2 ;;
    --share-by) share_by=$2 ;;
    --set) changes+=(--set "$2") ;;
    *) echo "predictors: unknown flag '$1'" >&2; exit 2 ;;
  esac
  shift 2
done
tilewright=build/release/tilewright
platform=1   # of datasets/tileset-1: x86-64-v4, one thread
several=1,2,0   # it and two more, each the target of a network with three heads in its turn
timed=0,1,2,3,4   # all that were timed
papers=xgboost,xgboost-statements,mlp,lstm,tlp-attention-rank,tlp-attention-mse,tlp-lstm-rank,tlp-lstm-mse,tlp-wide,one-shot,one-shot-sequence
searched=one-shot,tlp-attention-rank
mkdir -p "$folder"

has() { case ",$parts," in *",$1,"*) return 0 ;; *) return 1 ;; esac; }
if has features || has shipped || has vdla || has predictors || has kernels || has networks; then
  [ -x $tilewright ] || { echo "predictors: $tilewright is not built" >&2; exit 1; }
fi
if has kernels || has networks; then
  [ -d "$models" ] || { echo "predictors: kernels and networks need the folder MODELS" >&2; exit 2; }
fi
python() { PYTHONPATH=autotune .venv-train/bin/python "$@"; }
study() { python -m predictor.study --data "$data" --features "$features" --out "$folder/study" --seeds "$seeds" "${changes[@]}" "$@"; }
platforms_of() {   # CONFIGURATION: which platforms it learns from
  case $1 in
    mtl-*) echo $several ;;
    ranker* | primitives) echo $timed ;;
    *) echo $platform ;;
  esac
}

features_of() {   # SET FOLDER KIND...
  local set=$1 out=$2 kind
  shift 2
  for kind in "$@"; do
    [ -d "$out/$kind" ] && continue
    [ -f "$out.db" ] || $tilewright dataset import "$out.db" "datasets/$set"
    $tilewright dataset features "$out.db" "$out/$kind" --as "$kind"
  done
}

transfer() {   # DATA FEATURES TARGET[:SOURCE[+SOURCE..]] NAMES STUDY
  local target=${3%%:*} sources=others
  case $3 in *:*) sources=${3#*:} ;; esac
  python -m predictor.transfer --data "$1" --features "$2" --target "$target" --sources "${sources//+/,}" --configs "$4" --seeds "$seeds" \
    --share-by "$share_by" "${changes[@]}" --runs "$5/transfer" --out "$5/transfer-$target.md"
}

if has features; then
  scripts/setup.sh train
  features_of tileset-1 "$folder/features" steps loops one-shot task
  features_of tileset-vdla "$folder/vdla/features" loops task
fi
if has train; then
  names=${only:-$papers,mtl-tlp,ranker-light,ranker}
  for name in ${names//,/ }; do study --parts train --platforms "$(platforms_of "$name")" --only "$name"; done
fi
if has tables; then
  study --parts tables --platforms $platform --only xgboost
  for algorithm in direct winograd; do
    python -m predictor.evaluate --data "$data" --runs "$folder/study/runs" --algorithm $algorithm --out "$folder/study/tables-$algorithm.md" > /dev/null
  done
fi
if has shipped; then
  scripts/train_predictors.sh "$folder/shipped"
  for set in tileset-1 tileset-winograd tileset-2; do
    python -m predictor.evaluate --data datasets/$set --runs "$folder/shipped/study/runs" --out "$folder/shipped/$set.md"
  done
fi
if has transfer; then
  mkdir -p "$folder/study"
  for target in ${targets//,/ }; do transfer "$data" "$features" "$target" "${only:-ranker-light,mtl-tlp}" "$folder/study"; done
fi
if has vdla; then
  mkdir -p "$folder/vdla/study"
  transfer datasets/tileset-vdla "$folder/vdla/features" 0: ranker-light "$folder/vdla/study"
fi
if has predictors; then
  study --parts export --platforms $platform --only "$searched"
  study --parts export --platforms $several --only mtl-tlp
  study --parts export --platforms $timed --only ranker-light
  mkdir -p "$folder/predictors"
  for network in "$folder"/study/models/*.onnx; do
    library=$folder/predictors/$(basename "$network" .onnx).so
    [ -f "$library" ] || $tilewright compile "$network" -t x86-64-v3 --name predictor -o "$library" -j 1
  done
fi
export TILEWRIGHT_PREDICTORS=$folder/predictors
networks=("$models"/{resnet18,mobilenet_v2,lstm_lm,dqn,dcgan}.onnx)
if has kernels; then
  .venv/bin/python bench/searches/budgets.py --tilewright $tilewright --folder "$folder/kernels" --kernels 12 --minutes 600 "$models"/{mobilenet_v2,resnet18,bert_base_s128}.onnx
fi
if has networks; then
  .venv/bin/python bench/searches/budgets.py --tilewright $tilewright --folder "$folder/networks" --whole --least-points 2 --minutes 600 "${networks[@]}"
fi
