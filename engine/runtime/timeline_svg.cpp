// The timeline as a picture. Time runs to the right, stretched where things would lie on each other: what
// counts is what came before what, and numbers are written down.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "faultline/timeline.h"

namespace faultline {

namespace {

using What = TimelineEvent::What;

constexpr double kLeft = 290, kTop = 46, kBar = 16, kPad = 8;
constexpr double kLetter = 6.1;   // width of a letter at 10 px
constexpr double kSlant = 0.643;  // sine of the 40 degrees that labels of hooks are turned by
constexpr size_t kMostLetters = 24;
constexpr size_t kMostEvents = 2000;

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string shortened(const std::string& name) {
  return name.size() <= kMostLetters ? name : name.substr(0, kMostLetters - 1) + "…";
}

struct Lane {
  double forward_us = 0, backward_us = 0;
  size_t hooks = 0, letters = 0;
  double top = 0, height = 0;
  double bar() const { return top + height - kPad - kBar; }
};

class Picture {
 public:
  explicit Picture(std::vector<TimelineEvent> events) : events_(std::move(events)) {
    if (events_.size() > kMostEvents) {
      dropped_ = events_.size() - kMostEvents;
      events_.resize(kMostEvents);
    }
    placeEvents();
    placeLanes();
  }

  std::string str() {
    const double bottom =
        lanes_.empty() ? kTop : lanes_.rbegin()->second.top + lanes_.rbegin()->second.height;
    const double width = right_ + 30 + kLetter * static_cast<double>(letters_);
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
        "{0:.0f} {1:.0f}\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        std::max(width, 640.0), bottom + 40);
    out += legend();
    for (const auto& [piece, lane] : lanes_) {
      out += laneText(piece, lane, width);
    }
    for (size_t i = 0; i < events_.size(); ++i) {
      if (events_[i].what == What::Hook) {
        out += fmt::format(
            "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"#e3b7b1\" "
            "stroke-width=\"0.7\"/>\n",
            begin_[i], kTop, bottom);
      }
    }
    for (size_t i = 0; i < events_.size(); ++i) {
      out += events_[i].what == What::Hook ? hookText(i) : barText(i);
    }
    return out + axis(bottom) + "</svg>\n";
  }

 private:
  // Where events begin and end, from left to right: as far apart as in time, but never too near to be seen.
  void placeEvents() {
    struct Stop {
      double us;
      size_t event;
      bool end;
    };
    std::vector<Stop> stops;
    double last_us = 0;
    for (size_t i = 0; i < events_.size(); ++i) {
      stops.push_back({events_[i].begin_us, i, false});
      if (events_[i].what != What::Hook) {
        stops.push_back({events_[i].end_us, i, true});
      }
      last_us = std::max(last_us, events_[i].end_us);
    }
    // Of one moment: what began earlier ends first.
    std::stable_sort(stops.begin(), stops.end(), [](const Stop& a, const Stop& b) { return a.us < b.us; });
    begin_.assign(events_.size(), kLeft);
    end_.assign(events_.size(), kLeft);
    double x = kLeft + 10, before = stops.empty() ? 0 : stops.front().us;
    for (const Stop& stop : stops) {
      const double natural = last_us > 0 ? std::min((stop.us - before) / last_us * 700, 160.0) : 0;
      x += std::max(natural, stop.end ? 14.0 : 18.0);
      (stop.end ? end_ : begin_)[stop.event] = x;
      before = std::max(before, stop.us);
    }
    right_ = x + 20;
  }

  void placeLanes() {
    for (const TimelineEvent& event : events_) {
      Lane& lane = lanes_[event.piece];
      if (event.what == What::Hook) {
        ++lane.hooks;
        lane.letters = std::max(lane.letters, std::min(event.name.size(), kMostLetters));
      } else {
        (event.what == What::Forward ? lane.forward_us : lane.backward_us) += event.end_us - event.begin_us;
      }
    }
    double top = kTop;
    for (auto& [piece, lane] : lanes_) {
      lane.top = top;
      lane.height = std::max(44.0, kBar + 3 * kPad + kLetter * static_cast<double>(lane.letters) * kSlant);
      letters_ = std::max(letters_, lane.letters);
      top += lane.height;
    }
  }

  static std::string legend() {
    std::string out;
    double x = 12;
    for (const auto& [fill, word] :
         {std::pair{"#8fb8de", "forward"}, {"#f0b15e", "backward"}, {"#c0392b", "hook"}}) {
      out += fmt::format(
          "<rect x=\"{}\" y=\"14\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" "
          "y=\"24\">{}</text>\n",
          x, fill, x + 17, word);
      x += 90;
    }
    return out + fmt::format(
                     "<text x=\"{}\" y=\"24\" fill=\"#666\">time to the right, in order; stretched where it "
                     "would overlap</text>\n",
                     x);
  }

  static std::string laneText(int piece, const Lane& lane, double width) {
    std::string out =
        fmt::format("<rect x=\"0\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", lane.top,
                    width, lane.height, piece % 2 == 0 ? "#f7f9fb" : "#ffffff");
    std::string numbers;
    if (lane.forward_us > 0) {
      numbers += fmt::format("forward {:.1f} µs", lane.forward_us);
    }
    if (lane.backward_us > 0) {
      numbers += fmt::format("{}backward {:.1f} µs", numbers.empty() ? "" : ", ", lane.backward_us);
    }
    if (lane.hooks > 0) {
      numbers +=
          fmt::format("{}{} hook{}", numbers.empty() ? "" : ", ", lane.hooks, lane.hooks == 1 ? "" : "s");
    }
    const std::string name = piece < 0 ? "outside" : fmt::format("piece {}", piece);
    return out + fmt::format(
                     "<text x=\"12\" y=\"{:.1f}\" font-weight=\"bold\">{}</text>"
                     "<text x=\"12\" y=\"{:.1f}\" font-size=\"10\" fill=\"#555\">{}</text>\n",
                     lane.bar() - 2, name, lane.bar() + 13, numbers);
  }

  std::string barText(size_t i) const {
    const TimelineEvent& event = events_[i];
    const bool forward = event.what == What::Forward;
    return fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"2\" fill=\"{}\" stroke=\"#555\" "
        "stroke-width=\"0.5\"><title>{} of piece {}: {:.1f} to {:.1f} µs</title></rect>\n",
        begin_[i], lanes_.at(event.piece).bar(), std::max(end_[i] - begin_[i], 4.0), kBar,
        forward ? "#8fb8de" : "#f0b15e", forward ? "forward" : "backward", event.piece, event.begin_us,
        event.end_us);
  }

  std::string hookText(size_t i) const {
    const TimelineEvent& event = events_[i];
    const double bar = lanes_.at(event.piece).bar();
    return fmt::format(
        "<g><title>{0} at {1:.1f} µs</title><line x1=\"{2:.1f}\" x2=\"{2:.1f}\" y1=\"{3:.1f}\" "
        "y2=\"{4:.1f}\" "
        "stroke=\"#c0392b\" stroke-width=\"2\"/><text transform=\"translate({5:.1f} {6:.1f}) rotate(-40)\" "
        "font-size=\"10\" fill=\"#7d241a\">{7}</text></g>\n",
        escaped(event.name), event.begin_us, begin_[i], bar, bar + kBar, begin_[i] + 1, bar - 3,
        escaped(shortened(event.name)));
  }

  std::string axis(double bottom) const {
    std::string out;
    double free = 0;
    for (size_t i = 0; i < events_.size(); ++i) {
      const std::string label = fmt::format("{:.1f}", events_[i].begin_us);
      if (events_[i].what == What::Hook || begin_[i] < free) {
        continue;
      }
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"9\" fill=\"#555\">{}</text>\n",
                         begin_[i], bottom + 14, label);
      free = begin_[i] + kLetter * static_cast<double>(label.size()) + 6;
    }
    out += fmt::format(
        "<text x=\"12\" y=\"{:.1f}\" font-size=\"10\" fill=\"#555\">begin of each bar, µs</text>\n",
        bottom + 14);
    if (dropped_ > 0) {
      out +=
          fmt::format("<text x=\"12\" y=\"{:.1f}\" font-size=\"10\">{} later events are not drawn</text>\n",
                      bottom + 30, dropped_);
    }
    return out;
  }

  std::vector<TimelineEvent> events_;
  std::vector<double> begin_, end_;
  std::map<int, Lane> lanes_;
  size_t letters_ = 0, dropped_ = 0;
  double right_ = 0;
};

}  // namespace

std::string Timeline::svg() const { return Picture(events()).str(); }

}  // namespace faultline
