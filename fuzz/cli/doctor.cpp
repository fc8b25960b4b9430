// faultline doctor: what this machine has, what it lacks, and how to get that.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "fuzz/cli/command.h"
#include "fuzz/cli/console.h"
#include "fuzz/cli/json.h"
#include "fuzz/cli/options.h"
#include "oracles/campaign/setup.h"

namespace faultline::cli {
namespace {

struct Part {
  std::string name;
  bool found = false;
  std::string detail;
  std::string get;  // how, when it was not found
};

std::string libraryOf(void* function) {
  Dl_info info{};
  return dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

std::filesystem::path torchLibrary() { return libraryOf(reinterpret_cast<void*>(&at::set_num_threads)); }

Part torch() { return {"torch", true, fmt::format("{}, {}", torchVersion(), torchLibrary().string()), {}}; }

// Asked of the loader, never linked: the wheel's CUDA library needs a dozen others that a CPU machine lacks.
Part cuda() {
  Part part;
  part.name = "cuda";
  part.get = fmt::format(
      "an NVIDIA GPU, and a build against a full install: pip install torch=={}, then configure "
      "with -DFAULTLINE_TORCH=<site-packages>/torch",
      torchVersion());
  const std::string library = (torchLibrary().parent_path() / "libtorch_cuda.so").string();
  if (dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    const char* why = dlerror();
    part.detail = why == nullptr ? "libtorch_cuda.so does not load" : why;
    return part;
  }
  const size_t devices = at::hasCUDA() ? at::getNumGPUs() : 0;
  part.found = devices > 0;
  part.detail = part.found ? plural(devices, "device") : "libtorch_cuda.so loads, but there is no device";
  return part;
}

Part gloo() {
  Part part;
  part.name = "gloo";
  part.get = "apt-get install libgloo-dev, then build again (headers only: the code is in libtorch)";
  const bool code = dlsym(RTLD_DEFAULT, "_ZTVN4c10d16ProcessGroupGlooE") != nullptr;
#if __has_include(<gloo/transport/device.h>)
  const bool headers = true;
#else
  const bool headers = false;
#endif
  part.found = code && headers;
  part.detail = part.found ? "in libtorch, headers found"
                : !headers ? "no headers when this was built"
                           : "this libtorch was built without it";
  return part;
}

// The runtime of the newest clang in Debian's layout, and of whatever stands beside a clang on PATH.
Part libFuzzer() {
  Part part;
  part.name = "libfuzzer";
  part.detail = "no clang with libclang_rt.fuzzer";
  part.get = "apt-get install clang-14 libclang-rt-14-dev, then cmake --preset fuzz";
  std::error_code status;
  for (const char* root : {"/usr/lib", "/usr/local/lib", "/opt"}) {
    for (const auto& entry : std::filesystem::directory_iterator(root, status)) {
      if (entry.path().filename().string().rfind("llvm", 0) != 0) continue;
      for (const auto& version : std::filesystem::directory_iterator(entry.path() / "lib/clang", status)) {
        for (const auto& file : std::filesystem::directory_iterator(version.path() / "lib/linux", status)) {
          if (file.path().filename().string().rfind("libclang_rt.fuzzer-", 0) != 0) continue;
          part.found = true;
          part.detail =
              fmt::format("clang {} in {}", version.path().filename().string(), entry.path().string());
        }
      }
    }
  }
  return part;
}

Part cores() {
  return {"cores",
          true,
          fmt::format("{} (--jobs default)", std::max(1u, std::thread::hardware_concurrency())),
          {}};
}

struct DoctorOptions {
  std::string json;
};

Result<ExitCode> runDoctor(const DoctorOptions& options) {
  const Console console(options.json);
  Json result = jsonHead("doctor");
  result["parts"] = Json::array();
  console.line(fmt::format("faultline {}", version()));
  Table table({"", "", ""});
  table.wrapLast();
  for (const Part& part : {torch(), cores(), cuda(), gloo(), libFuzzer()}) {
    result["parts"].push_back({{"name", part.name},
                               {"found", part.found},
                               {"detail", part.detail},
                               {"get", part.found ? "" : part.get}});
    table.add({part.name, part.found ? "found" : "missing", part.detail});
    if (!part.found) table.add({"", "", "To get it: " + part.get});
  }
  console.print(table.str());
  const auto written = writeJson(options.json, result);
  return written ? Result<ExitCode>(ExitCode::Clean) : tl::make_unexpected(written.error());
}

}  // namespace

Action defineDoctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  addJson(app, options->json);
  app.footer("  faultline doctor");
  return [options] { return runDoctor(*options); };
}

}  // namespace faultline::cli
