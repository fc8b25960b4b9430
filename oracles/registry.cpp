// The tables of lanes and oracles, and words to names.
#include <algorithm>

#include <fmt/format.h>

#include "engine/support/check.h"
#include "oracles/exec/lanes.h"
#include "oracles/lane.h"
#include "oracles/oracles.h"

namespace faultline {
namespace {

std::vector<LaneInfo>& laneTable() {
  static std::vector<LaneInfo> table = {
#define FAULTLINE_LANE(name, group, factory, help) {name, group, help, [] { return factory(); }},
#include "oracles/lanes.def"
#undef FAULTLINE_LANE
  };
  return table;
}

size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string nearestWord(const std::string& word) {
  std::string best;
  size_t distance = SIZE_MAX;
  for (const LaneInfo& lane : laneTable()) {
    for (const std::string& candidate : {lane.name, lane.group}) {
      if (const size_t d = editDistance(word, candidate); d < distance) {
        distance = d;
        best = candidate;
      }
    }
  }
  return best;
}

// "stock+planted" is a variant of "stock": judged by the oracles that judge it.
std::string_view withoutVariant(std::string_view lane) { return lane.substr(0, lane.find('+')); }

}  // namespace

std::vector<LaneInfo> allLanes() { return laneTable(); }

void registerLane(LaneInfo lane) {
  FAULTLINE_CHECK(findLane(lane.name) == nullptr, "two lanes are called " + lane.name);
  laneTable().push_back(std::move(lane));
}

const LaneInfo* findLane(std::string_view name) {
  for (const LaneInfo& lane : laneTable()) {
    if (lane.name == name) return &lane;
  }
  return nullptr;
}

Result<std::vector<std::string>> resolveLanes(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const bool known = std::any_of(laneTable().begin(), laneTable().end(), [&](const LaneInfo& lane) {
      return lane.name == word || lane.group == word;
    });
    if (!known) {
      return fail(ErrorKind::Invalid,
                  fmt::format("there is no lane or group '{}'; did you mean '{}'?", word, nearestWord(word)));
    }
  }
  std::vector<std::string> names;
  for (const LaneInfo& lane : laneTable()) {
    const bool wanted = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return lane.name == word || lane.group == word;
    });
    if (wanted) names.push_back(lane.name);
  }
  return names;
}

bool OracleInfo::judges(std::string_view lane, std::string_view group) const {
  if (group == "reference") return false;
  if (lanes.empty()) return true;
  const std::string_view plain = withoutVariant(lane);
  return std::any_of(lanes.begin(), lanes.end(),
                     [&](const std::string& wanted) { return wanted == plain || wanted == group; });
}

const std::vector<OracleInfo>& allOracles() {
  static const std::vector<OracleInfo> table = {
#define FAULTLINE_LANES(...) \
  { __VA_ARGS__ }
#define FAULTLINE_ORACLE(name, factory, lanes, help) {name, help, lanes, factory},
#include "oracles/oracles.def"
#undef FAULTLINE_ORACLE
#undef FAULTLINE_LANES
  };
  return table;
}

const OracleInfo* findOracle(std::string_view name) {
  for (const OracleInfo& oracle : allOracles()) {
    if (oracle.name == name) return &oracle;
  }
  return nullptr;
}

}  // namespace faultline
