// BreakPolicy::buckets against tables measured on c10d's and DDPOptimizer's own functions
// (tests/data/graph_break/ddp_buckets.json).
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "faultline/graph_break.h"
#include "faultline/ir.h"

namespace faultline::test {
namespace {

using nlohmann::json;
using Buckets = std::vector<std::vector<size_t>>;

json bucketTables() {
  std::ifstream file(std::string(FAULTLINE_TEST_DATA) + "/graph_break/ddp_buckets.json");
  return json::parse(file).at("tables");
}

c10::TypePtr parameterType(const json& row) {
  const bool half = row.at(2) == "bfloat16";
  const int64_t elements = row.at(1).get<int64_t>() / (half ? 2 : 4);
  return c10::TensorType::createContiguous(half ? at::kBFloat16 : at::kFloat, at::kCPU, {elements})
      ->withRequiresGrad(row.at(3).get<bool>());
}

Value* insertOp(Graph& graph, const std::string& target, const std::vector<Value*>& in) {
  auto constant = [&](const c10::IValue& value) { return graph.insertConstant(value); };
  std::vector<Value*> operands = in;
  std::string op = target;
  if (target == "linear" && in.size() == 2) {
    operands.push_back(constant({}));
  } else if (target == "add" || target == "add_") {
    operands.push_back(constant(1));
  } else if (target == "getitem") {
    op = "slice";
    for (int64_t number : {1, 0, 4, 1}) {
      operands.push_back(constant(number));
    }
  } else if (target == "to") {
    const std::vector<c10::IValue> more = {static_cast<int64_t>(at::kFloat), false, false, {}};
    for (const c10::IValue& value : more) {
      operands.push_back(constant(value));
    }
  } else if (target == "sum") {
    operands.push_back(constant({}));
  }
  // Not Graph::insert, which finds add.Scalar before add.Tensor.
  return graph.insertNode(graph.create(c10::Symbol::fromQualString("aten::" + op), operands))->output();
}

// The table's program: parameters are called p0, p1 …
std::shared_ptr<Graph> programOf(const json& table) {
  auto graph = std::make_shared<Graph>();
  auto plain = c10::TensorType::get()->withRequiresGrad(false);
  std::map<std::string, Value*> values;
  auto other = [&](const std::string& name) {
    Value*& value = values[name];
    if (!value) {
      value = graph->addInput()->setType(plain);
    }
    return value;
  };
  std::vector<Value*> parameters;
  for (const json& row : table.at("params")) {
    parameters.push_back(
        graph->addInput("p" + std::to_string(parameters.size()))->setType(parameterType(row)));
  }
  for (const json& op : table.at("ops")) {
    std::vector<Value*> operands;
    size_t used = 0;
    for (const std::string input : op.at(2)) {
      const bool is_parameter = input.find("parameters_") != std::string::npos;
      operands.push_back(is_parameter ? parameters.at(op.at(3).at(used++)) : other(input));
    }
    if (op.at(1) == "output") {
      graph->registerOutput(operands.at(0));
    } else {
      values[op.at(0)] = insertOp(*graph, op.at(1), operands);
    }
  }
  return graph;
}

Buckets indexesOf(const BreakPlan& plan) {
  Buckets buckets;
  for (const PlannedBucket& bucket : plan.buckets) {
    buckets.emplace_back();
    for (const std::string& name : bucket.parameters) {
      buckets.back().push_back(std::stoul(name.substr(1)));
    }
  }
  return buckets;
}

BucketOptions capsOf(const json& table) {
  BucketOptions options;
  options.first_bytes = table.at("first_cap");
  options.bytes = table.at("cap");
  return options;
}

// Where the plan says that each parameter's gradient becomes ready.
std::map<std::string, size_t> readyPieces(const BreakPlan& plan) {
  std::map<std::string, size_t> piece;
  for (size_t k = 0; k < plan.pieces.size(); ++k) {
    for (const std::string& name : plan.pieces[k].parameters) {
      piece[name] = k;
    }
  }
  return piece;
}

TEST(DdpBuckets, AreTheReducersWhereACutCanStand) {
  size_t own_piece = 0, together = 0;
  for (const json& table : bucketTables()) {
    SCOPED_TRACE(table.at("table").dump() + " " + table.at("first_cap").dump() + " " +
                 table.at("cap").dump());
    BucketOptions options = capsOf(table);
    for (size_t i = 0; i < table.at("params").size(); ++i) {
      if (table.at("params")[i].at(4).get<bool>()) {
        options.ignored.push_back("p" + std::to_string(i));
      }
    }
    auto plan = planBreaks(*programOf(table), BreakPolicy::buckets(options));
    ASSERT_TRUE(plan) << plan.error().str();
    EXPECT_EQ(indexesOf(*plan), table.at("reducer_grad_ready_order").get<Buckets>());

    const auto ready = readyPieces(*plan);
    std::set<size_t> completing;
    for (size_t b = 0; b < plan->buckets.size(); ++b) {
      const PlannedBucket& bucket = plan->buckets[b];
      size_t last = SIZE_MAX;
      for (const std::string& name : bucket.parameters) {
        last = std::min(last, ready.at(name));
      }
      EXPECT_EQ(bucket.piece, last) << "a bucket is complete when its last gradient is";
      // The last parameter alone decides: the piece begins with the op that uses it.
      if (completing.insert(bucket.piece).second) {
        EXPECT_EQ(bucket.note, "");
        ++own_piece;
      } else {
        EXPECT_THAT(bucket.note, testing::HasSubstr("no cut can stand between them"));
        ++together;
      }
      if (b > 0) {
        EXPECT_LE(bucket.piece, plan->buckets[b - 1].piece);
      }
    }
  }
  EXPECT_GT(own_piece, 60u);
  // Weight and bias of one linear layer, with a bucket for each.
  EXPECT_EQ(together, 4u);
}

TEST(DdpBuckets, CompatGivesDdpOptimizersBuckets) {
  size_t differs = 0;
  for (const json& table : bucketTables()) {
    SCOPED_TRACE(table.at("table").dump() + " " + table.at("first_cap").dump() + " " +
                 table.at("cap").dump());
    BucketOptions options = capsOf(table);
    options.as_ddpoptimizer = true;
    auto plan = planBreaks(*programOf(table), BreakPolicy::buckets(options));
    ASSERT_TRUE(plan) << plan.error().str();
    EXPECT_EQ(indexesOf(*plan), table.at("ddpoptimizer").get<Buckets>());
    // Its pieces are its buckets.
    EXPECT_EQ(plan->pieces.size(), plan->buckets.size());
    differs += table.at("ddpoptimizer") != table.at("reducer_grad_ready_order");
  }
  EXPECT_GT(differs, 5u);
}

TEST(DdpBuckets, NeedsSizes) {
  auto graph = readGraph(R"(
graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::mm(%x, %w)
  return (%a))");
  auto plan = planBreaks(**graph, BreakPolicy::buckets());
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, testing::HasSubstr("size of x is not known"));
  BucketOptions none;
  none.bytes = 0;
  EXPECT_FALSE(planBreaks(*programOf(bucketTables()[0]), BreakPolicy::buckets(none)));
}

}  // namespace
}  // namespace faultline::test
