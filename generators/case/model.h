// What users call a model: a case, an IR dump, TorchScript source or a saved module; and the case that it
// makes together with descriptions of its arguments.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

#include "faultline/error.h"
#include "generators/case/case.h"

namespace faultline {

struct ModelInput {
  std::string name;  // as the user says it: "x", "fc1.weight"
  std::optional<InputSpec>
      spec;  // declared: a `# param` line, a default, a complete type, a parameter's own values
  bool is_parameter = false;  // belongs to the module: cannot be given
};

struct Model {
  std::shared_ptr<torch::jit::Graph>
      graph;  // one input per element of `inputs`; calls and submodules are inlined
  std::vector<ModelInput> inputs;
  std::string source_kind;      // "case", "ir", "torchscript", "archive"
  std::optional<Case> as_case;  // the file was a case: its runs and plan
};

// By the file's first line or magic, never by trial. Errors name the file, and line and column where there
// are any.
Result<Model> loadModel(const std::string& path);

// Case text, IR or TorchScript source. Source: lines `# param NAME: SPEC` declare arguments; of several
// functions `forward` is taken, else `f`, else the last; `import` lines and decorators are skipped;
// `torch.float32` and the like, `math.inf` and exceptions resolve, which libtorch's own resolver does not
// know.
Result<Model> modelFromText(std::string_view text);

// A saved module: the graph of `forward` with parameters and buffers as further inputs behind its arguments,
// in the order of their declaration. Other attributes become constants; what cannot be one is Unsupported and
// named.
Result<Model> modelFromArchive(const std::string& path);

struct ModelCaseOptions {
  uint64_t seed = 0;
  size_t runs = 3;              // equal ones; 1 to 4
  bool backward = true;         // differentiate all outputs where an input requires grad
  bool hooks = false;           // a tensor hook on each input that requires grad
  bool complete_types = false;  // graph inputs get the complete types of what they are given
};

// `given` describes arguments by name and wins over what the model declares. A case file keeps its own runs
// and plan, with the given inputs replaced in each run. Refuses with their names: arguments neither given nor
// declared, names that the model does not have, parameters, descriptions that do not fit. An integer is taken
// for a float.
Result<Case> modelToCase(const Model& model, const std::map<std::string, InputSpec>& given,
                         const ModelCaseOptions& options = {});

// `x=float32[4,8]:grad`, as in `--input`.
Result<std::pair<std::string, InputSpec>> readNamedInput(std::string_view text);

}  // namespace faultline
