#include "fuzz/cli/profile_uses.h"

#include "faultline/ir.h"

namespace faultline::cli {
namespace {

bool holdsTensor(const Value* value) {
  const c10::TypePtr& type = value->type();
  return type->kind() != c10::TypeKind::NoneType && type->isSubtypeOf(*c10::OptionalType::ofTensor());
}

const char* stateWord(FieldState state) {
  switch (state) {
    case FieldState::Nothing:
      return "nothing";
    case FieldState::Value:
      return "value";
    case FieldState::Varies:
      return "varies";
    case FieldState::Ended:
      break;
  }
  return "ended";
}

template <class T>
void addMissing(const std::string& name, const ProfileField<T>& field, std::vector<FieldText>& missing) {
  if (!field.known()) missing.push_back({name, stateWord(field.state), field.why.text()});
}

// The first element that is not known speaks for all.
void addMissing(const std::string& name, const ProfileDimensions& fields, std::vector<FieldText>& missing) {
  for (const auto& field : fields) {
    if (!field.known()) return addMissing(name, field, missing);
  }
}

Json numbers(const ProfileDimensions& fields) {
  Json list = Json::array();
  for (const auto& field : fields) list.push_back(field.known() ? Json(field.value) : Json());
  return list;
}

bool anyKnown(const ProfileDimensions& fields) {
  return std::any_of(fields.begin(), fields.end(), [](const auto& field) { return field.known(); });
}

}  // namespace

std::vector<ProfiledUse> profiledUses(const Graph& graph, const WrittenGraph& written) {
  const ProfileIndex index(graph);
  std::vector<ProfiledUse> uses;
  for (const Node* node : written.nodes()) {
    if (node->kind() == torch::jit::prim::profile) continue;
    const std::vector<std::string> names = written.inputs(node);
    for (size_t offset = 0; offset < names.size(); ++offset) {
      if (!holdsTensor(node->inputs()[offset])) continue;
      const Use use(const_cast<Node*>(node), offset);
      uses.push_back({written.graphOf(node), names[offset], written.kind(node), use, index.explain(use)});
    }
  }
  return uses;
}

std::string nodeName(const Node* node, const WrittenGraph& written) {
  if (!written.contains(node)) return node->kind().toQualString();
  const std::string value = written.output(node);
  const std::string name = value.empty() ? written.kind(node) : value;
  const std::string& graph = written.graphOf(node);
  return graph == "main" ? name : graph + "/" + name;
}

std::vector<FieldText> missingFields(const ProfileLookup& answer) {
  std::vector<FieldText> missing;
  addMissing("defined", answer.defined, missing);
  addMissing("dtype", answer.dtype, missing);
  addMissing("device", answer.device, missing);
  addMissing("rank", answer.rank, missing);
  addMissing("sizes", answer.sizes, missing);
  addMissing("strides", answer.strides, missing);
  addMissing("requires_grad", answer.requires_grad, missing);
  return missing;
}

Json useJson(const ProfiledUse& use, const WrittenGraph& written) {
  const ProfileExplanation& answer = use.answer;
  Json fields = Json::object(), why = Json::object(), from = Json::array();
  if (answer.defined.known()) fields["defined"] = answer.defined.value;
  if (answer.dtype.known()) fields["dtype"] = c10::toString(answer.dtype.value);
  if (answer.device.known()) fields["device"] = answer.device.value.str();
  if (answer.rank.known()) fields["rank"] = answer.rank.value;
  if (anyKnown(answer.sizes)) fields["sizes"] = numbers(answer.sizes);
  if (anyKnown(answer.strides)) fields["strides"] = numbers(answer.strides);
  if (answer.requires_grad.known()) fields["requires_grad"] = answer.requires_grad.value;
  for (const FieldText& field : missingFields(answer)) {
    if (!field.why.empty()) why[field.name] = field.why;
  }
  if (answer.why_not.kind != ReasonKind::None) why["type"] = answer.why_not.text();
  for (const Node* node : answer.from) from.push_back(nodeName(node, written));
  return {{"graph", use.graph},
          {"value", use.value},
          {"user", use.user},
          {"offset", use.use.offset},
          {"state", toString(answer.state)},
          {"type", answer.type == nullptr ? Json() : Json(writeType(*answer.type))},
          {"fields", fields},
          {"conditional", answer.conditional},
          {"from", from},
          {"place", answer.place},
          {"why", why}};
}

}  // namespace faultline::cli
