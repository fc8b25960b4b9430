// The worker of the tests: planted lanes, and with `--plant-op` an operator that segfaults whenever it is
// executed, be it by the generator or by a lane.
#include <cstring>

#include <torch/library.h>

#include "oracles/workers/worker.h"
#include "tests/oracles/workers/planted_lanes.h"

namespace {

at::Tensor crash(const at::Tensor& x) {
  faultline::planted::segfault();
  return x;
}

}  // namespace

int main(int argc, char** argv) {
  faultline::planted::registerLanes();
  if (argc > 1 && std::strcmp(argv[1], "--plant-op") == 0) {
    static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
    library.impl("cosh", &crash);
    argv[1] = argv[0];
    return faultline::workerMain(argc - 1, argv + 1);
  }
  return faultline::workerMain(argc, argv);
}
