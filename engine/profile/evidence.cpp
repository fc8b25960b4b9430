#include "engine/profile/evidence.h"

#include <algorithm>
#include <numeric>

#include "engine/support/check.h"

namespace faultline::profile {
namespace {

namespace attr = torch::jit::attr;
namespace prim = torch::jit::prim;

using c10::Stride;
using c10::TensorType;
using c10::TensorTypePtr;
using c10::VaryingShape;

Cell value(int64_t v) { return {CellState::Value, true, kNoReason, v}; }

// A field that an observed node leaves open was seen to differ.
template <class T, class Encode>
Cell observed(const std::optional<T>& field, ReasonId varies, Encode encode) {
  if (field) return value(encode(*field));
  return {CellState::Varies, true, varies, 0};
}

Fact factOfType(const TensorType& type, ReasonId varies, ReasonId silent) {
  Fact fact = uniformFact(CellState::Nothing, silent);
  const std::optional<bool> undefined = type.undefined();
  fact.defined = observed(undefined, varies, [](bool u) { return u ? 0 : 1; });
  if (undefined == true) return fact;
  fact.dtype = observed(type.scalarType(), varies, [](c10::ScalarType s) { return static_cast<int64_t>(s); });
  fact.device = observed(type.device(), varies, encodeDevice);
  fact.requires_grad = observed(type.requiresGrad(), varies, [](bool b) { return static_cast<int64_t>(b); });
  // As sizes() and strides(), which make lists of their own.
  const c10::SymbolicShape& sizes = type.symbolic_sizes();
  const Cell varying{CellState::Varies, true, varies, 0};
  if (!sizes.rank()) {
    fact.rank = varying;
    return fact;
  }
  const size_t rank = *sizes.rank();
  fact.rank = value(static_cast<int64_t>(rank));
  fact.sizes.reserve(rank);
  for (size_t i = 0; i < rank; ++i)
    fact.sizes.push_back(sizes[i].is_static() ? value(sizes[i].static_size()) : varying);
  fact.strides.assign(rank, varying);
  const VaryingShape<Stride>& strides = type.stride_properties();
  if (strides.size() != rank) return fact;
  for (size_t i = 0; i < rank; ++i) {
    const std::optional<Stride>& stride = strides[i];
    if (stride && stride->stride_index_ && stride->stride_)
      fact.strides[*stride->stride_index_] = value(static_cast<int64_t>(*stride->stride_));
  }
  return fact;
}

// What the fields mark leaves out is not spoken of.
void applyFieldsMark(Fact& fact, const std::vector<std::string>& fields, ReasonId silent) {
  auto spoken = [&](const char* name) {
    return std::find(fields.begin(), fields.end(), name) != fields.end();
  };
  auto drop = [&](Cell& cell) { cell = {CellState::Nothing, true, silent, 0}; };
  if (!spoken("defined")) drop(fact.defined);
  if (!spoken("dtype")) drop(fact.dtype);
  if (!spoken("device")) drop(fact.device);
  if (!spoken("requires_grad")) drop(fact.requires_grad);
  if (!spoken("sizes")) std::for_each(fact.sizes.begin(), fact.sizes.end(), drop);
  if (!spoken("strides")) std::for_each(fact.strides.begin(), fact.strides.end(), drop);
  if (!spoken("rank")) {
    drop(fact.rank);
    fact.sizes.clear();
    fact.strides.clear();
  }
}

bool anySpeaks(const std::vector<Cell>& cells) {
  return std::any_of(cells.begin(), cells.end(), [](const Cell& c) { return c.known(); });
}

std::vector<std::string> knownFields(const Fact& fact) {
  std::vector<std::string> names;
  if (fact.defined.known()) names.push_back("defined");
  if (fact.dtype.known()) names.push_back("dtype");
  if (fact.device.known()) names.push_back("device");
  if (fact.rank.known()) names.push_back("rank");
  if (anySpeaks(fact.sizes)) names.push_back("sizes");
  if (anySpeaks(fact.strides)) names.push_back("strides");
  if (fact.requires_grad.known()) names.push_back("requires_grad");
  return names;
}

bool sameKnown(const Cell& a, const Cell& b) {
  return a.known() == b.known() && (!a.known() || a.value == b.value);
}

bool sameKnown(const std::vector<Cell>& a, const std::vector<Cell>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Cell& x, const Cell& y) { return sameKnown(x, y); });
}

// libtorch keeps strides sorted from the innermost dimension on; where some are not known any order will do.
VaryingShape<Stride> strideProperties(const std::vector<Cell>& strides) {
  std::vector<size_t> order(strides.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (strides[a].known() != strides[b].known()) return strides[a].known();
    return strides[a].known() ? strides[a].value < strides[b].value : a > b;
  });
  std::vector<std::optional<Stride>> properties;
  for (size_t dim : order) {
    properties.emplace_back();
    if (strides[dim].known())
      properties.back() = Stride(dim, std::nullopt, static_cast<size_t>(strides[dim].value));
  }
  return VaryingShape<Stride>(std::move(properties));
}

}  // namespace

namespace mark {
c10::Symbol clone() {
  static const c10::Symbol symbol = c10::Symbol::attr("faultline_clone");
  return symbol;
}
c10::Symbol conditional() {
  static const c10::Symbol symbol = c10::Symbol::attr("faultline_conditional");
  return symbol;
}
c10::Symbol inside() {
  static const c10::Symbol symbol = c10::Symbol::attr("faultline_inside");
  return symbol;
}
c10::Symbol raw() {
  static const c10::Symbol symbol = c10::Symbol::attr("faultline_raw");
  return symbol;
}
c10::Symbol fields() {
  static const c10::Symbol symbol = c10::Symbol::attr("faultline_fields");
  return symbol;
}
}  // namespace mark

bool isProfile(const Node* node) {
  return node->kind() == prim::profile && node->inputs().size() == 1 && node->outputs().size() == 1;
}

bool isClone(const Node* node) { return node->kind() == prim::profile && node->hasAttribute(mark::clone()); }

bool isCounter(const Node* node) {
  return node->kind() == prim::profile && node->inputs().empty() && node->outputs().empty();
}

bool isProfileIValue(const Node* node) { return node->kind() == prim::profile_ivalue; }

bool isTransparent(const Node* node) {
  return isProfile(node) || (isProfileIValue(node) && node->inputs().size() == node->outputs().size());
}

Marks marksOf(const Node* node) {
  static const c10::Symbol clone = mark::clone(), conditional = mark::conditional(), inside = mark::inside(),
                           raw = mark::raw(), fields = mark::fields();
  Marks marks;
  for (const c10::Symbol name : node->attributeNames()) {
    marks.typed = marks.typed || name == attr::profiled_type;
    marks.clone = marks.clone || name == clone;
    marks.conditional = marks.conditional || name == conditional;
    marks.inside = marks.inside || name == inside;
    marks.raw = marks.raw || name == raw;
    marks.fields = marks.fields || name == fields;
  }
  return marks;
}

TensorTypePtr profiledType(const Node* node) {
  if (!node->hasAttribute(attr::profiled_type) ||
      node->kindOf(attr::profiled_type) != torch::jit::AttributeKind::ty) {
    return nullptr;
  }
  c10::TypePtr type = node->ty(attr::profiled_type);
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  return type->cast<TensorType>();
}

bool isUnseen(const Marks& marks, const TensorTypePtr& type) {
  return type != nullptr && !marks.fields && !type->scalarType() && !type->device() &&
         !type->symbolic_sizes().rank() && !type->requiresGrad() && type->undefined() == false;
}

bool isUnseen(const Node* node) { return isUnseen(marksOf(node), profiledType(node)); }

Fact factOf(const Node* node, GradMode mode, Reasons& reasons) {
  return factOf(node, marksOf(node), profiledType(node), mode, reasons);
}

Fact factOf(const Node* node, const Marks& marks, const TensorTypePtr& type, GradMode mode,
            Reasons& reasons) {
  const ReasonId silent = reasons.of(ReasonKind::NotRecorded);
  if (type == nullptr) return uniformFact(CellState::Nothing, silent);
  if (isUnseen(marks, type)) return uniformFact(CellState::Neutral, reasons.of(ReasonKind::NeverRan));
  Fact fact = factOfType(*type, reasons.of(ReasonKind::Varies), silent);
  if (marks.fields) applyFieldsMark(fact, node->ss(mark::fields()), silent);
  Cell& grad = fact.requires_grad;
  auto notAFact = [&](ReasonKind why) { grad = {CellState::Nothing, true, reasons.of(why), 0}; };
  if (marks.inside) {
    notAFact(ReasonKind::Inside);
  } else if (mode != GradMode::On && !marks.raw && grad.state != CellState::Nothing &&
             !(grad.known() && grad.value == 1)) {
    notAFact(mode == GradMode::Off ? ReasonKind::NoGrad : ReasonKind::ModeUnknown);
  }
  return fact;
}

Fact literalFact(const Node* node) { return literalFact(node, marksOf(node), profiledType(node)); }

Fact literalFact(const Node* node, const Marks& marks, const TensorTypePtr& type) {
  if (type == nullptr) return {};
  if (isUnseen(marks, type)) return uniformFact(CellState::Neutral);
  Fact fact = factOfType(*type, kNoReason, kNoReason);
  if (marks.fields) applyFieldsMark(fact, node->ss(mark::fields()), kNoReason);
  return fact;
}

bool sameValues(const Fact& a, const Fact& b) {
  return sameKnown(a.defined, b.defined) && sameKnown(a.dtype, b.dtype) && sameKnown(a.device, b.device) &&
         sameKnown(a.rank, b.rank) && sameKnown(a.requires_grad, b.requires_grad) &&
         sameKnown(a.sizes, b.sizes) && sameKnown(a.strides, b.strides);
}

TensorTypePtr typeOf(const Fact& fact) {
  if (knownFields(fact).empty()) return nullptr;
  std::optional<c10::ScalarType> dtype;
  if (fact.dtype.known()) dtype = static_cast<c10::ScalarType>(fact.dtype.value);
  std::optional<c10::Device> device;
  if (fact.device.known()) device = decodeDevice(fact.device.value);
  std::optional<bool> requires_grad;
  if (fact.requires_grad.known()) requires_grad = fact.requires_grad.value != 0;
  const std::optional<bool> undefined = fact.defined.known() && fact.defined.value == 0;
  if (!fact.rank.known()) {
    return TensorType::create(dtype, device, c10::SymbolicShape(), VaryingShape<Stride>(), requires_grad,
                              undefined);
  }
  auto whole = [](const std::vector<Cell>& cells) {
    return std::all_of(cells.begin(), cells.end(), [](const Cell& c) { return c.known(); });
  };
  if (whole(fact.sizes) && whole(fact.strides)) {
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    for (const Cell& cell : fact.sizes) sizes.push_back(cell.value);
    for (const Cell& cell : fact.strides) strides.push_back(cell.value);
    return TensorType::create(dtype, device, VaryingShape<int64_t>(sizes), VaryingShape<int64_t>(strides),
                              requires_grad, undefined);
  }
  std::vector<std::optional<int64_t>> sizes;
  for (const Cell& cell : fact.sizes)
    sizes.push_back(cell.known() ? std::optional(cell.value) : std::nullopt);
  return TensorType::create(dtype, device, c10::SymbolicShape(sizes), strideProperties(fact.strides),
                            requires_grad, undefined);
}

void writeFact(Node* node, const Fact& fact, const TensorTypePtr& type) {
  FAULTLINE_CHECK(type != nullptr, "a fact without a known field has no type");
  node->ty_(attr::profiled_type, type);
  const std::vector<std::string> names = knownFields(fact);
  const size_t all = fact.sizes.empty() ? 5 : 7;  // a scalar has no sizes to speak of
  const bool undefined = fact.defined.known() && fact.defined.value == 0;
  const bool plain = names.size() == all || (names.size() == 1 && undefined);
  if (plain) {
    if (node->hasAttribute(mark::fields())) node->removeAttribute(mark::fields());
  } else {
    node->ss_(mark::fields(), names);
  }
}

bool excludes(const c10::Type& type, const Fact& fact) {
  // Most values are of type Tensor and nothing more.
  if (type.kind() != c10::TypeKind::TensorType || &type == TensorType::get().get()) return false;
  const auto* tensor = type.castRaw<TensorType>();
  auto differs = [](const auto& declared, const Cell& seen, auto decode) {
    return declared && seen.known() && decode(seen.value) != *declared;
  };
  auto asInt = [](int64_t v) { return v; };
  if (differs(tensor->scalarType(), fact.dtype, [](int64_t v) { return static_cast<c10::ScalarType>(v); }))
    return true;
  if (differs(tensor->device(), fact.device, decodeDevice)) return true;
  if (differs(tensor->dim(), fact.rank, [](int64_t v) { return static_cast<size_t>(v); })) return true;
  const auto sizes = tensor->sizes();
  if (!sizes.size() || *sizes.size() != fact.sizes.size()) return false;
  for (size_t i = 0; i < fact.sizes.size(); ++i) {
    if (differs(sizes[i], fact.sizes[i], asInt)) return true;
  }
  return false;
}

}  // namespace faultline::profile
