#include "oracles/hooks/promise.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "engine/support/check.h"
#include "faultline/ir.h"
#include "oracles/exec/prepare.h"

namespace faultline {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

// The piece that holds `node` or what it stands in; nothing for an If or Loop whose blocks are cut.
std::optional<int> holderOf(const Graph& graph, const Node* node,
                            const std::map<const Node*, int>& piece_of) {
  while (true) {
    const auto at = piece_of.find(node);
    if (at != piece_of.end()) return at->second;
    if (node->owningBlock() == graph.block()) return std::nullopt;
    node = node->owningBlock()->owningNode();
  }
}

// Of no piece, since it only hands values on to pieces.
bool handsOnOnly(const Node* node) {
  return node->kind() == prim::If || node->kind() == prim::Loop || node->kind() == prim::Return;
}

// The first of the inputs that are the same object.
size_t originOf(const CaseRun& run, size_t input) {
  while (input < run.inputs.size() && run.inputs[input].kind == InputSpec::Kind::SameAs &&
         run.inputs[input].same_as < input) {
    input = run.inputs[input].same_as;
  }
  return input;
}

bool mayReturnArgument(const Node* node) {
  static const std::set<std::string> kMayReturnArgument{
      "aten::contiguous", "aten::to",          "aten::type_as",         "aten::reshape",
      "aten::reshape_as", "aten::flatten",     "aten::positive",        "aten::dropout",
      "aten::expand_as",  "aten::sum_to_size", "aten::feature_dropout", "aten::__getitem__",
      "aten::values",     "aten::get",         "aten::_unwrap_optional"};
  if (kMayReturnArgument.count(node->kind().toQualString()) != 0) return true;
  const auto* schema = node->maybeSchema();
  return schema && schema->is_mutable();
}

// Values that may be the very object that `use` takes: what comes out of blocks and containers, and results
// of ops that may have nothing to do (contiguous, expand_as, …) or that write in place. Whoever uses one of
// them uses the parameter itself, and its gradient comes from there.
std::vector<const Value*> handedOn(const torch::jit::Use& use) {
  const Node* node = use.user;
  if (node->kind() == prim::Return) {
    const Node* owner = node->owningBlock()->owningNode();
    if (owner->kind() == prim::If) return {owner->outputs()[use.offset]};
    if (owner->kind() != prim::Loop || use.offset == 0) return {};
    return {owner->outputs()[use.offset - 1], node->owningBlock()->inputs()[use.offset]};
  }
  if (node->kind() == prim::Loop) {
    if (use.offset < 2) return {};
    return {node->outputs()[use.offset - 2], node->blocks()[0]->inputs()[use.offset - 1]};
  }
  if (node->kind() == prim::If) return {};
  // A list that is appended to holds it from then on.
  if (node->kind() == c10::aten::append) return {node->input(0)};
  std::vector<const Value*> results;
  if (node->kind().is_prim() || mayReturnArgument(node)) {
    for (const Value* output : node->outputs()) results.push_back(output);
  }
  return results;
}

}  // namespace

std::optional<size_t> hookedInput(const std::string& on) {
  if (on.size() < 3 || on.rfind("in", 0) != 0 || on.find_first_not_of("0123456789", 2) != std::string::npos) {
    return std::nullopt;
  }
  return std::stoul(on.substr(2));
}

HookPromise::HookPromise(const Case& c, const std::vector<PieceTrace>& pieces) : piece_count_(pieces.size()) {
  auto prepared = prepareCase(c);
  FAULTLINE_CHECK(prepared.has_value(), "pieces of a case that no lane can have run");
  const Graph& graph = *prepared->graph;
  const NodeNames names(graph);
  std::map<const Node*, int> piece_of;
  for (size_t k = 0; k < pieces.size(); ++k) {
    for (const std::string& op : pieces[k].ops) {
      const Node* node = names.find(op);
      FAULTLINE_CHECK(node != nullptr, "a piece holds an op that the graph does not have: " + op);
      piece_of.emplace(node, static_cast<int>(k));
    }
  }
  for (const Value* input : graph.inputs()) {
    Parameter uses;
    std::vector<const Value*> same{input};
    std::set<const Value*> seen{input};
    while (!same.empty()) {
      const Value* value = same.back();
      same.pop_back();
      for (const torch::jit::Use& use : value->uses()) {
        if (use.user->kind() == prim::Return && use.user->owningBlock() == graph.block()) {
          uses.returned = true;
          continue;
        }
        for (const Value* next : handedOn(use)) {
          if (seen.insert(next).second) same.push_back(next);
          uses.handed_on = uses.handed_on || !handsOnOnly(use.user);
        }
        const auto piece = holderOf(graph, use.user, piece_of);
        if (piece) {
          uses.pieces.insert(*piece);
        } else if (!handsOnOnly(use.user)) {
          uses.elsewhere = true;
        }
      }
    }
    parameters_.push_back(std::move(uses));
  }
  for (const SeamHook& hook : prepared->seam_hooks) {
    const auto piece = holderOf(graph, hook.producer, piece_of);
    if (piece) seams_[hook.seam] = *piece;
  }
}

std::optional<int> HookPromise::earliest(const Parameter& uses, const std::vector<int>& executed) {
  for (size_t e = 0; e < executed.size(); ++e) {
    if (uses.pieces.count(executed[e]) != 0) return static_cast<int>(e);
  }
  return std::nullopt;
}

std::optional<HookPromise::Breach> HookPromise::checkParameter(const Parameter& uses, const HookTrace& hook,
                                                               const Pass& pass,
                                                               uint64_t& comparisons) const {
  const std::vector<Event>& backward = pass.backward;
  const auto first = earliest(uses, pass.executed);
  if (!first || uses.elsewhere) return std::nullopt;
  bool one_began = false;
  for (const Event& event : backward) {
    if (event.execution < *first) {
      ++comparisons;
      if (event.seq < hook.seq) {
        return Breach{"parameter_late",
                      fmt::format("the hook on {} fired after the backward of piece {} began; its "
                                  "uses are in piece {} and later",
                                  hook.on, event.piece, pass.executed[static_cast<size_t>(*first)])};
      }
    }
    one_began = one_began || (uses.pieces.count(event.piece) != 0 && event.seq < hook.seq);
  }
  // Which of several pieces send a gradient cannot be read off the graph, but one must have begun. A piece
  // that runs eagerly has no event.
  const bool have_events = std::any_of(uses.pieces.begin(), uses.pieces.end(), [&](int piece) {
    return std::any_of(backward.begin(), backward.end(), [&](const Event& e) { return e.piece == piece; });
  });
  if (!uses.returned && have_events) {
    ++comparisons;
    if (!one_began) {
      return Breach{"parameter_early",
                    fmt::format("the hook on {} fired before the backward of its piece", hook.on)};
    }
  }
  return std::nullopt;
}

// It fired right before one of the executions of the piece that makes it.
std::optional<HookPromise::Breach> HookPromise::checkSeam(int producer, const HookTrace& hook,
                                                          const Pass& pass, uint64_t& comparisons) const {
  const Event *before = nullptr, *after = nullptr;
  for (const Event& event : pass.backward) {
    ++comparisons;
    if (event.seq < hook.seq) {
      before = &event;
    } else if (!after) {
      after = &event;
    }
  }
  bool any = false;
  for (size_t e = 0; e < pass.executed.size(); ++e) {
    const int execution = static_cast<int>(e);
    if (pass.executed[e] != producer || (after && after->execution > execution)) continue;
    any = true;
    if (!before || before->execution > execution) return std::nullopt;
  }
  if (any) {
    return Breach{"seam_late",
                  fmt::format("the hook on {} fired after the backward of piece {} began, {} makes it",
                              hook.on, before->piece, producer)};
  }
  if (!after) return std::nullopt;  // its piece did not run
  return Breach{"seam_early", fmt::format("the hook on {} fired before the backward of piece {}, {} makes it",
                                          hook.on, after->piece, producer)};
}

// Objects that are several inputs at once: the uses of all.
std::map<size_t, HookPromise::Parameter> HookPromise::objectsOf(const CaseRun& run) const {
  std::map<size_t, Parameter> objects;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& object = objects[originOf(run, i)];
    object.pieces.insert(parameters_[i].pieces.begin(), parameters_[i].pieces.end());
    object.returned = object.returned || parameters_[i].returned;
    object.elsewhere = object.elsewhere || parameters_[i].elsewhere;
  }
  return objects;
}

std::vector<int> HookPromise::allExecuted(const std::vector<int>& executed) const {
  if (!executed.empty()) return executed;
  std::vector<int> each_once(piece_count_);
  std::iota(each_once.begin(), each_once.end(), 0);
  return each_once;
}

std::optional<HookPromise::Breach> HookPromise::check(const CaseRun& run, const std::vector<int>& executed,
                                                      const std::vector<HookTrace>& log,
                                                      uint64_t& comparisons) const {
  Pass pass{allExecuted(executed), {}};
  for (const HookTrace& entry : log) {
    if (entry.kind != HookTrace::Kind::PieceBackward) continue;
    const int piece = std::stoi(entry.on.substr(5));  // "piece2"
    const Event event{piece, entry.execution < 0 ? piece : entry.execution, entry.seq};
    ++comparisons;
    if (!pass.backward.empty() && event.execution >= pass.backward.back().execution) {
      return Breach{"piece_order", fmt::format("the backward of piece {} began after that of piece {}",
                                               event.piece, pass.backward.back().piece)};
    }
    pass.backward.push_back(event);
  }
  const std::map<size_t, Parameter> objects = objectsOf(run);
  for (const HookTrace& hook : log) {
    // What retain_grad kept is read after the phase: it has no moment of its own.
    if (hook.kind == HookTrace::Kind::PieceBackward || hook.kind == HookTrace::Kind::RetainGrad) continue;
    if (hook.kind == HookTrace::Kind::BackwardEnd) {
      for (const Event& event : pass.backward) {
        ++comparisons;
        if (event.seq > hook.seq) {
          return Breach{"end_early", fmt::format("the callback of {} came before the backward of piece {}",
                                                 hook.on, event.piece)};
        }
      }
      continue;
    }
    std::optional<Breach> breach;
    if (const auto input = hookedInput(hook.on)) {
      const size_t origin = originOf(run, *input);
      // The node of a non-leaf stands outside the graph and runs when it likes.
      if (origin < run.inputs.size() && run.inputs[origin].leaf) {
        breach = checkParameter(objects.at(origin), hook, pass, comparisons);
      }
    } else if (const auto seam = seams_.find(hook.on);
               seam != seams_.end() && hook.kind == HookTrace::Kind::Tensor) {
      breach = checkSeam(seam->second, hook, pass, comparisons);
    }
    if (breach) return breach;
  }
  return std::nullopt;
}

std::vector<size_t> HookPromise::completeAt(const CaseRun& run, const std::vector<int>& executed,
                                            const std::vector<HookTrace>& log) const {
  std::vector<size_t> complete;
  const std::vector<int> all = allExecuted(executed);
  const std::map<size_t, Parameter> objects = objectsOf(run);
  // The executions from this one on are over.
  std::optional<int> from;
  if (const auto input = hookedInput(log.back().on)) {
    const auto object = objects.find(originOf(run, *input));
    if (object != objects.end() && run.inputs[object->first].leaf && !object->second.elsewhere &&
        !object->second.returned && object->second.pieces.size() == 1 &&
        std::count(all.begin(), all.end(), *object->second.pieces.begin()) == 1) {
      from = earliest(object->second, all);
    }
  }
  if (!from) return complete;
  for (const auto& [input, uses] : objects) {
    const auto first = earliest(uses, all);
    if (first && *first > *from && !uses.elsewhere && !uses.returned && run.inputs[input].leaf) {
      complete.push_back(input);
    }
  }
  return complete;
}

}  // namespace faultline
