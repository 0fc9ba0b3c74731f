// before: plain layouts everywhere
// after:  convolutional parts in channel blocks (NCHWc), LayoutCast nodes where
//         a reader needs another form
// Why here: after all rewriting, as casts would hide patterns; before fusion, as groups share a
// layout.
#pragma once
#include "passes/pass.h"
namespace tw {
Expected<bool> assign_layouts(Graph& graph, PassContext& context);
}
