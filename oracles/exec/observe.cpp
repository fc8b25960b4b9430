#include "oracles/exec/observe.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <fmt/format.h>

namespace faultline {
namespace {

std::string scalarText(const c10::IValue& value) {
  if (value.isNone()) return "None";
  if (value.isBool()) return value.toBool() ? "True" : "False";
  if (value.isInt()) return std::to_string(value.toInt());
  if (value.isDouble()) return fmt::format("{:.17g}", value.toDouble());
  if (value.isString()) return fmt::format("\"{}\"", value.toStringRef());
  if (value.isComplexDouble()) {
    const auto z = value.toComplexDouble();
    return fmt::format("{:.17g}{:+.17g}j", z.real(), z.imag());
  }
  if (value.isDevice()) return value.toDevice().str();
  return "<" + value.tagKind() + ">";
}

int numberOf(std::unordered_map<const void*, int>& numbers, const void* key) {
  return numbers.emplace(key, static_cast<int>(numbers.size())).first->second;
}

}  // namespace

at::Tensor copyOfValues(const at::Tensor& t) {
  // Below autograd: no graph, no version bump, half the cost.
  at::AutoDispatchBelowADInplaceOrView below;
  at::Tensor plain = t;
  if (plain.layout() != at::kStrided) plain = plain.to_dense();
  if (plain.is_quantized()) plain = plain.dequantize();
  if (!plain.device().is_cpu()) plain = plain.cpu();
  return plain.resolve_conj().resolve_neg().clone(at::MemoryFormat::Contiguous);
}

void findTensors(const c10::IValue& value, const std::string& prefix, size_t position,
                 std::vector<FoundTensor>& tensors, std::vector<ScalarTrace>* scalars) {
  if (value.isTensor()) {
    tensors.push_back({prefix, position, value.toTensor()});
  } else if (value.isTuple()) {
    const auto& elements = value.toTupleRef().elements();
    for (size_t i = 0; i < elements.size(); ++i) {
      findTensors(elements[i], fmt::format("{}[{}]", prefix, i), position, tensors, scalars);
    }
  } else if (value.isList()) {
    const auto list = value.toListRef();
    // The length is a result even where there is nothing in it.
    if (scalars != nullptr) scalars->push_back({prefix + ".len", std::to_string(list.size())});
    for (size_t i = 0; i < list.size(); ++i) {
      findTensors(list[i], fmt::format("{}[{}]", prefix, i), position, tensors, scalars);
    }
  } else if (value.isGenericDict()) {
    const auto dict = value.toGenericDict();
    if (scalars != nullptr) scalars->push_back({prefix + ".len", std::to_string(dict.size())});
    for (const auto& entry : dict) {
      const std::string key = entry.key().isTensor() ? "tensor" : scalarText(entry.key());
      findTensors(entry.value(), fmt::format("{}[{}]", prefix, key), position, tensors, scalars);
    }
  } else if (scalars != nullptr) {
    scalars->push_back({prefix, scalarText(value)});
  }
}

int Identities::storageOf(const at::Tensor& t) {
  // By storage object, not by address: tensors without elements have no address.
  if (!t.defined() || !t.has_storage()) return -1;
  return numberOf(storages_, t.storage().unsafeGetStorageImpl());
}

int Identities::objectOf(const at::Tensor& t) {
  return t.defined() ? numberOf(objects_, t.unsafeGetTensorImpl()) : -1;
}

at::Tensor gradientOf(const at::Tensor& leaf) {
  at::Tensor gradient = leaf.grad();
  const bool reshaped = gradient.defined() && gradient.layout() == at::kStrided &&
                        gradient.sizes() != leaf.sizes() && gradient.numel() == leaf.numel();
  return reshaped ? gradient.reshape(leaf.sizes()) : gradient;
}

TensorTrace observeTensor(const at::Tensor& t, std::string path, Identities* identities) {
  TensorTrace trace;
  trace.path = std::move(path);
  trace.defined = t.defined();
  if (!t.defined()) return trace;
  trace.dtype = t.scalar_type();
  trace.device = t.device().type();
  trace.sizes = t.sizes().vec();
  if (t.layout() == at::kStrided) trace.strides = t.strides().vec();
  trace.requires_grad = t.requires_grad();
  trace.is_leaf = t.is_leaf();
  if (!t.is_inference()) trace.version = static_cast<int64_t>(t._version());
  if (identities != nullptr) {
    trace.alias_class = identities->storageOf(t);
    trace.same_object = identities->objectOf(t);
  }
  trace.values = copyOfValues(t);
  return trace;
}

}  // namespace faultline
