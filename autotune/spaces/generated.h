// The parts of generated sketches: a kernel's stages as loops and loads, register tiles for sums of
// any kind, and a simple mapping for all other stages. A sketch is a function that takes steps and
// asks for its knobs on the way.
#pragma once
#include <algorithm>

#include "autotune/spaces/open_sketch.h"
#include "kernels/schedule/builder.h"

namespace tw::generated {

// An instruction of the target that adds the products of a sum, once the sum's loops are cut
struct Product {
  std::string intrinsic;
  // Iterations of `row`, of the lanes' loop and of `depth` in one instruction
  int64_t rows = 1, columns = 1, steps = 1;
  Loop depth;
  Loop row;  // undefined: the instruction has one row
  SumInstruction instruction() const { return {intrinsic, rows, columns, depth, row}; }
};

struct Operand {
  BufferName name;
  std::vector<Expr> at;  // indices as lowered
  bool constant = false;
};

struct Nest {
  Stage stage;
  // Loops as lowered, outermost first, without enclosing scans
  Loops spatial, reduce;
  Stages readers;  // other stages that load the buffer, in program order
  bool in_scan = false;
  bool alone = true;  // the nest has no other store
  bool temp = false;  // the store writes a temp
  double points = 1;  // iterations of all its loops; a symbol counts as a few
  // The next two are for central sums.
  std::vector<Product> products;  // most products a cycle first
  std::vector<Operand> operands;  // operands that may be copied
  StoreRef store;
  bool sums() const { return !reduce.empty() && store->combiner != Combiner::none; }
  // True: the elements may be computed where another nest reads them.
  bool pure() const {
    return reduce.empty() && store->combiner == Combiner::none && alone && temp && !in_scan &&
           std::ranges::none_of(store->indices, [](const Expr& e) { return is<expr::Binary>(e); });
  }
};

struct Structure {
  Kernel kernel;             // as lowered
  std::vector<Nest> nests;   // in program order
  std::vector<size_t> sums;  // sums with a large share of the work: the subject of sketches
  const Nest& nest(const Stage& stage) const;
  bool central(const Stage& stage) const;
};
Structure structure_of(const Kernel& kernel, const Target& target);

// The instructions whose semantics match the sum, tried out on the kernel as lowered
std::vector<Product> products_of(const Kernel& kernel, const Target& target, const Nest& sum);
// The operands that the sum reads from other stages or from parameters, where a copy is legal
std::vector<Operand> operands_of(const Kernel& kernel, const Target& target, const Nest& sum);

// Loops in up to three levels: the rest, blocks of register tiles, and the register tile
struct Levels {
  Loops outer, middle, inner;
  Loop lane;             // one of the inner loops; undefined: not cut
  Loops around() const;  // outer, then middle
};
// A loop cut into tiles of `tile` iterations (0: one tile has all) and blocks of `block` tiles (0:
// one block has all). A level that does not exist is undefined.
struct LoopLevels {
  Loop outer, middle, inner;
};
LoopLevels cut_loop(ScheduleBuilder& s, const Loop& loop, int64_t tile, int64_t block, Tail tail);
// Factors for the loops of a sum; the last factor is for the lanes. Tiles that fit the registers
// come first, the cheapest by step_cost in front. With rules, tiles that do not fit are left out.
std::vector<std::vector<int64_t>> register_tiles(const Structure& k, const Nest& sum,
                                                 const ScheduleBuilder& s);
// A number from `usual` to `last`, `usual` first. Another arrangement may have offered more: then
// it is the last one here.
int64_t choose_counted(const ScheduleBuilder& s, const std::string& knob, int64_t usual,
                       int64_t last);
// The knob "tile_SUM", of register_tiles. Where another arrangement offered it, loops that are
// missing there have the factor 1.
std::vector<int64_t> choose_tile(const ScheduleBuilder& s, const Structure& k, const Nest& sum);
// Tiles `loops` of one nest by these factors, of which the last is for lanes. Knobs "block_LOOP"
// and "outermost_NAME". `once`: no point may be computed twice. `between` stands between the outer
// and the middle loops.
Levels tile_nest(ScheduleBuilder& s, const std::string& name, const Loops& loops,
                 const std::vector<int64_t>& tile, bool once, const Loops& between = {});
// Puts `stage` below the last of the loops around its tile. It sums over the reduce loops of `sum`
// in registers; pack_operands may copy its operands. Knobs: "instruction_STAGE" (0 none, else the
// number of a matching one); "first_STAGE", "depth_STAGE", "steps_STAGE" and "taps_STAGE" (order,
// blocks and unrolling of the reduction, and unrolling of whole short inner loops);
// "prefetch_STAGE". Returns the loops around the tile that contain nothing else.
Loops sum_in_registers(ScheduleBuilder& s, const Nest& sum, const Stage& stage,
                       const Loops& around);
// Copies the part of an operand that the tiles below a loop read, side by side, into a buffer of
// its own. Knobs: "pack_STAGE_OPERAND": 0 no copy, else the loop around, counted from the
// innermost; "panel_STAGE_OPERAND": the copy lies in panels, with a tile's iterations innermost.
// Returns as sum_in_registers does.
Loops pack_operands(ScheduleBuilder& s, const Nest& sum, const Stage& stage, const Loops& around);
Loops loops_below(const ScheduleBuilder& s, const Stage& stage, const Loop& at);
// Unrolls the tile's lines and vectorizes its lanes. The outer loops that are in `shared` go to all
// threads.
void finish_tile(ScheduleBuilder& s, const Levels& levels, const std::string& name,
                 const Loops& shared);

// Splits off iterations at the ends of the innermost loops, so that the rest needs no padding. Knob
// "edges_STAGE": the number of loops. It must be the last step.
void cut_edges(ScheduleBuilder& s, const Nest& sum, const Loops& loops);

// Cuts the spatial loops of a nest: a vector of lanes from the last loop, and beside it at most one
// loop to unroll. Knobs: "vectors_STAGE"; "inner_STAGE": 0 none, else the loop to unroll, counted
// outwards from the lanes.
struct Lanes {
  Loops outer, beside;
  Loop lane;
};
Lanes cut_lanes(ScheduleBuilder& s, const Structure& k, const Nest& nest, Loops spatial);
void map_lanes(ScheduleBuilder& s, const Nest& nest, const Loops& reduce, const Lanes& cut);
// Vectorizes the last loop, runs the outer loops on threads, and keeps sums in lanes. Knob
// "steps_STAGE" for a nest without sums: 1 vectors side by side, 0 a loop beside them.
void map_simply(ScheduleBuilder& s, const Structure& k, const Nest& nest);
// Maps all stages except the central sums and the stages in `taken`.
void map_others(ScheduleBuilder& s, const Structure& k, const Stages& taken = {});
// Places pure producers of central sums. The knob has the producer's name: 0 a nest of its own, 1
// inlined. It must come before all other steps.
void place_producers(ScheduleBuilder& s, const Structure& k);
// Gives a temp that is too large for the stack a slice of the workspace for each thread.
void keep_near(ScheduleBuilder& s, const Stage& stage);

// The sketches. A kernel without the structure that a sketch needs fails in its first step.
void sketch_tile(ScheduleBuilder& s, const Structure& k);  // sums at a tile of their reader
// Tiles of the sums' own nest, at a block of the reader or before it
void sketch_cache_write(ScheduleBuilder& s, const Structure& k);
// Tiles of the sums' own nest, over parts of the reduction one after the other
void sketch_chunks(ScheduleBuilder& s, const Structure& k);
// Parts of the reduction at the same time
void sketch_rfactor(ScheduleBuilder& s, const Structure& k);
// All stages at rows of the last one
void sketch_rows(ScheduleBuilder& s, const Structure& k);
// Two-dimensional tiles of a nest without sums
void sketch_blocks(ScheduleBuilder& s, const Structure& k);
void sketch_plain(ScheduleBuilder& s, const Structure& k);  // a nest for each stage

}  // namespace tw::generated
