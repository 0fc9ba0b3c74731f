/* Objects in one program on this machine: digits.a as a library's table, batch.o and thirteenth.o
 * freestanding. Prints the logits of the images of input.h, first by digits.a, image by image, then
 * by batch.o. */
#include "batch.h"
#include "digits.h"
#include "thirteenth.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIXELS = TW_DIGITS_INPUT_IMAGE_ELEMENTS, CLASSES = TW_DIGITS_OUTPUT_LOGITS_ELEMENTS };
static const float images[] = {
#include "input.h"
};
enum { IMAGES = sizeof images / sizeof *images / PIXELS };
static float logits[IMAGES * CLASSES];
static _Alignas(64) unsigned char arena[TW_BATCH_MAX_ARENA_BYTES];

static void print_logits(void) {
  for (int i = 0; i < IMAGES * CLASSES; ++i) printf("%.9g\n", (double)logits[i]);
}

static int expect(int got, int wanted, const char* what) {
  if (got != wanted) fprintf(stderr, "%s: %d, expected %d\n", what, got, wanted);
  return got != wanted;
}

/* The model reads the thirteenth element, which exists only if n is 3 or more. */
static int check_thirteenth(void) {
  float element = 0;
  tw_thirteenth_io io = {3, images, &element};
  int wrong = expect(tw_thirteenth_run(&io, arena, sizeof arena), TW_OK, "rows of 3");
  wrong += expect(element == images[12], 1, "the thirteenth element");
  io.n = 2;
  return wrong + expect(tw_thirteenth_run(&io, arena, sizeof arena), TW_E_SHAPE, "rows of 2");
}

int main(void) {
  const tw_api* api = tw_digits_query(TW_ABI_VERSION);
  tw_context* context = NULL;
  tw_batch_io all = {IMAGES, images, logits};
  int wrong = 0;
  if (!api || tw_digits_create(api, 2, &context) != TW_OK) return 1;
  for (int i = 0; i < IMAGES; ++i) {
    const tw_digits_io one = {images + i * PIXELS, logits + i * CLASSES};
    if (tw_digits_run(api, context, &one) != TW_OK) return 2;
  }
  api->destroy(context);
  print_logits();
  wrong += expect(tw_batch_run(&all, arena, sizeof arena), TW_OK, "a run");
  print_logits();
  wrong += expect(tw_batch_run(&all, arena, 64), TW_E_SIZE, "a small arena");
  wrong += expect(tw_batch_run(&all, arena + 8, sizeof arena), TW_E_ARGUMENT, "a misaligned arena");
  all.batch = 9;
  wrong += expect(tw_batch_run(&all, arena, sizeof arena), TW_E_SHAPE, "a batch over the limit");
  all.batch = IMAGES, all.image = NULL;
  wrong += expect(tw_batch_run(&all, arena, sizeof arena), TW_E_ARGUMENT, "no image");
  wrong += check_thirteenth();
  return wrong ? 3 : 0;
}
