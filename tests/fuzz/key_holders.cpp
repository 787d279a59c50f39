// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "key_holders.hpp"

#include "input.hpp"

namespace natagg::fuzz {

using proto::Header;
using proto::Type;
using worker::Guard;

namespace {

constexpr proto::Endpoint kShard{0x0A00'0001, 4790};

worker::StreamConfig config_of(std::uint32_t job, std::uint16_t rank, std::uint8_t life,
                               bool right) {
  worker::StreamConfig config;
  config.job = job;
  config.rank = rank;
  config.key = std::make_shared<proto::JobKey>(job_key(job, right));
  config.entropy = entropy(life);
  config.entropy[0] = static_cast<std::uint8_t>(rank);
  return config;
}

bool asks(const Header& header) {
  return header.type == Type::kHello || header.type == Type::kJoin;
}

}  // namespace

KeyHolders::Holder::Holder(std::uint32_t job, std::uint16_t rank, std::uint8_t life, bool right)
    : config(config_of(job, rank, life, right)), guard(config) {}

KeyHolders::Holder& KeyHolders::find_holder(std::uint32_t job, std::uint16_t rank) {
  std::unique_ptr<Holder>& holder = holders_[{job, rank}];
  if (!holder) holder = std::make_unique<Holder>(job, rank, ++lives_, true);
  return *holder;
}

bool KeyHolders::seal(Datagram& datagram, Holder& holder) {
  if (datagram.size() < sizeof(Header)) return false;
  // A worker's are as long as the longest values, which leaves room for proof and trailer.
  const bool padded = datagram.size() >= proto::datagram_size(proto::kMinValues);
  if (asks(proto::read_header(datagram)) && !padded) return false;
  worker::Outgoing out{.to = kShard, .datagram = datagram};
  if (holder.guard.seal({&out, 1}) == 0) return false;
  datagram = Datagram(out.datagram.begin(), out.datagram.end());
  return true;
}

bool KeyHolders::seal(Datagram& datagram, std::uint32_t job, std::uint16_t rank,
                      const proto::Endpoint& by) {
  if (!seal(datagram, find_holder(job, rank))) return false;
  // What names another job or rank, or no instance, has been sealed with a key that does not fit.
  const Header header = proto::read_header(datagram);
  const bool fits =
      asks(header) ? proto::instance_of(header, datagram) != 0 : header.rank.value() == rank;
  if (header.job.value() == job && fits) ledger_.add(datagram, by);
  return true;
}

bool KeyHolders::seal_wrongly(Datagram& datagram, std::uint32_t job) {
  Holder holder(job, 0, 0, false);
  return seal(datagram, holder);
}

void KeyHolders::renew(std::uint32_t job, std::uint16_t rank, std::uint16_t place) {
  find_holder(job, rank).guard.renew(kShard, place);
}

void KeyHolders::restart(std::uint32_t job, std::uint16_t rank) {
  holders_[{job, rank}].reset();
}

void KeyHolders::receive(std::span<const std::byte> datagram, std::uint16_t rank) {
  const std::uint32_t job = proto::read_header(datagram).job.value();
  const auto found = holders_.find({job, rank});
  if (found == holders_.end() || !found->second) return;
  Guard& guard = found->second->guard;
  const auto admits = [&](std::span<const std::byte> bytes) {
    return guard.judge(proto::read_header(bytes), bytes, kShard) == Guard::Verdict::kAdmitted;
  };
  // In the last field before proof and trailer, or in them: the fields by which it is found stay.
  Datagram altered(datagram.begin(), datagram.end());
  altered[altered.size() - 1 - sizeof(proto::Be32)] ^= std::byte{1};
  require(!admits(altered), "a worker does not take what was altered");
  if (!admits(datagram)) return;
  const Header header = proto::read_header(datagram);
  // One that answers what belongs to no session is believed as often as it comes.
  if (proto::aborts_unknown(header, datagram)) return;
  require(!admits(datagram), "a worker does not take anything twice");
}

}  // namespace natagg::fuzz
