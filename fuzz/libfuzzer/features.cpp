#include "fuzz/libfuzzer/features.h"

#include <algorithm>

#include "fuzz/libfuzzer/target.h"
#include "generators/generate/generate.h"

namespace faultline::fuzz {

namespace {

// Counts in steps, so that one piece more is not always something new.
std::string stepOf(size_t count) {
  for (size_t step : {0, 1, 2, 3, 4, 6, 8, 12, 16, 32}) {
    if (count <= step) return std::to_string(step);
  }
  return "many";
}

// Without names of ops and numbers: the sentence itself.
std::string reasonOf(const std::string& text) {
  std::string reason = text.substr(std::min(text.find(": "), text.size()));
  reason.erase(std::remove_if(reason.begin(), reason.end(), [](char c) { return c >= '0' && c <= '9'; }),
               reason.end());
  return reason;
}

void notePairs(const torch::jit::Block* block, const std::string& inside) {
  for (const torch::jit::Node* node : block->nodes()) {
    std::string kind = node->kind().toQualString();
    if (!inside.empty()) seen(inside + kind);
    for (const torch::jit::Value* input : node->inputs()) {
      if (input->node()->kind() != torch::jit::prim::Constant) {
        seen(input->node()->kind().toQualString() + std::string(">") + kind);
      }
    }
    for (const torch::jit::Block* inner : node->blocks()) notePairs(inner, kind + "{");
    bool subgraph = node->hasAttribute(torch::jit::attr::Subgraph) &&
                    node->kindOf(torch::jit::attr::Subgraph) == torch::jit::AttributeKind::g;
    if (subgraph) notePairs(node->g(torch::jit::attr::Subgraph)->block(), kind + "{");
  }
}

}  // namespace

void noteCase(const Case& c) {
  for (const std::string& trait : caseTraits(c)) seen(trait);
  notePairs(c.graph->block(), "");
}

void noteTrace(const Trace& trace) {
  if (!trace.skip.empty()) seen(trace.lane + " skip " + trace.skip);
  seen(trace.lane + " pieces " + stepOf(trace.pieces.size()));
  for (const auto& piece : trace.pieces) {
    seen(trace.lane + " piece " + stepOf(piece.ops.size()) +
         (piece.compiled ? "" : reasonOf(": " + piece.reason)));
  }
  for (const std::string& refused : trace.refused_cuts) seen(trace.lane + " refused" + reasonOf(refused));
  for (const RunTrace& run : trace.runs) {
    for (size_t i = 0; i < run.phases.size(); ++i) {
      seen(trace.lane + " phase " + std::to_string(i) + (run.phases[i].error ? " throws" : " runs"));
    }
  }
}

void noteResult(const CaseResult& result) {
  if (!result.skip.empty()) seen("case " + result.skip);
  for (const Judgement& judgement : result.judgements) {
    const Verdict& verdict = judgement.verdict;
    std::string outcome =
        verdict.passed() ? " passes " + stepOf(verdict.comparisons()) : " skips " + verdict.reason();
    seen(judgement.oracle + " " + judgement.lane + (verdict.failed() ? " fails" : outcome));
  }
}

}  // namespace faultline::fuzz
