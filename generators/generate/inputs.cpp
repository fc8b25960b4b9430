#include "generators/generate/inputs.h"

#include <algorithm>

#include "generators/ops/limits.h"

namespace faultline {

namespace {

std::vector<int64_t> drawSizes(Choices& choices, const Swarm& swarm, const InputStyle& style,
                               const TensorWish& wish) {
  if (wish.sizes) return *wish.sizes;
  static const std::vector<size_t> usual_ranks = {2, 2, 2, 2, 1, 3, 2, 1, 3, 0, 4};
  size_t rank = usual_ranks[choices.below(usual_ranks.size())];
  size_t max_rank = wish.max_rank == 0 ? limits::max_rank : wish.max_rank;
  rank = std::min(std::max(rank, wish.min_rank), max_rank);
  std::vector<int64_t> sizes;
  int64_t elements = 1;
  for (size_t i = 0; i < rank; ++i) {
    int64_t size = style.palette[choices.below(style.palette.size())];
    if (elements * size > limits::max_elements) size = 1;
    elements *= size;
    sizes.push_back(size);
  }
  if (swarm.has(Feature::empty) && !wish.filled && rank > 0 && choices.flip(20)) {
    sizes[choices.below(rank)] = 0;
  }
  return sizes;
}

ValuePattern drawPattern(Choices& choices, const Swarm& swarm, const TensorWish& wish) {
  if (wish.pattern) return *wish.pattern;
  if (!swarm.has(Feature::patterns)) return ValuePattern::Normal;
  static const std::vector<ValuePattern> patterns = {
      ValuePattern::Normal, ValuePattern::Positive, ValuePattern::Unit, ValuePattern::Ties,
      ValuePattern::Edges,  ValuePattern::Ones,     ValuePattern::Zeros};
  return patterns[choices.weighted({40, 12, 12, 15, 15, 4, 2})];
}

std::vector<int64_t> contiguousStrides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

void drawLayout(Choices& choices, InputSpec& spec, bool writable) {
  if (spec.sizes.empty() || !choices.flip(40)) return;
  std::vector<int64_t> strides;
  switch (choices.below(writable ? 3 : 4)) {
    case 0: {  // laid out as its transpose
      std::vector<int64_t> turned(spec.sizes.rbegin(), spec.sizes.rend());
      strides = contiguousStrides(turned);
      std::reverse(strides.begin(), strides.end());
      break;
    }
    case 1:  // every other element
      strides = contiguousStrides(spec.sizes);
      for (int64_t& stride : strides) stride *= 2;
      break;
    case 2:  // from the middle of a larger storage
      spec.offset = choices.between(1, 3);
      return;
    default:  // repeated without copies
      strides = contiguousStrides(spec.sizes);
      strides[choices.below(strides.size())] = 0;
      break;
  }
  spec.strides = strides;
}

}  // namespace

InputStyle drawInputStyle(Choices& choices, const Swarm& swarm) {
  InputStyle style;
  style.palette.push_back(choices.between(2, limits::max_size));
  while (style.palette.size() < limits::sizes_per_case) {
    style.palette.push_back(choices.between(1, limits::max_size));
  }
  static const std::vector<at::ScalarType> dtypes = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf};
  if (swarm.has(Feature::dtypes)) style.dtype = dtypes[choices.weighted({70, 22, 4, 4})];
  return style;
}

InputSpec drawTensorSpec(Choices& choices, const Swarm& swarm, const InputStyle& style,
                         const TensorWish& wish) {
  InputSpec spec;
  spec.sizes = drawSizes(choices, swarm, style, wish);
  spec.dtype = wish.dtype.value_or(style.dtype);
  spec.pattern = drawPattern(choices, swarm, wish);
  if (at::isFloatingType(spec.dtype) || at::isComplexType(spec.dtype)) {
    spec.requires_grad = !(swarm.has(Feature::mixed_grad) && choices.flip(30));
    // A leaf that requires grad may not be written; the result of an op may.
    if (wish.writable && spec.requires_grad) spec.leaf = false;
  }
  if (swarm.has(Feature::layouts)) {
    drawLayout(choices, spec, wish.writable);
    if (spec.requires_grad && choices.flip(20)) spec.leaf = false;
  }
  return spec;
}

Range rangeOfInput(const InputSpec& spec) {
  if (spec.dtype == at::kBool) return Range::nonNegative(1);
  bool whole = c10::isIntegralType(spec.dtype, /*includeBool=*/false);
  switch (spec.pattern) {
    case ValuePattern::Positive:
      return whole ? Range::nonNegative(1) : Range::positive(-1, 1);
    case ValuePattern::Unit:
      return Range::any(0);
    case ValuePattern::Zeros:
      return Range::nonNegative(0);
    case ValuePattern::Ones:
      return Range::positive(0, 1);
    case ValuePattern::Ties:
    case ValuePattern::Edges:
      return Range::any(3);
    default:
      return Range::any(whole ? 4 : 2);
  }
}

}  // namespace faultline
