#include <gtest/gtest.h>

#include "faultline/ir.h"
#include "generators/generate/trial.h"
#include "tests/generators/generate/cases.h"

namespace faultline {
namespace {

// A copy that libtorch's interpreter takes: no subgraphs, no profile nodes.
Case plain(const Case& c) {
  Case copy = cloneCase(c);
  inlineSubgraphs(*copy.graph);
  std::vector<torch::jit::Node*> profiles;
  std::function<void(torch::jit::Block*)> collect = [&](torch::jit::Block* block) {
    for (torch::jit::Node* node : block->nodes()) {
      if (node->kind() == torch::jit::prim::profile) profiles.push_back(node);
      for (torch::jit::Block* inner : node->blocks()) collect(inner);
    }
  };
  collect(copy.graph->block());
  for (torch::jit::Node* node : profiles) {
    node->output()->replaceAllUsesWith(node->input());
    node->destroy();
  }
  return copy;
}

TEST(Validity, CasesVerifyAndEveryRunRunsInTheInterpreter) {
  for (uint64_t index = 0; index < 400; ++index) {
    Case c = caseOf(41, index);
    Result<void> verified = verifyGraph(*c.graph);
    EXPECT_TRUE(verified.has_value()) << "case " << index << ": " << (verified ? "" : verified.error().str());
    Case inlined = plain(c);
    for (const CaseRun& run : c.runs) {
      ASSERT_EQ(run.inputs.size(), c.graph->inputs().size());
      EXPECT_TRUE(interpreterRuns(inlined, run)) << "case " << index << "\n" << writeCase(c);
    }
  }
}

TEST(Validity, TextGivesTheCaseBack) {
  for (uint64_t index = 0; index < 200; ++index) {
    Case c = caseOf(42, index);
    std::string text = writeCase(c);
    Result<Case> read = readCase(text);
    ASSERT_TRUE(read.has_value()) << read.error().str() << "\n" << text;
    EXPECT_EQ(describeGraphDifference(*c.graph, *read->graph), "") << text;
    EXPECT_EQ(read->runs, c.runs);
    EXPECT_EQ(read->plan, c.plan);
    EXPECT_EQ(writeCase(*read), text);
  }
}

TEST(Validity, PlansFitTheGraph) {
  size_t hooked = 0, named = 0;
  for (uint64_t index = 0; index < 300; ++index) {
    Case c = caseOf(43, index);
    NodeNames names(*c.graph);
    for (const HookSpec& hook : c.plan.hooks) {
      ++hooked;
      if (!hook.seam.empty()) {
        EXPECT_NE(names.find(hook.seam), nullptr) << hook.seam;
        continue;
      }
      for (const CaseRun& run : c.runs) {
        EXPECT_TRUE(run.inputs.at(hook.input).requires_grad);
        if (hook.kind == HookKind::PostAccumulate) EXPECT_TRUE(run.inputs[hook.input].leaf);
      }
    }
    std::istringstream breaks(c.plan.breaks);
    std::string policy, name;
    breaks >> policy;
    while (policy == "after" && breaks >> name) {
      ++named;
      EXPECT_NE(names.find(name), nullptr) << name;
    }
    for (const CaseRun& run : c.runs) {
      for (const BackwardSpec& backward : run.backwards) {
        EXPECT_LT(backward.output, c.graph->outputs().size());
      }
    }
  }
  EXPECT_GT(hooked, 50u);
  EXPECT_GT(named, 20u);
}

}  // namespace
}  // namespace faultline
