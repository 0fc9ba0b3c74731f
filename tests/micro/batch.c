/* Runs a model on each record of in.bin and appends its outputs to out.bin. Both are files of the
 * machine that runs the emulator. A record has all inputs, one after the other. MODEL_H, MODEL and
 * ARENA_BYTES come from the command line, and tensors.h has the buffers, INPUTS, OUTPUTS and their
 * sizes. */
#include MODEL_H
#include "tensors.h"
#define JOIN(a, b, c) a##b##c
#define NAME(a, b, c) JOIN(a, b, c)

static _Alignas(64) uint8_t arena[ARENA_BYTES];

/* Semihosting: the emulator performs the operation in register r0. */
static int32_t ask_host(int32_t operation, const void* argument) {
  register int32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}
enum { OPEN = 1, WRITE = 5, READ = 6, BINARY = 1, BINARY_WRITTEN = 5 };

static uint32_t open_file(const char* name, uint32_t mode, uint32_t length) {
  const uint32_t words[3] = {(uint32_t)name, mode, length};
  return (uint32_t)ask_host(OPEN, words);
}
/* Reads or writes. Returns the number of bytes that are left. */
static int32_t pass(int32_t operation, uint32_t file, void* data, uint32_t bytes) {
  const uint32_t words[3] = {file, (uint32_t)data, bytes};
  return ask_host(operation, words);
}

int main(void) {
  const uint32_t from = open_file("in.bin", BINARY, 6),
                 to = open_file("out.bin", BINARY_WRITTEN, 7);
  for (;;) {
    for (uint32_t i = 0; i < sizeof inputs / sizeof *inputs; ++i)
      if (pass(READ, from, inputs[i], input_bytes[i]) != 0) return i != 0;
    if (NAME(tw_, MODEL, _compute)((const void* const*)inputs, outputs, 0, arena, sizeof arena) !=
        TW_OK)
      return 2;
    for (uint32_t i = 0; i < sizeof outputs / sizeof *outputs; ++i)
      if (pass(WRITE, to, outputs[i], output_bytes[i]) != 0) return 3;
  }
}
