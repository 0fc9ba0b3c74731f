// before: plain layouts everywhere. after: convolutional parts run in channel blocks (NCHWc),
// LayoutCast nodes stand where a reader needs another form. why here: after all rewriting (casts
// would hide patterns), before fusion (groups share a layout).
#pragma once
#include "passes/pass.h"
namespace tw {
Expected<bool> assign_layouts(Graph& graph, PassContext& context);
}
