/* Views: tensors of the caller's with strides. They are packed into dense memory before a run, and
 * unpacked after it. */
#ifndef TW_VIEWS_H
#define TW_VIEWS_H
#include "context.h"

/* Replaces views by dense tensors that contain the inputs' elements. Errors leave a text. */
tw_status tw_views_begin(tw_context* c, const tw_tensor** inputs, const tw_tensor** outputs,
                         const int64_t* const* strides);
void tw_views_end(tw_views* views); /* copies the outputs back */
void tw_views_free(tw_views* views);
#endif
