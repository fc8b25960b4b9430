#include "oracles/exec/errors.h"

#include <stdexcept>

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/runtime/jit_exception.h>

namespace faultline {
namespace {

template <class E>
ErrorTrace described(E error) {
  return describeException(std::make_exception_ptr(error));
}

TEST(Errors, RowsOfTheTable) {
  EXPECT_EQ(
      errorDetail(
          "The following operation failed in the TorchScript interpreter.\nRuntimeError: a view of a leaf "
          "Variable that requires grad is being used in an in-place operation."),
      "view_of_leaf");
  EXPECT_EQ(
      errorDetail("one of the variables needed for gradient computation has been modified by an inplace "
                  "operation: [torch.FloatTensor [2, 3]]"),
      "modified_inplace");
  EXPECT_TRUE(isKnownError("view_of_leaf"));
  EXPECT_FALSE(isKnownError("some_words"));
}

TEST(Errors, OtherTextsLoseWhatVaries) {
  EXPECT_EQ(errorDetail("Wanted 3 of [2, 3] in 'weird.name' at /a/b.cpp:12, got float32"),
            "wanted_of_in_at_got");
  EXPECT_EQ(errorDetail("Wanted 7 of [5, 3, 1] in 'other' at /c.cpp:9, got float64"), "wanted_of_in_at_got");
  EXPECT_EQ(errorDetail("can't do this"), "cant_do_this");
  EXPECT_EQ(errorDetail("12"), "other");
  EXPECT_EQ(errorDetail("The following operation failed in the TorchScript interpreter.\nTraceback of "
                        "TorchScript (most recent call last):\nbuiltins.ValueError: no good\n"),
            "no_good");
}

TEST(Errors, ClassesAreThoseOfPython) {
  EXPECT_EQ(described(c10::IndexError({__func__, __FILE__, 1}, "x")).type, "IndexError");
  EXPECT_EQ(described(c10::NotImplementedError({__func__, __FILE__, 1}, "x")).type, "NotImplementedError");
  EXPECT_EQ(described(std::runtime_error("x")).type, "RuntimeError");
  EXPECT_EQ(described(std::bad_alloc()).type, "MemoryError");
  EXPECT_EQ(described(torch::jit::JITException("x", "KeyError")).type, "KeyError");
  EXPECT_EQ(described(7).type, "BaseException");
}

TEST(Errors, TextHasNoBacktrace) {
  try {
    TORCH_CHECK(false, "words");
  } catch (...) {
    EXPECT_EQ(describeException(std::current_exception()).text, "words");
  }
}

}  // namespace
}  // namespace faultline
