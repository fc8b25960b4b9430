#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/ir/nearest.h"
#include "engine/support/check.h"
#include "generators/case/model.h"
#include "generators/case/spec_text.h"
#include "generators/text/scanner.h"

namespace faultline {
namespace {

tl::unexpected<Error> invalid(std::string message) { return fail(ErrorKind::Invalid, std::move(message)); }

// IR has names such as "x.1"; people leave the number out.
std::string_view withoutNumber(std::string_view name) {
  size_t point = name.rfind('.');
  if (point == std::string_view::npos || point + 1 == name.size()) return name;
  bool digits = name.find_first_not_of("0123456789", point + 1) == std::string_view::npos;
  return digits ? name.substr(0, point) : name;
}

std::optional<size_t> findInput(const Model& model, std::string_view name) {
  std::optional<size_t> found;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    if (model.inputs[i].name == name) return i;
    if (withoutNumber(model.inputs[i].name) != name) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

// TorchScript takes no integer for a float; a person who writes `p=1` means one.
void integersToFloats(InputSpec& spec, const c10::Type& type) {
  if (type.kind() == c10::TypeKind::OptionalType) return integersToFloats(spec, *type.containedType(0));
  if (spec.kind == InputSpec::Kind::Int && type.kind() == c10::TypeKind::FloatType) {
    spec.kind = InputSpec::Kind::Double;
    spec.double_value = static_cast<double>(spec.int_value);
    spec.int_value = 0;
  }
  bool list = spec.kind == InputSpec::Kind::List && type.kind() == c10::TypeKind::ListType;
  bool tuple = spec.kind == InputSpec::Kind::Tuple && type.kind() == c10::TypeKind::TupleType &&
               spec.elements.size() == type.containedTypes().size();
  if (!list && !tuple) return;
  for (size_t i = 0; i < spec.elements.size(); ++i)
    integersToFloats(spec.elements[i], *type.containedType(tuple ? i : 0));
}

bool requiresGrad(const InputSpec& spec) {
  return spec.requires_grad || std::any_of(spec.elements.begin(), spec.elements.end(), requiresGrad);
}

// By index of the input.
Result<std::map<size_t, InputSpec>> resolve(const Model& model,
                                            const std::map<std::string, InputSpec>& given) {
  std::map<size_t, InputSpec> resolved;
  for (const auto& [name, spec] : given) {
    auto index = findInput(model, name);
    if (!index) {
      std::vector<std::string> names;
      for (const ModelInput& input : model.inputs) {
        if (!input.is_parameter) names.push_back(input.name);
      }
      return invalid(fmt::format("the model has no argument '{}'{}", name, didYouMean(name, names)));
    }
    if (model.inputs[*index].is_parameter) {
      return invalid(fmt::format("'{}' belongs to the module and cannot be given", name));
    }
    InputSpec adapted = spec;
    integersToFloats(adapted, *model.graph->inputs().at(*index)->type());
    resolved.emplace(*index, std::move(adapted));
  }
  return resolved;
}

Result<void> checkFits(const Model& model, const CaseRun& run) {
  std::vector<InputSpec> earlier;
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    std::string why = whyNotFits(run.inputs[i], *model.graph->inputs().at(i)->type(), earlier);
    if (!why.empty()) return invalid(fmt::format("input {}: {}", model.inputs[i].name, why));
    earlier.push_back(run.inputs[i]);
  }
  return {};
}

std::string exampleOf(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::BoolType:
      return "true";
    case c10::TypeKind::IntType:
      return "3";
    case c10::TypeKind::FloatType:
      return "0.5";
    case c10::TypeKind::StringType:
      return "\"words\"";
    case c10::TypeKind::ListType:
      return "[" + exampleOf(*type.containedType(0)) + "]";
    case c10::TypeKind::OptionalType:
      return exampleOf(*type.containedType(0));
    case c10::TypeKind::TupleType: {
      std::vector<std::string> parts;
      for (const auto& part : type.containedTypes()) parts.push_back(exampleOf(*part));
      return fmt::format("({})", fmt::join(parts, ","));
    }
    default:
      return "float32[4,8]";
  }
}

// Of a tensor that is used as an index: values that are one.
std::string exampleOf(const torch::jit::Value& input) {
  const bool index = input.type()->kind() == c10::TypeKind::TensorType &&
                     std::any_of(input.uses().begin(), input.uses().end(), [](const torch::jit::Use& use) {
                       const auto* schema = use.user->maybeSchema();
                       if (schema == nullptr || use.offset >= schema->arguments().size()) return false;
                       const std::string& name = schema->arguments()[use.offset].name();
                       return name == "indices" || name == "index";
                     });
  return index ? "int64[3]:values=[0,1,2]" : exampleOf(*input.type());
}

// As readNamedInput takes it.
std::string nameText(const std::string& name) {
  return name.find_first_of("= \"\\") == std::string::npos ? name : quote(name);
}

Result<CaseRun> makeRun(const Model& model, const std::map<size_t, InputSpec>& given) {
  CaseRun run;
  std::vector<std::string> missing;
  std::string example;  // of the first
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    auto found = given.find(i);
    if (found == given.end() && !model.inputs[i].spec) {
      if (missing.empty()) example = exampleOf(*model.graph->inputs()[i]);
      missing.push_back(nameText(model.inputs[i].name));
    }
    run.inputs.push_back(found != given.end() ? found->second : model.inputs[i].spec.value_or(InputSpec{}));
  }
  if (missing.empty()) return run;
  for (const torch::jit::Value* input : model.graph->inputs()) {
    if (input->type()->kind() == c10::TypeKind::DictType) {
      return invalid(
          fmt::format("argument '{}' is a dict, which no description can make: take its values as "
                      "arguments, or as a list",
                      model.inputs[input->offset()].name));
    }
  }
  return invalid(fmt::format(
      "nothing describes {}: give each one as --input '{}={}', or declare it in the source: # param {}: {}",
      fmt::join(missing, ", "), missing[0], example, missing[0], example));
}

}  // namespace

Result<Case> modelToCase(const Model& model, const std::map<std::string, InputSpec>& given,
                         const ModelCaseOptions& options) {
  FAULTLINE_CHECK(options.runs >= 1 && options.runs <= 4, "a case has 1 to 4 runs");
  auto resolved = resolve(model, given);
  if (!resolved) return tl::make_unexpected(resolved.error());
  Case c;
  if (model.as_case) {
    c = cloneCase(*model.as_case);
    for (CaseRun& run : c.runs) {
      for (const auto& [index, spec] : *resolved) run.inputs.at(index) = spec;
    }
  } else {
    c.graph = model.graph->copy();
    c.seed = options.seed;
    auto run = makeRun(model, *resolved);
    if (!run) return tl::make_unexpected(run.error());
    bool differentiable = std::any_of(run->inputs.begin(), run->inputs.end(), requiresGrad);
    if (options.backward && differentiable) run->backwards.push_back({BackwardSpec::Kind::All, 0});
    for (size_t i = 0; options.hooks && i < run->inputs.size(); ++i) {
      if (!requiresGrad(run->inputs[i])) continue;
      HookSpec hook;
      hook.input = i;
      c.plan.hooks.push_back(hook);
    }
    c.runs.assign(options.runs, *run);
  }
  for (const CaseRun& run : c.runs) {
    if (auto fits = checkFits(model, run); !fits) return tl::make_unexpected(fits.error());
  }
  if (options.complete_types) {
    for (size_t i = 0; i < c.runs[0].inputs.size(); ++i) {
      const InputSpec& spec = c.runs[0].inputs[i];
      bool always = std::all_of(c.runs.begin(), c.runs.end(),
                                [&](const CaseRun& run) { return run.inputs[i] == spec; });
      if (always && spec.kind == InputSpec::Kind::Tensor)
        c.graph->inputs().at(i)->setType(inputType(spec, true));
    }
  }
  return c;
}

Result<std::pair<std::string, InputSpec>> readNamedInput(std::string_view text) {
  Scanner scanner(text);
  scanner.skipBlanks();
  std::string name;
  if (scanner.peek() == '"') {
    auto quoted = scanner.quoted();
    if (!quoted) return tl::make_unexpected(quoted.error());
    name = std::move(*quoted);
  }
  if (name.empty()) {
    name = scanner.rest().substr(0, scanner.rest().find_first_of("= "));
    scanner.advance(name.size());
  }
  scanner.skipBlanks();
  if (name.empty() || !scanner.accept("="))
    return scanner.expected("NAME=DESCRIPTION, such as x=float32[4,8]:grad");
  scanner.skipBlanks();
  auto spec = scanInputSpec(scanner);
  if (!spec) return tl::make_unexpected(spec.error());
  scanner.skipBlanks();
  if (!scanner.atEnd()) return scanner.expected("the end of the input's description");
  return std::pair(std::move(name), std::move(*spec));
}

}  // namespace faultline
