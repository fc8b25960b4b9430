#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/ir/base64.h"
#include "engine/support/check.h"
#include "generators/case/spec.h"
#include "generators/text/scanner.h"

namespace faultline {
namespace {

const char* patternWord(ValuePattern pattern) {
  switch (pattern) {
#define FAULTLINE_PATTERN(name, word) \
  case ValuePattern::name:            \
    return word;
#include "generators/case/patterns.def"
#undef FAULTLINE_PATTERN
    default:
      FAULTLINE_CHECK(false, "a pattern without a word");
  }
}

std::string writeTensor(const InputSpec& spec) {
  std::string out = fmt::format("{}[{}]", writeDtype(spec.dtype), fmt::join(spec.sizes, ","));
  if (spec.requires_grad) out += ":grad";
  if (!spec.leaf) out += ":nonleaf";
  if (spec.strides) out += fmt::format(":strides=[{}]", fmt::join(*spec.strides, ","));
  if (spec.offset != 0) out += fmt::format(":offset={}", spec.offset);
  if (spec.device == c10::DeviceType::CUDA) out += ":cuda";
  switch (spec.pattern) {
    case ValuePattern::Normal:
      break;
    case ValuePattern::Fill:
      out += ":fill=" + writeDouble(spec.fill);
      break;
    case ValuePattern::Literal: {
      std::vector<std::string> values;
      for (double value : spec.values) values.push_back(writeDouble(value));
      out += fmt::format(":values=[{}]", fmt::join(values, ", "));
      break;
    }
    case ValuePattern::Data:
      out += ":data=" + base64Encode(spec.data);
      break;
    default:
      out += fmt::format(":{}", patternWord(spec.pattern));
  }
  if (spec.seed) out += fmt::format(":seed={}", *spec.seed);
  return out;
}

// With a point or an exponent, so that it is not read as an integer.
std::string writeScalar(double value) {
  std::string text = writeDouble(value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

}  // namespace

std::string writeInputSpec(const InputSpec& spec) {
  switch (spec.kind) {
    case InputSpec::Kind::Tensor:
      return writeTensor(spec);
    case InputSpec::Kind::Int:
      return std::to_string(spec.int_value);
    case InputSpec::Kind::Double:
      return writeScalar(spec.double_value);
    case InputSpec::Kind::Bool:
      return spec.bool_value ? "true" : "false";
    case InputSpec::Kind::String:
      return quote(spec.string_value);
    case InputSpec::Kind::None:
      return "none";
    case InputSpec::Kind::SameAs:
      return fmt::format("@{}", spec.same_as);
    case InputSpec::Kind::List:
    case InputSpec::Kind::Tuple:
      break;
  }
  std::vector<std::string> elements;
  for (const InputSpec& element : spec.elements) elements.push_back(writeInputSpec(element));
  std::string inner = fmt::format("{}", fmt::join(elements, ", "));
  return spec.kind == InputSpec::Kind::List ? '[' + inner + ']' : '(' + inner + ')';
}

}  // namespace faultline
