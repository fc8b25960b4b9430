// The oracles of oracles.def.
#pragma once
#include <memory>

#include "oracles/oracle.h"

namespace faultline {

std::unique_ptr<Oracle> makeForwardEquiv(const OracleOptions& options);
std::unique_ptr<Oracle> makeGradientEquiv(const OracleOptions& options);
std::unique_ptr<Oracle> makeRunEquiv(const OracleOptions& options);
std::unique_ptr<Oracle> makeBreakEquiv(const OracleOptions& options);
std::unique_ptr<Oracle> makeProfileLaws(const OracleOptions& options);
std::unique_ptr<Oracle> makeHookOrder(const OracleOptions& options);

}  // namespace faultline
