// A file that holds a model, whatever its form: a case, IR, TorchScript source or an archive.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/ir/places.h"
#include "faultline/error.h"
#include "generators/case/case.h"
#include "generators/case/model.h"

namespace faultline::cli {

// The program with its inputs. `inputs` are NAME=SPEC; what is neither given nor declared by the file is an
// error that names the missing arguments. A case brings its own runs and takes no inputs. Errors name the
// file.
Result<Case> loadModelFile(const std::string& path, const std::vector<std::string>& inputs,
                           const ModelCaseOptions& options = {});

// The same error, said about a file.
Error inFile(Error error, const std::string& path);

// The graph alone, profile nodes and subgraphs included. IR text is read, not verified; `places` is for the
// errors of who does.
Result<std::shared_ptr<torch::jit::Graph>> graphOfText(const std::string& text, const std::string& path,
                                                       NodePlaces& places);
Result<std::shared_ptr<torch::jit::Graph>> loadGraphFile(const std::string& path, NodePlaces& places);

// For a program that throws: " Whole numbers are …", or nothing where no input is made of whole numbers that
// nobody gave.
std::string hintAtValues(const Case& c);

}  // namespace faultline::cli
