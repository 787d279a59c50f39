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
  /// An empty path means no file. Removes one that a daemon has left which was killed.
  explicit ReadyFile(const std::string& path) : path_(path) { remove(); }
  ~ReadyFile() { remove(); }
  ReadyFile(const ReadyFile&) = delete;
  ReadyFile& operator=(const ReadyFile&) = delete;

  /// Writes `text` and a newline. The file appears whole. Throws std::runtime_error.
  void write(const std::string& text) const {
    if (path_.empty()) return;
    const std::string unfinished = path_ + ".new";
    std::ofstream stream(unfinished);
    stream << text << '\n';
    stream.close();
    if (!stream || std::rename(unfinished.c_str(), path_.c_str()) != 0) {
      throw std::runtime_error("ready_file " + path_ + " cannot be written");
    }
  }

 private:
  void remove() const {
    if (!path_.empty()) std::remove(path_.c_str());
  }

  std::string path_;
};

}  // namespace natagg::aggregator
