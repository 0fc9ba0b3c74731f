#include "autotune/models/booster.h"

#include <xgboost/c_api.h>

#include <limits>

#include "support/diag.h"

namespace tw {
namespace {

void check(int code) { TW_CHECK(code == 0, "XGBoost: {0}", XGBGetLastError()); }

DMatrixHandle make_matrix(const FeatureMatrix& features) {
  DMatrixHandle matrix = nullptr;
  check(XGDMatrixCreateFromMat(features.values.data(), features.rows(), features.columns,
                               std::numeric_limits<float>::quiet_NaN(), &matrix));
  if (!features.margins.empty())
    check(XGDMatrixSetFloatInfo(matrix, "base_margin", features.margins.data(),
                                features.margins.size()));
  return matrix;
}

// Sums of the trees before `rounds` (0: all), before any transformation
std::vector<float> margins(BoosterHandle booster, DMatrixHandle matrix, int rounds) {
  bst_ulong count = 0;
  const float* values = nullptr;
  constexpr int kMargin = 1;
  check(XGBoosterPredict(booster, matrix, kMargin, static_cast<unsigned>(rounds), 0, &count,
                         &values));
  return {values, values + count};
}

}  // namespace

Booster::Booster(const BoosterParameters& parameters, const TrainingData& data)
    : data_(make_matrix(data.features)) {
  check(XGDMatrixSetFloatInfo(data_, "label", data.labels.data(), data.labels.size()));
  if (!data.group_sizes.empty())
    check(XGDMatrixSetUIntInfo(data_, "group", data.group_sizes.data(), data.group_sizes.size()));
  check(XGBoosterCreate(&data_, 1, &booster_));
  for (const auto& [name, value] : parameters)
    check(XGBoosterSetParam(booster_, name.c_str(), value.c_str()));
}

Booster::Booster(Booster&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      booster_(std::exchange(other.booster_, nullptr)),
      kept_(other.kept_) {}

Booster& Booster::operator=(Booster&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(booster_, other.booster_);
  std::swap(kept_, other.kept_);
  return *this;
}

Booster::~Booster() {
  if (booster_) XGBoosterFree(booster_);
  if (data_) XGDMatrixFree(data_);
}

void Booster::update(int round) { check(XGBoosterUpdateOneIter(booster_, round, data_)); }

void Booster::boost(std::vector<float>& gradients, std::vector<float>& hessians) {
  check(
      XGBoosterBoostOneIter(booster_, data_, gradients.data(), hessians.data(), gradients.size()));
}

std::vector<float> Booster::training_scores() const { return margins(booster_, data_, 0); }

std::vector<float> Booster::predict(const FeatureMatrix& features) const {
  if (features.rows() == 0) return {};
  const DMatrixHandle matrix = make_matrix(features);
  std::vector<float> out = margins(booster_, matrix, kept_);
  XGDMatrixFree(matrix);
  return out;
}

std::string Booster::bytes() const {
  bst_ulong size = 0;
  const char* data = nullptr;
  check(XGBoosterSaveModelToBuffer(booster_, R"({"format": "ubj"})", &size, &data));
  return {data, size};
}

}  // namespace tw
