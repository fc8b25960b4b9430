#include "generators/ops/row_operator.h"

#include <cmath>

#include "engine/support/check.h"

namespace faultline {

const RowOperator& operatorOf(const OpRow& row) {
  static const std::vector<RowOperator> operators = [] {
    std::vector<RowOperator> all;
    for (const OpRow& each : opRows()) {
      size_t dot = each.schema.find('.');
      std::string name = each.schema.substr(0, dot);
      std::string overload = dot == std::string::npos ? "" : each.schema.substr(dot + 1);
      auto op = torch::jit::findOperatorFor(c10::OperatorName(name, overload));
      FAULTLINE_CHECK(op != nullptr, "libtorch has no operator " + each.schema);
      all.push_back({std::move(op), c10::Symbol::fromQualString(name)});
    }
    return all;
  }();
  return operators[static_cast<size_t>(&row - opRows().data())];
}

bool sameConstant(const c10::IValue& a, const c10::IValue& b) {
  if (a.tagKind() != b.tagKind()) return false;
  if (a.isNone()) return true;
  if (a.isInt()) return a.toInt() == b.toInt();
  if (a.isBool()) return a.toBool() == b.toBool();
  if (a.isDouble())
    return a.toDouble() == b.toDouble() && std::signbit(a.toDouble()) == std::signbit(b.toDouble());
  if (a.isString()) return a.toStringRef() == b.toStringRef();
  if (a.isIntList()) return a.toIntVector() == b.toIntVector();
  return false;
}

}  // namespace faultline
