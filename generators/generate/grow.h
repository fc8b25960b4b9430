// Fills a program: inputs first, then ops, chains, branches, loops, grad-mode regions and containers.
#pragma once
#include <optional>
#include <vector>

#include "generators/generate/program.h"

namespace faultline {

void drawInputs(Program& program);
void growProgram(Program& program);
// What the graph returns: mostly what nobody used, so that most nodes matter. May add nodes.
std::vector<torch::jit::Value*> chooseReturns(Program& program);

// For the sources of this folder: steps put something into the open block, if they find operands for it.
void growBlock(Program& program);  // a few ops into a block of an If or Loop, or into a region
void growBranch(Program& program);
void growLoop(Program& program);
void growGradModeRegion(Program& program);
void growList(Program& program);
void growTuple(Program& program);
void growChain(Program& program);

// One of these, rather one whose gradient is still loose; nothing: there are none.
std::optional<Operand> pickTensor(Program& program, const std::vector<Operand>& from);

}  // namespace faultline
