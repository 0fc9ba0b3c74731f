// The facts about a lowered kernel that its schedule needs, in one struct for each family.
#pragma once
#include <variant>

#include "kernels/algorithms/streaming_attention.h"
#include "kernels/attention/attention.h"
#include "kernels/conv/conv.h"
#include "kernels/device/device.h"
#include "kernels/device/windows.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/matmul/matmul.h"
#include "kernels/pool/pool.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/reduce/reduce.h"
#include "kernels/strassen/strassen.h"
#include "kernels/winograd/winograd.h"

namespace tw {

using KernelStages =
    std::variant<ElementwiseStages, ConvStages, WinogradStages, StrassenStages, MatMulStages,
                 TileStages, ReduceStages, PoolStages, RecurrentStages, AttentionStages,
                 StreamingAttentionStages, WinogradTileStages, WindowStages>;
const char* family_name(const KernelStages& stages);  // "conv", "depthwise", "matmul", ..

}  // namespace tw
