#include "fuzz/cli/profile_pruning.h"

#include "fuzz/cli/console.h"
#include "fuzz/cli/json.h"
#include "oracles/passes/pruning_table.h"

namespace faultline::cli {
namespace {

Json sideJson(const PruningSide& side) {
  return {{"parts", side.parts},
          {"gradients", side.gradients},
          {"pruned", side.pruned},
          {"backward_nodes_saved", side.backward_nodes},
          {"backward_calls", side.calls},
          {"needless",
           {{"left_out_ahead", side.left_out_ahead},
            {"left_out_then", side.left_out_then},
            {"computed", side.computed}}}};
}

// Of `needless`: left out ahead of time, and computed.
std::string needlessText(const PruningSide& side) {
  return std::to_string(side.left_out_ahead) + " / " + std::to_string(side.computed);
}

}  // namespace

Result<ExitCode> runPruningTable(const std::string& json) {
  const auto rows = pruningTable();
  if (!rows) return tl::make_unexpected(rows.error());
  const Console console(json);
  console.paragraph(
      "Per program, applyProfile (ours) and libtorch's profiling executor (stock) after one profiled run. In "
      "the code of the backwards that were made ahead of time, wherever and how often it runs: gradients "
      "that "
      "it computes; how many more it would without the profile (pruned), and how many more ops it would have "
      "(ops). In one backward of the whole program: ops called (calls; eager autograd computes what is "
      "needed "
      "and no more).");
  console.line();
  Table table({"program", "ours", "pruned", "ops", "calls", "stock", "pruned", "ops", "calls", "eager"});
  for (size_t column = 1; column < 10; ++column) table.alignRight(column);
  Table executed({"program", "needless", "ours", "stock"});
  for (size_t column = 1; column < 4; ++column) executed.alignRight(column);
  Json result = jsonHead("profile");
  result["pruning"] = Json::array();
  for (const PruningRow& row : *rows) {
    const auto text = [](auto number) { return std::to_string(number); };
    table.add({row.name, text(row.ours.gradients), text(row.ours.pruned), text(row.ours.backward_nodes),
               text(row.ours.calls), text(row.stock.gradients), text(row.stock.pruned),
               text(row.stock.backward_nodes), text(row.stock.calls), text(row.eager_calls)});
    executed.add({row.name, text(row.needless), needlessText(row.ours), needlessText(row.stock)});
    result["pruning"].push_back({{"program", row.name},
                                 {"what", row.what},
                                 {"needless", row.needless},
                                 {"ours", sideJson(row.ours)},
                                 {"libtorch", sideJson(row.stock)},
                                 {"eager_calls", row.eager_calls}});
  }
  console.print(table.str());
  console.line();
  console.paragraph(
      "The same programs, executed: in one backward, the operands that do not require grad of all ops that "
      "take part, each as often as its op does (needless: gradients that nobody needs). Of these, on either "
      "side: how many are left out ahead of time / how many are computed all the same. The rest is left to "
      "eager autograd, which looks at the flags in each run and computes none.");
  console.line();
  console.print(executed.str());
  console.line();
  for (const PruningRow& row : *rows) console.paragraph(row.name + ": " + row.what, 2);
  if (const auto written = writeJson(json, result); !written) return tl::make_unexpected(written.error());
  return ExitCode::Clean;
}

}  // namespace faultline::cli
