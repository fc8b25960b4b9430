#include "engine/graph_break/break_reasons.h"

#include <array>

#include <fmt/format.h>

namespace faultline {

namespace {

struct Row {
  std::string_view code, sentence;
};

const std::array rows = {
#define FAULTLINE_BREAK(code, sentence) Row{#code, sentence},
#include "engine/graph_break/breaks.def"
#undef FAULTLINE_BREAK
};

}  // namespace

std::string_view breakCode(BreakReason reason) { return rows[static_cast<size_t>(reason)].code; }

RefusedCut refusedCut(BreakReason reason, std::string at, std::string_view culprit) {
  const Row& row = rows[static_cast<size_t>(reason)];
  return {std::move(at), std::string(row.code), fmt::format(fmt::runtime(row.sentence), culprit), {}};
}

}  // namespace faultline
