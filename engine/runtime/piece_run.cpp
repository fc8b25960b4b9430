#include "engine/runtime/piece_run.h"

#include <torch/csrc/autograd/graph_task.h>

namespace faultline {

void PieceRun::backwardBegins() {
  const int task = torch::autograd::get_current_graph_task_id();
  if (task_.exchange(task) != task) {
    seq_ = timeline_->begin(TimelineEvent::What::Backward, piece_, forward_);
  }
}

}  // namespace faultline
