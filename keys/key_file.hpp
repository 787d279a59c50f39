// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Where keys come from: files that nobody else can read. Every error names the file and says what
// to do.
#pragma once

#include <cstdint>
#include <string>

#include "proto/authentication.hpp"

namespace natagg::keys {

/// The key of `job`: all bytes of the file, at least 32. The file must be a regular one that
/// belongs to this process's user or root and that nobody else may read or write. Throws
/// std::invalid_argument.
[[nodiscard]] proto::JobKey read_key_file(const std::string& path, std::uint32_t job);

/// The keys of several jobs: the files of a directory that are called by the job's number and
/// ".key", as 7.key. Only this process's user or root may write to the directory. Other names are
/// no keys. Throws std::invalid_argument, also when there is no key.
[[nodiscard]] proto::JobKeys read_key_directory(const std::string& path);

/// From the kernel. Throws std::system_error.
[[nodiscard]] proto::Secret random_secret();

}  // namespace natagg::keys
