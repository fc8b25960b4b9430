// Fills a program: inputs first, then ops, chains, stretches of aliases, branches, loops, grad-mode regions
// and containers.
#pragma once
#include <optional>
#include <vector>

#include "generators/generate/program.h"

namespace faultline {

void drawInputs(ProgramBuilder& program);
void growProgram(ProgramBuilder& program);
// What the graph returns: mostly what nobody used, so that most nodes matter. May add nodes.
std::vector<torch::jit::Value*> chooseReturns(ProgramBuilder& program);

// For the sources of this folder: steps put something into the open block, if they find operands for it.
void growBlock(ProgramBuilder& program);  // a few ops into a block of an If or Loop, or into a region
void growBranch(ProgramBuilder& program);
void growLoop(ProgramBuilder& program);
void growGradModeRegion(ProgramBuilder& program);
void growList(ProgramBuilder& program);
void growTuple(ProgramBuilder& program);
void growChain(ProgramBuilder& program);
void growAliases(ProgramBuilder& program);

// One of these, rather one whose gradient is still loose; nothing: there are none.
std::optional<Operand> pickTensor(ProgramBuilder& program, const std::vector<Operand>& from);

}  // namespace faultline
