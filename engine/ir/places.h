// Where the nodes of a graph stand in the text that it was read from, for errors that are found later.
#pragma once
#include <unordered_map>

#include "faultline/ir.h"

namespace faultline {

using NodePlaces = std::unordered_map<const Node*, SourceLocation>;  // of the op's name

// readGraph and verifyGraph; an error of the latter has the line and column of the node that it names. The
// pointers are those of the graph that is returned.
Result<std::shared_ptr<Graph>> readGraphWithPlaces(std::string_view text, size_t first_line,
                                                   NodePlaces& places);
Result<void> verifyGraphWithPlaces(const Graph& graph, const NodePlaces& places);

}  // namespace faultline
