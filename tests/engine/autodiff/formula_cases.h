// Every operator that libtorch's autodiff has a formula for, with operands where formulas go wrong: ties,
// zeros, bounds, thresholds, broadcasting, one element, none.
#pragma once
#include <limits>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

namespace faultline::test {

struct Arg {
  int input = -1;  // else the constant
  c10::IValue constant;
};

inline Arg in(int index) { return {index, {}}; }
inline Arg c(c10::IValue value) { return {-1, std::move(value)}; }
inline Arg none() { return {-1, c10::IValue()}; }
inline Arg ints(std::vector<int64_t> values) { return {-1, c10::IValue(std::move(values))}; }

using Operands = std::vector<at::Tensor>;

struct FormulaCase {
  std::string schema;
  std::vector<Arg> args;
  std::vector<Operands> operands;
};

inline at::Tensor numbers(std::vector<double> values, std::vector<int64_t> sizes = {}) {
  at::Tensor result = at::tensor(values, at::kDouble);
  return sizes.empty() ? result : result.view(sizes);
}

// Zeros of both signs, and every bound and threshold that a formula of the list has.
inline at::Tensor edges() {
  return numbers({0., -0., 1., -1., .5, -.5, 2., -2., 3., -3., 6., -6., 20., -20., .25, 1.5});
}
inline at::Tensor infinities() {
  const double inf = std::numeric_limits<double>::infinity();
  return numbers({inf, -inf, std::numeric_limits<double>::quiet_NaN(), 1.});
}
// Where exponentials, squares and quotients of them overflow or vanish.
inline at::Tensor extremes() {
  return numbers({90., -90., 800., -800., 1e38, -1e38, 1e200, -1e200, 1e-200, -1e-200, 1e-310, -1e-310});
}
inline at::Tensor matrix(int64_t rows, int64_t columns, int64_t seed = 1) {
  at::Tensor index = at::arange(rows * columns, at::kDouble) + static_cast<double>(1 + 31 * seed);
  return (at::sin(index * 12.9898) * 1.7).view({rows, columns});
}
inline at::Tensor block(std::vector<int64_t> sizes, int64_t seed = 1) {
  int64_t count = 1;
  for (int64_t size : sizes) {
    count *= size;
  }
  return matrix(1, count, seed).view(sizes);
}
inline at::Tensor single(double value) { return at::scalar_tensor(value, at::kDouble); }
inline at::Tensor bools(std::vector<int64_t> values) { return at::tensor(values, at::kLong).to(at::kBool); }
inline at::Tensor indices(std::vector<int64_t> values) { return at::tensor(values, at::kLong); }

inline std::vector<Operands> unary() {
  return {{edges()},
          {infinities()},
          {extremes()},
          {matrix(3, 4).t()},
          {single(0.)},
          {single(.5)},
          {at::empty({0, 3}, at::kDouble)}};
}
inline std::vector<Operands> matrices() {
  return {{matrix(3, 4)},
          {matrix(3, 4).t()},
          {matrix(1, 1)},
          {at::zeros({2, 3}, at::kDouble)},
          {infinities().view({2, 2})},
          {extremes().view({3, 4})}};
}

inline std::vector<Operands> binary() {
  const at::Tensor edge = edges();
  const int64_t n = edge.numel();
  return {{edge.view({n, 1}), edge.view({1, n})},
          {edge, edge.clone()},
          {infinities().view({4, 1}), infinities().view({1, 4})},
          {extremes().view({12, 1}), extremes().view({1, 12})},
          {matrix(3, 4), single(.5)},
          {single(2.), matrix(3, 4)},
          {matrix(3, 4).t(), matrix(4, 1, 2)},
          {at::empty({0, 3}, at::kDouble), matrix(1, 3)},
          {matrix(1, 1), matrix(1, 1, 2)}};
}

std::vector<FormulaCase> formulaCases();

inline std::vector<FormulaCase> formulaCases() {
  std::vector<FormulaCase> rows;
  auto add = [&rows](const char* schema, std::vector<Arg> args, std::vector<Operands> operands) {
    rows.push_back({schema, std::move(args), std::move(operands)});
  };
  for (const char* name :
       {"abs",  "acos",  "asin",       "atan", "ceil",        "cos",       "cosh",  "erf",     "erfc",
        "exp",  "expm1", "floor",      "frac", "hardsigmoid", "hardswish", "log",   "log10",   "log1p",
        "log2", "neg",   "reciprocal", "relu", "relu6",       "round",     "rsqrt", "sigmoid", "silu",
        "sin",  "sinh",  "sqrt",       "tan",  "tanh",        "trunc"}) {
    add((std::string("aten::") + name).c_str(), {in(0)}, unary());
  }
  for (const char* name : {"eq.Scalar", "ne.Scalar", "lt.Scalar", "le.Scalar", "gt.Scalar", "ge.Scalar",
                           "fmod.Scalar", "remainder.Scalar", "mul.Scalar", "div.Scalar"}) {
    for (double scalar : {.5, -2.}) {
      add((std::string("aten::") + name).c_str(), {in(0), c(scalar)}, unary());
    }
  }
  for (const char* name : {"mul.Tensor", "div.Tensor", "max.other", "min.other", "pow.Tensor_Tensor"}) {
    add((std::string("aten::") + name).c_str(), {in(0), in(1)}, binary());
  }
  for (const char* name : {"add.Tensor", "sub.Tensor"}) {
    add((std::string("aten::") + name).c_str(), {in(0), in(1), c(int64_t{1})}, binary());
    add((std::string("aten::") + name).c_str(), {in(0), in(1), c(2.5)}, binary());
  }
  for (const char* name : {"add.Scalar", "sub.Scalar", "rsub.Scalar"}) {
    add((std::string("aten::") + name).c_str(), {in(0), c(1.5), c(int64_t{2})}, unary());
  }
  for (const char* mode : {"floor", "trunc"}) {
    add("aten::div.Tensor_mode", {in(0), in(1), c(mode)}, binary());
    add("aten::div.Scalar_mode", {in(0), c(2.), c(mode)}, unary());
  }
  add("aten::div.Tensor_mode", {in(0), in(1), none()}, binary());
  add("aten::div.Scalar_mode", {in(0), c(2.), none()}, unary());
  for (double exponent : {0., 1., 2., -1., .5}) {
    add("aten::pow.Tensor_Scalar", {in(0), c(exponent)}, unary());
  }
  for (double base : {0., 2., -1.}) {
    add("aten::pow.Scalar", {c(base), in(0)}, unary());
  }
  for (double weight : {0., .3, 1.}) {
    add("aten::lerp.Scalar", {in(0), in(1), c(weight)}, binary());
  }
  add("aten::lerp.Tensor", {in(0), in(1), in(2)},
      {{matrix(3, 4), matrix(3, 4, 2), matrix(3, 4, 3)},
       {matrix(3, 4), matrix(1, 4, 2), single(.3)},
       {edges(), edges().flip({0}), single(.5)},
       {extremes(), extremes().flip({0}), single(.5)},
       {infinities(), infinities().flip({0}), edges().slice(0, 0, 4)}});
  add("aten::addcmul", {in(0), in(1), in(2), c(1.5)},
      {{matrix(3, 4), matrix(3, 4, 2), matrix(1, 4, 3)},
       {single(1.), edges(), edges().flip({0})},
       {single(1.), extremes(), extremes().flip({0})},
       {single(1.), infinities(), infinities().flip({0})}});
  add("aten::clamp", {in(0), c(-1.), c(1.)}, unary());
  add("aten::clamp", {in(0), c(.5), none()}, unary());
  add("aten::clamp", {in(0), none(), c(.5)}, unary());
  add("aten::clamp.Tensor", {in(0), in(1), in(2)},
      {{edges(), single(-1.), single(1.)},
       {edges(), edges().clone(), edges().flip({0})},
       {matrix(3, 4), matrix(1, 4, 2), matrix(3, 1, 3)}});
  add("aten::clamp.Tensor", {in(0), in(1), none()}, binary());
  add("aten::clamp.Tensor", {in(0), none(), in(1)}, binary());
  add("aten::clamp_min", {in(0), c(-1.)}, unary());
  add("aten::clamp_max", {in(0), c(1.)}, unary());
  add("aten::elu", {in(0), c(1.), c(1.), c(1.)}, unary());
  add("aten::elu", {in(0), c(.5), c(2.), c(.25)}, unary());
  add("aten::mish", {in(0)}, unary());
  add("aten::sum", {in(0), none()}, unary());
  add("aten::clone", {in(0), none()}, unary());
  add("aten::positive", {in(0)}, unary());
  for (const char* name : {"aten::maximum", "aten::minimum", "aten::atan2"}) {
    add(name, {in(0), in(1)}, binary());
  }
  add("aten::masked_fill.Scalar", {in(0), in(1), c(.5)},
      {{matrix(3, 4), bools({true, false, true, false})},
       {infinities(), bools({true, false, true, false})},
       {matrix(1, 4), bools({true, false, true}).view({3, 1})}});
  for (double value : {1., -.5}) {
    add("aten::addcdiv", {in(0), in(1), in(2), c(value)},
        {{matrix(3, 4), matrix(3, 4, 2), matrix(1, 4, 3)},
         {single(1.), edges(), edges().flip({0})},
         {single(1.), extremes(), extremes().flip({0})},
         {single(1.), infinities(), infinities().flip({0})}});
  }
  add("aten::flip", {in(0), ints({0, -1})}, {{matrix(3, 4)}, {block({2, 0, 3})}});
  for (int64_t dim : {0, -1}) {
    add("aten::cumsum", {in(0), c(dim), none()},
        {{matrix(3, 4)}, {single(1.)}, {infinities()}, {extremes()}, {matrix(1, 1)}});
    add("aten::select.int", {in(0), c(dim), c(int64_t{-1})}, {{matrix(3, 4)}, {block({3})}});
    add("aten::slice.Tensor", {in(0), c(dim), c(int64_t{1}), c(int64_t{9}), c(int64_t{2})},
        {{matrix(3, 4)}, {block({3})}, {block({2, 0})}});
    add("aten::slice.Tensor", {in(0), c(dim), c(int64_t{-2}), c(int64_t{-1}), c(int64_t{1})},
        {{matrix(3, 4)}});
    add("aten::slice.Tensor", {in(0), c(dim), none(), none(), c(int64_t{2})}, {{matrix(3, 4)}});
    add("aten::narrow", {in(0), c(dim), c(int64_t{1}), c(int64_t{2})}, {{matrix(3, 4)}, {block({3})}});
    add("aten::narrow", {in(0), c(dim), c(int64_t{-2}), c(int64_t{1})}, {{matrix(3, 4)}, {block({3})}});
    add("aten::movedim.int", {in(0), c(dim), c(int64_t{1})}, {{matrix(3, 4)}, {block({2, 3, 4})}});
    for (bool keep : {false, true}) {
      add("aten::max.dim", {in(0), c(dim), c(keep)},
          {{matrix(3, 4)},
           {at::zeros({2, 3}, at::kDouble)},
           {single(1.)},
           {infinities().view({2, 2})},
           {extremes().view({3, 4})}});
    }
  }
  for (bool keep : {false, true}) {
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{0}, {-1, 0}, {}}) {
      for (const char* name : {"aten::amax", "aten::amin"}) {
        add(name, {in(0), ints(dims), c(keep)},
            {{matrix(3, 4)},
             {at::zeros({2, 3}, at::kDouble)},
             {infinities().view({2, 2})},
             {extremes().view({3, 4})},
             {matrix(1, 1)}});
      }
      add("aten::sum.dim_IntList", {in(0), ints(dims), c(keep), none()},
          {{matrix(3, 4)},
           {block({2, 3, 4})},
           {block({2, 0})},
           {infinities().view({2, 2})},
           {extremes().view({3, 4})}});
    }
    add("aten::amax", {in(0), ints({0}), c(keep)}, {{single(1.)}});
    add("aten::sum.dim_IntList", {in(0), ints({0}), c(keep), none()}, {{single(1.)}, {block({3})}});
    add("aten::sum.dim_IntList", {in(0), none(), c(keep), none()}, {{single(1.)}, {matrix(3, 4)}});
  }
  for (int64_t reduction : {0, 1, 2}) {
    add("aten::mse_loss", {in(0), in(1), c(reduction)},
        {{matrix(3, 4), matrix(3, 4, 2)},
         {single(1.), single(1.)},
         {single(1.), matrix(3, 4)},
         {matrix(3, 1), matrix(1, 4, 2)},
         {matrix(3, 4).t(), matrix(4, 3, 2)},
         {infinities(), single(1.).expand({4})}});
  }
  add("aten::flatten.using_ints", {in(0), c(int64_t{0}), c(int64_t{-1})},
      {{matrix(3, 4)}, {matrix(3, 4).t()}, {single(1.)}, {block({3})}});
  add("aten::flatten.using_ints", {in(0), c(int64_t{1}), c(int64_t{2})},
      {{block({2, 3, 4}).transpose(0, 2)}});
  add("aten::view_as", {in(0), in(1)}, {{matrix(3, 4), matrix(2, 6)}, {matrix(3, 4), matrix(3, 4, 2)}});
  for (int64_t offset : {-1, 0, 1}) {
    add("aten::diagonal", {in(0), c(offset), c(int64_t{0}), c(int64_t{1})},
        {{matrix(3, 4)}, {block({3, 3, 2})}});
  }
  add("aten::hardtanh", {in(0), c(-1.), c(1.)}, unary());
  add("aten::hardtanh", {in(0), c(0.), c(6.)}, unary());
  add("aten::hardshrink", {in(0), c(.5)}, unary());
  add("aten::hardshrink", {in(0), c(0.)}, unary());
  add("aten::threshold", {in(0), c(.5), c(20.)}, unary());
  add("aten::threshold", {in(0), c(0.), c(0.)}, unary());
  add("aten::leaky_relu", {in(0), c(.01)}, unary());
  add("aten::leaky_relu", {in(0), c(-2.)}, unary());
  add("aten::leaky_relu", {in(0), c(0.)}, unary());
  add("aten::softplus", {in(0), c(1.), c(20.)}, unary());
  add("aten::softplus", {in(0), c(2.), c(3.)}, unary());
  add("aten::gelu", {in(0), c("none")}, unary());
  add("aten::gelu", {in(0), c("tanh")}, unary());
  add("aten::where.self", {in(0), in(1), in(2)},
      {{bools({true, false, true, false}), matrix(1, 4), matrix(3, 4, 2)},
       {bools({true, false, true, false}), infinities(), single(0.)},
       {bools({true, false}).view({2, 1}), single(1.), matrix(1, 3)}});

  add("aten::mean", {in(0), none()}, unary());
  for (bool keep : {false, true}) {
    add("aten::mean.dim", {in(0), ints({0}), c(keep), none()},
        {{matrix(3, 4)}, {single(2.)}, {matrix(1, 4)}, {at::empty({0, 3}, at::kDouble)}});
    add("aten::mean.dim", {in(0), ints({-1, 0}), c(keep), none()}, matrices());
    add("aten::mean.dim", {in(0), ints({}), c(keep), none()}, matrices());
    add("aten::logsumexp", {in(0), ints({1}), c(keep)},
        {{matrix(3, 4)},
         {at::zeros({2, 3}, at::kDouble)},
         {infinities().view({2, 2})},
         {extremes().view({3, 4})},
         {matrix(3, 1)}});
    for (bool unbiased : {false, true}) {
      add("aten::var.dim", {in(0), ints({1}), c(unbiased), c(keep)}, matrices());
      add("aten::std.dim", {in(0), ints({1}), c(unbiased), c(keep)}, matrices());
      add("aten::var.dim", {in(0), ints({0, 1}), c(unbiased), c(keep)}, matrices());
      add("aten::std.dim", {in(0), ints({0, 1}), c(unbiased), c(keep)}, matrices());
    }
    for (double correction : {0., 1., 2.}) {
      add("aten::var.correction", {in(0), ints({1}), c(correction), c(keep)}, matrices());
      add("aten::std.correction", {in(0), ints({1}), c(correction), c(keep)}, matrices());
    }
  }
  add("aten::var.correction", {in(0), none(), none(), c(false)}, matrices());
  add("aten::std.correction", {in(0), none(), none(), c(false)}, matrices());
  for (bool unbiased : {false, true}) {
    add("aten::var", {in(0), c(unbiased)}, {{matrix(3, 4)}, {single(1.)}, {at::zeros({4}, at::kDouble)}});
    add("aten::std", {in(0), c(unbiased)}, {{matrix(3, 4)}, {single(1.)}, {at::zeros({4}, at::kDouble)}});
  }
  for (int64_t dim : {0, -1}) {
    add("aten::softmax.int", {in(0), c(dim), none()},
        {{matrix(3, 4)},
         {single(1.)},
         {infinities()},
         {extremes().view({3, 4})},
         {at::zeros({2, 3}, at::kDouble)}});
    add("aten::log_softmax.int", {in(0), c(dim), none()},
        {{matrix(3, 4)},
         {single(1.)},
         {infinities()},
         {extremes().view({3, 4})},
         {at::zeros({2, 3}, at::kDouble)}});
  }

  const std::vector<Operands> products = {{matrix(3, 4), matrix(4, 2, 2)},
                                          {matrix(4, 3).t(), matrix(2, 4, 2).t()},
                                          {at::empty({0, 4}, at::kDouble), matrix(4, 2)},
                                          {matrix(1, 1), matrix(1, 1, 2)}};
  add("aten::mm", {in(0), in(1)}, products);
  add("aten::matmul", {in(0), in(1)}, products);
  add("aten::matmul", {in(0), in(1)},
      {{block({4}), block({4}, 2)},
       {matrix(3, 4), block({4}, 2)},
       {block({3}), matrix(3, 4)},
       {block({2, 3, 4}), block({2, 4, 2}, 2)},
       {block({2, 3, 4}), matrix(4, 2)},
       {matrix(3, 4), block({2, 4, 2}, 2)},
       {block({2, 3, 0}), matrix(0, 2)},
       {block({2, 0, 3}), matrix(3, 2)},
       {block({2, 3, 4}), matrix(4, 0)},
       {block({2, 3, 0}), block({0})},
       {matrix(3, 0), block({2, 0, 4})},
       {block({0}), block({2, 0, 4})},
       {block({5, 2, 3, 4}), block({2, 4, 2}, 2)},
       {block({2, 3, 4}), block({4}, 2)},
       {block({4}), block({2, 4, 3}, 2)}});
  add("aten::bmm", {in(0), in(1)},
      {{block({2, 3, 4}), block({2, 4, 2}, 2)}, {block({0, 3, 4}), block({0, 4, 2}, 2)}});
  add("aten::mv", {in(0), in(1)}, {{matrix(3, 4), block({4}, 2)}, {matrix(4, 3).t(), block({4}, 2)}});
  add("aten::dot", {in(0), in(1)}, {{block({4}), block({4}, 2)}, {block({1}), block({1}, 2)}});
  for (double beta : {1., .5, 0.}) {
    add("aten::addmm", {in(0), in(1), in(2), c(beta), c(2.)},
        {{matrix(3, 2), matrix(3, 4), matrix(4, 2, 2)},
         {block({2}), matrix(3, 4), matrix(4, 2, 2)},
         {single(1.), matrix(3, 4), matrix(4, 2, 2)}});
  }
  add("aten::linear", {in(0), in(1), in(2)},
      {{matrix(3, 4), matrix(2, 4, 2), block({2}, 3)},
       {block({4}), matrix(2, 4, 2), block({2}, 3)},
       {block({5, 3, 4}), matrix(2, 4, 2), block({2}, 3)},
       {matrix(4, 3).t(), matrix(4, 2, 2).t(), block({2}, 3)},
       {block({5, 3, 4}).transpose(0, 1), matrix(2, 4, 2), block({2}, 3)},
       {block({5, 3, 0}), matrix(2, 0, 2), block({2}, 3)},
       {block({0, 4}), matrix(2, 4, 2), block({2}, 3)},
       {block({5, 3, 4}), matrix(0, 4, 2), block({0}, 3)}});
  add("aten::linear", {in(0), in(1), none()},
      {{matrix(3, 4), matrix(2, 4, 2)},
       {block({4}), matrix(2, 4, 2)},
       {block({5, 3, 4}), matrix(2, 4, 2)},
       {matrix(3, 4), block({4}, 2)},
       {block({5, 3, 4}), block({4}, 2)},
       {block({4}), block({4}, 2)},
       {block({3, 0}), matrix(2, 0, 2)}});

  add("aten::t", {in(0)}, {{matrix(3, 4)}, {block({3})}, {single(1.)}});
  add("aten::transpose.int", {in(0), c(int64_t{0}), c(int64_t{-1})},
      {{matrix(3, 4)}, {block({2, 3, 4})}, {block({3})}});
  add("aten::permute", {in(0), ints({2, 0, 1})}, {{block({2, 3, 4})}});
  add("aten::unsqueeze", {in(0), c(int64_t{1})}, {{matrix(3, 4)}, {block({3})}});
  add("aten::unsqueeze", {in(0), c(int64_t{-1})}, {{matrix(3, 4)}, {single(1.)}});
  add("aten::squeeze", {in(0)}, {{block({1, 3, 1})}, {matrix(3, 4)}, {single(1.)}});
  add("aten::squeeze.dim", {in(0), c(int64_t{1})}, {{block({3, 1})}, {matrix(3, 4)}});
  add("aten::squeeze.dim", {in(0), c(int64_t{-1})}, {{single(1.)}, {block({3, 1})}});
  add("aten::view", {in(0), ints({4, -1})}, {{matrix(3, 4)}, {matrix(4, 1)}});
  add("aten::reshape", {in(0), ints({2, -1})}, {{matrix(3, 4)}, {matrix(4, 3).t()}, {matrix(2, 3)}});
  add("aten::expand", {in(0), ints({2, 3, 4}), c(false)},
      {{matrix(3, 4)}, {matrix(1, 4)}, {single(1.)}, {block({2, 3, 4})}});
  add("aten::expand_as", {in(0), in(1)},
      {{matrix(1, 4), matrix(3, 4)}, {matrix(3, 4), matrix(3, 4, 2)}, {single(1.), matrix(3, 4)}});
  add("aten::contiguous", {in(0), c(int64_t{0})}, {{matrix(3, 4)}, {matrix(3, 4).t()}});
  add("aten::type_as", {in(0), in(1)}, {{matrix(3, 4), matrix(1, 1)}});
  add("aten::_grad_sum_to_size", {in(0), ints({1, 4})}, {{matrix(3, 4)}, {matrix(1, 4)}});
  add("aten::_grad_sum_to_size", {in(0), none()}, {{matrix(3, 4)}});
  add("aten::to.prim_Device", {in(0), none(), c(int64_t{7}), c(false), c(false)}, {{matrix(3, 4)}});
  add("aten::_autocast_to_full_precision", {in(0), c(false), c(false)}, {{matrix(3, 4)}});
  add("aten::_autocast_to_reduced_precision", {in(0), c(false), c(false), c(int64_t{5}), c(int64_t{15})},
      {{matrix(3, 4)}});

  for (bool train : {false, true}) {
    for (double p : {0., .5, 1.}) {
      add("aten::dropout", {in(0), c(p), c(train)}, {{matrix(3, 4)}, {single(1.)}});
    }
  }
  for (bool training : {false, true}) {
    add("aten::batch_norm", {in(0), in(1), in(2), in(3), in(4), c(training), c(.1), c(1e-5), c(false)},
        {{block({4, 3}), block({3}, 2), block({3}, 3), block({3}, 4), block({3}, 5).abs()},
         {block({2, 3, 2, 2}), block({3}, 2), block({3}, 3), block({3}, 4), block({3}, 5).abs()}});
  }
  add("aten::batch_norm", {in(0), none(), none(), none(), none(), c(true), c(.1), c(1e-5), c(false)},
      {{block({4, 3})}});
  add("aten::layer_norm", {in(0), ints({4}), in(1), in(2), c(1e-5), c(false)},
      {{matrix(3, 4), block({4}, 2), block({4}, 3)},
       {at::zeros({3, 4}, at::kDouble), block({4}, 2), block({4}, 3)}});
  add("aten::layer_norm", {in(0), ints({3, 4}), none(), none(), c(1e-5), c(false)},
      {{matrix(3, 4)}, {block({2, 3, 4})}});
  add("aten::embedding", {in(0), in(1), c(int64_t{-1}), c(false), c(false)},
      {{matrix(5, 3), indices({0, 4, 0})}});
  add("aten::embedding", {in(0), in(1), c(int64_t{0}), c(false), c(false)},
      {{matrix(5, 3), indices({0, 4, 0})}});
  add("aten::embedding", {in(0), in(1), c(int64_t{1}), c(true), c(false)},
      {{matrix(5, 3), indices({0, 4, 0})}});
  for (int64_t reduction : {0, 1, 2}) {
    add("aten::nll_loss", {in(0), in(1), none(), c(reduction), c(int64_t{-100})},
        {{matrix(3, 4), indices({0, 3, 1})}, {matrix(3, 4), indices({0, -100, 1})}});
    add("aten::nll_loss", {in(0), in(1), in(2), c(reduction), c(int64_t{1})},
        {{matrix(3, 4), indices({0, 3, 1}), block({4}).abs()}});
  }
  for (bool ceil_mode : {false, true}) {
    add("aten::avg_pool2d", {in(0), ints({2, 2}), ints({2, 1}), ints({1, 0}), c(ceil_mode), c(true), none()},
        {{block({1, 2, 5, 4})}, {block({2, 5, 4})}});
    add("aten::avg_pool2d",
        {in(0), ints({2, 2}), ints({2, 2}), ints({1, 1}), c(ceil_mode), c(false), c(int64_t{3})},
        {{block({1, 2, 5, 4})}});
    add("aten::max_pool2d", {in(0), ints({2, 2}), ints({2, 1}), ints({1, 0}), ints({1, 1}), c(ceil_mode)},
        {{block({1, 2, 5, 4})}, {at::zeros({1, 1, 4, 4}, at::kDouble)}});
    add("aten::max_pool2d_with_indices",
        {in(0), ints({2, 2}), ints({2, 1}), ints({1, 0}), ints({1, 1}), c(ceil_mode)},
        {{block({1, 2, 5, 4})}, {at::zeros({1, 1, 4, 4}, at::kDouble)}});
  }
  add("aten::max_pool2d", {in(0), ints({2, 2}), ints({}), ints({0, 0}), ints({1, 1}), c(false)},
      {{block({2, 4, 4})}});
  add("aten::adaptive_avg_pool1d", {in(0), ints({2})}, {{block({2, 3, 5})}});
  add("aten::adaptive_avg_pool2d", {in(0), ints({2, 3})}, {{block({1, 2, 5, 4})}, {block({2, 5, 4})}});
  add("aten::adaptive_avg_pool2d", {in(0), ints({1, 1})}, {{block({1, 2, 5, 4})}});
  add("aten::adaptive_avg_pool3d", {in(0), ints({2, 1, 2})}, {{block({1, 2, 3, 4, 2})}});
  add("aten::_dim_arange", {in(0), c(int64_t{1})}, {{matrix(3, 4)}});
  add("aten::nonzero", {in(0)}, {{matrix(3, 4)}});
  add("aten::_slow_conv2d_forward", {in(0), in(1), ints({2, 2}), in(2), ints({1, 1}), ints({0, 0})},
      {{block({1, 2, 4, 4}), block({3, 2, 2, 2}, 2), block({3}, 3)}});
  add("aten::native_batch_norm", {in(0), in(1), in(2), in(3), in(4), c(false), c(.1), c(1e-5)},
      {{block({4, 3}), block({3}, 2), block({3}, 3), block({3}, 4), block({3}, 5).abs()}});
  return rows;
}

// Tensors in lists: never compiled, whatever the formula.
inline const std::vector<std::string>& listOperators() {
  static const std::vector<std::string> names = {"aten::cat",
                                                 "aten::stack",
                                                 "aten::split.Tensor",
                                                 "aten::split_with_sizes",
                                                 "aten::unbind.int",
                                                 "aten::meshgrid",
                                                 "aten::index.Tensor_hacked_twin"};
  return names;
}

}  // namespace faultline::test
