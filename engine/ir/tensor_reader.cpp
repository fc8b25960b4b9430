#include "engine/ir/tensor_reader.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>

#include "engine/ir/base64.h"
#include "engine/ir/element.h"
#include "engine/ir/guarded.h"
#include "engine/ir/tensor_data.h"
#include "engine/ir/type_reader.h"

namespace faultline {
namespace {

struct Layout {
  size_t begin = 0;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  bool contiguous = true;
  size_t span = 0;  // elements of storage
};

template <class Make>
at::Tensor made(const Lexer& lexer, size_t begin, Make make) {
  return guarded(lexer, begin, ErrorKind::Unsupported,
                 "torch cannot make this tensor: ", [&]() -> at::Tensor { return make(); });
}

std::optional<std::vector<int64_t>> contiguousStrides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i > 1; --i) {
    if (__builtin_mul_overflow(strides[i - 1], std::max<int64_t>(1, sizes[i - 1]), &strides[i - 2])) {
      return std::nullopt;
    }
  }
  return strides;
}

Layout layoutOf(const Lexer& lexer, size_t begin, const c10::TensorType& type) {
  Layout layout;
  layout.begin = begin;
  const auto sizes = type.sizes().concrete_sizes();
  if (!type.scalarType() || !sizes) {
    lexer.failAt(begin, "expected the dtype and every size of the tensor, as in tensor(Float(2, 3), …)");
  }
  layout.dtype = *type.scalarType();
  layout.sizes = *sizes;
  const auto contiguous = contiguousStrides(layout.sizes);
  if (!contiguous) {
    lexer.failAt(begin, "the sizes of this tensor are too large");
  }
  const auto strides = type.strides().concrete_sizes();
  layout.strides = strides && strides->size() == layout.sizes.size() ? *strides : *contiguous;
  layout.contiguous = layout.strides == *contiguous;
  const auto span = storageSpan(layout.sizes, layout.strides, c10::elementSize(layout.dtype));
  if (!span) {
    lexer.failAt(begin, "the sizes and strides of this tensor are too large");
  }
  layout.span = *span;
  return layout;
}

// Nothing is allocated for elements that the text does not have.
std::string readElements(Lexer& lexer, const Layout& layout) {
  std::string bytes;
  size_t count = 0;
  const size_t begin = lexer.peek().begin;
  lexer.expect('[', "before the elements of a tensor");
  if (!lexer.accept(']')) {
    do {
      if (count == layout.span) {
        lexer.fail(fmt::format("expected {} elements, found more", layout.span));
      }
      readElement(lexer, layout.dtype, bytes);
      ++count;
    } while (lexer.accept(','));
    lexer.expect(']', "or ',' in the elements of a tensor");
  }
  if (count != layout.span) {
    lexer.failAt(begin, fmt::format("expected {} elements, found {}", layout.span, count));
  }
  return bytes;
}

std::string readBytes(Lexer& lexer, const Layout& layout) {
  if (lexer.peek().kind != TokenKind::String) {
    lexer.failExpected("a string of base64");
  }
  const Token token = lexer.take();
  auto bytes = base64Decode(token.decoded);
  const size_t wanted = layout.span * c10::elementSize(layout.dtype);
  if (!bytes || bytes->size() != wanted) {
    lexer.failAt(token.begin, fmt::format("expected {} bytes as base64, found {}", wanted,
                                          bytes ? std::to_string(bytes->size()) : "what is no base64"));
  }
  return *bytes;
}

std::string readData(Lexer& lexer, const Layout& layout) {
  if (lexer.peek().is('[')) {
    if (!layout.contiguous) {
      lexer.fail(
          "the elements of a tensor with other strides are written as storage=[…], in the order of memory");
    }
    return readElements(lexer, layout);
  }
  if (lexer.accept("storage")) {
    lexer.expect('=', "behind 'storage'");
    return readElements(lexer, layout);
  }
  if (lexer.accept("base64")) {
    lexer.expect('=', "behind 'base64'");
    return readBytes(lexer, layout);
  }
  lexer.failExpected("the elements of the tensor: […], storage=[…] or base64=\"…\"");
}

at::Tensor build(const Lexer& lexer, const Layout& layout, const std::string& bytes) {
  return made(lexer, layout.begin, [&] {
    at::Tensor tensor =
        at::empty_strided(layout.sizes, layout.strides, at::TensorOptions().dtype(layout.dtype));
    if (!bytes.empty()) {
      std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
    }
    return tensor;
  });
}

// Numbers of one dtype as bytes; dtypes that libtorch prints elements of are few.
at::Tensor fromDoubles(const Lexer& lexer, size_t begin, c10::ScalarType dtype,
                       const std::vector<int64_t>& sizes, const std::vector<double>& values) {
  return made(lexer, begin, [&] {
    return at::tensor(values, at::TensorOptions().dtype(at::kDouble)).to(dtype).reshape(sizes);
  });
}

// "CPUFloatType" -> Float on the CPU.
std::pair<c10::ScalarType, c10::DeviceType> readPrintedType(Lexer& lexer) {
  if (lexer.peek().kind != TokenKind::Word) {
    lexer.failExpected("the type of a printed tensor, as in [ CPUFloatType{3} ]");
  }
  const Token token = lexer.take();
  std::string_view name = token.text;
  const bool cuda = name.substr(0, 4) == "CUDA";
  if ((cuda || name.substr(0, 3) == "CPU") && name.size() > 8 && name.substr(name.size() - 4) == "Type") {
    name = name.substr(cuda ? 4 : 3);
    if (const auto dtype = dtypeByName(name.substr(0, name.size() - 4))) {
      return {*dtype, cuda ? c10::DeviceType::CUDA : c10::DeviceType::CPU};
    }
  }
  lexer.failAt(token.begin, "expected the type of a printed tensor, as in [ CPUFloatType{3} ]");
}

// Column groups of a printed matrix: columns from..to of every row, group after group.
struct ColumnGroup {
  int64_t from = 0;
  int64_t to = 0;
  size_t first_value = 0;
};

std::vector<double> inRowOrder(const Lexer& lexer, size_t begin, const std::vector<int64_t>& sizes,
                               const std::vector<ColumnGroup>& groups, const std::vector<double>& values) {
  if (groups.empty()) {
    return values;
  }
  std::vector<double> ordered(values.size());
  for (const ColumnGroup& group : groups) {
    const int64_t width = group.to - group.from + 1;
    const bool fits = sizes.size() == 2 && group.from >= 1 && width >= 1 && group.to <= sizes[1];
    for (int64_t row = 0; fits && row < sizes[0]; ++row) {
      for (int64_t column = 0; column < width; ++column) {
        const size_t at = group.first_value + static_cast<size_t>(row * width + column);
        if (at >= values.size()) {
          lexer.failAt(begin, "this printed tensor has fewer numbers than its columns say");
        }
        ordered[static_cast<size_t>(row * sizes[1] + group.from - 1 + column)] = values[at];
      }
    }
    if (!fits) {
      lexer.failAt(begin, "the columns of this printed tensor do not fit its sizes");
    }
  }
  return ordered;
}

// "(1,2,.,.) ="
void skipSliceHead(Lexer& lexer) {
  while (!lexer.accept(')')) {
    if (lexer.peek().kind == TokenKind::End) {
      lexer.failExpected("')' in the head of a slice");
    }
    lexer.take();
  }
  lexer.expect('=', "behind the head of a slice");
}

ColumnGroup readColumnGroup(Lexer& lexer, size_t first_value) {
  ColumnGroup group;
  group.first_value = first_value;
  group.from = readIntFrom(lexer, "the first column");
  lexer.expect("to", "between the columns of a group");
  group.to = readIntFrom(lexer, "the last column");
  return group;
}

}  // namespace

at::Tensor readTensorFrom(Lexer& lexer) {
  lexer.expect('(', "behind 'tensor'");
  if (lexer.accept("undefined")) {
    lexer.expect(')', "behind 'undefined'");
    return at::Tensor();
  }
  const size_t begin = lexer.peek().begin;
  if (lexer.peek().is("unsupported")) {
    lexer.failAt(begin, "this tensor has a layout or dtype that text has no form for",
                 ErrorKind::Unsupported);
  }
  const auto type = readTypeFrom(lexer)->cast<c10::TensorType>();
  if (!type) {
    lexer.failAt(begin, "expected the type of a tensor");
  }
  const Layout layout = layoutOf(lexer, begin, *type);
  if (c10::isQIntType(layout.dtype)) {
    lexer.failAt(begin, "quantized tensors are not supported", ErrorKind::Unsupported);
  }
  const c10::Device device = type->device().value_or(c10::Device(c10::kCPU));
  at::Tensor tensor;
  if (device.is_meta()) {
    tensor = made(lexer, begin, [&] {
      return at::empty_strided(layout.sizes, layout.strides,
                               at::TensorOptions().dtype(layout.dtype).device(device));
    });
  } else {
    lexer.expect(',', "before the elements of a tensor");
    tensor = build(lexer, layout, readData(lexer, layout));
    if (!device.is_cpu()) {
      tensor = made(lexer, begin, [&] { return tensor.to(device); });
    }
  }
  lexer.expect(')', "behind the elements of a tensor");
  if (type->requiresGrad().value_or(false)) {
    tensor = made(lexer, begin, [&] { return tensor.requires_grad_(true); });
  }
  return tensor;
}

at::Tensor readPrintedTensorFrom(Lexer& lexer) {
  const size_t begin = lexer.peek().begin;
  std::vector<double> values;
  std::vector<ColumnGroup> groups;
  double scale = 1;
  while (!lexer.peek().is('[')) {
    if (lexer.accept('(')) {
      skipSliceHead(lexer);
    } else if (lexer.accept("Columns")) {
      groups.push_back(readColumnGroup(lexer, values.size()));
    } else if (lexer.peek().is('*')) {
      if (values.size() != 1 || !groups.empty()) {
        lexer.fail("cannot tell the scale of this printed tensor from its numbers; write it as tensor(…)");
      }
      lexer.take();
      scale = values[0];
      values.clear();
    } else {
      values.push_back(readDoubleFrom(lexer) * scale);
    }
  }
  lexer.take();
  const auto [dtype, device] = readPrintedType(lexer);
  lexer.expect('{', "before the sizes of a printed tensor");
  std::vector<int64_t> sizes;
  int64_t count = 1;
  if (!lexer.accept('}')) {
    do {
      sizes.push_back(readIntFrom(lexer, "a size"));
      if (sizes.back() < 0 || __builtin_mul_overflow(count, sizes.back(), &count)) {
        lexer.failAt(begin, "the sizes of this printed tensor are not possible");
      }
    } while (lexer.accept(','));
    lexer.expect('}', "or ',' in the sizes of a printed tensor");
  }
  lexer.expect(']', "behind the type of a printed tensor");
  if (static_cast<size_t>(count) != values.size() || sizes.size() > 64) {
    lexer.failAt(begin, fmt::format("expected {} elements, found {}", count, values.size()));
  }
  const at::Tensor tensor =
      fromDoubles(lexer, begin, dtype, sizes, inRowOrder(lexer, begin, sizes, groups, values));
  return made(lexer, begin, [&, device = device] { return tensor.to(device); });
}

at::Tensor readBracedScalarFrom(Lexer& lexer, const c10::TypePtr& type) {
  const size_t begin = lexer.peek().begin;
  const auto tensor_type = type ? type->cast<c10::TensorType>() : nullptr;
  const auto known = tensor_type ? tensor_type->scalarType() : std::nullopt;
  const auto shape = tensor_type ? tensor_type->sizes().concrete_sizes() : std::nullopt;
  at::Scalar value;
  c10::ScalarType natural = c10::ScalarType::Double;
  if (lexer.accept('(')) {
    const double real = readDoubleFrom(lexer);
    lexer.expect(',', "between the parts of a complex number");
    value = c10::complex<double>(real, readDoubleFrom(lexer));
    lexer.expect(')', "behind the parts of a complex number");
    natural = c10::ScalarType::ComplexDouble;
  } else if (atInt(lexer) && (!known || c10::isIntegralType(*known, true))) {
    value = readIntFrom(lexer, "an int");
    natural = c10::ScalarType::Long;
  } else {
    value = readDoubleFrom(lexer);
  }
  return made(lexer, begin, [&] {
    return at::scalar_tensor(value, natural)
        .to(known.value_or(natural))
        .reshape(shape.value_or(std::vector<int64_t>()));
  });
}

}  // namespace faultline
