#include "oracles/passes/pass_table.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/profile/evidence.h"
#include "engine/support/check.h"
#include "faultline/ir.h"
#include "faultline/profile.h"
#include "oracles/exec/errors.h"
#include "oracles/passes/sample_run.h"

namespace faultline {
namespace {

namespace prim = torch::jit::prim;

struct NodeCounts {
  uint64_t evidence = 0, clones = 0;
};

NodeCounts countProfileNodes(const Graph& graph) {
  NodeCounts counts;
  std::vector<const torch::jit::Block*> open = {graph.block()};
  while (!open.empty()) {
    const torch::jit::Block* block = open.back();
    open.pop_back();
    for (const Node* node : block->nodes()) {
      if (node->kind() == prim::profile) ++(profile::isClone(node) ? counts.clones : counts.evidence);
      for (const torch::jit::Block* inner : node->blocks()) open.push_back(inner);
      if (node->hasAttribute(torch::jit::attr::Subgraph))
        open.push_back(node->g(torch::jit::attr::Subgraph)->block());
    }
  }
  return counts;
}

void countAnswers(const Graph& graph, uint64_t& answered, uint64_t& uses) {
  const ProfileIndex index(graph);
  for (const Use& use : profileSites(graph)) {
    if (use.user->kind() == prim::profile) continue;
    ++uses;
    answered += index.known(use).type != nullptr ? 1 : 0;
  }
}

// Answers held against what arrives at their uses; the names of fields that do not agree.
class Comparer {
 public:
  Comparer(PassRow& row, bool grad_mode) : row_(row), grad_mode_(grad_mode) {}

  void compare(const Use& use, const ProfileLookup& answer, const SeenTensor& seen) {
    if (answer.conditional || seen.times == seen.absent) return;
    use_ = &use;
    field("defined", answer.defined, seen.defined);
    field("dtype", answer.dtype, seen.dtype);
    field("device", answer.device, seen.device);
    field("rank", answer.rank, seen.rank);
    if (grad_mode_) field("requires_grad", answer.requires_grad, seen.requires_grad);
    for (size_t i = 0; i < answer.sizes.size() && answer.sizes.size() == seen.sizes.size(); ++i)
      field("sizes", answer.sizes[i], seen.sizes[i]);
    for (size_t i = 0; i < answer.strides.size() && answer.strides.size() == seen.strides.size(); ++i)
      field("strides", answer.strides[i], seen.strides[i]);
  }

 private:
  template <class T>
  void field(const char* name, const ProfileField<T>& answer, const SeenField<T>& seen) {
    if (!answer.known() || !seen.seen || (seen.known() && seen.value == answer.value)) return;
    ++row_.wrong[name];
    row_.example = fmt::format("%{} in {}: another {} arrives", use_->user->input(use_->offset)->debugName(),
                               use_->user->kind().toQualString(), name);
  }

  PassRow& row_;
  const bool grad_mode_;
  const Use* use_ = nullptr;
};

void holdAgainstRun(const Graph& graph, const Case& c, PassRow& row) {
  auto recorder = Recorder::instrument(graph, {.inline_subgraphs = true});
  if (!recorder || !runSample(*recorder, c)) return;
  ++row.ran;
  const Recording recording = recorder->recording();
  const std::vector<Use> sites = profileSites(graph);
  const ProfileIndex index(graph);
  Comparer comparer(row, c.runs[0].grad_mode);
  for (size_t i = 0; i < sites.size() && i < recording.sites.size(); ++i) {
    if (!recording.sites[i].inside) comparer.compare(sites[i], index.lookup(sites[i]), recording.merged(i));
  }
}

bool isStale(const std::string& kind) { return kind != "not_at_feed"; }

void tryPass(const StockPass& pass, const ProfiledSample& sample, PassRow& row) {
  auto graph = cloneGraph(*sample.graph);
  const std::string before = writeGraph(*graph);
  try {
    pass.run(graph);
  } catch (...) {
    ++row.threw;
    if (row.example.empty()) row.example = describeException(std::current_exception()).detail;
    return;
  }
  ++row.graphs;
  if (writeGraph(*graph) == before) return;
  ++row.changed;
  if (!verifyGraph(*graph)) {
    ++row.invalid;
    return;
  }
  const NodeCounts had = countProfileNodes(*sample.graph), has = countProfileNodes(*graph);
  row.evidence_lost += had.evidence - std::min(had.evidence, has.evidence);
  row.clones_lost += had.clones - std::min(had.clones, has.clones);
  countAnswers(*sample.graph, row.answered_before, row.uses_before);
  for (const ProfileFinding& finding : findProfileViolations(*graph)) ++row.findings[finding.kind];
  propagateProfileNode(graph);
  for (const ProfileFinding& finding : findProfileViolations(*graph)) {
    ++row.staying[finding.kind];
    if (isStale(finding.kind)) row.example = finding.message;
  }
  countAnswers(*graph, row.answered_after, row.uses_after);
  if (sample.program != nullptr) holdAgainstRun(*graph, *sample.program, row);
}

PassVerdict verdictOf(const PassRow& row) {
  if (row.changed == 0) return row.threw > 0 ? PassVerdict::Throws : PassVerdict::Idle;
  if (row.invalid == row.changed) return PassVerdict::Invalid;
  if (!row.wrong.empty()) return PassVerdict::WrongAnswers;
  if (!row.staying.empty()) return PassVerdict::Contradicts;
  // A pass may take uses away, and their answers with them: what counts is the share.
  const auto share = [](uint64_t answered, uint64_t uses) {
    return uses == 0 ? 1 : static_cast<double>(answered) / static_cast<double>(uses);
  };
  if (share(row.answered_after, row.uses_after) <
      share(row.answered_before, row.uses_before) - kShareThatMayGo)
    return PassVerdict::LosesAnswers;
  return row.findings.empty() ? PassVerdict::Keeps : PassVerdict::Propagate;
}

// What a child found out, as text.
template <class Row, class Field>
void eachField(Row& row, Field field) {
  field("graphs", row.graphs);
  field("changed", row.changed);
  field("threw", row.threw);
  field("invalid", row.invalid);
  field("ran", row.ran);
  field("evidence_lost", row.evidence_lost);
  field("clones_lost", row.clones_lost);
  field("answered_before", row.answered_before);
  field("uses_before", row.uses_before);
  field("answered_after", row.answered_after);
  field("uses_after", row.uses_after);
  field("findings", row.findings);
  field("staying", row.staying);
  field("wrong", row.wrong);
  field("example", row.example);
}

std::string written(const PassRow& row) {
  nlohmann::json json;
  eachField(row, [&](const char* name, const auto& value) { json[name] = value; });
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void readInto(PassRow& row, const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  eachField(row, [&](const char* name, auto& value) { json.at(name).get_to(value); });
}

// Runs `work` in a child and gives `take` what it returned. Returns how the child died, empty when it did
// not.
std::string inChild(const std::function<std::string()>& work,
                    const std::function<void(const std::string&)>& take) {
  int ends[2];
  FAULTLINE_CHECK(pipe(ends) == 0, "a pipe");
  std::fflush(nullptr);
  const pid_t child = fork();
  FAULTLINE_CHECK(child >= 0, "a child process");
  if (child == 0) {
    close(ends[0]);
    const std::string text = work();
    for (size_t done = 0; done < text.size();) {
      const ssize_t count = write(ends[1], text.data() + done, text.size() - done);
      if (count <= 0) break;
      done += static_cast<size_t>(count);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return fmt::format("exit code {}", WEXITSTATUS(status));
  take(text);
  return {};
}

}  // namespace

const char* toString(PassVerdict verdict) {
  switch (verdict) {
    case PassVerdict::Idle:
      return "idle";
    case PassVerdict::Keeps:
      return "keeps it";
    case PassVerdict::Propagate:
      return "propagate again";
    case PassVerdict::LosesAnswers:
      return "loses answers";
    case PassVerdict::Contradicts:
      return "contradicts";
    case PassVerdict::WrongAnswers:
      return "wrong answers";
    case PassVerdict::Invalid:
      return "invalid graphs";
    case PassVerdict::Throws:
      return "throws";
    case PassVerdict::Crashes:
      return "crashes";
  }
  return "idle";
}

std::vector<PassRow> passTable(const std::vector<StockPass>& passes,
                               const std::vector<ProfiledSample>& samples) {
  std::vector<PassRow> rows;
  for (const StockPass& pass : passes) {
    PassRow row;
    row.name = pass.name;
    row.meant_for = pass.meant_for;
    const std::string crash = inChild(
        [&] {
          for (const ProfiledSample& sample : samples) tryPass(pass, sample, row);
          return written(row);
        },
        [&](const std::string& text) { readInto(row, text); });
    row.verdict = crash.empty() ? verdictOf(row) : PassVerdict::Crashes;
    if (!crash.empty()) row.example = crash;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace faultline
