// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A file that exists while the daemon serves, for scripts that wait for it.
#pragma once

#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

namespace natagg::aggregator {

class ReadyFile {
 public:
  /// Writes `text` and a newline to `path`; an empty path means no file. The file appears whole.
  ReadyFile(const std::string& path, const std::string& text) : path_(path) {
    if (path_.empty()) return;
    const std::string unfinished = path_ + ".new";
    std::ofstream stream(unfinished);
    stream << text << '\n';
    stream.close();
    if (!stream || std::rename(unfinished.c_str(), path_.c_str()) != 0) {
      throw std::runtime_error("ready_file " + path_ + " cannot be written");
    }
  }
  ~ReadyFile() {
    if (!path_.empty()) std::remove(path_.c_str());
  }
  ReadyFile(const ReadyFile&) = delete;
  ReadyFile& operator=(const ReadyFile&) = delete;

 private:
  std::string path_;
};

}  // namespace natagg::aggregator
