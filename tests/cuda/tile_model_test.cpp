// The usual tiles of products, by the rates in the shipped descriptions.
#include <doctest/doctest.h>

#include "ir/kernel/stack_limits.h"
#include "kernels/device/tile_model.h"
#include "tests/cuda/fake.h"

using namespace tw;

namespace {

const char* const kChips[] = {"sm75", "sm80", "sm86", "sm89", "sm90a", "sm120"};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::i8};

Target chip(const std::string& name) { return test::cuda_target("nvidia-" + name).main_device(); }

TileProblem product(int64_t rows, int64_t columns, int64_t depth, DType type = DType::f16) {
  TileProblem p;
  p.batches = 1, p.rows = rows, p.columns = columns, p.depth = depth, p.operands.type = type;
  return p;
}

BlockTile usual(const Target& device, const TileProblem& problem) {
  const std::optional<BlockTile> tile = block_tile(device, problem);
  REQUIRE(tile);
  return *tile;
}

// Returns nullopt if the device has no instruction for these operands.
std::optional<TileInstruction> instruction_of(const BlockTile& tile, const TileProblem& problem,
                                              const Target& device) {
  std::vector<TileInstruction> all = tile_instructions(device, problem.operands);
  if (all.empty()) return std::nullopt;
  return all[static_cast<size_t>(tile.instruction)];
}

int64_t blocks(const BlockTile& tile, const TileProblem& problem) {
  const auto tiles = [](int64_t extent, int64_t size) { return (extent + size - 1) / size; };
  return tiles(*problem.rows, tile.rows) * tiles(problem.columns, tile.columns) * tile.parts;
}

}  // namespace

TEST_CASE("large products have large tiles, small ones small tiles") {
  for (const std::string name : kChips)
    for (const DType type : {DType::f32, DType::f16}) {
      CAPTURE(name);
      const Target device = chip(name);
      const BlockTile large = usual(device, product(16384, 16384, 4096, type)),
                      small = usual(device, product(64, 64, 64, type));
      // Without matrix instructions, threads multiply too slowly for large tiles to pay.
      CHECK(large.rows * large.columns >= (type == DType::f16 ? 64 * 64 : 32 * 64));
      CHECK(large.parts == 1);
      CHECK(small.rows * small.columns < large.rows * large.columns);
      CHECK(blocks(small, product(64, 64, 64, type)) >= 2);
    }
}

TEST_CASE("few tiles of deep products are split, and many are not") {
  const Target device = chip("sm80");
  const BlockTile deep = usual(device, product(64, 64, 16384));
  CHECK(deep.parts > 1);
  CHECK(usual(device, product(4096, 4096, 16384)).parts == 1);
  CHECK(usual(device, product(64, 64, 64)).parts == 1);
  TileProblem free = product(64, 64, 16384);
  free.rows.reset();  // an unknown size: parts may not pay
  CHECK(usual(device, free).parts == 1);
}

TEST_CASE("chosen tiles keep to the limits of every chip") {
  for (const std::string name : kChips)
    for (const DType type : kTypes)
      for (const int64_t size : {24, 100, 512, 3000}) {
        CAPTURE(name);
        CAPTURE(size);
        const Target device = chip(name);
        const TileProblem problem = product(size, size + 8, 2 * size, type);
        const std::optional<BlockTile> tile = block_tile(device, problem);
        if (!tile) {
          CHECK(tile_instructions(device, problem.operands).empty());
          continue;
        }
        const auto by = instruction_of(*tile, problem, device);
        const TileInstruction* instruction = by ? &*by : nullptr;
        CHECK(tile_fault(*tile, device, type, instruction) == "");
        CHECK(resident_blocks(*tile, problem, device, instruction) >= 1);
        CHECK(thread_registers(*tile, type, instruction) <= 200);
        CHECK(tile->threads() <= device.max_group);
        CHECK(tile->rows * tile->columns * 4 <= kMaxStackBufferBytes);
      }
}

TEST_CASE("less memory, registers or threads leave fewer blocks, or none") {
  const Target device = chip("sm80");
  const TileProblem problem = product(4096, 4096, 4096);
  const BlockTile tile = usual(device, problem);
  const TileInstruction by = *instruction_of(tile, problem, device);
  const int64_t most = resident_blocks(tile, problem, device, &by);
  for (int64_t Multiprocessors::* limit :
       {&Multiprocessors::registers, &Multiprocessors::local_bytes, &Multiprocessors::threads}) {
    Target less = device;
    less.multiprocessors.*limit = device.multiprocessors.*limit / 16;
    CHECK(resident_blocks(tile, problem, less, &by) < most);
  }
  Target narrow = device;
  narrow.local_bytes = 4 << 10;
  CHECK(resident_blocks(tile, problem, narrow, &by) == 0);
  CHECK_FALSE(tile_cycles(tile, problem, narrow, &by));
  const BlockTile other = usual(narrow, problem);
  CHECK(other.rows * other.columns < tile.rows * tile.columns);
  narrow.local_bytes = 256;
  CHECK_FALSE(block_tile(narrow, problem));
}

TEST_CASE("the number of multiprocessors decides, and every rate can") {
  Target few = chip("sm80"), many = few;
  few.multiprocessors.count = 4, many.multiprocessors.count = 400;
  const TileProblem problem = product(512, 512, 1024);
  const BlockTile on_few = usual(few, problem), on_many = usual(many, problem);
  CHECK(blocks(on_many, problem) > blocks(on_few, problem));
  const Target device = chip("sm80");
  const BlockTile tile = usual(device, problem);
  const TileInstruction by = *instruction_of(tile, problem, device);
  const int64_t cycles = *tile_cycles(tile, problem, device, &by);
  for (int64_t Multiprocessors::* rate :
       {&Multiprocessors::count, &Multiprocessors::f16, &Multiprocessors::local_rate,
        &Multiprocessors::l2_rate, &Multiprocessors::memory_rate}) {
    Target slower = device;
    slower.multiprocessors.*rate = std::max<int64_t>(1, device.multiprocessors.*rate / 100);
    CHECK(*tile_cycles(tile, problem, slower, &by) > cycles);
  }
  Target later = device;
  later.multiprocessors.latency *= 10;
  CHECK(*tile_cycles(tile, problem, later, &by) > cycles);
}

TEST_CASE("a block more than the multiprocessors hold is another wave") {
  Target device = chip("sm80");
  device.multiprocessors.count = 10;
  const TileProblem fits = product(64 * 10, 64, 4096), more = product(64 * 11, 64, 4096);
  BlockTile tile = usual(device, fits);
  tile.rows = tile.columns = 64, tile.thread_rows = tile.lanes = 32, tile.parts = 1;
  const TileInstruction by = *instruction_of(tile, fits, device);
  CHECK(*tile_cycles(tile, more, device, &by) > *tile_cycles(tile, fits, device, &by));
  const TileProblem twice = product(64 * 20, 64, 4096);
  CHECK(*tile_cycles(tile, twice, device, &by) >= *tile_cycles(tile, more, device, &by));
}

TEST_CASE("what a description does not say follows by rule, and sizes may be huge") {
  Target device = chip("sm80");
  device.multiprocessors = {};
  const Multiprocessors by_rule = multiprocessors(device);
  for (const MultiprocessorKey& key : kMultiprocessorKeys) CHECK(by_rule.*key.rate > 0);
  CHECK(by_rule.f16 == 8 * by_rule.f32);
  const int64_t huge = int64_t{1} << 40;
  for (const DType type : kTypes) {
    TileProblem problem = product(huge, huge, huge, type);
    problem.batches = huge;
    const BlockTile tile = usual(device, problem);
    const auto by = instruction_of(tile, problem, device);
    CHECK(*tile_cycles(tile, problem, device, by ? &*by : nullptr) > 0);
  }
}

TEST_CASE("products that share too little have no tile") {
  const Target device = chip("sm80");
  CHECK_FALSE(block_tile(device, product(16, 512, 512)));
  CHECK_FALSE(block_tile(device, product(512, 16, 512)));
  CHECK_FALSE(block_tile(device, product(512, 512, 4)));
  CHECK(block_tile(device, product(24, 24, 8)));
  CHECK_FALSE(block_tile(device, product(512, 512, 512, DType::f64)));
}
