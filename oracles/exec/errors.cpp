#include "oracles/exec/errors.h"

#include <cctype>
#include <new>
#include <stdexcept>
#include <vector>

#include <c10/util/Exception.h>
#include <torch/csrc/jit/runtime/jit_exception.h>

#include "engine/support/check.h"

namespace faultline {
namespace {

struct ErrorRow {
  std::string_view detail, part;
};

constexpr ErrorRow kErrorRows[] = {
#define FAULTLINE_ERROR(detail, part) {#detail, part},
#include "oracles/exec/errors.def"
#undef FAULTLINE_ERROR
};

constexpr size_t kDetailWords = 8;  // enough to tell messages apart, short enough for a file name

// A word that is the same on every machine and for every shape: letters only.
bool isPlainWord(std::string_view word) {
  for (char c : word) {
    if (!std::isalpha(static_cast<unsigned char>(c))) return false;
  }
  return word.size() > 1;
}

std::string plainWords(std::string_view line) {
  std::string text;
  size_t words = 0;
  char quote = 0;
  int brackets = 0;
  std::string word;
  auto finish = [&] {
    if (isPlainWord(word) && words < kDetailWords) {
      text += (text.empty() ? "" : "_") + word;
      ++words;
    }
    word.clear();
  };
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
      continue;
    }
    // An apostrophe inside a word ("can't") opens no quotation.
    const bool opens = c == '"' || c == '`' || (c == '\'' && word.empty());
    if (opens) {
      finish();
      quote = c;
    } else if (c == '[' || c == '(' || c == '{' || c == '<') {
      finish();
      ++brackets;
    } else if (c == ']' || c == ')' || c == '}' || c == '>') {
      if (brackets > 0) --brackets;
      word.clear();
    } else if (brackets > 0 || c == '\'') {
      continue;
    } else if (std::isspace(static_cast<unsigned char>(c)) || c == ',' || c == '.' || c == ';' || c == ':') {
      // "a.b", "a/b:3" and the like are names and paths: the separator stays in the word and spoils it.
      const bool inside = c != ',' && c != ';' && !std::isspace(static_cast<unsigned char>(c)) &&
                          i + 1 < line.size() && !std::isspace(static_cast<unsigned char>(line[i + 1]));
      if (inside) {
        word += c;
      } else {
        finish();
      }
    } else {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  finish();
  return text.empty() ? "other" : text;
}

ErrorTrace errorOf(std::string type, std::string text) {
  ErrorTrace error;
  error.type = std::move(type);
  error.detail = errorDetail(text);
  error.text = std::move(text);
  return error;
}

const char* classOf(const c10::Error& e) {
  if (dynamic_cast<const c10::IndexError*>(&e) != nullptr) return "IndexError";
  if (dynamic_cast<const c10::ValueError*>(&e) != nullptr) return "ValueError";
  if (dynamic_cast<const c10::TypeError*>(&e) != nullptr) return "TypeError";
  if (dynamic_cast<const c10::NotImplementedError*>(&e) != nullptr) return "NotImplementedError";
  if (dynamic_cast<const c10::LinAlgError*>(&e) != nullptr) return "LinAlgError";
  if (dynamic_cast<const c10::OutOfMemoryError*>(&e) != nullptr) return "OutOfMemoryError";
  return "RuntimeError";
}

}  // namespace

std::string errorDetail(std::string_view text) {
  const std::string_view line = decisiveLine(text);
  for (const ErrorRow& row : kErrorRows) {
    if (line.find(row.part) != std::string_view::npos) return std::string(row.detail);
  }
  return plainWords(line);
}

bool isKnownError(std::string_view detail) {
  for (const ErrorRow& row : kErrorRows) {
    if (row.detail == detail) return true;
  }
  return false;
}

ErrorTrace describeException(const std::exception_ptr& error) {
  FAULTLINE_CHECK(error != nullptr, "no exception to describe");
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& e) {
    return errorOf(classOf(e), e.what_without_backtrace());
  } catch (const torch::jit::JITException& e) {
    return errorOf(e.getPythonClassName().value_or("RuntimeError"), e.what());
  } catch (const std::out_of_range& e) {
    return errorOf("IndexError", e.what());
  } catch (const std::invalid_argument& e) {
    return errorOf("ValueError", e.what());
  } catch (const std::bad_alloc& e) {
    return errorOf("MemoryError", e.what());
  } catch (const std::exception& e) {
    return errorOf("RuntimeError", e.what());
  } catch (...) {
    return errorOf("BaseException", "an exception that is none of the standard library's");
  }
}

}  // namespace faultline
