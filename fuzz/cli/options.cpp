#include "fuzz/cli/options.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "fuzz/cli/json.h"

namespace faultline::cli {
namespace {

template <class T, class Parse>
CLI::Option* addParsed(CLI::App& app, const std::string& names, std::optional<T>& into,
                       const std::string& type, const std::string& help, Parse parse) {
  const auto take = [&into, names, parse](const std::string& text) {
    Result<T> value = parse(text);
    if (!value) throw CLI::ValidationError(names.substr(names.rfind(',') + 1), value.error().message);
    into = *value;
  };
  return app.add_option_function<std::string>(names, take, help)->type_name(type);
}

}  // namespace

Result<uint64_t> parseCount(std::string_view text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  if (status == std::errc::result_out_of_range) {
    return fail(ErrorKind::Invalid, fmt::format("'{}' does not fit into 64 bits", text));
  }
  if (text.empty() || status != std::errc() || stop != end) {
    return fail(ErrorKind::Invalid, fmt::format("expected a whole number, not '{}'", text));
  }
  return value;
}

Result<double> parseDuration(std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view unit = text.substr(digits);
  double value = 0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + digits, value);
  const bool number = digits > 0 && status == std::errc() && stop == text.data() + digits;
  constexpr double kLongest = 1e9;  // seconds; 30 years
  if (number && value == 0) return fail(ErrorKind::Invalid, "expected a time above zero");
  if (number && unit.empty()) {
    return fail(ErrorKind::Invalid, fmt::format("a time needs a unit: '{0}s', '{0}m' or '{0}h'", text));
  }
  for (const auto& [name, seconds] : kUnits) {
    if (!number || unit != name) continue;
    if (value * seconds > kLongest)
      return fail(ErrorKind::Invalid, fmt::format("'{}' is longer than 30 years", text));
    return value * seconds;
  }
  return fail(ErrorKind::Invalid, fmt::format("expected a time such as '120s' or '10m', not '{}'", text));
}

CLI::Option* addCount(CLI::App& app, const std::string& names, std::optional<uint64_t>& into,
                      const std::string& help) {
  return addParsed<uint64_t>(app, names, into, "N", help, parseCount);
}

CLI::Option* addDuration(CLI::App& app, const std::string& names, std::optional<double>& into,
                         const std::string& help) {
  return addParsed<double>(app, names, into, "TIME", help, parseDuration);
}

CLI::Option* addRepeated(CLI::App& app, const std::string& names, std::vector<std::string>& into,
                         const std::string& type, const std::string& help) {
  // One value per mention: otherwise a vector option would swallow the positional arguments behind it.
  return app.add_option(names, into, help)->type_name(type)->expected(1)->allow_extra_args(false)->take_all();
}

CLI::Option* addWords(CLI::App& app, const std::string& names, std::vector<std::string>& into,
                      const std::string& type, const std::string& help) {
  return addRepeated(app, names, into, type, help)->delimiter(',');
}

CLI::Option* addFile(CLI::App& app, const std::string& names, std::string& path, const std::string& help) {
  return app.add_option(names, path, help)->type_name("FILE")->check([](const std::string& name) {
    if (name.empty()) return std::string("expected the name of a file");
    // Before the work, which may take hours, and not behind it.
    const auto writable = checkWritable(name);
    return writable ? std::string() : writable.error().message;
  });
}

void addJson(CLI::App& app, std::string& path) {
  addFile(app, "--json", path, "write the result as JSON; '-' is stdout");
}

void addInput(CLI::App& app, std::vector<std::string>& inputs) {
  addRepeated(app, "--input", inputs, "NAME=SPEC",
              "an argument: 'x=float32[4,8]:grad', 'n=int=3'; repeatable");
}

}  // namespace faultline::cli
