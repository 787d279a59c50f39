// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-bench-authentication: what a MAC of one packet takes, on one core, by the construction in
// use and by those that were not chosen, beside copying and scanning the packet. docs/security.md
// has the table and the choice. Options are Google Benchmark's.
#include <benchmark/benchmark.h>
#include <openssl/evp.h>

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "proto/authentication.hpp"
#include "proto/kernels.hpp"

#if defined(NATAGG_HAVE_SODIUM)
#include <sodium.h>
#endif

namespace {

using namespace natagg;

/// A datagram of so many values, without its trailer: header and values as the aggregator has them.
class Datagram {
 public:
  explicit Datagram(const benchmark::State& state)
      : bytes_(sizeof(proto::Header) + static_cast<std::size_t>(state.range(0)), std::byte{20}),
        parts_{std::span<const std::byte>(bytes_).first(sizeof(proto::Header)),
               std::span<const std::byte>(bytes_).subspan(sizeof(proto::Header))} {}

  [[nodiscard]] proto::Parts parts() const { return parts_; }
  [[nodiscard]] const unsigned char* data() const {
    return reinterpret_cast<const unsigned char*>(bytes_.data());
  }
  [[nodiscard]] const std::uint8_t* values() const { return data() + sizeof(proto::Header); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
  std::array<std::span<const std::byte>, 2> parts_;
};

void finish(benchmark::State& state, const Datagram& datagram) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(datagram.size()));
}

/// In use, as a sender calls it.
void seal(benchmark::State& state) {
  const Datagram datagram(state);
  proto::Sealer sealer(proto::Secret{1});
  for (auto _ : state) benchmark::DoNotOptimize(sealer.seal(datagram.parts()));
  finish(state, datagram);
}

/// In use, as a receiver calls it: each datagram is new.
void open(benchmark::State& state) {
  const Datagram datagram(state);
  constexpr int kBatch = 64;
  proto::Sealer sealer(proto::Secret{1});
  proto::Opener opener(proto::Secret{1});
  std::vector<std::vector<std::byte>> batch(kBatch);
  int i = kBatch;
  for (auto _ : state) {
    if (i == kBatch) {
      state.PauseTiming();
      for (auto& sealed : batch) {
        const proto::Trailer trailer = sealer.seal(datagram.parts());
        sealed.resize(datagram.size() + sizeof(trailer));
        std::memcpy(sealed.data(), datagram.data(), datagram.size());
        std::memcpy(sealed.data() + datagram.size(), &trailer, sizeof(trailer));
      }
      i = 0;
      state.ResumeTiming();
    }
    if (opener.open(batch[static_cast<std::size_t>(i++)]) != proto::Opener::Verdict::kGood) {
      state.SkipWithError("a good datagram was not taken");
    }
  }
  finish(state, datagram);
}

/// In use, for handshake packets.
void hmac_sha256(benchmark::State& state) {
  const Datagram datagram(state);
  const proto::Hmac hmac;
  for (auto _ : state) benchmark::DoNotOptimize(hmac.handshake({1}, datagram.parts(), 1));
  finish(state, datagram);
}

void gmac(benchmark::State& state, const EVP_CIPHER* cipher) {
  const Datagram datagram(state);
  const std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)> context(EVP_CIPHER_CTX_new(),
                                                                           EVP_CIPHER_CTX_free);
  const proto::Secret key{1};
  EVP_EncryptInit_ex(context.get(), cipher, nullptr, key.data(), nullptr);
  std::uint64_t counter = 0;
  for (auto _ : state) {
    const proto::GmacNonce nonce = proto::gmac_nonce(++counter);
    proto::Mac mac{};
    int length = 0;
    EVP_EncryptInit_ex(context.get(), nullptr, nullptr, nullptr, nonce.data());
    EVP_EncryptUpdate(context.get(), nullptr, &length, datagram.data(),
                      static_cast<int>(datagram.size()));
    EVP_EncryptFinal_ex(context.get(), mac.data(), &length);
    EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, mac.size(), mac.data());
    benchmark::DoNotOptimize(mac);
  }
  finish(state, datagram);
}
void aes_128_gmac(benchmark::State& state) {
  gmac(state, EVP_aes_128_gcm());
}
void aes_256_gmac(benchmark::State& state) {
  gmac(state, EVP_aes_256_gcm());
}
void chacha20_poly1305(benchmark::State& state) {
  gmac(state, EVP_chacha20_poly1305());
}

#if defined(NATAGG_HAVE_SODIUM)
void keyed_blake2b(benchmark::State& state) {
  const Datagram datagram(state);
  const proto::Secret key{1};
  for (auto _ : state) {
    proto::Mac mac;
    crypto_generichash(mac.data(), mac.size(), datagram.data(), datagram.size(), key.data(),
                       key.size());
    benchmark::DoNotOptimize(mac);
  }
  finish(state, datagram);
}

void siphash_128(benchmark::State& state) {
  const Datagram datagram(state);
  const proto::Secret key{1};
  for (auto _ : state) {
    proto::Mac mac;
    crypto_shorthash_siphashx24(mac.data(), datagram.data(), datagram.size(), key.data());
    benchmark::DoNotOptimize(mac);
  }
  finish(state, datagram);
}
#endif

/// What a stream adds: the datagram is copied before it is sealed.
void copy(benchmark::State& state) {
  const Datagram datagram(state);
  std::vector<unsigned char> out(datagram.size());
  for (auto _ : state) {
    std::memcpy(out.data(), datagram.data(), datagram.size());
    benchmark::ClobberMemory();
  }
  finish(state, datagram);
}

/// The unit of an aggregator's work on each DATA: scanning and adding its values.
void scan_and_accumulate(benchmark::State& state) {
  const Datagram datagram(state);
  const Kernels& kernels = default_kernels();
  const auto values = static_cast<std::size_t>(state.range(0));
  std::vector<std::int64_t> sums(values);
  for (auto _ : state) {
    benchmark::DoNotOptimize(kernels.scan(datagram.values(), values));
    kernels.accumulate(datagram.values(), sums.data(), values);
    benchmark::ClobberMemory();
  }
  finish(state, datagram);
}

void packets(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("values")->Arg(1408)->Arg(8832);
}

BENCHMARK(seal)->Apply(packets);
BENCHMARK(open)->Apply(packets);
BENCHMARK(aes_256_gmac)->Apply(packets);
BENCHMARK(aes_128_gmac)->Apply(packets);
BENCHMARK(chacha20_poly1305)->Apply(packets);
#if defined(NATAGG_HAVE_SODIUM)
BENCHMARK(siphash_128)->Apply(packets);
BENCHMARK(keyed_blake2b)->Apply(packets);
#endif
BENCHMARK(hmac_sha256)->Apply(packets);
BENCHMARK(copy)->Apply(packets);
BENCHMARK(scan_and_accumulate)->Apply(packets);

}  // namespace

BENCHMARK_MAIN();
