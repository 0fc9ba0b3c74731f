/* classify test_images.npy test_labels.npy [PREDICTIONS]: classifies the held-out digits with the
 * compiled model, in plain C99, with nothing but the generated header and the library. Prints the
 * accuracy and the median latency of one image. PREDICTIONS gets one label a line. */
#define _POSIX_C_SOURCE 200809L
#include "digits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kPixels = 64, kClasses = 10, kRounds = 20 };

/* Reads a NumPy file with `item` bytes an element and `elements` elements a row. *rows gets the
 * first extent. Returns NULL on error. */
static void* read_npy(const char* path, const char* descr, size_t item, size_t elements,
                      size_t* rows) {
  unsigned char start[10];
  char header[512], *data = NULL;
  const char* shape;
  FILE* file = fopen(path, "rb");
  if (!file) {
    perror(path);
    return NULL;
  }
  size_t length = 0;
  if (fread(start, 1, 10, file) == 10 && memcmp(start, "\x93NUMPY\x01", 7) == 0)
    length = start[8] + 256u * start[9];
  if (length > 0 && length < sizeof header && fread(header, 1, length, file) == length) {
    header[length] = 0;
    shape = strstr(header, "'shape': (");
    if (shape && strstr(header, descr) && strstr(header, "'fortran_order': False")) {
      *rows = strtoul(shape + 10, NULL, 10);
      if (*rows > 0 && *rows < 1000000) data = malloc(*rows * elements * item);
      if (data && fread(data, elements * item, *rows, file) != *rows) {
        free(data);
        data = NULL;
      }
    }
  }
  fclose(file);
  if (!data) fprintf(stderr, "%s: not a NumPy file of the expected kind\n", path);
  return data;
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Fills labels[i] from images[i] and us[round * count + i] with each run's time. */
static tw_status classify(const tw_api* api, tw_context* context, float* images, size_t count,
                          unsigned char* labels, double* us) {
  static const int64_t image_dims[4] = {1, 1, 8, 8}, logits_dims[2] = {1, kClasses};
  float logits[kClasses];
  for (size_t run = 0; run < kRounds * count; run++) {
    size_t i = run % count;
    tw_tensor input = {images + i * kPixels, kPixels * sizeof(float), TW_F32, 4, image_dims};
    tw_tensor output = {logits, sizeof logits, TW_F32, 2, logits_dims};
    double start = now_us();
    tw_status status = api->run(context, &input, &output);
    us[run] = now_us() - start;
    if (status != TW_OK) return status;
    labels[i] = 0;
    for (int k = 1; k < kClasses; k++)
      if (logits[k] > logits[labels[i]]) labels[i] = (unsigned char)k;
  }
  return TW_OK;
}

static int write_labels(const char* path, const unsigned char* labels, size_t count) {
  FILE* file = fopen(path, "w");
  if (file) {
    for (size_t i = 0; i < count; i++) fprintf(file, "%d\n", labels[i]);
    if (ferror(file) == 0 && fclose(file) == 0) return 0;
  }
  perror(path);
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    fprintf(stderr, "usage: classify test_images.npy test_labels.npy [PREDICTIONS]\n");
    return 2;
  }
  const tw_api* api = tw_digits_query(TW_ABI_VERSION);
  if (!api) {
    fprintf(stderr, "the library does not serve ABI version %u\n", TW_ABI_VERSION);
    return 1;
  }
  size_t count = 0, label_count = 0, right = 0;
  float* images = read_npy(argv[1], "'<f4'", sizeof(float), kPixels, &count);
  unsigned char* expected = read_npy(argv[2], "'|u1'", 1, 1, &label_count);
  unsigned char* labels = calloc(count + 1, 1);
  double* us = calloc(kRounds * count + 1, sizeof(double));
  tw_options options = {0};
  tw_context* context = NULL;
  int result = 1;
  if (!images || !expected || !labels || !us) goto done;
  if (count != label_count) {
    fprintf(stderr, "%zu images, but %zu labels\n", count, label_count);
    goto done;
  }
  options.size = sizeof options;
  options.threads = 1; /* the model is too small to divide */
  tw_status status = api->create(&options, &context);
  if (status == TW_OK) status = classify(api, context, images, count, labels, us);
  if (status != TW_OK) {
    fprintf(stderr, "%s: %s\n", api->status_text(status),
            context ? api->last_error(context) : "no context");
    goto done;
  }
  for (size_t i = 0; i < count; i++) right += labels[i] == expected[i];
  qsort(us, kRounds * count, sizeof us[0], compare);
  printf("accuracy: %zu of %zu (%.2f %%)\n", right, count, 100.0 * (double)right / (double)count);
  printf("median latency: %.2f us an image, one thread\n", us[kRounds * count / 2]);
  result = argc == 4 ? write_labels(argv[3], labels, count) : 0;
done:
  if (context) api->destroy(context);
  free(us);
  free(labels);
  free(expected);
  free(images);
  return result;
}
