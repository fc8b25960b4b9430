// Runs the built faultline binary and captures what it says. All in a header: test binaries are made of
// *_test.cpp only.
#pragma once
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace faultline::test {

inline std::string repositoryRoot() { return std::filesystem::path(FAULTLINE_CORPUS).parent_path().string(); }

inline std::string readWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

// A path below a folder of this test's own, which is emptied when it starts.
inline std::string scratchPath(const std::string& name) {
  static const std::filesystem::path folder = [] {
    const std::filesystem::path path = std::filesystem::path(FAULTLINE_BINARY_DIR) / "cli_test";
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
    return path;
  }();
  return (folder / name).string();
}

inline std::string writeScratch(const std::string& name, const std::string& bytes) {
  const std::string path = scratchPath(name);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

inline std::vector<std::string> linesOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline size_t widest(const std::string& text) {  // in code points
  size_t width = 0;
  for (const std::string& line : linesOf(text)) {
    const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
    width = std::max(width, static_cast<size_t>(std::count_if(line.begin(), line.end(), begins)));
  }
  return width;
}

struct Outcome {
  int code = 0;  // of the process; 128 + the signal that ended it
  std::string out, err;

  // stderr as it was before it was wrapped.
  std::string complaint() const {
    std::string text = err;
    for (size_t at = 0; (at = text.find("\n  ", at)) != std::string::npos;) text.replace(at, 3, " ");
    return text;
  }

  nlohmann::json json() const {
    auto value = nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(value.is_discarded()) << "no JSON: " << out << err;
    return value;
  }
};

using Arguments = std::vector<std::string>;

inline bool hasChildren(pid_t process) {
  const std::string number = std::to_string(process);
  return !readWhole("/proc/" + number + "/task/" + number + "/children").empty();
}

// Started in the root of the repository, without a terminal. `signal` is sent a second after the first
// output or the first worker, which say that the program is up. `terminal`: takes stderr.
inline Outcome startFaultline(Arguments arguments, int signal = 0, const std::string& terminal = "") {
  const std::string out = scratchPath("stdout"), err = terminal.empty() ? scratchPath("stderr") : terminal;
  std::filesystem::remove(out);
  std::string program = FAULTLINE_BINARY_DIR "/faultline";
  std::vector<char*> argv = {program.data()};
  for (std::string& word : arguments) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addchdir_np(&files, repositoryRoot().c_str());
  pid_t child = 0;
  const int failed = posix_spawn(&child, program.c_str(), &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  Outcome outcome;
  if (failed != 0) {
    ADD_FAILURE() << "cannot start " << program << ": " << std::strerror(failed);
    return outcome;
  }
  if (signal != 0) {
    for (int i = 0; i < 1200 && readWhole(out).empty() && !hasChildren(child); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::this_thread::sleep_for(std::chrono::seconds(1));
    kill(child, signal);
  }
  int status = 0;
  waitpid(child, &status, 0);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = readWhole(out);
  if (terminal.empty()) outcome.err = readWhole(err);
  return outcome;
}

// The same arguments are run once per test binary and remembered: loading libtorch takes its time.
inline const Outcome& faultline(const Arguments& arguments) {
  static std::map<Arguments, Outcome> remembered;
  const auto [at, fresh] = remembered.try_emplace(arguments);
  if (fresh) at->second = startFaultline(arguments);
  return at->second;
}

// Exit code 2, nothing on stdout, and one sentence on stderr.
inline void expectUsageError(const Outcome& outcome, const std::string& says) {
  EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const std::string said = outcome.complaint();
  EXPECT_NE(said.find(says), std::string::npos) << "expected '" << says << "' in: " << said;
  EXPECT_EQ(linesOf(said).size(), 1u) << said;
}

}  // namespace faultline::test
