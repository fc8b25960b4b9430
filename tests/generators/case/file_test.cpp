#include "generators/case/file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace faultline {
namespace {

using testing::HasSubstr;

class File : public testing::Test {
 protected:
  File() : folder_(std::filesystem::temp_directory_path() / ("faultline-file-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder_);
  }
  ~File() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& bytes) {
    std::string path = folder_ / "file";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(File, IsReadAsItIs) {
  std::string bytes("a\0b\n", 4);
  EXPECT_EQ(readFile(write(bytes)).value(), bytes);
  EXPECT_EQ(readTextFile(write("täxt\r\n\t")).value(), "täxt\r\n\t");
}

TEST_F(File, WhatCannotBeReadIsSaid) {
  EXPECT_THAT(readFile(folder_ / "none").error().str(), HasSubstr("none: No such file or directory"));
  EXPECT_THAT(readFile(folder_).error().str(), HasSubstr("is a folder, expected a file"));
  EXPECT_THAT(readFile(write("")).error().str(), HasSubstr("file:1:1: is empty"));
  EXPECT_THAT(readTextFile(write(std::string("ab\nc\0", 5))).error().str(),
              HasSubstr("file:2:2: is a binary file: expected text, got byte 0x00"));
}

TEST_F(File, AFileThatNeverEndsIsTooLarge) {
  EXPECT_THAT(readFile("/dev/zero").error().message, HasSubstr("is larger than 64 MiB"));
}

}  // namespace
}  // namespace faultline
