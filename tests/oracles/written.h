// Traces and cases written by hand, for oracles to judge.
#pragma once
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "faultline/ir.h"
#include "generators/case/case.h"
#include "oracles/trace.h"

namespace faultline::written {

inline TensorTrace tensor(std::string path, std::vector<double> values, at::ScalarType dtype = at::kFloat) {
  TensorTrace t;
  t.path = std::move(path);
  t.dtype = dtype;
  t.sizes = {static_cast<int64_t>(values.size())};
  t.strides = {1};
  t.values = at::tensor(values, at::kDouble).to(dtype);
  return t;
}

inline TensorTrace undefined(std::string path) {
  TensorTrace t;
  t.path = std::move(path);
  t.defined = false;
  return t;
}

inline TensorTrace withGrad(TensorTrace t) {
  t.requires_grad = true;
  t.is_leaf = false;
  return t;
}

inline ErrorTrace error(std::string detail) { return {"RuntimeError", detail, "it said " + detail}; }

inline HookTrace hook(HookTrace::Kind kind, std::string on, uint64_t seq, double argument = 1) {
  HookTrace h;
  h.kind = kind;
  h.on = std::move(on);
  h.seq = seq;
  if (kind != HookTrace::Kind::PieceBackward) h.argument = tensor(h.on, {argument});
  return h;
}

// One run: a forward with `outputs`, and a backward with `gradients` where there are any.
inline RunTrace run(std::vector<TensorTrace> outputs, std::vector<TensorTrace> gradients = {}) {
  RunTrace r;
  PhaseTrace forward;
  forward.outputs = std::move(outputs);
  r.phases.push_back(std::move(forward));
  if (!gradients.empty()) {
    PhaseTrace backward;
    backward.kind = PhaseTrace::Kind::Backward;
    backward.backward = 0;
    backward.gradients = std::move(gradients);
    r.phases.push_back(std::move(backward));
  }
  return r;
}

// Three equal runs of a scalar function with a gradient.
inline Trace trace(double output = 2, double gradient = 3) {
  Trace t;
  for (int i = 0; i < 3; ++i)
    t.runs.push_back(run({withGrad(tensor("out0", {output, 1}))}, {tensor("in0", {gradient})}));
  return t;
}

inline InputSpec input(std::vector<int64_t> sizes, bool requires_grad = true) {
  InputSpec spec;
  spec.sizes = std::move(sizes);
  spec.requires_grad = requires_grad;
  return spec;
}

// A case from IR; `runs` equal runs with one backward from all outputs.
inline Case caseOf(const std::string& ir, std::vector<InputSpec> inputs, size_t runs = 1) {
  Case c;
  c.seed = 7;
  auto graph = readGraph(ir);
  if (!graph) ADD_FAILURE() << graph.error().str() << "\n" << ir;
  c.graph = graph.value_or(std::make_shared<torch::jit::Graph>());
  for (size_t i = 0; i < runs; ++i) c.runs.push_back({inputs, true, {BackwardSpec{}}});
  return c;
}

inline Case smallCase() {
  return caseOf(R"(graph(%x : Tensor):
  %y : Tensor = aten::tanh(%x)
  return (%y)
)",
                {input({2})});
}

}  // namespace faultline::written
