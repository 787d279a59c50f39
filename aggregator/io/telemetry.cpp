// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/telemetry.hpp"

#include <rte_telemetry.h>

#include <mutex>
#include <string>

namespace natagg::aggregator::io {
namespace {

// Telemetry's callbacks take no context and cannot be unregistered.
std::mutex g_mutex;
const Datapath* g_datapath = nullptr;
const Options* g_options = nullptr;

int answer_stats(const char*, const char*, rte_tel_data* data) {
  const std::lock_guard lock(g_mutex);
  rte_tel_data_start_dict(data);
  if (g_datapath == nullptr) return 0;
  for (const CounterRow& row : g_datapath->counters()) {
    rte_tel_data_add_dict_u64(data, row.name.c_str(), row.total());
  }
  return 0;
}

int answer_config(const char*, const char*, rte_tel_data* data) {
  const std::lock_guard lock(g_mutex);
  rte_tel_data_start_dict(data);
  if (g_options == nullptr) return 0;
  for (const Option& option : option_table()) {
    rte_tel_data_add_dict_string(data, std::string{option.name}.c_str(),
                                 value_text(*g_options, option).c_str());
  }
  return 0;
}

}  // namespace

Telemetry::Telemetry(const Datapath& datapath, const Options& options) {
  const std::lock_guard lock(g_mutex);
  g_datapath = &datapath;
  g_options = &options;
  rte_telemetry_register_cmd("/natagg/stats", answer_stats,
                             "Totals of all counters. Takes no parameters");
  rte_telemetry_register_cmd("/natagg/config", answer_config,
                             "Effective configuration. Takes no parameters");
}

Telemetry::~Telemetry() {
  const std::lock_guard lock(g_mutex);
  g_datapath = nullptr;
  g_options = nullptr;
}

}  // namespace natagg::aggregator::io
