// What the mutator believes of values is what they are: its arithmetic against executed cases.
#include <gtest/gtest.h>

#include "generators/generate/trial.h"
#include "generators/mutate/forecast.h"
#include "generators/mutate/form_rules.h"
#include "tests/generators/generate/cases.h"

namespace faultline {
namespace {

struct Seen {
  bool tensor = false, contiguous = false, requires_grad = false;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes;
};

TEST(Forecast, EveryRowHasAFormRuleAndEveryRuleARow) {
  std::set<std::string> names;
  for (const OpRow& row : opRows()) names.insert({row.name, row.family});
  std::set<std::string> rules;
  for (const FormRule& rule : formRules()) {
    rules.insert(rule.name);
    EXPECT_EQ(names.count(rule.name), 1u) << rule.name;
  }
  for (const OpRow& row : opRows())
    EXPECT_GT(rules.count(row.name) + rules.count(row.family), 0u) << row.name;
}

TEST(Forecast, FormsAreThoseOfTheTensorsThatArrive) {
  size_t compared = 0, unknown = 0;
  std::map<std::string, size_t> unknown_ops;
  for (uint64_t index = 0; index < 200; ++index) {
    Case c = caseOf(61, index);
    for (const CaseRun& run : c.runs) {
      std::map<const torch::jit::Node*, std::vector<Seen>> seen;
      tryRun(c, run, [&](const torch::jit::Node& node, const Execution& execution) {
        std::vector<Seen> outputs;
        for (const torch::jit::Value* output : node.outputs()) {
          const c10::IValue& value = execution.get(output);
          Seen one;
          if (value.isTensor()) {
            const at::Tensor& tensor = value.toTensor();
            one = {true, tensor.is_contiguous(), tensor.requires_grad(), tensor.scalar_type(),
                   tensor.sizes().vec()};
          }
          outputs.push_back(one);
        }
        seen[&node] = outputs;
      });
      FormReader reader(c, run);
      std::map<const torch::jit::Node*, std::vector<Form>> believed;
      reader.before = [&](const torch::jit::Node* node) {
        const torch::jit::Node* last = node->prev();
        if (last->kind() == torch::jit::prim::Param) return;
        std::vector<Form> forms;
        for (const torch::jit::Value* output : last->outputs()) forms.push_back(reader.find(output));
        believed[last] = forms;
      };
      reader.read();
      for (const auto& [node, outputs] : seen) {
        ASSERT_EQ(believed.count(node), 1u);
        for (size_t i = 0; i < outputs.size(); ++i) {
          if (!outputs[i].tensor) continue;
          const Form& form = believed[node][i];
          if (!form.known) {
            ++unknown;
            ++unknown_ops[node->kind().toQualString()];
            continue;
          }
          ++compared;
          std::string where = "case " + std::to_string(index) + " " + node->kind().toQualString();
          EXPECT_EQ(form.operand.sizes, outputs[i].sizes) << where << "\n" << writeCase(c);
          EXPECT_EQ(form.operand.dtype, outputs[i].dtype) << where;
          // A belief that something is there errs on one side only.
          EXPECT_TRUE(!form.operand.contiguous || outputs[i].contiguous) << where;
          EXPECT_TRUE(form.operand.requires_grad || !outputs[i].requires_grad) << where;
        }
      }
    }
  }
  RecordProperty("compared", static_cast<int>(compared));
  EXPECT_GT(compared, 5000u);
  EXPECT_LT(unknown, compared / 50);
  std::string ops;
  for (const auto& [op, count] : unknown_ops) ops += op + " " + std::to_string(count) + ", ";
  RecordProperty("unknown", ops);
}

TEST(Forecast, GeneratedCasesHaveFewMisfits) {
  size_t clean = 0, spoiled = 0, cases = 200;
  std::map<std::string, size_t> ops;
  for (uint64_t index = 0; index < cases; ++index) {
    Case c = caseOf(62, index);
    Forecast forecast = forecastCase(c);
    clean += forecast.misfits == 0;
    spoiled += forecast.spoils != 0;
  }
  RecordProperty("clean", static_cast<int>(clean));
  RecordProperty("spoiled", static_cast<int>(spoiled));
  EXPECT_GT(clean, cases * 80 / 100);
}

}  // namespace
}  // namespace faultline
