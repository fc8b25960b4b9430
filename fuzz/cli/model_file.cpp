#include "fuzz/cli/model_file.h"

#include <fmt/format.h>

#include "generators/case/model.h"

namespace faultline::cli {

Error inFile(Error error, const std::string& path) {
  if (error.file.empty()) error.file = path;
  return error;
}

Result<Case> loadModelFile(const std::string& path, const std::vector<std::string>& inputs) {
  std::map<std::string, InputSpec> given;
  for (const std::string& text : inputs) {
    auto input = readNamedInput(text);
    if (!input) {
      input.error().message = fmt::format("--input '{}': {}", text, input.error().message);
      return tl::make_unexpected(input.error());
    }
    if (!given.insert(*input).second) {
      return fail(ErrorKind::Invalid, fmt::format("--input: '{}' is given twice", input->first));
    }
  }
  const auto model = loadModel(path);
  if (!model) return tl::make_unexpected(model.error());
  auto c = modelToCase(*model, given);
  if (!c) return tl::make_unexpected(inFile(c.error(), path));
  return c;
}

Result<std::shared_ptr<torch::jit::Graph>> loadGraphFile(const std::string& path) {
  auto model = loadModel(path);
  if (!model) return tl::make_unexpected(model.error());
  return model->graph;
}

}  // namespace faultline::cli
