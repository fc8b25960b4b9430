#include "oracles/campaign/case_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "faultline/ir.h"

namespace faultline {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(path_); }
  void TearDown() override { fs::remove_all(path_); }
  std::string put(const std::string& name, const std::string& bytes) {
    const fs::path path = fs::path(path_) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  static std::string someCase() {
    Case c;
    c.graph = readGraph("graph(%x : Tensor):\n  return (%x)\n").value();
    CaseRun run;
    run.inputs = {readInputSpec("float32[2]").value()};
    c.runs = {run};
    return writeCase(c);
  }
  std::string path_ = testing::TempDir() + "/files-" + std::to_string(::getpid());
};

TEST_F(Files, FindsCasesInFoldersByName) {
  put("b.case", someCase());
  put("sub/a.case", someCase());
  put("a.case", someCase());
  put("notes.txt", "x");
  const CaseFiles files = readCaseFiles({path_});
  ASSERT_EQ(files.cases.size(), 3U);
  EXPECT_EQ(files.cases[0].path, path_ + "/a.case");
  EXPECT_EQ(files.cases[1].path, path_ + "/b.case");
  EXPECT_EQ(files.cases[2].path, path_ + "/sub/a.case");
  EXPECT_EQ(files.other_files, 1U);
  EXPECT_EQ(files.set_aside, 0U);
  EXPECT_TRUE(files.bad.empty());
}

TEST_F(Files, LeavesUnfinishedThingsOfOutFoldersAside) {
  put("found/index.json", "{\"schema\": \"faultline.fuzz/1\"}");
  put("found/slug/case.case", someCase());
  put("found/flaky/slug-1/case.case", someCase());
  put("found/inflight/worker-0.fdr", "x");
  put("other/flaky/case.case", someCase());
  for (const std::string& path : {path_, path_ + "/found"}) {
    const CaseFiles files = readCaseFiles({path});
    EXPECT_EQ(files.cases.size(), path == path_ ? 2U : 1U);
    EXPECT_EQ(files.set_aside, 2U);
    EXPECT_EQ(files.other_files, 1U);
  }
}

TEST_F(Files, TellsLineAndColumnOfWhatIsNoCase) {
  const std::vector<std::string> bad{
      put("README.md", "# Faultline\n\nText.\n"),
      put("empty.case", ""),
      put("cut.case", someCase().substr(0, someCase().size() / 2)),
      put("binary.case", std::string("\x7f"
                                     "ELF\0\0\1\2\xff\xfe",
                                     10)),
      put("huge.case", std::string(size_t{17} << 20, 'x')),
  };
  const CaseFiles files = readCaseFiles(bad);
  EXPECT_TRUE(files.cases.empty());
  ASSERT_EQ(files.bad.size(), bad.size());
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(files.bad[i].file, bad[i]);
    EXPECT_NE(files.bad[i].kind, ErrorKind::Io);
    ASSERT_TRUE(files.bad[i].where) << files.bad[i].str();
    EXPECT_GE(files.bad[i].where->line, 1U);
    EXPECT_GE(files.bad[i].where->column, 1U);
  }
}

TEST_F(Files, NeverWaitsForAFile) {
  const std::string fifo = path_ + "/fifo.case";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const CaseFiles files = readCaseFiles({fifo, "/dev/zero", path_ + "/missing.case"});
  EXPECT_EQ(files.bad.size(), 3U);
  EXPECT_EQ(files.bad[0].message, "not a regular file");
  EXPECT_EQ(files.bad[2].kind, ErrorKind::Invalid);
}

}  // namespace
}  // namespace faultline
