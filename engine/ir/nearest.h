// "did you mean": the candidate that takes the fewest edits to become what was written. Names are compared on
// their first 64 bytes, so that text nobody typed by hand costs no more than text somebody did.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace faultline {

// " (did you mean 'x'?)", or empty when no candidate is close enough to be a slip of the fingers.
std::string didYouMean(std::string_view wanted, const std::vector<std::string>& candidates);

// "; the nearest is 'x'" under the same condition, else what there is: "; there are x, y and z", of many the
// first few. Empty when there is nothing.
std::string nearestOrAll(std::string_view wanted, const std::vector<std::string>& candidates);

}  // namespace faultline
