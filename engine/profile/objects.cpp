#include "engine/profile/objects.h"

#include <algorithm>

#include "engine/profile/object_builder.h"

namespace faultline::profile {

Objects::Objects(const FlowProgram& program, const GradModes& modes, Reasons& reasons) {
  ObjectBuilder(*this, program, modes, reasons).run();
}

Objects::~Objects() = default;

ReadValue Objects::operand(const Value* value) const {
  const ReadValue* found = refs_.find(value);
  return found == nullptr ? ReadValue{} : *found;
}

bool Objects::hasUngradedView(int32_t root) {
  if (ungraded_.empty()) return false;
  const std::vector<RegionId> group = groups_.closure(roots_[static_cast<size_t>(root)].group).vec();
  return std::any_of(ungraded_.begin(), ungraded_.end(), [&](RegionId region) {
    for (RegionId part : groups_.closure(region)) {
      if (std::binary_search(group.begin(), group.end(), part)) return true;
    }
    return false;
  });
}

}  // namespace faultline::profile
