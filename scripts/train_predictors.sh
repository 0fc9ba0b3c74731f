#!/usr/bin/env bash
# Trains the predictors that are shipped, from the data sets of the repository, and puts them where the build compiles them: three rankers
# on all platforms that were timed, TLP, MTL-TLP with three platforms, and One-Shot Tuner. It takes an hour; called again it goes on where it ended.
#   scripts/train_predictors.sh [FOLDER]    features, runs and tables stay there (default: build/predictors)
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/predictors}
tilewright=build/release/tilewright
[ -x $tilewright ] || { echo "train_predictors: $tilewright is not built" >&2; exit 1; }
scripts/setup.sh train
mkdir -p "$folder"
if [ ! -d "$folder/data" ]; then
  rm -f "$folder/set.db"
  for set in tileset-1 tileset-winograd tileset-2; do $tilewright dataset import "$folder/set.db" datasets/$set; done
  $tilewright dataset export "$folder/set.db" "$folder/data"
fi
for kind in loops task steps one-shot; do
  [ -d "$folder/features/$kind" ] || $tilewright dataset features "$folder/set.db" "$folder/features/$kind" --as $kind
done
study() {   # PLATFORMS CONFIGURATION SEEDS [MORE...]: trains, and writes models/KIND-SEED.onnx
  local platforms=$1 name=$2 seeds=$3
  shift 3
  PYTHONPATH=autotune .venv-train/bin/python -m predictor.study --data "$folder/data" --features "$folder/features" --out "$folder/study" \
    --platforms "$platforms" --only "$name" --seeds "$seeds" --parts train,export "$@"
}
study 0,1,2,3,4,9 ranker-light 1,2,3
study 1 tlp-light 1
study 1,2,0 mtl-tlp-light 1
study 1 one-shot-sequence 1 --set epochs=60
cp "$folder"/study/models/*.onnx autotune/predictor/trained
echo "autotune/predictor/trained: $(ls autotune/predictor/trained | wc -l) networks; build, then tests/models/predictor_quality.py --update writes how good they are"
