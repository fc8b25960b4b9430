#include "generators/ops/rules.h"

#include <fmt/format.h>

#include "engine/support/check.h"
#include "generators/ops/site.h"

namespace faultline {

int64_t Operand::elements() const {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

std::vector<std::string> splitWords(std::string_view text, char separator) {
  std::vector<std::string> words;
  while (!text.empty()) {
    size_t end = std::min(text.find(separator), text.size());
    if (end != 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::optional<std::vector<int64_t>> broadcastSizes(const std::vector<int64_t>& a,
                                                   const std::vector<int64_t>& b) {
  const std::vector<int64_t>& longer = a.size() >= b.size() ? a : b;
  const std::vector<int64_t>& shorter = a.size() >= b.size() ? b : a;
  std::vector<int64_t> common = longer;
  size_t skipped = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& size = common[skipped + i];
    if (size == shorter[i] || shorter[i] == 1) continue;
    if (size != 1) return std::nullopt;
    size = shorter[i];
  }
  return common;
}

bool broadcastsTo(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  auto common = broadcastSizes(from, to);
  return common && *common == to;
}

std::optional<Operands> findOperands(const OpRow& row, const c10::FunctionSchema& schema,
                                     OperandSource& source) {
  Operands found;
  Site site{found, source};
  std::vector<std::string> words = splitWords(row.operands, ' ');
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    torch::jit::Value* value = nullptr;
    if (i >= words.size()) {
      FAULTLINE_CHECK(argument.default_value().has_value(),
                      fmt::format("op '{}': no word for argument '{}'", row.name, argument.name()));
      value = source.constant(*argument.default_value());
    } else if (isTensorWord(words[i])) {
      value = findTensor(site, splitWords(words[i], '+'));
    } else {
      value = makeArgument(site, words[i]);
    }
    if (value == nullptr) return std::nullopt;
    found.arguments.push_back(value);
  }
  return found;
}

const std::vector<OperandWord>& operandWords() {
  static const std::vector<OperandWord> words = [] {
    std::vector<OperandWord> all = tensorWords();
    std::vector<OperandWord> values = valueWords();
    all.insert(all.end(), values.begin(), values.end());
    return all;
  }();
  return words;
}

namespace {

// For predicates on tensors that are there: nothing is looked for or made.
class NothingToFind final : public OperandSource {
 public:
  Choices& choices() override { return none_; }
  const std::vector<Operand>& tensors() const override { return tensors_; }
  std::vector<torch::jit::Value*> integers() const override { return {}; }
  torch::jit::Value* constant(const c10::IValue&) override { return nullptr; }
  std::optional<size_t> make(const TensorWish&) override { return std::nullopt; }
  torch::jit::Value* list(const std::vector<torch::jit::Value*>&) override { return nullptr; }
  int64_t drawSize() override { return 1; }
  bool broadcasts() const override { return true; }
  const torch::jit::Value* preferred() const override { return nullptr; }

 private:
  Choices none_ = Choices::fromTape({});
  std::vector<Operand> tensors_;
};

struct SplitWord {
  std::string word;
  std::vector<std::string> predicates;  // of a tensor; none: another argument
};

// Split once: forecasts ask for every node of a case, again and again.
const std::vector<SplitWord>& wordsOf(const OpRow& row) {
  static const std::vector<std::vector<SplitWord>> all = [] {
    std::vector<std::vector<SplitWord>> rows;
    for (const OpRow& each : opRows()) {
      std::vector<SplitWord> words;
      for (const std::string& word : splitWords(each.operands, ' ')) {
        words.push_back({word, isTensorWord(word) ? splitWords(word, '+') : std::vector<std::string>()});
      }
      rows.push_back(std::move(words));
    }
    return rows;
  }();
  return all[static_cast<size_t>(&row - opRows().data())];
}

}  // namespace

bool operandsFit(const OpRow& row, const std::vector<std::vector<Operand>>& arguments) {
  Operands found;
  NothingToFind source;
  Site site{found, source};
  const std::vector<SplitWord>& words = wordsOf(row);
  for (size_t i = 0; i < arguments.size() && i < words.size(); ++i) {
    bool tensor = !words[i].predicates.empty();
    if (tensor && arguments[i].size() != 1) return false;
    for (size_t k = 0; k < arguments[i].size(); ++k) {
      bool fits = tensor ? tensorFits(arguments[i][k], site, words[i].predicates)
                         : tensorFits(arguments[i][k], site, elementPredicates(words[i].word, k));
      if (!fits) return false;
      found.tensors.push_back(arguments[i][k]);
    }
  }
  return true;
}

}  // namespace faultline
