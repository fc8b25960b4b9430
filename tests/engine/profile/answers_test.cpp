// The graphs with questions of tests/data/profile: answers.tsv has a row per use.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "tests/engine/profile/support.h"

namespace faultline {
namespace {

struct Row {
  std::string file, graph, value, user, state, has, lacks, conditional, reason;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<Row> readRows() {
  std::istringstream in(test::readFile(std::string(FAULTLINE_TEST_DATA) + "/profile/answers.tsv"));
  std::vector<Row> rows;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = split(line, '\t');
    if (cells.size() != 9) {
      ADD_FAILURE() << line;
      continue;
    }
    rows.push_back(
        {cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], cells[7], cells[8]});
  }
  return rows;
}

std::string join(const ProfileDimensions& fields) {
  std::vector<std::string> words;
  for (const auto& field : fields) words.push_back(field.known() ? std::to_string(field.value) : "*");
  return fmt::format("{}", fmt::join(words, ","));
}

bool anyKnown(const ProfileDimensions& fields) {
  for (const auto& field : fields) {
    if (field.known()) return true;
  }
  return false;
}

// The known fields as answers.tsv writes them.
std::map<std::string, std::string> knownFields(const ProfileLookup& lookup) {
  std::map<std::string, std::string> known;
  if (lookup.dtype.known()) known["dtype"] = c10::toString(lookup.dtype.value);
  if (lookup.device.known()) known["device"] = lookup.device.value.str();
  if (lookup.rank.known()) known["rank"] = std::to_string(lookup.rank.value);
  if (anyKnown(lookup.sizes)) known["sizes"] = join(lookup.sizes);
  if (anyKnown(lookup.strides)) known["strides"] = join(lookup.strides);
  if (lookup.requires_grad.known()) known["requires_grad"] = lookup.requires_grad.value ? "1" : "0";
  return known;
}

std::string reasons(const ProfileLookup& lookup) {
  std::string all = lookup.why_not.text() + "|" + lookup.dtype.why.text() + "|" + lookup.rank.why.text() +
                    "|" + lookup.requires_grad.why.text();
  for (const auto& field : lookup.sizes) all += "|" + field.why.text();
  for (const auto& field : lookup.strides) all += "|" + field.why.text();
  return all;
}

// A use, found again after propagation by its user.
struct Question {
  Row row;
  Use use;
};

std::string nameOfGraph(const Node* call, size_t index) {
  return std::string(call->kind().toUnqualString()) + "_" + std::to_string(index);
}

// Which graph a node stands in, as answers.tsv names it.
std::map<const Graph*, std::string> graphNames(Graph& graph) {
  std::map<const Graph*, std::string> names = {{&graph, "main"}};
  std::map<std::string, size_t> counts;
  for (Node* node : test::allNodes(graph)) {
    if (!node->hasAttribute(torch::jit::attr::Subgraph)) continue;
    const size_t index = counts[node->kind().toQualString()]++;
    names[node->g(torch::jit::attr::Subgraph).get()] = nameOfGraph(node, index);
  }
  return names;
}

std::vector<Use> usesOf(Graph& graph, const Row& row) {
  const auto names = graphNames(graph);
  std::string user = row.user;
  size_t calls = 0;
  size_t wanted_call = 0;
  if (auto at = user.rfind('_'); user.rfind("prim::DifferentiableGraph_", 0) == 0) {
    wanted_call = std::stoul(user.substr(at + 1));
    user = user.substr(0, at);
  }
  std::vector<Use> found;
  for (Node* node : test::allNodes(graph)) {
    if (names.at(node->owningGraph()) != row.graph) continue;
    const bool is_return = node->kind() == torch::jit::prim::Return;
    if (row.user == "return" ? !is_return : node->kind().toQualString() != user) continue;
    if (user == "prim::DifferentiableGraph" && calls++ != wanted_call) continue;
    for (size_t offset = 0; offset < node->inputs().size(); ++offset) {
      if ("%" + node->input(offset)->debugName() == row.value) found.emplace_back(node, offset);
    }
  }
  return found;
}

std::string check(const Row& row, const ProfileLookup& lookup) {
  std::string wrong;
  if (toString(lookup.state) != row.state) wrong += fmt::format(" state {}", toString(lookup.state));
  const auto known = knownFields(lookup);
  if (row.has != "-") {
    for (const std::string& field : split(row.has, ' ')) {
      const auto parts = split(field, '=');
      auto it = known.find(parts[0]);
      if (it == known.end() || it->second != parts[1]) {
        wrong += fmt::format(" {} is {}", parts[0], it == known.end() ? "not known" : it->second);
      }
    }
  }
  if (row.lacks != "-") {
    for (const std::string& field : split(row.lacks, ' ')) {
      if (known.count(field)) wrong += fmt::format(" {} is known", field);
    }
  }
  if (row.conditional != "-" && lookup.conditional != (row.conditional == "yes"))
    wrong += " conditional is wrong";
  if (row.reason != "-" && reasons(lookup).find(row.reason) == std::string::npos) {
    wrong += fmt::format(" reasons {} do not name {}", reasons(lookup), row.reason);
  }
  return wrong;
}

TEST(ProfileAnswers, AreAsWrittenBeforeAndAfterPropagation) {
  const std::vector<Row> rows = readRows();
  ASSERT_GT(rows.size(), 45u);
  std::map<std::string, std::vector<Row>> by_file;
  for (const Row& row : rows) by_file[row.file].push_back(row);
  for (const auto& [file, questions] : by_file) {
    auto graph = test::parseCase(file);
    std::vector<std::pair<Row, Use>> asked;
    {
      const ProfileIndex index(*graph);
      for (const Row& row : questions) {
        const std::vector<Use> uses = usesOf(*graph, row);
        EXPECT_FALSE(uses.empty()) << file << " " << row.value << " in " << row.user;
        for (const Use& use : uses) {
          EXPECT_EQ(check(row, index.lookup(use)), "")
              << file << " " << row.graph << " " << row.value << " in " << row.user;
          asked.emplace_back(row, use);
        }
      }
    }
    propagateProfileNode(graph);
    graph->lint();
    const ProfileIndex index(*graph);
    for (const auto& [row, use] : asked) {
      const ProfileLookup lookup = index.lookup(use);
      EXPECT_EQ(check(row, lookup), "") << file << " after propagation, " << row.value << " in " << row.user;
      Node* feed = use.user->input(use.offset)->node();
      if (lookup.type == nullptr) {
        EXPECT_EQ(index.retrieve(use), nullptr);
        continue;
      }
      EXPECT_EQ(index.retrieve(use), feed) << file << " " << row.value << " in " << row.user;
      EXPECT_EQ(index.explain(use).node, feed);
      EXPECT_EQ(feed->kind(), torch::jit::prim::profile);
      EXPECT_EQ(feed->owningBlock(), use.user->owningBlock());
    }
    EXPECT_TRUE(validateProfileNode(graph)) << file;
    for (const ProfileFinding& finding : findProfileViolations(*graph))
      ADD_FAILURE() << file << ": " << finding.message;
    const std::string once = writeGraph(*graph);
    propagateProfileNode(graph);
    EXPECT_EQ(writeGraph(*graph), once) << file << ": not idempotent";
  }
}

}  // namespace
}  // namespace faultline
