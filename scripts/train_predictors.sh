#!/usr/bin/env bash
# Trains the predictors that are shipped, from the data sets of the repository, and puts them where the build compiles them: three rankers
# on all platforms that were timed. It takes some minutes; called again it goes on where it ended.
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
  for set in tileset-1 tileset-winograd; do $tilewright dataset import "$folder/set.db" datasets/$set; done
  $tilewright dataset export "$folder/set.db" "$folder/data"
fi
for kind in loops task; do
  [ -d "$folder/features/$kind" ] || $tilewright dataset features "$folder/set.db" "$folder/features/$kind" --as $kind
done
PYTHONPATH=autotune .venv-train/bin/python -m predictor.study --data "$folder/data" --features "$folder/features" --out "$folder/study" \
  --only ranker-light --seeds 1,2,3 --parts train,tables,export
cp "$folder"/study/models/ranker-{1,2,3}.onnx autotune/predictor/trained
echo "autotune/predictor/trained: three rankers; tables in $folder/study/tables.md"
