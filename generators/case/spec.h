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
  Literal,  // `values`, in logical order
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

// `float32`, `complex64`, `bfloat16` … as Python's torch spells them; "half" and the like too when read.
Result<at::ScalarType> readDtype(std::string_view text);
std::string writeDtype(at::ScalarType dtype);

// The values: the same bytes for the same (spec, seed) on every compiler and machine. Earlier inputs are
// needed for SameAs. A CUDA tensor without CUDA is Unsupported.
Result<c10::IValue> makeInput(const InputSpec& spec, uint64_t seed,
                              const std::vector<c10::IValue>& earlier = {});

// The type of a graph input that takes it; tensors get the complete type when `complete`.
c10::TypePtr inputType(const InputSpec& spec, bool complete = false);

}  // namespace faultline
