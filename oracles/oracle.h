// An oracle: a check over the traces of lanes. Pure: it runs nothing.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "generators/case/case.h"
#include "oracles/trace.h"
#include "oracles/verdict.h"

namespace faultline {

struct OracleOptions {
  bool strict = false;  // hook_order compares total orders
};

class Oracle {
 public:
  virtual ~Oracle() = default;
  // `traces[0]` is the reference; the lane under judgement is `lane`. A skip with reason "not_applicable"
  // says that the case does not meet the oracle's precondition; any other skip counts as applicable.
  virtual Verdict judge(const Case& c, const Trace& reference, const Trace& lane) const = 0;
};

struct OracleInfo {
  std::string name;  // "forward_equiv"
  std::string help;
  std::vector<std::string> lanes;  // groups or lane names it judges; empty: all but the reference
  std::function<std::unique_ptr<Oracle>(const OracleOptions&)> make;
  bool judges(std::string_view lane, std::string_view group) const;
};

const std::vector<OracleInfo>& allOracles();  // oracles.def
const OracleInfo* findOracle(std::string_view name);

}  // namespace faultline
