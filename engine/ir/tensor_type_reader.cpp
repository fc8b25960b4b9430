#include <fmt/format.h>

#include "engine/ir/guarded.h"
#include "engine/ir/stride_text.h"
#include "engine/ir/type_reader.h"

namespace faultline {
namespace {

// As many as a tensor can have in most of torch's kernels.
constexpr size_t kMaxRank = 64;

class TensorTypeReader {
 public:
  explicit TensorTypeReader(Lexer& lexer) : lexer_(lexer) {}

  c10::TypePtr read(size_t begin, std::optional<c10::ScalarType> dtype, bool unranked) {
    Fields fields;
    if (lexer_.peek().is('(')) {
      lexer_.take();
      readFields(fields, !dtype && unranked);
    } else if (!unranked) {
      lexer_.failExpected(fmt::format("'(' behind a dtype: a {0} tensor of unknown rank is '{0}Tensor'",
                                      c10::toString(*dtype)));
    }
    if (!unranked && !fields.sizes) {
      fields.sizes = PartialSizes();  // "Float(requires_grad=0)" has rank 0
    }
    if (unranked && dtype && fields.sizes) {
      lexer_.failAt(begin, fmt::format("a tensor with sizes is '{}(…)'", c10::toString(*dtype)));
    }
    const std::optional<bool> undefined = readDefinedness();
    return guarded(lexer_, begin, ErrorKind::Invalid, "no such type: ", [&]() -> c10::TypePtr {
      return makeTensor(dtype, fields, undefined, begin);
    });
  }

 private:
  struct Fields {
    std::optional<PartialSizes> sizes;
    std::optional<PartialSizes> strides;
    bool any_strides = false;  // strides=*: not even their number is known
    std::optional<std::vector<std::optional<c10::Stride>>> properties;
    std::optional<bool> requires_grad;
    std::optional<c10::Device> device;
  };

  c10::TypePtr makeTensor(std::optional<c10::ScalarType> dtype, const Fields& fields,
                          std::optional<bool> undefined, size_t begin) {
    const c10::SymbolicShape shape = fields.sizes ? c10::SymbolicShape(*fields.sizes) : c10::SymbolicShape();
    c10::VaryingShape<c10::Stride> strides;
    if (fields.properties) {
      strides = c10::VaryingShape<c10::Stride>(*fields.properties);
    } else if (fields.strides) {
      if (!fields.sizes || fields.sizes->size() != fields.strides->size()) {
        lexer_.failAt(begin,
                      fmt::format("a tensor with {} strides needs as many sizes", fields.strides->size()));
      }
      strides = strideProperties(*fields.sizes, *fields.strides);
    } else if (fields.sizes && !fields.any_strides) {
      strides = c10::VaryingShape<c10::Stride>(fields.sizes->size());
    }
    return c10::TensorType::create(dtype, fields.device, shape, strides, fields.requires_grad, undefined);
  }

  void readFields(Fields& fields, bool rank_is_open) {
    if (lexer_.accept(')')) {
      fields.sizes = PartialSizes();
      return;
    }
    do {
      if (lexer_.peek().kind == TokenKind::Word) {
        readField(fields);
        continue;
      }
      if (fields.strides || fields.properties || fields.device || fields.requires_grad) {
        lexer_.failExpected("a field (strides=, requires_grad=, device=)");
      }
      if (!fields.sizes) {
        fields.sizes = PartialSizes();
      }
      fields.sizes->push_back(readExtent("a size"));
      if (fields.sizes->size() > kMaxRank) {
        lexer_.fail(fmt::format("a tensor of more than {} dimensions", kMaxRank));
      }
    } while (lexer_.accept(','));
    lexer_.expect(')', "or ',' in the fields of a tensor type");
    if (rank_is_open && !fields.sizes && fields.strides) {
      lexer_.fail("strides without sizes");
    }
  }

  void readField(Fields& fields) {
    const Token name = lexer_.take();
    lexer_.expect('=', "behind the name of a field of a tensor type");
    const auto once = [&](bool seen) {
      if (seen) {
        lexer_.failAt(name.begin, fmt::format("'{}' stands twice", name.text));
      }
    };
    if (name.text == "rank") {
      once(fields.sizes.has_value());
      if (readIntFrom(lexer_, "0: other ranks are said by their sizes") != 0) {
        lexer_.failAt(name.begin, "expected rank=0: other ranks are said by their sizes");
      }
      fields.sizes = PartialSizes();
    } else if (name.text == "strides") {
      once(fields.strides || fields.any_strides || fields.properties);
      if (lexer_.accept('*')) {
        fields.any_strides = true;
        return;
      }
      fields.strides = PartialSizes();
      readBracketed([&] { fields.strides->push_back(readExtent("a stride")); });
    } else if (name.text == "stride_properties") {
      once(fields.strides || fields.any_strides || fields.properties);
      fields.properties.emplace();
      readBracketed([&] {
        fields.properties->push_back(readProperty());
        if (fields.properties->size() > kMaxRank) {
          lexer_.fail(fmt::format("a tensor of more than {} dimensions", kMaxRank));
        }
      });
      checkIndices(name, *fields.properties);
    } else if (name.text == "requires_grad") {
      once(fields.requires_grad.has_value());
      fields.requires_grad = readFlag("0 or 1");
    } else if (name.text == "device") {
      once(fields.device.has_value());
      fields.device = readDeviceFrom(lexer_);
    } else {
      lexer_.failAt(name.begin,
                    fmt::format("unknown field '{}' of a tensor type: expected strides, stride_properties, "
                                "requires_grad, device or rank",
                                std::string(name.text.substr(0, 60))));
    }
  }

  // libtorch takes the index for a position without looking.
  void checkIndices(const Token& name, const std::vector<std::optional<c10::Stride>>& properties) {
    for (const auto& property : properties) {
      if (property && property->stride_index_ && *property->stride_index_ >= properties.size()) {
        lexer_.failAt(name.begin, fmt::format("dimension {} in properties of {} strides",
                                              *property->stride_index_, properties.size()));
      }
    }
  }

  template <class ReadElement>
  void readBracketed(ReadElement element) {
    lexer_.expect('[', "before a list");
    if (lexer_.accept(']')) {
      return;
    }
    do {
      element();
    } while (lexer_.accept(','));
    lexer_.expect(']', "or ',' in a list");
  }

  std::optional<int64_t> readExtent(std::string_view what) {
    if (lexer_.accept('*')) {
      return std::nullopt;
    }
    const size_t begin = lexer_.peek().begin;
    const int64_t extent = readIntFrom(lexer_, what);
    if (extent < 0) {
      lexer_.failAt(begin, fmt::format("{} is not negative", what));
    }
    return extent;
  }

  // "index:stride:contiguous", each of them possibly "*"; a lone "*" is no entry at all.
  std::optional<c10::Stride> readProperty() {
    std::optional<int64_t> index = readExtent("the index of a dimension");
    if (!lexer_.peek().is(':')) {
      if (index) {
        lexer_.failExpected("':' behind the index of a dimension");
      }
      return std::nullopt;
    }
    lexer_.take();
    const std::optional<int64_t> stride = readExtent("a stride");
    lexer_.expect(':', "behind a stride");
    std::optional<bool> contiguous;
    if (!lexer_.accept('*')) {
      contiguous = readFlag("0, 1 or '*'");
    }
    return c10::Stride(index ? std::optional<size_t>(*index) : std::nullopt, contiguous,
                       stride ? std::optional<size_t>(*stride) : std::nullopt);
  }

  bool readFlag(std::string_view what) {
    const size_t begin = lexer_.peek().begin;
    const int64_t flag = readIntFrom(lexer_, what);
    if (flag != 0 && flag != 1) {
      lexer_.failAt(begin, fmt::format("expected {}", what));
    }
    return flag == 1;
  }

  std::optional<bool> readDefinedness() {
    if (!lexer_.peek().is('[') || lexer_.following() == ']') {
      return false;
    }
    const Token bracket = lexer_.mark();
    lexer_.take();
    std::optional<bool> undefined;
    if (lexer_.accept("Undefined")) {
      undefined = true;
    } else if (!lexer_.accept("MaybeUndefined")) {
      lexer_.rewind(bracket);
      return false;
    }
    lexer_.expect(']', "behind [Undefined or [MaybeUndefined");
    return undefined;
  }

  Lexer& lexer_;
};

}  // namespace

c10::TypePtr readTensorTypeFrom(Lexer& lexer, size_t begin, std::optional<c10::ScalarType> dtype,
                                bool unranked) {
  return TensorTypeReader(lexer).read(begin, dtype, unranked);
}

}  // namespace faultline
