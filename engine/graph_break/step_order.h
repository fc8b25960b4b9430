// The steps of a program whose Ifs and Loops are opened.
#pragma once
#include "engine/graph_break/working_copy.h"
#include "engine/runtime/compiled_graph.h"

namespace faultline {

// `ends`: of the pieces; `registerOf`: the register of a value.
std::vector<RunStep> stepsOf(const WorkingCopy& work, const std::vector<size_t>& ends,
                             const std::function<Register(const Value*)>& registerOf);

// When registers are read for the last time, from the end: fills `last_used` of pieces and steps. `kept`: by
// register, read later or for good. Where `steps` is empty pieces run once each, in their order.
void findLastUses(std::vector<PlacedPiece>& pieces, std::vector<RunStep>& steps, std::vector<bool>& kept);

}  // namespace faultline
