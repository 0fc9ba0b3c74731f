/* The start of a bare microcontroller: it sets up a stack, the floating-point unit and initialized
 * memory before main. Also the three functions of the C library that a model calls. */
#include <stddef.h>
#include <stdint.h>

extern uint32_t stack_top[], data_from[], data_begin[], data_end[], bss_begin[], bss_end[];
int main(void);

/* Semihosting: an emulator or a debugger performs the operation in register r0. */
static int32_t ask_host(int32_t operation, const void* argument) {
  register int32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}
void print(const char* text) { ask_host(4 /* SYS_WRITE0 */, text); }
void end(int status) {
  const uint32_t words[2] = {0x20026 /* ADP_Stopped_ApplicationExit */, (uint32_t)status};
  ask_host(0x20 /* SYS_EXIT_EXTENDED */, words);
  for (;;) {}
}

void reset(void) {
  *(volatile uint32_t*)0xE000ED88 |= 0xfu << 20; /* CPACR: the floating-point unit */
  __asm__ volatile("dsb\n\tisb");
  for (uint32_t *to = data_begin, *from = data_from; to < data_end;) *to++ = *from++;
  for (uint32_t* to = bss_begin; to < bss_end;) *to++ = 0;
  end(main());
}
static void fault(void) {
  print("fault\n");
  end(99);
}
__attribute__((section(".vectors"), used)) static const void* const vectors[16] = {
    stack_top,          (const void*)reset, (const void*)fault, (const void*)fault,
    (const void*)fault, (const void*)fault, (const void*)fault, (const void*)fault};

void* memcpy(void* to, const void* from, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) ((volatile uint8_t*)to)[i] = ((const uint8_t*)from)[i];
  return to;
}
void* memmove(void* to, const void* from, size_t bytes) {
  if ((uintptr_t)to <= (uintptr_t)from) return memcpy(to, from, bytes);
  while (bytes-- > 0) ((volatile uint8_t*)to)[bytes] = ((const uint8_t*)from)[bytes];
  return to;
}
void* memset(void* to, int value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) ((volatile uint8_t*)to)[i] = (uint8_t)value;
  return to;
}
