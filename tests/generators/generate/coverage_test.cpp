// That the generator makes what it claims to: every row and feature, with gradients that matter.
#include <gtest/gtest.h>

#include <map>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include "faultline/ir.h"
#include "generators/generate/trial.h"
#include "generators/ops/op_row.h"
#include "tests/generators/generate/cases.h"

namespace faultline {
namespace {

constexpr uint64_t cases = 2000;

// What 2,000 cases have in them, gathered once for all tests of this file.
struct Survey {
  std::map<std::string, size_t>
      reaching;  // row: cases in which its result reaches a return, with a gradient if it has one
  std::map<std::string, size_t> traits, features;
  std::vector<size_t> nodes;
  size_t backward_throws = 0, not_finite = 0, with_gradient = 0, mutation_free = 0;
};

// Which values a return depends on.
void markReaching(const torch::jit::Value* value, std::set<const torch::jit::Value*>& seen) {
  if (!seen.insert(value).second) return;
  const torch::jit::Node* node = value->node();
  for (const torch::jit::Value* input : node->inputs()) markReaching(input, seen);
  for (const torch::jit::Block* block : node->blocks()) {
    for (const torch::jit::Value* output : block->outputs()) markReaching(output, seen);
  }
  if (node->hasAttribute(torch::jit::attr::Subgraph)) {
    for (const torch::jit::Value* output : node->g(torch::jit::attr::Subgraph)->outputs())
      markReaching(output, seen);
  }
}

const OpRow* rowOf(const torch::jit::Node& node) {
  const torch::jit::Operator* op = node.kind().is_aten() ? node.maybeOperator() : nullptr;
  return op == nullptr ? nullptr : findOpRowOfSchema(c10::toString(op->schema().operator_name()));
}

void collect(const c10::IValue& value, std::vector<at::Tensor>& into) {
  if (value.isTensor()) into.push_back(value.toTensor());
  if (value.isTensorList()) {
    for (const at::Tensor& element : value.toTensorVector()) into.push_back(element);
  }
  if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) collect(element, into);
  }
}

// Rows of the first run's results whose gradient is defined and not all zero.
void surveyGradients(const Case& c, std::set<std::string>& rows, Survey& survey) {
  std::vector<std::pair<const OpRow*, torch::autograd::Edge>> made;
  std::vector<at::Tensor> returned;
  auto observe = [&](const torch::jit::Node& node, const Execution& execution) {
    const OpRow* row = rowOf(node);
    if (row != nullptr && row->differentiable) {
      for (const torch::jit::Value* output : node.outputs()) {
        const c10::IValue& value = execution.get(output);
        std::vector<at::Tensor> tensors;
        collect(value, tensors);
        for (const at::Tensor& tensor : tensors) {
          if (tensor.grad_fn() != nullptr)
            made.emplace_back(row, torch::autograd::impl::gradient_edge(tensor));
        }
      }
    }
    returned.clear();
    if (node.owningBlock() != c.graph->block() || node.next()->kind() != torch::jit::prim::Return) return;
    for (const torch::jit::Value* output : c.graph->outputs()) collect(execution.get(output), returned);
  };
  tryRun(c, c.runs.front(), observe);

  torch::autograd::edge_list roots, edges;
  torch::autograd::variable_list seeds;
  Random random(7);
  bool finite = true;
  for (const at::Tensor& tensor : returned) {
    if (at::isFloatingType(tensor.scalar_type())) finite = finite && at::isfinite(tensor).all().item<bool>();
    if (tensor.grad_fn() == nullptr) continue;
    // Not all ones: the sum of a softmax has no gradient.
    at::Tensor seed = at::ones_like(tensor, at::TensorOptions(), at::MemoryFormat::Contiguous);
    at::Tensor flat = seed.view({-1});
    for (int64_t i = 0; i < flat.numel(); ++i) flat[i] = 0.5 + random.uniform();
    roots.push_back(torch::autograd::impl::gradient_edge(tensor));
    seeds.push_back(seed);
  }
  if (!finite) ++survey.not_finite;
  for (const auto& entry : made) edges.push_back(entry.second);
  if (roots.empty() || edges.empty()) return;
  ++survey.with_gradient;
  try {
    auto gradients =
        torch::autograd::Engine::get_default_engine().execute(roots, seeds, true, false, false, edges);
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined() || gradients[i].numel() == 0) continue;
      if (at::count_nonzero(gradients[i]).item<int64_t>() > 0) rows.insert(made[i].first->name);
    }
  } catch (const std::exception&) {
    ++survey.backward_throws;
  }
}

const Survey& survey() {
  static const Survey all = [] {
    Survey survey;
    for (uint64_t index = 0; index < cases; ++index) {
      Case c = caseOf(31, index);
      std::set<const torch::jit::Value*> reaching;
      for (const torch::jit::Value* output : c.graph->outputs()) markReaching(output, reaching);
      std::set<std::string> rows;
      forEachNode(c.graph->block(), [&](const torch::jit::Node& node) {
        const OpRow* row = rowOf(node);
        if (row == nullptr || row->differentiable) return;
        for (const torch::jit::Value* output : node.outputs()) {
          if (reaching.count(output) != 0) rows.insert(row->name);
        }
      });
      surveyGradients(c, rows, survey);
      for (const std::string& row : rows) ++survey.reaching[row];
      for (const std::string& trait : caseTraits(c)) ++survey.traits[trait];
      std::istringstream features(c.notes.at("features"));
      for (std::string feature; features >> feature;) ++survey.features[feature];
      survey.nodes.push_back(countNodes(c));
      if (caseTraits(c).count("mutation") == 0) ++survey.mutation_free;
    }
    return survey;
  }();
  return all;
}

TEST(Coverage, EveryRowIsInTwentyCasesWithAGradientThatMatters) {
  for (const OpRow& row : opRows()) {
    auto found = survey().reaching.find(row.name);
    size_t count = found == survey().reaching.end() ? 0 : found->second;
    EXPECT_GE(count, 20u) << row.name;
  }
  for (const auto& [name, count] : survey().reaching) EXPECT_NE(findOpRow(name), nullptr) << name;
}

TEST(Coverage, EveryFeatureIsOnInSomeCasesAndOffInOthers) {
  std::set<std::string> known;
  for (const GeneratorFeature& feature : generatorFeatures()) {
    if (feature.percent == 0) continue;
    known.insert(feature.name);
    auto found = survey().features.find(feature.name);
    ASSERT_NE(found, survey().features.end()) << feature.name;
    EXPECT_GE(found->second, 20u) << feature.name;
    EXPECT_LE(found->second, cases - 20) << feature.name;
  }
  for (const auto& [name, count] : survey().features) EXPECT_EQ(known.count(name), 1u) << name;
}

// Views of what is written, and writes in loops: the cases are about what the feature is for.
TEST(Coverage, AliasingIsThereWhereItIsAskedFor) {
  int both = 0, in_loops = 0;
  constexpr int kCases = 60;
  for (uint64_t i = 0; i < kCases; ++i) {
    Choices choices = Choices::fromSeed(caseSeed(7, i));
    GenerateOptions options;
    options.features = {"+aliasing", "+views", "+inplace", "+loops"};
    const std::set<std::string> traits = caseTraits(generateCase(choices, i, options));
    both += traits.count("view") != 0 && traits.count("mutation") != 0 ? 1 : 0;
    in_loops += traits.count("loop") != 0 && traits.count("mutation") != 0 ? 1 : 0;
  }
  EXPECT_GE(both, kCases / 2);
  EXPECT_GE(in_loops, kCases / 5);
}

// What a feature promises must come true in the cases, not only be switched on.
TEST(Coverage, EveryFeatureShowsInTheCases) {
  const std::vector<std::string> seen = {"differentiable",
                                         "control_flow",
                                         "if",
                                         "loop",
                                         "mutation",
                                         "view",
                                         "subgraph",
                                         "flips",
                                         "list",
                                         "tuple",
                                         "optional",
                                         "no_grad",
                                         "detach",
                                         "random",
                                         "zero_size",
                                         "strided_input",
                                         "non_leaf_input",
                                         "shared_input",
                                         "none_input",
                                         "profile",
                                         "profile_nodes",
                                         "breaks",
                                         "breaks:after",
                                         "breaks:balanced",
                                         "breaks:ddp",
                                         "breaks:every",
                                         "breaks:parameters",
                                         "breaks:shards",
                                         "hooks",
                                         "hook:post_accumulate",
                                         "hook:retain_grad",
                                         "hook:seam",
                                         "hook:tensor",
                                         "many_returns",
                                         "single_output",
                                         "double_backward",
                                         "tensor_constant",
                                         "flip:grad_mode",
                                         "flip:kind",
                                         "flip:sizes",
                                         "flip:dtype",
                                         "flip:requires_grad",
                                         "flip:control",
                                         "dtype:float64",
                                         "dtype:int64",
                                         "dtype:bool",
                                         "dtype:complex64",
                                         "dtype:bfloat16",
                                         "dtype:float16"};
  for (const std::string& trait : seen) {
    auto found = survey().traits.find(trait);
    EXPECT_GE(found == survey().traits.end() ? 0 : found->second, 10u) << trait;
  }
}

TEST(Coverage, CasesAreLargeAndMixedEnough) {
  std::vector<size_t> nodes = survey().nodes;
  std::nth_element(nodes.begin(), nodes.begin() + nodes.size() / 2, nodes.end());
  EXPECT_GE(nodes[nodes.size() / 2], 10u);
  for (const char* trait : {"if", "mutation", "view", "subgraph", "flips", "hooks", "breaks"}) {
    EXPECT_GE(survey().traits.at(trait), cases / 5) << trait;
  }
  // Graph breaks are judged on these.
  RecordProperty("mutation_free", static_cast<int>(survey().mutation_free));
  RecordProperty("with_gradient", static_cast<int>(survey().with_gradient));
  EXPECT_GE(survey().mutation_free, cases * 35 / 100);
  EXPECT_GE(survey().with_gradient, cases * 80 / 100);
}

TEST(Coverage, FewCasesThrowInBackwardOrLeaveTheFiniteNumbers) {
  RecordProperty("backward_throws", static_cast<int>(survey().backward_throws));
  RecordProperty("not_finite", static_cast<int>(survey().not_finite));
  EXPECT_LE(survey().backward_throws, cases * 3 / 100);
  EXPECT_LE(survey().not_finite, cases * 8 / 100);
}

}  // namespace
}  // namespace faultline
