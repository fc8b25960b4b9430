// Kernels of libtorch that give other gradients for NaN in the elements they take eight at a time than in the
// rest: with them, equal values in another memory layout are no fault of a lane.
#pragma once
#include "generators/case/case.h"

namespace faultline {

// The case with, in front of each op that has such a kernel, the operator `faultline::notice_nan(Tensor x) ->
// ()`. The graph is a copy.
Case noticingNan(const Case& c);

// While one lives, what these operators are given in this thread is looked at.
class NanNotice {
 public:
  NanNotice();
  ~NanNotice();
  NanNotice(const NanNotice&) = delete;
  NanNotice& operator=(const NanNotice&) = delete;

  // One of them was given a NaN.
  bool seen() const { return seen_; }

 private:
  bool seen_ = false;
  bool* before_;
};

}  // namespace faultline
