// Derives formulas.def: each operator alone in a piece, compiled in spite of its row, against eager.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <torch/csrc/jit/runtime/symbolic_script.h>

#include "engine/autodiff/differentiability.h"
#include "engine/autodiff/formulas.h"
#include "engine/graph_break/compile.h"
#include "tests/engine/autodiff/formula_cases.h"
#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

// One node, and where its result is differentiable an op behind it: views that leave the graph are never
// compiled. `neg` hands gradients on as they are, `sin` keeps the result for its backward.
// What stands in front of the operator and behind it, and whether its operands are used once more: then
// gradients are added up inside the piece, and must have their operand's sizes there.
struct Surroundings {
  std::optional<c10::Symbol> front;
  c10::Symbol behind;
  bool used_again;  // and all results are added up, which puts their gradients into one part
};

// `total`, nullptr where there is none yet, and the sum of `value`.
Value* totalWith(Graph& graph, Value* total, Value* value) {
  Value* none = graph.insertConstant(c10::IValue());
  Value* sum = graph.insertNode(graph.create(c10::aten::sum, {value, none}))->output();
  if (total == nullptr) {
    return sum;
  }
  return graph.insertNode(graph.create(c10::aten::add, {total, sum, graph.insertConstant(1)}))->output();
}

std::shared_ptr<Graph> graphOf(const FormulaCase& row, const Surroundings& around) {
  auto graph = std::make_shared<Graph>();
  std::vector<Value*> values;
  int inputs = 0;
  for (const Arg& arg : row.args) {
    inputs = std::max(inputs, arg.input + 1);
  }
  for (int i = 0; i < inputs; ++i) {
    graph->addInput()->setType(c10::TensorType::get());
  }
  std::vector<Value*> operands;
  for (size_t i = 0; i < graph->inputs().size(); ++i) {
    const bool through = around.front && row.operands[0][i].is_floating_point();
    Value* input = graph->inputs()[i];
    operands.push_back(through ? graph->insertNode(graph->create(*around.front, {input}))->output() : input);
  }
  for (const Arg& arg : row.args) {
    values.push_back(arg.input >= 0 ? operands[static_cast<size_t>(arg.input)]
                                    : graph->insertConstant(arg.constant));
  }
  const std::string name = row.schema.substr(0, row.schema.find('.'));
  size_t results = 1;
  for (const auto& op : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name))) {
    if (op->schema().name() +
            (op->schema().overload_name().empty() ? "" : "." + op->schema().overload_name()) ==
        row.schema) {
      results = op->schema().returns().size();
    }
  }
  Node* node = graph->insertNode(graph->create(c10::Symbol::fromQualString(name), values, results));
  Value* total = nullptr;
  for (size_t i = 0; i < results; ++i) {
    Value* result = node->outputs()[i];
    if (carriesGradient(node, i)) {
      result = graph->insertNode(graph->create(around.behind, {result}))->output();
    }
    if (around.used_again && carriesGradient(node, i)) {
      total = totalWith(*graph, total, result);
    } else {
      graph->registerOutput(result);
    }
  }
  for (size_t i = 0; around.used_again && i < operands.size(); ++i) {
    if (row.operands[0][i].is_floating_point()) {
      Value* operand = operands[i];
      total = totalWith(*graph, total,
                        graph->insertNode(graph->create(c10::aten::mul, {operand, operand}))->output());
    }
  }
  if (total != nullptr) {
    graph->registerOutput(total);
  }
  return graph;
}

struct Finding {
  const FormulaFault* row = nullptr;  // that is about these nodes
  size_t compared = 0;
  size_t stricter = 0;       // a write that eager does not mind throws
  std::string fault;         // first difference
  std::string not_compiled;  // the reason, where no case is ever compiled
};

bool isStricter(const std::string& schema) {
  for (const StricterFormula& row : stricterFormulas()) {
    if (row.schema == schema) {
      return true;
    }
  }
  return false;
}

Node* theNode(Graph& graph, const FormulaCase& row) {
  for (Node* node : graph.nodes()) {
    if (node->maybeSchema() && schemaName(node) == row.schema) {
      return node;
    }
  }
  return nullptr;
}

void tryCase(const FormulaCase& row, const std::shared_ptr<Graph>& graph, Finding& finding) {
  ASSERT_NE(theNode(*graph, row), nullptr);
  const NodeNames names(*graph);
  auto plan = planBreaks(*graph, BreakPolicy::none());
  ASSERT_TRUE(plan);
  auto compiled = compileTrusting(graph, *plan, {}, /*trust_formulas=*/true);
  ASSERT_TRUE(compiled) << compiled.error().str();
  for (const EagerOp& op : compiled->pieces()[0].eager_ops) {
    if (op.op == names.of(theNode(*graph, row))) {
      finding.not_compiled = op.reason;
      return;
    }
  }
  const Runner reference = interpreter(graph), lean_run = lean(*compiled);
  using Kind = Backward::Kind;
  for (const Operands& operands : row.operands) {
    std::vector<size_t> floating;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].is_floating_point()) {
        floating.push_back(i);
      }
    }
    for (size_t subset = 1; subset < (size_t{1} << floating.size()); ++subset) {
      auto inputs = [&] {
        torch::jit::Stack stack;
        for (size_t i = 0; i < operands.size(); ++i) {
          at::Tensor fresh = operands[i].clone();
          auto it = std::find(floating.begin(), floating.end(), i);
          const bool chosen = it != floating.end() && (subset >> (it - floating.begin()) & 1);
          stack.push_back(fresh.set_requires_grad(chosen));
        }
        return stack;
      };
      std::vector<Backward> backwards = {
          {Kind::All, 0}, {Kind::Double, 0}, {Kind::Twice, 0}, {Kind::Infinite, 0}};
      for (size_t i = 0; i < operands.size(); ++i) {
        backwards.push_back({Kind::AfterWrite, i});
      }
      for (const Backward& backward : backwards) {
        auto seeded = [&](const Runner& run) {
          at::manual_seed(7);
          return observe(run, inputs, backward);
        };
        const Seen expected = seeded(reference);
        if (expected.error.rfind("forward", 0) == 0) {
          continue;  // operands that eager refuses too
        }
        ++finding.compared;
        CompareOptions options;
        options.tolerance = 1e-9;
        const Seen actual = seeded(lean_run);
        const std::string found = difference(expected, actual, options);
        bool stricter_here = false;
        if (backward.kind == Kind::AfterWrite && expected.error.empty() && !actual.error.empty()) {
          ++finding.stricter;
          stricter_here = true;
        }
        if (!found.empty() && !(stricter_here && isStricter(row.schema)) && finding.fault.empty()) {
          finding.fault = fmt::format("backward {}, operands {}, grads {:b}: {}", backward.str(),
                                      &operands - row.operands.data(), subset, found);
        }
      }
    }
  }
}

std::string fullName(const c10::FunctionSchema& schema) {
  return schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
}

TEST(FormulaFaults, TheTableIsWhatComparingWithEagerFinds) {
  // By operator and by whether a row is about the node: a row that is about some of its nodes must be right
  // about both.
  std::map<std::pair<std::string, bool>, Finding> findings;
  for (const FormulaCase& row : formulaCases()) {
    SCOPED_TRACE(row.schema);
    // With sinh, extremes come as infinities with infinite derivatives: zeros are then not zero any more.
    for (const Surroundings& around :
         {Surroundings{{}, c10::aten::neg, false}, Surroundings{{}, c10::aten::sin, true},
          Surroundings{c10::aten::sinh, c10::aten::neg, false}}) {
      auto graph = graphOf(row, around);
      const FormulaFault* known = findFormulaFault(theNode(*graph, row));
      Finding& finding = findings[{row.schema, known != nullptr}];
      finding.row = known;
      tryCase(row, graph, finding);
      if (testing::Test::HasFatalFailure()) {
        return;
      }
    }
  }
  for (const auto& [key, finding] : findings) {
    const std::string& schema = key.first;
    if (finding.compared == 0) {
      EXPECT_FALSE(finding.not_compiled.empty()) << schema << ": nothing was compared";
      EXPECT_EQ(finding.row, nullptr)
          << schema << " has a row but is never compiled: " << finding.not_compiled;
      continue;
    }
    EXPECT_EQ(finding.row != nullptr, !finding.fault.empty())
        << schema << (finding.row ? ": the row is stale" : ": a row is missing: " + finding.fault);
  }
  for (const StricterFormula& row : stricterFormulas()) {
    EXPECT_GT((findings[{std::string(row.schema), false}].stricter), 0u)
        << row.schema << ": the row is stale";
  }
  for (const FormulaFault& row : formulaFaults()) {
    EXPECT_TRUE(findings.count({std::string(row.schema), true}))
        << row.schema << ": the row is about no case";
  }
}

TEST(FormulaFaults, EveryOperatorWithAFormulaHasACase) {
  std::set<std::string> covered;
  for (const FormulaCase& row : formulaCases()) {
    covered.insert(row.schema);
  }
  covered.insert(listOperators().begin(), listOperators().end());
  for (const auto& op : torch::jit::getAllOperators()) {
    if (torch::jit::hasGradientInfoForSchema(op->schema())) {
      EXPECT_TRUE(covered.count(fullName(op->schema()))) << op->schema();
    }
  }
}

}  // namespace
}  // namespace faultline::test
