// Options with values that are read strictly: `--cases 10x` is a usage error, not 10.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faultline/error.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace faultline::cli {

Result<uint64_t> parseCount(std::string_view text);   // decimal digits, nothing else, 64 bits
Result<double> parseDuration(std::string_view text);  // "500ms", "120s", "10m", "2h": seconds, more than 0

// Each adds an option whose value is put into `into` when it is given; a value that does not parse is a usage
// error.
CLI::Option* addCount(CLI::App& app, const std::string& names, std::optional<uint64_t>& into,
                      const std::string& help);
CLI::Option* addDuration(CLI::App& app, const std::string& names, std::optional<double>& into,
                         const std::string& help);
// A word, or several with commas; may be given more than once.
CLI::Option* addWords(CLI::App& app, const std::string& names, std::vector<std::string>& into,
                      const std::string& type, const std::string& help);
// A value that may be given more than once and may contain commas.
CLI::Option* addRepeated(CLI::App& app, const std::string& names, std::vector<std::string>& into,
                         const std::string& type, const std::string& help);

// --json FILE and --input NAME=SPEC, the same wherever they stand.
// Refuses an empty name: a shell variable that is not set would lose the result.
CLI::Option* addFile(CLI::App& app, const std::string& names, std::string& path, const std::string& help);
void addJson(CLI::App& app, std::string& path);
void addInput(CLI::App& app, std::vector<std::string>& inputs);

}  // namespace faultline::cli
