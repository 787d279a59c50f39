// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/configuration.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "aggregator/ipv4_text.hpp"
#include "aggregator/shard_config.hpp"

namespace natagg::testing {
namespace {

using namespace aggregator;

using Words = std::vector<std::string>;

class ConfigurationTest : public ::testing::Test {
 protected:
  ~ConfigurationTest() override { std::remove(path_.c_str()); }

  std::string write_file(const std::string& text) {
    std::ofstream(path_) << text;
    return path_;
  }

  static std::string error_of(const Words& arguments, const Words& environment = {}) {
    try {
      static_cast<void>(load_configuration(arguments, environment));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  }

  const std::string path_ = ::testing::TempDir() + "natagg-" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                            ".ini";
};

/// A valid value that is not the default.
std::string another_value(const Option& option) {
  if (option.name == "address") return "10.9.8.7/24";
  if (option.name == "multicast_group") return "239.1.2.0";
  if (!option.choices.empty()) {
    return std::string{option.choices.substr(option.choices.rfind('|') + 1)};
  }
  if (std::holds_alternative<std::string Options::*>(option.field)) return "/tmp/other";
  if (option.max == 1) return "0.25";
  return option.name == "max_values" ? "256" : "512";
}

TEST_F(ConfigurationTest, TakesCommandLineBeforeEnvironmentBeforeFile) {
  const std::string file =
      write_file("address = 10.0.0.1 # ours\nport = 1000\nmtu = 1000\nmax_jobs = 10\n");
  const Configuration configuration =
      load_configuration({"--config", file, "--port", "3000"},
                         {"NATAGG_PORT=2000", "NATAGG_MTU=2000", "NATAGG_OTHER=1", "PORT=9"});
  EXPECT_EQ(configuration.options.port, 3000U);
  EXPECT_EQ(configuration.options.mtu, 2000U);
  EXPECT_EQ(configuration.options.max_jobs, 10U);
  EXPECT_EQ(configuration.options.address, "10.0.0.1");
  EXPECT_EQ(configuration.sources.at("port"), "command line");
  EXPECT_EQ(configuration.sources.at("mtu"), "environment");
  EXPECT_EQ(configuration.sources.at("max_jobs"), file);
  EXPECT_EQ(configuration.sources.count("max_window"), 0U);
}

TEST_F(ConfigurationTest, EveryKeyHasAnEffectFromEverySource) {
  for (const Option& option : option_table()) {
    const std::string key{option.name};
    const std::string value = another_value(option);
    std::string dashed = key;
    for (char& c : dashed) c = c == '_' ? '-' : c;
    const std::string file = write_file(key + " = " + value + "\n");
    const Words address = option.name == "address" ? Words{} : Words{"NATAGG_ADDRESS=10.0.0.1"};
    Words variable = address;
    variable.push_back(environment_name(key) + "=" + value);

    Options expected;
    if (!address.empty()) expected.address = "10.0.0.1";
    const Options untouched = expected;
    set_option(expected, option, value);
    EXPECT_NE(expected, untouched) << key;
    EXPECT_EQ(load_configuration({"--" + key, value}, address).options, expected) << key;
    EXPECT_EQ(load_configuration({"--" + dashed + "=" + value}, address).options, expected) << key;
    EXPECT_EQ(load_configuration({}, variable).options, expected) << key;
    EXPECT_EQ(load_configuration({"--config", file}, address).options, expected) << key;
    EXPECT_NE(render_configuration(expected).find("\n" + key + " = " + value + "\n"),
              std::string::npos)
        << key;
  }
}

TEST_F(ConfigurationTest, PrintedReadsBackTheSame) {
  Options options;
  for (const Option& option : option_table()) set_option(options, option, another_value(option));
  const std::string file = write_file(render_configuration(options));
  EXPECT_EQ(load_configuration({"--config", file}, {}).options, options);
}

TEST_F(ConfigurationTest, NumbersOutsideTheirRangeAreRefusedWithKeyValueAndRange) {
  EXPECT_EQ(error_of({"--address=10.0.0.1", "--member-timeout-ms=9"}),
            "command line: member_timeout_ms = 9: must be 10 to 3600000 ms");
  EXPECT_EQ(error_of({}, {"NATAGG_PORT=65536"}), "environment: port = 65536: must be 1 to 65535");
  const std::string file = write_file("max_window = 300\naddress = 10.0.0.1\n");
  EXPECT_EQ(error_of({"--config", file}),
            "max_window = 300: must be 1 to 32768 slots, a power of two");
  EXPECT_EQ(error_of({"--inject-loss-rx=1.5"}),
            "command line: inject_loss_rx = 1.5: must be 0 to 1");
  EXPECT_EQ(error_of({"--inject-loss-rx=nan"}),
            "command line: inject_loss_rx = nan: must be 0 to 1");
  for (const char* text : {"", "-1", "1x", "0x10", " 5", "1e3", "99999999999999999999"}) {
    EXPECT_EQ(error_of({"--port", text}).rfind("command line: port = ", 0), 0U) << text;
  }
}

TEST_F(ConfigurationTest, BothEndsOfEveryRangeAreTaken) {
  for (const Option& option : option_table()) {
    if (std::holds_alternative<std::string Options::*>(option.field)) continue;
    for (double end : {option.min, option.max}) {
      Options options;
      const std::string text = std::to_string(static_cast<std::uint64_t>(end));
      set_option(options, option, text);
      EXPECT_EQ(value_text(options, option), text) << option.name;
    }
  }
}

TEST_F(ConfigurationTest, UnknownKeysAndChoicesAreRefusedByName) {
  EXPECT_EQ(error_of({"--no-such-key=1"}), "command line: unknown key --no-such-key");
  const std::string file = write_file("address = 10.0.0.1\nno_such_key = 1\n");
  EXPECT_EQ(error_of({"--config", file}), file + ": unknown key no_such_key");
  EXPECT_EQ(error_of({"--idle=lazy"}), "command line: idle = lazy: must be poll|polite");
  EXPECT_EQ(error_of({"--idle=poll|polite"}),
            "command line: idle = poll|polite: must be poll|polite");
  EXPECT_EQ(error_of({"--por=1"}), "command line: unknown key --por");
  EXPECT_NE(error_of({"--address=10.0.0.1", "stray"}), "no error");
  EXPECT_EQ(error_of({"--port=1", "--port=2"}), "command line: port is given twice");
  EXPECT_EQ(error_of({"--config", "/nonexistent.ini"}), "/nonexistent.ini: cannot be read");
}

TEST_F(ConfigurationTest, AddressIsRequiredAndChecked) {
  EXPECT_EQ(error_of({}), "address = (empty): must be an IPv4 address, as 10.0.0.1 or 10.0.0.1/24");
  EXPECT_NE(error_of({"--address=10.0.0.256"}), "no error");
  EXPECT_NE(error_of({"--address=10.0.0.1", "--multicast-group=10.0.0.2"}), "no error");
  EXPECT_NE(error_of({"--address=10.0.0.1", "--multicast-group=239.255.255.1"}), "no error");
}

TEST_F(ConfigurationTest, RequestsAreSeenBeforeAnythingIsChecked) {
  EXPECT_EQ(load_configuration({"--help", "--port=1"}, {}).request, Request::kHelp);
  EXPECT_EQ(load_configuration({"-h"}, {}).request, Request::kHelp);
  EXPECT_EQ(load_configuration({"--version"}, {}).request, Request::kVersion);
  EXPECT_EQ(load_configuration({"--print-config"}, {}).request, Request::kPrintConfig);
  EXPECT_EQ(load_configuration({"--check-config", "--address=1.2.3.4"}, {}).request,
            Request::kCheckConfig);
  EXPECT_NE(error_of({"--check-config"}), "no error");
}

TEST_F(ConfigurationTest, HelpNamesEveryKeyWithItsRange) {
  const std::string help = help_text();
  for (const Option& option : option_table()) {
    EXPECT_NE(help.find("--" + std::string{option.name}), std::string::npos) << option.name;
  }
  EXPECT_NE(help.find("Range: 10 to 3600000 ms. Default: 1500."), std::string::npos);
}

TEST_F(ConfigurationTest, ShippedSampleIsTheTable) {
  std::ifstream stream(NATAGG_SAMPLE_CONFIGURATION);
  std::stringstream shipped;
  shipped << stream.rdbuf();
  EXPECT_EQ(shipped.str(), render_configuration(Options{}))
      << "renew it: natagg-aggregator --print-config > config/natagg-aggregator.ini";
}

TEST(CommandLine, IsSplitAtTheDashes) {
  CommandLine split = split_command_line({"-l", "0", "--", "--port", "5"});
  EXPECT_EQ(split.eal, (Words{"-l", "0"}));
  EXPECT_EQ(split.ours, (Words{"--port", "5"}));
  split = split_command_line({"--port", "5"});
  EXPECT_TRUE(split.eal.empty());
  EXPECT_EQ(split.ours, (Words{"--port", "5"}));
}

TEST(Words, AreSplitAtBlanksOutsideQuotes) {
  EXPECT_EQ(split_words("  -l 0-1\t--vdev  net_null0 "),
            (Words{"-l", "0-1", "--vdev", "net_null0"}));
  EXPECT_EQ(split_words(R"(--lcores '(0,1)@0' -d "a b"c '')"),
            (Words{"--lcores", "(0,1)@0", "-d", "a bc", ""}));
  EXPECT_TRUE(split_words(" ").empty());
}

TEST(Ipv4Text, TakesAddressesWithAndWithoutPrefix) {
  EXPECT_EQ(parse_ipv4("10.0.0.1"), 0x0A00'0001U);
  EXPECT_EQ(parse_ipv4("255.255.255.255/0"), 0xFFFF'FFFFU);
  EXPECT_EQ(parse_ipv4("10.0.0.1/32"), 0x0A00'0001U);
  for (const char* text : {"", "10", "10.0.0", "10.0.0.", "10.0.0.256", "10.0.0.1.", "10.0.0.1/",
                           "10.0.0.1/33", "10.0.0.1/24x", " 10.0.0.1", "010.0.0.1", "a.b.c.d"}) {
    EXPECT_EQ(parse_ipv4(text), std::nullopt) << text;
  }
}

TEST(ShardConfiguration, FollowsEveryOptionThatItDependsOn) {
  const Options defaults;
  const auto made = [](const Options& options) { return shard_config(options, 1, 2, 1500, 77); };
  const ShardConfig plain = made(defaults);
  EXPECT_EQ(plain.index, 1);
  EXPECT_EQ(plain.shards, 2);
  EXPECT_EQ(plain.first_epoch, 77U);
  EXPECT_EQ(plain.max_values, 1408);
  EXPECT_EQ(shard_config(defaults, 0, 1, 9000, 1).max_values, 8832);
  EXPECT_EQ(plain.multicast_port, 4790);

  const auto with = [&](std::string_view key, const char* value) {
    Options options;
    set_option(options, *find_option(key), value);
    return made(options);
  };
  EXPECT_EQ(with("max_jobs", "3").max_jobs, 3);
  EXPECT_EQ(with("max_workers", "3").max_workers, 3);
  EXPECT_EQ(with("max_window", "64").max_window, 64);
  EXPECT_EQ(with("max_values", "256").max_values, 256);
  EXPECT_EQ(with("member_timeout_ms", "20").member_timeout, 20'000'000);
  EXPECT_EQ(with("forming_timeout_ms", "30").forming_timeout, 30'000'000);
  EXPECT_EQ(with("probe_wait_ms", "40").probe_wait, 40'000'000);
  EXPECT_EQ(with("multicast", "off").multicast_address, 0U);
  EXPECT_EQ(with("multicast", "auto").multicast_address, 0xEF4E'4100U);
  EXPECT_EQ(with("multicast_group", "239.1.0.0").multicast_address, 0xEF01'0000U);
  EXPECT_EQ(with("multicast_port", "99").multicast_port, 99);
  EXPECT_EQ(with("port", "5000").multicast_port, 5000);
  EXPECT_EQ(with("kernels", "scalar").kernels->name, "scalar");
  EXPECT_FALSE(plain.jobs_without_key);
  EXPECT_TRUE(with("jobs_without_key", "accept").jobs_without_key);
}

TEST(ShardConfiguration, RefusesPortsBeyondTheLastAndTinyMtus) {
  Options options;
  options.port = 65535;
  EXPECT_NO_THROW(static_cast<void>(shard_config(options, 0, 1, 1500, 1)));
  EXPECT_THROW(static_cast<void>(shard_config(options, 0, 2, 1500, 1)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(shard_config(Options{}, 0, 1, 200, 1)), std::invalid_argument);
}

}  // namespace
}  // namespace natagg::testing
