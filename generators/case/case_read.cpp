// Reads case files line by line up to the graph; grammar in generators/case/README.md.
#include <fmt/format.h>

#include "engine/ir/places.h"
#include "faultline/ir.h"
#include "generators/case/case_text.h"
#include "generators/case/expectation.h"
#include "generators/case/spec_text.h"
#include "generators/text/scanner.h"

namespace faultline {
namespace {

// As the verifier says it.
constexpr std::string_view kNoOperator = "there is no operator '";

bool isBlank(char c) { return c == ' ' || c == '\t'; }

bool startsGraph(std::string_view line) {
  if (!line.starts_with("graph")) return false;
  size_t next = line.find_first_not_of(" \t", 5);
  return next != std::string_view::npos && line[next] == '(';
}

class CaseReader {
 public:
  explicit CaseReader(std::string_view text) : text_(text) {}

  Result<Case> read() {
    if (auto header = readHeader(); !header) return tl::make_unexpected(header.error());
    places_.graph_line = line_;
    NodePlaces nodes;
    auto graph = readGraphWithPlaces(text_.rest(), line_, nodes);
    if (!graph) return tl::make_unexpected(graph.error());
    case_.graph = std::move(*graph);
    if (auto verified = verifyGraphWithPlaces(*case_.graph, nodes); !verified) {
      if (verified.error().message.find(kNoOperator) != std::string::npos)
        verified.error().kind = ErrorKind::Unsupported;
      if (!verified.error().where) verified.error().where = SourceLocation{line_, 1};
      return tl::make_unexpected(verified.error());
    }
    if (auto checked = checkCase(case_, places_); !checked) return tl::make_unexpected(checked.error());
    return std::move(case_);
  }

 private:
  using Directive = Result<void> (CaseReader::*)(Scanner&);
  struct Known {
    const char* name;
    Directive read;
    bool once;
  };

  static const Known* find(std::string_view name) {
    static const Known known[] = {
        {"seed", &CaseReader::readSeed, true},          {"run", &CaseReader::readRun, false},
        {"backward", &CaseReader::readBackward, false}, {"breaks", &CaseReader::readBreaks, true},
        {"hook", &CaseReader::readHook, false},         {"profile", &CaseReader::readProfile, true},
        {"passes", &CaseReader::readPasses, true},      {"ranks", &CaseReader::readRanks, true},
        {"expect", &CaseReader::readExpect, false},     {"known", &CaseReader::readKnown, true},
    };
    for (const Known& directive : known) {
      if (name == directive.name) return &directive;
    }
    return nullptr;
  }

  // Stops before the line that begins the graph.
  Result<void> readHeader() {
    bool version_seen = false;
    while (true) {
      Scanner before = text_;
      if (text_.atEnd()) {
        Scanner end("", {line_, 1});
        return end.expected(version_seen ? "a directive or 'graph('" : "'faultline case 1'");
      }
      Scanner line(text_.takeLine(), {line_, 1});
      line.skipBlanks();
      if (line.atEnd() || line.peek() == '#') {
        ++line_;
        continue;
      }
      if (!version_seen) {
        if (auto version = readVersion(line); !version) return version;
        version_seen = true;
      } else if (startsGraph(line.rest())) {
        text_ = before;
        return {};
      } else if (auto directive = readDirective(line); !directive) {
        return directive;
      }
      ++line_;
    }
  }

  static Result<void> readVersion(Scanner& line) {
    if (!line.accept("faultline case ")) return line.expected("'faultline case 1'");
    Scanner version = line;
    auto number = line.unsignedInteger("version 1");
    if (!number || *number != 1) return version.expected("version 1", ErrorKind::Unsupported);
    return expectEnd(line);
  }

  static Result<void> expectEnd(Scanner& line) {
    line.skipBlanks();
    if (!line.atEnd() && line.peek() != '#') return line.expected("the end of the line");
    return {};
  }

  Result<void> readDirective(Scanner& line) {
    Scanner begin = line;
    bool required = line.accept("!");
    std::string name(line.word());
    while (line.peek() == '-') {
      line.advance();
      name += '-';
      name += line.word();
    }
    if (name.empty()) return begin.expected("a directive such as 'run:', or 'graph('");
    if (name == "note" && isBlank(line.peek())) return readNote(line);
    if (name == "nograd" && line.peek() != ':') return readNoGrad(line);
    if (!line.accept(":")) return line.expected(fmt::format("':' behind '{}'", printable(name)));
    line.skipBlanks();
    if (const Known* known = find(name)) {
      if (known->once && !seen_.insert(name).second) {
        return begin.expected(fmt::format("'{}' to be given once", name), ErrorKind::Invalid);
      }
      if (auto read = (this->*known->read)(line); !read) return read;
      return expectEnd(line);
    }
    if (required) {
      return fail(ErrorKind::Unsupported,
                  fmt::format("this version of faultline does not know the required directive '!{}'",
                              printable(name)),
                  begin.where());
    }
    std::string_view value = line.rest();
    while (!value.empty() && isBlank(value.back())) value.remove_suffix(1);
    case_.unknown.push_back({std::move(name), std::string(value)});
    return {};
  }

  Result<void> readSeed(Scanner& line) {
    auto seed = line.unsignedInteger("a seed");
    if (!seed) return tl::make_unexpected(seed.error());
    case_.seed = *seed;
    return {};
  }

  Result<void> readRun(Scanner& line) {
    CaseRun run;
    places_.runs.push_back(line_);
    places_.inputs.emplace_back();
    places_.backwards.emplace_back();
    while (!line.atEnd() && line.peek() != '#') {
      places_.inputs.back().push_back({line_, line.where().column});
      auto input = line.peek() == '~' ? sameAsBefore(line, run.inputs.size()) : scanInputSpec(line);
      if (!input) return tl::make_unexpected(input.error());
      run.inputs.push_back(std::move(*input));
      line.skipBlanks();
      if (line.atEnd() || line.peek() == '#') break;
      if (!line.accept(",")) return line.expected("',' between inputs");
      line.skipBlanks();
      if (line.atEnd() || line.peek() == '#') return line.expected("an input behind ','");
    }
    case_.runs.push_back(std::move(run));
    return {};
  }

  // `~`: described as in the run before.
  Result<InputSpec> sameAsBefore(Scanner& line, size_t index) {
    if (case_.runs.empty() || index >= case_.runs.back().inputs.size()) {
      return line.expected("an input: there is none in a run before that '~' could repeat",
                           ErrorKind::Invalid);
    }
    line.advance();
    return case_.runs.back().inputs[index];
  }

  Result<void> readNoGrad(Scanner& line) {
    if (case_.runs.empty()) return line.expected("a 'run:' before 'nograd'", ErrorKind::Invalid);
    case_.runs.back().grad_mode = false;
    return expectEnd(line);
  }

  Result<void> readBackward(Scanner& line) {
    if (case_.runs.empty()) return line.expected("a 'run:' before 'backward:'", ErrorKind::Invalid);
    do {
      line.skipBlanks();
      Scanner begin = line;
      std::string_view word = line.word();
      BackwardSpec spec;
      if (word == "all") {
        spec.kind = BackwardSpec::Kind::All;
      } else if (word == "double") {
        spec.kind = BackwardSpec::Kind::Double;
      } else if (word == "output") {
        spec.kind = BackwardSpec::Kind::Output;
        line.skipBlanks();
        auto index = line.unsignedInteger("the number of an output");
        if (!index) return tl::make_unexpected(index.error());
        spec.output = *index;
      } else {
        return begin.expected("all, double or output N");
      }
      case_.runs.back().backwards.push_back(spec);
      places_.backwards.back().push_back(line_);
      line.skipBlanks();
    } while (line.accept(","));
    return {};
  }

  // Words up to the end or a comment, one blank between them.
  static std::string readWords(Scanner& line) {
    std::string words;
    while (!line.atEnd() && line.peek() != '#') {
      if (!words.empty()) words += ' ';
      while (!line.atEnd() && !isBlank(line.peek())) {
        words += line.peek();
        line.advance();
      }
      line.skipBlanks();
    }
    return words;
  }

  Result<void> readBreaks(Scanner& line) {
    places_.breaks_line = line_;
    Scanner begin = line;
    case_.plan.breaks = readWords(line);
    if (case_.plan.breaks.empty()) return begin.expected("none, every N or after NAME…");
    return {};
  }

  // Refuses with what would fit.
  static Result<void> readHookAction(std::string_view word, HookSpec& hook) {
    std::string fitting;
    for (HookAction action : allHookActions()) {
      if (action == HookAction::Log || !fitsHook(action, hook)) continue;
      fitting += (fitting.empty() ? "" : ", ") + std::string(hookWord(action));
      if (word == hookWord(action)) hook.action = action;
    }
    if (hook.action != HookAction::Log) return {};
    return fail(ErrorKind::Syntax, fitting.empty() ? "the end of the line" : "one of " + fitting);
  }

  Result<void> readHook(Scanner& line) {
    HookSpec hook;
    Scanner begin = line;
    std::string_view kind = line.word();
    bool found = false;
    std::string known;
    for (HookKind candidate : allHookKinds()) {
      known += (known.empty()                        ? ""
                : candidate == allHookKinds().back() ? " or "
                                                     : ", ") +
               std::string(hookWord(candidate));
      if (kind != hookWord(candidate)) continue;
      hook.kind = candidate;
      found = true;
    }
    if (!found) return begin.expected(known);
    line.skipBlanks();
    Scanner on = line;
    std::string_view where = line.word();
    line.skipBlanks();
    if (where == "input") {
      auto input = line.unsignedInteger("the number of an input");
      if (!input) return tl::make_unexpected(input.error());
      hook.input = *input;
    } else if (where == "seam") {
      while (!line.atEnd() && !isBlank(line.peek())) {
        hook.seam += line.peek();
        line.advance();
      }
      if (hook.seam.empty()) return line.expected("the name of an op");
    } else {
      return on.expected("'input N' or 'seam NAME'");
    }
    line.skipBlanks();
    if (!line.atEnd() && line.peek() != '#') {
      Scanner action = line;
      if (auto read = readHookAction(line.word(), hook); !read) return action.expected(read.error().message);
    }
    case_.plan.hooks.push_back(std::move(hook));
    places_.hooks.push_back(line_);
    return {};
  }

  Result<void> readProfile(Scanner& line) {
    Scanner begin = line;
    case_.plan.profile = line.word();
    if (case_.plan.profile != "none" && case_.plan.profile != "keep" && case_.plan.profile != "record") {
      return begin.expected("none, keep or record");
    }
    return {};
  }

  static std::vector<std::string> readList(Scanner& line) {
    std::vector<std::string> words;
    while (!line.atEnd() && line.peek() != '#') {
      std::string& word = words.emplace_back();
      while (!line.atEnd() && !isBlank(line.peek())) {
        word += line.peek();
        line.advance();
      }
      line.skipBlanks();
    }
    return words;
  }

  Result<void> readPasses(Scanner& line) {
    case_.plan.passes = readList(line);
    return {};
  }

  Result<void> readKnown(Scanner& line) {
    Scanner begin = line;
    case_.known = readList(line);
    if (case_.known.empty()) return begin.expected("the id of a known issue");
    return {};
  }

  Result<void> readRanks(Scanner& line) {
    Scanner begin = line;
    auto ranks = line.unsignedInteger("a number of ranks");
    if (!ranks) return tl::make_unexpected(ranks.error());
    if (*ranks < 1 || *ranks > 64) return begin.expected("1 to 64 ranks", ErrorKind::Invalid);
    case_.plan.ranks = static_cast<int64_t>(*ranks);
    return {};
  }

  Result<void> readExpect(Scanner& line) {
    auto expectation = scanExpectation(line);
    if (!expectation) return tl::make_unexpected(expectation.error());
    case_.expectations.push_back(std::move(*expectation));
    return {};
  }

  Result<void> readNote(Scanner& line) {
    line.skipBlanks();
    Scanner begin = line;
    std::string name(line.word());
    if (name.empty()) return line.expected("a name behind 'note'");
    if (!line.accept(":")) return line.expected("':' behind the note's name");
    auto value = line.freeText();
    if (!value) return tl::make_unexpected(value.error());
    if (!case_.notes.emplace(std::move(name), std::move(*value)).second) {
      return begin.expected("each note to be given once", ErrorKind::Invalid);
    }
    return {};
  }

  Scanner text_;
  size_t line_ = 1;
  Case case_;
  CasePlaces places_;
  std::set<std::string> seen_;
};

}  // namespace

Result<Case> readCase(std::string_view text) { return CaseReader(text).read(); }

bool isMissingOperator(const Error& error) {
  return error.kind == ErrorKind::Unsupported && error.message.find(kNoOperator) != std::string::npos;
}

}  // namespace faultline
