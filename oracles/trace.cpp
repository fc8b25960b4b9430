#include "oracles/trace.h"

namespace faultline {

std::string PhaseTrace::name() const {
  switch (kind) {
    case Kind::Forward:
      return "forward";
    case Kind::Backward:
      return "backward" + std::to_string(backward);
    case Kind::Double:
      break;
  }
  return "double" + std::to_string(backward);
}

}  // namespace faultline
