// Runs the target it is linked with over files, folders and, with --mutate N, over N edits of each: the same
// target as libFuzzer's, in an ordinary build and under ctest. Says how many inputs ran, so that "none" is
// seen.
#include <ATen/Parallel.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "fuzz/libfuzzer/target.h"

namespace faultline::fuzz {
void seen(std::string_view) {}
}  // namespace faultline::fuzz

namespace {

namespace fs = std::filesystem;

std::set<fs::path> inputsOf(const std::vector<std::string>& arguments) {
  std::set<fs::path> files;  // sorted: the same order on every file system
  for (const auto& argument : arguments) {
    if (fs::is_directory(argument)) {
      for (const auto& entry : fs::recursive_directory_iterator(argument)) {
        if (entry.is_regular_file()) {
          files.insert(entry.path());
        }
      }
    } else {
      files.insert(argument);
    }
  }
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  const auto& target = faultline::fuzz::target;
  uint64_t edits = 0;
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--mutate" && i + 1 < argc) {
      edits = std::strtoull(argv[++i], nullptr, 10);
    } else {
      arguments.emplace_back(argv[i]);
    }
  }
  size_t ran = 0, refused = 0;
  for (const auto& path : inputsOf(arguments)) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
      std::fprintf(stderr, "%s: cannot be opened\n", path.c_str());
      return 2;
    }
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    target.run(bytes) ? ++ran : ++refused;
    for (uint64_t seed = 1; target.mutate != nullptr && seed <= edits; ++seed) {
      bytes = target.mutate(bytes, seed);
      target.run(bytes) ? ++ran : ++refused;
    }
  }
  std::printf("%s: %zu inputs, no finding; %zu are none of this target's\n", target.name, ran, refused);
  return ran == 0 ? 3 : 0;
}
