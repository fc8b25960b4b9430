#include "generators/case/flatten.h"

#include <fmt/format.h>
#include <torch/csrc/jit/passes/inliner.h>

#include "engine/ir/callers.h"
#include "faultline/ir.h"

namespace faultline {
namespace {

using torch::jit::Block;
using torch::jit::Node;
namespace prim = torch::jit::prim;

bool isFunction(const Node* node) {
  return node->kind() == prim::Constant && node->output()->type()->kind() == c10::TypeKind::FunctionType;
}

Result<void> check(Block* block) {
  for (auto at = block->nodes().begin(); at != block->nodes().end(); ++at) {
    Node* node = *at;
    for (Block* inner : node->blocks()) {
      if (auto checked = check(inner); !checked) return checked;
    }
    // What the inlined calls have left.
    if (isFunction(node) && !node->hasUses()) {
      at.destroyCurrent();
      continue;
    }
    bool refused = isFunction(node) || node->kind() == prim::CreateObject ||
                   node->kind() == prim::CallFunction || node->kind() == prim::CallMethod;
    if (!refused) continue;
    std::optional<SourceLocation> where;
    if (auto place = node->sourceRange().file_line_col()) {
      auto [file, line, column] = *place;
      where = SourceLocation{line, column + 1};
    }
    return fail(ErrorKind::Unsupported,
                fmt::format("{} stands for a function or an object, which graphs cannot hold",
                            node->kind().toQualString()),
                where);
  }
  return {};
}

bool nestedDeeper(const Block& block, size_t levels) {
  for (const Node* node : block.nodes()) {
    for (const Block* inner : node->blocks()) {
      if (levels == 0 || nestedDeeper(*inner, levels - 1)) return true;
    }
  }
  return false;
}

}  // namespace

Result<void> flattenCalls(torch::jit::Graph& graph) {
  if (nestedDeeper(*graph.block(), kMaxBlockNesting)) {
    return fail(ErrorKind::Unsupported,
                fmt::format("if, for and while are nested deeper than {} levels", kMaxBlockNesting));
  }
  torch::jit::Inline(graph);
  detachFromCallers(graph);
  return check(graph.block());
}

}  // namespace faultline
