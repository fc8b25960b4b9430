#include "generators/case/model.h"

#include <filesystem>
#include <fstream>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <unistd.h>

#include "faultline/ir.h"

namespace faultline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Model load(std::string_view text) {
  auto model = modelFromText(text);
  EXPECT_TRUE(model) << model.error().str();
  return model.value_or(Model{});
}

std::map<std::string, InputSpec> inputs(const std::vector<const char*>& texts) {
  std::map<std::string, InputSpec> given;
  for (const char* text : texts) {
    auto named = readNamedInput(text);
    EXPECT_TRUE(named) << named.error().str();
    if (named) given.insert(*named);
  }
  return given;
}

std::vector<std::string> inputNames(const Model& model) {
  std::vector<std::string> names;
  for (const ModelInput& input : model.inputs) names.push_back(input.name);
  return names;
}

std::vector<std::string> graphNamesOf(const Model& model) {
  std::vector<std::string> names;
  for (torch::jit::Value* input : model.graph->inputs()) names.push_back(input->debugName());
  return names;
}

// One run of a case in the interpreter.
std::vector<c10::IValue> runOnce(const Case& c) {
  std::vector<c10::IValue> stack;
  for (size_t i = 0; i < c.graph->inputs().size(); ++i) {
    stack.push_back(
        makeInput(c.runs.at(0).inputs.at(i), c.seed, stack, c.graph->inputs()[i]->type()).value());
  }
  torch::jit::Code code(c.graph->copy(), "test");
  torch::jit::InterpreterState(code).run(stack);
  return stack;
}

TEST(ModelScript, ParamLinesAndDefaultsDescribeArguments) {
  Model model = load(
      "import torch\n"
      "# param w: float32[8,8]:grad:seed=1\n"
      "#   param b : float32[8] seed=2\n"
      "# params are made up, param x is not\n"
      "@torch.jit.script\n"
      "def f(x, w, b, n: int = 2, s: str = 'a', l: List[int] = [1, 2], p: Optional[float] = None):\n"
      "    return torch.linear(x, w, b) * n\n");
  EXPECT_EQ(model.source_kind, "torchscript");
  EXPECT_THAT(inputNames(model), ElementsAre("x", "w", "b", "n", "s", "l", "p"));
  EXPECT_EQ(graphNamesOf(model), inputNames(model));
  Case c = modelToCase(model, inputs({"x=float32[4,8]"})).value();
  EXPECT_EQ(c.runs.size(), 3u);
  std::vector<std::string> specs;
  for (const InputSpec& spec : c.runs[2].inputs) specs.push_back(writeInputSpec(spec));
  EXPECT_THAT(specs, ElementsAre("float32[4,8]", "float32[8,8]:grad:seed=1", "float32[8]:seed=2", "2",
                                 "\"a\"", "[1, 2]", "none"));
  EXPECT_EQ(c.runs[0].backwards, (std::vector<BackwardSpec>{{BackwardSpec::Kind::All, 0}}));
  EXPECT_EQ(runOnce(c).at(0).toTensor().sizes(), (std::vector<int64_t>{4, 8}));
  // The case is a case: text and back.
  auto again = readCase(writeCase(c));
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_TRUE(graphsEqual(*again->graph, *c.graph));
}

TEST(ModelScript, EveryKindOfArgumentCanBeGiven) {
  Model model = load(
      "def f(x, n: int, d: float, flag: bool, s: str, l: List[Tensor], t: Tuple[int, Tensor], o: "
      "Optional[Tensor], q: List[float]):\n"
      "    if flag:\n"
      "        x = x * d + n\n"
      "    if o is not None:\n"
      "        x = x + o\n"
      "    return x + l[0] + l[1] + t[1] * t[0] + q[0]\n");
  Case c = modelToCase(model, inputs({"x=float32[2]", "n=3", "d=1", "flag=true", "s=\"x\"",
                                      "l=[float32[2], float32[2]:grad]", "t=(2, float32[2])", "o=none",
                                      "q=[1, 0.5]"}))
               .value();
  EXPECT_EQ(c.runs[0].inputs.at(2).kind, InputSpec::Kind::Double);
  EXPECT_EQ(runOnce(c).at(0).toTensor().numel(), 2);
  EXPECT_EQ(c.runs[0].backwards.size(), 1u);
}

TEST(ModelScript, DtypesConstantsAndExceptionsResolve) {
  Model model = load(
      "def f(x: torch.Tensor, dtype: torch.dtype):\n"
      "    y = torch.zeros([2], dtype=torch.float64) + x.to(torch.double)\n"
      "    if x.dim() > 5:\n"
      "        raise ValueError('too deep')\n"
      "    y = y.clone(memory_format=torch.contiguous_format)\n"
      "    return (y + math.pi * torch.ones([2], device=torch.device('cpu'), "
      "dtype=torch.float16)).to(dtype)\n");
  Case run = modelToCase(model, inputs({"x=float32[2]:zeros", "dtype=6"})).value();
  at::Tensor result = runOnce(run).at(0).toTensor();
  EXPECT_EQ(result.scalar_type(), at::kFloat);
  EXPECT_EQ(result[0].item<double>(), 3.140625);  // pi in float16
}

TEST(ModelScript, ForwardThenFThenTheLastIsTaken) {
  EXPECT_THAT(
      inputNames(load("def f(a):\n  return a\ndef forward(b):\n  return f(b)\ndef g(c):\n  return c\n")),
      ElementsAre("b"));
  EXPECT_THAT(inputNames(load("def f(a):\n  return a\ndef g(c):\n  return c\n")), ElementsAre("a"));
  EXPECT_THAT(inputNames(load("def g(a):\n  return a\ndef h(c):\n  return g(c)\n")), ElementsAre("c"));
}

TEST(ModelScript, CallsAreInlined) {
  Model model = load("def g(x):\n  return torch.relu(x)\ndef f(x):\n  return g(g(x))\n");
  EXPECT_THAT(NodeNames(*model.graph).all(), ElementsAre("relu", "relu_1"));
}

struct BadScript {
  const char* text;
  size_t line, column;
  const char* message;
};

class ScriptErrors : public testing::TestWithParam<BadScript> {};

TEST_P(ScriptErrors, PointIntoTheSource) {
  auto model = modelFromText(GetParam().text);
  ASSERT_FALSE(model);
  ASSERT_TRUE(model.error().where) << model.error().str();
  EXPECT_EQ(model.error().where->line, GetParam().line) << model.error().str();
  EXPECT_EQ(model.error().where->column, GetParam().column) << model.error().str();
  EXPECT_THAT(model.error().message, HasSubstr(GetParam().message));
  EXPECT_THAT(model.error().message, testing::Not(HasSubstr("\n")));
}

INSTANTIATE_TEST_SUITE_P(
    All, ScriptErrors,
    testing::Values(
        BadScript{"# c\n\ndef f(x):\n  y = torch.foo(x)\n  return y\n", 4, 7,
                  "Unknown builtin op: aten::foo"},
        BadScript{"def f(x):\n  y = x +\n  return y\n", 2, 10, "expected ident but found 'newline'"},
        BadScript{"def f(x):\n  return zz\n", 2, 10, "undefined value zz"},
        BadScript{"def g(x):\n  return torch.nge(x)\ndef f(x):\n  return g(x)\n", 2, 10, "aten::nge"},
        BadScript{"def f(x):\n  return x\nx = 3\n", 3, 1, "expected def but found 'ident'"},
        BadScript{"class M:\n  pass\n", 1, 1,
                  "expected def, found a class: save an instance with torch.jit.save"},
        BadScript{"def f(x):\n  with torch.no_grad():\n    return x\n", 2, 8,
                  "torch.set_grad_enabled(False)"},
        BadScript{"def f(x):\n  return f(x)\n", 2, 10, "called recursively"},
        BadScript{"import torch\n", 1, 1, "expected a function"},
        BadScript{"# param x: float32[\ndef f(x):\n  return x\n", 1, 20, "expected a size"},
        BadScript{"# param x: 3\n# param x: 4\ndef f(x):\n  return x\n", 2, 9, "declared once"},
        BadScript{"What is this\n", 1, 1, "expected a case, IR"}, BadScript{"", 1, 1, "expected a case, IR"},
        BadScript{"faultline tape 1\n", 1, 1, "is a tape"},
        BadScript{"faultline case 1\n", 2, 1, "expected a directive"},
        BadScript{"graph(%x : Tensor)\n", 2, 1, "expected ':'"}));

TEST(ModelScript, SourcesThatNestWithoutEndAreRefused) {
  std::string text = "def f(x):\n  return " + std::string(100000, '(') + "x";
  auto model = modelFromText(text);
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("nested brackets"));
}

TEST(ModelScript, ParamLinesOfNoArgumentAreRefused) {
  auto model = modelFromText("# param y: float32[2]\ndef f(x):\n  return x\n");
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("'# param y' declares what is no argument"));
}

TEST(ModelIr, CompleteTypesAndParamLinesDescribe) {
  Model model = load(
      "# a dump\n"
      "# param y: float32[3]\n"
      "graph(%x.1 : Float(2, 3, strides=[1, 2], requires_grad=1, device=cpu), %y : Tensor, %n : int):\n"
      "  %a : Tensor = aten::add(%x.1, %y, %n)\n"
      "  return (%a)\n");
  EXPECT_EQ(model.source_kind, "ir");
  EXPECT_EQ(writeInputSpec(model.inputs.at(0).spec.value()), "float32[2,3]:grad:strides=[1,2]");
  EXPECT_THAT(modelToCase(model, {}).error().message,
              HasSubstr("nothing describes n: give each one as --input 'n="));
  Case c = modelToCase(model, inputs({"n=2"})).value();
  EXPECT_EQ(runOnce(c).at(0).toTensor().sizes(), (std::vector<int64_t>{2, 3}));
  // The number that libtorch adds to a name may be left out.
  EXPECT_TRUE(modelToCase(model, inputs({"n=2", "x=float32[2,3]:grad:strides=[1,2]:ones"})));
  EXPECT_THAT(modelToCase(model, inputs({"n=2", "x=float32[2,3]"})).error().message,
              HasSubstr("input x.1: requires_grad is declared 1, the input has 0"));
}

TEST(ModelCase, RefusesByName) {
  Model model = load("def f(alpha, beta, n: int):\n  return alpha + beta * n\n");
  EXPECT_THAT(modelToCase(model, inputs({"beta=float32[2]"})).error().message,
              HasSubstr("nothing describes alpha, n"));
  // The advice fits the type, and can be followed.
  Model nested = load("def f(a: Tuple[Tensor, List[int]], s: str):\n  return a[0] * len(s)\n");
  EXPECT_THAT(modelToCase(nested, {}).error().message, HasSubstr("--input 'a=(float32[4,8],[3])'"));
  EXPECT_TRUE(modelToCase(nested, inputs({"a=(float32[4,8],[3])", "s=\"words\""})));
  Model dict = load("def f(a: Dict[str, Tensor]):\n  return a['x']\n");
  EXPECT_THAT(modelToCase(dict, {}).error().message, HasSubstr("argument 'a' is a dict"));
  EXPECT_THAT(modelToCase(model, inputs({"alhpa=float32[2]"})).error().message,
              HasSubstr("no argument 'alhpa' (did you mean 'alpha'?)"));
  EXPECT_THAT(modelToCase(model, inputs({"alpha=float32[2]", "beta=float32[2]", "n=0.5"})).error().message,
              HasSubstr("input n: int is declared, the input is float"));
}

TEST(ModelCase, AnotherNumberOfRunsNoBackwardCompleteTypes) {
  Model model = load("def f(x):\n  return x + 1\n");
  ModelCaseOptions options;
  options.seed = 7;
  options.runs = 1;
  options.backward = false;
  options.complete_types = true;
  Case c = modelToCase(model, inputs({"x=float32[2]:grad"}), options).value();
  EXPECT_EQ(c.seed, 7u);
  EXPECT_EQ(c.runs.size(), 1u);
  EXPECT_TRUE(c.runs[0].backwards.empty());
  EXPECT_EQ(*c.graph->inputs().at(0)->type(), *inputType(readInputSpec("float32[2]:grad").value(), true));
  EXPECT_EQ(*model.graph->inputs().at(0)->type(), *c10::TensorType::get());
}

TEST(ModelCase, ACaseKeepsItsRunsAndPlan) {
  Model model = load(
      "faultline case 1\n"
      "seed: 5\n"
      "breaks: every 1\n"
      "run: float32[2]:grad, float32[2]\n"
      "run: float32[3], float32[3]\n"
      "  nograd\n"
      "graph(%x : Tensor, %y : Tensor):\n"
      "  %a : Tensor = aten::mul(%x, %y)\n"
      "  return (%a)\n");
  EXPECT_EQ(model.source_kind, "case");
  Case same = modelToCase(model, {}).value();
  EXPECT_EQ(writeCase(same), writeCase(*model.as_case));
  Case changed = modelToCase(model, inputs({"y=float32[1]"})).value();
  EXPECT_EQ(changed.plan.breaks, "every 1");
  EXPECT_EQ(writeInputSpec(changed.runs.at(0).inputs.at(0)), "float32[2]:grad");
  EXPECT_EQ(writeInputSpec(changed.runs.at(1).inputs.at(1)), "float32[1]");
  EXPECT_FALSE(changed.runs.at(1).grad_mode);
}

TEST(NamedInput, ReadsNameAndDescription) {
  auto named = readNamedInput(" x = float32[2]:grad ").value();
  EXPECT_EQ(named.first, "x");
  EXPECT_TRUE(named.second.requires_grad);
  EXPECT_EQ(readNamedInput("n=int=3").value().second.int_value, 3);
  EXPECT_EQ(readNamedInput("x.1=3").value().first, "x.1");
  EXPECT_THAT(readNamedInput("float32[2]").error().message, HasSubstr("NAME=DESCRIPTION"));
  EXPECT_EQ(readNamedInput("x=flaot32[2]").error().where->column, 3u);
  EXPECT_THAT(readNamedInput("x=3 4").error().message, HasSubstr("the end of the input's description"));
}

TEST(LoadModel, ErrorsNameTheFile) {
  std::string path = std::filesystem::temp_directory_path() / ("faultline-model-" + std::to_string(getpid()));
  std::ofstream(path) << "def f(x):\n  return zz\n";
  EXPECT_EQ(loadModel(path).error().str(), path + ":2:10: undefined value zz");
  std::ofstream(path, std::ios::binary) << std::string("PK\3\4 nothing", 12);
  EXPECT_THAT(loadModel(path).error().str(), HasSubstr(path + ": is no saved TorchScript module"));
  std::ofstream(path, std::ios::binary) << std::string(
      "\x7f"
      "ELF\0",
      5);
  EXPECT_THAT(loadModel(path).error().str(), HasSubstr(path + ":1:5: is a binary file"));
  std::filesystem::remove(path);
  EXPECT_THAT(loadModel(path).error().str(), HasSubstr("No such file"));
}

}  // namespace
}  // namespace faultline
