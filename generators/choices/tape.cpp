// The text form of tapes; grammar in generators/choices/README.md.
#include <fmt/format.h>

#include "generators/choices/choices.h"
#include "generators/text/scanner.h"

namespace faultline {
namespace {

constexpr size_t kMaxSpanDepth = 1000;
constexpr size_t kChoicesPerLine = 16;

bool isWord(std::string_view text) {
  Scanner scanner(text);
  return !text.empty() && scanner.word() == text;
}

class TapeReader {
 public:
  explicit TapeReader(std::string_view text) : scanner_(text) {}

  Result<Tape> read() {
    scanner_.skipSpaceAndComments();
    if (!scanner_.accept("faultline tape ")) return scanner_.expected("'faultline tape 1'");
    SourceLocation version_at = scanner_.where();
    Scanner version(scanner_.takeLine(), version_at);
    if (!version.accept("1")) return version.expected("version 1", ErrorKind::Unsupported);
    version.skipSpaceAndComments();
    if (!version.atEnd()) return version.expected("the end of the line");
    if (auto options = readOptions(); !options) return tl::make_unexpected(options.error());
    if (auto body = readChoices(); !body) return tl::make_unexpected(body.error());
    return std::move(tape_);
  }

 private:
  // NAME ':' VALUE lines; the first thing that is no such line begins the choices.
  Result<void> readOptions() {
    while (true) {
      scanner_.skipSpaceAndComments();
      Scanner ahead = scanner_;
      std::string_view name = ahead.word();
      if (name.empty() || !ahead.accept(":")) return {};
      scanner_ = ahead;
      auto value = scanner_.freeText();
      if (!value) return tl::make_unexpected(value.error());
      tape_.options.emplace_back(name, std::move(*value));
    }
  }

  Result<void> readChoices() {
    std::vector<size_t> open;
    for (scanner_.skipSpaceAndComments(); !scanner_.atEnd(); scanner_.skipSpaceAndComments()) {
      char c = scanner_.peek();
      if (c >= '0' && c <= '9') {
        auto choice = scanner_.unsignedInteger("a choice");
        if (!choice) return tl::make_unexpected(choice.error());
        if (!scanner_.word().empty()) return scanner_.expected("a blank behind a choice");
        tape_.choices.push_back(*choice);
      } else if (c == '}' && !open.empty()) {
        scanner_.advance();
        tape_.spans[open.back()].end = tape_.choices.size();
        open.pop_back();
      } else {
        if (auto label = openSpan(open.size()); !label) return label;
        open.push_back(tape_.spans.size() - 1);
      }
    }
    if (!open.empty())
      return scanner_.expected(fmt::format("'}}' that ends '{}'", tape_.spans[open.back()].label));
    return {};
  }

  Result<void> openSpan(size_t depth) {
    std::string label(scanner_.word());
    if (label.empty()) {
      if (scanner_.peek() != '"')
        return scanner_.expected(depth == 0 ? "a number or a label" : "a number, a label or '}'");
      auto quoted = scanner_.quoted();
      if (!quoted) return tl::make_unexpected(quoted.error());
      label = std::move(*quoted);
    }
    scanner_.skipBlanks();
    if (!scanner_.accept("{")) return scanner_.expected("'{' behind a label");
    if (depth == kMaxSpanDepth)
      return scanner_.expected(fmt::format("at most {} nested labels", kMaxSpanDepth), ErrorKind::Invalid);
    tape_.spans.push_back({std::move(label), tape_.choices.size(), tape_.choices.size(), depth});
    return {};
  }

  Scanner scanner_;
  Tape tape_;
};

class TapeWriter {
 public:
  explicit TapeWriter(const Tape& tape) : tape_(tape) {}

  std::string write() {
    out_ = "faultline tape 1\n";
    for (const auto& [name, value] : tape_.options)
      out_ += fmt::format("{}: {}\n", name, writeFreeText(value));
    for (const TapeSpan& span : tape_.spans) {
      size_t end = open_.empty() ? tape_.choices.size() : open_.back();
      while (!open_.empty() && (open_.size() > span.depth || span.begin > end)) {
        close();
        end = open_.empty() ? tape_.choices.size() : open_.back();
      }
      bool nests = span.begin >= next_ && span.begin <= span.end && span.end <= end;
      if (!nests || open_.size() == kMaxSpanDepth) continue;
      writeChoices(span.begin);
      indent();
      out_ += fmt::format("{} {{\n", isWord(span.label) ? span.label : quote(span.label));
      open_.push_back(span.end);
    }
    while (!open_.empty()) close();
    writeChoices(tape_.choices.size());
    return std::move(out_);
  }

 private:
  void indent() { out_.append(2 * open_.size(), ' '); }

  void close() {
    writeChoices(open_.back());
    open_.pop_back();
    indent();
    out_ += "}\n";
  }

  void writeChoices(size_t end) {
    for (size_t in_line = 0; next_ < end; ++next_, ++in_line) {
      if (in_line % kChoicesPerLine == 0) {
        if (in_line != 0) out_ += '\n';
        indent();
      } else {
        out_ += ' ';
      }
      out_ += std::to_string(tape_.choices[next_]);
      if (next_ + 1 == end) out_ += '\n';
    }
  }

  const Tape& tape_;
  std::string out_;
  std::vector<size_t> open_;  // where the spans around this place end
  size_t next_ = 0;
};

}  // namespace

Result<Tape> readTape(std::string_view text) { return TapeReader(text).read(); }

std::string writeTape(const Tape& tape) { return TapeWriter(tape).write(); }

}  // namespace faultline
