#include <algorithm>

#include <fmt/format.h>

#include "engine/support/check.h"
#include "generators/ops/limits.h"
#include "generators/ops/site.h"

namespace faultline {

namespace {

using torch::jit::Value;

bool wholeNumbersOnly(const Site& site) {
  return !site.found.tensors.empty() && c10::isIntegralType(site.first().dtype, /*includeBool=*/true);
}

Value* scalarOf(Site& site, const std::vector<double>& from) {
  double value = from[site.choices().below(from.size())];
  // A fraction would lift an integer operand to floating, which an in-place op refuses.
  if (wholeNumbersOnly(site))
    return site.constant(static_cast<int64_t>(value == 0 || value >= 1 ? value : 1));
  return site.constant(value);
}

Value* numberScalar(Site& site) {
  std::vector<Value*> integers = site.source.integers();
  if (!integers.empty() && site.choices().flip(25)) return integers[site.choices().below(integers.size())];
  return scalarOf(site, {2, 0.5, -1, 1, 0.25, -0.5, 3, 0});
}

Value* exponent(Site& site) {
  if (site.first().range.isPositive()) return scalarOf(site, {2, 0.5, 3, -1, 1, 0});
  return site.constant(std::vector<int64_t>{2, 3, 1, 0}[site.choices().below(4)]);
}

Value* lowerBound(Site& site) {
  if (site.choices().flip(15)) return site.constant(c10::IValue());
  return scalarOf(site, {-1, -0.5, 0, -2});
}

Value* textOf(Site& site, const std::vector<std::string>& from) {
  return site.constant(from[site.choices().below(from.size())]);
}

Value* integerOf(Site& site, const std::vector<int64_t>& from) {
  return site.constant(from[site.choices().below(from.size())]);
}

Value* flag(Site& site) { return site.constant(site.choices().flip(50)); }

// A dimension among rank + extra, counted from the end half of the time; noted for the words that follow.
Value* dimension(Site& site, int64_t extra) {
  int64_t count = static_cast<int64_t>(site.first().rank()) + extra;
  if (count == 0) return site.constant(int64_t{site.choices().flip(50) ? 0 : -1});
  int64_t dim = static_cast<int64_t>(site.choices().below(static_cast<uint64_t>(2 * count)));
  site.found.integers.push_back(dim % count);
  return site.constant(dim < count ? dim : dim - 2 * count);
}

Value* dimensions(Site& site) {
  size_t rank = site.first().rank();
  std::vector<int64_t> dims;
  if (rank != 0) {
    // A set of dimensions is a number below 2^rank; the empty set stands for all of them and is left to
    // `sum`.
    uint64_t chosen = 1 + site.choices().below((uint64_t{1} << rank) - 1);
    bool from_end = site.choices().flip(30);
    for (size_t dim = 0; dim < rank; ++dim) {
      if ((chosen >> dim & 1) == 0) continue;
      dims.push_back(static_cast<int64_t>(dim) - (from_end ? static_cast<int64_t>(rank) : 0));
    }
  }
  return site.constant(dims);
}

Value* permutation(Site& site) {
  std::vector<int64_t> rest(site.first().rank()), order;
  for (size_t i = 0; i < rest.size(); ++i) rest[i] = static_cast<int64_t>(rest.size() - 1 - i);
  while (!rest.empty()) {
    size_t at = rest.size() == 1 ? 0 : site.choices().below(rest.size());
    order.push_back(rest[at]);
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return site.constant(order);
}

int64_t sizeOfNotedDimension(const Site& site) {
  return site.first().sizes[static_cast<size_t>(site.found.integers.front())];
}

Value* indexInto(Site& site) {
  int64_t size = sizeOfNotedDimension(site);
  int64_t index = static_cast<int64_t>(site.choices().below(static_cast<uint64_t>(2 * size)));
  return site.constant(index < size ? index : index - 2 * size);
}

Value* stretchBegin(Site& site) {
  int64_t begin = site.choices().between(0, sizeOfNotedDimension(site) - 1);
  site.found.integers.push_back(begin);
  return site.constant(begin);
}

Value* stretchLength(Site& site) {
  int64_t left = sizeOfNotedDimension(site) - site.found.integers.back();
  return site.constant(left - site.choices().between(0, left - 1));
}

Value* sliceEdge(Site& site, int64_t which) {
  if (site.choices().flip(30)) return site.constant(c10::IValue());
  int64_t size = sizeOfNotedDimension(site);
  int64_t edge = site.choices().between(0, std::max<int64_t>(size / 2, 1));
  if (which == 0) return site.constant(edge);
  return site.constant(site.choices().flip(30) && edge != 0 ? -edge : size - edge / 2);
}

Value* expandedList(Site& site) {
  std::vector<int64_t> sizes = expandedSizes(site.first(), site.source);
  size_t added = sizes.size() - site.first().rank();
  for (size_t i = added; i < sizes.size(); ++i) {
    // -1 keeps a size whatever it is: such a case survives a change of input shapes.
    if (sizes[i] == site.first().sizes[i - added]) sizes[i] = -1;
  }
  return site.constant(sizes);
}

Value* viewedSizes(Site& site) {
  std::vector<int64_t> sizes = site.first().sizes;
  bool filled = site.first().elements() > 0;
  switch (site.choices().below(4)) {
    case 0:
      sizes = {filled ? -1 : 0};
      break;
    case 1:
      if (sizes.size() < limits::max_rank) sizes.push_back(1);
      if (filled && sizes.size() > 1) sizes[0] = -1;
      break;
    case 2:
      if (sizes.size() > 1) {
        sizes[1] *= sizes[0];
        sizes.erase(sizes.begin());
        if (filled) sizes[0] = -1;
      }
      break;
    default:
      std::reverse(sizes.begin(), sizes.end());
      break;
  }
  return site.constant(sizes);
}

Value* optionalTensor(Site& site, std::string_view word) {
  if (site.choices().flip(40)) return site.constant(c10::IValue());
  return findTensor(site, elementPredicates(word, 0));
}

Value* tensorList(Site& site, std::string_view word) {
  std::vector<Value*> elements = {findTensor(site, elementPredicates(word, 0))};
  if (elements.front() == nullptr) return nullptr;
  int64_t more = site.choices().between(0, static_cast<int64_t>(limits::max_list) - 1);
  for (int64_t i = 0; i < more; ++i) {
    Value* element = findTensor(site, elementPredicates(word, 1));
    if (element != nullptr) elements.push_back(element);
  }
  return site.source.list(elements);
}

struct ValueRule {
  const char* name;
  const char* help;
  Value* (*make)(Site& site);
};

const ValueRule value_rules[] = {
#define FAULTLINE_VALUE_RULE(name, help, ...) {#name, help, [](Site& site) -> Value* { return __VA_ARGS__; }},
#include "generators/ops/value_rules.def"
#undef FAULTLINE_VALUE_RULE
};

}  // namespace

std::vector<std::string> elementPredicates(std::string_view word, size_t element) {
  if (word == "bias") return {"weight_vector", "same_dtype"};
  if (word == "tensors" && element == 0) return {"float", "ranked"};
  if (word == "small_tensors" && element == 0) return {"float", "below_limit"};
  if (word == "tensors" || word == "small_tensors") return {"same_dtype", "same_sizes"};
  return {};
}

Value* makeArgument(Site& site, std::string_view word) {
  for (const ValueRule& rule : value_rules) {
    if (word == rule.name) return rule.make(site);
  }
  FAULTLINE_CHECK(false, fmt::format("unknown operand word '{}'", word));
}

std::vector<OperandWord> valueWords() {
  std::vector<OperandWord> words;
  for (const ValueRule& rule : value_rules) words.push_back({rule.name, rule.help, false});
  return words;
}

}  // namespace faultline
