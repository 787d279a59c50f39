// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "keys/key_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

namespace natagg::keys {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why,
                         const std::string& remedy) {
  throw std::invalid_argument("key file " + path + " " + why + "; " + remedy);
}

std::string octal(mode_t mode) {
  char text[8];
  std::snprintf(text, sizeof(text), "%04o", mode & 07777U);
  return text;
}

bool is_trusted(uid_t owner) {
  return owner == 0 || owner == geteuid();
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

/// A key while it is on its way; wiped at the end.
class Wiped {
 public:
  explicit Wiped(std::size_t size) : bytes_(size) {}
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;
  ~Wiped() { explicit_bzero(bytes_.data(), bytes_.size()); }
  [[nodiscard]] std::span<std::byte> bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Of the file that is open, so that it is the one that is then read.
void check(const std::string& path, int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    refuse(path, "cannot be examined: fstat(): " + std::generic_category().message(errno),
           "put it on another file system");
  }
  if (!S_ISREG(status.st_mode)) refuse(path, "is not a regular file", "name one");
  if (!is_trusted(status.st_uid)) {
    const std::string user = std::to_string(geteuid());
    refuse(
        path,
        "belongs to user " + std::to_string(status.st_uid) + ", not to user " + user + " or root",
        "chown " + user + " " + path);
  }
  if ((status.st_mode & 077U) != 0) {
    refuse(path, "can be used by others, its mode is " + octal(status.st_mode),
           "chmod 600 " + path);
  }
}

std::size_t read_all(const std::string& path, int fd, std::span<std::byte> out) {
  std::size_t size = 0;
  while (size < out.size()) {
    const ssize_t got = ::read(fd, out.data() + size, out.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      refuse(path, "cannot be read: read(): " + std::generic_category().message(errno),
             "name a file");
    }
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  return size;
}

/// The job of "7.key"; nothing for another name that does not end so.
bool parse_name(const std::filesystem::path& file, std::uint32_t& job) {
  if (file.extension() != ".key") return false;
  const std::string stem = file.stem().string();
  const char* end = stem.data() + stem.size();
  const auto [stop, error] = std::from_chars(stem.data(), end, job);
  const bool plain = error == std::errc{} && stop == end && std::to_string(job) == stem;
  if (!plain) {
    refuse(file.string(), "is not called by the number of a job",
           "rename it, as to 7.key for job 7");
  }
  return true;
}

}  // namespace

proto::JobKey read_key_file(const std::string& path, std::uint32_t job) {
  // Without O_NONBLOCK a FIFO would wait for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    refuse(path, "cannot be opened: open(): " + std::generic_category().message(errno),
           "a new key: (umask 077; head -c 32 /dev/urandom > " + path + ")");
  }
  check(path, file.get());
  Wiped key(proto::kMaxKeyBytes + 1);
  const std::size_t size = read_all(path, file.get(), key.bytes());
  if (size < proto::kMinKeyBytes || size > proto::kMaxKeyBytes) {
    refuse(path,
           (size > proto::kMaxKeyBytes ? "has more than " + std::to_string(proto::kMaxKeyBytes)
                                       : "has " + std::to_string(size)) +
               " bytes; a key has " + std::to_string(proto::kMinKeyBytes) + " to " +
               std::to_string(proto::kMaxKeyBytes),
           "a new one: (umask 077; head -c 32 /dev/urandom > " + path + ")");
  }
  return {job, key.bytes().first(size)};
}

proto::JobKeys read_key_directory(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw std::invalid_argument("key directory " + path + " cannot be examined: stat(): " +
                                std::generic_category().message(errno) + "; mkdir -m 700 " + path);
  }
  if (!is_trusted(status.st_uid) || (status.st_mode & 022U) != 0) {
    throw std::invalid_argument("key directory " + path +
                                " can be written to by others, its mode is " +
                                octal(status.st_mode) + " and its owner user " +
                                std::to_string(status.st_uid) + "; chmod 700 " + path);
  }
  std::error_code error;
  proto::JobKeys keys;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    std::uint32_t job = 0;
    if (!parse_name(entry->path(), job)) continue;
    keys.emplace(job, read_key_file(entry->path().string(), job));
  }
  if (error) {
    throw std::invalid_argument("key directory " + path + " cannot be read: readdir(): " +
                                error.message() + "; chmod 700 " + path);
  }
  if (keys.empty()) {
    throw std::invalid_argument("key directory " + path +
                                " has no key; that of job 7 is a file called 7.key");
  }
  return keys;
}

proto::Secret random_secret() {
  proto::Secret secret;
  // Not interrupted, and not short, for so few bytes.
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) {
    throw std::system_error(errno, std::generic_category(), "getrandom()");
  }
  return secret;
}

}  // namespace natagg::keys
