#include "oracles/campaign/out_dir.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace faultline {
namespace {

namespace fs = std::filesystem;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Out : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(path_); }
  void TearDown() override { fs::remove_all(path_); }
  std::string path_ = testing::TempDir() + "/out-" + std::to_string(::getpid());
};

TEST_F(Out, HoldsWhatIsSaved) {
  {
    auto out = OutDir::open(path_, false).value();
    EXPECT_FALSE(out->index());
    EXPECT_EQ(out->save("slug", {{"case.case", "text"}, {"info.json", "{}"}}).value(), path_ + "/slug");
    EXPECT_EQ(out->save("flaky/slug-3", {{"case.case", "flaky text"}}).value(), path_ + "/flaky/slug-3");
    ASSERT_TRUE(out->writeIndex({{"schema", "faultline.fuzz/1"}, {"n", 1}}, true));
    ASSERT_TRUE(out->writeIndex({{"schema", "faultline.fuzz/1"}, {"n", 2}}, false));
    ASSERT_TRUE(out->appendStats({{"cases", 1}}));
    ASSERT_TRUE(out->appendStats({{"cases", 2}}));
  }
  EXPECT_EQ(contents(path_ + "/slug/case.case"), "text");
  EXPECT_EQ(contents(path_ + "/flaky/slug-3/case.case"), "flaky text");
  EXPECT_EQ(contents(path_ + "/stats.jsonl"), "{\"cases\":1}\n{\"cases\":2}\n");
  EXPECT_TRUE(isOutDir(path_));
  auto again = OutDir::open(path_, true).value();
  EXPECT_EQ(again->index()->at("n"), 2);
  EXPECT_EQ(again->save("slug", {{"case.case", "other"}}).value(), path_ + "/slug");
  EXPECT_EQ(contents(path_ + "/slug/case.case"), "other");
  EXPECT_FALSE(fs::exists(path_ + "/slug/info.json")) << "a folder is replaced as a whole";
}

TEST_F(Out, RefusesAFolderThatIsNotItsOwn) {
  fs::create_directories(path_);
  EXPECT_TRUE(OutDir::open(path_, false)) << "an empty one is fine";
  fs::remove_all(path_);
  fs::create_directories(path_);
  std::ofstream(path_ + "/thesis.txt") << "precious";
  EXPECT_EQ(OutDir::open(path_, false).error().kind, ErrorKind::Invalid);
  EXPECT_EQ(OutDir::open(path_, true).error().kind, ErrorKind::Invalid);
  std::ofstream(path_ + "/index.json") << "no json";
  EXPECT_EQ(OutDir::open(path_, true).error().kind, ErrorKind::Invalid);
  EXPECT_EQ(OutDir::open(path_ + "/thesis.txt", false).error().kind, ErrorKind::Invalid);
  EXPECT_EQ(contents(path_ + "/thesis.txt"), "precious");
  EXPECT_EQ(OutDir::open("/proc/nowhere", false).error().kind, ErrorKind::Invalid) << "the word is at fault";
}

TEST_F(Out, IsLocked) {
  auto out = OutDir::open(path_, false).value();
  EXPECT_NE(OutDir::open(path_, true).error().message.find("another faultline"), std::string::npos);
  out.reset();
  EXPECT_TRUE(OutDir::open(path_, true));
}

TEST_F(Out, ClearsWhatAKilledProcessLeft) {
  OutDir::open(path_, false).value();
  std::ofstream(path_ + "/inflight/worker-0.fdr") << "x";
  fs::create_directories(path_ + "/inflight/draft");
  std::ofstream(path_ + "/stats.jsonl") << "{\"cases\":1}\n{\"ca";
  fs::remove(path_ + "/stats.jsonl");
  auto out = OutDir::open(path_, true).value();
  EXPECT_FALSE(fs::exists(path_ + "/inflight/worker-0.fdr"));
  EXPECT_FALSE(fs::exists(path_ + "/inflight/draft"));
}

TEST_F(Out, TakesBackALineThatWasCut) {
  {
    auto out = OutDir::open(path_, false).value();
    ASSERT_TRUE(out->writeIndex({{"schema", "faultline.fuzz/1"}}, true));
    ASSERT_TRUE(out->appendStats({{"cases", 1}}));
  }
  std::ofstream(path_ + "/stats.jsonl", std::ios::app) << "{\"ca";
  auto out = OutDir::open(path_, true).value();
  ASSERT_TRUE(out->appendStats({{"cases", 2}}));
  EXPECT_EQ(contents(path_ + "/stats.jsonl"), "{\"cases\":1}\n{\"cases\":2}\n");
}

TEST_F(Out, WithoutAPathIsTemporary) {
  std::string path;
  {
    auto out = OutDir::open("", false).value();
    path = out->path();
    EXPECT_TRUE(fs::is_directory(path));
  }
  EXPECT_FALSE(fs::exists(path));
  {
    auto out = OutDir::open("", false).value();
    path = out->path();
    ASSERT_TRUE(out->save("slug", {{"case.case", "text"}}));
  }
  EXPECT_EQ(contents(path + "/slug/case.case"), "text");
  fs::remove_all(path);
}

// A process that saves as fast as it can is killed: each folder that is there is complete, and so is the
// index.
TEST_F(Out, HasNothingHalfWrittenWheneverItIsKilled) {
  const std::string large(100000, 'x');
  uint64_t seen = 0;
  for (int round = 0; round < 12; ++round) {
    fs::remove_all(path_);
    const pid_t child = ::fork();
    if (child == 0) {
      auto out = OutDir::open(path_, false).value();
      for (uint64_t i = 0;; ++i) {
        const std::string slug = "slug-" + std::to_string(i % 5);
        const std::string text = std::to_string(i) + large;
        static_cast<void>(out->save(slug, {{"case.case", text}, {"info.json", text}}));
        static_cast<void>(out->writeIndex({{"n", i}, {"again", i}, {"padding", large}}, i % 2 == 0));
      }
    }
    ::usleep(static_cast<useconds_t>(30000 + round * 7001));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    for (int i = 0; i < 5; ++i) {
      const std::string folder = path_ + "/slug-" + std::to_string(i);
      if (fs::exists(folder)) {
        const std::string text = contents(folder + "/case.case");
        ASSERT_GT(text.size(), large.size());
        ASSERT_EQ(text, contents(folder + "/info.json"));
        ++seen;
      }
    }
    if (fs::exists(path_ + "/index.json")) {
      const auto index = nlohmann::json::parse(contents(path_ + "/index.json"));
      ASSERT_EQ(index["n"], index["again"]);
      for (const auto& entry : fs::directory_iterator(path_)) {
        const std::string name = entry.path().filename().string();
        EXPECT_TRUE(name == "index.json" || name == "inflight" || name.rfind("slug-", 0) == 0) << name;
      }
    }
  }
  EXPECT_GT(seen, 0U);
}

// A file-size limit stands in for a full disk: both fail in the middle of a write.
TEST_F(Out, SaysWhenTheDiskIsFull) {
  OutDir::open(path_, false).value();
  const pid_t child = ::fork();
  if (child == 0) {
    auto out = OutDir::open(path_, true).value();
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{5000, 5000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string large(6000, 'x');
    const auto saved = out->save("slug", {{"small", "x"}, {"large", large}});
    const auto indexed = out->writeIndex({{"padding", large}}, true);
    const auto appended = out->appendStats({{"padding", large}});
    const bool all = !saved && saved.error().kind == ErrorKind::Io && !indexed &&
                     indexed.error().kind == ErrorKind::Io && !appended &&
                     appended.error().kind == ErrorKind::Io &&
                     saved.error().str().find("File too large") != std::string::npos;
    ::_exit(all ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(fs::exists(path_ + "/slug"));
  EXPECT_FALSE(fs::exists(path_ + "/index.json"));
  EXPECT_EQ(contents(path_ + "/stats.jsonl"), "") << "the part that was written is taken back";
}

TEST(Slug, IsReadableAndUnique) {
  EXPECT_EQ(slugOf("run_equiv/stock/throws/view_of_leaf"), "run_equiv-stock-throws-view_of_leaf");
  EXPECT_EQ(slugOf("execution/engine/crash/SIGSEGV:at::native::add"),
            "execution-engine-crash-SIGSEGV:at::native::add");
  EXPECT_NE(slugOf("a/b-c"), slugOf("a-b/c"));
  EXPECT_NE(slugOf("a/b c"), slugOf("a/b_c"));
  EXPECT_NE(slugOf(std::string(300, 'x')), slugOf(std::string(301, 'x')));
  EXPECT_LT(slugOf(std::string(300, 'x')).size(), 128U);
  EXPECT_EQ(slugOf("a/../../b").find('/'), std::string::npos);
  EXPECT_NE(slugOf("../x")[0], '.');
}

}  // namespace
}  // namespace faultline
