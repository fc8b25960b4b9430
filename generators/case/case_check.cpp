#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "engine/ir/nearest.h"
#include "faultline/break_policy.h"
#include "faultline/ir.h"
#include "generators/case/case_text.h"

namespace faultline {
namespace {

constexpr size_t kMaxRuns = 4;

tl::unexpected<Error> invalid(std::string message, size_t line, size_t column = 1) {
  return fail(ErrorKind::Invalid, std::move(message), SourceLocation{line, column});
}

std::string unknownName(const NodeNames& names, std::string_view name) {
  return fmt::format("the graph has no op '{}'{}", name, didYouMean(name, names.all()));
}

Result<void> checkRun(const Case& c, size_t index, const CasePlaces& places) {
  const CaseRun& run = c.runs[index];
  auto wanted = c.graph->inputs();
  if (run.inputs.size() != wanted.size()) {
    return invalid(
        fmt::format("the graph has {} inputs, this run gives {}", wanted.size(), run.inputs.size()),
        places.runs[index]);
  }
  std::vector<InputSpec> earlier;
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::string why = whyNotFits(run.inputs[i], *wanted[i]->type(), earlier);
    if (!why.empty()) {
      const SourceLocation& place = places.inputs[index][i];
      return invalid(fmt::format("input {} (%{}): {}", i, wanted[i]->debugName(), why), place.line,
                     place.column);
    }
    earlier.push_back(run.inputs[i]);
  }
  for (size_t k = 0; k < run.backwards.size(); ++k) {
    size_t outputs = c.graph->outputs().size();
    if (run.backwards[k].kind == BackwardSpec::Kind::Output && run.backwards[k].output >= outputs) {
      return invalid(fmt::format("output {} of a graph with {} outputs, the first is output 0",
                                 run.backwards[k].output, outputs),
                     places.backwards[index][k]);
    }
  }
  return {};
}

// Policies of other words are kept as they are: lanes answer Skip(plan_unsupported).
Result<void> checkBreaks(const std::string& breaks, const NodeNames& names, size_t line) {
  std::vector<std::string> words;
  std::istringstream stream(breaks);
  for (std::string word; stream >> word;) words.push_back(word);
  if (words[0] != "after") {
    // What begins with no policy's word is kept.
    const std::vector<std::string> usage = BreakPolicy::usage();
    const bool known = std::any_of(usage.begin(), usage.end(), [&](const std::string& policy) {
      return policy.substr(0, policy.find_first_of(":[")) == words[0];
    });
    const auto policy = BreakPolicy::read(breaks);
    if (known && !policy) return invalid(policy.error().message, line);
  }
  if (words[0] == "after") {
    if (words.size() == 1) return invalid("expected names of ops behind 'after'", line);
    for (size_t i = 1; i < words.size(); ++i) {
      if (names.find(words[i]) == nullptr) return invalid(unknownName(names, words[i]), line);
    }
  }
  return {};
}

}  // namespace

Result<void> checkCase(const Case& c, const CasePlaces& places) {
  if (c.runs.empty()) return invalid("a case has at least one 'run:'", places.graph_line);
  if (c.runs.size() > kMaxRuns)
    return invalid(fmt::format("a case has at most {} runs", kMaxRuns), places.runs[kMaxRuns]);
  for (size_t i = 0; i < c.runs.size(); ++i) {
    if (auto run = checkRun(c, i, places); !run) return run;
  }
  NodeNames names(*c.graph);
  if (auto breaks = checkBreaks(c.plan.breaks, names, places.breaks_line); !breaks) return breaks;
  for (size_t i = 0; i < c.plan.hooks.size(); ++i) {
    const HookSpec& hook = c.plan.hooks[i];
    if (hook.seam.empty() ? hook.input >= c.graph->inputs().size() : names.find(hook.seam) == nullptr) {
      return invalid(hook.seam.empty()
                         ? fmt::format("a hook on input {} of a graph with {} inputs, the first is input 0",
                                       hook.input, c.graph->inputs().size())
                         : unknownName(names, hook.seam),
                     places.hooks[i]);
    }
  }
  return {};
}

}  // namespace faultline
