#include "generators/case/script_names.h"

#include <torch/csrc/jit/frontend/error_report.h>
#include <torch/csrc/jit/ir/constants.h>

#include "generators/case/spec.h"

namespace faultline {
namespace {

using torch::jit::BuiltinModule;
using torch::jit::ErrorReport;
using torch::jit::GraphFunction;
using torch::jit::SimpleValue;
using torch::jit::SourceRange;
using torch::jit::SugaredValue;

std::optional<c10::IValue> constantOf(std::string_view module, std::string_view name) {
  if (module == "torch") {
    if (auto dtype = readDtype(name); dtype && !name.starts_with("torch.")) {
      return c10::IValue(static_cast<int64_t>(*dtype));
    }
  }
#define FAULTLINE_INT_NAME(in, called, value) \
  if (module == in && name == called) return c10::IValue(static_cast<int64_t>(value));
#define FAULTLINE_FLOAT_NAME(in, called, value) \
  if (module == in && name == called) return c10::IValue(value);
#define FAULTLINE_EXCEPTION_NAME(called)
#include "generators/case/script_names.def"
#undef FAULTLINE_INT_NAME
#undef FAULTLINE_FLOAT_NAME
#undef FAULTLINE_EXCEPTION_NAME
  return std::nullopt;
}

bool isException(std::string_view name) {
#define FAULTLINE_INT_NAME(in, called, value)
#define FAULTLINE_FLOAT_NAME(in, called, value)
#define FAULTLINE_EXCEPTION_NAME(called) \
  if (name == called) return true;
#include "generators/case/script_names.def"
#undef FAULTLINE_INT_NAME
#undef FAULTLINE_FLOAT_NAME
#undef FAULTLINE_EXCEPTION_NAME
  return false;
}

// Ops as in libtorch's own module, after what it has no names for.
class NamedModule : public BuiltinModule {
 public:
  explicit NamedModule(std::string name) : BuiltinModule("aten"), name_(std::move(name)) {}

  std::shared_ptr<SugaredValue> attr(const SourceRange& loc, GraphFunction& m,
                                     const std::string& field) override {
    if (auto constant = constantOf(name_, field)) {
      return std::make_shared<SimpleValue>(m.graph()->insertConstant(*constant, loc));
    }
    if (name_ == "torch" && (field == "no_grad" || field == "enable_grad" || field == "inference_mode")) {
      throw ErrorReport(loc) << "torch." << field
                             << " exists only in Python; torch.set_grad_enabled(False) and (True) "
                             << "can be used here";
    }
    return BuiltinModule::attr(loc, m, field);
  }

 private:
  std::string name_;
};

struct ScriptResolver : torch::jit::Resolver {
  std::shared_ptr<SugaredValue> resolveValue(const std::string& name, GraphFunction& /*m*/,
                                             const SourceRange& /*loc*/) override {
    if (name == "torch" || name == "math") return std::make_shared<NamedModule>(name);
    if (isException(name)) return std::make_shared<torch::jit::ExceptionValue>(name);
    return nullptr;
  }

  c10::TypePtr resolveType(const std::string& name, const SourceRange& /*loc*/) override {
    if (name == "torch.device") return c10::DeviceObjType::get();
    if (name == "torch.dtype") return c10::IntType::get();
    return nullptr;
  }
};

}  // namespace

std::shared_ptr<torch::jit::Resolver> scriptResolver() { return std::make_shared<ScriptResolver>(); }

}  // namespace faultline
