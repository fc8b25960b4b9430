// What is known about a tensor at one place, field by field, and how two such facts are put together.
//
// Three ways, because three different questions are asked:
//   join      where control flow meets: what holds whichever way execution came. An arm that says nothing
//   spoils it. refine    two facts about one tensor, the second from a place that the first dominates: the
//   nearer one is sharper. combine   facts about one tensor of which any may apply: a field on which they
//   differ varies.
// All are commutative up to the reasons they keep, except refine.
#pragma once
#include <cstdint>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "engine/profile/reason.h"

namespace faultline::profile {

// From "still anything" down to "nothing can be said": join never goes up.
enum class CellState : uint8_t {
  Neutral,  // only code that never ran, or None: takes no part in a join
  Value,
  Varies,
  Ended,
  Nothing,
};

struct Cell {
  CellState state = CellState::Nothing;
  bool covers = true;  // false: the evidence neither dominates nor post-dominates the place
  ReasonId reason = kNoReason;
  int64_t value = 0;

  bool known() const { return state == CellState::Value; }
  bool speaks() const { return state == CellState::Value || state == CellState::Varies; }
  bool operator==(const Cell&) const = default;
};

// Fields that end together are analysed together.
enum Fields : uint8_t {
  kIdentity = 1,  // defined, dtype, device
  kShape = 2,     // rank, sizes, strides
  kGradient = 4,  // requires_grad
  kAllFields = 7,
};

struct Fact {
  Cell defined;
  Cell dtype;   // c10::ScalarType
  Cell device;  // encodeDevice
  Cell rank;
  Cell requires_grad;
  std::vector<Cell> sizes;    // as many as rank says, none when it is not a value
  std::vector<Cell> strides;  // likewise

  bool operator==(const Fact&) const = default;
};

int64_t encodeDevice(c10::Device device);
c10::Device decodeDevice(int64_t code);

// Every field in `state`, for the same reason.
Fact uniformFact(CellState state, ReasonId reason = kNoReason);
// Fields outside `fields` become Nothing.
void keepOnly(Fact& fact, uint8_t fields);

Fact join(const Fact& a, const Fact& b);
Fact refine(const Fact& far, const Fact& near);
Fact combine(const Fact& a, const Fact& b);

// The fields of the mask as in `from`, the others as in `into`.
Fact overlay(const Fact& into, const Fact& from, uint8_t fields);

// Applies `change` to every cell of the fields in the mask; a rank that stops being a value takes its
// dimensions along.
template <class F>
void forEachCell(Fact& fact, uint8_t fields, F change) {
  if (fields & kIdentity) {
    change(fact.defined);
    change(fact.dtype);
    change(fact.device);
  }
  if (fields & kShape) {
    change(fact.rank);
    for (Cell& cell : fact.sizes) change(cell);
    for (Cell& cell : fact.strides) change(cell);
    if (!fact.rank.known()) {
      fact.sizes.clear();
      fact.strides.clear();
    }
  }
  if (fields & kGradient) change(fact.requires_grad);
}

// Does any cell of the mask satisfy it?
template <class F>
bool anyCell(const Fact& fact, uint8_t fields, F test) {
  bool found = false;
  forEachCell(const_cast<Fact&>(fact), fields, [&](const Cell& cell) { found = found || test(cell); });
  return found;
}

}  // namespace faultline::profile
