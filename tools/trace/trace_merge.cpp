// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/trace_merge.hpp"

#include <algorithm>

namespace natagg::tools {

TraceMerge::TraceMerge(const std::vector<std::string>& paths) {
  files_.reserve(paths.size());
  for (const std::string& path : paths) {
    const auto number = static_cast<std::uint32_t>(paths.size() == 1 ? 0 : files_.size() + 1);
    File& file = files_.emplace_back(File{.reader = TraceReader(path, number), .next = {}});
    file.next = file.reader.next();
    if (!file.next) throw TraceError(path + ": has no natagg packet");
  }
  align();
}

/// Each reader's times begin at the same; the files' clocks tell which began later, and how much.
void TraceMerge::align() {
  std::int64_t earliest = 0;
  for (File& file : files_) {
    const auto offset = time_between(*files_.front().reader.started(), *file.reader.started());
    if (!offset) {
      throw TraceError(file.reader.name() + ": begins more than ten years before or after " +
                       files_.front().reader.name());
    }
    file.offset = *offset;
    earliest = std::min(earliest, *offset);
  }
  for (File& file : files_) file.offset -= earliest;
}

std::optional<TracePacket> TraceMerge::next() {
  if (last_ != nullptr) last_->next = last_->reader.next();
  last_ = nullptr;
  for (File& file : files_) {
    if (!file.next) continue;
    if (last_ == nullptr || file.next->time + file.offset < last_->next->time + last_->offset) {
      last_ = &file;
    }
  }
  if (last_ == nullptr) return std::nullopt;
  TracePacket packet = *last_->next;
  packet.time += last_->offset;
  return packet;
}

std::uint64_t TraceMerge::foreign() const {
  std::uint64_t sum = 0;
  for (const File& file : files_) sum += file.reader.foreign();
  return sum;
}

std::string TraceMerge::name() const {
  const std::string& first = files_.front().reader.name();
  return files_.size() == 1 ? first : first + " and " + std::to_string(files_.size() - 1) + " more";
}

}  // namespace natagg::tools
