// A command: a word, its options, and what it does with them. The table is commands.def.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "faultline/error.h"
#include "fuzz/cli/exit_code.h"

namespace CLI {
class App;
}

namespace faultline::cli {

// Runs once, after all options were read without error. An Error is bad input: it is printed as one line and
// the process ends with ExitCode::Usage. An exception is a fault of ours: ExitCode::Broken.
using Action = std::function<Result<ExitCode>()>;

struct Command {
  enum class Visibility { Visible, Hidden };
  std::string word;
  Visibility visibility = Visibility::Visible;
  std::string help;
  // Adds arguments, options and the example (as the footer) to the subcommand's App; what they are parsed
  // into lives in the returned action.
  Action (*define)(CLI::App& app) = nullptr;
};

const std::vector<Command>& allCommands();

#define FAULTLINE_COMMAND(word, Name, visibility, help) Action define##Name(CLI::App& app);
#include "fuzz/cli/commands.def"
#undef FAULTLINE_COMMAND

}  // namespace faultline::cli
