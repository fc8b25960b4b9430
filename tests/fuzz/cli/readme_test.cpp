// What README.md says is so: its example is the one that the package test builds, its commands run, its flags
// exist.
#include "tests/fuzz/cli/run_faultline.h"

#include <regex>
#include <set>

namespace faultline::test {
namespace {

std::string readme() { return readWhole(repositoryRoot() + "/README.md"); }

// Blocks ```LANGUAGE … ```, in order.
std::vector<std::string> blocks(const std::string& text, const std::string& language) {
  std::vector<std::string> found;
  const std::string begin = "```" + language + "\n";
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    at += begin.size();
    found.push_back(text.substr(at, text.find("```", at) - at));
  }
  return found;
}

// Words as a shell would split them; only single quotes are in use.
Arguments shellWords(const std::string& line) {
  Arguments words;
  std::string word;
  bool quoted = false, any = false;
  for (const char c : line + " ") {
    if (c == '\'') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (any) words.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  return words;
}

TEST(Readme, QuotesTheExampleThatIsBuilt) {
  EXPECT_EQ(blocks(readme(), "cpp").at(0), readWhole(repositoryRoot() + "/tests/package/example.cpp"));
}

TEST(Readme, TheFirst30LinesHaveAllThatAStrangerNeeds) {
  std::vector<std::string> lines = linesOf(readme());
  lines.resize(30);
  std::string head;
  for (const std::string& line : lines) head += line + '\n';
  for (const char* needed : {"ci/quickstart", "ci/test", "int main()", "Folders:", "Found a failure?"}) {
    EXPECT_NE(head.find(needed), std::string::npos) << needed;
  }
}

TEST(Readme, EveryCommandRuns) {
  size_t ran = 0;
  for (const std::string& block : blocks(readme(), "console")) {
    for (const std::string& line : linesOf(block)) {
      if (line.rfind("$ faultline ", 0) != 0) continue;
      Arguments words = shellWords(line.substr(std::string("$ faultline ").size()));
      const Outcome& outcome = faultline(words);
      EXPECT_EQ(outcome.code, 0) << line << "\n" << outcome.out << outcome.err;
      ++ran;
    }
  }
  EXPECT_GE(ran, 6u);
}

TEST(Readme, EveryFlagOfTheDocumentsExists) {
  std::string help = faultline({"--help"}).out;
  for (const char* command :
       {"fuzz", "replay", "check", "break", "profile", "gen", "show", "list", "doctor"}) {
    help += faultline({command, "--help"}).out;
  }
  const std::regex flag("--[a-z][a-z-]*");
  std::set<std::string> exist;
  for (auto at = std::sregex_iterator(help.begin(), help.end(), flag); at != std::sregex_iterator(); ++at) {
    exist.insert(at->str());
  }
  for (const char* path : {"/README.md", "/fuzz/README.md"}) {
    const std::string text = readWhole(repositoryRoot() + path);
    for (const std::string& line : linesOf(text)) {
      // Flags of other programs stand in lines that name them.
      if (line.find("fuzz_") != std::string::npos || line.find("cmake") != std::string::npos) continue;
      for (auto at = std::sregex_iterator(line.begin(), line.end(), flag); at != std::sregex_iterator();
           ++at) {
        EXPECT_EQ(exist.count(at->str()), 1u) << path << ": " << at->str();
      }
    }
  }
}

}  // namespace
}  // namespace faultline::test
