// libtorch's own passes by name, for whoever asks what they do to a graph.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

namespace faultline {

struct StockPass {
  std::string name;
  std::string meant_for;  // empty: any graph
  // Changes the graph or replaces it; throws what libtorch throws.
  std::function<void(std::shared_ptr<torch::jit::Graph>& graph)> run;
};

const std::vector<StockPass>& stockPasses();

}  // namespace faultline
