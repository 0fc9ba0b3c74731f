#include "compare.h"
#include "print.h"
#include "system.h"

static int is_nan(double v) { return v != v; }
static int is_finite(double v) { return v - v == 0; }

typedef struct tw_difference {
  double max_abs, max_rel, got, want;
  int64_t worst, nan;
  int32_t same;
} tw_difference;

static double distance(double got, double want) {
  if (got == want || (is_nan(got) && is_nan(want))) return 0;
  const double d = got < want ? want - got : got - want;
  return is_nan(d) ? __builtin_inf() : d;
}

/* Compares integers by their bytes: a double cannot hold every 64-bit integer. */
static int bytes_differ(const tw_array* a, const tw_array* b, int64_t i, int32_t bytes) {
  const uint8_t* x = (const uint8_t*)a->data + i * bytes;
  const uint8_t* y = (const uint8_t*)b->data + i * bytes;
  for (int32_t k = 0; k < bytes; ++k)
    if (x[k] != y[k]) return 1;
  return 0;
}

static tw_difference difference_of(const tw_array* got, const tw_array* want, double tolerance) {
  const tw_type* type = type_of(got->dtype);
  tw_difference d = {0};
  double low = 0, high = 0;
  for (int64_t i = 0; i < want->count; ++i) {
    const double a = element_at(got->data, got->dtype, i);
    const double b = element_at(want->data, want->dtype, i);
    if (is_finite(b) && b < low) low = b;
    if (is_finite(b) && b > high) high = b;
    d.nan += is_nan(a) && is_nan(b);
    double off = distance(a, b);
    if (!type->is_float && off == 0 && bytes_differ(got, want, i, type->bytes)) off = 1;
    if (off > d.max_abs || i == 0) {
      d.max_abs = off;
      d.worst = i;
      d.got = a;
      d.want = b;
    }
  }
  if (d.max_abs > 0) d.max_rel = high > low ? d.max_abs / (high - low) : __builtin_inf();
  d.same = (type->is_float ? d.max_rel <= tolerance : d.max_abs == 0) &&
           (want->count == 0 || d.nan < want->count);
  return d;
}

/* Prints a difference of type or shape, which rules out a comparison; 0: there is none. */
static int32_t differ_in_kind(const tw_array* got, const tw_array* want) {
  const int32_t wider = type_of(got->dtype)->is_float && want->dtype == TW_F64;
  int32_t shape = got->rank != want->rank;
  for (int32_t i = 0; i < got->rank && !shape; ++i) shape = got->dims[i] != want->dims[i];
  if (got->dtype != want->dtype && !wider) {
    print("is ");
    print(type_of(got->dtype)->name);
    print(", expected ");
    print(type_of(want->dtype)->name);
    print("\n");
    return 1;
  }
  if (!shape) return 0;
  char data[4096];
  tw_text t = {data, 0, sizeof data};
  text_clear(&t);
  text_add(&t, "has shape ");
  add_shape(&t, got->dims, got->rank);
  text_add(&t, ", expected ");
  add_shape(&t, want->dims, want->rank);
  print(data);
  print("\n");
  return 1;
}

int32_t compare_arrays(const char* name, const tw_array* got, const tw_array* want,
                       double tolerance) {
  tw_difference d = {0};
  print(name);
  print(": ");
  if (differ_in_kind(got, want)) return 0;
  d = difference_of(got, want, tolerance);
  print("max abs ");
  print_number(d.max_abs);
  print(", max rel ");
  print_number(d.max_rel);
  if (d.nan) {
    print(", NaN in both: ");
    print_integer(d.nan);
  }
  if (!d.same) {
    print(", worst at ");
    print_integer(d.worst);
    print(": ");
    print_number(d.got);
    print(", expected ");
    print_number(d.want);
  }
  print(d.same ? "  ok\n" : "  OFF\n");
  return d.same;
}

void print_summary(const tw_array* array) {
  double low = 0, high = 0, sum = 0;
  int64_t numbers = 0, nan = 0, argmax = -1;
  for (int64_t i = 0; i < array->count; ++i) {
    const double v = element_at(array->data, array->dtype, i);
    if (is_nan(v)) {
      ++nan;
      continue;
    }
    if (numbers == 0 || v < low) low = v;
    if (numbers == 0 || v > high) high = v, argmax = i;
    sum += v;
    ++numbers;
  }
  print("min ");
  print_number(low);
  print("  max ");
  print_number(high);
  print("  mean ");
  print_number(numbers ? sum / (double)numbers : 0);
  print("  argmax ");
  print_integer(argmax);
  if (nan) {
    print("  NaN ");
    print_integer(nan);
  }
}
