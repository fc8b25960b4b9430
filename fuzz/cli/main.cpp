// Parses the command line, runs one command, turns its outcome into an exit code.
#include <csignal>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/csrc/jit/runtime/print_handler.h>
#include <CLI/CLI.hpp>

#include "fuzz/cli/command.h"
#include "fuzz/cli/console.h"
#include "fuzz/cli/help.h"
#include "fuzz/cli/json.h"
#include "fuzz/cli/words.h"
#include "oracles/campaign/setup.h"

namespace faultline::cli {

const std::vector<Command>& allCommands() {
  static const std::vector<Command> commands = {
#define FAULTLINE_COMMAND(word, Name, visibility, help) \
  {word, Command::Visibility::visibility, help, define##Name},
#include "fuzz/cli/commands.def"
#undef FAULTLINE_COMMAND
  };
  return commands;
}

namespace {

constexpr const char* kExamples =
    "  faultline fuzz --cases 200 --seed 1\n"
    "  faultline check model.pt --input 'x=float32[4,8]'\n"
    "  faultline break model.pt --input 'x=float32[4,8]' --every 4 --exec\n"
    "  faultline fuzz --help";

// The subcommand that was given, or the program itself.
const CLI::App& chosen(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? app : *given.front();
}

int usage(const CLI::App& at, const std::string& message) {
  const std::string command = at.get_parent() == nullptr ? "faultline" : "faultline " + at.get_name();
  complainOf(fmt::format("{}: {} (see {} --help)", command, message, command));
  return static_cast<int>(ExitCode::Usage);
}

// What stands on the command line and is neither an option nor an argument of the command.
std::optional<std::string> describeExtra(const CLI::App& at) {
  const std::vector<std::string> extras = at.remaining();
  if (extras.empty() || at.get_prefix_command()) return std::nullopt;
  if (extras.front() == "--") return "'--' ends the flags, and no command stands before it";
  const auto is_flag = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
  // Behind an unknown command no flag is known either.
  const bool unknown_command = at.get_parent() == nullptr && !is_flag(extras.front());
  for (const std::string& extra : extras) {
    if (unknown_command || !is_flag(extra)) continue;
    const std::string flag = extra.substr(0, extra.find('='));
    std::vector<std::string> known;
    for (const CLI::Option* option : at.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      for (const std::string& name : option->get_snames()) known.push_back("-" + name);
    }
    return unknownWord("flag", flag, known).message;
  }
  if (unknown_command) {
    std::vector<std::string> words;
    for (const Command& command : allCommands()) {
      if (command.visibility == Command::Visibility::Visible) words.push_back(command.word);
    }
    return unknownWord("command", extras.front(), words).message;
  }
  return fmt::format("unexpected argument '{}'", extras.front());
}

int runAction(const CLI::App& command, const Action& action) {
  const std::string name = "faultline " + command.get_name();
  try {
    const Result<ExitCode> outcome = action();
    if (outcome) return static_cast<int>(*outcome);
    complainOf(fmt::format("{}: {}", name, outcome.error().str()));
    return static_cast<int>(ExitCode::Usage);
  } catch (const WriteFailure& error) {
    complainOf(fmt::format("{}: {}", name, error.what()));
  } catch (const c10::Error& error) {
    // what() would carry a backtrace and addresses.
    complainOf(fmt::format("{}: internal error: {}", name, error.what_without_backtrace()));
  } catch (const std::exception& error) {
    complainOf(fmt::format("{}: internal error: {}", name, error.what()));
  }
  return static_cast<int>(ExitCode::Broken);
}

int run(int argc, char** argv) {
  CLI::App app("finds faults in TorchScript: profile protocol, graph breaks, differential fuzzing",
               "faultline");
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag("--version", fmt::format("faultline {} (torch {})", version(), torchVersion()))
      ->description("print the versions of faultline and of the torch it was built with");
  app.footer(kExamples);
  app.require_subcommand(0, 1);
  app.allow_extras();  // reported by describeExtra, with the nearest word
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command& command : allCommands()) {
    CLI::App* sub = app.add_subcommand(command.word, command.help);
    if (command.visibility == Command::Visibility::Hidden) sub->group("");
    sub->allow_extras();
    actions.emplace_back(sub, command.define(*sub));
  }
  useOurHelp(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    // Not for the help of a command that there is not.
    const auto extra = describeExtra(app);
    if (extra && app.get_subcommands().empty()) return usage(app, *extra);
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    const CLI::App& at = chosen(app);
    return usage(at, describeExtra(at).value_or(error.what()));
  }
  const CLI::App& at = chosen(app);
  if (const auto extra = describeExtra(at)) return usage(at, *extra);
  for (const auto& [sub, action] : actions) {
    if (sub->parsed()) return runAction(*sub, action);
  }
  complain(app.help());
  return static_cast<int>(ExitCode::Usage);
}

// What was printed and is lost is worse than any outcome but bad usage.
int afterOutput(int code) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written || code == static_cast<int>(ExitCode::Usage)) return code;
  complain("faultline: standard output took no more: closed, or the disk is full\n");
  return static_cast<int>(ExitCode::Broken);
}

}  // namespace
}  // namespace faultline::cli

int main(int argc, char** argv) {
  // Kernels that split work over threads add in another order; results must not depend on the machine.
  at::set_num_threads(1);
  // A file that may grow no further is an error to report, as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  // stdout is for what we say of programs, and may be JSON: what they print themselves goes beside it.
  torch::jit::setPrintHandler([](const std::string& text) { faultline::cli::complain(text); });
  return faultline::cli::afterOutput(faultline::cli::run(argc, argv));
}
