// What the profile nodes of a graph save a program that is specialised on them.
#pragma once
#include "fuzz/cli/console.h"
#include "fuzz/cli/json.h"
#include "fuzz/cli/profile_uses.h"

namespace faultline::cli {

// {"refused": why} for a graph that cannot be specialised.
Json savingsOf(const Graph& graph);
void printSavings(const Console& console, const Json& savings);

}  // namespace faultline::cli
