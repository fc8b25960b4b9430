#include "fuzz/cli/break_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "faultline/ir.h"
#include "fuzz/cli/folding.h"

namespace faultline::cli {
namespace {

const char* kindWord(CompiledPiece::Kind kind) {
  return kind == CompiledPiece::Kind::Compiled ? "compiled" : "eager";
}

size_t nodesIn(const std::shared_ptr<torch::jit::Graph>& graph) {
  size_t count = 0;
  if (graph != nullptr) {
    for (const torch::jit::Node* node : graph->nodes())
      count += node->kind() == torch::jit::prim::Constant ? 0 : 1;
  }
  return count;
}

const char* eventWord(TimelineEvent::What what) {
  switch (what) {
    case TimelineEvent::What::Forward:
      return "forward";
    case TimelineEvent::What::Backward:
      return "backward";
    case TimelineEvent::What::Hook:
      break;
  }
  return "hook";
}

// "5 ops forward and 9 backward", for each part that has its own autograd node; then how many run eagerly.
std::string partsText(const CompiledPiece& piece) {
  size_t eager = 0;
  std::vector<std::string> parts;
  for (const PiecePart& part : piece.parts) {
    if (part.backward == nullptr) {
      eager += part.ops.size();
      continue;
    }
    parts.push_back(fmt::format("{} forward and {} backward", plural(nodesIn(part.forward), "op"),
                                nodesIn(part.backward)));
  }
  if (parts.empty()) return "differentiated ahead of time: nothing in it, since nothing requires grad";
  std::string text = "differentiated ahead of time";
  if (parts.size() > 1) text += fmt::format(", in {} parts with an autograd node each", parts.size());
  text += fmt::format(": {}", fmt::join(parts, "; "));
  return eager == 0 ? text
                    : fmt::format("{}. Between them {} eagerly", text,
                                  eager == 1 ? "1 op runs" : fmt::format("{} ops run", eager));
}

void printEagerOps(const Console& console, const std::vector<EagerOp>& ops, size_t indent) {
  for (const EagerOp& op : ops)
    console.paragraph(fmt::format("{} runs eagerly: {}", op.op, op.reason), indent);
}

// Those that the plan did not know of.
std::vector<EagerOp> notPlanned(const std::vector<EagerOp>& ops, const PlannedPiece& planned) {
  std::vector<EagerOp> others;
  for (const EagerOp& op : ops) {
    const bool known =
        std::any_of(planned.eager_ops.begin(), planned.eager_ops.end(),
                    [&](const EagerOp& one) { return one.op == op.op && one.reason == op.reason; });
    if (!known) others.push_back(op);
  }
  return others;
}

Json eagerOpsJson(const std::vector<EagerOp>& ops) {
  Json list = Json::array();
  for (const EagerOp& op : ops) list.push_back({{"op", op.op}, {"reason", op.reason}});
  return list;
}

// Many of one kind are one paragraph, with the words of the first.
void printRefused(const Console& console, const std::vector<RefusedCut>& refused, bool summary) {
  constexpr size_t kFolded = 4;
  std::map<std::string, std::vector<std::string>> places;
  for (const RefusedCut& cut : refused) {
    if (cut.instead.empty()) places[cut.code].push_back(cut.at);
  }
  size_t moved = 0;
  const auto has_instead = [](const RefusedCut& cut) { return !cut.instead.empty(); };
  const Shown moved_shown(static_cast<size_t>(std::count_if(refused.begin(), refused.end(), has_instead)),
                          summary);
  for (const RefusedCut& cut : refused) {
    const size_t position = moved;
    moved += cut.instead.empty() ? 0 : 1;
    if (!cut.instead.empty()) {
      if (const size_t count = moved_shown.leftOutAt(position)) printLeftOut(console, count, "refused cuts");
      if (!moved_shown(position)) continue;
    }
    if (!cut.instead.empty() || places[cut.code].size() < kFolded) {
      const std::string instead = cut.instead.empty() ? "" : "; cut after " + cut.instead + " instead";
      console.paragraph(fmt::format("refused at {} ({}): {}{}", cut.at, cut.code, cut.reason, instead), 2);
    } else if (cut.at == places[cut.code].front()) {
      console.paragraph(fmt::format("refused {} times ({}), at {}: {}, and so on", places[cut.code].size(),
                                    cut.code, named(places[cut.code], summary), cut.reason),
                        2);
    }
  }
}

// " (w: the piece that comes first did not run; v: …)"
std::string elsewhereText(const std::vector<HookElsewhere>& hooks) {
  using Why = HookElsewhere::Why;
  std::map<Why, std::vector<std::string>> names;
  for (const HookElsewhere& hook : hooks) names[hook.why].push_back(hook.name);
  std::string text;
  for (const auto& [why, list] : names) {
    text += fmt::format("{}{}: {}", text.empty() ? " (" : "; ", words(list),
                        why == Why::DidNotRun    ? "the piece that comes first did not run"
                        : why == Why::NoGradient ? "no gradient came to it from the piece that comes first"
                        : why == Why::HandedOn   ? "an op of an earlier piece hands it on as it is"
                                                 : "of no piece in the plan");
  }
  return text.empty() ? text : text + ")";
}

std::string headline(std::string_view text) {
  return fmt::format("\n{}\n{}\n", text, std::string(displayWidth(text), '='));
}

}  // namespace

void printPlan(const Console& console, const BreakPlan& plan, bool summary) {
  console.line(fmt::format("Plan: {}, {}, {} refused", plural(plan.pieces.size(), "piece"),
                           plural(plan.cuts.size(), "cut"), plan.refused.size()));
  const Shown piece_shown(plan.pieces.size(), summary);
  for (size_t k = 0; k < plan.pieces.size(); ++k) {
    const PlannedPiece& piece = plan.pieces[k];
    if (const size_t count = piece_shown.leftOutAt(k)) {
      size_t ops = 0;
      std::set<std::string> parameters;
      for (size_t i = k; i < k + count; ++i) {
        ops += plan.pieces[i].ops.size();
        parameters.insert(plan.pieces[i].parameters.begin(), plan.pieces[i].parameters.end());
      }
      printLeftOut(console, count, "pieces",
                   fmt::format(" with {} and {}", plural(ops, "op"), plural(parameters.size(), "parameter")));
    }
    if (!piece_shown(k)) continue;
    const std::string block = piece.block.empty() ? "" : fmt::format(" ({})", piece.block);
    console.paragraph(fmt::format("piece {}{}: {}", k, block, named(piece.ops, summary)), 2);
    // Sizes that nobody knows are no bytes.
    const std::string bytes = piece.bytes > 0 ? fmt::format(" ({} bytes)", piece.bytes) : "";
    console.paragraph(fmt::format("parameters: {}{}", named(piece.parameters, summary), bytes), 6);
    console.paragraph("in: " + named(piece.inputs, summary), 6);
    console.paragraph("out: " + named(piece.outputs, summary), 6);
    if (!piece.eager_reason.empty() && piece.eager_ops.empty()) {
      console.paragraph("eager: " + piece.eager_reason, 6);
    }
    if (summary && piece.eager_ops.size() > 1) {
      console.paragraph(fmt::format("{} of its ops run eagerly, the first is {}: {}", piece.eager_ops.size(),
                                    piece.eager_ops[0].op, piece.eager_ops[0].reason),
                        6);
    } else {
      printEagerOps(console, piece.eager_ops, 6);
    }
  }
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < plan.cuts.size(); ++i) {
    const PlannedCut& cut = plan.cuts[i];
    if (summary && i == kShown && plan.cuts.size() > kShown + 1) {
      console.line(fmt::format("  and {} more cuts", plan.cuts.size() - kShown));
      break;
    }
    console.paragraph(fmt::format("cut after {}: {}", cut.after, cut.reason), 2);
  }
  printRefused(console, plan.refused, summary);
  const Shown bucket_shown(plan.buckets.size(), summary);
  for (size_t b = 0; b < plan.buckets.size(); ++b) {
    if (const size_t count = bucket_shown.leftOutAt(b)) printLeftOut(console, count, "buckets");
    if (!bucket_shown(b)) continue;
    const PlannedBucket& bucket = plan.buckets[b];
    console.paragraph(fmt::format("bucket {}, complete with piece {}: {} ({} bytes){}", b, bucket.piece,
                                  named(bucket.parameters, summary), bucket.bytes,
                                  bucket.note.empty() ? "" : "; " + bucket.note),
                      2);
  }
}

void printCompiledPieces(const Console& console, const CompiledGraph& compiled) {
  console.line();
  const auto& pieces = compiled.pieces();
  const Shown shown(pieces.size(), true);
  for (size_t k = 0; k < pieces.size(); ++k) {
    const CompiledPiece& piece = pieces[k];
    if (const size_t count = shown.leftOutAt(k)) {
      const auto from = pieces.begin() + static_cast<std::ptrdiff_t>(k);
      const auto eager =
          std::count_if(from, from + static_cast<std::ptrdiff_t>(count),
                        [](const CompiledPiece& one) { return one.kind == CompiledPiece::Kind::Eager; });
      printLeftOut(console, count, "pieces",
                   eager == 0 ? ", all compiled" : fmt::format(", {} of them eager", eager));
    }
    if (!shown(k)) continue;
    if (piece.kind == CompiledPiece::Kind::Eager) {
      console.paragraph(fmt::format("piece {} runs eagerly: {}", k, piece.reason), 2);
      continue;
    }
    size_t nodes = 0, forward = 0, backward = 0, eager = 0;
    for (const PiecePart& part : piece.parts) {
      const bool compiled_part = part.backward != nullptr;
      nodes += compiled_part ? 1 : 0;
      forward += compiled_part ? nodesIn(part.forward) : 0;
      backward += nodesIn(part.backward);
      eager += compiled_part ? 0 : part.ops.size();
    }
    console.paragraph(
        fmt::format("piece {}: {} with {} forward and {} backward, {} eagerly", k,
                    plural(nodes, "autograd node"), plural(forward, "op"), backward, plural(eager, "op")),
        2);
  }
}

void printCompiled(const Console& console, const torch::jit::Graph& original, const BreakPlan& plan,
                   const CompiledGraph& compiled) {
  console.print(headline("Original graph"));
  console.print(graphTable(original, kWidth));
  for (size_t k = 0; k < compiled.pieces().size(); ++k) {
    const CompiledPiece& piece = compiled.pieces()[k];
    console.print(headline(fmt::format("Piece {}: {}", k, kindWord(piece.kind))));
    if (piece.kind == CompiledPiece::Kind::Compiled) {
      console.paragraph(partsText(piece));
    } else if (plan.pieces[k].eager_reason != piece.reason) {
      console.paragraph("runs eagerly: " + piece.reason);
    }
    printEagerOps(console, notPlanned(piece.eager_ops, plan.pieces[k]), 0);
    console.print(graphTable(*piece.forward, kWidth, {plan.pieces[k].inputs, piece.ops}));
  }
  console.print(headline("Stitched graph"));
  const std::string stitched = graphTable(*compiled.stitchedGraph(), kWidth, {{}, NodeNames(original).all()});
  if (stitched.find("call_module") == std::string::npos) {
    console.paragraph(
        "As written: stock nodes cannot hold pieces of a graph that writes in place, nor pieces that run "
        "eagerly.");
  }
  console.print(stitched);
}

void printRun(const Console& console, const BreakRun& run, bool summary) {
  console.print(headline("Run"));
  if (!run.error.empty()) console.paragraph("The broken graph throws, eager PyTorch does not: " + run.error);
  for (const TimelineEvent& event : summary ? std::vector<TimelineEvent>() : run.events) {
    std::string text =
        fmt::format("{:>4}  {:>10.1f} us  {:<8}", event.seq, event.begin_us, eventWord(event.what));
    text += event.what == TimelineEvent::What::Hook ? fmt::format("       {}", event.name)
                                                    : fmt::format(" piece {}", event.piece);
    console.line(text);
  }
  if (!run.error.empty()) return;
  const double difference = std::abs(run.loss.broken - run.loss.eager);
  console.paragraph(fmt::format("Loss {:.9g}, eager {:.9g}: difference {:.3g}, tolerance {:.3g}: {}",
                                run.loss.broken, run.loss.eager, difference, run.loss.tolerance,
                                run.loss.equal ? "equal" : "NOT equal"));
  console.paragraph(
      fmt::format("Outputs and gradients: {} compared, {}", plural(run.compared, "number"),
                  run.differences.empty() ? "all equal within the tolerances" : "these differ:"));
  for (const std::string& difference_text : run.differences) console.paragraph(difference_text, 2);
  if (!run.backward) {
    console.line("No backward ran: no output with elements requires grad.");
  } else if (run.broken_promises.empty()) {
    console.paragraph(
        fmt::format("Hooks: on {}; {} fired once per gradient, before any earlier piece began its backward",
                    run.hooked.size() == 1 ? "1 tensor that requires grad"
                                           : fmt::format("{} tensors that require grad", run.hooked.size()),
                    run.hooked.size() - run.without_gradient.size()));
  }
  if (run.own_hooks > 0) {
    console.paragraph(
        fmt::format("Not among these: {} in backwards that the program runs itself",
                    run.own_hooks == 1 ? std::string("1 call") : fmt::format("{} calls", run.own_hooks)));
  }
  if (run.backward && !run.without_gradient.empty()) {
    console.paragraph("No gradient came to " + folded(run.without_gradient));
  }
  for (const std::string& promise : run.broken_promises) console.paragraph("Hooks: " + promise);
  if (run.hook_order.empty()) return;
  console.line("Hooks by piece, in the order backwards ran; inside a piece the order is free:");
  const Shown shown(run.hook_order.size(), summary);
  for (size_t i = 0; i < run.hook_order.size(); ++i) {
    const PieceHooks& hooks = run.hook_order[i];
    if (const size_t count = shown.leftOutAt(i)) {
      size_t otherwise = 0;
      for (size_t k = i; k < i + count; ++k) otherwise += run.hook_order[k].as_predicted ? 0 : 1;
      printLeftOut(console, count, "pieces",
                   otherwise == 0 ? ", all as predicted" : fmt::format(", {} NOT as predicted", otherwise));
    }
    if (!shown(i)) continue;
    console.paragraph(
        fmt::format("{}: predicted {}; observed {}{}{}",
                    hooks.piece < 0 ? "before any piece" : fmt::format("piece {}", hooks.piece),
                    named(hooks.predicted, summary), named(hooks.observed, summary),
                    elsewhereText(hooks.elsewhere), hooks.as_predicted ? "" : ": NOT as predicted"),
        2);
  }
  console.line("Bytes of gradients ready when the hooks of a piece had fired:");
  Table table({"after piece", "from it", "in all", "share", "eager, as many hooks"});
  for (size_t column = 0; column < 5; ++column) table.alignRight(column);
  int64_t before = 0;
  const int64_t all = run.hook_order.back().bytes_ready;
  for (size_t i = 0; i < run.hook_order.size(); ++i) {
    const PieceHooks& hooks = run.hook_order[i];
    if (shown.leftOutAt(i) != 0) table.add({"…"});
    if (!shown(i)) {
      before = hooks.bytes_ready;
      continue;
    }
    table.add({hooks.piece < 0 ? "none" : std::to_string(hooks.piece),
               std::to_string(hooks.bytes_ready - before), std::to_string(hooks.bytes_ready),
               all > 0
                   ? percentage(static_cast<uint64_t>(hooks.bytes_ready), static_cast<uint64_t>(all)) + "%"
                   : "-",
               std::to_string(hooks.eager_bytes_ready)});
    before = hooks.bytes_ready;
  }
  console.print(table.str(2));
}

Json planJson(const BreakPlan& plan) {
  Json result = jsonHead("break");
  result["pieces"] = Json::array();
  for (const PlannedPiece& piece : plan.pieces) {
    result["pieces"].push_back({{"ops", piece.ops},
                                {"block", piece.block},
                                {"parameters", piece.parameters},
                                {"bytes", piece.bytes},
                                {"kind", piece.eager_reason.empty() ? "compiled" : "eager"},
                                {"inputs", piece.inputs},
                                {"outputs", piece.outputs},
                                {"reason", piece.eager_reason},
                                {"eager_ops", eagerOpsJson(piece.eager_ops)}});
  }
  result["cuts"] = Json::array();
  for (const PlannedCut& cut : plan.cuts)
    result["cuts"].push_back({{"after", cut.after}, {"reason", cut.reason}});
  result["refused"] = Json::array();
  for (const RefusedCut& cut : plan.refused) {
    result["refused"].push_back(
        {{"at", cut.at}, {"code", cut.code}, {"reason", cut.reason}, {"instead", cut.instead}});
  }
  result["buckets"] = Json::array();
  for (const PlannedBucket& bucket : plan.buckets) {
    result["buckets"].push_back({{"parameters", bucket.parameters},
                                 {"bytes", bucket.bytes},
                                 {"piece", bucket.piece},
                                 {"note", bucket.note}});
  }
  result["events"] = Json::array();
  return result;
}

void describeCompiled(const CompiledGraph& compiled, Json& result) {
  for (size_t k = 0; k < compiled.pieces().size(); ++k) {
    const CompiledPiece& piece = compiled.pieces()[k];
    Json& entry = result["pieces"][k];
    entry["kind"] = kindWord(piece.kind);
    entry["reason"] = piece.reason;
    entry["eager_ops"] = eagerOpsJson(piece.eager_ops);
    entry["parts"] = Json::array();
    for (const PiecePart& part : piece.parts) {
      entry["parts"].push_back({{"ops", part.ops},
                                {"kind", part.backward == nullptr ? "eager" : "compiled"},
                                {"forward_ops", nodesIn(part.forward)},
                                {"backward_ops", nodesIn(part.backward)}});
    }
  }
}

void describeRun(const BreakRun& run, Json& result) {
  for (const TimelineEvent& event : run.events) {
    Json entry = {{"seq", event.seq}, {"what", eventWord(event.what)}, {"piece", event.piece}};
    if (event.what == TimelineEvent::What::Hook) entry["parameter"] = event.name;
    entry["us"] = event.begin_us;
    result["events"].push_back(std::move(entry));
  }
  result["run"] = {{"error", run.error},
                   {"loss", run.loss.broken},
                   {"eager_loss", run.loss.eager},
                   {"difference", std::abs(run.loss.broken - run.loss.eager)},
                   {"tolerance", run.loss.tolerance},
                   {"compared", run.compared},
                   {"differences", run.differences},
                   {"hooked", run.hooked},
                   {"without_gradient", run.without_gradient},
                   {"hooks_in_own_backwards", run.own_hooks},
                   {"broken_promises", run.broken_promises},
                   {"good", run.good()}};
  result["hook_order"] = Json::array();
  for (const PieceHooks& hooks : run.hook_order) {
    result["hook_order"].push_back({{"piece", hooks.piece},
                                    {"predicted", hooks.predicted},
                                    {"observed", hooks.observed},
                                    {"as_predicted", hooks.as_predicted},
                                    {"bytes_ready", hooks.bytes_ready},
                                    {"eager_bytes_ready", hooks.eager_bytes_ready}});
  }
}

}  // namespace faultline::cli
