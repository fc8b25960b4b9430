#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/support/check.h"
#include "faultline/ir.h"
#include "generators/case/case_text.h"
#include "generators/case/expectation.h"
#include "generators/text/scanner.h"

namespace faultline {
namespace {

std::string writeBackward(const BackwardSpec& spec) {
  switch (spec.kind) {
    case BackwardSpec::Kind::All:
      return "all";
    case BackwardSpec::Kind::Double:
      return "double";
    case BackwardSpec::Kind::Output:
      return fmt::format("output {}", spec.output);
  }
  FAULTLINE_CHECK(false, "a backward phase of no kind");
}

// Longer descriptions, which hold literal values, are not written again when the run before has them too.
constexpr size_t kShort = 64;

std::string writeRun(const CaseRun& run, const CaseRun* before) {
  std::string out = "run:";
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    std::string input = writeInputSpec(run.inputs[i]);
    bool again = before != nullptr && i < before->inputs.size() && before->inputs[i] == run.inputs[i];
    out += (i == 0 ? " " : ", ") + (again && input.size() > kShort ? "~" : input);
  }
  out += '\n';
  if (!run.grad_mode) out += "  nograd\n";
  if (!run.backwards.empty()) {
    std::vector<std::string> phases;
    for (const BackwardSpec& spec : run.backwards) phases.push_back(writeBackward(spec));
    out += fmt::format("  backward: {}\n", fmt::join(phases, ", "));
  }
  return out;
}

std::string writePlan(const Plan& plan) {
  static const Plan usual;
  std::string out;
  if (plan.profile != usual.profile) out += fmt::format("profile: {}\n", plan.profile);
  if (plan.breaks != usual.breaks) out += fmt::format("breaks: {}\n", plan.breaks);
  for (const HookSpec& hook : plan.hooks) {
    const std::string action =
        hook.action == HookAction::Log ? "" : fmt::format(" {}", hookWord(hook.action));
    out += fmt::format("hook: {} {}{}\n", hookWord(hook.kind),
                       hook.seam.empty() ? fmt::format("input {}", hook.input) : "seam " + hook.seam, action);
  }
  if (!plan.passes.empty()) out += fmt::format("passes: {}\n", fmt::join(plan.passes, " "));
  if (plan.ranks != usual.ranks) out += fmt::format("ranks: {}\n", plan.ranks);
  return out;
}

}  // namespace

std::string writeCase(const Case& c) {
  FAULTLINE_CHECK(c.graph != nullptr, "a case without a graph");
  std::string out = fmt::format("faultline case 1\nseed: {}\n", c.seed);
  for (const auto& [name, value] : c.notes) out += fmt::format("note {}: {}\n", name, writeFreeText(value));
  out += writePlan(c.plan);
  for (const Expectation& expectation : c.expectations)
    out += "expect: " + writeExpectation(expectation) + '\n';
  if (!c.known.empty()) out += fmt::format("known: {}\n", fmt::join(c.known, " "));
  for (const UnknownDirective& directive : c.unknown)
    out += fmt::format("{}: {}\n", directive.name, directive.value);
  for (size_t i = 0; i < c.runs.size(); ++i) out += writeRun(c.runs[i], i == 0 ? nullptr : &c.runs[i - 1]);
  return out + '\n' + writeGraph(*c.graph);
}

}  // namespace faultline
