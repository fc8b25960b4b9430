#include "engine/ir/literal.h"

#include <fmt/format.h>

#include "engine/ir/element.h"
#include "engine/ir/tensor_reader.h"
#include "engine/ir/type_reader.h"

namespace faultline {
namespace {

// IValues are compared, printed and freed by recursion.
constexpr size_t kMaxValueNesting = 64;

class LiteralReader {
 public:
  LiteralReader(Lexer& lexer, c10::TypePtr expected, bool as_types)
      : lexer_(lexer), expected_(std::move(expected)), as_types_(as_types) {}

  Literal read() {
    const NestingLevel level(lexer_, depth_, kMaxValueNesting, "values");
    Literal literal;
    literal.begin = lexer_.peek().begin;
    readInto(literal);
    return literal;
  }

 private:
  void readInto(Literal& literal) {
    const Token& token = lexer_.peek();
    if (token.is('[')) {
      readBracket(literal);
    } else if (as_types_) {
      readTypeInto(literal);
    } else if (atNumber(lexer_)) {
      readNumber(literal);
    } else if (token.kind == TokenKind::Imaginary) {
      literal.kind = LiteralKind::Complex;
      literal.imaginary = takeImaginary(false);
    } else if (token.is('-')) {
      readNegativeImaginary(literal);
    } else if (token.kind == TokenKind::String) {
      literal.kind = LiteralKind::String;
      literal.text = lexer_.take().decoded;
    } else if (token.is('(')) {
      readParenthesis(literal);
    } else if (token.is('{')) {
      readBrace(literal);
    } else if (token.is('@')) {
      readGraphName(literal);
    } else if (token.is('<')) {
      lexer_.fail(
          "libtorch's printer has left out what stands here; expected the value itself: tensor(…) for "
          "<Tensor>, "
          "@name with a `with @name = graph(…)` at the end for <Graph>");
    } else if (token.kind == TokenKind::Word) {
      readWord(literal);
    } else {
      lexer_.failExpected("a value");
    }
  }

  void readTypeInto(Literal& literal) {
    literal.kind = LiteralKind::Type;
    literal.type = readTypeFrom(lexer_);
  }

  void readWord(Literal& literal) {
    if (lexer_.accept("True") || lexer_.peek().is("False")) {
      literal.truth = !lexer_.accept("False");
      literal.kind = LiteralKind::Bool;
      literal.integer = literal.truth ? 1 : 0;
    } else if (lexer_.peek().is("None")) {
      lexer_.take();
      literal.kind = LiteralKind::None;
    } else if (lexer_.peek().is("annotate")) {
      readAnnotated(literal);
    } else if (lexer_.peek().is("tensor")) {
      lexer_.take();
      readTensorInto(literal, [&] { return readTensorFrom(lexer_); });
    } else if (lexer_.peek().is("torch")) {
      readTorchDevice(literal);
    } else if (lexer_.peek().is("complex") && lexer_.following() == '(') {
      readComplexCall(literal);
    } else if (lexer_.peek().is("Columns")) {
      readTensorInto(literal, [&] { return readPrintedTensorFrom(lexer_); });
    } else if (lexer_.peek().is("object")) {
      lexer_.fail("an object cannot be read from text");
    } else {
      readTypeInto(literal);
    }
  }

  template <class Read>
  void readTensorInto(Literal& literal, Read read) {
    literal.kind = LiteralKind::Tensor;
    literal.tensor = read();
  }

  void readAnnotated(Literal& literal) {
    lexer_.take();
    lexer_.expect('(', "behind 'annotate'");
    literal.kind = LiteralKind::Typed;
    literal.type = readTypeFrom(lexer_);
    lexer_.expect(',', "between the type and the value of annotate(…)");
    literal.parts.push_back(read());
    lexer_.expect(')', "behind annotate(…)");
  }

  void readTorchDevice(Literal& literal) {
    lexer_.take();
    lexer_.expect('.', "as in torch.device(\"cpu\")");
    lexer_.expect("device", "as in torch.device(\"cpu\")");
    lexer_.expect('(', "as in torch.device(\"cpu\")");
    if (lexer_.peek().kind != TokenKind::String) {
      lexer_.failExpected("the name of a device as a string");
    }
    literal.kind = LiteralKind::Device;
    const Token name = lexer_.take();
    literal.text = deviceName(name.begin, name.decoded);
    lexer_.expect(')', "as in torch.device(\"cpu\")");
  }

  std::string deviceName(size_t begin, const std::string& text) {
    try {
      return c10::Device(text).str();
    } catch (const std::exception&) {
      lexer_.failAt(begin, fmt::format("unknown device \"{}\"", text.substr(0, 60)));
    }
  }

  void readComplexCall(Literal& literal) {
    lexer_.take();
    lexer_.expect('(', "behind 'complex'");
    literal.kind = LiteralKind::Complex;
    literal.real = readDoubleFrom(lexer_);
    lexer_.expect(',', "between the parts of a complex number");
    literal.imaginary = readDoubleFrom(lexer_);
    lexer_.expect(')', "behind the parts of a complex number");
  }

  double takeImaginary(bool negative) {
    const Token token = lexer_.take();
    const std::string digits(token.text.substr(0, token.text.size() - 1));
    const double value = doubleOf(lexer_, token.begin, digits);
    return negative ? -value : value;
  }

  void readNegativeImaginary(Literal& literal) {
    lexer_.take();
    if (lexer_.peek().kind != TokenKind::Imaginary) {
      lexer_.failExpected("a number behind '-'");
    }
    literal.kind = LiteralKind::Complex;
    literal.real = 0;
    literal.imaginary = takeImaginary(true);
  }

  // One number, the first part of `1.+2.j`, or the first element of a tensor that libtorch printed.
  void readNumber(Literal& literal) {
    const Token first = lexer_.mark();
    const bool integer = atInt(lexer_);
    if (integer) {
      literal.kind = LiteralKind::Int;
      literal.integer = readIntFrom(lexer_, "an int");
      literal.real = static_cast<double>(literal.integer);
    } else {
      literal.kind = LiteralKind::Float;
      literal.real = readDoubleFrom(lexer_);
    }
    if (lexer_.peek().is('+') || lexer_.peek().is('-')) {
      const Token sign = lexer_.take();
      if (lexer_.peek().kind == TokenKind::Imaginary) {
        // "-0.+1.j" and "-0+1.j": an int has no sign of zero.
        if (integer) {
          lexer_.rewind(first);
          literal.real = readDoubleFrom(lexer_);
          lexer_.take();
        }
        literal.kind = LiteralKind::Complex;
        literal.imaginary = takeImaginary(sign.is('-'));
        return;
      }
      lexer_.rewind(sign);
    }
    if (atNumber(lexer_) || lexer_.peek().is('[') || lexer_.peek().is('*')) {
      lexer_.rewind(first);
      readTensorInto(literal, [&] { return readPrintedTensorFrom(lexer_); });
    }
  }

  // "(1, 2)": a tuple; "(1,.,.) =   0  1 …": a slice of a tensor that libtorch printed.
  void readParenthesis(Literal& literal) {
    const Token open = lexer_.take();
    if (lexer_.peek().kind == TokenKind::Number || lexer_.peek().is('.')) {
      const Token first = lexer_.mark();
      while (lexer_.peek().kind == TokenKind::Number || lexer_.peek().is(',')) {
        lexer_.take();
      }
      if (lexer_.peek().is('.')) {
        lexer_.rewind(open);
        readTensorInto(literal, [&] { return readPrintedTensorFrom(lexer_); });
        return;
      }
      lexer_.rewind(first);
    }
    literal.kind = LiteralKind::Tuple;
    while (!lexer_.accept(')')) {
      literal.parts.push_back(read());
      if (!lexer_.peek().is(')')) {
        lexer_.expect(',', "or ')' in a tuple");
      }
    }
  }

  void readBracket(Literal& literal) {
    const Token open = lexer_.take();
    const std::string_view word = lexer_.peek().kind == TokenKind::Word ? lexer_.peek().text : "";
    if (lexer_.following() == '{' && word.size() > 4 && word.substr(word.size() - 4) == "Type") {
      lexer_.rewind(open);  // "[ CPUFloatType{0} ]": an empty tensor that libtorch printed
      readTensorInto(literal, [&] { return readPrintedTensorFrom(lexer_); });
      return;
    }
    literal.kind = LiteralKind::List;
    if (lexer_.accept(']')) {
      return;
    }
    do {
      literal.parts.push_back(read());
    } while (lexer_.accept(','));
    lexer_.expect(']', "or ',' in a list");
  }

  // "{2.5}": a tensor of one element that libtorch printed; "{"a": 1}": a dict.
  void readBrace(Literal& literal) {
    const Token open = lexer_.take();
    literal.kind = LiteralKind::Dict;
    if (lexer_.accept('}')) {
      return;
    }
    Literal first = read();
    if (lexer_.peek().is('}')) {
      lexer_.rewind(open);
      lexer_.take();
      readTensorInto(literal, [&] { return readBracedScalarFrom(lexer_, expected_); });
      lexer_.expect('}', "behind a tensor of one element");
      return;
    }
    literal.parts.push_back(std::move(first));
    readDictValue(literal);
    while (lexer_.accept(',')) {
      literal.parts.push_back(read());
      readDictValue(literal);
    }
    lexer_.expect('}', "or ',' in a dict");
  }

  void readDictValue(Literal& literal) {
    lexer_.expect(':', "behind a key of a dict");
    literal.parts.push_back(read());
  }

  void readGraphName(Literal& literal) {
    lexer_.take();
    if (lexer_.peek().kind != TokenKind::Word) {
      lexer_.failExpected("the name of a graph behind '@'");
    }
    literal.kind = LiteralKind::Graph;
    literal.text = std::string(lexer_.take().text);
  }

  Lexer& lexer_;
  c10::TypePtr expected_;
  bool as_types_;
  size_t depth_ = 0;
};

}  // namespace

Literal readLiteral(Lexer& lexer, const c10::TypePtr& expected, bool as_types) {
  return LiteralReader(lexer, expected, as_types).read();
}

}  // namespace faultline
