// What each kind of node must look like. All functions give what is wrong as a sentence without a subject, or
// nothing.
#pragma once
#include <torch/csrc/jit/ir/ir.h>

#include <string>

namespace faultline {

// A value of type `actual` may arrive where `formal` is written. What a tensor type says beyond "Tensor" is a
// hint that passes let go stale, and is not compared.
bool typeFits(const c10::TypePtr& actual, const c10::TypePtr& formal);

// Kinds that the interpreter or the passes treat by themselves: If, Loop, constants, containers, subgraph
// nodes …
bool hasStructureRule(c10::Symbol kind);
std::string structureProblem(const torch::jit::Node& node);

// The value of a prim::Constant against the type of its output.
std::string constantProblem(const torch::jit::Node& node);

// Nodes whose work is in attr::Subgraph; they must have one. A node of another kind that has one is treated
// alike.
bool isSubgraphKind(c10::Symbol kind);
std::string subgraphProblem(const torch::jit::Node& node);

// Everything else: an operator of that name takes these inputs and gives these outputs.
std::string schemaProblem(const torch::jit::Node& node);

}  // namespace faultline
