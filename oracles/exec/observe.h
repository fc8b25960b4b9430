// Tensors and other values as plain data of a trace.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/ivalue.h>

#include "oracles/trace.h"

namespace faultline {

// A tensor inside an input or output, however deep in lists, tuples, dicts and optionals.
struct FoundTensor {
  std::string path;     // "out1[2]"
  size_t position = 0;  // of the input or output it stands in
  at::Tensor tensor;    // may be undefined
};

// Appends what stands in `value`; what is no tensor goes to `scalars` where given.
void findTensors(const c10::IValue& value, const std::string& prefix, size_t position,
                 std::vector<FoundTensor>& tensors, std::vector<ScalarTrace>* scalars);

// Numbers storages and objects in the order in which they are seen.
class Identities {
 public:
  int storageOf(const at::Tensor& t);  // -1: it has none
  int objectOf(const at::Tensor& t);

 private:
  std::unordered_map<const void*, int> storages_, objects_;
};

// Metadata and a copy of the values. `identities` may be null: then alias_class and same_object stay -1.
// What compareValues takes: a contiguous copy on the CPU, of a sparse or quantized tensor the numbers it
// means.
at::Tensor copyOfValues(const at::Tensor& t);
// `leaf.grad()`, in the leaf's shape. A program that gives a leaf another shape in place leaves it to chance
// in which one autograd stores the gradient: it copies one that somebody else holds, and takes over others.
at::Tensor gradientOf(const at::Tensor& leaf);
TensorTrace observeTensor(const at::Tensor& t, std::string path, Identities* identities = nullptr);

}  // namespace faultline
