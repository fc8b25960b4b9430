// Models as people save them from Python (tests/data/models/make_models.py), under every oracle of our lanes,
// and broken.
#include <fmt/format.h>

#include "tests/fuzz/cli/run_faultline.h"

namespace faultline::test {
namespace {

struct SavedModel {
  const char* name;
  std::vector<std::string> inputs;
  int parameters;  // that a gradient comes to
};

class Models : public testing::TestWithParam<SavedModel> {
 protected:
  Outcome run(Arguments words) {
    words.insert(words.begin() + 1, "tests/data/models/" + std::string(GetParam().name) + ".pt");
    for (const std::string& input : GetParam().inputs) words.insert(words.end(), {"--input", input});
    return faultline(words);
  }
};

TEST_P(Models, PassEveryOracleInOurLanes) {
  const Outcome checked = run({"check", "--lane", "engine,stitched"});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
}

TEST_P(Models, TrainAsInEagerWhenBroken) {
  const Outcome broken = run({"break", "--policy", "balanced:3", "--exec"});
  EXPECT_EQ(broken.code, 0) << broken.out << broken.err;
  EXPECT_NE(broken.out.find(fmt::format("; {} fired once per gradient", GetParam().parameters)),
            std::string::npos)
      << broken.out;
}

INSTANTIATE_TEST_SUITE_P(
    FromPython, Models,
    testing::Values(SavedModel{"no_grad", {"x=float32[3]:grad", "flag=bool=true"}, 1},
                    SavedModel{"tagger", {"x=int64[5,2]:values=[1,2,3,4,5,6,7,8,9,10]"}, 19},
                    SavedModel{"decoder", {"x=float32[2,4]", "steps=int=3"}, 6},
                    SavedModel{"language", {"ids=int64[2,6]:values=[1,2,3,4,5,6,7,8,9,10,11,12]"}, 14},
                    SavedModel{"mobile", {"x=float32[2,3,8,8]"}, 12},
                    SavedModel{"spectral", {"x=float32[2,3]"}, 1},
                    SavedModel{"stacked", {"x=float32[5,3]"}, 8}, SavedModel{"flow", {"x=float32[3,4]"}, 3},
                    SavedModel{"half_mean", {"x=float32[3,4]"}, 2},
                    SavedModel{"tasks", {"x=float32[3,4]"}, 2},
                    SavedModel{"traced_encoder", {"src=float32[4,2,8]"}, 12}),
    [](const auto& info) { return std::string(info.param.name); });

// A tensor of rank 0 would make the mean a double.
TEST(TracedModels, HaveTheNumbersThatTheyWereTracedWith) {
  const Outcome& checked =
      faultline({"check", "tests/data/models/half_mean.pt", "--input", "x=float32[3,4]", "--ignore-known"});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
}

TEST(RefusedModels, SayWhatToWriteInstead) {
  const auto refused = [](const std::string& name, const std::string& says) {
    expectUsageError(faultline({"check", "tests/data/models/" + name + ".pt", "--input", "x=float32[3,4]"}),
                     says);
  };
  refused("autocast", "autocast.pt: 'with autocast' is an object");
  refused("counter", "make it a buffer and write into that, as in self.steps.add_(1)");
  refused("fork", "torch.jit.fork runs 'linear', which graphs cannot hold");
}

}  // namespace
}  // namespace faultline::test
