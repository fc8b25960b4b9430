// Words of closed lists: lanes, oracles, ops, flags. An unknown one is answered with the nearest known one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "faultline/error.h"

namespace faultline::cli {

// "unknown oracle 'foward_equiv' (did you mean 'forward_equiv'?)", or where to find the list when nothing is
// near.
Error unknownWord(std::string_view what, std::string_view word, const std::vector<std::string>& known,
                  std::string_view where_listed = {});

std::string shellQuoted(const std::string& word);  // as it has to be typed

}  // namespace faultline::cli
