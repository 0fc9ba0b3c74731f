// What generated sketches are made of: the stages of a kernel by their loops and loads alone,
// register tiles for sums of any kind, and the simple mapping for what is not in the centre. A
// sketch is a function that takes steps and asks for its knobs on the way.
#pragma once
#include <algorithm>

#include "autotune/spaces/open_sketch.h"
#include "kernels/schedule/builder.h"

namespace tw::generated {

// An instruction of the target that adds products as a sum does, once its loops are cut.
struct Product {
  std::string intrinsic;
  // Iterations of `row`, of the lanes' loop and of `depth` that it takes
  int64_t rows = 1, columns = 1, steps = 1;
  Loop depth;
  Loop row;  // none: it has one row
  SumInstruction instruction() const { return {intrinsic, rows, columns, depth, row}; }
};

struct Operand {
  BufferName name;
  std::vector<Expr> at;  // as lowered
  bool constant = false;
};

struct Nest {
  Stage stage;
  // Loops as lowered, outermost first, without scans around
  Loops spatial, reduce;
  Stages readers;  // other stages that load the buffer, in program order
  bool in_scan = false;
  bool alone = true;  // the only store of its nest
  bool temp = false;  // writes a temp
  double points = 1;  // of all its loops, a symbol counted as a few
  // Of a central sum:
  std::vector<Product> products;  // most products a cycle first
  std::vector<Operand> operands;  // that may be copied
  StoreRef store;
  bool sums() const { return !reduce.empty() && store->combiner != Combiner::none; }
  // Its elements may be made where another nest reads them.
  bool pure() const {
    return reduce.empty() && store->combiner == Combiner::none && alone && temp && !in_scan &&
           std::ranges::none_of(store->indices, [](const Expr& e) { return is<expr::Binary>(e); });
  }
};

struct Structure {
  Kernel kernel;             // as lowered
  std::vector<Nest> nests;   // in program order
  std::vector<size_t> sums;  // whose work is a good part of the kernel's: what sketches are about
  const Nest& nest(const Stage& stage) const;
  bool central(const Stage& stage) const;
};
Structure structure_of(const Kernel& kernel, const Target& target);

// What the instructions' semantics match, tried out on the kernel as lowered.
std::vector<Product> products_of(const Kernel& kernel, const Target& target, const Nest& sum);
// What the sum reads of other stages or of parameters, where a copy of it is legal.
std::vector<Operand> operands_of(const Kernel& kernel, const Target& target, const Nest& sum);

// Loops in up to three levels: the register tile, blocks of such tiles, the rest.
struct Levels {
  Loops outer, middle, inner;
  Loop lane;             // of the inner ones; none: it was not cut
  Loops around() const;  // outer, then middle
};
// A loop in tiles (0: all of it is one) and blocks of so many tiles (0: one has all). What a level
// does not have is none.
struct LoopLevels {
  Loop outer, middle, inner;
};
LoopLevels cut_loop(ScheduleBuilder& s, const Loop& loop, int64_t tile, int64_t block, Tail tail);
// Factors for the loops of a sum, the last being the lanes': what fits the registers, the cheapest
// by step_cost first. Without rules all that the language can say, the rest behind what fits.
std::vector<std::vector<int64_t>> register_tiles(const Structure& k, const Nest& sum,
                                                 const ScheduleBuilder& s);
// `loops` of one nest by these factors, the last one's being lanes. Knobs "block_LOOP" and
// "outermost_NAME". `once`: points may not be computed twice. Between the outer and the middle ones
// stand `between`.
Levels tile_nest(ScheduleBuilder& s, const std::string& name, const Loops& loops,
                 const std::vector<int64_t>& tile, bool once, const Loops& between = {});
// The stage below the last one of the loops around its tile: sums over the reduce loops of `sum` in
// registers, of operands that pack_operands may copy. Knobs "instruction_STAGE" (0 none, else the
// so-many-th that matches), "first_STAGE", "depth_STAGE", "steps_STAGE", "taps_STAGE" (order,
// blocks and unrolling of the reduction, all of its inner loops that are short), "prefetch_STAGE".
// Those of the loops around that hold nothing else.
Loops sum_in_registers(ScheduleBuilder& s, const Nest& sum, const Stage& stage,
                       const Loops& around);
// What the tiles below a loop around read of an operand, side by side in a buffer of its own. Knobs
// "pack_STAGE_OPERAND": 0 nothing, else below which of the loops around, the innermost first;
// "panel_STAGE_OPERAND": in panels, the iterations of a tile innermost. As sum_in_registers.
Loops pack_operands(ScheduleBuilder& s, const Nest& sum, const Stage& stage, const Loops& around);
// Loops of the stage below `at`.
Loops loops_below(const ScheduleBuilder& s, const Stage& stage, const Loop& at);
// The tile's lines unrolled, its lanes in a vector; of the outer loops those in `shared` on all
// threads.
void finish_tile(ScheduleBuilder& s, const Levels& levels, const std::string& name,
                 const Loops& shared);

// Iterations at the ends of the innermost loops apart, so that the rest asks for no padding. Knob
// "edges_STAGE": of how many loops. Last of the steps.
void cut_edges(ScheduleBuilder& s, const Nest& sum, const Loops& loops);

// Spatial loops of a nest: a vector of lanes from the last one, beside it at most one that is
// unrolled. Knobs "vectors_STAGE"; "inner_STAGE": 0 none, else the so-many-th outside of the lanes.
struct Lanes {
  Loops outer, beside;
  Loop lane;
};
Lanes cut_lanes(ScheduleBuilder& s, const Structure& k, const Nest& nest, Loops spatial);
void map_lanes(ScheduleBuilder& s, const Nest& nest, const Loops& reduce, const Lanes& cut);
// Vectors along the last loop, threads over the outer ones; sums in lanes. Knob "steps_STAGE" of a
// nest without sums: 1 vectors side by side, 0 a loop beside them.
void map_simply(ScheduleBuilder& s, const Structure& k, const Nest& nest);
// All but the central sums and those that `taken` names.
void map_others(ScheduleBuilder& s, const Structure& k, const Stages& taken = {});
// Pure producers of central sums. Knob of the producer's name: 0 a nest of its own, 1 inlined.
// Before anything else.
void place_producers(ScheduleBuilder& s, const Structure& k);
// A temp that is too large for the stack gets a slice of the workspace for each thread.
void keep_near(ScheduleBuilder& s, const Stage& stage);

// The sketches; a kernel without the structure that one is about fails in its first step.
void sketch_tile(ScheduleBuilder& s, const Structure& k);  // sums at a tile of their reader
// Tiles of the sums' own nest, at a block of the reader or before it
void sketch_cache_write(ScheduleBuilder& s, const Structure& k);
// The same, over parts of the reduction one after the other
void sketch_chunks(ScheduleBuilder& s, const Structure& k);
// Parts of the reduction at the same time
void sketch_rfactor(ScheduleBuilder& s, const Structure& k);
// All stages at rows of the last one
void sketch_rows(ScheduleBuilder& s, const Structure& k);
// two-dimensional tiles of a nest without sums
void sketch_blocks(ScheduleBuilder& s, const Structure& k);
void sketch_plain(ScheduleBuilder& s, const Structure& k);  // a nest for each stage

}  // namespace tw::generated
