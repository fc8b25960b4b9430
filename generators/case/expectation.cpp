#include "generators/case/expectation.h"

#include <charconv>

#include <fmt/format.h>

namespace faultline {
namespace {

constexpr size_t kMaxParts = 4;

// The leading numbers of a version: "2.15.0+cpu" is 2, 15, 0 and "2.16.0a0" is 2, 16, 0.
std::vector<uint32_t> versionParts(std::string_view version) {
  std::vector<uint32_t> parts;
  const char* at = version.data();
  const char* end = at + version.size();
  while (parts.size() < kMaxParts) {
    uint32_t part = 0;
    auto [next, code] = std::from_chars(at, end, part);
    if (code != std::errc()) break;
    parts.push_back(part);
    if (next == end || *next != '.') break;
    at = next + 1;
  }
  return parts;
}

// Compares as precisely as the bound is: every 2.13.x is equal to 2.13.
int compareToBound(std::string_view version, std::string_view bound) {
  std::vector<uint32_t> wanted = versionParts(bound);
  std::vector<uint32_t> parts = versionParts(version);
  parts.resize(wanted.size(), 0);
  return parts == wanted ? 0 : parts < wanted ? -1 : 1;
}

Result<std::string> scanVersion(Scanner& scanner) {
  Scanner begin = scanner;
  size_t length = 0;
  for (size_t parts = 0; parts < kMaxParts; ++parts) {
    auto part = scanner.unsignedInteger("a version such as 2.13");
    if (!part) return tl::make_unexpected(part.error());
    if (*part > 1000000) return begin.expected("a version such as 2.13", ErrorKind::Invalid);
    length = scanner.position() - begin.position();
    if (scanner.peek() != '.' || scanner.peek(1) == '.') break;
    scanner.advance();
  }
  if (scanner.position() - begin.position() != length)
    return begin.expected("a version of at most four numbers");
  return std::string(begin.rest().substr(0, length));
}

Result<void> scanRange(Scanner& scanner, Expectation& expectation) {
  Scanner begin = scanner;
  if (scanner.peek() != '.') {
    auto from = scanVersion(scanner);
    if (!from) return tl::make_unexpected(from.error());
    expectation.from = std::move(*from);
    if (!scanner.accept("..")) return {};
  } else if (!scanner.accept("..")) {
    return scanner.expected("a version range: 2.13.. or ..2.13 or 2.11..2.13 or 2.15");
  }
  if (scanner.peek() >= '0' && scanner.peek() <= '9') {
    auto to = scanVersion(scanner);
    if (!to) return tl::make_unexpected(to.error());
    expectation.to = std::move(*to);
  }
  expectation.open_range = expectation.from.empty() || expectation.to.empty();
  if (expectation.from.empty() && expectation.to.empty()) {
    return begin.expected("a version range: 2.13.. or ..2.13 or 2.11..2.13 or 2.15");
  }
  if (!expectation.open_range && versionParts(expectation.to) < versionParts(expectation.from)) {
    return begin.expected("a range that goes up", ErrorKind::Invalid);
  }
  return {};
}

bool isSignatureCharacter(char c) { return static_cast<unsigned char>(c) > ' ' && c != '#' && c != '"'; }

bool isPlain(std::string_view signature) {
  return !signature.empty() && std::all_of(signature.begin(), signature.end(), isSignatureCharacter);
}

// ORACLE/GROUP/KIND[/DETAIL]
bool looksLikeSignature(std::string_view text) {
  size_t first = text.find('/');
  size_t second = first == std::string_view::npos ? first : text.find('/', first + 1);
  return second != std::string_view::npos && first > 0 && second > first + 1 && second + 1 < text.size();
}

Result<std::string> scanSignature(Scanner& scanner) {
  Scanner begin = scanner;
  std::string signature;
  if (scanner.peek() == '"') {
    auto quoted = scanner.quoted();
    if (!quoted) return quoted;
    signature = std::move(*quoted);
  } else {
    while (!scanner.atEnd() && isSignatureCharacter(scanner.peek())) {
      signature += scanner.peek();
      scanner.advance();
    }
  }
  if (!looksLikeSignature(signature))
    return begin.expected("'pass' or a signature ORACLE/GROUP/KIND[/DETAIL]");
  return signature;
}

}  // namespace

bool Expectation::appliesTo(std::string_view torch_version) const {
  if (!from.empty() && !open_range && to.empty()) return compareToBound(torch_version, from) == 0;
  return (from.empty() || compareToBound(torch_version, from) >= 0) &&
         (to.empty() || compareToBound(torch_version, to) <= 0);
}

Result<Expectation> scanExpectation(Scanner& scanner) {
  Expectation expectation;
  for (std::string_view word = scanner.word(); !word.empty(); word = scanner.word()) {
    expectation.group += word;
    if (scanner.peek() != '.') break;
    expectation.group += '.';
    scanner.advance();
  }
  if (expectation.group.empty() || expectation.group.back() == '.') {
    return scanner.expected("a lane or a group of lanes such as stock");
  }
  if (scanner.accept("@")) {
    if (auto range = scanRange(scanner, expectation); !range) return tl::make_unexpected(range.error());
  }
  if (scanner.peek() != ' ' && scanner.peek() != '\t')
    return scanner.expected("'@' and versions, or a blank");
  scanner.skipBlanks();
  Scanner ahead = scanner;
  if (ahead.word() == "pass" && (ahead.atLineEnd() || ahead.peek() == ' ' || ahead.peek() == '\t')) {
    scanner = ahead;
    return expectation;
  }
  do {
    auto signature = scanSignature(scanner);
    if (!signature) return tl::make_unexpected(signature.error());
    expectation.signatures.push_back(std::move(*signature));
    scanner.skipBlanks();
  } while (!scanner.atLineEnd() && scanner.peek() != '#');
  return expectation;
}

std::string writeExpectation(const Expectation& expectation) {
  std::string out = expectation.group;
  if (!expectation.from.empty() || !expectation.to.empty()) {
    bool exactly = !expectation.open_range && expectation.to.empty();
    out += fmt::format("@{}{}{}", expectation.from, exactly ? "" : "..", expectation.to);
  }
  if (expectation.signatures.empty()) return out + " pass";
  for (const std::string& signature : expectation.signatures) {
    out += ' ' + (isPlain(signature) ? signature : quote(signature));
  }
  return out;
}

}  // namespace faultline
