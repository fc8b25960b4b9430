// faultline list WHAT: every list is printed from the table that the program itself works with.
#include <functional>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "fuzz/cli/command.h"
#include "fuzz/cli/console.h"
#include "fuzz/cli/json.h"
#include "fuzz/cli/options.h"
#include "fuzz/cli/words.h"
#include "generators/generate/generate.h"
#include "generators/ops/op_row.h"
#include "oracles/campaign/campaign.h"
#include "oracles/lane.h"
#include "oracles/oracle.h"
#include "oracles/passes/stock_passes.h"

namespace faultline::cli {
namespace {

// One row: what `--json` prints; people see "name" and "help", and the fields named in `shown` between them.
struct List {
  std::string word, help;
  std::vector<std::string> shown;
  std::function<std::vector<Json>()> rows;
  bool in_lines = false;  // people see the help under the rest, which is too long to stand beside it
};

Json row(const std::string& name, const std::string& help) { return {{"name", name}, {"help", help}}; }

// A row per item, with the fields that `fill` adds.
template <class Items, class Fill>
std::vector<Json> rowsOf(const Items& items, Fill fill) {
  std::vector<Json> rows;
  for (const auto& item : items) {
    rows.push_back(row(item.name, item.help));
    fill(item, rows.back());
  }
  return rows;
}

std::vector<Json> ops() {
  return rowsOf(opRows(), [](const OpRow& op, Json& entry) {
    entry["schema"] = op.schema;
    entry["family"] = op.family;
    entry["operands"] = op.operands;
    entry["differentiable"] = op.differentiable;
    entry["mutates"] = op.mutates;
    entry["view"] = op.view;
  });
}

std::vector<Json> oracles() {
  return rowsOf(allOracles(), [](const OracleInfo& oracle, Json& entry) { entry["lanes"] = oracle.lanes; });
}

std::vector<Json> lanes() {
  return rowsOf(allLanes(), [](const LaneInfo& lane, Json& entry) { entry["group"] = lane.group; });
}

std::vector<Json> features() {
  return rowsOf(generatorFeatures(), [](const GeneratorFeature&, Json&) {});
}

std::vector<Json> kinds() {
  return {
#define FAULTLINE_KIND(name, help) row(#name, help),
#include "oracles/kinds.def"
#undef FAULTLINE_KIND
  };
}

std::vector<Json> hooks() {
  std::vector<Json> rows = {
#define FAULTLINE_HOOK(Name, word, help) row(word, help),
#include "generators/case/hooks.def"
  };
  std::vector<Json> actions = {
#define FAULTLINE_HOOK_ACTION(Name, word, fits, help) row(word, std::string("that ") + help),
#include "generators/case/hooks.def"
  };
  rows.insert(rows.end(), actions.begin() + 1, actions.end());  // the first does nothing
  return rows;
}

std::vector<Json> breaks() {
  std::vector<Json> rows = {
#define FAULTLINE_BREAK(code, sentence) row(#code, sentence),
#include "engine/graph_break/breaks.def"
#undef FAULTLINE_BREAK
  };
  // The sentences have a hole for the op that stands in the way.
  for (Json& entry : rows)
    entry["help"] = fmt::format(fmt::runtime(entry["help"].get<std::string>()), "an op");
  return rows;
}

std::vector<Json> policies() {
  const auto policy = [](const std::string& name, const std::string& arguments, const std::string& help) {
    Json entry = row(name, help);
    entry["form"] = arguments;
    return entry;
  };
  std::vector<Json> rows = {
#define FAULTLINE_POLICY(Name, word, arguments, help) \
  policy(std::string_view(word).empty() ? #Name : word, arguments, help),
#include "faultline/break_policies.def"
#undef FAULTLINE_POLICY
  };
  // As the command line takes it: "[NAME,…]" is "[:NAME,…]" there.
  for (Json& entry : rows) {
    const std::string name = entry["name"], arguments = entry["form"];
    entry["form"] = arguments.empty()     ? name
                    : arguments[0] == '[' ? name + "[:" + arguments.substr(1)
                                          : name + ":" + arguments;
  }
  return rows;
}

std::vector<Json> passes() {
  std::vector<Json> rows;
  for (const StockPass& pass : stockPasses())
    rows.push_back(row(pass.name, pass.meant_for.empty() ? "any graph" : pass.meant_for));
  return rows;
}

std::vector<Json> known() {
  std::vector<Json> rows;
  for (const KnownIssue& issue : knownIssues()) {
    Json entry = row(issue.id, issue.help);
    entry["signature"] = issue.signature;
    entry["trigger"] = issue.trigger;
    entry["from"] = issue.from;
    entry["to"] = issue.to;
    entry["link"] = issue.link;
    rows.push_back(std::move(entry));
  }
  return rows;
}

std::vector<Json> targets() {
  return {
#define FAULTLINE_FUZZ_TARGET(name, help) row(#name, help),
#include "fuzz_targets.inc"  // made by fuzz/CMakeLists.txt from the files in fuzz/targets
#undef FAULTLINE_FUZZ_TARGET
  };
}

const std::vector<List>& lists() {
  static const std::vector<List> all = {
      {"ops", "what generated programs are made of", {"schema"}, ops},
      {"passes", "libtorch's passes, which profile --passes tries", {}, passes},
      {"oracles", "claims that cases are judged by: --oracle", {}, oracles},
      {"lanes", "ways to execute a case, and their groups: --lane", {"group"}, lanes},
      {"breaks", "reasons why a cut is refused", {}, breaks},
      {"hooks", "kinds of gradient hooks in cases, and what they do", {}, hooks},
      {"features", "what generated cases have in them: --features", {}, features},
      {"kinds", "kinds of failures, in signatures", {}, kinds},
      {"known", "known issues, by id", {"signature"}, known, /*in_lines=*/true},
      {"targets", "libFuzzer targets", {}, targets},
      {"policies", "where to break a graph: break --policy", {"form"}, policies},
  };
  return all;
}

struct ListOptions {
  std::string what, json;
};

Result<ExitCode> runList(const ListOptions& options) {
  std::vector<std::string> words;
  for (const List& list : lists()) words.push_back(list.word);
  if (options.what.empty()) {
    const Console console(options.json);
    Table table({"", ""});
    std::vector<Json> rows;
    for (const List& list : lists()) {
      table.add({list.word, list.help});
      rows.push_back(row(list.word, list.help));
    }
    console.line("faultline list WHAT, where WHAT is one of:");
    if (options.json != "-") console.print(table.str(2));
    const auto written = writeJson(options.json, Json(rows));
    return written ? Result<ExitCode>(ExitCode::Clean) : tl::make_unexpected(written.error());
  }
  const auto found = std::find(words.begin(), words.end(), options.what);
  if (found == words.end())
    return tl::make_unexpected(unknownWord("list", options.what, words, "faultline list --help"));
  const List& list = lists()[static_cast<size_t>(found - words.begin())];
  const std::vector<Json> rows = list.rows ? list.rows() : std::vector<Json>{};
  const Console console(options.json);
  Table table(std::vector<std::string>(list.shown.size() + 2));
  table.wrapLast();
  for (const Json& entry : rows) {
    std::vector<std::string> cells = {entry["name"]};
    for (const std::string& field : list.shown) cells.push_back(entry[field]);
    cells.push_back(entry["help"]);
    table.add(std::move(cells));
  }
  if (list.in_lines && options.json != "-") {
    for (const Json& entry : rows) {
      std::string head = entry["name"];
      for (const std::string& field : list.shown) head += "  " + entry[field].get<std::string>();
      console.paragraph(head);
      console.paragraph(entry["help"].get<std::string>(), 4);
    }
  }
  if (table.empty()) console.line(fmt::format("Nothing in the list '{}' yet.", options.what));
  if (!table.empty() && !list.in_lines && options.json != "-") console.print(table.str());
  const auto written = writeJson(options.json, Json(rows));
  return written ? Result<ExitCode>(ExitCode::Clean) : tl::make_unexpected(written.error());
}

}  // namespace

Action defineList(CLI::App& app) {
  auto options = std::make_shared<ListOptions>();
  std::string words;
  for (const List& list : lists()) words += (words.empty() ? "" : ", ") + list.word;
  app.add_option("WHAT", options->what, "one of " + words + "; without it: what each holds");
  addJson(app, options->json);
  app.footer("  faultline list oracles");
  return [options] { return runList(*options); };
}

}  // namespace faultline::cli
