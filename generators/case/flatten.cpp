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

std::string whyNot(const Node& node) {
  const auto type =
      node.kind() == prim::CreateObject ? node.output()->type()->cast<c10::ClassType>() : nullptr;
  const std::string of = type && type->name() ? type->name()->qualifiedName() : "";
  if (of.find("autocast") != std::string::npos) {
    return "'with autocast' is an object, which graphs cannot hold: enter it around the call, or cast where "
           "it "
           "is meant to, as in x.to(torch.bfloat16)";
  }
  constexpr std::string_view kPrefix = "__torch__.";
  const bool prefixed = of.rfind(kPrefix, 0) == 0;
  return fmt::format("{}{} stands for a function or an object, which graphs cannot hold",
                     node.kind().toQualString(),
                     of.empty() ? "" : fmt::format(" of {}", prefixed ? of.substr(kPrefix.size()) : of));
}

Result<void> check(Block* block) {
  for (auto at = block->nodes().begin(); at != block->nodes().end(); ++at) {
    Node* node = *at;
    for (Block* inner : node->blocks()) {
      if (auto checked = check(inner); !checked) return checked;
    }
    // What is forked runs by itself, and calls too.
    if (node->hasAttribute(torch::jit::attr::Subgraph)) {
      if (auto flat = flattenCalls(*node->g(torch::jit::attr::Subgraph)); !flat) return flat;
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
    return fail(ErrorKind::Unsupported, whyNot(*node), where);
  }
  return {};
}

bool isNoGrad(const Node* node) {
  const auto type = node->output()->type()->cast<c10::ClassType>();
  return type && type->name() &&
         type->name()->qualifiedName() == "__torch__.torch.autograd.grad_mode.no_grad";
}

// `with torch.no_grad():` is an object of a script class that is entered and left; a graph says it with ops.
class NoGradLowering {
 public:
  explicit NoGradLowering(torch::jit::Graph& graph) : graph_(graph) {}

  void run() {
    collect(graph_.block());
    for (Node* object : objects_) lower(object);
  }

 private:
  void collect(Block* block) {
    for (Node* node : block->nodes()) {
      if (node->kind() == prim::CreateObject && isNoGrad(node)) objects_.push_back(node);
      for (Block* inner : node->blocks()) collect(inner);
    }
  }

  // One that is used in any other way stays, and is refused.
  void lower(Node* object) {
    Node* enter = nullptr;
    std::vector<Node*> sets, exits;
    for (const torch::jit::Use& use : object->output()->uses()) {
      Node* user = use.user;
      const bool idle = std::none_of(user->outputs().begin(), user->outputs().end(),
                                     [](const torch::jit::Value* output) { return output->hasUses(); });
      if (user->kind() == prim::SetAttr && use.offset == 0) {
        sets.push_back(user);
      } else if (user->kind() == prim::Enter && enter == nullptr && idle) {
        enter = user;
      } else if (user->kind() == prim::Exit && idle) {
        exits.push_back(user);
      } else {
        return;
      }
    }
    if (enter == nullptr ||
        std::any_of(exits.begin(), exits.end(), [&](Node* exit) { return !exit->isDominatedBy(enter); })) {
      return;
    }
    torch::jit::Value* before = nullptr;
    {
      const torch::jit::WithInsertPoint here(enter);
      before = graph_.insert(c10::Symbol::fromQualString("aten::is_grad_enabled"), {});
      setGradMode(graph_.insertConstant(false));
    }
    for (Node* exit : exits) {
      const torch::jit::WithInsertPoint here(exit);
      setGradMode(before);
      exit->destroy();
    }
    enter->destroy();
    for (Node* set : sets) set->destroy();
    object->destroy();
  }

  void setGradMode(torch::jit::Value* enabled) {
    graph_.insertNode(
        graph_.create(c10::Symbol::fromQualString("aten::set_grad_enabled"), {enabled}, /*num_outputs=*/0));
  }

  torch::jit::Graph& graph_;
  std::vector<Node*> objects_;
};

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
  NoGradLowering(graph).run();
  return check(graph.block());
}

}  // namespace faultline
