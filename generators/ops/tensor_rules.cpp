#include <algorithm>
#include <unordered_map>

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include "engine/support/check.h"
#include "generators/ops/limits.h"
#include "generators/ops/site.h"

namespace faultline {

namespace {

using Sizes = std::vector<int64_t>;

template <class... T>
Sizes sizesOf(T... sizes) {
  return {static_cast<int64_t>(sizes)...};
}

Sizes reversed(Sizes sizes) {
  std::reverse(sizes.begin(), sizes.end());
  return sizes;
}

int64_t elementsOf(const Sizes& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

bool likeFits(const Operand& o, const Operand& first, const OperandSource& source) {
  if (o.sizes == first.sizes) return true;
  if (!source.broadcasts()) return false;
  auto common = broadcastSizes(o.sizes, first.sizes);
  return common && elementsOf(*common) <= limits::max_elements;
}

// What broadcasts to `sizes`: the same, or ones in it, or fewer dimensions.
Sizes broadcastable(Sizes sizes, OperandSource& source) {
  if (!source.broadcasts() || sizes.empty() || !source.choices().flip(50)) return sizes;
  if (source.choices().flip(40)) sizes.erase(sizes.begin());
  if (!sizes.empty()) {
    size_t at = source.choices().below(sizes.size() + 1);
    if (at < sizes.size()) sizes[at] = 1;
  }
  return sizes;
}

Sizes likeSizes(const Operand& first, OperandSource& source) { return broadcastable(first.sizes, source); }

bool intoFits(const Operand& o, const Operand& first, const OperandSource& source) {
  if (!c10::canCast(o.dtype, first.dtype)) return false;
  return o.sizes == first.sizes || (source.broadcasts() && broadcastsTo(o.sizes, first.sizes));
}

void askInto(TensorWish& wish, const Operand& first, OperandSource& source) {
  wish.sizes = broadcastable(first.sizes, source);
  if (!wish.dtype) wish.dtype = first.dtype;
}

bool rightFactorFits(const Operand& o, const Operand& first) {
  int64_t inner = first.sizes.back();
  if (o.rank() == 1) return o.sizes[0] == inner;
  if (o.rank() == 2) return o.sizes[0] == inner;
  if (o.rank() != 3 || o.sizes[1] != inner) return false;
  return first.rank() <= 2 || (first.rank() == 3 && o.sizes[0] == first.sizes[0]);
}

int64_t rowsOf(const Operand& first, OperandSource& source) {
  return first.rank() == 2 && first.sizes[0] != 1 ? first.sizes[0] : source.drawSize();
}

enum Strength { HARD, SOFT };

struct TensorRule {
  const char* name;
  Strength strength;
  const char* help;
  bool (*fits)(const Operand& o, const Site& site);
  void (*ask)(TensorWish& wish, Site& site);
};

const TensorRule tensor_rules[] = {
#define FAULTLINE_TENSOR_RULE(name, strength, help, condition, demand)                         \
  {#name, strength, help,                                                                      \
   [](const Operand& o, const Site& site) {                                                    \
     const Operand& first = site.found.tensors.empty() ? o : site.found.tensors.front();       \
     const Operand& second = site.found.tensors.size() < 2 ? o : site.found.tensors[1];        \
     const OperandSource& source = site.source;                                                \
     (void)o, (void)first, (void)second, (void)source;                                         \
     return static_cast<bool>(condition);                                                      \
   },                                                                                          \
   [](TensorWish& wish, Site& site) {                                                          \
     const Operand nothing;                                                                    \
     const Operand& first = site.found.tensors.empty() ? nothing : site.found.tensors.front(); \
     const Operand& second = site.found.tensors.size() < 2 ? nothing : site.found.tensors[1];  \
     OperandSource& source = site.source;                                                      \
     (void)wish, (void)first, (void)second, (void)source;                                      \
     demand;                                                                                   \
   }},
#include "generators/ops/tensor_rules.def"
#undef FAULTLINE_TENSOR_RULE
};

const TensorRule* findTensorRule(std::string_view name) {
  static const std::unordered_map<std::string_view, const TensorRule*> by_name = [] {
    std::unordered_map<std::string_view, const TensorRule*> all;
    for (const TensorRule& rule : tensor_rules) all.emplace(rule.name, &rule);
    return all;
  }();
  auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

using Rules = std::vector<const TensorRule*>;

bool fitsAll(const Operand& o, const Rules& rules, const Site& site, bool careless) {
  return o.usable && std::all_of(rules.begin(), rules.end(), [&](const TensorRule* rule) {
           return (careless && rule->strength == SOFT) || rule->fits(o, site);
         });
}

// Newest first, so that the simplest choice is the value just made.
std::vector<size_t> candidates(const Rules& rules, const Site& site, bool careless) {
  const std::vector<Operand>& tensors = site.source.tensors();
  std::vector<size_t> fitting;
  for (size_t i = tensors.size(); i-- > 0;) {
    if (fitsAll(tensors[i], rules, site, careless)) fitting.push_back(i);
  }
  return fitting;
}

std::vector<uint32_t> weigh(const std::vector<size_t>& fitting, const std::vector<Operand>& tensors) {
  std::vector<uint32_t> weights;
  for (size_t i : fitting) {
    bool loose_end = !tensors[i].used && (tensors[i].requires_grad || tensors[i].dtype == at::kBool);
    uint32_t weight = loose_end ? limits::loose_end_weight : limits::other_value_weight;
    bool recent = i + limits::recent_values >= tensors.size();
    weights.push_back(recent ? weight * limits::recent_value_factor : weight);
  }
  return weights;
}

}  // namespace

bool isTensorWord(std::string_view word) { return findTensorRule(word.substr(0, word.find('+'))) != nullptr; }

std::vector<OperandWord> tensorWords() {
  std::vector<OperandWord> words;
  for (const TensorRule& rule : tensor_rules) words.push_back({rule.name, rule.help, true});
  return words;
}

torch::jit::Value* findTensor(Site& site, const std::vector<std::string>& predicates) {
  Rules rules;
  bool any_soft = false;
  for (const std::string& predicate : predicates) {
    rules.push_back(findTensorRule(predicate));
    FAULTLINE_CHECK(rules.back() != nullptr, fmt::format("unknown tensor rule '{}'", predicate));
    any_soft = any_soft || rules.back()->strength == SOFT;
  }
  OperandSource& source = site.source;
  bool careless = any_soft && source.choices().flip(limits::careless_percent);

  auto take = [&](size_t index) {
    site.found.tensors.push_back(source.tensors()[index]);
    return source.tensors()[index].value;
  };
  std::vector<size_t> fitting = candidates(rules, site, careless);
  if (site.found.tensors.empty() && source.preferred() != nullptr) {
    for (size_t index : fitting) {
      if (source.tensors()[index].value == source.preferred()) return take(index);
    }
  }
  std::vector<uint32_t> weights = weigh(fitting, source.tensors());
  weights.push_back(limits::new_tensor_weight);
  size_t chosen = source.choices().weighted(weights);
  if (chosen == fitting.size()) {
    TensorWish wish;
    for (const TensorRule* rule : rules) {
      if (!careless || rule->strength == HARD) rule->ask(wish, site);
    }
    std::optional<size_t> made = source.make(wish);
    // What was made may still not fit: a wish says less than a predicate.
    if (made && fitsAll(source.tensors()[*made], rules, site, true)) return take(*made);
    if (fitting.empty()) return nullptr;
    chosen = 0;
  }
  return take(fitting[chosen]);
}

bool tensorFits(const Operand& operand, const Site& site, const std::vector<std::string>& predicates) {
  Rules rules;
  for (const std::string& predicate : predicates) {
    rules.push_back(findTensorRule(predicate));
    FAULTLINE_CHECK(rules.back() != nullptr, fmt::format("unknown tensor rule '{}'", predicate));
  }
  return fitsAll(operand, rules, site, /*careless=*/true);
}

std::vector<int64_t> expandedSizes(const Operand& operand, OperandSource& source) {
  Sizes sizes = operand.sizes;
  for (int64_t& size : sizes) {
    if (size == 1) size = source.drawSize();
  }
  if (sizes.size() < limits::max_rank && source.choices().flip(sizes == operand.sizes ? 70 : 20)) {
    sizes.insert(sizes.begin(), source.drawSize());
  }
  return sizes;
}

}  // namespace faultline
