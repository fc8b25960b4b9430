#include <fmt/format.h>

#include "engine/ir/text.h"
#include "engine/ir/value_writer.h"
#include "engine/ir/walk.h"
#include "faultline/ir.h"

namespace faultline {
namespace {

using torch::jit::AttributeKind;
using torch::jit::Block;

bool isPlainName(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

bool hasTail(const Node& node) {
  return node.hasAttribute(c10::attr::Subgraph) && node.kindOf(c10::attr::Subgraph) == AttributeKind::g &&
         node.g(c10::attr::Subgraph) != nullptr;
}

class GraphWriter {
 public:
  std::string write(const Graph& graph) {
    collectKinds(graph);
    writeGraphAndTails(graph);
    return std::move(text_);
  }

 private:
  struct Tail {
    std::string name;
    const Graph* graph;
  };

  // An operator of that very name must not look like a reference to a tail.
  void collectKinds(const Graph& graph) {
    forEachNode(graph.block(), [&](const Node* node) {
      kinds_.insert(node->kind().toQualString());
      for (const c10::Symbol name : node->attributeNames()) {
        if (node->kindOf(name) == AttributeKind::g && node->g(name) != nullptr) {
          collectKinds(*node->g(name));
        } else if (node->kindOf(name) == AttributeKind::gs) {
          for (const auto& inner : node->gs(name)) {
            collectKinds(*inner);
          }
        }
      }
    });
  }

  // Each graph is followed by its own tails, as libtorch prints them, but numbers are used once in the whole
  // text.
  void writeGraphAndTails(const Graph& graph) {
    std::vector<Tail> outer = std::move(tails_);
    tails_.clear();
    names_.clear();
    defined_ = 0;
    writeBody(graph);
    const std::vector<Tail> own = std::move(tails_);
    for (const Tail& tail : own) {
      text_ += "with " + tail.name + " = ";
      writeGraphAndTails(*tail.graph);
    }
    tails_ = std::move(outer);
  }

  std::string addTail(const std::string& base, const Graph& graph) {
    std::string name;
    do {
      name = fmt::format("{}_{}", base, next_tail_++);
    } while (kinds_.count(name) != 0);
    tails_.push_back({name, &graph});
    return name;
  }

  void writeBody(const Graph& graph) {
    text_ += "graph(";
    defineAll(graph.inputs(), ",\n      ");
    text_ += "):\n";
    writeNodes(*graph.block(), 2);
    text_ += "  return (";
    useAll(graph.outputs());
    text_ += ")\n";
  }

  void writeNodes(const Block& block, size_t indent) {
    for (const Node* node : block.nodes()) {
      writeNode(*node, indent);
    }
  }

  void writeNode(const Node& node, size_t indent) {
    text_.append(indent, ' ');
    // Inputs are named first: an invalid graph may use what the node itself makes.
    std::string inputs;
    std::swap(inputs, text_);
    useAll(node.inputs());
    std::swap(inputs, text_);
    defineAll(node.outputs(), ", ");
    text_ += node.outputs().empty() ? "" : " = ";
    text_ += hasTail(node) ? addTail(node.kind().toQualString(), *node.g(c10::attr::Subgraph))
                           : std::string(node.kind().toQualString());
    writeAttributes(node);
    text_ += "(" + inputs + ")\n";
    for (size_t i = 0; i < node.blocks().size(); ++i) {
      const Block& block = *node.blocks()[i];
      text_.append(indent + 2, ' ');
      text_ += fmt::format("block{}(", i);
      defineAll(block.inputs(), ", ");
      text_ += "):\n";
      writeNodes(block, indent + 4);
      text_.append(indent + 4, ' ');
      text_ += "-> (";
      useAll(block.outputs());
      text_ += ")\n";
    }
  }

  void writeAttributes(const Node& node) {
    std::string list;
    for (const c10::Symbol name : node.attributeNames()) {
      if (name == c10::attr::Subgraph && hasTail(node)) {
        continue;
      }
      list += list.empty() ? "" : ", ";
      switch (node.kindOf(name)) {
        case AttributeKind::g:
          list += graphText(name, node.g(name));
          break;
        case AttributeKind::gs:
          list += graphsText(name, node.gs(name));
          break;
        default:
          list += attributeText(node, name);
      }
    }
    if (!list.empty()) {
      text_ += "[" + list + "]";
    }
  }

  std::string graphText(c10::Symbol name, const std::shared_ptr<Graph>& graph) {
    const bool empty = graph == nullptr;
    return attributeName(name, AttributeKind::g, empty) + "=" +
           (empty ? "None" : addTail(std::string("@") + name.toUnqualString(), *graph));
  }

  std::string graphsText(c10::Symbol name, const std::vector<std::shared_ptr<Graph>>& graphs) {
    std::string list;
    for (const auto& graph : graphs) {
      list += (list.empty() ? "" : ", ") + addTail(std::string("@") + name.toUnqualString(), *graph);
    }
    return attributeName(name, AttributeKind::gs, graphs.empty()) + "=[" + list + "]";
  }

  // Values without a name are numbered in the order in which they are made, named ones counted too: that is
  // what libtorch numbers them when the text is read back.
  void defineAll(at::ArrayRef<const Value*> values, std::string_view separator) {
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string number = std::to_string(defined_++);
      const std::string name = values[i]->hasDebugName() ? nameText(values[i]->debugName()) : number;
      names_.emplace(values[i], name);
      text_ += i == 0 ? "" : separator;
      text_ += "%" + names_.at(values[i]) + " : " + writeType(*values[i]->type());
    }
  }

  void useAll(at::ArrayRef<const Value*> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto found = names_.find(values[i]);
      text_ += i == 0 ? "%" : ", %";
      // Not made yet: only in a graph that the reader refuses anyway.
      text_ += found != names_.end() ? found->second : nameText("later." + values[i]->debugName());
    }
  }

  static std::string nameText(const std::string& name) { return isPlainName(name) ? name : quotedText(name); }

  std::string text_;
  std::vector<Tail> tails_;
  std::unordered_map<const Value*, std::string> names_;
  size_t defined_ = 0;
  size_t next_tail_ = 0;
  std::unordered_set<std::string> kinds_;
};

}  // namespace

std::string writeGraph(const Graph& graph) { return GraphWriter().write(graph); }

}  // namespace faultline
