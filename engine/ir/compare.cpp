#include <fmt/format.h>

#include "engine/ir/compare_values.h"
#include "engine/ir/describe.h"
#include "faultline/ir.h"

namespace faultline {
namespace {

using torch::jit::AttributeKind;
using torch::jit::Block;

// One pair of blocks that is being walked. Kept on the heap: graphs made by passes may nest as deep as they
// like.
struct BlockPair {
  const Block* a;
  const Block* b;
  torch::jit::const_graph_node_list_iterator next_a;
  torch::jit::const_graph_node_list_iterator next_b;
  std::string place;  // " in block 0 of …", empty at the top
};

// What a place is called: full for the innermost, so that a message stays one line whatever the depth.
std::string placeIn(const std::string& what, const Node& owner) {
  return fmt::format(" in {} of {}", what, shortened(describeNode(owner)));
}

class Comparison {
 public:
  std::string run(const Graph& a, const Graph& b) {
    enter(*a.block(), *b.block(), "");
    while (difference_.empty() && !frames_.empty()) {
      step();
    }
    if (difference_.empty()) {
      compareLateUses();
    }
    return difference_;
  }

 private:
  void report(std::string text) {
    if (difference_.empty()) {
      difference_ = std::move(text);
    }
  }

  void enter(const Block& a, const Block& b, std::string place) {
    frames_.push_back({&a, &b, a.nodes().begin(), b.nodes().begin(), std::move(place)});
    define(a.inputs(), b.inputs(), "input", frames_.back().place);
  }

  void step() {
    BlockPair& frame = frames_.back();
    const bool end_a = frame.next_a == frame.a->nodes().end();
    const bool end_b = frame.next_b == frame.b->nodes().end();
    if (end_a && end_b) {
      compareUses(*frame.a->return_node(), *frame.b->return_node(), frame.place);
      frames_.pop_back();
      return;
    }
    if (end_a || end_b) {
      const Node& extra = end_a ? **frame.next_b : **frame.next_a;
      report(fmt::format("{} stands only in the {} graph{}", describeNode(extra), end_a ? "second" : "first",
                         frame.place));
      return;
    }
    const Node& a = **frame.next_a;
    const Node& b = **frame.next_b;
    ++frame.next_a;
    ++frame.next_b;
    // enter() below may move the frames.
    const std::string place = frame.place;
    if (a.kind() != b.kind()) {
      report(fmt::format("{} against {}{}", describeNode(a), describeNode(b), place));
      return;
    }
    compareUses(a, b, place);
    compareAttributes(a, b, place);
    define(a.outputs(), b.outputs(), "output", fmt::format(" of {}{}", describeNode(a), place));
    if (difference_.empty()) {
      enterParts(a, b);
    }
  }

  // Pushed last to first, so that they are walked in order.
  void enterParts(const Node& a, const Node& b) {
    if (a.blocks().size() != b.blocks().size()) {
      report(
          fmt::format("{} has {} blocks against {}", describeNode(a), a.blocks().size(), b.blocks().size()));
      return;
    }
    for (const c10::Symbol name : a.attributeNames()) {
      if (a.kindOf(name) == AttributeKind::g) {
        enterGraph(a.g(name), b.g(name), name, a);
      } else if (a.kindOf(name) == AttributeKind::gs) {
        for (size_t i = 0; i < a.gs(name).size(); ++i) {
          enterGraph(a.gs(name)[i], b.gs(name)[i], name, a);
        }
      }
    }
    for (size_t i = a.blocks().size(); i > 0; --i) {
      enter(*a.blocks()[i - 1], *b.blocks()[i - 1], placeIn(fmt::format("block {}", i - 1), a));
    }
  }

  void enterGraph(const std::shared_ptr<Graph>& a, const std::shared_ptr<Graph>& b, c10::Symbol name,
                  const Node& owner) {
    if (a == b) {
      return;
    }
    if (a == nullptr || b == nullptr) {
      report(fmt::format("attribute '{}' of {} is empty in only one graph", name.toUnqualString(),
                         describeNode(owner)));
      return;
    }
    enter(*a->block(), *b->block(), placeIn(name.toUnqualString(), owner));
  }

  void define(at::ArrayRef<const Value*> a, at::ArrayRef<const Value*> b, const char* what,
              const std::string& place) {
    if (a.size() != b.size()) {
      report(fmt::format("{} {}s against {}{}", a.size(), what, b.size(), place));
      return;
    }
    for (size_t i = 0; i < a.size(); ++i) {
      if (!sameType(a[i]->type(), b[i]->type())) {
        report(fmt::format("{} {} has type {} against {}{}", what, i, writeType(*a[i]->type()),
                           writeType(*b[i]->type()), place));
      }
      partner_.emplace(a[i], b[i]);
      known_b_.insert(b[i]);
    }
  }

  void compareUses(const Node& a, const Node& b, const std::string& place) {
    if (a.inputs().size() != b.inputs().size()) {
      report(fmt::format("{} has {} inputs against {} of {}{}", describeNode(a), a.inputs().size(),
                         b.inputs().size(), describeNode(b), place));
      return;
    }
    for (size_t i = 0; i < a.inputs().size(); ++i) {
      const Value* value_a = a.inputs()[i];
      const Value* value_b = b.inputs()[i];
      const auto found = partner_.find(value_a);
      if (found == partner_.end() && known_b_.count(value_b) == 0) {
        late_.push_back({&a, &b, i});  // used before it is made: an invalid graph, but it has its equals too
      } else if (found == partner_.end() || found->second != value_b) {
        reportUse(a, b, i, place);
      }
    }
  }

  void reportUse(const Node& a, const Node& b, size_t i, const std::string& place) {
    report(fmt::format("input {} of {} is another value than that of {}{}", i, describeNode(a),
                       describeNode(b), place));
  }

  void compareLateUses() {
    for (const auto& [a, b, i] : late_) {
      const auto found = partner_.find(a->inputs()[i]);
      if (found == partner_.end() || found->second != b->inputs()[i]) {
        reportUse(*a, *b, i, "");
      }
    }
  }

  void compareAttributes(const Node& a, const Node& b, const std::string& place) {
    for (const c10::Symbol name : a.attributeNames()) {
      if (!b.hasAttribute(name)) {
        report(fmt::format("attribute '{}' of {} is missing in the second graph{}", name.toUnqualString(),
                           describeNode(a), place));
      } else if (!sameAttribute(a, b, name)) {
        report(fmt::format("attribute '{}' of {} differs{}", name.toUnqualString(), describeNode(a), place));
      }
    }
    for (const c10::Symbol name : b.attributeNames()) {
      if (!a.hasAttribute(name)) {
        report(fmt::format("attribute '{}' of {} is missing in the first graph{}", name.toUnqualString(),
                           describeNode(b), place));
      }
    }
  }

  struct LateUse {
    const Node* a;
    const Node* b;
    size_t input;
  };

  std::vector<BlockPair> frames_;
  std::unordered_map<const Value*, const Value*> partner_;
  std::unordered_set<const Value*> known_b_;
  std::vector<LateUse> late_;
  std::string difference_;
};

}  // namespace

std::string describeGraphDifference(const Graph& a, const Graph& b) { return Comparison().run(a, b); }

}  // namespace faultline
