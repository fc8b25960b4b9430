// The laws of the profile protocol: propagation is idempotent, changes no answer and is undone by removal;
// what was propagated validates; answers describe the tensors that arrive.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "oracles/compare/phases.h"
#include "oracles/oracles.h"

namespace faultline {
namespace {

// The first line on which two texts differ, for people.
std::string firstDifference(const std::string& a, const std::string& b) {
  size_t line = 0;
  for (size_t i = 0; i < a.size() && i < b.size() && a[i] == b[i]; ++i) {
    if (a[i] == '\n') line = i + 1;
  }
  auto at = [&](const std::string& text) {
    return line < text.size() ? text.substr(line, text.find('\n', line) - line) : std::string("the end");
  };
  return fmt::format("'{}' against '{}'", at(a), at(b));
}

bool mentionsProfileNodes(const std::string& graph) {
  return graph.find("prim::profile") != std::string::npos;
}

bool isContradiction(const std::string& finding) { return finding != "not_at_feed"; }

class ProfileJudge {
 public:
  ProfileJudge(const Case& c, const Trace& lane, Comparison& comparison)
      : case_(c), lane_(lane), profile_(*lane.profile), comparison_(comparison) {}

  void laws() {
    law(profile_.verify_error.empty(), FailureKind::invalid_graph, "not_valid", profile_.verify_error);
    law(profile_.propagated == profile_.propagated_again, FailureKind::invalid_graph, "not_idempotent",
        firstDifference(profile_.propagated, profile_.propagated_again));
    law(profile_.removed == profile_.removed_unpropagated, FailureKind::invalid_graph, "not_undone",
        firstDifference(profile_.removed_unpropagated, profile_.removed));
    law(!mentionsProfileNodes(profile_.removed), FailureKind::invalid_graph, "left_behind",
        "profile nodes are left after removal");
    const bool contradicts =
        std::any_of(profile_.findings_before.begin(), profile_.findings_before.end(), isContradiction);
    law(contradicts || profile_.findings_after.empty(), FailureKind::invalid_graph, "not_validated",
        fmt::format("findings after propagation: {}", fmt::join(profile_.findings_after, ", ")));
    if (profile_.unseen_tried) {
      law(profile_.answers_of_unseen.empty(), FailureKind::unsound_profile, "unseen",
          fmt::format("answers from nodes that never ran: {}", fmt::join(profile_.answers_of_unseen, "; ")));
    }
    for (const ProfileUseTrace& use : profile_.uses) {
      law(use.before == use.after, FailureKind::unsound_profile, "answer_changed",
          fmt::format("the answer at {} changes with propagation", use.at));
    }
  }

  // In runs in which all nodes that ran say what was there.
  void soundness() {
    for (size_t run = 0; run < lane_.runs.size(); ++run) {
      if (lane_.runs[run].phases[0].error || !isDescribed(run)) continue;
      // Answers assume a caller with grad mode.
      const bool grad = case_.runs[std::min(run, case_.runs.size() - 1)].grad_mode;
      for (const ProfileUseTrace& use : profile_.uses) {
        if (use.before.conditional || run >= use.seen.size()) continue;
        compare(use, use.before.fact, use.seen[run], run, grad);
      }
    }
  }

 private:
  void law(bool holds, FailureKind kind, const char* detail, const std::string& message) {
    comparison_.count();
    if (!holds) comparison_.differ(kind, detail, message);
  }

  template <class T>
  static bool describes(const std::optional<T>& claim, const SeenField<T>& seen) {
    return !claim || !seen.seen || (seen.known() && seen.value == *claim);
  }

  static bool describes(const std::vector<std::optional<int64_t>>& claims,
                        const std::vector<SeenField<int64_t>>& seen) {
    for (size_t i = 0; i < claims.size() && i < seen.size(); ++i) {
      if (!describes(claims[i], seen[i])) return false;
    }
    return claims.size() == seen.size() || claims.empty() || seen.empty();
  }

  static bool describes(const ProfileClaimTrace& claim, const SeenTensor& seen) {
    if (claim.unseen) return seen.times == 0;
    const FactTrace& fact = claim.fact;
    return describes(fact.defined, seen.defined) && describes(fact.dtype, seen.dtype) &&
           describes(fact.device, seen.device) && describes(fact.rank, seen.rank) &&
           describes(fact.requires_grad, claim.raw ? seen.requires_grad : seen.stock_grad) &&
           describes(fact.sizes, seen.sizes) && describes(fact.strides, seen.strides);
  }

  bool isDescribed(size_t run) const {
    return std::all_of(profile_.claims.begin(), profile_.claims.end(), [&](const ProfileClaimTrace& claim) {
      if (!claim.site) return false;
      const auto& seen = profile_.uses[*claim.site].seen;
      return run < seen.size() && describes(claim, seen[run]);
    });
  }

  template <class T>
  void field(const char* name, const ProfileUseTrace& use, const std::optional<T>& answer,
             const SeenField<T>& seen, size_t run) {
    if (!answer || !seen.seen) return;
    comparison_.count();
    if (!seen.known() || seen.value != *answer) {
      comparison_.differ(
          FailureKind::unsound_profile, name,
          fmt::format("run {}: the answer at {} says {} {}, and {} arrived", run, use.at, name,
                      static_cast<int64_t>(*answer),
                      seen.known() ? std::to_string(static_cast<int64_t>(seen.value)) : "several"));
    }
  }

  void compare(const ProfileUseTrace& use, const FactTrace& answer, const SeenTensor& seen, size_t run,
               bool grad) {
    field("defined", use, answer.defined, seen.defined, run);
    field("dtype", use, answer.dtype, seen.dtype, run);
    field("rank", use, answer.rank, seen.rank, run);
    if (grad) field("requires_grad", use, answer.requires_grad, seen.requires_grad, run);
    if (answer.device && seen.device.seen) {
      comparison_.count();
      if (!seen.device.known() || seen.device.value != *answer.device) {
        comparison_.differ(FailureKind::unsound_profile, "device", "another device arrived at " + use.at);
      }
    }
    // Another rank is reported as such; sizes that were not followed cannot be compared.
    for (size_t i = 0; i < answer.sizes.size() && answer.sizes.size() == seen.sizes.size(); ++i) {
      field("sizes", use, answer.sizes[i], seen.sizes[i], run);
    }
    for (size_t i = 0; i < answer.strides.size() && answer.strides.size() == seen.strides.size(); ++i) {
      field("strides", use, answer.strides[i], seen.strides[i], run);
    }
  }

  const Case& case_;
  const Trace& lane_;
  const ProfileTrace& profile_;
  Comparison& comparison_;
};

class ProfileLaws : public Oracle {
 public:
  Verdict judge(const Case& c, const Trace&, const Trace& lane) const override {
    if (!lane.profile || c.runs.empty()) return Verdict::skip("not_applicable");
    Comparison comparison(numericProfile(*c.graph));
    ProfileJudge judge(c, lane, comparison);
    judge.laws();
    judge.soundness();
    return comparison.verdict();
  }
};

}  // namespace

std::unique_ptr<Oracle> makeProfileLaws(const OracleOptions&) { return std::make_unique<ProfileLaws>(); }

}  // namespace faultline
