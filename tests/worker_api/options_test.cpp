// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Every option is checked, and every option has an effect.
#include "worker_lib/options.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "support/loopback_aggregator.hpp"
#include "support/reference.hpp"
#include "worker_api/support.hpp"
#include "worker_lib/error.hpp"

namespace natagg::testing {
namespace {

using std::chrono::milliseconds;

/// The text with which options changed by `change` are refused.
std::string refusal(const std::function<void(natagg_options&)>& change) {
  natagg_options options = worker::default_options();
  options.aggregators = "127.0.0.1";
  change(options);
  try {
    static_cast<void>(worker::make_config(options));
  } catch (const worker::Error& error) {
    EXPECT_EQ(error.status(), NATAGG_INVALID_ARGUMENT);
    return error.what();
  }
  return "accepted";
}

TEST(Options, OutOfRangeAreRefusedByNameAndNumber) {
  using O = natagg_options;
  EXPECT_EQ(refusal([](O&) {}), "accepted");
  EXPECT_EQ(refusal([](O& o) { o.world = 0; }), "world: 0 is not from 1 to 65535");
  EXPECT_EQ(refusal([](O& o) { o.world = 65'536; }), "world: 65536 is not from 1 to 65535");
  EXPECT_EQ(refusal([](O& o) { o.rank = 1; }), "rank: 1 is not from 0 to 0");
  EXPECT_EQ(refusal([](O& o) { o.shift = -65; }), "shift: -65 is not from -64 to 64");
  EXPECT_EQ(refusal([](O& o) { o.rounding = static_cast<natagg_rounding>(2); }),
            "rounding: 2 is not from 0 to 1");
  EXPECT_EQ(refusal([](O& o) { o.window = 0; }), "window: 0 is not a power of two up to 32768");
  EXPECT_EQ(refusal([](O& o) { o.window = 65'536; }),
            "window: 65536 is not a power of two up to 32768");
  EXPECT_EQ(refusal([](O& o) { o.values_per_packet = 1400; }),
            "values_per_packet: 1400 is not a multiple of 128 up to 8832");
  EXPECT_EQ(refusal([](O& o) { o.values_per_packet = 8960; }),
            "values_per_packet: 8960 is not a multiple of 128 up to 8832");
  EXPECT_EQ(refusal([](O& o) { o.connect_timeout_ms = 0; }),
            "connect_timeout_ms: 0 is not from 1 to 4294967295");
  EXPECT_EQ(refusal([](O& o) { o.operation_timeout_ms = 0; }),
            "operation_timeout_ms: 0 is not from 1 to 4294967295");
  EXPECT_EQ(refusal([](O& o) { o.busy_poll_us = 1'000'001; }),
            "busy_poll_us: 1000001 is not from 0 to 1000000");
  EXPECT_EQ(refusal([](O& o) { o.io_threads = 65; }), "io_threads: 65 is not from 0 to 64");
  EXPECT_EQ(refusal([](O& o) {
              o.io_threads = 2;
              o.transport = "memif:/run/natagg/memif.sock";
            }),
            "io_threads: 2 threads cannot share one device; transport udp has a socket for each");
  EXPECT_EQ(refusal([](O& o) { o.heartbeat_ms = 0; }),
            "heartbeat_ms: 0 is not from 1 to 4294967295");
  EXPECT_EQ(refusal([](O& o) { o.aggregator_timeout_ms = 100; }),
            "aggregator_timeout_ms: 100 is not more than heartbeat_ms, 100");
  EXPECT_NE(refusal([](O& o) { o.transmit_loss = 1.5; }).find("transmit_loss: 1.5"),
            std::string::npos);
  EXPECT_NE(refusal([](O& o) { o.receive_loss = std::nan(""); }).find("receive_loss: nan"),
            std::string::npos);
  EXPECT_NE(refusal([](O& o) { o.receive_buffer_bytes = 1ULL << 40; }).find("receive_buffer"),
            std::string::npos);
  EXPECT_EQ(refusal([](O& o) { o.straggler_deadline_ms = 65'536; }),
            "straggler_deadline_ms: 65536 is not from 0 to 65535");
  EXPECT_EQ(refusal([](O& o) {
              o.world = 513;
              o.straggler_deadline_ms = 1;
            }),
            "straggler_deadline_ms: partial results are for at most 512 ranks, world is 513");
  EXPECT_EQ(refusal([](O& o) { o.quorum = o.world + 1; }).find("quorum: "), 0U);
  EXPECT_NE(refusal([](O& o) { o.aggregators = nullptr; }).find("aggregators: "),
            std::string::npos);
  EXPECT_NE(refusal([](O& o) {
              o.key_file = "/no/such/file";
            }).find("key_file: key file /no/such/file cannot be opened: open(): No such file"),
            std::string::npos);
  EXPECT_NE(refusal([](O& o) { o.local = "no such interface at all"; }).find("local: "),
            std::string::npos);
}

TEST(Options, TransportIsUdpTheSocketOfAMemifOrADevice) {
  using O = natagg_options;
  for (const char* good : {"", "udp", "memif:/x", "memif:/run/natagg/memif.sock,id=7",
                           "ethdev:net_af_packet0,iface=eth1", "ethdev:0000:81:00.0"}) {
    EXPECT_EQ(refusal([&](O& o) { o.transport = good; }), "accepted") << good;
  }
  EXPECT_EQ(refusal([](O& o) { o.transport = "tcp"; }),
            "transport: \"tcp\" is neither udp, memif:PATH[,id=N] nor ethdev:DEVICE");
  EXPECT_EQ(refusal([](O& o) { o.transport = "ethdev:"; }),
            "transport: \"ethdev:\" names no device, such as ethdev:net_af_packet0,iface=eth1");
  EXPECT_EQ(refusal([](O& o) { o.transport = "memif:"; }),
            "transport: \"memif:\" names no socket, such as memif:/run/natagg/memif.sock,id=0");
  EXPECT_EQ(refusal([](O& o) { o.transport = "memif:/x,id=z"; }),
            "transport: \"memif:/x,id=z\" has no number for an id");
  EXPECT_EQ(refusal([](O& o) {
              o.transport = "memif:/x";
              o.local = "eth0";
            }),
            "local: \"eth0\" is no IPv4 address, and memif has no interface");
  EXPECT_EQ(refusal([](O& o) {
              o.transport = "memif:/x";
              o.receive_buffer_bytes = 4096;
            }),
            "receive_buffer_bytes: 4096 is for a socket, and memif has none");
  EXPECT_EQ(refusal([](O& o) {
              o.transport = "ethdev:net_ring0";
              o.local = "eth0";
            }),
            "local: \"eth0\" is no IPv4 address, and ethdev has no interface");
  EXPECT_EQ(refusal([](O& o) { o.eal = "-m 64"; }),
            "eal: \"-m 64\" is for DPDK, which only ethdev uses");
}

TEST(OptionEffects, AMemifThatNobodyServesIsNamedInTheError) {
  try {
    const Worker worker({.aggregators = "10.0.0.1",
                         .connect_timeout = milliseconds(50),
                         .transport = "memif:/no/such/socket"});
    FAIL() << "connected";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), NATAGG_TIMED_OUT);
    EXPECT_NE(std::string_view(error.what()).find("No such file or directory"),
              std::string_view::npos)
        << error.what();
  }
}

TEST(Options, HaveTheSameDefaultsInBothLanguages) {
  const Options cpp;
  natagg_options c{};
  ASSERT_EQ(natagg_options_init(&c, sizeof c), NATAGG_OK);
  EXPECT_EQ(c.job, cpp.job);
  EXPECT_EQ(c.rank, cpp.rank);
  EXPECT_EQ(c.world, cpp.world);
  EXPECT_EQ(c.seed, cpp.seed);
  EXPECT_EQ(c.rounding, static_cast<natagg_rounding>(cpp.rounding));
  EXPECT_EQ(c.shift, cpp.shift);
  EXPECT_EQ(c.values_per_packet, cpp.values_per_packet);
  EXPECT_EQ(c.window, cpp.window);
  EXPECT_EQ(c.connect_timeout_ms, cpp.connect_timeout.count());
  EXPECT_EQ(c.operation_timeout_ms, cpp.operation_timeout.count());
  EXPECT_EQ(c.heartbeat_ms, cpp.heartbeat.count());
  EXPECT_EQ(c.aggregator_timeout_ms, cpp.aggregator_timeout.count());
  EXPECT_EQ(c.local, nullptr);
  EXPECT_EQ(c.receive_buffer_bytes, cpp.receive_buffer_bytes);
  EXPECT_EQ(c.multicast != 0, cpp.multicast);
  EXPECT_EQ(c.transmit_loss, cpp.transmit_loss);
  EXPECT_EQ(c.receive_loss, cpp.receive_loss);
  EXPECT_EQ(c.loss_seed, cpp.loss_seed);
  EXPECT_EQ(c.key_file, nullptr);
  EXPECT_EQ(cpp.key_file, "");
  EXPECT_EQ(c.transport, nullptr);
  EXPECT_EQ(cpp.transport, "");
  EXPECT_EQ(c.eal, nullptr);
  EXPECT_EQ(cpp.eal, "");
  EXPECT_EQ(c.busy_poll_us, cpp.busy_poll.count());
  EXPECT_EQ(c.io_threads, cpp.io_threads);
  EXPECT_EQ(c.gso != 0, cpp.gso);
  EXPECT_EQ(c.record, nullptr);
  EXPECT_EQ(cpp.record, "");
  EXPECT_EQ(c.straggler_deadline_ms, cpp.straggler_deadline.count());
  EXPECT_EQ(c.straggler_deadline_ms, 0U);
  EXPECT_EQ(c.quorum, cpp.quorum);
}

TEST(Options, OfAnOlderProgramKeepTheNewMembersAtTheirDefaults) {
  const LoopbackAggregator aggregator(1);
  const std::string address = aggregator.address();
  natagg_options options{};
  ASSERT_EQ(natagg_options_init(&options, offsetof(natagg_options, job)), NATAGG_OK);
  options.aggregators = address.c_str();
  options.window = 3;  // beyond its size: must not be read
  natagg_worker* worker = nullptr;
  std::array<char, 256> error{};
  EXPECT_EQ(natagg_connect(&options, &worker, error.data(), error.size()), NATAGG_OK)
      << error.data();
  natagg_close(worker);
}

// --- Effects ---

/// What the two ranks of a job see after one all-reduce under `options`.
struct Seen {
  std::vector<std::uint64_t> bits;
  natagg_statistics statistics;
};

Seen reduce_between_two(Options options, aggregator::ShardConfig config = {}) {
  const LoopbackAggregator aggregator(1, config);
  options.aggregators = aggregator.address();
  const auto inputs = gradients(2, 30'000);
  std::vector<std::vector<float>> results(2, std::vector<float>(30'000));
  std::vector<Worker> workers = connect_all(2, options);
  on_all_ranks(2,
               [&](std::uint32_t rank) { workers[rank].allreduce(inputs[rank], results[rank]); });
  EXPECT_EQ(bits_of(results[0]), bits_of(results[1]));
  const reference::Terms terms{.seed = options.seed,
                               .operation = 0,
                               .rounding = static_cast<proto::Rounding>(options.rounding),
                               .shift = options.shift,
                               .reduction = proto::Reduction::kSum};
  EXPECT_EQ(bits_of(results[0]), bits_of(reference::all_reduce(inputs, terms)));
  return {.bits = bits_of(results[0]), .statistics = workers[0].statistics()};
}

TEST(OptionEffects, SeedRoundingAndShiftChangeTheBits) {
  const auto bits = reduce_between_two({}).bits;
  EXPECT_NE(reduce_between_two({.seed = 1}).bits, bits);
  EXPECT_NE(reduce_between_two({.rounding = Rounding::kNearest}).bits, bits);
  EXPECT_NE(reduce_between_two({.shift = 20}).bits, bits);  // small values fall below the window
}

TEST(OptionEffects, ValuesPerPacketChangesPacketsButNoBits) {
  const Seen small = reduce_between_two({.values_per_packet = 128});
  const Seen large = reduce_between_two({.values_per_packet = 8832});
  EXPECT_EQ(small.bits, large.bits);
  EXPECT_EQ(small.statistics.values_per_packet, 128U);
  EXPECT_EQ(large.statistics.values_per_packet, 8832U);
  EXPECT_EQ(small.statistics.result_packets, 235U);
  EXPECT_EQ(large.statistics.result_packets, 4U);
}

TEST(OptionEffects, WindowIsAgreed) {
  EXPECT_EQ(reduce_between_two({.window = 16}).statistics.window, 16U);
  EXPECT_EQ(reduce_between_two({.window = 64}).statistics.window, 64U);
}

TEST(OptionEffects, ReceiveBufferLimitsPacketsInFlight) {
  const Seen small = reduce_between_two({.values_per_packet = 128, .receive_buffer_bytes = 8192});
  const Seen large = reduce_between_two({.values_per_packet = 128, .receive_buffer_bytes = 80'000});
  EXPECT_EQ(small.statistics.receive_buffer_bytes, 2U * 8192);
  EXPECT_EQ(large.statistics.receive_buffer_bytes, 2U * 80'000);
  EXPECT_LT(small.statistics.packets_in_flight, large.statistics.packets_in_flight);
  EXPECT_EQ(small.statistics.kernel_drops, 0U);
  EXPECT_EQ(large.statistics.kernel_drops, 0U);
}

TEST(OptionEffects, LossesAreInjectedAndRecovered) {
  const auto bits = reduce_between_two({}).bits;
  const Seen sending =
      reduce_between_two({.values_per_packet = 128, .transmit_loss = 0.1, .loss_seed = 3});
  const Seen receiving =
      reduce_between_two({.values_per_packet = 128, .receive_loss = 0.1, .loss_seed = 3});
  EXPECT_EQ(sending.bits, bits);
  EXPECT_EQ(receiving.bits, bits);
  EXPECT_GT(sending.statistics.injected_losses, 0U);
  EXPECT_GT(receiving.statistics.injected_losses, 0U);
  EXPECT_GT(sending.statistics.retransmissions, 0U);
  EXPECT_GT(receiving.statistics.retransmissions, 0U);
}

/// A key file of `job` while it exists.
class TemporaryKey {
 public:
  explicit TemporaryKey(char fill) : bytes_(32, fill) {
    path_ = ::testing::TempDir() + "natagg-key-" + std::to_string(::getpid()) + fill;
    std::ofstream(path_, std::ios::binary) << bytes_;
    ::chmod(path_.c_str(), 0600);
  }
  TemporaryKey(const TemporaryKey&) = delete;
  TemporaryKey& operator=(const TemporaryKey&) = delete;
  ~TemporaryKey() { ::unlink(path_.c_str()); }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] aggregator::ShardConfig shards(std::uint32_t job) const {
    aggregator::ShardConfig config;
    proto::JobKeys keys;
    keys.emplace(job, proto::JobKey(job, std::as_bytes(std::span(bytes_))));
    config.keys = std::make_shared<proto::JobKeys>(std::move(keys));
    config.entropy.fill(7);
    return config;
  }

 private:
  std::string bytes_;
  std::string path_;
};

TEST(OptionEffects, KeyFileAuthenticatesTheJobAndChangesNoBits) {
  const auto bits = reduce_between_two({}).bits;
  const TemporaryKey key('k');
  const Seen seen = reduce_between_two({.job = 5, .key_file = key.path()}, key.shards(5));
  EXPECT_EQ(seen.bits, bits);
  // A question that was asked again for want of time has two answers, of which one is taken.
  EXPECT_LE(seen.statistics.rejected_packets, 3U);
}

TEST(OptionEffects, AnotherKeyFileIsRefusedByName) {
  const TemporaryKey key('k');
  const TemporaryKey other('o');
  const LoopbackAggregator aggregator(1, key.shards(5));
  try {
    const Worker worker({.aggregators = aggregator.address(), .job = 5, .key_file = other.path()});
    FAIL() << "connected";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), NATAGG_REFUSED);
    EXPECT_EQ(std::string(error.what()), "key of job 5 refused by aggregator " +
                                             aggregator.address() +
                                             ": it has another one for this job");
  }
}

TEST(OptionEffects, MulticastCanBeTurnedOff) {
  aggregator::ShardConfig config;
  config.multicast_address = 0xEFC0'5B00;  // 239.192.91.0
  config.multicast_port = 47911;
  const Seen on = reduce_between_two({}, config);
  const Seen off = reduce_between_two({.multicast = false}, config);
  EXPECT_EQ(on.bits, off.bits);
  EXPECT_EQ(on.statistics.multicast_groups, 1U);
  EXPECT_EQ(on.statistics.multicast_results, on.statistics.result_packets);
  EXPECT_EQ(off.statistics.multicast_groups, 0U);
  EXPECT_EQ(off.statistics.multicast_results, 0U);
}

TEST(OptionEffects, SegmentationOffloadCanBeTurnedOffAndChangesNoBits) {
  const Seen on = reduce_between_two({});
  const Seen off = reduce_between_two({.gso = false});
  EXPECT_EQ(on.bits, off.bits);
  EXPECT_STREQ(natagg_gso_string(on.statistics.gso), "on");
  EXPECT_GE(on.statistics.gso_packets, 2U + 2U);  // the probes, and two chunks at least
  EXPECT_STREQ(natagg_gso_string(off.statistics.gso), "off");
  EXPECT_EQ(off.statistics.gso_packets, 0U);
}

TEST(OptionEffects, JobRankAndWorldDecideWhoMeetsWhom) {
  const LoopbackAggregator aggregator(1);
  const Options options{.aggregators = aggregator.address(),
                        .job = 3,
                        .world = 2,
                        .connect_timeout = milliseconds(300)};
  const auto connect = [&](std::uint32_t job, std::uint32_t rank) {
    Options own = options;
    own.job = job;
    own.rank = rank;
    return error_of([&] { const Worker worker(own); }).status();
  };
  std::array<natagg_status, 2> statuses{};
  on_all_ranks(2, [&](std::uint32_t i) { statuses[i] = connect(3, i); });
  EXPECT_EQ(statuses, (std::array{NATAGG_OK, NATAGG_OK}));
  on_all_ranks(2, [&](std::uint32_t i) { statuses[i] = connect(4 + i, i); });
  EXPECT_EQ(statuses, (std::array{NATAGG_TIMED_OUT, NATAGG_TIMED_OUT}));
}

TEST(OptionEffects, LocalBindsToAnAddressOrAnInterface) {
  const LoopbackAggregator aggregator(1);
  const auto connect = [&](const std::string& local) {
    return error_of(
        [&] { const Worker worker({.aggregators = aggregator.address(), .local = local}); });
  };
  EXPECT_EQ(connect("127.0.0.5").status(), NATAGG_OK);
  EXPECT_EQ(connect("lo").status(), NATAGG_OK);
  EXPECT_EQ(connect("192.0.2.1").status(), NATAGG_SYSTEM_ERROR);
  EXPECT_EQ(connect("none7").status(), NATAGG_SYSTEM_ERROR);
}

/// CPU time that this process has used.
milliseconds cpu_time() {
  timespec time{};
  EXPECT_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time), 0);
  return std::chrono::duration_cast<milliseconds>(std::chrono::seconds(time.tv_sec) +
                                                  std::chrono::nanoseconds(time.tv_nsec));
}

TEST(OptionEffects, BusyPollKeepsTheWorkerAwakeForSoLong) {
  const LoopbackAggregator aggregator(1);
  // The thread's CPU time after a packet, which it has in full only when it did not sleep.
  const auto polled = [&](milliseconds busy_poll) {
    const Worker worker({.aggregators = aggregator.address(),
                         .heartbeat = milliseconds(10'000),
                         .aggregator_timeout = milliseconds(20'000),
                         .busy_poll = busy_poll});
    const milliseconds before = cpu_time();
    std::this_thread::sleep_for(milliseconds(200));
    return cpu_time() - before;
  };
  EXPECT_LT(polled(milliseconds(0)), milliseconds(50));
  const auto start = std::chrono::steady_clock::now();
  while (polled(milliseconds(500)) < milliseconds(100)) {
    ASSERT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  }
}

TEST(OptionEffects, HeartbeatSetsHowOftenAnIdleWorkerSpeaks) {
  const LoopbackAggregator aggregator(1);
  const auto heartbeats_in = [&](milliseconds heartbeat, milliseconds time) {
    const Worker worker({.aggregators = aggregator.address(),
                         .heartbeat = heartbeat,
                         .aggregator_timeout = milliseconds(5000)});
    const std::uint64_t before = aggregator.received(proto::Type::kHeartbeat);
    std::this_thread::sleep_for(time);
    return aggregator.received(proto::Type::kHeartbeat) - before;
  };
  // Never more often than the interval says; however slow the machine, some, or it would be lost.
  EXPECT_LE(heartbeats_in(milliseconds(400), milliseconds(600)), 3U);
  const auto start = std::chrono::steady_clock::now();
  while (heartbeats_in(milliseconds(10), milliseconds(600)) < 10U) {
    ASSERT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  }
}

}  // namespace
}  // namespace natagg::testing
