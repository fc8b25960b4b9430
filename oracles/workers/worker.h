// A worker process: reads jobs as JSON lines from stdin, answers with JSON lines on stdout. What the CLI's
// hidden command `worker` and the test helper run; started by oracles/workers/pool.h, never by hand.
#pragma once

namespace faultline {

// Arguments behind the program's name: `--recorder FILE` (the flight recorder, made by the parent), `--parent
// PID`,
// `--plugin SO` (any number of times). A leading word `worker` is skipped. Returns the process's exit code
// when stdin ends. From the first line on stdout belongs to the protocol: whatever else the process prints
// goes to stderr.
int workerMain(int argc, char** argv);

}  // namespace faultline
