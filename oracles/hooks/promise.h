// What the graph-break compiler promises about hooks, derived from a case's graph and the pieces it was
// broken into, and whether a hook log keeps it.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "generators/case/case.h"
#include "oracles/trace.h"

namespace faultline {

// "in3" to 3: a hook on an input; nothing for one on a seam, which has the name of an op.
std::optional<size_t> hookedInput(const std::string& on);

class HookPromise {
 public:
  // Aborts when the pieces hold ops that the case's graph does not have.
  HookPromise(const Case& c, const std::vector<PieceTrace>& pieces);

  struct Breach {
    std::string rule;  // "piece_order", "parameter_early", "parameter_late", "seam_late", "seam_early",
                       // "end_early"
    std::string message;
  };
  // `log` of a first-order backward of `run`; `executed`: RunTrace::executed. Adds to `comparisons` how many
  // pairs of events were looked at.
  std::optional<Breach> check(const CaseRun& run, const std::vector<int>& executed,
                              const std::vector<HookTrace>& log, uint64_t& comparisons) const;
  // A backward ended with the last hook of `log`: the inputs whose gradients must be complete by then.
  std::vector<size_t> completeAt(const CaseRun& run, const std::vector<int>& executed,
                                 const std::vector<HookTrace>& log) const;
  // In which graph input `input` is used, under whatever name; and whether a use stands in none.
  const std::set<int>& piecesOf(size_t input) const { return parameters_[input].pieces; }
  bool usedElsewhere(size_t input) const { return parameters_[input].elsewhere; }
  // An op may give it on as it is, so that the gradient comes from whoever uses the op's result.
  bool mayBeHandedOn(size_t input) const { return parameters_[input].handed_on; }

 private:
  struct Parameter {
    std::set<int> pieces;    // in which it is used, under whatever name
    bool returned = false;   // as it is: then a backward may begin at the parameter itself
    bool elsewhere = false;  // a use in no piece
    bool handed_on = false;  // by an op of a piece
  };
  // A piece inside a Loop runs once per round: each is an execution of its own.
  struct Event {
    int piece = 0, execution = 0;
    uint64_t seq = 0;
  };
  struct Pass {
    std::vector<int> executed;  // pieces, by execution
    std::vector<Event> backward;
  };
  std::map<size_t, Parameter> objectsOf(const CaseRun& run) const;
  static std::optional<int> earliest(const Parameter& uses, const std::vector<int>& executed);
  std::optional<Breach> checkParameter(const Parameter& uses, const HookTrace& hook, const Pass& pass,
                                       uint64_t& comparisons) const;
  std::optional<Breach> checkSeam(int producer, const HookTrace& hook, const Pass& pass,
                                  uint64_t& comparisons) const;
  std::vector<int> allExecuted(const std::vector<int>& executed) const;

  size_t piece_count_ = 0;
  std::vector<Parameter> parameters_;  // by graph input
  std::map<std::string, int> seams_;   // hooked value to the piece that makes it
};

}  // namespace faultline
