#include "fuzz/cli/help.h"

#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "fuzz/cli/console.h"

namespace faultline::cli {
namespace {

constexpr size_t kColumn = 24;

std::string entry(const std::string& left, const std::string& help) {
  std::string text = "  " + left;
  // A long name gets a line of its own.
  if (displayWidth(text) + 2 > kColumn) {
    text += '\n' + std::string(kColumn, ' ');
  } else {
    text.append(kColumn - displayWidth(text), ' ');
  }
  return text + wrap(help, kWidth - kColumn, kColumn) + '\n';
}

std::string optionName(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  std::string name = option.get_name(false, true);
  for (size_t at = name.find(','); at != std::string::npos; at = name.find(',', at + 2))
    name.replace(at, 1, ", ");
  if (option.get_type_size_max() != 0) name += ' ' + option.get_type_name();
  return name;
}

class Formatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    const bool top = app->get_parent() == nullptr;
    std::string usage = top ? "faultline COMMAND" : "faultline " + app->get_name();
    std::string arguments, options, commands;
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_positional()) {
        const std::string name = optionName(*option) + (option->get_expected_max() > 1 ? "…" : "");
        usage += option->get_required() ? ' ' + name : " [" + name + ']';
        arguments += entry(name, option->get_description());
      } else {
        options += entry(optionName(*option), option->get_description());
      }
    }
    for (const CLI::App* command :
         app->get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); })) {
      commands += entry(command->get_name(), command->get_description());
    }
    std::string help = "Usage: " + usage + " [OPTIONS]\n\n";
    std::string description = app->get_description();
    if (!description.empty()) description[0] = static_cast<char>(std::toupper(description[0]));
    help += wrap(description + '.', kWidth) + '\n';
    if (!commands.empty()) help += "\nCommands:\n" + commands;
    if (!arguments.empty()) help += "\nArguments:\n" + arguments;
    if (!options.empty()) help += "\nOptions:\n" + options;
    if (!app->get_footer().empty()) help += "\nExample:\n" + app->get_footer() + '\n';
    return help;
  }
};

}  // namespace

void useOurHelp(CLI::App& app) {
  app.formatter(std::make_shared<Formatter>());
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    command->formatter(app.get_formatter());
  }
}

}  // namespace faultline::cli
