#include <fmt/format.h>

#include "engine/ir/describe.h"
#include "engine/ir/walk.h"
#include "engine/support/check.h"
#include "faultline/ir.h"

namespace faultline {
namespace {

using torch::jit::AttributeKind;

// Nodes whose subgraph is not what they do in place: it runs later (fork, awaitable), elsewhere (closures),
// or stands for the rest of the program (bailouts).
bool runsInPlace(const Node& node) {
  return node.kind() != c10::prim::fork && node.kind() != c10::prim::awaitable &&
         node.kind() != c10::prim::Closure && node.kind() != c10::prim::BailOut &&
         node.kind() != c10::prim::BailoutTemplate;
}

bool hasSubgraph(const Node& node) {
  return node.hasAttribute(c10::attr::Subgraph) && node.kindOf(c10::attr::Subgraph) == AttributeKind::g &&
         node.g(c10::attr::Subgraph) != nullptr;
}

class Inliner {
 public:
  explicit Inliner(Graph& graph) : graph_(graph) {}

  void run() {
    // Found first, inlined after: what is inlined brings further ones, which are found in the copy.
    std::vector<Pending> pending;
    forEachNode(graph_.block(), [&](Node* node) { consider(node, false, pending); });
    while (!pending.empty()) {
      const Pending next = pending.back();
      pending.pop_back();
      inlineNode(next, pending);
    }
  }

 private:
  struct Pending {
    Node* node;
    bool detached;  // stands inside a DifferentiableGraph
  };

  void inlineNode(const Pending& pending, std::vector<Pending>& found) {
    Node* const node = pending.node;
    const bool detached = pending.detached || node->kind() == c10::prim::DifferentiableGraph;
    // A copy, for the executor may hold the original, and its values are renamed here.
    const std::shared_ptr<Graph> body = node->g(c10::attr::Subgraph)->copy();
    FAULTLINE_CHECK(
        body->inputs().size() == node->inputs().size() && body->outputs().size() >= node->outputs().size(),
        "inlineSubgraphs: the subgraph of " + describeNode(*node) + " does not fit it");
    renameClashes(*body);
    if (detached) {
      forgetDetachedGradients(*body);
    }

    std::unordered_map<Value*, Value*> made;
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      made.emplace(body->inputs()[i], node->input(i));
    }
    const auto value_of = [&](Value* value) { return made.at(value); };
    for (Node* original : body->nodes()) {
      Node* clone = graph_.createClone(original, value_of)->insertBefore(node);
      for (size_t i = 0; i < original->outputs().size(); ++i) {
        made.emplace(original->output(i), clone->output(i));
      }
      consider(clone, detached, found);
      for (torch::jit::Block* block : clone->blocks()) {
        forEachNode(block, [&](Node* inner) { consider(inner, detached, found); });
      }
    }
    // A differentiated node returns fewer values than its subgraph: behind the first f_real_outputs ones
    // stand those that the backward pass needs.
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      Value* result = value_of(body->outputs()[i]);
      const bool computed = body->outputs()[i]->node() != body->param_node();
      // Whoever uses the node's output was built for its type.
      if (computed && node->output(i)->type()->isSubtypeOf(*result->type())) {
        result->setType(node->output(i)->type());
      }
      node->output(i)->replaceAllUsesWith(result);
    }
    node->destroy();
  }

  // A node whose subgraph runs in place is put on the list; one whose subgraph runs later is done at once,
  // inside.
  static void consider(Node* node, bool detached, std::vector<Pending>& found) {
    if (!hasSubgraph(*node)) {
      return;
    }
    if (runsInPlace(*node)) {
      found.push_back({node, detached});
    } else if (node->kind() != c10::prim::BailOut && node->kind() != c10::prim::BailoutTemplate) {
      inlineSubgraphs(*node->g(c10::attr::Subgraph));
    }
  }

  // setDebugName takes a name away from the value that has it; users know the outer values by name.
  void renameClashes(Graph& body) {
    std::vector<Value*> values(body.inputs().begin(), body.inputs().end());
    forEachNode(body.block(), [&](Node* node) {
      values.insert(values.end(), node->outputs().begin(), node->outputs().end());
      for (torch::jit::Block* block : node->blocks()) {
        values.insert(values.end(), block->inputs().begin(), block->inputs().end());
      }
    });
    for (Value* value : values) {
      if (value->hasDebugName() && graph_.debugNames().count(value->debugName()) != 0) {
        value->setDebugName(freshName(value->debugName(), body));
      }
    }
  }

  std::string freshName(const std::string& name, const Graph& body) {
    const size_t dot = name.find_last_of('.');
    const bool numbered = dot != std::string::npos && dot != 0 && dot + 1 < name.size() &&
                          name.find_first_not_of("0123456789", dot + 1) == std::string::npos;
    const std::string base = numbered ? name.substr(0, dot) : name;
    size_t& suffix = suffixes_[base];
    std::string fresh;
    do {
      fresh = fmt::format("{}.{}", base, ++suffix);
    } while (graph_.debugNames().count(fresh) != 0 || body.debugNames().count(fresh) != 0);
    return fresh;
  }

  // A running DifferentiableGraph detaches its inputs, so its values are marked as without gradient; outside
  // they are not. Only marks that say so go: that a value needs a gradient means the inlined value (design of
  // the IR).
  static void forgetDetachedGradients(Graph& body) {
    const auto forget = [](Value* value) {
      const auto type = value->type()->cast<c10::TensorType>();
      if (type && type->requiresGrad() == std::optional<bool>(false)) {
        value->setType(type->withRequiresGrad(std::nullopt));
      }
    };
    forEachNode(body.block(), [&](Node* node) {
      std::for_each(node->outputs().begin(), node->outputs().end(), forget);
      for (torch::jit::Block* block : node->blocks()) {
        std::for_each(block->inputs().begin(), block->inputs().end(), forget);
      }
    });
  }

  Graph& graph_;
  std::unordered_map<std::string, size_t> suffixes_;
};

}  // namespace

void inlineSubgraphs(Graph& graph) { Inliner(graph).run(); }

}  // namespace faultline
