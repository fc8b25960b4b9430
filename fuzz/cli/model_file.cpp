#include "fuzz/cli/model_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "faultline/ir.h"
#include "generators/case/file.h"

namespace faultline::cli {
namespace {

// What normalisation keeps its running statistics in: a buffer, which eager PyTorch refuses to train.
bool isStatistics(const torch::jit::Value* input) {
  return std::any_of(input->uses().begin(), input->uses().end(), [](const torch::jit::Use& use) {
    const auto* schema = use.user->maybeSchema();
    return schema != nullptr && use.offset < schema->arguments().size() &&
           schema->arguments()[use.offset].name().rfind("running_", 0) == 0;
  });
}

// Tensors that a source declares are its `# param` lines (defaults are no tensors), and parameters are
// trained.
void trainParameters(Model& model) {
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    ModelInput& input = model.inputs[i];
    if (!input.spec || input.spec->kind != InputSpec::Kind::Tensor ||
        isStatistics(model.graph->inputs()[i])) {
      continue;
    }
    input.spec->requires_grad |=
        c10::isFloatingType(input.spec->dtype) || c10::isComplexType(input.spec->dtype);
  }
}

bool isGuessed(const InputSpec& spec) {
  return (spec.kind == InputSpec::Kind::Tensor && c10::isIntegralType(spec.dtype, /*includeBool=*/false) &&
          spec.pattern == ValuePattern::Normal) ||
         std::any_of(spec.elements.begin(), spec.elements.end(), isGuessed);
}

}  // namespace

Error inFile(Error error, const std::string& path) {
  if (error.file.empty()) error.file = path;
  return error;
}

Result<Case> loadModelFile(const std::string& path, const std::vector<std::string>& inputs,
                           const ModelCaseOptions& options) {
  std::map<std::string, InputSpec> given;
  for (const std::string& text : inputs) {
    auto input = readNamedInput(text);
    if (!input) {
      // A place would look like one in a file.
      const size_t column = input.error().where ? input.error().where->column : 0;
      input.error().where.reset();
      input.error().message = fmt::format("--input '{}'{}: {}", text,
                                          column > 1 ? fmt::format(", at '{}'", text.substr(column - 1)) : "",
                                          input.error().message);
      return tl::make_unexpected(input.error());
    }
    if (!given.insert(*input).second) {
      return fail(ErrorKind::Invalid, fmt::format("--input: '{}' is given twice", input->first));
    }
  }
  auto model = loadModel(path);
  if (!model) return tl::make_unexpected(model.error());
  if (model->source_kind == "torchscript") trainParameters(*model);
  auto c = modelToCase(*model, given, options);
  if (!c) return tl::make_unexpected(inFile(c.error(), path));
  return c;
}

std::string hintAtValues(const Case& c) {
  const auto& inputs = c.runs.front().inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!isGuessed(inputs[i])) continue;
    return fmt::format(
        ". Whole numbers that nobody gives are drawn from -9 to 9: where {0} holds indices, say which, as "
        "'{0}={1}[3]:values=[0,1,2]'",
        c.graph->inputs()[i]->debugName(), writeDtype(inputs[i].dtype));
  }
  return {};
}

Result<std::shared_ptr<torch::jit::Graph>> graphOfText(const std::string& text, const std::string& path,
                                                       NodePlaces& places) {
  // What is wrong with a graph is for the caller to say.
  if (fileKind(text) == FileKind::Ir) {
    auto graph = readGraphWithPlaces(text, 1, places);
    if (!graph) return tl::make_unexpected(inFile(graph.error(), path));
    return *graph;
  }
  auto model = modelFromText(text);
  if (!model) return tl::make_unexpected(inFile(model.error(), path));
  return model->graph;
}

Result<std::shared_ptr<torch::jit::Graph>> loadGraphFile(const std::string& path, NodePlaces& places) {
  // Text is read once: it may come from a pipe. An archive is none.
  if (const auto text = readTextFile(path)) return graphOfText(*text, path, places);
  auto model = loadModel(path);
  if (!model) return tl::make_unexpected(model.error());
  return model->graph;
}

}  // namespace faultline::cli
