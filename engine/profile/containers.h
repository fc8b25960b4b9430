// Which lists and dicts can be followed: everything that happens to them is seen, and none of it is a write.
#pragma once
#include <unordered_map>

#include "engine/profile/effects.h"
#include "engine/profile/program.h"

namespace faultline::profile {

struct ContainerUse {
  bool followable = true;
  const Node* writer = nullptr;  // the write, when that is why not
};

class Containers {
 public:
  Containers(const FlowProgram& program, Effects& effects) : program_(program), effects_(effects) {}
  ContainerUse of(const Value* container);
  // Some node of the program writes a list or dict that came from outside.
  const Node* outsideWriter();

 private:
  const FlowProgram& program_;
  Effects& effects_;
  std::unordered_map<const Value*, ContainerUse> known_;
  bool searched_ = false;
  const Node* outside_writer_ = nullptr;
};

}  // namespace faultline::profile
