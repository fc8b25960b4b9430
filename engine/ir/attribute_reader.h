// Attributes of nodes in IR text.
#pragma once
#include <torch/csrc/jit/ir/ir.h>

#include <functional>
#include <optional>
#include <string>

#include "engine/ir/lexer.h"

namespace faultline {

// "f", "is", "ival" …, as the accessors of torch::jit::Node are called.
const char* attributeKindName(torch::jit::AttributeKind kind);
std::optional<torch::jit::AttributeKind> attributeKindByName(std::string_view name);

// Names that libtorch gives to attributes, and ours (faultline_…). Others must say their kind in text, so
// that a slip of the fingers is not taken for one.
bool isKnownAttribute(std::string_view name);

// Called for each `@name` with what to do when the graph of that name has been read.
using GraphReference = std::function<void(const std::string& name, size_t begin,
                                          std::function<void(std::shared_ptr<torch::jit::Graph>)>)>;

// Takes `[name=value, name:kind=value, …]`; the '[' is next. Outputs of the node have their types already:
// they say what the value of a prim::Constant is. Throws ReadFailure.
void readAttributes(Lexer& lexer, torch::jit::Node& node, const GraphReference& refer);

}  // namespace faultline
