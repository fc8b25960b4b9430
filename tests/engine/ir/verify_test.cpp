#include <gmock/gmock.h>
#include <torch/csrc/jit/runtime/autodiff.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include "engine/ir/places.h"
#include "tests/engine/ir/ir_text.h"

namespace faultline {
namespace {

using ::testing::HasSubstr;
using testing::mustRead;

std::string problem(const Graph& graph) {
  const auto result = verifyGraph(graph);
  if (!result) {
    EXPECT_EQ(result.error().kind, ErrorKind::Invalid);
  }
  return result ? "" : result.error().message;
}

std::string problem(const std::string& text) { return problem(*mustRead(text)); }

// A graph of these nodes; it has inputs of the usual types.
std::string nodesProblem(const std::string& nodes) {
  return problem(
      "graph(%x : Tensor, %y : Tensor, %i : int, %c : bool, %o : int?, %l : int[], %t : (int, Tensor), %s : "
      "str):\n" +
      nodes + "\n  return ()\n");
}

TEST(Verify, KnowsWhereTheNodeStands) {
  const auto where = [](const std::string& text) {
    NodePlaces places;
    const auto graph = readGraphWithPlaces(text, 10, places);
    EXPECT_TRUE(graph) << text;
    const auto verified = verifyGraphWithPlaces(**graph, places);
    EXPECT_FALSE(verified) << text;
    const SourceLocation at = verified ? SourceLocation{} : verified.error().where.value_or(SourceLocation{});
    return std::to_string(at.line) + ":" + std::to_string(at.column);
  };
  EXPECT_EQ(where("graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n\n  %z : Tensor = aten::mm(%y)\n"
                  "  return (%z)\n"),
            "13:17");
  EXPECT_EQ(where("graph(%x : Tensor, %c : bool):\n"
                  "  %y : Tensor = prim::If(%c)\n"
                  "    block0():\n"
                  "      %a : Tensor = aten::relu(%x) %b : Tensor = aten::mm(%a)\n"
                  "      -> (%b)\n"
                  "    block1():\n"
                  "      -> (%x)\n"
                  "  return (%y)\n"),
            "13:50");
  EXPECT_EQ(where("graph(%x : Tensor):\n"
                  "  %y : Tensor = prim::DifferentiableGraph_0(%x)\n"
                  "  return (%y)\n"
                  "with prim::DifferentiableGraph_0 = graph(%a : Tensor):\n"
                  "  %b : Tensor = aten::mm(%a)\n"
                  "  return (%b)\n"),
            "14:17");
}

TEST(Verify, AcceptsWhatTheInterpreterRuns) {
  const auto graph = mustRead(R"IR(
graph(%x : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu), %n : int, %c : bool):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %size : int[] = prim::Constant[value=[3, 2]]()
  %empty : int[] = prim::Constant[value=annotate(List[int], [])]()
  %t : bool = prim::Constant[value=True]()
  %weight : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) = prim::Constant[value=tensor(Float(2, 3), [1., 2., 3., 4., 5., 6.])]()
  %a : Tensor = aten::add(%x, %weight, %one)
  %b : Tensor = aten::view(%a, %size)
  %r : Tensor = prim::If(%c)
    block0():
      %p : Tensor = aten::relu(%b)
      -> (%p)
    block1():
      %q : Tensor = aten::sum(%b, %none)
      -> (%q)
  %s : Tensor, %k : int = prim::Loop(%n, %t, %r, %one)
    block0(%i : int, %u : Tensor, %j : int):
      %v : Tensor = aten::mul(%u, %j)
      %w : int = aten::add(%i, %j)
      -> (%t, %v, %w)
  %list : Tensor[] = prim::ListConstruct(%s, %r)
  %tuple : (Tensor, int) = prim::TupleConstruct(%s, %k)
  %f : Tensor, %g : int = prim::TupleUnpack(%tuple)
  %h : Tensor = prim::TupleIndex(%tuple, %zero)
  %m : Tensor, %o : Tensor = prim::ListUnpack(%list)
  %dict : Dict(int, Tensor) = prim::DictConstruct(%one, %m)
  %z : Tensor = aten::__getitem__(%dict, %one)
  return (%z, %h, %empty, %g)
)IR");
  ASSERT_EQ(problem(*graph), "");
  torch::jit::Code code(graph, "f");
  torch::jit::Stack stack = {at::ones({2, 3}), 2, true};
  torch::jit::InterpreterState(code).run(stack);
  EXPECT_EQ(stack.size(), 4U);
  EXPECT_EQ(stack[3].toInt(), 2);
}

TEST(Verify, ProfileNodesAndSubgraphs) {
  EXPECT_EQ(problem(R"IR(
graph(%x : Tensor, %k : int):
  %p : Tensor = prim::profile[profiled_type=Float(2, strides=[1], requires_grad=0, device=cpu)](%x)
  %k1 : int, %k2 : int = prim::profile_ivalue(%k, %k)
   = prim::profile()
  %a : Tensor = prim::DifferentiableGraph_0(%p)
  return (%a)
with prim::DifferentiableGraph_0 = graph(%x : Float(2, requires_grad=0)):
  %y : Float(2) = aten::neg(%x)
  return (%y)
)IR"),
            "");
}

TEST(Verify, Scopes) {
  EXPECT_EQ(problem(R"IR(
graph(%x : Tensor, %k : bool):
  %o : Tensor = prim::If(%k)
    block0():
      %a : Tensor = aten::exp(%x)
      -> (%a)
    block1():
      -> (%x)
  %r : Tensor = aten::neg(%a)
  return (%r, %o)
)IR"),
            "%r = aten::neg(%a): input 0 (%a) is not in scope: it is made in a block of %o = prim::If(%k)");
  EXPECT_EQ(problem(R"IR(
graph(%x : Tensor, %k : bool):
  %o : Tensor = prim::If(%k)
    block0():
      %a : Tensor = aten::exp(%x)
      -> (%a)
    block1():
      -> (%a)
  return (%o)
)IR"),
            "the return (%a): input 0 (%a) is not in scope: it is made in a block of %o = prim::If(%k)");
  EXPECT_THAT(
      problem(R"IR(
graph(%n : int, %k : bool):
  prim::Loop(%n, %k)
    block0(%i : int):
      -> (%k)
  return (%i)
)IR"),
      HasSubstr(
          "the return (%i): input 0 (%i) is not in scope: it is made in a block of prim::Loop(%n, %k)"));
}

TEST(Verify, UsesBeforeDefinition) {
  const auto graph = mustRead(
      "graph(%x : Tensor):\n  %a : Tensor = aten::relu(%x)\n  %b : Tensor = aten::neg(%a)\n  return (%b)\n");
  Node* relu = *graph->nodes().begin();
  Node* neg = relu->next();
  relu->moveAfter(neg);
  EXPECT_EQ(problem(*graph), "%b = aten::neg(%a): input 0 (%a) is used before it is made");
  relu->moveBefore(neg);
  EXPECT_EQ(problem(*graph), "");
  relu->replaceInput(0, relu->output());
  EXPECT_EQ(problem(*graph), "%a = aten::relu(%a): input 0 (%a) is used before it is made");
  relu->replaceInput(0, graph->inputs()[0]);
}

TEST(Verify, Operators) {
  EXPECT_EQ(nodesProblem("  %a : Tensor = aten::rleu(%x)"),
            "%a = aten::rleu(%x): there is no operator 'aten::rleu' (did you mean 'aten::relu'?)");
  EXPECT_THAT(
      nodesProblem("  %a : int = aten::numel()"),
      HasSubstr("%a = aten::numel(): 0 inputs, expected 1; the operator is aten::numel(Tensor self) -> int"));
  EXPECT_THAT(nodesProblem("  %a : Tensor[] = aten::chunk(%x, %x, %i)"),
              HasSubstr("input 1 (chunks) is Tensor, expected int; the operator is aten::chunk"));
  EXPECT_THAT(nodesProblem("  %a : Tensor = aten::add(%x, %s, %i)"),
              HasSubstr("no overload takes (Tensor, str, int); there are aten::add"));
  EXPECT_EQ(nodesProblem("  %a : int = aten::relu(%x)"),
            "%a = aten::relu(%x): output 0 (%a) is written as int, the operator gives Tensor");
  EXPECT_EQ(nodesProblem("  %a : Tensor, %b : Tensor = aten::relu(%x)"),
            "%a, %b = aten::relu(%x): 2 outputs, the operator gives 1");
  EXPECT_THAT(nodesProblem("  aten::relu(%x)"), HasSubstr("0 outputs, the operator gives 1"));
  EXPECT_THAT(nodesProblem("  %a : Tensor = aten::relu(%x)\n    block0():\n      -> ()"),
              HasSubstr("has no blocks, found 1"));
  // A hint more than the schema says is no error; the optional of an int takes both an int and None.
  EXPECT_EQ(nodesProblem("  %a : Float(2, 3) = aten::relu(%x)"), "");
  EXPECT_EQ(nodesProblem("  %a : int = aten::__getitem__(%l, %i)"), "");
  EXPECT_THAT(nodesProblem("  %a : str = aten::__getitem__(%l, %i)"), HasSubstr("the operator gives int"));
  EXPECT_EQ(nodesProblem("  %a : int = prim::unchecked_cast(%o)"), "");
  EXPECT_EQ(nodesProblem("  prim::Print(%x, %i)"), "");
}

TEST(Verify, If) {
  EXPECT_EQ(nodesProblem("  prim::If(%c)"), "prim::If(%c): 0 blocks, expected 2");
  EXPECT_THAT(nodesProblem("  prim::If(%i)\n block0():\n -> ()\n block1():\n -> ()"),
              HasSubstr("input 0 (%i) is int, expected bool"));
  EXPECT_THAT(nodesProblem("  %a : Tensor = prim::If(%c)\n block0():\n -> (%x)\n block1():\n -> ()"),
              HasSubstr("block 1 returns 0 values, the node 1"));
  EXPECT_THAT(nodesProblem("  %a : Tensor = prim::If(%c)\n block0():\n -> (%x)\n block1():\n -> (%i)"),
              HasSubstr("return 0 of block 1 (%i) is int, expected Tensor"));
  EXPECT_THAT(nodesProblem("  prim::If(%c)\n block0(%q : int):\n -> ()\n block1():\n -> ()"),
              HasSubstr("block 0 has inputs"));
  EXPECT_EQ(nodesProblem("  %a : int? = prim::If(%c)\n block0():\n -> (%i)\n block1():\n -> (%o)"), "");
}

TEST(Verify, Loop) {
  const auto loop = [](const std::string& head, const std::string& inputs, const std::string& returns) {
    return nodesProblem("  " + head + "\n    block0(" + inputs + "):\n      -> (" + returns + ")");
  };
  EXPECT_EQ(loop("%a : Tensor = prim::Loop(%i, %c, %x)", "%k : int, %b : Tensor", "%c, %b"), "");
  EXPECT_THAT(loop("prim::Loop(%i)", "%k : int", "%c"), HasSubstr("1 inputs, expected a trip count"));
  EXPECT_THAT(loop("prim::Loop(%i, %c, %x)", "%k : int, %b : Tensor", "%c, %b"),
              HasSubstr("0 outputs, expected 1"));
  EXPECT_THAT(loop("%a : Tensor = prim::Loop(%i, %c, %x)", "%k : int", "%c, %x"),
              HasSubstr("the body takes 1"));
  EXPECT_THAT(loop("%a : Tensor = prim::Loop(%c, %c, %x)", "%k : int, %b : Tensor", "%c, %b"),
              HasSubstr("input 0 (%c) is bool, expected int"));
  EXPECT_THAT(loop("%a : Tensor = prim::Loop(%i, %c, %x)", "%k : int, %b : Tensor", "%b, %b"),
              HasSubstr("the condition that the body returns is Tensor"));
  EXPECT_THAT(loop("%a : Tensor = prim::Loop(%i, %c, %x)", "%k : int, %b : Tensor", "%c, %k"),
              HasSubstr("what the body returns for carried value 0 is int, expected Tensor"));
  EXPECT_THAT(loop("%a : Tensor = prim::Loop(%i, %c, %i)", "%k : int, %b : Tensor", "%c, %b"),
              HasSubstr("the initial value of carried value 0 is int"));
  EXPECT_THAT(loop("%a : int = prim::Loop(%i, %c, %x)", "%k : int, %b : Tensor", "%c, %b"),
              HasSubstr("the initial value of output 0 is Tensor, expected int"));
  EXPECT_THAT(loop("%a : Tensor = prim::Loop(%i, %c, %x)", "%k : str, %b : Tensor", "%c, %b"),
              HasSubstr("the trip inside is int, expected str"));
}

TEST(Verify, Constants) {
  const auto constant = [](const std::string& type, const std::string& attributes) {
    return nodesProblem("  %k : " + type + " = prim::Constant" + attributes + "()");
  };
  EXPECT_EQ(constant("int[]", "[value=annotate(List[int], [])]"), "");
  EXPECT_EQ(constant("(int, str)", "[value=(1, \"a\")]"), "");
  EXPECT_EQ(constant("Tensor?", ""), "");
  EXPECT_EQ(constant("Device", "[value=\"cpu\"]"), "");
  EXPECT_EQ(constant("Scalar", "[value=1.5]"), "");
  EXPECT_EQ(constant("Float(2, *)", "[value=tensor(Float(2, 1), [1., 2.])]"), "");
  EXPECT_THAT(constant("int", ""), HasSubstr("a constant of type int needs attribute 'value'"));
  EXPECT_THAT(constant("int", "[value=1.5]"), HasSubstr("keeps its value as 'i', found 'f'"));
  EXPECT_THAT(constant("float", "[value:i=1]"), HasSubstr("keeps its value as 'f', found 'i'"));
  EXPECT_THAT(constant("Tensor", "[value=1]"), HasSubstr("keeps its value as 't', found 'i'"));
  EXPECT_THAT(constant("int[]", "[value:is=[1]]"), HasSubstr("keeps its value as 'ival', found 'is'"));
  EXPECT_THAT(constant("int[]", "[value:ival=annotate(float[], [1.])]"),
              HasSubstr("the type is int[], the value float[]"));
  EXPECT_THAT(constant("Device", "[value=\"gpu\"]"), HasSubstr("torch cannot make a value of type Device"));
  EXPECT_THAT(constant("Layout", "[value=1]"), HasSubstr("no constants of type Layout"));
  EXPECT_THAT(constant("Double(2)", "[value=tensor(Float(2), [1., 2.])]"),
              HasSubstr("the type is Double(2)"));
  EXPECT_THAT(constant("Float(3)", "[value=tensor(Float(2), [1., 2.])]"), HasSubstr("the type is Float(3)"));
  EXPECT_THAT(constant("Tensor", "[value=tensor(undefined)]"), HasSubstr("undefined tensor"));
  EXPECT_THAT(nodesProblem("  %k : int = prim::Constant[value=1](%x)"),
              HasSubstr("a constant has no inputs"));
}

TEST(Verify, Containers) {
  EXPECT_THAT(nodesProblem("  %a : Tensor[] = prim::ListConstruct(%x, %i)"),
              HasSubstr("input 1 (%i) is int, expected Tensor"));
  EXPECT_THAT(nodesProblem("  %a : Tensor = prim::ListConstruct(%x)"),
              HasSubstr("gives a list, but its output is Tensor"));
  EXPECT_THAT(nodesProblem("  %a : int, %b : str = prim::ListUnpack(%l)"),
              HasSubstr("output 1 is int, expected str"));
  EXPECT_THAT(nodesProblem("  %a : int = prim::ListUnpack(%x)"), HasSubstr("takes a list, found Tensor"));
  EXPECT_THAT(nodesProblem("  %a : (int, int) = prim::TupleConstruct(%x, %i)"),
              HasSubstr("input 0 (%x) is Tensor, expected int"));
  EXPECT_THAT(nodesProblem("  %a : (int) = prim::TupleConstruct(%i, %i)"), HasSubstr("makes a tuple of 2"));
  EXPECT_THAT(nodesProblem("  %a : int = prim::TupleUnpack(%t)"), HasSubstr("1 outputs, expected 2"));
  EXPECT_THAT(nodesProblem("  %a : Tensor = prim::TupleUnpack(%x)"),
              HasSubstr("takes a tuple, found Tensor"));
  EXPECT_THAT(nodesProblem("  %k : int = prim::Constant[value=2]()\n  %a : int = prim::TupleIndex(%t, %k)"),
              HasSubstr("index 2 into a tuple of 2"));
  EXPECT_THAT(nodesProblem("  %k : int = prim::Constant[value=-1]()\n  %a : int = prim::TupleIndex(%t, %k)"),
              HasSubstr("output 0 is Tensor, expected int"));
  EXPECT_THAT(nodesProblem("  %a : Dict(str, int) = prim::DictConstruct(%s)"),
              HasSubstr("makes a dict of keys and values"));
  EXPECT_THAT(nodesProblem("  %a : Dict(str, int) = prim::DictConstruct(%i, %i)"),
              HasSubstr("input 0 (%i) is int, expected str"));
}

TEST(Verify, ProfilesAndGuards) {
  EXPECT_THAT(nodesProblem("  %a : Tensor = prim::profile(%x)"),
              HasSubstr("needs attribute 'profiled_type'"));
  EXPECT_THAT(nodesProblem("  prim::profile(%x)"), HasSubstr("0 outputs, expected 1"));
  EXPECT_THAT(nodesProblem("  %a : int = prim::profile_ivalue(%x)"),
              HasSubstr("input 0 (%x) is Tensor, expected int"));
  EXPECT_EQ(nodesProblem("  %a : Tensor, %b : bool = prim::TypeCheck[types=[Float(2)]](%x)"), "");
  EXPECT_THAT(nodesProblem("  %a : Tensor, %b : bool = prim::TypeCheck[types=[]](%x)"),
              HasSubstr("needs attribute 'types'"));
  EXPECT_THAT(nodesProblem("  %a : Tensor, %b : bool = prim::TypeCheck[types=[Float(2), Float(2)]](%x)"),
              HasSubstr("2 types for 1 inputs"));
  EXPECT_THAT(nodesProblem("  %a : Tensor, %b : Tensor = prim::RequiresGradCheck[types=[Float(2)]](%x)"),
              HasSubstr("the last output is bool, expected Tensor"));
}

TEST(Verify, Subgraphs) {
  EXPECT_THAT(nodesProblem("  %a : Tensor = prim::DifferentiableGraph(%x)"),
              HasSubstr("needs a graph as attribute 'Subgraph'"));
  const auto with = [](const std::string& node, const std::string& body) {
    return problem("graph(%x : Tensor, %i : int):\n  " + node +
                   "\n  return ()\nwith prim::DifferentiableGraph_0 = " + body);
  };
  const std::string body = "graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%y)\n";
  EXPECT_EQ(with("%a : Tensor = prim::DifferentiableGraph_0(%x)", body), "");
  EXPECT_THAT(with("%a : Tensor = prim::DifferentiableGraph_0(%x, %x)", body),
              HasSubstr("2 inputs, its subgraph has 1"));
  EXPECT_THAT(with("%a : Tensor = prim::DifferentiableGraph_0(%i)", body),
              HasSubstr("input 0 (%i) is int, expected Tensor"));
  EXPECT_THAT(with("prim::DifferentiableGraph_0(%x)", body), HasSubstr("0 outputs, its subgraph returns 1"));
  EXPECT_THAT(with("%a : int = prim::DifferentiableGraph_0(%x)", body),
              HasSubstr("return 0 of its subgraph (%y) is Tensor"));
  EXPECT_THAT(with("%a : Tensor = prim::DifferentiableGraph_0[f_real_outputs=2](%x)", body),
              HasSubstr("f_real_outputs=2, but its subgraph returns 1"));
  EXPECT_THAT(with("%a : Tensor = prim::DifferentiableGraph_0(%x)",
                   "graph(%x : Tensor):\n  %y : Tensor = aten::nge(%x)\n  return (%y)\n"),
              HasSubstr("%y = aten::nge(%x): there is no operator 'aten::nge' (did you mean 'aten::ge'?) "
                        "(in Subgraph of %a = "
                        "prim::DifferentiableGraph(%x))"));
  EXPECT_THAT(
      problem("graph(%x : Tensor):\n  %f : Tensor = prim::fork_0(%x)\n  return ()\nwith prim::fork_0 = " +
              body),
      HasSubstr("gives a Future, but its output is Tensor"));
  EXPECT_EQ(
      problem(
          "graph(%x : Tensor):\n  %f : Future[Tensor] = prim::fork_0(%x)\n  return ()\nwith prim::fork_0 = " +
          body),
      "");
}

TEST(Verify, WhatLibtorchDifferentiated) {
  const auto graph = mustRead(R"IR(
graph(%x : Tensor, %w : Tensor):
  %a : Tensor = prim::DifferentiableGraph_0(%x, %w)
  return (%a)
with prim::DifferentiableGraph_0 = graph(%x : Tensor, %w : Tensor):
  %m : Tensor = aten::mm(%x, %w)
  %t : Tensor = aten::tanh(%m)
  %r : Tensor = aten::mul(%t, %m)
  return (%r)
)IR");
  Node* node = *graph->nodes().begin();
  auto subgraph = node->g(c10::attr::Subgraph);
  node->removeAttribute(c10::attr::Subgraph);
  auto gradient = torch::jit::differentiate(subgraph);
  const auto ints = [](const std::vector<size_t>& values) {
    return std::vector<int64_t>(values.begin(), values.end());
  };
  node->g_(c10::attr::Subgraph, gradient.f);
  node->g_(c10::attr::ReverseSubgraph, gradient.df);
  node->i_(c10::attr::f_real_outputs, static_cast<int64_t>(gradient.f_real_outputs));
  node->is_(c10::attr::df_input_vjps, ints(gradient.df_input_vjps));
  node->is_(c10::attr::df_input_captured_inputs, ints(gradient.df_input_captured_inputs));
  node->is_(c10::attr::df_input_captured_outputs, ints(gradient.df_input_captured_outputs));
  node->is_(c10::attr::df_output_vjps, ints(gradient.df_output_vjps));
  EXPECT_EQ(problem(*graph), "");
  testing::expectRoundTrip(*graph);
  // The formulas that the backward graph calls are not part of the text.
  EXPECT_THAT(problem(writeGraph(*graph)),
              HasSubstr("calls 'AD_mm_backward_self', a function that the text does not hold"));
  node->is_(c10::attr::df_input_captured_outputs, {});
  EXPECT_THAT(problem(*graph), HasSubstr("its ReverseSubgraph takes"));
  node->removeAttribute(c10::attr::df_output_vjps);
  EXPECT_THAT(problem(*graph), HasSubstr("no list 'df_output_vjps'"));
}

}  // namespace
}  // namespace faultline
