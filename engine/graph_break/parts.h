// Splits a piece into parts: runs of ops that share one autograd node, and runs of ops that stay eager.
//
// Ops are in one compiled part when the same of the piece's results depend on them, so that a backward from
// some results runs exactly the nodes that eager autograd would run (README.md, "parts").
#pragma once
#include <string>
#include <vector>

#include "engine/graph_break/legality.h"

namespace faultline {

struct NodeUse {
  bool constant = false;  // copied, no op of its own
  bool opened = false;    // an If or Loop whose bodies are cut: stands in no piece
  bool compiled = false;
  bool barrier = false;  // keeps its place: legality.h
  std::string reason;    // why it is not compiled
};

// What is known of every top-level node of a graph, before pieces are looked at.
struct GraphFacts {
  // `trust_formulas`: see compileChoice.
  GraphFacts(const WorkingCopy& work, bool trust_formulas);

  const WorkingCopy& work;
  std::vector<NodeUse> nodes;
  WrittenMemory written;

 private:
  bool escapes(const Node* node) const;
  bool touchesWritten(const Node* node) const;
  std::unordered_map<const Value*, bool> escapes_;
};

struct Part {
  bool compiled = false;
  std::vector<size_t> nodes;    // indices into work.nodes, in order; constants left out
  std::vector<Value*> inputs;   // what comes in, in WorkingCopy::before order; no constants
  std::vector<Value*> outputs;  // what is used outside, same order
};

// Nodes [begin, end) of a piece that run between two barriers, or a row of barriers.
struct Segment {
  size_t begin = 0, end = 0;
  bool barriers = false;
  std::vector<Part> parts;  // in an order in which they can run
};

// The segments of nodes [begin, end), in order. One eager part when `force_eager`.
std::vector<Segment> splitIntoSegments(const GraphFacts& facts, size_t begin, size_t end, bool force_eager);

// Whether any of these segments has a compiled part, at less cost.
bool hasCompiledPart(const GraphFacts& facts, size_t begin, size_t end);

// The values that nodes [begin, end) take from and give to the rest of the graph.
Part boundary(const WorkingCopy& work, size_t begin, size_t end);

// A graph of its own with `part`'s inputs and outputs, constants copied in.
std::shared_ptr<Graph> extractPart(const WorkingCopy& work, const Part& part);

}  // namespace faultline
