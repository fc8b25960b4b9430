#include "generators/case/script.h"

#include <charconv>

#include <fmt/format.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/error_report.h>
#include <torch/csrc/jit/frontend/lexer.h>
#include <torch/csrc/jit/frontend/parser.h>
#include <torch/csrc/jit/frontend/tree_views.h>

#include "engine/support/large_stack.h"
#include "generators/case/flatten.h"
#include "generators/case/script_names.h"
#include "generators/case/spec_of.h"
#include "generators/case/spec_text.h"
#include "generators/text/scanner.h"
#include "generators/text/utf8.h"

namespace faultline {
namespace {

using torch::jit::Def;
using torch::jit::Function;

// libtorch's parser recurses; sources of people do not come near this.
constexpr int kMaxBrackets = 200;
constexpr const char* kSourceName = "MODEL";

// Imports and decorators are Python's business. Blanked out, so that every place stays where it is.
std::string withoutPython(std::string_view text) {
  std::string out(text);
  for (size_t begin = 0; begin < out.size();) {
    size_t end = std::min(out.find('\n', begin), out.size());
    std::string_view line = std::string_view(out).substr(begin, end - begin);
    if (line.starts_with("import ") || line.starts_with("from ") || line.starts_with("@")) {
      std::fill(out.begin() + static_cast<std::ptrdiff_t>(begin),
                out.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    }
    begin = end + 1;
  }
  return out;
}

Result<void> checkBrackets(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth > kMaxBrackets) {
      return fail(ErrorKind::Unsupported, fmt::format("more than {} nested brackets", kMaxBrackets),
                  Scanner(text).where(i));
    }
  }
  return {};
}

// As Python demands it.
Result<void> checkText(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8Sequence(text, at);
    if (length == 0) {
      return fail(ErrorKind::Syntax,
                  fmt::format("expected UTF-8, got byte 0x{:02x}", static_cast<unsigned char>(text[at])),
                  Scanner(text).where(at));
    }
    at += length;
  }
  return {};
}

std::string oneLine(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool blank = c == ' ' || c == '\n' || c == '\t';
    if (!blank) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (!out.empty() && (out.back() == ' ' || out.back() == ':' || out.back() == '.')) out.pop_back();
  return out;
}

// libtorch says where in prose: a `File "MODEL", line N` line, the source around it, and `~~~ <--- HERE`
// below the place.
Error fromTorch(std::string_view what, std::string_view source) {
  Error error{ErrorKind::Syntax, "", "", std::nullopt};
  std::string marker = fmt::format("  File \"{}\", line ", kSourceName);
  size_t file = what.find(marker);
  std::string message = oneLine(what.substr(0, file));
  constexpr std::string_view kCall = "The original call is";
  if (message.ends_with(kCall)) message = oneLine(message.substr(0, message.size() - kCall.size()));
  // torch's parser, asked for functions.
  if (message == "expected def but found 'class' here") {
    message = "expected def, found a class: save an instance with torch.jit.save, and give that file";
  }
  constexpr std::string_view kHere = " here";
  if (message.ends_with(kHere)) message.resize(message.size() - kHere.size());
  error.message = message;
  if (file == std::string_view::npos) return error;
  size_t line = 0;
  const char* digits = what.data() + file + marker.size();
  std::from_chars(digits, what.data() + what.size(), line);
  std::string_view tail = what.substr(file);
  // The next function of a call chain is none of this place.
  tail = tail.substr(0, tail.find(marker, 1));
  size_t column = 0;
  for (size_t begin = tail.find('\n'); begin != std::string_view::npos; begin = tail.find('\n', begin + 1)) {
    std::string_view rest = tail.substr(begin + 1);
    size_t tilde = rest.find_first_not_of(' ');
    if (tilde == std::string_view::npos || rest[tilde] != '~') continue;
    column = tilde + 1;
    break;
  }
  if (column == 0) {
    // Line ends have no marker, and count as part of the next line.
    if (message.ends_with("found 'newline'") && line > 1) --line;
    Scanner scanner(source);
    std::string_view text;
    for (size_t i = 0; i < line && !scanner.atEnd(); ++i) text = scanner.takeLine();
    column = text.size() + 1;
  }
  error.where = SourceLocation{line, column};
  return error;
}

std::vector<Def> parse(const std::string& source) {
  torch::jit::Parser parser(std::make_shared<torch::jit::Source>(source, std::string(kSourceName), 1));
  std::vector<Def> defs;
  while (parser.lexer().cur().kind != torch::jit::TK_EOF)
    defs.emplace_back(parser.parseFunction(/*is_method=*/false));
  return defs;
}

Function* choose(const std::vector<Function*>& functions) {
  for (const char* name : {"forward", "f"}) {
    for (Function* function : functions) {
      if (function->name() == name) return function;
    }
  }
  return functions.back();
}

// Chains of operators and of elif are as deep as they are long, for the parser and all that walks its tree:
// measured at under 3 KB of stack a term, and a term has two characters.
constexpr size_t kMaxSource = 1 << 20;
constexpr size_t kStackPerCharacter = 4096;

Result<Model> compile(const std::string& source) {
  std::vector<Def> defs = parse(source);
  if (defs.empty()) return fail(ErrorKind::Syntax, "expected a function: def f(x): …", SourceLocation{1, 1});
  std::vector<torch::jit::ResolverPtr> resolvers(defs.size(), scriptResolver());
  auto unit = std::make_shared<torch::jit::CompilationUnit>();
  std::vector<Function*> functions = unit->define(std::nullopt, {}, {}, defs, resolvers, nullptr);
  Function* chosen = choose(functions);
  Model model;
  model.source_kind = "torchscript";
  model.graph = torch::jit::toGraphFunction(*chosen).graph()->copy();
  if (auto flat = flattenCalls(*model.graph); !flat) return tl::make_unexpected(flat.error());
  for (const c10::Argument& argument : chosen->getSchema().arguments()) {
    ModelInput input{argument.name(), std::nullopt, false};
    if (argument.default_value()) input.spec = specOfValue(*argument.default_value());
    model.inputs.push_back(std::move(input));
  }
  return model;
}

}  // namespace

Result<std::map<std::string, InputSpec>> readParamLines(std::string_view text) {
  std::map<std::string, InputSpec> params;
  Scanner lines(text);
  for (size_t number = 1; !lines.atEnd(); ++number) {
    Scanner line(lines.takeLine(), {number, 1});
    line.skipBlanks();
    if (!line.accept("#")) continue;
    line.skipBlanks();
    if (line.word() != "param") continue;
    line.skipBlanks();
    Scanner begin = line;
    std::string name(line.word());
    line.skipBlanks();
    // "# param" also begins sentences.
    if (name.empty() || !line.accept(":")) continue;
    line.skipBlanks();
    auto spec = scanInputSpec(line);
    if (!spec) return tl::make_unexpected(spec.error());
    line.skipBlanks();
    if (!line.atEnd()) return line.expected("the end of the line");
    if (!params.emplace(std::move(name), std::move(*spec)).second) {
      return begin.expected("each argument to be declared once", ErrorKind::Invalid);
    }
  }
  return params;
}

Result<Model> modelFromScript(std::string_view text) {
  if (auto checked = checkText(text); !checked) return tl::make_unexpected(checked.error());
  if (auto checked = checkBrackets(text); !checked) return tl::make_unexpected(checked.error());
  if (text.size() > kMaxSource) {
    return fail(ErrorKind::Unsupported, "more than 1 MiB of source");
  }
  std::string source = withoutPython(text);
  try {
    Result<Model> model;
    runOnLargeStack((size_t{64} << 20) + kStackPerCharacter * source.size(),
                    [&] { model = compile(source); });
    return model;
  } catch (const torch::jit::ErrorReport& error) {
    return tl::make_unexpected(fromTorch(error.what(), source));
  } catch (const c10::Error& error) {
    return tl::make_unexpected(fromTorch(error.what_without_backtrace(), source));
  } catch (const std::exception& error) {
    return tl::make_unexpected(fromTorch(error.what(), source));
  }
}

}  // namespace faultline
