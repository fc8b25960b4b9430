#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <torch/csrc/jit/ir/constants.h>

#include "engine/autodiff/differentiability.h"
#include "engine/graph_break/compile.h"
#include "engine/graph_break/opening.h"
#include "engine/graph_break/parts.h"
#include "engine/graph_break/savings.h"
#include "engine/graph_break/step_order.h"
#include "engine/graph_break/stitch.h"
#include "engine/ir/walk.h"
#include "engine/runtime/compiled_graph.h"
#include "engine/runtime/part_cache.h"
#include "engine/support/check.h"

namespace faultline {

namespace {

// Which values will require grad as far as the types of the graph's inputs say.
class ExpectedGrad {
 public:
  explicit ExpectedGrad(const WorkingCopy& work) {
    for (size_t i = 0; i < work.input_types.size(); ++i) {
      auto tensor = work.input_types[i]->cast<c10::TensorType>();
      if (tensor ? tensor->requiresGrad().value_or(true) : mayHoldTensor(*work.input_types[i])) {
        expected_.insert(work.graph->inputs()[i]);
      }
    }
    visit(work.graph->block());
  }

  InputMask of(const std::vector<Value*>& values) const {
    InputMask mask;
    for (const Value* value : values) {
      mask.push_back(value->type()->kind() == c10::TypeKind::TensorType && expected_.count(value) > 0);
    }
    return mask;
  }

 private:
  bool visit(const torch::jit::Block* block) {
    bool any = false;
    for (const Node* node : block->nodes()) {
      bool expects = false;
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        expects = expects || (passesGradient(node, i) && expected_.count(node->input(i)) > 0);
      }
      for (const torch::jit::Block* inner : node->blocks()) {
        for (const Value* input : inner->inputs()) {
          if (mayHoldTensor(*input->type())) {
            expected_.insert(input);
          }
        }
        expects = visit(inner) || expects;
      }
      for (size_t i = 0; expects && i < node->outputs().size(); ++i) {
        if (carriesGradient(node, i) && mayHoldTensor(*node->outputs()[i]->type())) {
          expected_.insert(node->outputs()[i]);
        }
      }
      any = any || expects;
    }
    return any;
  }

  std::unordered_set<const Value*> expected_;
};

// The op by which a program asks autograd for gradients of values that it makes; nullptr: none. By name:
// which ops have a symbol of their own depends on torch's version.
const Node* asksForGradients(const Graph& graph) {
  static const std::set<c10::Symbol> kinds = {c10::Symbol::fromQualString("aten::grad"),
                                              c10::Symbol::fromQualString("aten::_backward")};
  const Node* asks = nullptr;
  forEachNode(graph.block(),
              [&](const Node* node) { asks = asks || !kinds.count(node->kind()) ? asks : node; });
  return asks;
}

class Compiler {
 public:
  Compiler(std::shared_ptr<const WorkingCopy> work, const CompileOptions& options, bool trust_formulas,
           const Specialisation* specialisation = nullptr, ApplyReport* report = nullptr)
      : work_(std::move(work)),
        facts_(*work_, trust_formulas),
        expected_(*work_),
        options_(options),
        specialisation_(specialisation),
        report_(report),
        impl_(std::make_shared<CompiledGraph::Impl>()) {
    for (Value* input : work_->graph->inputs()) {
      registerOf(input);
    }
    impl_->graph_inputs = work_->graph->inputs().size();
  }

  std::shared_ptr<CompiledGraph::Impl> compile(const std::vector<size_t>& ends) {
    std::vector<size_t> begins;
    for (size_t k = 0; k < ends.size(); ++k) {
      begins.push_back(pieceBegin(*work_, k > 0 ? ends[k - 1] : 0, ends[k]));
      addPiece(k, begins[k], ends[k]);
    }
    if (work_->opensAny()) {
      impl_->steps = stepsOf(*work_, ends, [this](const Value* value) { return registerOf(value); });
    }
    for (Value* output : work_->graph->outputs()) {
      auto constant = torch::jit::toIValue(output);
      constant ? impl_->outputs.push_back({std::nullopt, *constant})
               : impl_->outputs.push_back({registerOf(output), {}});
    }
    std::vector<bool> kept(registers_.size(), false);
    for (const RunValue& output : impl_->outputs) {
      if (output.at) {
        kept[*output.at] = true;
      }
    }
    findLastUses(impl_->placed, impl_->steps, kept);
    findSeams(begins, ends);
    fuse();
    makeForwards();
    impl_->registers = registers_.size();
    impl_->writes = facts_.written.anything();
    impl_->stitch = [work = work_, impl = impl_.get()] { return stitch(*work, *impl); };
    return impl_;
  }

 private:
  Register registerOf(const Value* value) {
    return registers_.emplace(value, registers_.size()).first->second;
  }

  std::vector<Register> registersOf(const std::vector<Value*>& values) {
    std::vector<Register> result;
    for (const Value* value : values) {
      result.push_back(registerOf(value));
    }
    return result;
  }

  void fuse() {
    if (!impl_->steps.empty()) {
      for (const auto& run : straightRuns(impl_->steps)) {
        fuseForwards(impl_->placed, run, impl_->fused);
      }
      return;
    }
    std::vector<size_t> all(impl_->placed.size());
    std::iota(all.begin(), all.end(), size_t{0});
    fuseForwards(impl_->placed, all, impl_->fused);
  }

  // Of pieces that run forward by themselves.
  void makeForwards() {
    for (size_t k = 0; k < impl_->placed.size(); ++k) {
      const auto behind = impl_->fused.upper_bound(k);
      if (behind != impl_->fused.begin() && std::prev(behind)->second.has(k)) {
        continue;
      }
      for (const PlacedSegment& segment : impl_->placed[k].segments) {
        for (const PlacedPart& part : segment.parts) {
          if (const PartVariant* variant = part.part->expectedVariant()) {
            variant->forward();
          }
        }
      }
    }
  }

  void addPiece(size_t k, size_t begin, size_t end) {
    const bool forced = std::count(options_.force_eager.begin(), options_.force_eager.end(), k) > 0;
    CompiledPiece piece;
    PlacedPiece placed;
    std::string refusal;
    for (const Segment& segment : splitIntoSegments(facts_, begin, end, forced)) {
      placed.segments.push_back(placeSegment(segment, forced, piece, refusal));
    }
    const Part outside = boundary(*work_, begin, end);
    placed.outputs = registersOf(outside.outputs);
    for (size_t i : outside.nodes) {
      piece.ops.push_back(work_->nameOf(i));
    }
    const bool any_compiled = std::any_of(piece.parts.begin(), piece.parts.end(),
                                          [](const PiecePart& part) { return part.compiled; });
    piece.kind = any_compiled ? CompiledPiece::Kind::Compiled : CompiledPiece::Kind::Eager;
    if (forced) {
      piece.reason = "asked for";
    } else if (!any_compiled) {
      piece.reason = !refusal.empty()          ? refusal
                     : piece.eager_ops.empty() ? "no gradient comes back to any of its ops"
                                               : piece.eager_ops.front().reason;
    }
    piece.forward = piece.parts.size() == 1 ? piece.parts.front().forward : extractPart(*work_, outside);
    impl_->pieces.push_back(std::move(piece));
    impl_->placed.push_back(std::move(placed));
  }

  PlacedSegment placeSegment(const Segment& segment, bool forced, CompiledPiece& piece,
                             std::string& refusal) {
    PlacedSegment placed;
    bool any_compiled = false, repeatable = !segment.barriers;
    for (const Part& part : segment.parts) {
      PlacedPart placed_part;
      const Guard guard = specialisation_ ? specialisation_->guard : Guard::Variants;
      auto graph = extractPart(*work_, part);
      InputMask open;
      const InputMask expected = expectedInputs(part, open);
      placed_part.part =
          options_.share_equal_parts
              ? cache_.get(std::move(graph), part.compiled, expected, guard, open)
              : std::make_shared<const RunnablePart>(std::move(graph), part.compiled, expected, guard, open);
      placed_part.inputs = registersOf(part.inputs);
      placed_part.outputs = registersOf(part.outputs);
      const RunnablePart& runnable = *placed_part.part;
      any_compiled = any_compiled || runnable.compiled();
      if (specialisation_ && runnable.compiled()) {
        const InputMask without = expected_.of(part.inputs);
        if (without != runnable.expected()) {
          addSavings(*work_, part, runnable, without, specialisation_->known, *report_);
        }
      }
      if (!runnable.reason().empty()) {
        refusal = runnable.reason();
      }
      describePart(part, runnable, piece, forced);
      for (size_t i : part.nodes) {
        repeatable = repeatable && !isOrdered(work_->nodes[i]);
      }
      placed.parts.push_back(std::move(placed_part));
    }
    const Part outside = boundary(*work_, segment.begin, segment.end);
    placed.inputs = registersOf(outside.inputs);
    placed.outputs = registersOf(outside.outputs);
    if (any_compiled && repeatable) {
      placed.as_written = [work = work_, begin = segment.begin, end = segment.end] {
        return extractPart(*work, boundary(*work, begin, end));
      };
    }
    return placed;
  }

  // Which inputs of a part will require grad: what a profile says of their uses in it, else what types say.
  // `open` gets those of which the profile, where there is one, says nothing.
  InputMask expectedInputs(const Part& part, InputMask& open) {
    InputMask expected = expected_.of(part.inputs);
    if (!specialisation_ || !part.compiled) {
      return expected;
    }
    ++report_->parts;
    open.assign(part.inputs.size(), false);
    for (size_t i = 0; i < part.inputs.size(); ++i) {
      if (part.inputs[i]->type()->kind() != c10::TypeKind::TensorType) {
        continue;
      }
      const std::optional<bool> known = knownInput(part, part.inputs[i]);
      open[i] = !known;
      if (known) {
        ++report_->known;
        report_->pruned += expected[i] && !*known ? 1 : 0;
        expected[i] = *known;
      }
    }
    return expected;
  }

  // Uses that do not agree leave it open.
  std::optional<bool> knownInput(const Part& part, const Value* value) {
    std::optional<bool> known;
    ConsumedInput unknown;
    bool disagree = false;
    for (size_t k : part.nodes) {
      const Node* node = work_->nodes[k];
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        if (node->input(i) != value) {
          continue;
        }
        const KnownGradient& use = specialisation_->known[work_->placeAmongAll(k)][i];
        if (unknown.op.empty()) {
          unknown = {work_->names.of(node), i, use.why};
        }
        disagree = disagree || (known && use.requires_grad && *known != *use.requires_grad);
        known = known ? known : use.requires_grad;
      }
    }
    if (known && !disagree) {
      return known;
    }
    if (disagree) {
      unknown.why = "two uses are said to differ";
    }
    report_->unknown.push_back(std::move(unknown));
    return std::nullopt;
  }

  void describePart(const Part& part, const RunnablePart& runnable, CompiledPiece& piece,
                    bool whole_piece_eager) {
    PiecePart described;
    described.compiled = runnable.compiled();
    const PartVariant* variant = runnable.compiled() ? runnable.expectedVariant() : nullptr;
    described.forward = variant ? variant->gradient.forward : runnable.graph();
    described.backward = variant ? variant->gradient.backward : nullptr;
    for (size_t i : part.nodes) {
      described.ops.push_back(work_->nameOf(i));
      if (!runnable.compiled() && !whole_piece_eager) {
        const std::string& reason = runnable.reason().empty() ? facts_.nodes[i].reason : runnable.reason();
        if (!reason.empty()) {
          piece.eager_ops.push_back({described.ops.back(), reason});
        }
      }
    }
    if (described.backward) {
      piece.backward = described.backward;
    }
    piece.parts.push_back(std::move(described));
  }

  void findSeams(const std::vector<size_t>& begins, const std::vector<size_t>& ends) {
    const Node* asks = asksForGradients(*work_->graph);
    for (size_t k = 0; k < ends.size(); ++k) {
      for (const Value* value : boundary(*work_, begins[k], ends[k]).outputs) {
        const std::string name = work_->valueName(value);
        const bool written = facts_.written.holds(value);
        Seam seam{name, registerOf(value), k, {}, written || asks};
        if (asks) {
          // Asked of another object, it would lack what comes by the ops of the piece itself.
          seam.refusal = fmt::format(
              "{} may ask for the gradient of '{}' itself: nothing can stand before its piece for it",
              asks->kind().toQualString(), name);
        } else if (written) {
          seam.refusal = fmt::format(
              "'{}' shares memory with what is written in place: a hook on it would not "
              "stand before its whole piece",
              name);
        }
        if (seam.refusal.empty() && mayBeAnotherValue(value)) {
          seam.refusal = fmt::format(
              "'{}' may be the same tensor as a value that is used elsewhere: a hook on it would see only "
              "the "
              "part of its gradient that comes by this name",
              name);
        }
        bool crosses = false;
        for (const auto& use : value->uses()) {
          if (use.user == work_->graph->return_node()) {
            continue;
          }
          const size_t user = work_->topLevel(use.user);
          crosses = crosses || user >= ends[k];
          if (user < ends[k] && passesGradient(use.user, use.offset)) {
            seam.refusal = fmt::format(
                "'{}' is used by '{}' in the piece that makes it: a hook would see only the part of its "
                "gradient "
                "that comes from later pieces; cut right after '{}'",
                name, work_->names.of(work_->nodes[user]), name);
          }
        }
        if (crosses && value->type()->kind() == c10::TypeKind::TensorType) {
          impl_->seams.push_back(std::move(seam));
        }
      }
    }
    auto& seams = impl_->seams;
    std::sort(seams.begin(), seams.end(), [](const Seam& a, const Seam& b) { return a.name < b.name; });
    for (size_t s = 0; s < seams.size(); ++s) {
      impl_->placed[seams[s].piece].seams.push_back(s);
    }
  }

  std::shared_ptr<const WorkingCopy> work_;
  GraphFacts facts_;
  ExpectedGrad expected_;
  const CompileOptions& options_;
  const Specialisation* specialisation_;
  ApplyReport* report_;
  PartCache cache_;
  std::shared_ptr<CompiledGraph::Impl> impl_;
  std::unordered_map<const Value*, Register> registers_;
};

Result<CompiledGraph> compileGraph(const Graph& graph, const BreakPlan& plan, const CompileOptions& options,
                                   bool trust_formulas, const Specialisation* specialisation = nullptr,
                                   ApplyReport* report = nullptr) {
  auto copy = WorkingCopy::make(graph, plan.opened);
  if (!copy) {
    return tl::make_unexpected(copy.error());
  }
  const std::shared_ptr<const WorkingCopy> work = *copy;
  if (!fits(plan, *work)) {
    return fail(ErrorKind::Invalid, "the plan was made for another graph");
  }
  for (size_t k : options.force_eager) {
    if (k >= plan.ends.size()) {
      return fail(ErrorKind::Invalid, fmt::format("the plan has no piece {}", k));
    }
  }
  if (specialisation) {
    const KnownGradients& known = specialisation->known;
    FAULTLINE_CHECK(known.size() == work->names.all().size(), "a profile of another graph");
    for (size_t k = 0; k < work->nodes.size(); ++k) {
      FAULTLINE_CHECK(known[work->placeAmongAll(k)].size() == work->nodes[k]->inputs().size(),
                      "a profile of another graph");
    }
  }
  return CompiledGraph(Compiler(work, options, trust_formulas, specialisation, report).compile(plan.ends));
}

}  // namespace

Result<CompiledGraph> compileTrusting(std::shared_ptr<Graph> graph, const BreakPlan& plan,
                                      const CompileOptions& options, bool trust_formulas) {
  return compileGraph(*graph, plan, options, trust_formulas);
}

Result<CompiledGraph> compileSpecialised(std::shared_ptr<Graph> graph, const BreakPlan& plan,
                                         const Specialisation& specialisation, ApplyReport& report) {
  return compileGraph(*graph, plan, {}, false, &specialisation, &report);
}

Result<CompiledGraph> compile(std::shared_ptr<Graph> graph, const BreakPlan& plan,
                              const CompileOptions& options) {
  return compileTrusting(std::move(graph), plan, options, false);
}

}  // namespace faultline
