/* Texts that say why create failed. Threads create contexts at the same time, so each thread finds
 * the text of its own last failure. A thread without a failure finds the last one of all. A text
 * stays until its thread fails again. Where more threads have failed than there are places, it
 * stays until its place is needed. */
#include "model.h"
#include "sys.h"
#include "text.h"

enum { CREATE_ERROR_PLACES = 16 };
typedef struct create_error {
  long thread;     /* 0: nobody's place */
  uint64_t failed; /* number of the failure; 0: the text is another thread's */
  uint64_t used;   /* number of the last use; failures and questions count */
  char text[256];
} create_error;
static create_error g_create_errors[CREATE_ERROR_PLACES];
static uint64_t g_create_error_count;
static _Atomic uint32_t g_create_error_lock;

/* The present thread's place. A thread without one gets the place that was unused for longest. */
static create_error* own_create_error(void) {
  const long thread = syscall(SYS_gettid);
  create_error* oldest = g_create_errors;
  for (create_error* e = g_create_errors; e < g_create_errors + CREATE_ERROR_PLACES; ++e) {
    if (e->thread == thread) return e;
    if (e->used < oldest->used) oldest = e;
  }
  oldest->thread = thread;
  oldest->failed = 0;
  oldest->text[0] = 0;
  return oldest;
}

static void set_create_error(const char* text) {
  tw_lock(&g_create_error_lock);
  create_error* own = own_create_error();
  tw_text t = {own->text, 0, sizeof own->text};
  text_clear(&t);
  text_add(&t, text);
  own->failed = own->used = ++g_create_error_count;
  tw_unlock(&g_create_error_lock);
}

static const char* last_create_error(void) {
  tw_lock(&g_create_error_lock);
  create_error *own = own_create_error(), *last = own;
  for (create_error* e = g_create_errors; e < g_create_errors + CREATE_ERROR_PLACES; ++e)
    if (e->failed > last->failed) last = e;
  if (own->failed == 0 && last != own) {
    tw_text t = {own->text, 0, sizeof own->text};
    text_clear(&t);
    text_add(&t, last->text);
  }
  own->used = ++g_create_error_count;
  tw_unlock(&g_create_error_lock);
  return own->text;
}
