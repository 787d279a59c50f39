// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A key file that others could have read or written is not taken, and the error says what to do.
#include "keys/key_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "authentication/hex.hpp"

namespace natagg::test {
namespace {

class KeyFile : public testing::Test {
 protected:
  KeyFile() {
    std::string pattern = testing::TempDir() + "natagg-keys-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~KeyFile() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }

  /// What reading says, "" when it succeeds.
  template <typename Read>
  static std::string error_of(Read&& read) {
    try {
      static_cast<void>(read());
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  }
  static std::string error_of_file(const std::string& path) {
    return error_of([&] { return keys::read_key_file(path, 7); });
  }
  std::string error_of_directory() {
    return error_of([&] { return keys::read_key_directory(directory_); });
  }

  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
  }

  const std::string key_ = std::string(31, 'k') + '\n';
  std::string directory_;
};

TEST_F(KeyFile, GivesAllItsBytes) {
  const std::string path = write("a", key_);
  const proto::JobKey expected(7, std::as_bytes(std::span(key_)));
  EXPECT_EQ(hex(keys::read_key_file(path, 7).handshake(proto::Side::kWorker)),
            hex(expected.handshake(proto::Side::kWorker)));
  EXPECT_NE(hex(keys::read_key_file(path, 8).handshake(proto::Side::kWorker)),
            hex(expected.handshake(proto::Side::kWorker)))
      << "the same key serves no other job";
}

TEST_F(KeyFile, ThatAnyoneElseMayUseIsRefused) {
  for (const mode_t mode : {0640U, 0604U, 0660U, 0601U, 0620U, 0777U}) {
    const std::string path = write("a", key_, mode);
    const std::string error = error_of_file(path);
    EXPECT_TRUE(has(error, "key file " + path + " can be used by others, its mode is 0"))
        << mode << error;
    EXPECT_TRUE(has(error, "; chmod 600 " + path)) << error;
  }
  for (const mode_t mode : {0600U, 0400U}) EXPECT_EQ(error_of_file(write("b", key_, mode)), "");
}

TEST_F(KeyFile, ThatBelongsToSomeoneElseIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving files away takes root";
  const std::string path = write("a", key_);
  ASSERT_EQ(::chown(path.c_str(), 12'345, 0), 0);
  const std::string error = error_of_file(path);
  EXPECT_TRUE(has(error, "belongs to user 12345, not to user 0 or root")) << error;
  EXPECT_TRUE(has(error, "; chown 0 " + path)) << error;
}

TEST_F(KeyFile, OfTheWrongLengthIsRefused) {
  const std::string shorter = error_of_file(write("a", std::string(31, 'k')));
  EXPECT_TRUE(has(shorter, "has 31 bytes; a key has 32 to 4096")) << shorter;
  EXPECT_TRUE(has(shorter, "head -c 32 /dev/urandom")) << shorter;
  EXPECT_TRUE(has(error_of_file(write("b", "")), "has 0 bytes"));
  EXPECT_EQ(error_of_file(write("c", std::string(4'096, 'k'))), "");
  EXPECT_TRUE(has(error_of_file(write("d", std::string(4'097, 'k'))), "more than 4096 bytes"));
}

TEST_F(KeyFile, ThatIsNoFileIsRefusedWithoutWaiting) {
  const std::string missing = error_of_file(directory_ + "/missing");
  EXPECT_TRUE(has(missing, "cannot be opened: open(): No such file or directory")) << missing;
  EXPECT_TRUE(has(missing, "umask 077")) << missing;
  EXPECT_TRUE(has(error_of_file(directory_), "is not a regular file"));
  const std::string fifo = directory_ + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_TRUE(has(error_of_file(fifo), "is not a regular file"));
}

TEST_F(KeyFile, OfEachJobIsFoundInADirectoryByItsNumber) {
  write("7.key", key_);
  write("4294967295.key", key_);
  write("README", "not a key", 0644);
  const proto::JobKeys keys = keys::read_key_directory(directory_);
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_TRUE(keys.contains(7));
  EXPECT_TRUE(keys.contains(4'294'967'295U));
}

TEST_F(KeyFile, WithAnotherNameInADirectoryIsAnError) {
  for (const char* name : {"seven.key", "07.key", "4294967296.key", "-1.key"}) {
    const std::string path = write(name, key_);
    const std::string error = error_of_directory();
    EXPECT_TRUE(has(error, path + " is not called by the number of a job")) << error;
    std::filesystem::remove(path);
  }
}

TEST_F(KeyFile, InADirectoryThatOthersMayWriteToIsNotTrusted) {
  write("7.key", key_);
  ::chmod(directory_.c_str(), 0770);
  const std::string error = error_of_directory();
  EXPECT_TRUE(has(error, "can be written to by others, its mode is 0770")) << error;
  EXPECT_TRUE(has(error, "; chmod 700 " + directory_)) << error;
}

TEST_F(KeyFile, DirectoryWithoutKeysIsAnError) {
  EXPECT_TRUE(has(error_of_directory(), "has no key; that of job 7 is a file called 7.key"));
  EXPECT_TRUE(has(error_of([&] { return keys::read_key_directory(directory_ + "/none"); }),
                  "cannot be examined: stat(): No such file or directory"));
}

TEST(RandomSecret, DiffersEachTime) {
  EXPECT_NE(keys::random_secret(), keys::random_secret());
}

}  // namespace
}  // namespace natagg::test
