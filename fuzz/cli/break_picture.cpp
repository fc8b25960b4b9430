#include "fuzz/cli/break_picture.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "fuzz/cli/json.h"
#include "fuzz/cli/options.h"
#include "fuzz/cli/words.h"

namespace faultline::cli {
namespace {

// Graphviz reads its text from a pipe and writes the picture into a file of its own.
Result<std::string> laidOut(const std::string& dot) {
  std::error_code status;
  std::string path = (std::filesystem::temp_directory_path(status) / "faultline-break-XXXXXX").string();
  const int file = status ? -1 : mkstemp(path.data());
  if (file < 0) return fail(ErrorKind::Io, fmt::format("--svg: no temporary file for the picture: {}", path));
  close(file);
  FILE* pipe = popen(fmt::format("dot -Tsvg -o {} 2>/dev/null", shellQuoted(path)).c_str(), "w");
  const bool fed = pipe != nullptr && std::fwrite(dot.data(), 1, dot.size(), pipe) == dot.size();
  const bool good = pipe != nullptr && pclose(pipe) == 0 && fed;
  std::ifstream read(path);
  std::string svg{std::istreambuf_iterator<char>(read), {}};
  unlink(path.c_str());
  if (!good || svg.empty()) {
    return fail(ErrorKind::Io, "--svg: Graphviz' dot is missing or failed; --dot writes the text without it");
  }
  return svg;
}

}  // namespace

void addPictures(CLI::App& app, PictureFlags& flags, CLI::Option* exec) {
  addFile(app, "--dot", flags.dot, "write the broken graph as Graphviz text");
  addFile(app, "--svg", flags.svg, "write the broken graph as a picture, a box per piece");
  addFile(app, "--timeline", flags.timeline, "write what happened when, as a Chrome trace; '-' is stdout")
      ->needs(exec);
  addFile(app, "--timeline-svg", flags.timeline_svg,
          "write what happened when as a picture: a lane per piece, hooks between them")
      ->needs(exec);
}

std::string pictureOnStdout(const PictureFlags& flags) {
  for (const std::string* file : {&flags.dot, &flags.svg, &flags.timeline, &flags.timeline_svg}) {
    if (*file == "-") return "-";
  }
  return {};
}

Result<void> checkPictures(const PictureFlags& flags, const std::string& json) {
  std::map<std::string, std::string> taken;
  if (!json.empty()) taken.emplace(json, "--json");
  const std::pair<const char*, const std::string*> files[] = {{"--dot", &flags.dot},
                                                              {"--svg", &flags.svg},
                                                              {"--timeline", &flags.timeline},
                                                              {"--timeline-svg", &flags.timeline_svg}};
  for (const auto& [name, file] : files) {
    if (file->empty()) continue;
    const auto [before, free] = taken.emplace(*file, name);
    if (free) continue;
    return fail(ErrorKind::Invalid, fmt::format("{} {}: {} is taken by {}", name, *file,
                                                *file == "-" ? "stdout" : "that file", before->second));
  }
  return {};
}

Result<void> drawPlan(const PictureFlags& flags, const torch::jit::Graph& graph, const BreakPlan& plan) {
  if (flags.dot.empty() && flags.svg.empty()) return {};
  const auto dot = planDot(graph, plan);
  if (!dot) return tl::make_unexpected(dot.error());
  if (auto written = writeText(flags.dot, *dot); !written) return written;
  if (flags.svg.empty()) return {};
  const auto svg = laidOut(*dot);
  return svg ? writeText(flags.svg, *svg) : tl::make_unexpected(svg.error());
}

Result<void> drawTimeline(const PictureFlags& flags, const Timeline& timeline) {
  if (!flags.timeline.empty()) {
    if (auto written = writeText(flags.timeline, timeline.chromeTrace()); !written) return written;
  }
  return flags.timeline_svg.empty() ? Result<void>() : writeText(flags.timeline_svg, timeline.svg());
}

}  // namespace faultline::cli
