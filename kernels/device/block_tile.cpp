// Tiles of a block of threads: instructions, legal tiles, and those that a search may choose beside
// the default one.
#include <algorithm>

#include "ir/schedule/intrinsic.h"
#include "kernels/common/group_builder.h"
#include "kernels/device/tiles.h"

namespace tw {
namespace {

// Rows and columns consist of whole instructions, whose sides divide this number.
constexpr int64_t kWhole = 32;
constexpr int64_t kMostThreadSums = 256;  // limit for one thread by the static rules
constexpr int64_t kShortestTile = 8, kLongestTile = 256;
constexpr int64_t kDeepestTile = 64, kDepthStep = 4;

std::optional<TileInstruction> read_instruction(const Intrinsic& intrinsic,
                                                const TileOperands& operands) {
  TileInstruction out;
  out.intrinsic = &intrinsic;
  out.together = intrinsic.emit.threads;
  if (out.together == 1) return std::nullopt;
  Expected<std::shared_ptr<const Kernel>> parsed = semantics_of(intrinsic);
  if (!parsed) return llvm::consumeError(parsed.takeError()), std::nullopt;
  out.semantics = std::move(*parsed);
  const Kernel* semantics = out.semantics.get();
  if (semantics->buffers.size() != 3) return std::nullopt;
  const DType type = operands.type, sums = is_float(type) ? accumulator_type(type) : DType::i32;
  for (const Buffer& parameter : semantics->buffers)
    if (parameter.dtype != (parameter.role == BufferRole::output ? sums : type))
      return std::nullopt;
  for (const StoreRef& store : stores_of(semantics->body))
    if (sums_tf32(store->value) != operands.tf32) return std::nullopt;
  std::vector<std::pair<std::string, int64_t>> loops;
  for (const auto* loop = as<stmt::Loop>(semantics->body); loop; loop = as<stmt::Loop>(loop->body))
    loops.emplace_back(loop->var, as_const(loop->extent).value_or(0));
  if (loops.size() != 3) return std::nullopt;
  out.row = loops[0].first, out.column = loops[1].first, out.depth = loops[2].first;
  out.m = loops[0].second, out.n = loops[1].second, out.k = loops[2].second;
  const auto placed = [&](int32_t parameter, const std::string& first, const std::string& second) {
    return placement_of(*semantics, BufferId{parameter}, {first, second}, out.together);
  };
  const auto left = placed(0, out.row, out.depth), right = placed(1, out.column, out.depth),
             added = placed(2, out.row, out.column);
  if (!left || !right || !added) return std::nullopt;
  out.left = *left, out.right = *right, out.sums = *added;
  return out;
}

int64_t whole_tiles(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile * tile; }

std::vector<int64_t> row_tiles(const BlockTile& usual, const TileRoom& room) {
  std::vector<int64_t> tiles;
  for (int64_t rows = kShortestTile; rows <= kLongestTile; ++rows) {
    const bool power = (rows & (rows - 1)) == 0;
    if (!room.rows ? usual.rows % rows == 0
                   : (power || *room.rows % rows == 0) &&
                         whole_tiles(*room.rows, rows) <= room.padded_rows.value_or(0))
      tiles.push_back(rows);
  }
  return tiles;
}

std::vector<int64_t> column_tiles(const TileRoom& room) {
  std::vector<int64_t> tiles;
  for (int64_t columns = kShortestTile; columns <= kLongestTile; columns += kShortestTile)
    if ((room.panel % columns == 0 || columns % room.panel == 0) &&
        whole_tiles(room.columns, columns) <= room.padded_columns)
      tiles.push_back(columns);
  return tiles;
}

}  // namespace

bool sums_tf32(const Expr& sum) {
  bool found = false;
  visit(sum, [&](const Expr& e) {
    if (as_unary(e, UnaryOp::tf32)) found = true;
  });
  return found;
}

const MemoryScope* block_memory(const Target& target) {
  const auto found = std::ranges::find(target.scopes, "block", &MemoryScope::level);
  return found == target.scopes.end() || target.local_bytes == 0 ? nullptr : &*found;
}

std::vector<TileInstruction> tile_instructions(const Target& target, const TileOperands& operands) {
  std::vector<TileInstruction> all;
  for (const Intrinsic& intrinsic : target.intrinsics)
    if (auto found = read_instruction(intrinsic, operands);
        found && kWhole % found->m == 0 && kWhole % found->n == 0)
      all.push_back(std::move(*found));
  return all;
}

bool copies_alone(const Target& target) {
  return std::ranges::any_of(target.intrinsics,
                             [](const Intrinsic& i) { return i.emit == "async"; });
}

std::string tile_fault(const BlockTile& tile, const Target& target, DType type,
                       const TileInstruction* instruction) {
  if (instruction && (tile.thread_rows % instruction->m != 0 || tile.lanes % instruction->n != 0 ||
                      tile.depth % instruction->k != 0))
    return "the tile is not made of whole instructions";
  if (tile.rows % tile.thread_rows != 0 || tile.columns % tile.lanes != 0)
    return "the parts of the threads do not fill the block's tile";
  if (tile.thread_rows % tile.row_groups != 0 || tile.lanes % tile.column_groups != 0)
    return "the groups do not fill the part of a thread";
  const auto axis = std::ranges::find(target.axes, "thread", &DeviceAxis::level);
  const int64_t along = instruction ? instruction->together : tile.threads();
  if (axis != target.axes.end() && axis->max > 0 && along > axis->max)
    return "the tile has more threads than the axis " + axis->name;
  if (tile.threads() > target.max_group) return "the tile has more threads than a block";
  if ((tile.rows + tile.columns) * tile.depth * dtype_bytes(type) > target.local_bytes)
    return "the tile's operands do not fit the block's memory";
  return "";
}

BlockTile choose_tile(ScheduleBuilder& s, const BlockTile& usual, const TileRoom& room,
                      const TileInstruction* instruction) {
  BlockTile tile = usual;
  if (instruction) tile.together = instruction->together;
  tile.rows = s.choose("tile_rows", usual.rows, row_tiles(usual, room));
  tile.columns = s.choose("tile_columns", usual.columns, column_tiles(room));
  std::vector<int64_t> depths;
  for (const int64_t depth : divisors(room.depth, kDeepestTile))
    if (depth % kDepthStep == 0) depths.push_back(depth);
  tile.depth = s.choose("tile_depth", usual.depth, depths);
  if (instruction) {
    tile.thread_rows = s.choose("warp_rows", usual.thread_rows, {8, 16, 32, 64, 128});
    tile.lanes = s.choose("warp_columns", usual.lanes, {8, 16, 32, 64, 128});
  } else {
    tile.thread_rows = s.choose("thread_rows", usual.thread_rows, {1, 2, 4, 7, 8, 14, 16});
    tile.lanes = s.choose("thread_columns", usual.lanes, {1, 2, 4, 8, 16, 32});
    tile.row_groups = s.choose("row_groups", 1, {1, 2, 4});
    tile.column_groups = s.choose("column_groups", 1, {1, 2, 4});
  }
  std::string fault = tile_fault(tile, s.target(), room.operands.type, instruction);
  if (s.rules() && tile.thread_rows * tile.lanes > kMostThreadSums * tile.together)
    fault = "a thread has more sums than registers";
  if (instruction && room.panel % tile.lanes != 0)
    fault = "the columns of an instruction's threads lie in more than one panel";
  if (!fault.empty()) s.fail(fault);
  return tile;
}

}  // namespace tw
