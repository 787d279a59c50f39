// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <stdexcept>

namespace natagg::aggregator {

void start_log(const std::string& level, const std::string& file) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  try {
    if (file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
    }
  } catch (const spdlog::spdlog_ex& error) {
    throw std::runtime_error("log_file: " + std::string{error.what()});
  }
  auto logger = std::make_shared<spdlog::logger>("natagg-aggregator", sink);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");
  logger->set_level(spdlog::level::from_str(level));
  // Scripts wait for lines of the log, and few are written.
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(logger);
}

}  // namespace natagg::aggregator
