#include <gtest/gtest.h>

#include "engine/runtime/compiled_graph.h"
#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

const std::vector<BreakPolicy> policies = {BreakPolicy::none(), BreakPolicy::every(1), BreakPolicy::every(2),
                                           BreakPolicy::every(3)};

struct Program {
  const char* name;
  const char* ir;
  Inputs inputs;
};

void PrintTo(const Program& program, std::ostream* out) { *out << program.name; }

class Programs : public testing::TestWithParam<Program> {};

TEST_P(Programs, EqualEagerInEveryPolicyAndBackward) {
  EXPECT_EQ(compareAll(parse(GetParam().ir), GetParam().inputs, policies), "");
}

const Program programs[] = {
    {"chain", R"(
graph(%x : Tensor, %w : Tensor):
  %m : Tensor = aten::mm(%x, %w)
  %r : Tensor = aten::relu(%m)
  %s : Tensor = aten::sin(%r)
  return (%s))",
     [] {
       return torch::jit::Stack{leaf({3, 4}, 1), leaf({4, 5}, 2)};
     }},
    {"input_without_gradient", R"(
graph(%x : Tensor, %w : Tensor):
  %m : Tensor = aten::mm(%x, %w)
  %r : Tensor = aten::tanh(%m)
  %s : Tensor = aten::mul(%r, %x)
  return (%s))",
     [] {
       return torch::jit::Stack{values({4, 4}, 1), leaf({4, 4}, 2)};
     }},
    {"independent_outputs", R"(
graph(%x : Tensor, %w : Tensor):
  %m : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::sin(%m)
  %c : Tensor = aten::cos(%x)
  return (%b, %c))",
     [] {
       return torch::jit::Stack{leaf({3}, 1), leaf({3}, 2)};
     }},
    {"independent_outputs_one_without_gradient", R"(
graph(%x : Tensor, %w : Tensor):
  %m : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::sin(%m)
  %c : Tensor = aten::cos(%x)
  return (%b, %c))",
     [] {
       return torch::jit::Stack{values({3}, 1), leaf({3}, 2)};
     }},
    {"shared_trunk", R"(
graph(%x : Tensor, %w : Tensor, %u : Tensor, %v : Tensor):
  %h : Tensor = aten::mm(%x, %w)
  %r : Tensor = aten::relu(%h)
  %b : Tensor = aten::mul(%r, %u)
  %c : Tensor = aten::mul(%h, %v)
  %d : Tensor = aten::mul(%b, %c)
  return (%b, %c, %d))",
     [] {
       return torch::jit::Stack{leaf({3, 4}, 1), leaf({4, 5}, 2), leaf({3, 5}, 3), leaf({5}, 4)};
     }},
    {"value_is_output_and_seam", R"(
graph(%x : Tensor):
  %a : Tensor = aten::sin(%x)
  %b : Tensor = aten::mul(%a, %x)
  %c : Tensor = aten::cos(%b)
  return (%a, %c, %b))",
     [] { return torch::jit::Stack{leaf({4}, 1)}; }},
    {"same_value_returned_twice", R"(
graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::sin(%a)
  return (%b, %b, %a, %b))",
     [] {
       return torch::jit::Stack{leaf({4}, 1), leaf({4}, 2)};
     }},
    {"inputs_returned_as_is", R"(
graph(%x : Tensor, %w : Tensor, %n : int):
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::sin(%a)
  return (%x, %b, %n, %w, %x))",
     [] {
       return torch::jit::Stack{leaf({4}, 1), values({4}, 2), int64_t{3}};
     }},
    {"unused_results_and_inputs", R"(
graph(%x : Tensor, %w : Tensor, %unused : Tensor):
  %a : Tensor = aten::mul(%x, %w)
  %dead : Tensor = aten::cos(%a)
  %dead2 : Tensor = aten::mul(%dead, %w)
  %b : Tensor = aten::sin(%a)
  %dead3 : Tensor = aten::exp(%x)
  return (%b))",
     [] {
       return torch::jit::Stack{leaf({4}, 1), leaf({4}, 2), leaf({4}, 3)};
     }},
    {"nothing_but_an_input", R"(
graph(%x : Tensor):
  return (%x))",
     [] { return torch::jit::Stack{leaf({4}, 1)}; }},
    {"no_outputs_of_the_last_piece", R"(
graph(%x : Tensor):
  %a : Tensor = aten::sin(%x)
  %b : Tensor = aten::cos(%a)
  %c : Tensor = aten::exp(%b)
  return (%a))",
     [] { return torch::jit::Stack{leaf({4}, 1)}; }},
    {"one_input_twice", R"(
graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::tanh(%a)
  %c : Tensor = aten::mul(%b, %y)
  return (%c))",
     [] {
       at::Tensor x = leaf({4}, 1);
       return torch::jit::Stack{x, x};
     }},
    {"views_inside_and_out", R"(
graph(%x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %wt : Tensor = aten::t(%w)
  %m : Tensor = aten::mm(%x, %wt)
  %u : Tensor = aten::unsqueeze(%m, %one)
  %r : Tensor = aten::relu(%u)
  %s : Tensor = aten::squeeze(%r, %one)
  %v : Tensor = aten::t(%s)
  return (%v, %wt))",
     [] {
       return torch::jit::Stack{leaf({3, 4}, 1), leaf({5, 4}, 2)};
     }},
    {"view_crosses_a_cut", R"(
graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::mul(%x, %w)
  %t : Tensor = aten::t(%a)
  %b : Tensor = aten::sin(%t)
  %xt : Tensor = aten::t(%x)
  %c : Tensor = aten::mul(%b, %xt)
  return (%c))",
     [] {
       return torch::jit::Stack{leaf({3, 4}, 1), leaf({3, 4}, 2)};
     }},
    {"ops_that_may_return_their_argument", R"(
graph(%x : Tensor, %w : Tensor):
  %zero : int = prim::Constant[value=0]()
  %false : bool = prim::Constant[value=0]()
  %three : int = prim::Constant[value=3]()
  %four : int = prim::Constant[value=4]()
  %size : int[] = prim::ListConstruct(%three, %four)
  %xc : Tensor = aten::contiguous(%x, %zero)
  %a : Tensor = aten::mul(%xc, %w)
  %ac : Tensor = aten::contiguous(%a, %zero)
  %b : Tensor = aten::sin(%ac)
  %e : Tensor = aten::expand(%b, %size, %false)
  %r : Tensor = aten::reshape(%e, %size)
  %wc : Tensor = aten::contiguous(%w, %zero)
  return (%r, %wc, %ac))",
     [] {
       return torch::jit::Stack{leaf({3, 4}, 1), leaf({3, 4}, 2)};
     }},
    {"identity_crosses_a_cut", R"(
graph(%x : Tensor, %w : Tensor):
  %zero : int = prim::Constant[value=0]()
  %xc : Tensor = aten::contiguous(%x, %zero)
  %s : Tensor = aten::sin(%xc)
  %a : Tensor = aten::mul(%s, %xc)
  %c : Tensor = aten::mul(%a, %w)
  return (%c))",
     [] {
       return torch::jit::Stack{leaf({3, 4}, 1), leaf({3, 4}, 2)};
     }},
    {"ints_and_lists_cross_cuts", R"(
graph(%x : Tensor, %w : Tensor, %k : int):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %n : int = aten::size(%x, %zero)
  %m : int = aten::size(%x, %one)
  %a : Tensor = aten::sin(%x)
  %nm : int = aten::mul(%n, %m)
  %size : int[] = prim::ListConstruct(%nm)
  %b : Tensor = aten::mul(%a, %w)
  %v : Tensor = aten::reshape(%b, %size)
  %c : Tensor = aten::cos(%v)
  %d : Tensor = aten::mul(%c, %k)
  return (%d, %nm, %size))",
     [] {
       return torch::jit::Stack{leaf({3, 4}, 1), leaf({3, 4}, 2), int64_t{2}};
     }},
    {"lists_and_tuples_of_tensors", R"(
graph(%x : Tensor, %w : Tensor):
  %zero : int = prim::Constant[value=0]()
  %two : int = prim::Constant[value=2]()
  %a : Tensor = aten::sin(%x)
  %b : Tensor = aten::mul(%a, %w)
  %list : Tensor[] = prim::ListConstruct(%a, %b)
  %cat : Tensor = aten::cat(%list, %zero)
  %e : Tensor = aten::exp(%cat)
  %parts : Tensor[] = aten::chunk(%e, %two, %zero)
  %p : Tensor, %q : Tensor = prim::ListUnpack(%parts)
  %c : Tensor = aten::cos(%p)
  %pair : (Tensor, Tensor) = prim::TupleConstruct(%c, %b)
  return (%pair, %q))",
     [] {
       return torch::jit::Stack{leaf({3, 4}, 1), leaf({3, 4}, 2)};
     }},
    {"tuple_of_independent_results", R"(
graph(%x : Tensor, %w : Tensor):
  %m : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::sin(%m)
  %c : Tensor = aten::cos(%x)
  %pair : (Tensor, Tensor) = prim::TupleConstruct(%b, %c)
  return (%pair))",
     [] {
       return torch::jit::Stack{leaf({3}, 1), leaf({3}, 2)};
     }},
    {"masks", R"(
graph(%x : Tensor, %w : Tensor):
  %half : float = prim::Constant[value=0.5]()
  %a : Tensor = aten::mul(%x, %w)
  %mask : Tensor = aten::gt(%a, %half)
  %b : Tensor = aten::sin(%x)
  %c : Tensor = aten::where(%mask, %a, %b)
  %d : Tensor = aten::mul(%c, %w)
  return (%d, %mask))",
     [] {
       return torch::jit::Stack{leaf({3, 4}, 1), leaf({3, 4}, 2)};
     }},
    {"ops_autodiff_gets_wrong_between_others", R"(
graph(%x : Tensor, %w : Tensor):
  %two : int = prim::Constant[value=2]()
  %lo : float = prim::Constant[value=-1.]()
  %hi : float = prim::Constant[value=1.]()
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::max(%a, %w)
  %c : Tensor = aten::sin(%b)
  %d : Tensor = aten::clamp(%c, %lo, %hi)
  %e : Tensor = aten::pow(%d, %two)
  %f : Tensor = aten::mul(%e, %x)
  return (%f))",
     [] {
       return torch::jit::Stack{leaf({3, 4}, 1), leaf({3, 4}, 2)};
     }},
    {"if_and_loop_stay_whole", R"(
graph(%x : Tensor, %w : Tensor, %flag : bool, %n : int):
  %true : bool = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = prim::If(%flag)
    block0():
      %s : Tensor = aten::sin(%a)
      -> (%s)
    block1():
      -> (%w)
  %c : Tensor = aten::mul(%b, %x)
  %d : Tensor = prim::Loop(%n, %true, %c)
    block0(%i : int, %y : Tensor):
      %z : Tensor = aten::mul(%y, %w)
      -> (%true, %z)
  %e : Tensor = aten::cos(%d)
  return (%e))",
     [] {
       return torch::jit::Stack{leaf({3}, 1), leaf({3}, 2), true, int64_t{2}};
     }},
    {"if_gives_a_value_from_outside", R"(
graph(%x : Tensor, %w : Tensor, %flag : bool):
  %a : Tensor = aten::mul(%x, %w)
  %t : Tensor = aten::t(%a)
  %b : Tensor = prim::If(%flag)
    block0():
      -> (%t)
    block1():
      -> (%w)
  return (%b))",
     [] {
       return torch::jit::Stack{leaf({3, 3}, 1), leaf({3, 3}, 2), true};
     }},
    {"double_precision", R"(
graph(%x : Tensor, %w : Tensor):
  %m : Tensor = aten::mm(%x, %w)
  %r : Tensor = aten::sigmoid(%m)
  return (%r))",
     [] {
       return torch::jit::Stack{leaf({3, 4}, 1, at::kDouble), leaf({4, 5}, 2, at::kDouble)};
     }},
    {"mixed_precision", R"(
graph(%x : Tensor, %w : Tensor):
  %s : Tensor = aten::sin(%x)
  %m : Tensor = aten::mul(%s, %w)
  %r : Tensor = aten::tanh(%m)
  return (%r))",
     [] {
       return torch::jit::Stack{leaf({3, 4}, 1, at::kFloat), leaf({3, 4}, 2, at::kDouble)};
     }},
    {"complex", R"(
graph(%x : Tensor, %w : Tensor):
  %m : Tensor = aten::mul(%x, %w)
  %r : Tensor = aten::sin(%m)
  %q : Tensor = aten::mul(%r, %w)
  return (%q))",
     [] {
       return torch::jit::Stack{at::complex(values({3}, 1), values({3}, 3)).set_requires_grad(true),
                                leaf({3}, 2)};
     }},
    {"integers_beside_floats", R"(
graph(%x : Tensor, %w : Tensor):
  %m : Tensor = aten::mul(%x, %w)
  %r : Tensor = aten::sin(%m)
  %q : Tensor = aten::div(%w, %w)
  %s : Tensor = aten::mul(%r, %q)
  return (%s, %q))",
     [] {
       return torch::jit::Stack{leaf({3}, 1), at::arange(1, 4)};
     }},
    {"broadcasting", R"(
graph(%x : Tensor, %w : Tensor, %s : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::add(%x, %w, %one)
  %b : Tensor = aten::mul(%a, %s)
  %c : Tensor = aten::sub(%b, %x, %one)
  return (%c))",
     [] {
       return torch::jit::Stack{leaf({2, 3, 1}, 1), leaf({4}, 2), leaf({}, 3)};
     }},
    {"zero_size", R"(
graph(%x : Tensor, %w : Tensor):
  %m : Tensor = aten::mm(%x, %w)
  %r : Tensor = aten::relu(%m)
  return (%r))",
     [] {
       return torch::jit::Stack{leaf({0, 4}, 1), leaf({4, 5}, 2)};
     }},
    {"inputs_that_are_no_leaves", R"(
graph(%x : Tensor, %w : Tensor):
  %m : Tensor = aten::mul(%x, %w)
  %r : Tensor = aten::exp(%m)
  return (%r, %m))",
     [] {
       return torch::jit::Stack{leaf({3}, 1) * 2, leaf({3}, 2)};
     }},
    {"expanded_and_transposed_inputs", R"(
graph(%x : Tensor, %w : Tensor):
  %m : Tensor = aten::mul(%x, %w)
  %r : Tensor = aten::tanh(%m)
  %q : Tensor = aten::mul(%r, %x)
  return (%q))",
     [] {
       return torch::jit::Stack{values({3, 1}, 1).expand({3, 4}),
                                values({4, 3}, 2).t().set_requires_grad(true)};
     }},
    {"nobody_requires_grad", R"(
graph(%x : Tensor, %w : Tensor):
  %m : Tensor = aten::mul(%x, %w)
  %r : Tensor = aten::relu(%m)
  return (%r))",
     [] {
       return torch::jit::Stack{values({3}, 1), values({3}, 2)};
     }},
    {"throws_in_the_forward", R"(
graph(%x : Tensor, %w : Tensor):
  %m : Tensor = aten::mul(%x, %x)
  %r : Tensor = aten::mm(%m, %w)
  %s : Tensor = aten::sin(%r)
  return (%s))",
     [] {
       return torch::jit::Stack{leaf({3, 4}, 1), leaf({3, 4}, 2)};
     }},
    {"constants_of_every_kind_returned", R"(
graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %three : int = prim::Constant[value=3]()
  %word : str = prim::Constant[value="word"]()
  %r : Tensor = aten::relu(%x)
  %list : int[] = prim::ListConstruct(%three, %three)
  return (%none, %r, %three, %word, %list))",
     [] { return torch::jit::Stack{leaf({3}, 1)}; }},
    {"gradient_penalty_shape", R"(
graph(%x : Tensor, %w : Tensor, %b : Tensor, %w2 : Tensor, %b2 : Tensor):
  %h : Tensor = aten::linear(%x, %w, %b)
  %r : Tensor = aten::tanh(%h)
  %o : Tensor = aten::linear(%r, %w2, %b2)
  return (%o))",
     [] {
       return torch::jit::Stack{leaf({3, 4}, 1), leaf({5, 4}, 2), leaf({5}, 3), leaf({2, 5}, 4),
                                leaf({2}, 5)};
     }},
    {"detach", R"(
graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::mul(%x, %w)
  %d : Tensor = aten::detach(%a)
  %s : Tensor = aten::sin(%d)
  %b : Tensor = aten::mul(%s, %w)
  return (%b, %d, %s))",
     [] {
       return torch::jit::Stack{leaf({3}, 1), leaf({3}, 2)};
     }},
    {"optional_input", R"(
graph(%x : Tensor, %w : Tensor, %b : Tensor?):
  %h : Tensor = aten::linear(%x, %w, %b)
  %r : Tensor = aten::tanh(%h)
  return (%r))",
     [] {
       return torch::jit::Stack{leaf({3, 4}, 1), leaf({5, 4}, 2), c10::IValue()};
     }},
    {"tensor_list_input", R"(
graph(%xs : Tensor[], %w : Tensor):
  %zero : int = prim::Constant[value=0]()
  %x : Tensor = aten::__getitem__(%xs, %zero)
  %a : Tensor = aten::mul(%x, %w)
  %s : Tensor = aten::stack(%xs, %zero)
  %b : Tensor = aten::mul(%s, %a)
  return (%b))",
     [] {
       return torch::jit::Stack{c10::List<at::Tensor>({leaf({3}, 1), values({3}, 3)}), leaf({3}, 2)};
     }},
    {"writes_in_place", R"(
graph(%x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %w)
  %t : Tensor = aten::t(%a)
  %u : Tensor = aten::add_(%t, %w, %one)
  %b : Tensor = aten::mul(%a, %u)
  return (%b, %t))",
     [] {
       return torch::jit::Stack{leaf({3, 3}, 1), leaf({3, 3}, 2)};
     }},
};

INSTANTIATE_TEST_SUITE_P(Runtime, Programs, testing::ValuesIn(programs),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace faultline::test
