// Rows of breaks.def.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "faultline/graph_break.h"

namespace faultline {

enum class BreakReason {
#define FAULTLINE_BREAK(code, sentence) code,
#include "engine/graph_break/breaks.def"
#undef FAULTLINE_BREAK
};

std::string_view breakCode(BreakReason reason);
RefusedCut refusedCut(BreakReason reason, std::string at, std::string_view culprit);

}  // namespace faultline
