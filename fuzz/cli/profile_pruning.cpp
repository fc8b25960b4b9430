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
          {"backward_calls", side.calls}};
}

}  // namespace

Result<ExitCode> runPruningTable(const std::string& json) {
  const auto rows = pruningTable();
  if (!rows) return tl::make_unexpected(rows.error());
  const Console console(json);
  console.paragraph(
      "Per program, applyProfile (ours) and libtorch's profiling executor (stock) after one profiled run: "
      "gradients that the backwards made ahead of time compute; how many more they would without the profile "
      "(pruned), and how many more ops they would have (ops); and ops called in one backward. Eager autograd "
      "computes what is needed and no more.");
  console.line();
  Table table({"program", "ours", "pruned", "ops", "calls", "stock", "pruned", "ops", "calls", "eager"});
  for (size_t column = 1; column < 10; ++column) table.alignRight(column);
  Json result = jsonHead("profile");
  result["pruning"] = Json::array();
  for (const PruningRow& row : *rows) {
    const auto text = [](auto number) { return std::to_string(number); };
    table.add({row.name, text(row.ours.gradients), text(row.ours.pruned), text(row.ours.backward_nodes),
               text(row.ours.calls), text(row.stock.gradients), text(row.stock.pruned),
               text(row.stock.backward_nodes), text(row.stock.calls), text(row.eager_calls)});
    result["pruning"].push_back({{"program", row.name},
                                 {"what", row.what},
                                 {"ours", sideJson(row.ours)},
                                 {"libtorch", sideJson(row.stock)},
                                 {"eager_calls", row.eager_calls}});
  }
  console.print(table.str());
  console.line();
  for (const PruningRow& row : *rows) console.paragraph(row.name + ": " + row.what, 2);
  if (const auto written = writeJson(json, result); !written) return tl::make_unexpected(written.error());
  return ExitCode::Clean;
}

}  // namespace faultline::cli
