// faultline worker: the process that judges; its arguments belong to oracles/workers.
#include <CLI/CLI.hpp>

#include "fuzz/cli/command.h"
#include "oracles/workers/worker.h"

namespace faultline::cli {

Action defineWorker(CLI::App& app) {
  app.prefix_command();
  return [&app]() -> Result<ExitCode> {
    std::vector<std::string> arguments = app.remaining();
    arguments.insert(arguments.begin(), "faultline");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    return static_cast<ExitCode>(workerMain(static_cast<int>(argv.size()), argv.data()));
  };
}

}  // namespace faultline::cli
