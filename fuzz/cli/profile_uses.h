// Every use of a tensor in a graph and its subgraphs, by name, with what the profile nodes say about it.
#pragma once
#include <string>
#include <vector>

#include "faultline/profile.h"
#include "fuzz/cli/json.h"
#include "fuzz/cli/written_graph.h"

namespace faultline::cli {

struct ProfiledUse {
  std::string graph;  // "main", or names of subgraphs as in writeGraph's tails, joined by '/'
  std::string value;  // "%a"
  std::string user;   // "aten::neg", "prim::DifferentiableGraph_1", "return"
  Use use{nullptr, 0};
  ProfileExplanation answer;
};

// In the order of the text: a graph before its subgraphs. Uses by profile nodes themselves are left out.
std::vector<ProfiledUse> profiledUses(const Graph& graph, const WrittenGraph& written);

// A node as reports name it: "%t", in a subgraph "DifferentiableGraph_1/%t", by its kind where it has no
// output.
std::string nodeName(const Node* node, const WrittenGraph& written);

struct FieldText {
  std::string name, state, why;
};
// Fields without a value, and why: "requires_grad", "ended", "aten::mul_ wrote it".
std::vector<FieldText> missingFields(const ProfileLookup& answer);

Json useJson(const ProfiledUse& use, const WrittenGraph& written);

}  // namespace faultline::cli
