// Files of users: what is wrong with one is an Error that names it.
#pragma once
#include <string>

#include "faultline/error.h"

namespace faultline {

// All bytes of a regular file or pipe. Refuses what is not there, may not be read, is a folder, is empty or
// has more than 64 MiB (devices that never end included).
Result<std::string> readFile(const std::string& path);

// The same, and refuses what is no text: the error says which byte at which line and column. Archives are no
// text.
Result<std::string> readTextFile(const std::string& path);

}  // namespace faultline
