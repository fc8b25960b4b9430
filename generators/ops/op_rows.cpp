#include <unordered_map>

#include "generators/ops/op_row.h"
#include "generators/ops/rules.h"

namespace faultline {

namespace {

enum Flags : unsigned { NONE = 0, DIFF = 1, AUTODIFF = 2, VIEW = 4, MUTATES = 8, RANDOM = 16 };

struct PlainRow {
  const char* name;
  const char* schema;
  const char* family;
  unsigned flags;
  uint32_t weight;
  const char* operands;
  const char* result;
  const char* hazards;
  const char* help;
};

constexpr PlainRow plain_rows[] = {
#define FAULTLINE_OP(name, schema, family, flags, weight, operands, result, hazards, help) \
  {#name, schema, #family, flags, weight, operands, #result, hazards, help},
#include "generators/ops/ops.def"
#undef FAULTLINE_OP
};

std::vector<OpRow> makeRows() {
  std::vector<OpRow> rows;
  for (const PlainRow& plain : plain_rows) {
    OpRow row;
    row.name = plain.name;
    row.schema = plain.schema;
    row.family = plain.family;
    row.operands = plain.operands;
    row.differentiable = (plain.flags & DIFF) != 0;
    row.mutates = (plain.flags & MUTATES) != 0;
    row.view = (plain.flags & VIEW) != 0;
    row.help = plain.help;
    row.result = plain.result;
    row.weight = plain.weight;
    row.autodiff = (plain.flags & AUTODIFF) != 0;
    row.random = (plain.flags & RANDOM) != 0;
    row.hazards = splitWords(plain.hazards, ' ');
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

const std::vector<OpRow>& opRows() {
  static const std::vector<OpRow> rows = makeRows();
  return rows;
}

const OpRow* findOpRow(std::string_view name) {
  for (const OpRow& row : opRows()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const OpRow* findOpRowOfSchema(std::string_view schema) {
  static const std::unordered_map<std::string_view, const OpRow*> by_schema = [] {
    std::unordered_map<std::string_view, const OpRow*> map;
    for (const OpRow& row : opRows()) map.emplace(row.schema, &row);
    return map;
  }();
  auto found = by_schema.find(schema);
  return found == by_schema.end() ? nullptr : found->second;
}

const std::vector<OpHazard>& opHazards() {
  static const std::vector<OpHazard> hazards = {
#define FAULTLINE_HAZARD(name, help) {#name, help},
#include "generators/ops/hazards.def"
#undef FAULTLINE_HAZARD
  };
  return hazards;
}

}  // namespace faultline
