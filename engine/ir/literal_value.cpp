#include <fmt/format.h>

#include "engine/ir/literal.h"

namespace faultline {
namespace {

class ValueMaker {
 public:
  explicit ValueMaker(const Lexer& lexer) : lexer_(lexer) {}

  c10::IValue make(const Literal& literal, const c10::TypePtr& type) {
    if (literal.kind == LiteralKind::Typed) {
      if (!literal.type->isSubtypeOf(*type)) {
        refuse(literal, *type);
      }
      return make(literal.parts[0], literal.type);
    }
    switch (type->kind()) {
      case c10::TypeKind::OptionalType:
        return literal.kind == LiteralKind::None
                   ? c10::IValue()
                   : make(literal, type->expectRef<c10::OptionalType>().getElementType());
      case c10::TypeKind::ListType:
        return makeList(literal, type);
      case c10::TypeKind::TupleType:
        return makeTuple(literal, type->expect<c10::TupleType>());
      case c10::TypeKind::DictType:
        return makeDict(literal, type);
      case c10::TypeKind::AnyType:
      case c10::TypeKind::UnionType:
      case c10::TypeKind::NumberType:
        return makeByLook(literal, *type);
      default:
        return makeScalar(literal, *type);
    }
  }

 private:
  [[noreturn]] void refuse(const Literal& literal, const c10::Type& type) {
    lexer_.failAt(literal.begin, fmt::format("expected a value of type {}", type.str()), ErrorKind::Invalid);
  }

  c10::IValue makeScalar(const Literal& literal, const c10::Type& type) {
    const LiteralKind kind = literal.kind;
    switch (type.kind()) {
      case c10::TypeKind::TensorType:
        if (kind == LiteralKind::Tensor) {
          return literal.tensor;
        }
        break;
      case c10::TypeKind::BoolType:
        if (kind == LiteralKind::Bool || (kind == LiteralKind::Int && (literal.integer | 1) == 1)) {
          return literal.integer != 0;
        }
        break;
      case c10::TypeKind::FloatType:
        if (kind == LiteralKind::Float || kind == LiteralKind::Int) {
          return literal.real;
        }
        break;
      case c10::TypeKind::ComplexType:
        if (kind == LiteralKind::Complex || kind == LiteralKind::Float || kind == LiteralKind::Int) {
          return c10::complex<double>(literal.real, literal.imaginary);
        }
        break;
      case c10::TypeKind::StringType:
        if (kind == LiteralKind::String) {
          return literal.text;
        }
        break;
      case c10::TypeKind::DeviceObjType:
        if (kind == LiteralKind::Device) {
          return c10::Device(literal.text);
        }
        break;
      case c10::TypeKind::NoneType:
        if (kind == LiteralKind::None) {
          return c10::IValue();
        }
        break;
      case c10::TypeKind::IntType:
      case c10::TypeKind::LayoutType:
      case c10::TypeKind::ScalarTypeType:
      case c10::TypeKind::MemoryFormatType:
      case c10::TypeKind::QSchemeType:
        if (kind == LiteralKind::Int) {
          return literal.integer;
        }
        break;
      default:
        break;
    }
    refuse(literal, type);
  }

  // Where the type leaves it open, the value says what it is.
  c10::IValue makeByLook(const Literal& literal, const c10::Type& type) {
    switch (literal.kind) {
      case LiteralKind::None:
        return c10::IValue();
      case LiteralKind::Bool:
        return literal.truth;
      case LiteralKind::Int:
        return literal.integer;
      case LiteralKind::Float:
        return literal.real;
      case LiteralKind::Complex:
        return c10::complex<double>(literal.real, literal.imaginary);
      case LiteralKind::String:
        return literal.text;
      case LiteralKind::Tensor:
        return literal.tensor;
      case LiteralKind::Device:
        return c10::Device(literal.text);
      case LiteralKind::Tuple: {
        std::vector<c10::IValue> elements;
        for (const Literal& part : literal.parts) {
          elements.push_back(make(part, c10::AnyType::get()));
        }
        return c10::ivalue::Tuple::create(std::move(elements));
      }
      default:
        lexer_.failAt(
            literal.begin,
            fmt::format("a value of type {} must say what it is: expected annotate(TYPE, …)", type.str()));
    }
  }

  c10::IValue makeList(const Literal& literal, const c10::TypePtr& type) {
    if (literal.kind != LiteralKind::List) {
      refuse(literal, *type);
    }
    const c10::TypePtr element = type->expectRef<c10::ListType>().getElementType();
    c10::impl::GenericList list(element);
    list.reserve(literal.parts.size());
    for (const Literal& part : literal.parts) {
      list.push_back(make(part, element));
    }
    return list;
  }

  c10::IValue makeTuple(const Literal& literal, const c10::TupleTypePtr& type) {
    if (literal.kind != LiteralKind::Tuple || literal.parts.size() != type->elements().size()) {
      refuse(literal, *type);
    }
    std::vector<c10::IValue> elements;
    for (size_t i = 0; i < literal.parts.size(); ++i) {
      elements.push_back(make(literal.parts[i], type->elements()[i]));
    }
    return type->schema() ? c10::ivalue::Tuple::createNamed(std::move(elements), type)
                          : c10::ivalue::Tuple::create(std::move(elements));
  }

  c10::IValue makeDict(const Literal& literal, const c10::TypePtr& type) {
    if (literal.kind != LiteralKind::Dict) {
      refuse(literal, *type);
    }
    const auto& dict_type = type->expectRef<c10::DictType>();
    c10::impl::GenericDict dict(dict_type.getKeyType(), dict_type.getValueType());
    for (size_t i = 0; i < literal.parts.size(); i += 2) {
      const c10::IValue key = make(literal.parts[i], dict_type.getKeyType());
      if (!dict.insert(key, make(literal.parts[i + 1], dict_type.getValueType())).second) {
        lexer_.failAt(literal.parts[i].begin, "this key stands in the dict already");
      }
    }
    return dict;
  }

  const Lexer& lexer_;
};

}  // namespace

c10::IValue valueOfType(const Lexer& lexer, const Literal& literal, const c10::TypePtr& type) {
  return ValueMaker(lexer).make(literal, type);
}

}  // namespace faultline
