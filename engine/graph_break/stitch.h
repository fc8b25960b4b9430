// The outer graph of stock prim::DifferentiableGraph nodes.
#pragma once
#include "engine/graph_break/working_copy.h"
#include "engine/runtime/compiled_graph.h"

namespace faultline {

std::shared_ptr<Graph> stitch(const WorkingCopy& work, const CompiledGraph::Impl& impl);

}  // namespace faultline
