// Lanes that misbehave on some cases, and are the reference on all others. Registered by the test helper that
// is the worker and by the tests that start it: both must know the same lanes.
#pragma once
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "oracles/lane.h"

namespace faultline::planted {

// What a lane does when it misbehaves.
inline void segfault() {
  volatile int* nowhere = nullptr;
  *nowhere = 1;
}

inline void loopForEver() {
  for (volatile bool forever = true; forever;) {
  }
}

inline void exhaustMemory() {
  std::vector<std::unique_ptr<char[]>> blocks;
  // Bounded, so that a limit that does not work fails the test and not the machine.
  for (int i = 0; i < 48; ++i) {
    blocks.emplace_back(new char[size_t{64} << 20]);
    std::memset(blocks.back().get(), i + 1, size_t{64} << 20);
  }
}

// As a case that writes wherever it likes would: also to what the worker talks over.
inline void writeRubbish() {
  for (int fd = 0; fd < 64; ++fd) {
    struct stat info {};
    if (::fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode)) {
      static_cast<void>(::write(fd, "rubbish\n", 8) == 8);
    }
  }
}

inline void chatter() {
  std::puts("{\"id\": 1, \"results\": []}");
  std::fflush(stdout);
  static_cast<void>(::write(STDOUT_FILENO, "hello\n", 6) == 6);
}

class PlantedLane : public Lane {
 public:
  PlantedLane(std::string name, uint64_t remainder, void (*misbehave)())
      : name_(std::move(name)), remainder_(remainder), misbehave_(misbehave) {}

  Trace execute(const Case& c, uint64_t seed) override {
    if (c.seed % 8 == remainder_) {
      misbehave_();
    }
    Trace trace = findLane("reference")->make()->execute(c, seed);
    trace.lane = name_;
    return trace;
  }

 private:
  std::string name_;
  uint64_t remainder_;
  void (*misbehave_)();
};

class WrongLane : public Lane {
 public:
  Trace execute(const Case& c, uint64_t seed) override {
    Trace trace = findLane("reference")->make()->execute(c, seed);
    trace.lane = "planted.wrong";
    for (RunTrace& run : trace.runs) {
      for (PhaseTrace& phase : run.phases) {
        for (TensorTrace& output : phase.outputs) {
          const bool floating = output.defined && at::isFloatingType(output.dtype);
          if (c.seed % 2 == 0 && floating && output.values.numel() != 0) {
            output.values = output.values + 1000;
          }
        }
      }
    }
    return trace;
  }
};

// Different in every process, and so in a fresh worker: what must be found flaky.
class MoodyLane : public Lane {
 public:
  Trace execute(const Case& c, uint64_t seed) override {
    Trace trace = findLane("reference")->make()->execute(c, seed);
    trace.lane = "planted.moody";
    static int executed = 0;
    if (++executed == 3 && !trace.runs.empty() && !trace.runs[0].phases.empty()) {
      trace.runs[0].phases[0].outputs.clear();
    }
    return trace;
  }
};

inline void registerLanes() {
  if (findLane("planted.segfault") != nullptr) {
    return;
  }
  struct Row {
    const char* name;
    uint64_t remainder;
    void (*misbehave)();
  };
  static const Row rows[] = {{"planted.segfault", 0, segfault},
                             {"planted.abort", 1, [] { std::abort(); }},
                             {"planted.loop", 2, loopForEver},
                             {"planted.memory", 3, exhaustMemory},
                             {"planted.exit", 4, [] { std::exit(3); }},
                             {"planted.rubbish", 5, writeRubbish},
                             {"planted.chatter", 6, chatter}};
  for (const Row& row : rows) {
    const std::string group = std::string(row.name) == "planted.chatter"   ? "chatter"
                              : std::string(row.name) == "planted.rubbish" ? "rubbish"
                                                                           : "planted";
    registerLane({row.name, group,
                  "misbehaves when the seed of the case is " + std::to_string(row.remainder) + " modulo 8",
                  [row] { return std::make_unique<PlantedLane>(row.name, row.remainder, row.misbehave); }});
  }
  registerLane({"planted.wrong", "wrong", "wrong outputs where the seed is even",
                [] { return std::make_unique<WrongLane>(); }});
  registerLane({"planted.moody", "moody", "wrong the third time it runs",
                [] { return std::make_unique<MoodyLane>(); }});
}

}  // namespace faultline::planted
