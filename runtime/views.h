/* Tensors of the caller's that are views: packed into dense memory in front of a run, and unpacked
 * behind it. */
#ifndef TW_VIEWS_H
#define TW_VIEWS_H
#include "context.h"

/* Puts dense tensors in the place of views, with the inputs' elements in them. Errors leave a text. */
tw_status tw_views_begin(tw_context* c, const tw_tensor** inputs, const tw_tensor** outputs,
                         const int64_t* const* strides);
void tw_views_end(tw_views* views); /* copies the outputs */
void tw_views_free(tw_views* views);
#endif
