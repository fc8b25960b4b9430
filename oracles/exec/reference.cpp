// The lane that the others are measured by: no subgraphs, no profile nodes, no executor, eager autograd.
#include "oracles/exec/interpreted.h"
#include "oracles/exec/lanes.h"

namespace faultline {
namespace {

class ReferenceLane : public ProgramLane {
 public:
  ReferenceLane() : ProgramLane("reference") {}

 protected:
  std::unique_ptr<LaneProgram> prepare(const Case&, PreparedCase& prepared, Trace&) override {
    insertSeamNodes(*prepared.graph, prepared.seam_hooks);
    return std::make_unique<InterpretedProgram>(prepared.graph);
  }
};

}  // namespace

std::unique_ptr<Lane> makeReferenceLane() { return std::make_unique<ReferenceLane>(); }

}  // namespace faultline
