/* A library with a context, inputs and memory for outputs: ready to run. */
#ifndef TW_RUNNER_SESSION_H
#define TW_RUNNER_SESSION_H
#include "arguments.h"
#include "files.h"

typedef struct tw_session {
  const tw_api* api;
  tw_context* context;
  tw_array *inputs, *outputs; /* after a run: with what it made */
  tw_tensor *given, *made;
  int64_t* symbols;
} tw_session;

tw_session open_session(const char* library, const tw_arguments* arguments);
/* One run, without a look at what it made. Ends the program where it fails. */
void run_once(tw_session* session);
/* Of the last run: the outputs' shapes and memory. */
void take_outputs(tw_session* session);
#endif
