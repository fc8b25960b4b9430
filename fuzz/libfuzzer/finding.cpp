#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "fuzz/libfuzzer/target.h"

namespace faultline::fuzz {

namespace {

std::string& findingPrefix() {
  static std::string prefix;
  return prefix;
}

std::string slugOf(const std::string& signature) {
  std::string slug;
  for (char c : signature.substr(0, 100)) {
    slug += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' ? c : '_';
  }
  return slug;
}

}  // namespace

void setFindingPrefix(std::string prefix) { findingPrefix() = std::move(prefix); }

void found(const std::string& signature, const std::string& detail, std::string_view text) {
  std::string file = findingPrefix() + slugOf(signature) + ".case";
  std::ofstream(file, std::ios::binary) << "# " << signature << "\n" << text;
  std::fprintf(stderr, "\n%.*s\n%s: %s\n%s\nfaultline replay %s\n", static_cast<int>(text.size()),
               text.data(), target.name, detail.c_str(), signature.c_str(), file.c_str());
  std::abort();
}

}  // namespace faultline::fuzz
