#include "oracles/exec/observe.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline {
namespace {

using testing::ElementsAre;

std::vector<std::string> pathsOf(const std::vector<FoundTensor>& found) {
  std::vector<std::string> paths;
  for (const FoundTensor& f : found) paths.push_back(f.path);
  return paths;
}

TEST(FindTensors, EntersListsTuplesAndDicts) {
  const at::Tensor t = at::ones({2});
  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("k", t);
  const c10::IValue value = c10::ivalue::Tuple::create(
      {t, c10::List<at::Tensor>({t, t}), c10::IValue(int64_t{3}), c10::IValue(), dict, c10::IValue(0.1)});
  std::vector<FoundTensor> tensors;
  std::vector<ScalarTrace> scalars;
  findTensors(value, "out0", 0, tensors, &scalars);
  EXPECT_THAT(pathsOf(tensors), ElementsAre("out0[0]", "out0[1][0]", "out0[1][1]", "out0[4][\"k\"]"));
  std::vector<std::string> texts;
  for (const ScalarTrace& s : scalars) texts.push_back(s.path + "=" + s.text);
  EXPECT_THAT(texts, ElementsAre("out0[1].len=2", "out0[2]=3", "out0[3]=None", "out0[4].len=1",
                                 "out0[5]=0.10000000000000001"));
}

TEST(Observe, ValuesAreACopy) {
  at::Tensor t = at::zeros({2, 3}).t();
  const TensorTrace trace = observeTensor(t, "out0");
  t.fill_(1);
  EXPECT_EQ(trace.sizes, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(trace.strides, (std::vector<int64_t>{1, 3}));
  EXPECT_TRUE(trace.values.is_contiguous());
  EXPECT_EQ(trace.values.sum().item<double>(), 0);
  EXPECT_FALSE(trace.values.requires_grad());
}

TEST(Observe, LooksAtAutogradWithoutTouchingIt) {
  const at::Tensor leaf = at::ones({2}).requires_grad_();
  const at::Tensor result = leaf * 2;
  const auto version = result._version();
  const TensorTrace trace = observeTensor(result, "out0");
  EXPECT_TRUE(trace.requires_grad);
  EXPECT_FALSE(trace.is_leaf);
  EXPECT_EQ(result._version(), version);
  EXPECT_TRUE(observeTensor(leaf, "in0").is_leaf);
}

TEST(Observe, UndefinedAndConjugatedTensors) {
  EXPECT_FALSE(observeTensor(at::Tensor(), "out0").defined);
  const at::Tensor z = at::complex(at::ones({1}), at::ones({1}));
  EXPECT_EQ(at::imag(observeTensor(z.conj(), "out0").values).item<float>(), -1.f);
}

TEST(Identities, BySharedStorageEvenWithoutElements) {
  Identities identities;
  const at::Tensor a = at::ones({2, 2});
  const at::Tensor empty = at::ones({0});
  EXPECT_EQ(identities.storageOf(a), identities.storageOf(a.t()));
  EXPECT_NE(identities.objectOf(a), identities.objectOf(a.t()));
  EXPECT_NE(identities.storageOf(empty), identities.storageOf(at::ones({0})));
  EXPECT_EQ(identities.storageOf(empty), identities.storageOf(empty.view({0, 3})));
  EXPECT_EQ(identities.storageOf(at::Tensor()), -1);
}

}  // namespace
}  // namespace faultline
