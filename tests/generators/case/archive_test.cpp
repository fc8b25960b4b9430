// Saved modules, made here with libtorch's own C++ API. corpus/examples/mlp4.pt is what makeMlp4 gives.
#include <filesystem>
#include <fstream>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/jit/serialization/import.h>
#include <unistd.h>

#include "faultline/ir.h"
#include "generators/case/file.h"
#include "generators/case/model.h"

namespace faultline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using torch::jit::Module;

at::Tensor tensor(const char* text) { return makeInput(readInputSpec(text).value(), 1).value().toTensor(); }

struct Builder {
  std::shared_ptr<torch::jit::CompilationUnit> unit = std::make_shared<torch::jit::CompilationUnit>();
  Module module(const std::string& name) { return Module(c10::QualifiedName("__torch__." + name), unit); }
};

// Four linear layers of 8 with bias, ReLU between.
Module makeMlp4() {
  Builder builder;
  Module mlp = builder.module("MLP4");
  for (int i = 0; i < 4; ++i) {
    Module layer = builder.module("Linear" + std::to_string(i));
    layer.register_parameter("weight",
                             tensor(("float32[8,8]:grad:unit:seed=" + std::to_string(2 * i)).c_str()), false);
    layer.register_parameter(
        "bias", tensor(("float32[8]:grad:unit:seed=" + std::to_string(2 * i + 1)).c_str()), false);
    layer.define("def forward(self, x):\n    return torch.linear(x, self.weight, self.bias)\n");
    mlp.register_module("fc" + std::to_string(i), layer);
  }
  mlp.define(
      "def forward(self, x):\n"
      "    x = torch.relu(self.fc0.forward(x))\n"
      "    x = torch.relu(self.fc1.forward(x))\n"
      "    x = torch.relu(self.fc2.forward(x))\n"
      "    return self.fc3.forward(x)\n");
  return mlp;
}

class Archive : public testing::Test {
 protected:
  Archive()
      : path_(std::filesystem::temp_directory_path() /
              ("faultline-archive-" + std::to_string(getpid()) + ".pt")) {}
  ~Archive() override { std::filesystem::remove(path_); }

  Result<Model> saveAndLoad(const Module& module) {
    module.save(path_);
    return loadModel(path_);
  }

  std::string path_;
};

std::vector<std::string> namesOf(const Model& model) {
  std::vector<std::string> names;
  for (const ModelInput& input : model.inputs) names.push_back(input.name);
  return names;
}

std::vector<c10::IValue> execute(const Case& c) {
  std::vector<c10::IValue> stack;
  for (size_t i = 0; i < c.graph->inputs().size(); ++i) {
    stack.push_back(
        makeInput(c.runs.at(0).inputs.at(i), c.seed, stack, c.graph->inputs()[i]->type()).value());
  }
  torch::jit::Code code(c.graph->copy(), "test");
  torch::jit::InterpreterState(code).run(stack);
  return stack;
}

TEST_F(Archive, TheExampleOfTheCorpusIsThisModule) {
  const std::string example = std::string(FAULTLINE_CORPUS) + "/examples/mlp4.pt";
  const std::string right = std::string(FAULTLINE_BINARY_DIR) + "/mlp4.pt";
  makeMlp4().save(right);
  auto made = loadModel(right);
  ASSERT_TRUE(made) << made.error().str();
  auto model = loadModel(example);
  ASSERT_TRUE(model) << model.error().str() << "\nright would be a copy of " << right;
  ASSERT_EQ(model->inputs.size(), made->inputs.size());
  for (size_t i = 0; i < model->inputs.size(); ++i) {
    EXPECT_EQ(model->inputs[i].name, made->inputs[i].name);
    EXPECT_EQ(model->inputs[i].spec, made->inputs[i].spec);
  }
  EXPECT_EQ(describeGraphDifference(*model->graph, *made->graph), "");
  EXPECT_LE(std::filesystem::file_size(example), 64u << 10);
}

TEST_F(Archive, ParametersAreInputsWithTheirValues) {
  Module mlp = makeMlp4();
  auto model = saveAndLoad(mlp);
  ASSERT_TRUE(model) << model.error().str();
  EXPECT_EQ(model->source_kind, "archive");
  EXPECT_THAT(namesOf(*model), ElementsAre("x", "fc0.weight", "fc0.bias", "fc1.weight", "fc1.bias",
                                           "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"));
  EXPECT_EQ(model->graph->inputs().at(1)->debugName(), "fc0_weight");
  EXPECT_THAT(NodeNames(*model->graph).all(),
              ElementsAre("linear", "relu", "linear_1", "relu_1", "linear_2", "relu_2", "linear_3"));
  EXPECT_TRUE(model->inputs.at(1).is_parameter);
  EXPECT_TRUE(model->inputs.at(1).spec->requires_grad);
  Case c = modelToCase(*model, {{"x", readInputSpec("float32[16,8]").value()}}).value();
  at::Tensor x = makeInput(c.runs[0].inputs[0], c.seed).value().toTensor();
  EXPECT_TRUE(execute(c).at(0).toTensor().equal(mlp.forward({x}).toTensor()));
  EXPECT_EQ(c.runs[0].backwards.size(), 1u);
  EXPECT_THAT(modelToCase(*model, {{"x", InputSpec{}}, {"fc0.bias", InputSpec{}}}).error().message,
              HasSubstr("'fc0.bias' belongs to the module"));
  // Small enough to be read by people.
  std::string text = writeCase(c);
  EXPECT_THAT(text, HasSubstr("float32[8]:grad:values=["));
  // Later runs refer to the first instead of saying it all again.
  EXPECT_THAT(text, HasSubstr("\nrun: float32[16,8], ~, ~, ~, ~, ~, ~, ~, ~\n"));
  EXPECT_TRUE(execute(readCase(writeCase(c)).value()).at(0).toTensor().equal(execute(c).at(0).toTensor()));
}

TEST_F(Archive, LargeAndOddTensorsKeepEveryBit) {
  Builder builder;
  Module module = builder.module("M");
  at::Tensor odd =
      at::tensor({std::numeric_limits<float>::quiet_NaN(), 0.1f, std::numeric_limits<float>::denorm_min()});
  module.register_parameter("large", tensor("float32[100,100]"), false);
  module.register_buffer("odd", odd);
  module.register_buffer("whole", at::tensor({(int64_t{1} << 60) + 1}));
  module.register_buffer("half", tensor("bfloat16[3]"));
  module.register_buffer("turned", tensor("complex64[2,3]").t());
  module.define(
      "def forward(self, x):\n    return (self.large, self.odd, self.whole, self.half, self.turned)\n");
  auto model = saveAndLoad(module);
  ASSERT_TRUE(model) << model.error().str();
  Case c = readCase(writeCase(modelToCase(*model, {{"x", InputSpec{}}}).value())).value();
  auto results = execute(c).at(0).toTupleRef().elements().vec();
  for (size_t i = 0; i < results.size(); ++i) {
    const char* name = std::array{"large", "odd", "whole", "half", "turned"}[i];
    at::Tensor wanted = module.attr(name).toTensor().contiguous();
    at::Tensor got = results[i].toTensor();
    EXPECT_EQ(got.strides(), module.attr(name).toTensor().strides()) << name;
    got = got.contiguous();
    ASSERT_EQ(got.nbytes(), wanted.nbytes()) << name;
    EXPECT_EQ(std::memcmp(got.const_data_ptr(), wanted.const_data_ptr(), got.nbytes()), 0) << name;
  }
}

TEST_F(Archive, OtherAttributesBecomeConstants) {
  Builder builder;
  Module module = builder.module("M");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_attribute("scale", c10::FloatType::get(), 2.5);
  module.register_attribute("sizes", c10::ListType::ofInts(), c10::List<int64_t>({2, 1}));
  module.register_attribute("bias", c10::OptionalType::ofTensor(), c10::IValue());
  module.register_attribute("plain", c10::TensorType::get(), at::full({1}, 3.0f));
  module.define(
      "def forward(self, x, n: int = 2):\n"
      "    b = self.bias\n"
      "    if b is not None:\n"
      "        x = x + b\n"
      "    if self.training:\n"
      "        x = x * self.scale\n"
      "    return x.reshape(self.sizes) * self.plain * n\n");
  auto model = saveAndLoad(module);
  ASSERT_TRUE(model) << model.error().str();
  EXPECT_THAT(namesOf(*model), ElementsAre("x", "n", "plain"));
  Case c = modelToCase(*model, {{"x", readInputSpec("float32[2]:ones").value()}}).value();
  EXPECT_TRUE(execute(c).at(0).toTensor().equal(at::full({2, 1}, 15.0f)));
}

// As nn.LSTM holds its weights: once by name, and all in a list.
TEST_F(Archive, ListsAndTuplesOfTensorsAreMadeOfInputs) {
  Builder builder;
  Module module = builder.module("M");
  const at::Tensor a = tensor("float32[2]:grad"), b = tensor("float32[2]:seed=3");
  module.register_parameter("a", a, false);
  module.register_attribute("flat", c10::ListType::ofTensors(), c10::List<at::Tensor>({a, b}));
  module.register_attribute("pair", c10::TupleType::create({c10::TensorType::get(), c10::IntType::get()}),
                            c10::ivalue::Tuple::create({c10::IValue(b), c10::IValue(3)}));
  module.define(
      "def forward(self, x):\n"
      "    t, n = self.pair\n"
      "    return torch.stack(self.flat).sum(0) * x * self.a + t * n\n");
  auto model = saveAndLoad(module);
  ASSERT_TRUE(model) << model.error().str();
  EXPECT_THAT(namesOf(*model), ElementsAre("x", "a", "flat.1"));
  Case c = modelToCase(*model, {{"x", readInputSpec("float32[2]:ones").value()}}).value();
  const at::Tensor wanted = (a + b) * a + b * 3;
  EXPECT_TRUE(execute(c).at(0).toTensor().allclose(wanted));
  Module writes = builder.module("Writes");
  writes.register_attribute("flat", c10::ListType::ofTensors(), c10::List<at::Tensor>({a, b}));
  writes.define("def forward(self, x):\n    self.flat.append(x)\n    return torch.stack(self.flat)\n");
  EXPECT_THAT(saveAndLoad(writes).error().message, HasSubstr("forward writes into the list 'flat'"));
}

// tests/data/models/no_grad.pt was saved by Python, whose class no_grad comes with it:
//   with torch.no_grad():
//       y = x * 2
//       if flag:
//           with torch.no_grad():
//               y = y + x
//       z = y * x
//   return x * z + x
TEST_F(Archive, NoGradOfPythonIsAChangeOfGradMode) {
  const std::string path = std::string(FAULTLINE_TEST_DATA) + "/models/no_grad.pt";
  auto model = loadModel(path);
  ASSERT_TRUE(model) << model.error().str();
  ASSERT_TRUE(verifyGraph(*model->graph)) << verifyGraph(*model->graph).error().str();
  for (const char* flag : {"bool=true", "bool=false"}) {
    SCOPED_TRACE(flag);
    Case c = modelToCase(*model, {{"x", readInputSpec("float32[3]:grad").value()},
                                  {"flag", readInputSpec(flag).value()}})
                 .value();
    auto gradientOf = [&](const auto& forward) {
      const at::Tensor x = makeInput(c.runs[0].inputs[0], c.seed).value().toTensor();
      torch::jit::Stack stack{x, std::string(flag) == "bool=true"};
      forward(stack).sum().backward();
      EXPECT_TRUE(at::GradMode::is_enabled());
      return x.grad();
    };
    const at::Tensor wanted = gradientOf([&](torch::jit::Stack& stack) {
      Module module = torch::jit::load(path);
      return module.forward(stack).toTensor();
    });
    const at::Tensor got = gradientOf([&](torch::jit::Stack& stack) {
      torch::jit::InterpreterState(torch::jit::Code(c.graph->copy(), "test")).run(stack);
      return stack.at(0).toTensor();
    });
    EXPECT_TRUE(got.equal(wanted)) << got << wanted;
  }
}

TEST_F(Archive, SharedParametersAreOneInput) {
  Builder builder;
  Module module = builder.module("M");
  at::Tensor shared = tensor("float32[2]");
  module.register_parameter("a", shared, false);
  module.register_parameter("b", shared, false);
  module.define("def forward(self, x):\n    return x * self.a + self.b\n");
  auto model = saveAndLoad(module);
  ASSERT_TRUE(model) << model.error().str();
  // Saving keeps the storage shared, not the tensor: two inputs are what the loaded module has.
  auto loaded = torch::jit::load(path_);
  bool same = loaded.attr("a").toTensor().is_same(loaded.attr("b").toTensor());
  EXPECT_EQ(namesOf(*model).size(), same ? 2u : 3u);
}

TEST_F(Archive, WhatCannotBeAGraphIsNamed) {
  Builder builder;
  {
    Module module = builder.module("NoForward");
    module.define("def run(self, x):\n    return x\n");
    EXPECT_THAT(saveAndLoad(module).error().message, HasSubstr("no method 'forward'"));
  }
  {
    Module module = builder.module("Counts");
    module.register_attribute("count", c10::IntType::get(), 0);
    module.define("def forward(self, x):\n    self.count = self.count + 1\n    return x * self.count\n");
    EXPECT_THAT(saveAndLoad(module).error().message,
                HasSubstr("forward assigns attribute 'count' of the module"));
  }
  {
    Module module = builder.module("Large");
    module.register_buffer("huge", at::zeros({9 << 20}));
    module.define("def forward(self, x):\n    return x\n");
    EXPECT_THAT(saveAndLoad(module).error().message, HasSubstr("the module's tensors take 37 MiB"));
  }
  {
    Module module = builder.module("Sparse");
    module.register_buffer("sparse", at::eye(3).to_sparse());
    module.define("def forward(self, x):\n    return x\n");
    EXPECT_THAT(saveAndLoad(module).error().message, HasSubstr("'sparse' is sparse: only dense tensors"));
  }
}

}  // namespace
}  // namespace faultline
