#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faultline/graph_break.h"
#include "faultline/ir.h"
#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

namespace attr = torch::jit::attr;

const char* mlp = R"(
graph(%x : Tensor, %w : Tensor, %v : Tensor):
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::mm(%x, %w)
  %b : Tensor = aten::relu(%a)
  %c : Tensor = aten::mm(%b, %v)
  %d : Tensor = aten::sum(%c, %none)
  return (%d))";

torch::jit::Stack mlpInputs() { return {leaf({3, 4}, 1), leaf({4, 5}, 2), leaf({5, 2}, 3)}; }

CompiledGraph compiledMlp(const CompileOptions& options = {}) {
  auto graph = parse(mlp);
  auto plan = planBreaks(*graph, BreakPolicy::after({"mm", "relu"}));
  auto compiled = compile(graph, *plan, options);
  EXPECT_TRUE(compiled);
  return *compiled;
}

std::vector<Node*> pieceNodes(Graph& graph) {
  std::vector<Node*> nodes;
  for (Node* node : graph.nodes()) {
    if (node->kind() != torch::jit::prim::If) continue;
    for (Node* inner : node->blocks()[0]->nodes()) {
      if (inner->kind() == torch::jit::prim::DifferentiableGraph) nodes.push_back(inner);
    }
  }
  return nodes;
}

TEST(Stitched, HoldsAStockNodePerCompiledPiece) {
  auto stitched = compiledMlp().stitchedGraph();
  stitched->lint();
  const auto nodes = pieceNodes(*stitched);
  ASSERT_EQ(nodes.size(), 3u);
  for (size_t k = 0; k < nodes.size(); ++k) {
    EXPECT_EQ(nodes[k]->s(attr::name), "piece" + std::to_string(k));
    EXPECT_TRUE(nodes[k]->hasAttribute(attr::ReverseSubgraph));
    EXPECT_EQ(nodes[k]->i(attr::f_real_outputs), 1);
  }
}

TEST(Stitched, AnEagerPieceIsInlined) {
  CompileOptions options;
  options.force_eager = {1};
  auto stitched = compiledMlp(options).stitchedGraph();
  EXPECT_EQ(pieceNodes(*stitched).size(), 2u);
  EXPECT_EQ(difference(observe(interpreter(parse(mlp)), mlpInputs, {}),
                       observe(interpreter(stitched), mlpInputs, {})),
            "");
}

TEST(Stitched, RunsInTheStockInterpreterAndSoDoesItsCopy) {
  const CompiledGraph compiled = compiledMlp();
  const Seen expected = observe(interpreter(parse(mlp)), mlpInputs, {});
  const Runner original = interpreter(compiled.stitchedGraph());
  const Runner copy = interpreter(compiled.stitchedGraph()->copy());
  for (int run = 0; run < 4; ++run) {
    EXPECT_EQ(difference(expected, observe(original, mlpInputs, {})), "") << run;
    EXPECT_EQ(difference(expected, observe(copy, mlpInputs, {})), "") << run;
  }
}

// libtorch's node would take the gradients and flags that were foreseen for those that are.
TEST(Stitched, RunsAsWrittenWhereFlagsModesOrDtypesAreOthers) {
  const Runner reference = interpreter(parse(mlp));
  const Runner stitched = interpreter(compiledMlp().stitchedGraph());
  const auto compare = [&](const Inputs& inputs, bool grad_mode) {
    return difference(observe(reference, inputs, {}, grad_mode), observe(stitched, inputs, {}, grad_mode));
  };
  EXPECT_EQ(compare(mlpInputs, false), "");
  const Inputs no_grad = [] {
    torch::jit::Stack stack = mlpInputs();
    for (c10::IValue& value : stack) value = value.toTensor().detach();
    return stack;
  };
  EXPECT_EQ(compare(no_grad, true), "");
  const Inputs doubles = [] {
    torch::jit::Stack stack = mlpInputs();
    for (c10::IValue& value : stack) {
      const at::Tensor& tensor = value.toTensor();
      value = tensor.detach().to(at::kDouble).requires_grad_(tensor.requires_grad());
    }
    return stack;
  };
  EXPECT_EQ(compare(doubles, true), "");
}

// The formulas conjugate nothing.
TEST(Stitched, PartsOfInputsThatAreKnownToBeComplexStandAsWritten) {
  auto graph = parse(R"(
graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::mul(%x, %w)
  return (%a))");
  for (torch::jit::Value* input : graph->inputs()) {
    input->setType(c10::TensorType::get()->withScalarType(at::kComplexFloat));
  }
  auto compiled = compile(graph, *planBreaks(*graph, BreakPolicy::none()));
  ASSERT_TRUE(compiled);
  auto stitched = compiled->stitchedGraph();
  EXPECT_TRUE(pieceNodes(*stitched).empty());
  const Inputs inputs = [] {
    return torch::jit::Stack{at::complex(leaf({3}, 1).detach(), leaf({3}, 2).detach()).requires_grad_(),
                             at::complex(leaf({3}, 3).detach(), leaf({3}, 4).detach()).requires_grad_()};
  };
  EXPECT_EQ(difference(observe(interpreter(graph), inputs, {}), observe(interpreter(stitched), inputs, {})),
            "");
}

TEST(Stitched, SubgraphsInTheInputAreTakenApartFirst) {
  auto stitched = compiledMlp().stitchedGraph();
  auto plan = planBreaks(*stitched, BreakPolicy::every(1));
  ASSERT_TRUE(plan) << plan.error().str();
  EXPECT_EQ(plan->pieces.size(), 4u);
  auto again = compile(stitched, *plan);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(difference(observe(interpreter(parse(mlp)), mlpInputs, {}), observe(lean(*again), mlpInputs, {})),
            "");
}

TEST(Stitched, HooksFireBetweenItsPieces) {
  const Runner run = interpreter(compiledMlp().stitchedGraph());
  torch::jit::Stack stack = mlpInputs();
  std::vector<std::string> fired;
  for (size_t i : {1, 2}) {
    stack[i].toTensor().register_hook(
        [&fired, i](const at::Tensor&) { fired.push_back("w" + std::to_string(i)); });
  }
  run(stack);
  auto loss = stack[0].toTensor();
  loss.backward();
  EXPECT_THAT(fired, testing::ElementsAre("w2", "w1"));
}

}  // namespace
}  // namespace faultline::test
