// The profile protocol at work: profiled in the first run, and then either taken out again or made use of.
#include <map>

#include "faultline/apply_profile.h"
#include "faultline/ir.h"
#include "oracles/exec/interpreted.h"
#include "oracles/exec/lanes.h"
#include "oracles/exec/profile_case.h"

namespace faultline {
namespace {

std::vector<ProfileLookup> lookupAll(const Graph& graph, const std::vector<Use>& uses) {
  const ProfileIndex index(graph);
  std::vector<ProfileLookup> lookups;
  lookups.reserve(uses.size());
  for (const Use& use : uses) lookups.push_back(index.lookup(use));
  return lookups;
}

Result<SpecialisedProgram> applyGuarded(const std::shared_ptr<Graph>& graph) {
  auto applied = applyProfile(graph);
  if (!applied) return tl::make_unexpected(applied.error());
  const size_t pruned = applied->report().pruned;
  auto program = std::make_shared<AppliedProfile>(std::move(*applied));
  return SpecialisedProgram{[program](torch::jit::Stack& stack) { program->run(stack); }, pruned};
}

// A recorder with its graph ready to run.
class RecordedProgram {
 public:
  explicit RecordedProgram(const Graph& graph)
      : recorder_(*Recorder::instrument(graph, {.inline_subgraphs = true})),
        code_(recorder_.graph(), "faultline") {}
  void run(torch::jit::Stack& stack) {
    const Recorder::Run run(recorder_);
    torch::jit::InterpreterState(code_).run(stack);
  }
  Recording recording() const { return recorder_.recording(); }

 private:
  Recorder recorder_;
  torch::jit::Code code_;
};

std::shared_ptr<Graph> inlined(const std::shared_ptr<Graph>& graph) {
  auto copy = graph->copy();
  inlineSubgraphs(*copy);
  return copy;
}

// Of the uses that executed: how many have an answer, in all and by the block they stand in; and of those
// without one, how many for which reason.
void shareAnswers(const ProfileTrace& profile, std::vector<ShareTrace>& shares) {
  std::map<std::string, ShareTrace> by_name;
  const auto count = [&](const std::string& name, bool hit) {
    ShareTrace& share = by_name.try_emplace(name, ShareTrace{name}).first->second;
    share.of += 1;
    share.hits += hit ? 1 : 0;
  };
  std::map<std::string, uint64_t> reasons;
  uint64_t silent = 0;
  for (const ProfileUseTrace& use : profile.uses) {
    const bool executed = std::any_of(use.seen.begin(), use.seen.end(),
                                      [](const SeenTensor& seen) { return seen.times > seen.absent; });
    if (!executed) continue;
    count("answered", use.before.answered);
    count("answered_in_" + use.place, use.before.answered);
    if (use.before.answered) continue;
    ++silent;
    ++reasons[use.why_not];
  }
  for (const auto& entry : by_name) shares.push_back(entry.second);
  // Every reason is counted against all of them, so that the parts add up.
  for (size_t kind = 0; kind <= static_cast<size_t>(ReasonKind::NotIndexed); ++kind) {
    const std::string name = toString(static_cast<ReasonKind>(kind));
    if (silent > 0) shares.push_back({"no_answer_" + name, reasons[name], silent});
  }
}

class RemovedProgram : public LaneProgram {
 public:
  RemovedProgram(ProfiledCase profiled, const ProfilePasses& passes, uint64_t seed)
      : profiled_(std::move(profiled)), passes_(passes), seed_(seed), first_(*profiled_.plain) {}

  void run(torch::jit::Stack& stack) override {
    if (again_) return again_->run(stack);
    first_.run(stack);
    if (!profile_) remove();
  }

  void describe(Trace& trace) override {
    if (!profile_) return;
    trace.graph_text = profile_->removed;
    std::vector<Recording> recordings = {first_.recording()};
    if (again_) recordings.push_back(again_->recording());
    addSeen(*profile_, recordings);
    shareAnswers(*profile_, trace.shares);
    trace.profile = std::move(profile_);
  }

 private:
  // After the first run that ends: its recording, or what the case brought along, is the profile.
  void remove() {
    const Recording recording = first_.recording();
    auto graph =
        profiled_.kept ? profiled_.kept->copy() : withSomeProfileNodes(*profiled_.plain, recording, seed_);
    std::shared_ptr<Graph> removed;
    profile_ = traceProfile(graph, passes_, removed);
    profile_->evidence = profiled_.kept ? "kept" : "recorded";
    // A graph in which nodes are left would end the process; the oracle has its text, and the lane goes on as
    // it was.
    if (profileSites(*removed).size() == recording.sites.size()) again_.emplace(*removed);
  }

  const ProfiledCase profiled_;
  const ProfilePasses passes_;
  const uint64_t seed_;
  RecordedProgram first_;
  std::optional<RecordedProgram> again_;
  std::optional<ProfileTrace> profile_;
};

class ProfiledProgram : public LaneProgram {
 public:
  ProfiledProgram(ProfiledCase profiled, const ProfilePasses& passes, uint64_t seed)
      : profiled_(std::move(profiled)), passes_(passes), seed_(seed) {
    if (profiled_.kept) {
      specialise(profiled_.kept->copy());
    } else {
      first_.emplace(*profiled_.plain);
    }
  }

  void run(torch::jit::Stack& stack) override {
    if (specialised_) return specialised_->run(stack);
    if (unspecialised_) return unspecialised_->run(stack);
    first_->run(stack);
    specialise(withSomeProfileNodes(*profiled_.plain, first_->recording(), seed_));
  }

  void describe(Trace& trace) override {
    trace.compiled_whole = specialised_.has_value();
    trace.shares.push_back({"pruned", specialised_ && specialised_->pruned > 0 ? 1u : 0u, 1});
  }

 private:
  // Nodes that came with the case may be stale: guards are for that. What was recorded just now must hold.
  void specialise(const std::shared_ptr<Graph>& graph) {
    passes_.propagate(graph);
    if (profiled_.kept || validateProfileNode(graph)) {
      auto program = passes_.apply(graph);
      if (program) {
        specialised_ = std::move(*program);
        return;
      }
    }
    passes_.remove(*graph);
    unspecialised_.emplace(inlined(graph));
  }

  const ProfiledCase profiled_;
  const ProfilePasses passes_;
  const uint64_t seed_;
  std::optional<RecordedProgram> first_;
  std::optional<SpecialisedProgram> specialised_;
  std::optional<InterpretedProgram> unspecialised_;
};

template <class Program>
class ProfileLane : public ProgramLane {
 public:
  ProfileLane(std::string name, ProfilePasses passes)
      : ProgramLane(std::move(name)), passes_(std::move(passes)) {}

 protected:
  std::unique_ptr<LaneProgram> prepare(const Case& c, PreparedCase& prepared, Trace&) override {
    return std::make_unique<Program>(profiledCase(c, prepared), passes_, c.seed);
  }

 private:
  ProfilePasses passes_;
};

}  // namespace

ProfilePasses engineProfilePasses() {
  return {[](const std::shared_ptr<Graph>& graph) { propagateProfileNode(graph); },
          [](Graph& graph) { removeProfileNodes(graph); }, lookupAll, applyGuarded};
}

std::unique_ptr<Lane> makeRemovedLane(ProfilePasses passes) {
  return std::make_unique<ProfileLane<RemovedProgram>>("engine.removed", std::move(passes));
}
std::unique_ptr<Lane> makeProfiledLane(ProfilePasses passes) {
  return std::make_unique<ProfileLane<ProfiledProgram>>("engine.profiled", std::move(passes));
}
std::unique_ptr<Lane> makeRemovedLane() { return makeRemovedLane(engineProfilePasses()); }
std::unique_ptr<Lane> makeProfiledLane() { return makeProfiledLane(engineProfilePasses()); }

}  // namespace faultline
