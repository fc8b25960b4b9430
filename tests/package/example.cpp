#include <ATen/ATen.h>
#include <faultline/graph_break.h>
#include <faultline/ir.h>
int main() {
  auto graph = faultline::readGraph(R"(graph(%x : Tensor, %w : Tensor, %v : Tensor):
    %h : Tensor = aten::mm(%x, %w)
    %r : Tensor = aten::relu(%h)
    %y : Tensor = aten::mm(%r, %v)
    return (%y))").value();
  auto plan = faultline::planBreaks(*graph, faultline::BreakPolicy::after({"relu"})).value();
  auto broken = faultline::compile(graph, plan).value();  // two pieces, each differentiated ahead of time
  auto w = at::randn({8, 8}).requires_grad_(), v = at::randn({8, 1}).requires_grad_();
  v.register_hook([&](const at::Tensor&) { broken.timeline().hook("v"); });  // fires between the pieces
  torch::jit::Stack stack{at::randn({4, 8}), w, v};
  broken.run(stack);
  stack[0].toTensor().sum().backward();
  return broken.timeline().events()[3].name == "v" ? 0 : 1;  // forward 0, forward 1, backward 1, v, backward 0
}
