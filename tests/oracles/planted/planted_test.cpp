// Every planted bug is caught by its own oracle, with its signature, on cases as they are generated; the lane
// it wraps is quiet on the same cases. What the other oracles said is recorded with the test.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "generators/generate/generate.h"
#include "oracles/judge.h"
#include "oracles/oracle.h"
#include "tests/oracles/planted/planted.h"

namespace faultline {
namespace {

constexpr uint64_t kCases = 200;

class PlantedBugs : public testing::TestWithParam<uint64_t> {};

using Kinds = std::pair<std::vector<std::string>, size_t>;  // of cases: their features, their nodes

Kinds kindsFor(const planted::Bug& bug) { return {bug.features, bug.nodes}; }

Case generated(uint64_t seed, uint64_t index, const Kinds& kinds) {
  const uint64_t own = caseSeed(seed, index);
  Choices choices = Choices::fromSeed(own);
  GenerateOptions options;
  options.features = kinds.first;
  if (kinds.second != 0) {
    options.min_nodes = kinds.second;
    options.max_nodes = 2 * kinds.second;
  }
  return generateCase(choices, own, options);
}

struct Catches {
  std::map<std::string, uint64_t> caught;  // bug to case index
  std::map<std::string, std::set<std::string>> others;
};

// Bugs for which such cases are generated, one case for all of them at a time.
void hunt(uint64_t seed, const Kinds& kinds, Catches& catches) {
  for (uint64_t index = 0; index < kCases; ++index) {
    JudgeOptions options;
    std::set<std::string> clean;
    std::vector<const planted::Bug*> at_large;
    for (const planted::Bug& bug : planted::bugs()) {
      if (kindsFor(bug) != kinds || catches.caught.count(bug.name) != 0) continue;
      at_large.push_back(&bug);
      if (clean.insert(bug.lane).second) options.lanes.push_back(bug.lane);
      options.lanes.push_back(bug.laneName());
    }
    if (at_large.empty()) return;
    const Case c = generated(seed, index, kinds);
    for (const Judgement& j : judgeCase(c, options).judgements) {
      if (!j.verdict.failed()) continue;
      EXPECT_EQ(clean.count(j.lane), 0u)
          << "case " << index << ": " << j.signature << ": " << j.verdict.message() << "\n"
          << writeCase(c);
      for (const planted::Bug* bug : at_large) {
        if (j.lane != bug->laneName()) continue;
        if (j.oracle == bug->oracle && bug->matches(j.signature)) {
          catches.caught.emplace(bug->name, index);
        } else {
          catches.others[bug->name].insert(j.signature);
        }
      }
    }
  }
}

TEST_P(PlantedBugs, AreCaughtByTheirOracles) {
  planted::registerBugs();
  std::set<Kinds> kinds;
  for (const planted::Bug& bug : planted::bugs()) kinds.insert(kindsFor(bug));
  Catches catches;
  for (const Kinds& each : kinds) hunt(GetParam(), each, catches);
  auto& [caught, others] = catches;
  for (const planted::Bug& bug : planted::bugs()) {
    EXPECT_EQ(caught.count(bug.name), 1u) << bug.name << " was not caught as " << bug.signature;
    std::string record =
        caught.count(bug.name) != 0 ? "case " + std::to_string(caught[bug.name]) : "not caught";
    for (const std::string& signature : others[bug.name]) record += ", also " + signature;
    RecordProperty(bug.name, record);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlantedBugs, testing::Values(1, 2, 3));

TEST(PlantedBugs, EveryOracleHasOne) {
  std::set<std::string> covered;
  for (const planted::Bug& bug : planted::bugs()) covered.insert(bug.oracle);
  for (const OracleInfo& oracle : allOracles()) EXPECT_EQ(covered.count(oracle.name), 1u) << oracle.name;
}

}  // namespace
}  // namespace faultline
