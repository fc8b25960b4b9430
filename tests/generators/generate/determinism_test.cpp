#include <gtest/gtest.h>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/grad_mode.h>

#include "tests/generators/generate/cases.h"

namespace faultline {
namespace {

TEST(Determinism, TheSameSeedGivesTheSameText) {
  for (uint64_t index = 0; index < 60; ++index) {
    EXPECT_EQ(writeCase(caseOf(11, index)), writeCase(caseOf(11, index))) << "case " << index;
  }
}

TEST(Determinism, TheTapeOfACaseGivesItAgain) {
  for (uint64_t index = 0; index < 60; ++index) {
    uint64_t own = caseSeed(12, index);
    Choices choices = Choices::fromSeed(own);
    std::string text = writeCase(generateCase(choices, own));
    Choices replayed = Choices::fromTape(choices.tape().choices);
    EXPECT_EQ(writeCase(generateCase(replayed, own)), text) << "case " << index;
    EXPECT_EQ(replayed.tape(), choices.tape());
  }
}

TEST(Determinism, OtherSeedsAndIndicesGiveOtherCases) {
  std::set<std::string> texts;
  for (uint64_t seed : {1, 2}) {
    for (uint64_t index = 0; index < 20; ++index) texts.insert(writeCase(caseOf(seed, index)));
  }
  EXPECT_EQ(texts.size(), 40u);
}

TEST(Determinism, TheCallersStateNeitherMattersNorChanges) {
  std::string text = writeCase(caseOf(13, 5));
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  torch::autograd::AutoGradMode off(false);
  generator.set_current_seed(99);
  at::Tensor before = generator.get_state();
  for (uint64_t index = 0; index < 20; ++index) {
    std::string again = writeCase(caseOf(13, index));
    if (index == 5) EXPECT_EQ(again, text);
  }
  EXPECT_TRUE(at::equal(generator.get_state(), before));
  EXPECT_FALSE(c10::GradMode::is_enabled());
}

}  // namespace
}  // namespace faultline
