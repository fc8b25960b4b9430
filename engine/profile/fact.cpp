#include "engine/profile/fact.h"

#include <algorithm>

namespace faultline::profile {
namespace {

Cell joinCells(const Cell& a, const Cell& b) {
  if (a.state == CellState::Neutral) return b;
  if (b.state == CellState::Neutral) return a;
  Cell result = a.state >= b.state ? a : b;
  result.covers = a.covers && b.covers;
  if (a.known() && b.known() && a.value != b.value) {
    result.state = CellState::Varies;
    result.value = 0;
    result.reason = kNoReason;
  }
  return result;
}

// Of two facts about one tensor: what speaks wins over what does not, an ended fact over none; the first of
// equals.
const Cell& moreTelling(const Cell& a, const Cell& b) {
  if (a.state == CellState::Neutral || b.state == CellState::Neutral) {
    return a.state == CellState::Neutral ? (b.state == CellState::Nothing ? a : b)
                                         : (a.state == CellState::Nothing ? b : a);
  }
  return a.state <= b.state ? a : b;
}

Cell combineCells(const Cell& a, const Cell& b) {
  if (!a.speaks() || !b.speaks()) return moreTelling(a, b);
  return joinCells(a, b);
}

Cell refineCells(const Cell& far, const Cell& near) {
  if (!far.speaks() || !near.speaks()) return moreTelling(near, far);
  if (far.state == CellState::Varies) return near;
  return joinCells(far, near);
}

template <Cell (*Op)(const Cell&, const Cell&)>
void dimensions(std::vector<Cell>& out, const std::vector<Cell>& a, const std::vector<Cell>& b) {
  if (a.size() == b.size()) {
    for (size_t i = 0; i < a.size(); ++i) out.push_back(Op(a[i], b[i]));
  } else {
    out = a.empty() ? b : a;
  }
}

template <Cell (*Op)(const Cell&, const Cell&)>
Fact fieldwise(const Fact& a, const Fact& b) {
  Fact result;
  result.defined = Op(a.defined, b.defined);
  result.dtype = Op(a.dtype, b.dtype);
  result.device = Op(a.device, b.device);
  result.requires_grad = Op(a.requires_grad, b.requires_grad);
  result.rank = Op(a.rank, b.rank);
  if (!result.rank.known()) return result;
  // Where only one side knows the rank, the result's rank is that side's, and so are its dimensions.
  dimensions<Op>(result.sizes, a.sizes, b.sizes);
  dimensions<Op>(result.strides, a.strides, b.strides);
  return result;
}

}  // namespace

int64_t encodeDevice(c10::Device device) {
  return (static_cast<int64_t>(device.type()) << 8) | static_cast<uint8_t>(device.index());
}

c10::Device decodeDevice(int64_t code) {
  return c10::Device(static_cast<c10::DeviceType>(code >> 8),
                     static_cast<c10::DeviceIndex>(static_cast<int8_t>(code & 0xff)));
}

Fact uniformFact(CellState state, ReasonId reason) {
  Cell cell;
  cell.state = state;
  cell.reason = reason;
  Fact fact;
  fact.defined = fact.dtype = fact.device = fact.rank = fact.requires_grad = cell;
  return fact;
}

void keepOnly(Fact& fact, uint8_t fields) {
  forEachCell(fact, static_cast<uint8_t>(kAllFields & ~fields), [](Cell& cell) { cell = Cell{}; });
}

Fact overlay(const Fact& into, const Fact& from, uint8_t fields) {
  Fact result = into;
  if (fields & kIdentity) {
    result.defined = from.defined;
    result.dtype = from.dtype;
    result.device = from.device;
  }
  if (fields & kShape) {
    result.rank = from.rank;
    result.sizes = from.sizes;
    result.strides = from.strides;
  }
  if (fields & kGradient) result.requires_grad = from.requires_grad;
  return result;
}

Fact join(const Fact& a, const Fact& b) { return fieldwise<joinCells>(a, b); }
Fact refine(const Fact& far, const Fact& near) { return fieldwise<refineCells>(far, near); }
Fact combine(const Fact& a, const Fact& b) { return fieldwise<combineCells>(a, b); }

}  // namespace faultline::profile
