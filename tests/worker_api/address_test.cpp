// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/address.hpp"

#include <gtest/gtest.h>
#include <net/if.h>

#include "worker_lib/error.hpp"

namespace natagg::worker {
namespace {

constexpr std::uint32_t kLoopback = 0x7F00'0001;

std::string refusal(std::string_view text) {
  try {
    static_cast<void>(parse_aggregators(text));
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), NATAGG_INVALID_ARGUMENT);
    return error.what();
  }
  return "accepted";
}

TEST(Aggregators, AreAddressesWithOptionalPorts) {
  const std::vector<proto::Endpoint> pool = parse_aggregators("10.0.0.1,10.0.0.2:5000,127.0.0.1:1");
  ASSERT_EQ(pool.size(), 3U);
  EXPECT_EQ(pool[0], (proto::Endpoint{0x0A00'0001, 4790}));
  EXPECT_EQ(pool[1], (proto::Endpoint{0x0A00'0002, 5000}));
  EXPECT_EQ(pool[2], (proto::Endpoint{kLoopback, 1}));
}

TEST(Aggregators, AreRefusedWithTheWrongPartQuoted) {
  EXPECT_NE(refusal("").find("\"\" is not a numeric IPv4"), std::string::npos);
  EXPECT_NE(refusal("10.0.0.1,").find("\"\" is not a numeric IPv4"), std::string::npos);
  EXPECT_NE(refusal("10.0.0.1,box").find("\"box\" is not"), std::string::npos);
  EXPECT_NE(refusal("10.0.0.256").find("\"10.0.0.256\" is not"), std::string::npos);
  EXPECT_NE(refusal("0.0.0.0:1").find("no aggregator"), std::string::npos);
  EXPECT_NE(refusal("10.0.0.1:0").find("\"10.0.0.1:0\" has no port"), std::string::npos);
  EXPECT_NE(refusal("10.0.0.1:65536").find("has no port"), std::string::npos);
  EXPECT_NE(refusal("10.0.0.1:47x").find("has no port"), std::string::npos);
  EXPECT_NE(refusal("10.0.0.1:").find("has no port"), std::string::npos);
  EXPECT_NE(refusal("10.0.0.1,10.0.0.1:4790").find("twice"), std::string::npos);
}

TEST(Local, IsAnAddressOrAnInterface) {
  EXPECT_EQ(parse_local("127.0.0.1").address, kLoopback);
  EXPECT_EQ(parse_local("eth0").interface, "eth0");
  EXPECT_EQ(parse_local("").interface, "");
  EXPECT_THROW(static_cast<void>(parse_local("a-name-that-no-interface-has")), Error);
}

TEST(Route, HasTheInterfaceAndItsMtu) {
  const Route route = find_route({kLoopback, 4790}, {});
  EXPECT_EQ(route.interface_index, static_cast<int>(::if_nametoindex("lo")));
  EXPECT_GE(route.mtu, 65535U);
}

TEST(Route, NamesTheCallTheObjectAndTheRemedyWhenThereIsNone) {
  try {
    static_cast<void>(find_route({kLoopback, 4790}, {.address = 0xC000'0201, .interface = {}}));
    FAIL() << "192.0.2.1 is an address of no host";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), NATAGG_SYSTEM_ERROR);
    EXPECT_EQ(std::string(error.what()),
              "bind(192.0.2.1:0): Cannot assign requested address; `ip address` lists this host's "
              "addresses");
  }
}

TEST(Route, NamesAnInterfaceThatDoesNotExist) {
  try {
    static_cast<void>(find_route({kLoopback, 4790}, {.address = 0, .interface = "none7"}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("none7"), std::string::npos);
  }
}

}  // namespace
}  // namespace natagg::worker
