// The pictures that `break` writes.
#pragma once
#include <string>

#include "faultline/graph_break.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace faultline::cli {

struct PictureFlags {
  std::string dot, svg, timeline, timeline_svg;
};

// `exec`: the flag that runs the graph, without which there is no timeline.
void addPictures(CLI::App& app, PictureFlags& flags, CLI::Option* exec);
// Refuses two files on stdout; `json` is where --json goes.
Result<void> checkPictures(const PictureFlags& flags, const std::string& json);
// The file that takes stdout, if one does.
std::string pictureOnStdout(const PictureFlags& flags);

// --dot and --svg. Refuses what cannot be written, and an SVG where Graphviz' dot is missing or takes
// longer than `seconds`; the --dot is written all the same.
Result<void> drawPlan(const PictureFlags& flags, const torch::jit::Graph& graph, const BreakPlan& plan,
                      double seconds);
Result<void> drawTimeline(const PictureFlags& flags, const Timeline& timeline);

}  // namespace faultline::cli
