// The flight recorder: a memory-mapped file in which a worker notes what it is about to do, so that its
// parent can save the case when it dies. Layout and consistency rule: oracles/workers/README.md.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "faultline/error.h"
#include "oracles/workers/system.h"

namespace faultline {

enum class FlightStage : uint32_t { Idle, Generating, Judging };

// What a dying worker could still note about itself. Written by a signal handler: plain memory, no
// allocation.
struct CrashNote {
  static constexpr size_t kFrames = 32;
  struct Frame {
    char module[64];   // file name of the shared object
    char symbol[184];  // mangled; empty: not exported
    uint64_t offset;   // into the module
  };
  std::atomic<int32_t> signal{0};  // 0: no crash was noted
  std::atomic<uint32_t> frames{0};
  std::array<Frame, kFrames> frame;
};

// The record of one process, read after its death.
struct FlightRecord {
  struct Frame {
    std::string module, symbol;
    uint64_t offset = 0;
  };
  FlightStage stage = FlightStage::Idle;
  uint64_t job = 0;
  std::string text;               // Judging: the case
  bool text_cut = false;          // … was larger than the recorder takes, and is missing
  std::vector<uint64_t> choices;  // Generating: the tape so far
  std::string op;                 // Generating: the op that was about to run …
  uint64_t op_ordinal = 0;        // … and how many ran before it
  std::string lane, phase;        // Judging: empty before the first step
  int run = 0;
  int signal = 0;             // of a noted crash
  std::vector<Frame> frames;  // innermost first, the handler's own left out
};

class FlightRecorder {
 public:
  static constexpr size_t kMaxText = size_t{16} << 20;

  // Makes the file with its first disk blocks really allocated: a full disk is an Error here, never a SIGBUS
  // later.
  static Result<void> create(const std::string& path);
  static Result<FlightRecorder> open(const std::string& path);
  FlightRecorder(FlightRecorder&& other) noexcept;
  FlightRecorder& operator=(FlightRecorder&& other) noexcept;
  ~FlightRecorder();

  void idle();
  void beginGenerating(uint64_t job);
  // `choices` must begin with those of the previous call for the same job.
  void pendingOp(std::string_view op, uint64_t ordinal, const std::vector<uint64_t>& choices);
  void beginJudging(uint64_t job, std::string_view text);
  void step(std::string_view lane, int run, std::string_view phase);
  CrashNote& crash();

  struct Position;
  struct Header;

 private:
  FlightRecorder(UniqueFd fd, Header* header, size_t size)
      : fd_(std::move(fd)), header_(header), size_(size) {}
  Position& prepare();  // the slot that is not published, filled with a copy of the one that is
  void publish();
  void putData(Position& position, std::string_view bytes);
  bool reserve(size_t end);  // room for data up to `end`
  char* data();

  UniqueFd fd_;
  Header* header_ = nullptr;
  size_t size_ = 0;  // of the file
};

// What a dead process left. Refuses a file that is no recorder's; any other content gives a record, possibly
// empty.
Result<FlightRecord> readFlightRecord(const std::string& path);

}  // namespace faultline
