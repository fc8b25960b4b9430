#include "oracles/workers/death.h"

#include <csignal>

#include <gtest/gtest.h>

#include "oracles/workers/crash_handler.h"

namespace faultline {
namespace {

FlightRecord recordOf(std::vector<FlightRecord::Frame> frames, int signal) {
  FlightRecord record;
  record.stage = FlightStage::Judging;
  record.lane = "stock";
  record.run = 1;
  record.phase = "forward";
  record.frames = std::move(frames);
  record.signal = signal;
  return record;
}

TEST(Crash, IsNamedAfterTheFirstFrameThatIsOursOrLibtorchs) {
  const std::vector<FlightRecord::Frame> frames{
      {"libc.so.6", "gsignal", 1},
      {"libc.so.6", "abort", 1},
      {"libstdc++.so.6", "_ZSt9terminatev", 1},
      {"libtorch_cpu.so", "", 1},
      {"libtorch_cpu.so", "_ZN2at6native12_GLOBAL__N_13addIfEEvRKNS_6TensorE", 1},
      {"libtorch_cpu.so", "_ZN2at4_ops3add4callE", 1},
  };
  EXPECT_EQ(describeCrash(SIGABRT, frames), "SIGABRT:at::native::add");
}

TEST(Crash, OfABrokenInvariantIsNamedAfterItsPlace) {
  const std::vector<FlightRecord::Frame> frames{
      {"libfaultline_engine.so",
       "_ZN9faultline6detail11checkFailedEPKciS2_RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", 1},
      {"libfaultline_engine.so", "_ZN9faultline10planBreaksERKN5torch3jit5GraphERKNS_11BreakPolicyE", 1}};
  EXPECT_EQ(describeCrash(SIGABRT, frames), "SIGABRT:faultline::planBreaks");
}

TEST(Crash, WithoutANamedFrameIsTheSignal) {
  EXPECT_EQ(describeCrash(SIGSEGV, {}), "SIGSEGV");
  EXPECT_EQ(describeCrash(SIGSEGV, {{"libc.so.6", "memcpy", 1}}), "SIGSEGV");
}

TEST(Crash, WordsFitASignature) {
  EXPECT_EQ(wordOf("a b/c<int>", 99), "a_b_c_int_");
  EXPECT_EQ(wordOf("  x", 99), "x");
  EXPECT_EQ(wordOf("abcdef", 3), "abc");
}

TEST(Death, SaysWhatKilledTheWorker) {
  EXPECT_EQ(describeDeath(EndReason::Deadline, SIGKILL, recordOf({}, 0), "").kind, FailureKind::timeout);
  EXPECT_EQ(describeDeath(EndReason::Memory, SIGKILL, recordOf({}, 0), "").kind, FailureKind::oom);
  const Death killed = describeDeath(EndReason::Itself, SIGKILL, recordOf({}, 0), "");
  EXPECT_EQ(killed.kind, FailureKind::oom);
  EXPECT_EQ(killed.message,
            "the process was killed (SIGKILL), perhaps out of memory, in lane stock, run 2, forward");
  EXPECT_EQ(describeDeath(EndReason::Protocol, 0, recordOf({}, 0), "").detail, "protocol");
  const Death exited = describeDeath(EndReason::Itself, 3 << 8, recordOf({}, 0), "first\nlast words\n\n");
  EXPECT_EQ(exited.kind, FailureKind::crash);
  EXPECT_EQ(exited.detail, "exit_3");
  EXPECT_EQ(
      exited.message,
      "the process ended itself with exit code 3 in lane stock, run 2, forward; it said last: last words");
  EXPECT_EQ(describeDeath(EndReason::Itself, SIGBUS, recordOf({}, 0), "").detail, "SIGBUS");
}

TEST(Death, KnowsSanitizerReports) {
  const Death death =
      describeDeath(EndReason::Itself, 1 << 8, recordOf({}, 0),
                    "==1==ERROR\nSUMMARY: AddressSanitizer: heap-use-after-free /a/b.cpp:3:4 in "
                    "faultline::(anonymous namespace)::f(int)\n==1==ABORTING\n");
  EXPECT_EQ(death.kind, FailureKind::sanitizer);
  EXPECT_EQ(death.detail, "heap-use-after-free:faultline::f");
}

}  // namespace
}  // namespace faultline
