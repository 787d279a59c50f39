// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/replay_report.hpp"

#include <array>
#include <cstdio>
#include <sstream>

#include "tools/trace/ticks.hpp"

namespace natagg::tools {
namespace {

constexpr std::array kQuantiles{std::pair{"p50", 0.5}, std::pair{"p90", 0.9},
                                std::pair{"p99", 0.99}, std::pair{"p999", 0.999}};

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

struct Rates {
  double packets;
  double gigabits;
  double values;
  double cycles_a_packet;
  double cycles_a_value;
};

/// Of the time inside the shards where that is known.
Rates rates(const ReplayReport& report) {
  const double seconds = report.busy_seconds > 0 ? report.busy_seconds : report.seconds;
  const auto cycles = kTicksAreCycles ? static_cast<double>(report.ticks) : 0;
  return {.packets = ratio(static_cast<double>(report.packets), seconds),
          .gigabits = ratio(static_cast<double>(report.bytes) * 8e-9, seconds),
          .values = ratio(static_cast<double>(report.values), seconds),
          .cycles_a_packet = ratio(cycles, static_cast<double>(report.packets)),
          .cycles_a_value = ratio(cycles, static_cast<double>(report.values))};
}

double microseconds(const ReplayReport& report, std::uint64_t ticks) {
  return ratio(static_cast<double>(ticks) * 1e6, report.ticks_per_second);
}

std::string place(const Finding& finding) {
  return finding.packet.number == 0 ? "" : to_string(finding.packet) + ": ";
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

void add_findings(std::ostream& out, const Findings& findings) {
  for (const Finding& finding : findings.kept()) out << place(finding) << finding.text << '\n';
  if (findings.count() > findings.kept().size()) {
    out << "and " << findings.count() - findings.kept().size() << " more\n";
  }
}

void add_json_findings(std::ostream& out, const Findings& findings) {
  out << "[";
  const char* separator = "";
  for (const Finding& finding : findings.kept()) {
    out << separator << "{\"file\": " << finding.packet.file
        << ", \"packet\": " << finding.packet.number << ", \"text\": " << quoted(finding.text)
        << "}";
    separator = ", ";
  }
  out << "]";
}

}  // namespace

void ReplayReport::add(const ReplayLedger& ledger) {
  answers.right += ledger.answers().right;
  answers.wrong += ledger.answers().wrong;
  answers.missing += ledger.answers().missing;
  held += ledger.held();
  for (const Finding& finding : ledger.findings().kept())
    findings.add(finding.packet, finding.text);
}

bool ReplayReport::good(const TraceSurvey& survey) const {
  return answers.wrong + answers.missing == 0 && survey.findings().count() == 0;
}

std::string to_text(const TraceSurvey& survey, const ReplayReport& report) {
  std::ostringstream out;
  const Rates rate = rates(report);
  const RecordedResults recorded = survey.recorded();
  out << "trace      " << survey.packets() << " natagg packets and " << survey.foreign()
      << " others, " << survey.sessions().size() << " sessions on " << survey.shards().size()
      << " shards, " << fixed(static_cast<double>(survey.duration()) * 1e-9, 3) << " s\n"
      << "recorded   " << recorded.right << " RESULTs right, " << recorded.wrong << " wrong, "
      << recorded.unchecked << " without all their DATA\n"
      << "replayed   " << report.loops << " times into " << report.target << ": " << report.packets
      << " packets in " << fixed(report.seconds, 3) << " s";
  if (report.held != 0) out << ", " << report.held << " held until they could be sent";
  if (report.retransmissions != 0) out << ", " << report.retransmissions << " sent again";
  out << "\nanswers    " << report.answers.right << " chunks answered, " << report.answers.wrong
      << " wrong packets, " << report.answers.missing << " missing\n"
      << (report.busy_seconds > 0 ? "in shards  " : "rate       ") << fixed(rate.packets, 0)
      << " packets/s, " << fixed(rate.gigabits, 3) << " Gbit/s, " << fixed(rate.values * 1e-6, 1)
      << " million values/s\n";
  if (rate.cycles_a_packet > 0) {
    out << "cycles     " << fixed(rate.cycles_a_packet, 0) << " a packet, "
        << fixed(rate.cycles_a_value, 2) << " a value\n";
  }
  out << "latency    us, " << report.latency_meaning << ":";
  for (const auto& [name, q] : kQuantiles) {
    out << ' ' << name << ' ' << fixed(microseconds(report, report.latency.quantile(q)), 1);
  }
  out << " max " << fixed(microseconds(report, report.latency.largest()), 1) << '\n';
  if (!report.counters.empty()) out << "counters  ";
  for (const auto& [name, count] : report.counters) out << ' ' << name << ' ' << count;
  if (!report.counters.empty()) out << '\n';
  add_findings(out, survey.findings());
  add_findings(out, report.findings);
  return out.str();
}

std::string to_json(const TraceSurvey& survey, const ReplayReport& report) {
  std::ostringstream out;
  const Rates rate = rates(report);
  const RecordedResults recorded = survey.recorded();
  out << "{\"trace\": {\"packets\": " << survey.packets() << ", \"foreign\": " << survey.foreign()
      << ", \"sessions\": " << survey.sessions().size()
      << ", \"shards\": " << survey.shards().size()
      << ", \"seconds\": " << fixed(static_cast<double>(survey.duration()) * 1e-9, 9)
      << ", \"results_right\": " << recorded.right << ", \"results_wrong\": " << recorded.wrong
      << ", \"results_unchecked\": " << recorded.unchecked << ", \"findings\": ";
  add_json_findings(out, survey.findings());
  out << "}, \"target\": " << quoted(report.target) << ", \"loops\": " << report.loops
      << ", \"packets\": " << report.packets << ", \"data_packets\": " << report.data_packets
      << ", \"values\": " << report.values << ", \"bytes\": " << report.bytes
      << ", \"held\": " << report.held << ", \"retransmissions\": " << report.retransmissions
      << ", \"seconds\": " << fixed(report.seconds, 9)
      << ", \"busy_seconds\": " << fixed(report.busy_seconds, 9)
      << ", \"packets_per_second\": " << fixed(rate.packets, 1)
      << ", \"gigabits_per_second\": " << fixed(rate.gigabits, 6)
      << ", \"values_per_second\": " << fixed(rate.values, 1)
      << ", \"cycles_per_packet\": " << fixed(rate.cycles_a_packet, 2)
      << ", \"cycles_per_value\": " << fixed(rate.cycles_a_value, 4)
      << ", \"answers\": {\"right\": " << report.answers.right
      << ", \"wrong\": " << report.answers.wrong << ", \"missing\": " << report.answers.missing
      << "}, \"latency_us\": {";
  for (const auto& [name, q] : kQuantiles) {
    out << quoted(name) << ": " << fixed(microseconds(report, report.latency.quantile(q)), 3)
        << ", ";
  }
  out << "\"max\": " << fixed(microseconds(report, report.latency.largest()), 3)
      << "}, \"counters\": {";
  const char* separator = "";
  for (const auto& [name, count] : report.counters) {
    out << separator << quoted(name) << ": " << count;
    separator = ", ";
  }
  out << "}, \"findings\": ";
  add_json_findings(out, report.findings);
  out << "}";
  return out.str();
}

}  // namespace natagg::tools
