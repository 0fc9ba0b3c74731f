/* A library with a context, inputs and memory for outputs, ready to run */
#ifndef TW_RUNNER_SESSION_H
#define TW_RUNNER_SESSION_H
#include "arguments.h"
#include "files.h"

typedef struct tw_session {
  const tw_api* api;
  tw_context* context;
  tw_array *inputs, *outputs; /* outputs are valid after take_outputs */
  tw_tensor *given, *made;
  int64_t* symbols;
} tw_session;

tw_session open_session(const char* library, const tw_arguments* arguments);
/* Runs once and leaves the outputs unread. Ends the program where the run fails. */
void run_once(tw_session* session);
/* Takes shapes and memory of the last run's outputs. */
void take_outputs(tw_session* session);
#endif
