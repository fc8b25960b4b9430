#include "generators/generate/flips.h"

#include <algorithm>
#include <set>

#include "generators/ops/limits.h"

namespace faultline {

namespace {

void collectTensorSpecs(std::vector<InputSpec>& specs, std::vector<InputSpec*>& into) {
  for (InputSpec& spec : specs) {
    if (spec.kind == InputSpec::Kind::Tensor) into.push_back(&spec);
    collectTensorSpecs(spec.elements, into);
  }
}

// A run under change, with what the changes below look at.
struct Flip {
  const Case& c;
  CaseRun& run;
  Choices& choices;
  bool empty_sizes;
  std::vector<InputSpec*> tensors;

  std::vector<InputSpec*> floating() const {
    std::vector<InputSpec*> found;
    for (InputSpec* spec : tensors) {
      if (at::isFloatingType(spec->dtype) || at::isComplexType(spec->dtype)) found.push_back(spec);
    }
    return found;
  }
  std::vector<InputSpec*> ofKind(InputSpec::Kind kind) const {
    std::vector<InputSpec*> found;
    for (InputSpec& spec : run.inputs) {
      if (spec.kind == kind) found.push_back(&spec);
    }
    return found;
  }
};

InputSpec& any(Flip& flip, std::vector<InputSpec*> from) { return *from[flip.choices.below(from.size())]; }

int64_t drawSize(Flip& flip) { return flip.choices.between(flip.empty_sizes ? 0 : 1, limits::max_size); }

// One size becomes another wherever it stands, so that tensors that fitted still fit.
bool flipSize(Flip& flip) {
  std::set<int64_t> known;
  for (const InputSpec* spec : flip.tensors) known.insert(spec->sizes.begin(), spec->sizes.end());
  if (known.empty()) return false;
  int64_t from = *std::next(known.begin(), static_cast<std::ptrdiff_t>(flip.choices.below(known.size())));
  int64_t to = drawSize(flip);
  for (InputSpec* spec : flip.tensors) {
    if (std::find(spec->sizes.begin(), spec->sizes.end(), from) == spec->sizes.end()) continue;
    std::replace(spec->sizes.begin(), spec->sizes.end(), from, to);
    spec->strides.reset();
  }
  return from != to;
}

bool flipOneSize(Flip& flip) {
  InputSpec& spec = any(flip, flip.tensors);
  if (spec.sizes.empty()) return false;
  int64_t& size = spec.sizes[flip.choices.below(spec.sizes.size())];
  int64_t before = std::exchange(size, size == 1 ? drawSize(flip) : 1);
  spec.strides.reset();
  return size != before;
}

bool flipRequiresGrad(Flip& flip) {
  std::vector<InputSpec*> floating = flip.floating();
  if (floating.empty()) return false;
  InputSpec& spec = any(flip, floating);
  spec.requires_grad = !spec.requires_grad;
  if (!spec.requires_grad) spec.leaf = true;
  return true;
}

bool flipGradMode(Flip& flip) {
  flip.run.grad_mode = !flip.run.grad_mode;
  return true;
}

bool flipDtype(Flip& flip) {
  std::vector<InputSpec*> floating = flip.floating();
  if (floating.empty()) return false;
  bool all = flip.choices.flip(70);
  InputSpec* one = &any(flip, floating);
  at::ScalarType from = one->dtype;
  if (at::isComplexType(from)) return false;
  for (InputSpec* spec : floating) {
    if (spec->dtype == from && (all || spec == one))
      spec->dtype = from == at::kFloat ? at::kDouble : at::kFloat;
  }
  return true;
}

bool flipLayout(Flip& flip) {
  InputSpec& spec = any(flip, flip.tensors);
  if (spec.strides) {
    spec.strides.reset();
    return true;
  }
  if (spec.sizes.size() < 2) return false;
  std::vector<int64_t> strides;
  int64_t step = 1;
  for (int64_t size : spec.sizes) {
    strides.push_back(step);
    step *= std::max<int64_t>(size, 1);
  }
  spec.strides = strides;
  return true;
}

bool flipBool(Flip& flip) {
  std::vector<InputSpec*> bools = flip.ofKind(InputSpec::Kind::Bool);
  if (bools.empty()) return false;
  InputSpec& spec = any(flip, bools);
  spec.bool_value = !spec.bool_value;
  return true;
}

bool flipInt(Flip& flip) {
  std::vector<InputSpec*> ints = flip.ofKind(InputSpec::Kind::Int);
  if (ints.empty()) return false;
  InputSpec& spec = any(flip, ints);
  int64_t before = std::exchange(spec.int_value, flip.choices.between(0, limits::max_trips));
  return spec.int_value != before;
}

bool flipNone(Flip& flip) {
  std::vector<size_t> optionals;
  for (size_t i = 0; i < flip.run.inputs.size(); ++i) {
    if (flip.c.graph->inputs()[i]->type()->kind() == c10::TypeKind::OptionalType) optionals.push_back(i);
  }
  if (optionals.empty()) return false;
  size_t at = optionals[flip.choices.below(optionals.size())];
  InputSpec& spec = flip.run.inputs[at];
  if (spec.kind == InputSpec::Kind::None) {
    spec = flip.c.runs.front().inputs[at];
    return spec.kind != InputSpec::Kind::None;
  }
  spec = InputSpec();
  spec.kind = InputSpec::Kind::None;
  return true;
}

// What was one tensor passed twice is two.
bool flipShared(Flip& flip) {
  std::vector<InputSpec*> shared = flip.ofKind(InputSpec::Kind::SameAs);
  if (shared.empty()) return false;
  InputSpec& spec = any(flip, shared);
  spec = InputSpec(flip.run.inputs[spec.same_as]);
  return true;
}

bool flipPattern(Flip& flip) {
  InputSpec& spec = any(flip, flip.tensors);
  static const std::vector<ValuePattern> patterns = {ValuePattern::Normal, ValuePattern::Edges,
                                                     ValuePattern::Ties, ValuePattern::Zeros};
  // Where the program counts on one sign it was drawn so on purpose.
  if (spec.pattern == ValuePattern::Positive || spec.pattern == ValuePattern::Unit) return false;
  ValuePattern before = std::exchange(spec.pattern, patterns[flip.choices.below(patterns.size())]);
  return spec.pattern != before;
}

struct FlipKind {
  uint32_t weight;
  bool (*apply)(Flip& flip);  // false: nothing to change
};

constexpr FlipKind flip_kinds[] = {{20, flipSize},     {8, flipOneSize}, {20, flipRequiresGrad},
                                   {10, flipGradMode}, {8, flipDtype},   {8, flipLayout},
                                   {20, flipBool},     {12, flipInt},    {16, flipNone},
                                   {8, flipShared},    {6, flipPattern}};

Flip makeFlip(const Case& c, CaseRun& run, Choices& choices, bool empty_sizes) {
  Flip flip{c, run, choices, empty_sizes, {}};
  collectTensorSpecs(run.inputs, flip.tensors);
  return flip;
}

}  // namespace

bool flipRun(const Case& c, CaseRun& run, Choices& choices, bool empty_sizes) {
  std::vector<uint32_t> weights;
  for (const FlipKind& kind : flip_kinds) weights.push_back(kind.weight);
  Flip flip = makeFlip(c, run, choices, empty_sizes);
  return !flip.tensors.empty() && flip_kinds[choices.weighted(weights)].apply(flip);
}

bool flipRequiresGradOf(const Case& c, CaseRun& run, Choices& choices) {
  Flip flip = makeFlip(c, run, choices, false);
  return flipRequiresGrad(flip);
}

}  // namespace faultline
