// The engine's lanes under every oracle that judges them. Input: case text, edited by generators/mutate.
#include "fuzz/libfuzzer/features.h"
#include "fuzz/libfuzzer/target.h"
#include "generators/mutate/mutate.h"
#include "oracles/lane.h"

namespace faultline::fuzz {
namespace {

bool run(std::string_view bytes) {
  Result<Case> c = readCase(bytes);
  if (!c || !isSmallCase(*c)) return false;
  noteCase(*c);
  static const std::vector<std::string> lanes = resolveLanes({"engine"}).value();
  JudgeOptions options;
  options.lanes = lanes;
  options.observe = noteTrace;
  CaseResult result = judgeCase(*c, options);
  noteResult(result);
  for (const Judgement& judgement : result.judgements) {
    if (judgement.verdict.failed()) found(judgement.signature, judgement.verdict.message(), bytes);
  }
  return true;
}

}  // namespace

const Target target{"engine", run, mutateCaseText, crossCaseTexts};

}  // namespace faultline::fuzz
