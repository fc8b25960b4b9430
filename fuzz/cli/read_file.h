// Input files: whatever is wrong with them is an Error that names the file.
#pragma once
#include <string>

#include "faultline/error.h"

namespace faultline::cli {

// The bytes of a regular file or pipe. Refuses folders, what cannot be opened, and more bytes than any text
// of ours can have (64 MiB).
Result<std::string> readFile(const std::string& path);

// The same error, said about a file.
Error inFile(Error error, const std::string& path);

}  // namespace faultline::cli
