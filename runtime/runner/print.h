/* Prints text for people, on standard output and standard error. */
#ifndef TW_RUNNER_PRINT_H
#define TW_RUNNER_PRINT_H
#include "../text.h"

void print(const char* text);
void print_integer(int64_t value);
void print_number(double value); /* six digits, like "%.6g" except for the last one's rounding */
void print_milliseconds(uint64_t ns); /* "1.2345" */

/* Prints "runner: a b c" and ends the program. NULL parts are left out. */
_Noreturn void fail(int status, const char* a, const char* b, const char* c);

void add_shape(tw_text* t, const int64_t* dims, int32_t rank); /* "[1, 3, 224, 224]" */
#endif
