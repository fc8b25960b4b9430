#include "oracles/campaign/triggers.h"

namespace faultline {

const std::vector<Trigger>& triggers() {
  static const std::vector<Trigger> all{};
  return all;
}

const Trigger* findTrigger(std::string_view name) {
  for (const Trigger& trigger : triggers()) {
    if (trigger.name == name) {
      return &trigger;
    }
  }
  return nullptr;
}

}  // namespace faultline
