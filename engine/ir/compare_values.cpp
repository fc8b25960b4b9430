#include "engine/ir/compare_values.h"

#include <bit>
#include <cmath>

#include "engine/ir/tensor_data.h"

namespace faultline {
namespace {

using torch::jit::AttributeKind;

bool sameDouble(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

bool sameComplex(c10::complex<double> a, c10::complex<double> b) {
  return sameDouble(a.real(), b.real()) && sameDouble(a.imag(), b.imag());
}

bool sameGenericDict(const c10::IValue& a, const c10::IValue& b) {
  const auto dict_a = a.toGenericDict();
  const auto dict_b = b.toGenericDict();
  if (dict_a.size() != dict_b.size() || !sameType(dict_a.keyType(), dict_b.keyType()) ||
      !sameType(dict_a.valueType(), dict_b.valueType())) {
    return false;
  }
  // Dicts keep the order of insertion, and programs can see it.
  auto entry_b = dict_b.begin();
  for (const auto& entry_a : dict_a) {
    if (!sameIValue(entry_a.key(), entry_b->key()) || !sameIValue(entry_a.value(), entry_b->value())) {
      return false;
    }
    ++entry_b;
  }
  return true;
}

template <class Elements, class Same>
bool sameElements(const Elements& a, const Elements& b, Same same) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
}

}  // namespace

bool sameType(const c10::TypePtr& a, const c10::TypePtr& b) {
  return *a == *b || (a->kind() == c10::TypeKind::FunctionType && b->kind() == c10::TypeKind::FunctionType);
}

bool sameIValue(const c10::IValue& a, const c10::IValue& b) {
  if (a.tagKind() != b.tagKind()) {
    return false;
  }
  if (a.isTensor()) {
    return sameTensor(a.toTensor(), b.toTensor());
  }
  if (a.isDouble()) {
    return sameDouble(a.toDouble(), b.toDouble());
  }
  if (a.isComplexDouble()) {
    return sameComplex(a.toComplexDouble(), b.toComplexDouble());
  }
  if (a.isTuple()) {
    return sameType(a.type(), b.type()) && sameElements(a.toTupleRef().elements().asArrayRef(),
                                                        b.toTupleRef().elements().asArrayRef(), sameIValue);
  }
  if (a.isList()) {
    return sameType(a.toList().elementType(), b.toList().elementType()) &&
           sameElements(a.toListRef(), b.toListRef(), sameIValue);
  }
  if (a.isGenericDict()) {
    return sameGenericDict(a, b);
  }
  if (a.isNone() || a.isInt() || a.isBool() || a.isString() || a.isDevice()) {
    return a == b;
  }
  return a.is(b);
}

bool sameAttribute(const torch::jit::Node& a, const torch::jit::Node& b, c10::Symbol name) {
  if (a.kindOf(name) != b.kindOf(name)) {
    return false;
  }
  switch (a.kindOf(name)) {
    case AttributeKind::f:
      return sameDouble(a.f(name), b.f(name));
    case AttributeKind::fs:
      return sameElements(a.fs(name), b.fs(name), sameDouble);
    case AttributeKind::c:
      return sameComplex(a.c(name), b.c(name));
    case AttributeKind::cs:
      return sameElements(a.cs(name), b.cs(name), sameComplex);
    case AttributeKind::i:
      return a.i(name) == b.i(name);
    case AttributeKind::is:
      return a.is(name) == b.is(name);
    case AttributeKind::s:
      return a.s(name) == b.s(name);
    case AttributeKind::ss:
      return a.ss(name) == b.ss(name);
    case AttributeKind::t:
      return sameTensor(a.t(name), b.t(name));
    case AttributeKind::ts:
      return sameElements(a.ts(name), b.ts(name), sameTensor);
    case AttributeKind::g:
      return true;
    case AttributeKind::gs:
      return a.gs(name).size() == b.gs(name).size();
    case AttributeKind::ty:
      return sameType(a.ty(name), b.ty(name));
    case AttributeKind::tys:
      return sameElements(a.tys(name), b.tys(name), sameType);
    case AttributeKind::ival:
      return sameIValue(a.ival(name), b.ival(name));
  }
  return false;
}

}  // namespace faultline
