// Descriptions of inputs as text: `float32[4,8]:grad`, `int=3`, `[float32[2], float32[2]:grad]`, `@0`.
// One grammar for case files, `--input` and the `# param` lines of TorchScript sources
// (generators/case/README.md).
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "faultline/error.h"

namespace faultline {

enum class ValuePattern {
  Normal,    // standard normal; integers in [-9, 9]; bools fair
  Positive,  // uniform in [0.5, 2)
  Unit,      // uniform in (-1, 1)
  Zeros,
  Ones,
  Ties,     // few distinct values, each several times
  Edges,    // 0, -0, ±1, ±0.5, 6, bounds that formulas have
  Fill,     // `fill`
  Literal,  // `values`, in logical order; real and imaginary parts in turn for complex dtypes
  Data,     // `data`: the elements' bytes, little-endian, in logical order (values taken from a model)
};

struct InputSpec {
  enum class Kind { Tensor, Int, Double, Bool, String, None, List, Tuple, SameAs };
  Kind kind = Kind::Tensor;

  // Tensor
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes;
  std::optional<std::vector<int64_t>> strides;  // none: contiguous. 0 makes an expanded input
  int64_t offset = 0;                           // storage offset in elements
  c10::DeviceType device = c10::DeviceType::CPU;
  bool requires_grad = false;
  bool leaf = true;  // false: the result of an op on a leaf, as inside a larger program
  ValuePattern pattern = ValuePattern::Normal;
  double fill = 0;
  std::vector<double> values;
  std::string data;
  std::optional<uint64_t> seed;  // none: derived from the case's seed and the input's position

  // Scalars: the value as it is
  int64_t int_value = 0;
  double double_value = 0;
  bool bool_value = false;
  std::string string_value;
  // List, Tuple
  std::vector<InputSpec> elements;
  // SameAs: the same object as this earlier input
  size_t same_as = 0;

  bool operator==(const InputSpec&) const = default;
};

Result<InputSpec> readInputSpec(std::string_view text);
std::string writeInputSpec(const InputSpec& spec);

// What readInputSpec refuses beyond the grammar: strides that do not fit the sizes, gradients of integers,
// values that the dtype cannot hold, more than a gibibyte …
Result<void> checkInputSpec(const InputSpec& spec);

// `float32`, `complex64`, `bfloat16` … as Python's torch spells them; "half" and the like too when read.
Result<at::ScalarType> readDtype(std::string_view text);
std::string writeDtype(at::ScalarType dtype);

// The same values in another dtype, as far as it can hold them.
void changeDtype(InputSpec& spec, at::ScalarType dtype);

// The values: the same bytes for the same (spec, seed) on every compiler and machine. A spec without a seed
// of its own draws from a stream of (seed, position), the position being earlier.size(): equal on every run
// of a case. `earlier` inputs are what SameAs refers to. `type`, where known, says what an empty list or a
// None in a list is. A non-leaf is the result of an autograd node (a clone) on a leaf that nothing else
// holds: take its gradient with autograd::grad or retain_grad. Grad mode of the caller does not matter. A
// CUDA tensor without CUDA is Unsupported.
Result<c10::IValue> makeInput(const InputSpec& spec, uint64_t seed,
                              const std::vector<c10::IValue>& earlier = {},
                              const c10::TypePtr& type = nullptr);

// The type of a graph input that takes it; tensors get the complete type when `complete`. SameAs counts as a
// tensor.
c10::TypePtr inputType(const InputSpec& spec, bool complete = false);

// Empty when a graph input of `type` takes the spec, what is known of a tensor type's fields included; else
// why not. `earlier` are the specs before it.
std::string whyNotFits(const InputSpec& spec, const c10::Type& type, const std::vector<InputSpec>& earlier);

}  // namespace faultline
