// TorchScript source to a graph (internal to generators/case).
#pragma once
#include "generators/case/model.h"

namespace faultline {

Result<Model> modelFromScript(std::string_view text);

// `# param NAME: SPEC` lines anywhere in a source or an IR dump.
Result<std::map<std::string, InputSpec>> readParamLines(std::string_view text);

}  // namespace faultline
