// The border to libtorch: what it throws becomes an error with a place in the text.
#pragma once
#include <c10/util/Exception.h>

#include <string>

#include "engine/ir/lexer.h"

namespace faultline {

// What make() gives; if torch throws, fails at `begin` with `prefix` and the first line of torch's message.
template <class Make>
auto guarded(const Lexer& lexer, size_t begin, ErrorKind kind, const std::string& prefix, Make make) {
  std::string why;
  try {
    return make();
  } catch (const c10::Error& error) {
    why = error.what_without_backtrace();
  } catch (const std::exception& error) {
    why = error.what();
  }
  lexer.failAt(begin, prefix + why.substr(0, why.find('\n')), kind);
}

}  // namespace faultline
