#include "kernels/attention/deal.h"

namespace tw {
namespace {

int64_t product(const std::vector<int64_t>& numbers) {
  int64_t all = 1;
  for (const int64_t n : numbers) all *= n;
  return all;
}

// The number of the thread among those with the same place on the other axis
Expr thread_part(const std::vector<PlacementDigit>& digits, const Expr& thread) {
  Expr part = 0;
  int64_t step = 1;
  for (const PlacementDigit& digit : digits) {
    if (digit.thread == 0) continue;
    part = part + floor_mod(floor_div(thread, Expr(digit.thread)), Expr(digit.extent)) * Expr(step);
    step *= digit.extent;
  }
  return part;
}

int64_t digit_threads(const std::vector<PlacementDigit>& digits) {
  int64_t threads = 1;
  for (const PlacementDigit& digit : digits)
    if (digit.thread != 0) threads *= digit.extent;
  return threads;
}

}  // namespace

int64_t Deal::thread_count() const { return product(threads); }

Shape Deal::row_shape() const {
  Shape shape;
  for (const int64_t n : threads) shape.push_back(Expr(n));
  for (const int64_t n : rows) shape.push_back(Expr(n));
  return shape;
}

Deal scalar_deal(int64_t rows, int64_t columns, int64_t thread_rows, int64_t across,
                 int64_t vector) {
  const int64_t apart = rows / thread_rows, groups = columns / (across * vector);
  Deal deal;
  deal.threads = {apart * across}, deal.rows = {thread_rows}, deal.columns = {groups, vector};
  deal.row_at = [=](const Index& thread, const Index& row) {
    return row[0] * Expr(apart) + floor_div(thread[0], Expr(across));
  };
  deal.column_at = [=](const Index& thread, const Index& column) {
    return column[0] * Expr(across * vector) + floor_mod(thread[0], Expr(across)) * Expr(vector) +
           column[1];
  };
  deal.place = [](const Index& thread, const Index& row, const Index& column) {
    return Index{thread[0], row[0], column[0], column[1]};
  };
  deal.shape = {Expr(apart * across), Expr(thread_rows), Expr(groups), Expr(vector)};
  deal.across = across;
  deal.part = [=](const Index& thread) { return floor_mod(thread[0], Expr(across)); };
  return deal;
}

Deal instruction_deal(const TileInstruction& by, int64_t rows, int64_t columns, int64_t warp_rows) {
  const std::vector<PlacementDigit>&down = by.sums.digits[0], &along = by.sums.digits[1];
  Deal deal;
  deal.threads = {rows / warp_rows, by.together};
  deal.rows = {warp_rows / by.m, digit_elements(down)};
  deal.columns = {columns / by.n, digit_elements(along)};
  deal.row_at = [&by, &down, warp_rows](const Index& thread, const Index& row) {
    return thread[0] * Expr(warp_rows) + row[0] * Expr(by.m) + digit_place(down, thread[1], row[1]);
  };
  deal.column_at = [&by, &along](const Index& thread, const Index& column) {
    return column[0] * Expr(by.n) + digit_place(along, thread[1], column[1]);
  };
  deal.place = [&by, &down, &along](const Index& thread, const Index& row, const Index& column) {
    Index at = {thread[0], row[0], column[0]};
    for (const Expr& e : placed(by, 2, by.row, digit_place(down, thread[1], row[1]), by.column,
                                digit_place(along, thread[1], column[1])))
      at.push_back(e);
    return at;
  };
  deal.shape = {Expr(deal.threads[0]), Expr(deal.rows[0]), Expr(deal.columns[0])};
  for (const Expr& extent : by.semantics->buffer(BufferId{2}).shape) deal.shape.push_back(extent);
  deal.across = digit_threads(along);
  deal.part = [&along](const Index& thread) { return thread_part(along, thread[1]); };
  return deal;
}

int64_t digit_elements(const std::vector<PlacementDigit>& digits) {
  int64_t elements = 1;
  for (const PlacementDigit& digit : digits)
    if (digit.thread == 0) elements *= digit.extent;
  return elements;
}

Expr digit_place(const std::vector<PlacementDigit>& digits, const Expr& thread,
                 const Expr& element) {
  Expr place = 0;
  int64_t step = 1;
  for (const PlacementDigit& digit : digits) {
    const Expr of = digit.thread != 0 ? floor_div(thread, Expr(digit.thread))
                                      : floor_div(element, Expr(step));
    place = place + floor_mod(of, Expr(digit.extent)) * Expr(digit.stride);
    if (digit.thread == 0) step *= digit.extent;
  }
  return place;
}

Index placed(const TileInstruction& by, int32_t parameter, const std::string& first_loop,
             const Expr& first, const std::string& second_loop, const Expr& second) {
  Index at = indices_of(*by.semantics, BufferId{parameter});
  // Substitutes both at once, since the places may use the loops' names as variables.
  const std::string a = first_loop + ".place", b = second_loop + ".place";
  for (Expr& e : at) {
    e = substitute(substitute(e, first_loop, var(a)), second_loop, var(b));
    e = substitute(substitute(e, a, first), b, second);
  }
  return at;
}

}  // namespace tw
