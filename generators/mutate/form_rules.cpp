#include "generators/mutate/form_rules.h"

#include <algorithm>
#include <unordered_map>

#include <c10/core/DefaultDtype.h>

#include "engine/support/check.h"
#include "generators/ops/limits.h"
#include "generators/ops/rules.h"

namespace faultline {

namespace {

using Sizes = std::vector<int64_t>;
using Forms = std::optional<ResultForms>;

// The arguments of one node. What is asked for and not there ends the rule (`Unfit`).
struct Unfit {};

struct FormCall {
  const OpRow& row;
  const std::vector<FormArgument>& arguments;

  const std::vector<Operand>& tensors(size_t i) const {
    if (i >= arguments.size() || arguments[i].tensors.empty()) throw Unfit();
    return arguments[i].tensors;
  }
  const Operand& tensor(size_t i) const { return tensors(i).front(); }
  const c10::IValue& value(size_t i) const {
    if (i >= arguments.size() || !arguments[i].number) throw Unfit();
    return *arguments[i].number;
  }
  int64_t integer(size_t i) const {
    if (!value(i).isInt()) throw Unfit();
    return value(i).toInt();
  }
  bool flag(size_t i) const {
    if (!value(i).isBool()) throw Unfit();
    return value(i).toBool();
  }
  Sizes integers(size_t i) const {
    if (!value(i).isIntList()) throw Unfit();
    return value(i).toIntVector();
  }
  // Where dimension `i` of a tensor of this rank stands; rank 0 takes 0 and -1.
  size_t dim(size_t i, size_t rank) const { return wrapped(integer(i), rank); }
  static size_t wrapped(int64_t dim, size_t rank) {
    auto count = static_cast<int64_t>(std::max<size_t>(rank, 1));
    if (dim < -count || dim >= count) throw Unfit();
    return static_cast<size_t>(dim < 0 ? dim + count : dim);
  }
};

int64_t countElements(const Sizes& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

Forms one(at::ScalarType dtype, Sizes sizes, bool contiguous) {
  bool fits = sizes.size() <= limits::max_rank + 1 && countElements(sizes) <= 4 * limits::max_elements;
  if (!fits) throw Unfit();
  return ResultForms{{{dtype, std::move(sizes), contiguous}}, false};
}

bool allContiguous(const FormCall& call) {
  for (const FormArgument& argument : call.arguments) {
    for (const Operand& tensor : argument.tensors) {
      if (!tensor.contiguous) return false;
    }
  }
  return true;
}

at::ScalarType floatingOf(at::ScalarType dtype) {
  return c10::isIntegralType(dtype, /*includeBool=*/true) ? c10::get_default_dtype_as_scalartype() : dtype;
}

at::ScalarType sumDtype(at::ScalarType dtype) {
  return c10::isIntegralType(dtype, /*includeBool=*/true) ? at::kLong : dtype;
}

// Type promotion: tensors with dimensions decide, then those without, then numbers, unless a later one is of
// a higher category.
struct Promotion {
  at::ScalarType with_dims = at::ScalarType::Undefined, without_dims = at::ScalarType::Undefined,
                 numbers = at::ScalarType::Undefined;

  static void join(at::ScalarType& into, at::ScalarType dtype) {
    into = into == at::ScalarType::Undefined ? dtype : c10::promoteTypes(into, dtype);
  }
  void add(const Operand& tensor) { join(tensor.rank() == 0 ? without_dims : with_dims, tensor.dtype); }
  void add(const c10::IValue& number) {
    if (number.isInt()) join(numbers, at::kLong);
    if (number.isDouble()) join(numbers, c10::get_default_dtype_as_scalartype());
    if (number.isBool()) join(numbers, at::kBool);
  }
  static int category(at::ScalarType dtype) {
    if (c10::isComplexType(dtype)) return 3;
    if (c10::isFloatingType(dtype)) return 2;
    return dtype == at::kBool ? 0 : 1;
  }
  static at::ScalarType over(at::ScalarType higher, at::ScalarType lower) {
    if (higher == at::ScalarType::Undefined) return lower;
    if (lower == at::ScalarType::Undefined || category(lower) <= category(higher)) return higher;
    return c10::promoteTypes(higher, lower);
  }
  at::ScalarType result() const { return over(with_dims, over(without_dims, numbers)); }
};

at::ScalarType promoted(const FormCall& call, size_t from = 0, size_t numbers = 0) {
  Promotion promotion;
  for (size_t i = from; i < call.arguments.size(); ++i) {
    for (const Operand& tensor : call.arguments[i].tensors) promotion.add(tensor);
    if (i < numbers && call.arguments[i].number) promotion.add(*call.arguments[i].number);
  }
  return promotion.result();
}

Sizes commonSizes(const FormCall& call) {
  std::optional<Sizes> common;
  for (const FormArgument& argument : call.arguments) {
    for (const Operand& tensor : argument.tensors) {
      common = common ? broadcastSizes(*common, tensor.sizes) : tensor.sizes;
      if (!common) throw Unfit();
    }
  }
  if (!common) throw Unfit();
  return *common;
}

// ---- elementwise ----

Forms asFirst(const FormCall& call) {
  return one(call.tensor(0).dtype, call.tensor(0).sizes, call.tensor(0).contiguous);
}
Forms laidOut(const FormCall& call) { return one(call.tensor(0).dtype, call.tensor(0).sizes, true); }
Forms absolute(const FormCall& call) {
  return one(c10::toRealValueType(call.tensor(0).dtype), call.tensor(0).sizes, call.tensor(0).contiguous);
}
Forms withNumber(const FormCall& call) {
  return one(promoted(call, 0, 2), call.tensor(0).sizes, call.tensor(0).contiguous);
}
Forms quotientWithNumber(const FormCall& call) {
  return one(floatingOf(promoted(call, 0, 2)), call.tensor(0).sizes, call.tensor(0).contiguous);
}
Forms broadcast(const FormCall& call) { return one(promoted(call), commonSizes(call), allContiguous(call)); }
Forms quotient(const FormCall& call) {
  return one(floatingOf(promoted(call)), commonSizes(call), allContiguous(call));
}
Forms compared(const FormCall& call) { return one(at::kBool, commonSizes(call), allContiguous(call)); }
Forms mask(const FormCall& call) { return one(at::kBool, call.tensor(0).sizes, call.tensor(0).contiguous); }
Forms whereMask(const FormCall& call) {
  return one(promoted(call, 1), commonSizes(call), allContiguous(call));
}
Forms loss(const FormCall& call) {
  return call.integer(2) == 0 ? one(promoted(call), commonSizes(call), allContiguous(call))
                              : one(promoted(call), {}, true);
}
Forms typedAs(const FormCall& call) {
  return one(call.tensor(1).dtype, call.tensor(0).sizes, call.tensor(0).contiguous);
}
Forms converted(const FormCall& call) {
  return one(static_cast<at::ScalarType>(call.integer(1)), call.tensor(0).sizes, call.tensor(0).contiguous);
}

// A write keeps the form; what is written must convert.
Forms written(const FormCall& call) {
  at::ScalarType dtype = call.tensor(0).dtype;
  if (!c10::canCast(promoted(call, 0, call.arguments.size()), dtype)) throw Unfit();
  return asFirst(call);
}

// ---- along dimensions ----

Forms alongDimension(const FormCall& call) {
  (void)call.dim(1, call.tensor(0).rank());
  return asFirst(call);
}
Forms layerNorm(const FormCall& call) {
  const Operand& x = call.tensor(0);
  if (x.rank() == 0 || call.integers(1) != Sizes{x.sizes.back()}) throw Unfit();
  return one(x.dtype, x.sizes, true);
}
Forms flipped(const FormCall& call) {
  for (int64_t dim : call.integers(1)) (void)FormCall::wrapped(dim, call.tensor(0).rank());
  return asFirst(call);
}
Forms runningSum(const FormCall& call) {
  (void)call.dim(1, call.tensor(0).rank());
  return one(sumDtype(call.tensor(0).dtype), call.tensor(0).sizes, call.tensor(0).contiguous);
}
Forms sumOfAll(const FormCall& call) { return one(sumDtype(call.tensor(0).dtype), {}, true); }
Forms oneElement(const FormCall& call) { return one(call.tensor(0).dtype, {}, true); }

// Without these dimensions, or with ones in their place. No dimensions: all.
Sizes reduced(const Sizes& sizes, const Sizes& dims, bool keep) {
  std::vector<bool> gone(sizes.size(), dims.empty());
  for (int64_t dim : dims) {
    size_t at = FormCall::wrapped(dim, sizes.size());
    if (at >= sizes.size()) continue;
    if (gone[at]) throw Unfit();
    gone[at] = true;
  }
  Sizes rest;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!gone[i] || keep) rest.push_back(gone[i] ? 1 : sizes[i]);
  }
  return rest;
}
Forms overDims(const FormCall& call) {
  return one(call.tensor(0).dtype, reduced(call.tensor(0).sizes, call.integers(1), call.flag(2)), true);
}
Forms sumOverDims(const FormCall& call) {
  return one(sumDtype(call.tensor(0).dtype), reduced(call.tensor(0).sizes, call.integers(1), call.flag(2)),
             true);
}
Forms variance(const FormCall& call) {
  return one(call.tensor(0).dtype, reduced(call.tensor(0).sizes, call.integers(1), call.flag(3)), true);
}
Forms overDim(const FormCall& call) {
  return one(call.tensor(0).dtype, reduced(call.tensor(0).sizes, {call.integer(1)}, call.flag(2)), true);
}
Forms withIndices(const FormCall& call) {
  Forms forms = overDim(call);
  forms->tensors.push_back({at::kLong, forms->tensors[0].sizes, true});
  return forms;
}

// ---- matrices: their operands' predicates say what fits ----

int64_t lastOf(const Operand& tensor) {
  if (tensor.sizes.empty()) throw Unfit();
  return tensor.sizes.back();
}
Forms matrixProduct(const FormCall& call) {
  return one(call.tensor(0).dtype, {call.tensor(0).sizes.at(0), lastOf(call.tensor(1))}, true);
}
Forms batchProduct(const FormCall& call) {
  const Sizes& a = call.tensor(0).sizes;
  return one(call.tensor(0).dtype, {a.at(0), a.at(1), lastOf(call.tensor(1))}, true);
}
Forms addedProduct(const FormCall& call) {
  return one(call.tensor(0).dtype, {call.tensor(1).sizes.at(0), lastOf(call.tensor(2))}, true);
}
Forms matrixVector(const FormCall& call) {
  return one(call.tensor(0).dtype, {call.tensor(0).sizes.at(0)}, true);
}
Forms linearLayer(const FormCall& call) {
  Sizes sizes = call.tensor(0).sizes;
  (void)lastOf(call.tensor(0));
  sizes.back() = call.tensor(1).sizes.at(0);
  return one(call.tensor(0).dtype, sizes, true);
}
Forms generalProduct(const FormCall& call) {
  Sizes a = call.tensor(0).sizes, b = call.tensor(1).sizes;
  if (a.empty() || b.empty()) throw Unfit();
  bool vector_left = a.size() == 1, vector_right = b.size() == 1;
  if (vector_left) a.insert(a.begin(), 1);
  if (vector_right) b.push_back(1);
  Sizes left(a.begin(), a.end() - 2), right(b.begin(), b.end() - 2);
  std::optional<Sizes> sizes = broadcastSizes(left, right);
  if (!sizes || a.back() != b[b.size() - 2]) throw Unfit();
  if (!vector_left) sizes->push_back(a[a.size() - 2]);
  if (!vector_right) sizes->push_back(b.back());
  // A product of many matrices with one is folded into one and may come back as a view of it.
  return one(call.tensor(0).dtype, *sizes, left == right);
}

// ---- views ----

Forms ofFirst(const FormCall& call, Sizes sizes, bool contiguous = false) {
  return one(call.tensor(0).dtype, std::move(sizes), contiguous);
}
Forms transposed(const FormCall& call) {
  Sizes sizes = call.tensor(0).sizes;
  bool same = sizes.size() < 2;
  std::reverse(sizes.begin(), sizes.end());
  return ofFirst(call, sizes, same && call.tensor(0).contiguous);
}
Forms dimsSwapped(const FormCall& call) {
  Sizes sizes = call.tensor(0).sizes;
  size_t a = call.dim(1, sizes.size()), b = call.dim(2, sizes.size());
  if (!sizes.empty()) std::swap(sizes[a], sizes[b]);
  return ofFirst(call, sizes, a == b && call.tensor(0).contiguous);
}
Forms permuted(const FormCall& call) {
  const Sizes& sizes = call.tensor(0).sizes;
  Sizes order = call.integers(1), result;
  std::vector<bool> seen(sizes.size());
  if (order.size() != sizes.size()) throw Unfit();
  for (int64_t dim : order) {
    size_t at = FormCall::wrapped(dim, sizes.size());
    if (seen[at]) throw Unfit();
    seen[at] = true;
    result.push_back(sizes[at]);
  }
  return ofFirst(call, result, std::is_sorted(order.begin(), order.end()) && call.tensor(0).contiguous);
}
Forms squeezed(const FormCall& call) {
  Sizes sizes = call.tensor(0).sizes;
  sizes.erase(std::remove(sizes.begin(), sizes.end(), 1), sizes.end());
  return ofFirst(call, sizes, call.tensor(0).contiguous);
}
Forms squeezedDim(const FormCall& call) {
  Sizes sizes = call.tensor(0).sizes;
  size_t dim = call.dim(1, sizes.size());
  if (dim < sizes.size() && sizes[dim] == 1) sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  return ofFirst(call, sizes, call.tensor(0).contiguous);
}
Forms unsqueezed(const FormCall& call) {
  Sizes sizes = call.tensor(0).sizes;
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(call.dim(1, sizes.size() + 1)), 1);
  return ofFirst(call, sizes, call.tensor(0).contiguous);
}
Forms selected(const FormCall& call) {
  Sizes sizes = call.tensor(0).sizes;
  if (sizes.empty()) throw Unfit();
  size_t dim = call.dim(1, sizes.size());
  int64_t index = call.integer(2), size = sizes[dim];
  if (index < -size || index >= size) throw Unfit();
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  return ofFirst(call, sizes, dim == 0 && call.tensor(0).contiguous);
}
Forms sliced(const FormCall& call) {
  Sizes sizes = call.tensor(0).sizes;
  if (sizes.empty()) throw Unfit();
  size_t dim = call.dim(1, sizes.size());
  int64_t size = sizes[dim], step = call.integer(4);
  if (step < 1) throw Unfit();
  auto edge = [&](size_t i, int64_t otherwise) {
    int64_t at = call.value(i).isNone() ? otherwise : call.integer(i);
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  int64_t start = edge(2, 0), end = std::max(edge(3, size), start);
  sizes[dim] = (end - start + step - 1) / step;
  return ofFirst(call, sizes, (dim == 0 && step == 1 && call.tensor(0).contiguous));
}
Forms narrowed(const FormCall& call) {
  Sizes sizes = call.tensor(0).sizes;
  if (sizes.empty()) throw Unfit();
  size_t dim = call.dim(1, sizes.size());
  int64_t start = call.integer(2), length = call.integer(3), size = sizes[dim];
  if (start < 0) start += size;
  if (start < 0 || length < 0 || start + length > size) throw Unfit();
  sizes[dim] = length;
  return ofFirst(call, sizes, dim == 0 && call.tensor(0).contiguous);
}
Forms expanded(const FormCall& call) {
  const Sizes& from = call.tensor(0).sizes;
  Sizes sizes = call.integers(1);
  if (sizes.size() < from.size()) throw Unfit();
  size_t added = sizes.size() - from.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 && (sizes[i] != -1 || i < added)) throw Unfit();
    if (i < added) continue;
    if (sizes[i] == -1) sizes[i] = from[i - added];
    if (from[i - added] != 1 && from[i - added] != sizes[i]) throw Unfit();
  }
  return ofFirst(call, sizes, sizes == from && call.tensor(0).contiguous);
}
Forms asSecond(const FormCall& call) {
  return ofFirst(call, call.tensor(1).sizes,
                 call.tensor(0).contiguous && call.tensor(0).elements() == call.tensor(1).elements());
}
Forms viewed(const FormCall& call) {
  Sizes sizes = call.integers(1);
  int64_t elements = call.tensor(0).elements(), known = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 && !open) {
      open = i;
    } else if (sizes[i] < 0) {
      throw Unfit();
    } else {
      known *= sizes[i];
    }
  }
  if (open) {
    if (known == 0 || elements % known != 0) throw Unfit();
    sizes[*open] = elements / known;
  } else if (known != elements) {
    throw Unfit();
  }
  return ofFirst(call, sizes, call.tensor(0).contiguous);
}
Forms flattened(const FormCall& call) {
  if (call.integer(1) != 0 || call.integer(2) != -1) throw Unfit();
  return ofFirst(call, {call.tensor(0).elements()}, call.tensor(0).contiguous);
}
Forms diagonalOf(const FormCall& call) {
  const Sizes& sizes = call.tensor(0).sizes;
  if (sizes.size() != 2 || call.integer(1) != 0) throw Unfit();
  return ofFirst(call, {std::min(sizes[0], sizes[1])});
}
Forms dimMoved(const FormCall& call) {
  Sizes sizes = call.tensor(0).sizes;
  size_t from = call.dim(1, sizes.size()), to = call.dim(2, sizes.size());
  if (!sizes.empty()) {
    int64_t size = sizes[from];
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(from));
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(to), size);
  }
  return ofFirst(call, sizes, from == to && call.tensor(0).contiguous);
}

Forms parts(const FormCall& call, size_t dim, int64_t part) {
  Sizes sizes = call.tensor(0).sizes;
  ResultForms forms{{}, true};
  int64_t left = sizes[dim];
  do {
    sizes[dim] = std::min(left, part);
    left -= sizes[dim];
    forms.tensors.push_back({call.tensor(0).dtype, sizes, false});
  } while (left > 0);
  return forms;
}
Forms splitParts(const FormCall& call) {
  if (call.tensor(0).rank() == 0 || call.integer(1) < 1) throw Unfit();
  return parts(call, call.dim(2, call.tensor(0).rank()), call.integer(1));
}
Forms chunks(const FormCall& call) {
  if (call.tensor(0).rank() == 0 || call.integer(1) < 1) throw Unfit();
  size_t dim = call.dim(2, call.tensor(0).rank());
  int64_t part = (call.tensor(0).sizes[dim] + call.integer(1) - 1) / call.integer(1);
  if (part == 0) throw Unfit();
  return parts(call, dim, part);
}
Forms unbound(const FormCall& call) {
  Sizes sizes = call.tensor(0).sizes;
  if (sizes.empty()) throw Unfit();
  size_t dim = call.dim(1, sizes.size());
  auto count = static_cast<size_t>(sizes[dim]);
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  return ResultForms{std::vector<ResultForm>(count, {call.tensor(0).dtype, sizes, false}), true};
}

// ---- lists ----

Forms joined(const FormCall& call) {
  Sizes sizes = call.tensor(0).sizes;
  if (sizes.empty()) throw Unfit();
  size_t dim = call.dim(1, sizes.size());
  sizes[dim] *= static_cast<int64_t>(call.tensors(0).size());
  return ofFirst(call, sizes, allContiguous(call));
}
Forms stacked(const FormCall& call) {
  Sizes sizes = call.tensor(0).sizes;
  auto at = sizes.begin() + static_cast<std::ptrdiff_t>(call.dim(1, sizes.size() + 1));
  sizes.insert(at, static_cast<int64_t>(call.tensors(0).size()));
  return ofFirst(call, sizes, allContiguous(call));
}

using Rule = Forms (*)(const FormCall&);

const std::unordered_map<std::string, Rule>& table() {
  static const std::unordered_map<std::string, Rule> rules = {
#define FAULTLINE_FORM(name, rule) {#name, &rule},
#include "generators/mutate/form_rules.def"
#undef FAULTLINE_FORM
  };
  return rules;
}

}  // namespace

std::optional<ResultForms> resultForms(const OpRow& row, const std::vector<FormArgument>& arguments) {
  auto rule = table().find(row.name);
  if (rule == table().end()) rule = table().find(row.family);
  FAULTLINE_CHECK(rule != table().end(),
                  "op '" + row.name + "' has no row in form_rules.def, nor its family");
  try {
    return rule->second({row, arguments});
  } catch (const Unfit&) {
    return std::nullopt;
  } catch (const std::out_of_range&) {
    return std::nullopt;
  }
}

const std::vector<FormRule>& formRules() {
  static const std::vector<FormRule> rules = [] {
    std::vector<FormRule> all;
    for (const auto& entry : table()) all.push_back({entry.first});
    return all;
  }();
  return rules;
}

}  // namespace faultline
