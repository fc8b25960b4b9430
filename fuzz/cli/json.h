// JSON results: `"schema": "faultline.NAME/1"`, fields in the order they are documented in. Fields may be
// added to a schema, never renamed.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "faultline/error.h"

namespace faultline::cli {

using Json = nlohmann::ordered_json;

std::string version();  // of faultline

Json jsonHead(std::string_view name);  // {"schema", "version", "torch"}

// A place that can be written to, but not now (a full disk): no fault of the command line, and no bug.
class WriteFailure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Writes `value` to `path` ("-": stdout, empty: nowhere), a file through a temporary beside it, so that
// nobody ever sees half of it. Bytes that are no UTF-8 are replaced. Throws WriteFailure.
Result<void> writeJson(const std::string& path, const Json& value);
// Refuses what writeText would refuse, before there is anything to write. Leaves nothing behind.
Result<void> checkWritable(const std::string& path);
// The same for any text.
Result<void> writeText(const std::string& path, std::string_view text);

}  // namespace faultline::cli
