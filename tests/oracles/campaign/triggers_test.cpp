// Each trigger on a case that it is about and on its nearest neighbours that it is not about.
#include "oracles/campaign/triggers.h"

#include <gtest/gtest.h>

#include "oracles/campaign/campaign.h"

namespace faultline {
namespace {

constexpr const char* kConstants =
    "  %zero : int = prim::Constant[value=0]()\n"
    "  %one : int = prim::Constant[value=1]()\n"
    "  %two : int = prim::Constant[value=2]()\n"
    "  %half : float = prim::Constant[value=0.5]()\n"
    "  %yes : bool = prim::Constant[value=1]()\n"
    "  %none : NoneType = prim::Constant()\n";

// With two inputs that require grad, unless `header` has runs of its own.
bool holds(const std::string& trigger, const std::string& body, std::string header = "",
           const std::string& inputs = "%x : Tensor, %y : Tensor") {
  if (header.find("run:") == std::string::npos) {
    header += "run: float32[2,2]:grad, float32[2,2]:grad\n  backward: all\n";
  }
  const Result<Case> c =
      readCase("faultline case 1\n" + header + "\ngraph(" + inputs + "):\n" + kConstants + body);
  const Trigger* found = findTrigger(trigger);
  if (!c || found == nullptr) {
    ADD_FAILURE() << trigger << ": " << (c ? "no such trigger" : c.error().str());
    return false;
  }
  return found->holds(*c);
}

const std::string kProduct = "  %a : Tensor = aten::mul(%x, %y)\n";
const std::string kNoGradients = "run: float32[2,2], float32[2,2]\n";

TEST(Trigger, WriteIntoUnlistedView) {
  const std::string name = "write_into_unlisted_view";
  EXPECT_TRUE(holds(name, kProduct + "  %b : Tensor = aten::t(%a)\n"
                                     "  %c : Tensor = aten::add_(%b, %b, %one)\n  return (%c)\n"));
  EXPECT_TRUE(holds(name, kProduct + "  %b : Tensor = aten::unsqueeze(%a, %one)\n"
                                     "  %c : Tensor = aten::detach(%b)\n"
                                     "  %d : Tensor = aten::select(%b, %one, %zero)\n"
                                     "  %e : Tensor = aten::zero_(%d)\n  return (%c)\n"))
      << "through a further view";
  EXPECT_TRUE(holds(name, kProduct + "  %b : Tensor = aten::t(%a)\n  %c : Tensor = aten::mul(%b, %one)\n"
                                     "  %d : Tensor = aten::relu_(%c)\n  return (%d)\n"))
      << "the optimiser takes x for x * 1";
  EXPECT_TRUE(holds(name, kProduct + "  %b : Tensor = aten::t(%a)\n  %c : Tensor = aten::relu_(%b)\n"
                                     "  %d : Tensor = aten::relu_(%c)\n  return (%b)\n"));
  EXPECT_FALSE(holds(name, kProduct + "  %b : Tensor = aten::t(%a)\n"
                                      "  %c : Tensor = aten::add(%b, %b, %one)\n  return (%c)\n"))
      << "not written";
  EXPECT_FALSE(holds(name, kProduct + "  %b : Tensor = aten::transpose(%a, %zero, %one)\n"
                                      "  %c : Tensor = aten::add_(%b, %b, %one)\n  return (%c)\n"))
      << "a listed view";
  EXPECT_FALSE(holds(name, kProduct + "  %b : Tensor = aten::t(%a)\n  %c : Tensor = aten::mul(%b, %b)\n"
                                      "  %d : Tensor = aten::add_(%c, %b, %one)\n  return (%d)\n"))
      << "written is something else";
}

TEST(Trigger, WriteIntoAViewThroughControlFlow) {
  const std::string name = "write_into_unlisted_view";
  EXPECT_TRUE(holds(name, kProduct + "  %b : Tensor = aten::t(%a)\n"
                                     "  %c : Tensor = prim::If(%yes)\n"
                                     "    block0():\n      -> (%b)\n    block1():\n      -> (%a)\n"
                                     "  %d : Tensor = aten::relu_(%c)\n  return (%d)\n"));
  EXPECT_TRUE(holds(name, kProduct + "  %b : Tensor = aten::t(%a)\n"
                                     "  %c : Tensor = prim::Loop(%two, %yes, %b)\n"
                                     "    block0(%i : int, %e : Tensor):\n"
                                     "      %f : Tensor = aten::relu_(%e)\n      -> (%yes, %f)\n"
                                     "  return (%c)\n"));
  EXPECT_TRUE(holds(name, kProduct + "  %b : Tensor = aten::t(%a)\n"
                                     "  %l : Tensor[] = prim::ListConstruct(%b, %x)\n"
                                     "  %c : Tensor, %d : Tensor = prim::ListUnpack(%l)\n"
                                     "  %e : Tensor = aten::relu_(%c)\n  return (%e)\n"));
}

TEST(Trigger, WriteIntoSameTensor) {
  const std::string name = "write_into_same_tensor";
  const std::string as = kProduct + "  %b : Tensor = aten::type_as(%a, %x)\n";
  EXPECT_TRUE(holds(name, as + "  %c : Tensor = aten::relu_(%b)\n  return (%c)\n"));
  EXPECT_FALSE(holds(name, as + "  %c : Tensor = aten::relu_(%a)\n  return (%b)\n"))
      << "the argument itself is written";
  EXPECT_FALSE(holds(name, as + "  %c : Tensor = aten::relu(%b)\n  return (%c)\n"));
}

TEST(Trigger, ReturnsSameTensor) {
  const std::string name = "returns_same_tensor";
  const std::string as = "  %b : Tensor = aten::type_as(%x, %y)\n";
  EXPECT_TRUE(holds(name, as + "  return (%b)\n"));
  EXPECT_FALSE(holds(name, as + "  %c : Tensor = aten::relu(%b)\n  return (%c)\n"));
}

TEST(Trigger, CallersDisagreeOnGradMode) {
  const std::string name = "callers_disagree_on_grad_mode";
  const std::string run = "run: float32[2]:grad, float32[2]\n";
  const std::string body = kProduct + "  return (%a)\n";
  EXPECT_TRUE(holds(name, body, run + run + "  nograd\n"));
  EXPECT_FALSE(holds(name, body, run + run));
  EXPECT_FALSE(holds(name, body, run + "  nograd\n" + run + "  nograd\n"));
  EXPECT_FALSE(holds(name, body, kNoGradients + kNoGradients + "  nograd\n")) << "nothing requires grad";
}

TEST(Trigger, GradModeDependsOnData) {
  const std::string name = "grad_mode_depends_on_data";
  const std::string set = "  aten::set_grad_enabled(%yes)\n";
  EXPECT_FALSE(holds(name, set + kProduct + "  return (%a)\n"));
  EXPECT_TRUE(holds(name,
                    "  %n : int = aten::dim(%x)\n  %k : bool = aten::gt(%n, %one)\n"
                    "  aten::set_grad_enabled(%k)\n" +
                        kProduct + "  return (%a)\n"));
  EXPECT_TRUE(holds(name, "  prim::If(%yes)\n    block0():\n    " + set +
                              "      -> ()\n    block1():\n      -> ()\n" + kProduct + "  return (%a)\n"));
}

TEST(Trigger, ChangesGradMode) {
  const std::string name = "changes_grad_mode";
  EXPECT_TRUE(holds(name, kProduct + "  aten::set_grad_enabled(%yes)\n  return (%a)\n"));
  EXPECT_FALSE(holds(name, kProduct + "  %k : bool = aten::is_grad_enabled()\n  return (%a, %k)\n"));
}

TEST(Trigger, WriteIntoHardswish) {
  const std::string name = "write_into_hardswish";
  const std::string swish = "  %b : Tensor = aten::hardswish(%x)\n";
  EXPECT_TRUE(holds(name, swish + "  %c : Tensor = aten::relu_(%b)\n  return (%c)\n"));
  EXPECT_FALSE(holds(name, swish + "  %c : Tensor = aten::relu(%b)\n  return (%c)\n"));
}

TEST(Trigger, TypeOfATensorThatNeedsGrad) {
  const std::string name = "type_of_a_tensor_that_needs_grad";
  const std::string one_needs = "run: float32[2], float32[2]:grad\n";
  EXPECT_TRUE(holds(name, "  %b : Tensor = aten::type_as(%x, %y)\n  return (%b)\n", one_needs));
  EXPECT_FALSE(holds(name, "  %b : Tensor = aten::type_as(%y, %x)\n  return (%b)\n", one_needs));
}

TEST(Trigger, FlagsInAListDiffer) {
  const std::string name = "flags_in_a_list_differ";
  const std::string body = "  %a : Tensor = aten::cat(%l, %zero)\n  return (%a)\n";
  const std::string list = "%l : Tensor[]";
  const std::string first = "run: [float32[2]:grad, float32[2]]\n";
  EXPECT_TRUE(holds(name, body, first + "run: [float32[2], float32[2]:grad]\n", list));
  EXPECT_FALSE(holds(name, body, first + first, list));
  EXPECT_FALSE(holds(name, kProduct + "  return (%a)\n",
                     "run: float32[2]:grad, float32[2]\nrun: float32[2], float32[2]:grad\n"))
      << "tensors are guarded";
}

TEST(Trigger, Formulas) {
  struct Row {
    const char* trigger;
    std::string about, neighbour;
  };
  const std::string back = "  return (%b)\n";
  const Row rows[] = {
      {"tie_of_max_or_min", "  %b : Tensor = aten::max(%x, %y)\n", "  %b : Tensor = aten::max(%x)\n"},
      {"gradient_at_a_bound", "  %b : Tensor = aten::hardtanh(%x, %zero, %one)\n",
       "  %b : Tensor = aten::tanh(%x)\n"},
      {"power_with_tensor_exponent", "  %b : Tensor = aten::pow(%half, %x)\n",
       "  %b : Tensor = aten::pow(%x, %half)\n"},
      {"standard_deviation", "  %b : Tensor = aten::std(%x, %yes)\n",
       "  %b : Tensor = aten::var(%x, %yes)\n"},
      {"mean_over_no_dimension",
       "  %l : int[] = prim::ListConstruct()\n  %b : Tensor = aten::mean(%x, %l, %yes, %none)\n",
       "  %l : int[] = prim::ListConstruct(%one)\n  %b : Tensor = aten::mean(%x, %l, %yes, %none)\n"},
      {"clamp_with_tensor_bounds", "  %b : Tensor = aten::clamp(%x, %y, %none)\n",
       "  %b : Tensor = aten::clamp(%x, %half, %none)\n"},
  };
  for (const Row& row : rows) {
    EXPECT_TRUE(holds(row.trigger, row.about + back)) << row.trigger;
    EXPECT_FALSE(holds(row.trigger, row.neighbour + back)) << row.trigger;
    EXPECT_FALSE(holds(row.trigger, row.about + back, kNoGradients)) << row.trigger << " without gradients";
  }
}

TEST(Trigger, SecondBackwardOfPiecewiseLinear) {
  const std::string name = "second_backward_of_piecewise_linear";
  const std::string twice = "run: float32[2]:grad, float32[2]\n  backward: all, double\n";
  EXPECT_TRUE(holds(name, "  %b : Tensor = aten::relu6(%x)\n  return (%b)\n", twice));
  EXPECT_FALSE(holds(name, "  %b : Tensor = aten::tanh(%x)\n  return (%b)\n", twice));
  EXPECT_FALSE(holds(name, "  %b : Tensor = aten::relu6(%x)\n  return (%b)\n"));
}

TEST(Trigger, ComplexGradient) {
  const std::string name = "complex_gradient";
  const std::string body = kProduct + "  return (%a)\n";
  EXPECT_TRUE(holds(name, body, "run: complex64[2]:grad, float32[2]\n"));
  EXPECT_FALSE(holds(name, body, "run: complex64[2], float32[2]\n"));
  EXPECT_FALSE(holds(name, body));
}

TEST(Trigger, PartOfASplit) {
  const std::string name = "part_of_a_split";
  const std::string parts =
      "  %l : Tensor[] = aten::chunk(%x, %two, %zero)\n  %a : Tensor, %b : Tensor = prim::ListUnpack(%l)\n";
  EXPECT_TRUE(holds(name, parts + "  return (%a, %b)\n"));
  EXPECT_TRUE(holds(name, parts + "  return (%a)\n"));
  EXPECT_FALSE(holds(name, parts + "  %c : Tensor = aten::mul(%a, %b)\n  return (%c)\n")) << "all are used";
  EXPECT_FALSE(holds(name, parts + "  return (%a, %b)\n", kNoGradients));
}

TEST(Trigger, LinearOfNothing) {
  const std::string name = "linear_of_nothing";
  const std::string body = "  %b : Tensor = aten::linear(%x, %y, %none)\n  return (%b)\n";
  EXPECT_TRUE(holds(name, body, "run: float32[2,0]:grad, float32[2,0]\n"));
  EXPECT_FALSE(holds(name, body));
  EXPECT_FALSE(holds(name, kProduct + "  return (%a)\n", "run: float32[2,0]:grad, float32[2,0]\n"));
}

TEST(Trigger, RandomOps) {
  const std::string draw = "  %a : Tensor = aten::rand_like(%x, %none, %none, %none, %none, %none)\n";
  const std::string drop = "  %b : Tensor = aten::dropout(%x, %half, %yes)\n";
  EXPECT_TRUE(holds("random_op_without_use", draw + drop + "  return (%b)\n"));
  EXPECT_FALSE(holds("random_op_without_use", draw + drop + "  return (%a, %b)\n"));
  EXPECT_TRUE(holds("several_random_ops", draw + drop + "  return (%a, %b)\n"));
  EXPECT_FALSE(holds("several_random_ops", draw + drop + "  return (%b)\n")) << "the other one is removed";
}

TEST(Trigger, NumberInATensorConstant) {
  const std::string name = "number_in_a_tensor_constant";
  const std::string number = "  %c : Tensor = prim::Constant[value=tensor(Double(), [0.5])]()\n";
  const std::string row = "  %c : Tensor = prim::Constant[value=tensor(Double(1), [0.5])]()\n";
  const std::string second = "  %a : Tensor = aten::mul(%x, %c)\n  return (%a)\n";
  EXPECT_TRUE(holds(name, number + second));
  EXPECT_TRUE(holds(name, number + "  %a : Tensor = aten::sub(%x, %c, %one)\n  return (%a)\n"));
  EXPECT_FALSE(holds(name, row + second)) << "not a number";
  EXPECT_FALSE(holds(name, number + "  %a : Tensor = aten::mul(%c, %x)\n  return (%a)\n"));
  EXPECT_FALSE(holds(name, number + "  %a : Tensor = aten::max(%x, %c)\n  return (%a)\n"));
  EXPECT_FALSE(holds(name, kProduct + "  return (%a)\n"));
}

TEST(Trigger, ConstantWritten) {
  const std::string name = "constant_written";
  const std::string row = "  %c : Tensor = prim::Constant[value=tensor(Float(2), [0.5, 1.])]()\n";
  EXPECT_TRUE(holds(name, row + "  %a : Tensor = aten::add_(%c, %x, %one)\n  return (%a)\n"));
  EXPECT_TRUE(holds(name, row + "  %v : Tensor = aten::detach(%c)\n  %a : Tensor = aten::relu_(%v)\n"
                                "  return (%c)\n"));
  EXPECT_TRUE(holds(name,
                    "  %l : int[] = prim::Constant[value=[1]]()\n"
                    "  %m : int[] = aten::append(%l, %one)\n  return (%x)\n"));
  EXPECT_FALSE(holds(name, row + "  %a : Tensor = aten::add(%c, %x, %one)\n  return (%a)\n"));
  EXPECT_FALSE(holds(name, row + "  %a : Tensor = aten::relu_(%x)\n  return (%a, %c)\n"));
}

TEST(Trigger, TheRest) {
  EXPECT_TRUE(holds("addmm", "  %a : Tensor = aten::addmm(%x, %x, %y, %one, %one)\n  return (%a)\n"));
  EXPECT_FALSE(holds("addmm", "  %a : Tensor = aten::mm(%x, %y)\n  return (%a)\n"));
  const std::string body = kProduct + "  return (%a)\n";
  EXPECT_TRUE(holds("mixed_precision", body, "run: float64[2]:grad, float32[2]\n"));
  EXPECT_FALSE(holds("mixed_precision", body, "run: float32[2]:grad, int64[2]\n"));
  EXPECT_FALSE(holds("mixed_precision", body, "run: float32[2], float32[2]\nrun: float64[2], float64[2]\n"));
  EXPECT_TRUE(holds("hook_on_a_seam", body, "hook: tensor seam mul\n"));
  EXPECT_FALSE(holds("hook_on_a_seam", body, "hook: tensor input 0\n"));
  const std::string two = kProduct + "  return (%a, %x)\n";
  const std::string one_output = "run: float32[2]:grad, float32[2]\n  backward: output 0\n";
  EXPECT_TRUE(holds("backward_from_one_of_several", two, one_output));
  EXPECT_FALSE(holds("backward_from_one_of_several", two));
  EXPECT_FALSE(holds("backward_from_one_of_several", body, one_output));
}

TEST(Trigger, EachIsNamedByARowAndTheOtherWayRound) {
  std::set<std::string> named;
  for (const KnownIssue& issue : knownIssues()) {
    EXPECT_NE(findTrigger(issue.trigger), nullptr) << issue.id;
    named.insert(issue.trigger);
  }
  for (const Trigger& trigger : triggers()) {
    EXPECT_EQ(named.count(trigger.name), 1U) << trigger.name;
    EXPECT_FALSE(trigger.help.empty()) << trigger.name;
  }
}

}  // namespace
}  // namespace faultline
