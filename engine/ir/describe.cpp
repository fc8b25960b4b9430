#include "engine/ir/describe.h"

namespace faultline {
namespace {

constexpr size_t kListed = 6;
constexpr size_t kShort = 120;

std::string names(at::ArrayRef<const torch::jit::Value*> values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i == kListed) {
      return text + ", …";
    }
    text += (i == 0 ? "%" : ", %") + values[i]->debugName();
  }
  return text;
}

}  // namespace

std::string describeNode(const torch::jit::Node& node) {
  if (node.kind() == c10::prim::Return) {
    return "the return (" + names(node.inputs()) + ")";
  }
  if (node.kind() == c10::prim::Param) {
    return "the inputs (" + names(node.outputs()) + ")";
  }
  const std::string call = std::string(node.kind().toQualString()) + "(" + names(node.inputs()) + ")";
  return node.outputs().empty() ? call : names(node.outputs()) + " = " + call;
}

std::string shortened(std::string text) {
  if (text.size() > kShort) {
    text.resize(kShort);
    text += "…";
  }
  return text;
}

}  // namespace faultline
