/* Prints numbers and texts without a C library. */
#include "print.h"
#include "system.h"

static uint64_t length_of(const char* text) {
  uint64_t n = 0;
  while (text[n]) ++n;
  return n;
}

static void write_text(long file, const char* text) {
  uint64_t left = length_of(text);
  while (left) {
    const long got = syscall(SYS_write, file, text, (long)left);
    if (got == -4 /* EINTR */) continue;
    if (got <= 0) return;
    text += got;
    left -= (uint64_t)got;
  }
}

void print(const char* text) { write_text(1, text); }

void fail(int status, const char* a, const char* b, const char* c) {
  write_text(2, "error: ");
  if (a) write_text(2, a);
  if (b) write_text(2, b);
  if (c) write_text(2, c);
  write_text(2, "\n");
  tw_exit(status);
}

void print_integer(int64_t value) {
  char data[24];
  tw_text t = {data, 0, sizeof data};
  text_clear(&t);
  text_add_number(&t, value);
  print(data);
}

void add_shape(tw_text* t, const int64_t* dims, int32_t rank) {
  text_add(t, "[");
  for (int32_t i = 0; i < rank; ++i) {
    if (i) text_add(t, ", ");
    text_add_number(t, dims[i]);
  }
  text_add(t, "]");
}

void print_milliseconds(uint64_t ns) {
  const uint64_t tenths = (ns + 50) / 100; /* tenths of a microsecond */
  char fraction[5];
  uint64_t rest = tenths % 10000;
  print_integer((int64_t)(tenths / 10000));
  print(".");
  fraction[4] = 0;
  for (int i = 3; i >= 0; --i, rest /= 10) fraction[i] = (char)('0' + rest % 10);
  print(fraction);
}

enum { kDigits = 6 };

/* Prints the digits without the zeros at the end, but at least `least` of them, and with a point
 * after `point` digits; -1: no point. */
static void print_digits(const char* digits, int least, int point) {
  char data[24];
  tw_text t = {data, 0, sizeof data};
  int kept = kDigits;
  text_clear(&t);
  while (kept > least && digits[kept - 1] == '0') --kept;
  for (int i = 0; i < kept; ++i) {
    const char one[2] = {digits[i], 0};
    if (i == point) text_add(&t, ".");
    text_add(&t, one);
  }
  print(data);
}

void print_number(double value) {
  char digits[kDigits];
  int exponent = kDigits - 1;
  if (value != value) {
    print("nan");
    return;
  }
  if (value < 0) {
    print("-");
    value = -value;
  }
  if (value > 1.7976931348623157e308) {
    print("inf");
    return;
  }
  if (value == 0) {
    print("0");
    return;
  }
  for (; value >= 1e6; ++exponent) value /= 10;
  for (; value < 1e5; --exponent) value *= 10;
  uint32_t whole = (uint32_t)(value + 0.5);
  if (whole >= 1000000) {
    whole /= 10;
    ++exponent;
  }
  for (int i = kDigits - 1; i >= 0; --i, whole /= 10) digits[i] = (char)('0' + whole % 10);
  if (exponent >= -4 && exponent < 0) {
    print("0.");
    for (int i = -1; i > exponent; --i) print("0");
    print_digits(digits, 1, -1);
    return;
  }
  if (exponent >= 0 && exponent < kDigits) {
    print_digits(digits, exponent + 1, exponent + 1);
    return;
  }
  print_digits(digits, 1, 1);
  print(exponent < 0 ? "e-" : "e+");
  if (exponent > -10 && exponent < 10) print("0");
  print_integer(exponent < 0 ? -exponent : exponent);
}
