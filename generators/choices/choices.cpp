#include "generators/choices/choices.h"

#include "engine/support/check.h"

namespace faultline {

Choices Choices::fromSeed(uint64_t seed) {
  Choices choices(Source::Seed);
  choices.random_ = Random(seed);
  return choices;
}

Choices Choices::fromTape(std::vector<uint64_t> given) {
  Choices choices(Source::Tape);
  choices.given_ = std::move(given);
  return choices;
}

Choices Choices::fromBytes(const uint8_t* data, size_t size) {
  Choices choices(Source::Bytes);
  choices.bytes_.assign(data, data + size);
  return choices;
}

uint64_t Choices::draw(uint64_t bound) {
  uint64_t choice = 0;
  switch (source_) {
    case Source::Seed:
      choice = bound == 0 ? random_.next() : random_.below(bound);
      break;
    case Source::Tape:
      if (position_ < given_.size()) choice = given_[position_++];
      break;
    case Source::Bytes:
      // As few bytes as the bound needs: short inputs then still decide much.
      for (uint64_t reach = bound - 1, shift = 0; reach != 0 && position_ < bytes_.size();
           reach >>= 8, shift += 8) {
        choice |= static_cast<uint64_t>(bytes_[position_++]) << shift;
      }
      break;
  }
  if (bound != 0) choice %= bound;
  tape_.choices.push_back(choice);
  for (size_t span : open_) tape_.spans[span].end = tape_.choices.size();
  return choice;
}

uint64_t Choices::below(uint64_t bound) {
  FAULTLINE_CHECK(bound > 0, "a choice among nothing");
  return draw(bound);
}

int64_t Choices::between(int64_t low, int64_t high) {
  FAULTLINE_CHECK(low <= high, "a choice from an empty range");
  // Unsigned arithmetic wraps as wanted; the bound of the full range wraps to 0, which draw() takes for it.
  uint64_t bound = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  return static_cast<int64_t>(static_cast<uint64_t>(low) + draw(bound));
}

bool Choices::flip(uint32_t percent) { return below(100) + percent >= 100; }

bool Choices::more() {
  constexpr uint64_t ways = 1000;  // so that a tape of random numbers seldom ends a list
  uint64_t choice = draw(ways);
  if (source_ != Source::Seed || choice != 0) return choice != 0;
  tape_.choices.back() = 1;  // replayed, it says the same
  return true;
}

size_t Choices::weighted(const std::vector<uint32_t>& weights) {
  uint64_t total = 0;
  for (uint32_t weight : weights) total += weight;
  uint64_t at = below(std::max<uint64_t>(total, 1));
  for (size_t i = 0; i < weights.size(); ++i) {
    if (at < weights[i]) return i;
    at -= weights[i];
  }
  return 0;
}

bool Choices::exhausted() const {
  switch (source_) {
    case Source::Seed:
      return false;
    case Source::Tape:
      return position_ == given_.size();
    case Source::Bytes:
      return position_ == bytes_.size();
  }
  return false;
}

Choices::Span::Span(Choices& choices, std::string_view label)
    : choices_(choices), index_(choices.tape_.spans.size()) {
  size_t begin = choices.tape_.choices.size();
  choices.tape_.spans.push_back({std::string(label), begin, begin, choices.open_.size()});
  choices.open_.push_back(index_);
}

Choices::Span::~Span() {
  FAULTLINE_CHECK(!choices_.open_.empty() && choices_.open_.back() == index_,
                  "spans must end in reverse order");
  choices_.open_.pop_back();
}

}  // namespace faultline
