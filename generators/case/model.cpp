#include "generators/case/model.h"

#include <cctype>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "engine/ir/places.h"
#include "faultline/ir.h"
#include "generators/case/file.h"
#include "generators/case/script.h"
#include "generators/case/spec_of.h"

namespace faultline {
namespace {

Result<Model> modelFromCase(std::string_view text) {
  auto c = readCase(text);
  if (!c) return tl::make_unexpected(c.error());
  Model model;
  model.source_kind = "case";
  model.graph = c->graph;
  for (torch::jit::Value* input : c->graph->inputs()) {
    model.inputs.push_back({input->debugName(), c->runs.at(0).inputs.at(model.inputs.size()), false});
  }
  model.as_case = std::move(*c);
  return model;
}

Result<Model> modelFromIr(std::string_view text) {
  NodePlaces places;
  auto graph = readGraphWithPlaces(text, 1, places);
  if (!graph) return tl::make_unexpected(graph.error());
  if (auto verified = verifyGraphWithPlaces(**graph, places); !verified)
    return tl::make_unexpected(verified.error());
  Model model;
  model.source_kind = "ir";
  model.graph = std::move(*graph);
  for (torch::jit::Value* input : model.graph->inputs()) {
    model.inputs.push_back({input->debugName(), specOfType(*input->type()), false});
  }
  return model;
}

Result<void> addParamLines(Model& model, std::string_view text) {
  auto params = readParamLines(text);
  if (!params) return tl::make_unexpected(params.error());
  for (ModelInput& input : model.inputs) {
    if (auto found = params->find(input.name); found != params->end()) {
      input.spec = std::move(found->second);
      params->erase(found);
    }
  }
  if (!params->empty()) {
    return fail(ErrorKind::Invalid,
                fmt::format("'# param {}' declares what is no argument", params->begin()->first));
  }
  return {};
}

// A `# param` line describes an argument and makes none.
Result<Model> explained(Error error, std::string_view text) {
  const auto params = readParamLines(text);
  // A line that cannot be read comes before what follows from it.
  if (!params && error.message.find("undefined value") != std::string::npos) {
    return tl::make_unexpected(params.error());
  }
  if (params) {
    for (const auto& [name, spec] : *params) {
      const std::string undefined = "undefined value " + name;
      const size_t at = error.message.find(undefined);
      if (at == std::string::npos) continue;
      const std::string rest = error.message.substr(at + undefined.size());
      if (!rest.empty() && (std::isalnum(static_cast<unsigned char>(rest[0])) || rest[0] == '_')) continue;
      error.message += fmt::format(": '# param {}' describes an argument; name it in the def as well", name);
    }
  }
  return tl::make_unexpected(std::move(error));
}

bool isArchive(const std::string& path) {
  std::error_code ignored;
  // Looking into a pipe would take its first bytes away.
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string magic(4, '\0');
  file.read(magic.data(), 4);
  return file && fileKind(magic) == FileKind::Archive;
}

}  // namespace

Result<Model> modelFromText(std::string_view text) {
  Result<Model> model;
  switch (fileKind(text)) {
    case FileKind::Case:
      return modelFromCase(text);
    case FileKind::Ir:
      model = modelFromIr(text);
      break;
    case FileKind::TorchScript:
      model = modelFromScript(text);
      break;
    case FileKind::Tape:
      return fail(ErrorKind::Invalid, "is a tape: 'faultline gen' makes a case of it", SourceLocation{1, 1});
    case FileKind::Archive:
    case FileKind::Unknown: {
      Error error = readCase(text).error();  // says where the first line that counts stands
      error.message = "expected a case, IR ('graph(…)'), TorchScript source ('def f(…)') or a saved module";
      return tl::make_unexpected(std::move(error));
    }
  }
  if (!model) return explained(model.error(), text);
  for (size_t i = 0; i < model->inputs.size(); ++i)
    model->graph->inputs().at(i)->setDebugName(model->inputs[i].name);
  if (auto added = addParamLines(*model, text); !added) return tl::make_unexpected(added.error());
  return model;
}

Result<Model> loadModel(const std::string& path) {
  auto load = [&]() -> Result<Model> {
    if (isArchive(path)) return modelFromArchive(path);
    auto text = readTextFile(path);
    if (!text) return tl::make_unexpected(text.error());
    return modelFromText(*text);
  };
  Result<Model> model = load();
  if (!model) model.error().file = path;
  return model;
}

}  // namespace faultline
