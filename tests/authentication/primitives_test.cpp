// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The constructions against published vectors, and the keys against a computation by other means
// (Python's hmac and hashlib).
#include <gtest/gtest.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "authentication/hex.hpp"
#include "proto/authentication.hpp"

namespace natagg::test {
namespace {

using proto::Gmac;
using proto::GmacNonce;
using proto::Nonce;
using proto::Opener;
using proto::ReplayWindow;
using proto::Sealer;
using proto::Secret;

std::size_t library_allocations = 0;

void* counted_malloc(std::size_t size, const char*, int) {
  ++library_allocations;
  return std::malloc(size);
}
void* counted_realloc(void* memory, std::size_t size, const char*, int) {
  ++library_allocations;
  return std::realloc(memory, size);
}
void plain_free(void* memory, const char*, int) {
  std::free(memory);
}
// Before main(), because libcrypto takes other functions only until its first allocation.
const int counting = CRYPTO_set_mem_functions(counted_malloc, counted_realloc, plain_free);

Secret counting_secret() {
  Secret secret;
  for (std::size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<std::uint8_t>(i);
  return secret;
}

Nonce nonce_from(std::uint8_t first) {
  Nonce nonce;
  for (std::size_t i = 0; i < nonce.size(); ++i) nonce[i] = static_cast<std::uint8_t>(first + i);
  return nonce;
}

std::string gmac_hex(const std::string& key, const std::string& nonce, const std::string& text) {
  const std::vector<std::byte> bytes = unhex(text);
  const std::span<const std::byte> part = bytes;
  return hex(Gmac(unhex_array<Secret>(key))(unhex_array<GmacNonce>(nonce), {&part, 1}));
}

TEST(Gmac, GivesThePublishedTags) {
  // The GCM validation vectors of NIST, gcmEncryptExtIV256: Keylen 256, IVlen 96, PTlen 0,
  // AADlen 128, Taglen 128.
  EXPECT_EQ(gmac_hex("78dc4e0aaf52d935c3c01eea57428f00ca1fd475f5da86a49c8dd73d68c8e223",
                     "d79cf22d504cc793c3fb6c8a", "b96baa8c1c75a671bfb2d08d06be5f36"),
            "3e5d486aa2e30b22e040b85723a06e76");
  // McGrew and Viega, The Galois/Counter Mode of Operation, test case 13.
  EXPECT_EQ(gmac_hex(std::string(64, '0'), std::string(24, '0'), ""),
            "530f8afbc74536b9a963b4f1c4cb738b");
  // IEEE 802.1AE, C.2.2: a frame of 70 bytes, GCM-AES-256, integrity alone.
  EXPECT_EQ(
      gmac_hex("e3c08a8f06c6e3ad95a70557b23f75483ce33021a9c72b7025666204c69c0b72",
               "12153524c0895e81b2c28465",
               "d609b1f056637a0d46df998d88e5222ab2c2846512153524c0895e8108000f101112131415161718"
               "191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f30313233340001"),
      "2f0bc5af409e06d609ea8b7d0fa5ea50");
}

TEST(Gmac, DoesNotDependOnHowTheBytesAreCut) {
  std::vector<std::byte> bytes(300);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  const std::span<const std::byte> whole = bytes;
  const Gmac gmac(counting_secret());
  const proto::Mac expected = gmac(proto::gmac_nonce(5), {&whole, 1});
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    const std::span<const std::byte> parts[] = {whole.first(cut), whole.subspan(cut)};
    ASSERT_EQ(gmac(proto::gmac_nonce(5), parts), expected) << cut;
  }
}

TEST(Hmac, GivesThePublishedTag) {
  // RFC 4231, test case 2; HMAC fills a short key up with zeros.
  Secret key{};
  std::memcpy(key.data(), "Jefe", 4);
  const std::string text = "what do ya want for nothing?";
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  EXPECT_EQ(hex(proto::Hmac()(key, {&part, 1})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Hmac, OfAHandshakeIsTheFirstHalfOverPartsAndCounter) {
  const std::string text = "abcdef";
  const std::span<const std::byte> all = std::as_bytes(std::span(text));
  const std::span<const std::byte> parts[] = {all.first(2), all.subspan(2)};
  EXPECT_EQ(hex(proto::Hmac().handshake(counting_secret(), parts, 9)),
            "d464b913d1c2b7b044e407fdc878d54a");
}

TEST(Hkdf, GivesThePublishedKeys) {
  // RFC 5869, A.1, the first 32 bytes.
  const Secret root = proto::hkdf_extract(unhex("000102030405060708090a0b0c"),
                                          unhex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"));
  EXPECT_EQ(hex(root), "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
  EXPECT_EQ(hex(proto::hkdf_expand(root, unhex("f0f1f2f3f4f5f6f7f8f9"))),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
}

TEST(JobKey, DerivesTheSpecifiedKeys) {
  const Secret secret = counting_secret();
  const proto::JobKey key(7, std::as_bytes(std::span(secret)));
  EXPECT_EQ(hex(key.handshake(proto::Side::kWorker)),
            "903f2477e02ba7465b9052cff3ac5c51d05178ed36ecf6c0a51c60c2f28040b3");
  EXPECT_EQ(hex(key.handshake(proto::Side::kAggregator)),
            "3961d9785bebd5b59b3f9eee7fded361c63a9c6510b2214a931e6f1cacc4b43a");
  EXPECT_EQ(hex(key.aggregator_session(0x0102'0304, nonce_from(0xA0))),
            "179640fb0c9644a902748053e50f8a8193a24d787cdc245ffd3e2785c13a85b5");
  EXPECT_EQ(hex(key.worker_session(0x0102'0304, nonce_from(0xA0), 3, nonce_from(0x50))),
            "887e7b5e8d72ad079bc32687632de4676a91502aecbd0b2a6e7e7586146576f2");
}

TEST(JobKey, IsRefusedWhenItIsShort) {
  const std::vector<std::byte> bytes(proto::kMinKeyBytes - 1);
  EXPECT_THROW(proto::JobKey(1, bytes), std::invalid_argument);
}

TEST(ReplayWindow, TakesEachCounterOnceInAnyOrderWithinItsSize) {
  ReplayWindow window;
  EXPECT_FALSE(window.candidate(0)) << "counters start at 1";
  for (const std::uint32_t counter : {1U, 5U, 3U, 1024U, 2U}) {
    ASSERT_EQ(window.candidate(counter), counter);
    window.accept(counter);
    EXPECT_FALSE(window.candidate(counter)) << counter;
  }
  EXPECT_EQ(window.candidate(4), 4);
  window.accept(1030);
  EXPECT_FALSE(window.candidate(4)) << "too old to tell";
  EXPECT_FALSE(window.candidate(6));
  EXPECT_EQ(window.candidate(7), 7);
}

TEST(ReplayWindow, FollowsTheCounterBeyond32Bits) {
  ReplayWindow window;
  std::uint64_t counter = 1;
  for (; counter < std::uint64_t{9} << 32; counter += 0x3FFF'FFFF) {
    const auto low = static_cast<std::uint32_t>(counter);
    ASSERT_EQ(window.candidate(low), counter);
    window.accept(counter);
    ASSERT_FALSE(window.candidate(low));
  }
  window.accept((std::uint64_t{9} << 32) + 2);
  EXPECT_EQ(window.candidate(0xFFFF'FFFF), (std::uint64_t{9} << 32) - 1) << "before the wrap";
  EXPECT_EQ(window.candidate(3), (std::uint64_t{9} << 32) + 3);
}

TEST(ReplayWindow, RemembersNothingOfAPlaceThatAnEarlierCounterHad) {
  ReplayWindow window;
  for (std::uint32_t counter = 1; counter <= 5 * ReplayWindow::kSize; counter += 2) {
    ASSERT_EQ(window.candidate(counter), counter);
    window.accept(counter);
    if (counter > 1) {
      ASSERT_EQ(window.candidate(counter - 1), counter - 1);
    }
  }
}

std::vector<std::byte> sealed(Sealer& sealer, std::vector<std::byte> datagram) {
  const std::span<const std::byte> part = datagram;
  const proto::Trailer trailer = sealer.seal({&part, 1});
  const auto bytes = std::as_bytes(std::span(&trailer, 1));
  datagram.insert(datagram.end(), bytes.begin(), bytes.end());
  return datagram;
}

TEST(Opener, TakesAPacketOnceAndNoneThatWasAltered) {
  Sealer sealer(counting_secret());
  Opener opener(counting_secret());
  const std::vector<std::byte> good = sealed(sealer, std::vector<std::byte>(100));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::vector<std::byte> altered = good;
    altered[bit / 8] ^= std::byte{1} << bit % 8;
    ASSERT_NE(opener.open(altered), Opener::Verdict::kGood) << bit;
  }
  EXPECT_EQ(opener.open(good), Opener::Verdict::kGood);
  EXPECT_EQ(opener.open(good), Opener::Verdict::kReplayed);
}

TEST(Opener, FollowsASealerAcross32Bits) {
  Sealer sealer(counting_secret(), 0x7FFF'FFFE);
  Opener opener(counting_secret());
  const std::vector<std::byte> first = sealed(sealer, {std::byte{1}});
  EXPECT_EQ(opener.open(first), Opener::Verdict::kGood);
  Sealer later(counting_secret(), 0xFFFF'FFFD);
  for (int i = 0; i < 6; ++i) {
    const std::vector<std::byte> next = sealed(later, {std::byte{2}});
    EXPECT_EQ(opener.open(next), Opener::Verdict::kGood) << i;
    EXPECT_EQ(opener.open(next), Opener::Verdict::kReplayed) << i;
  }
  EXPECT_NE(opener.open(first), Opener::Verdict::kGood);
}

TEST(Sealer, AndOpenerAllocateNothing) {
  Sealer sealer(counting_secret());
  ASSERT_EQ(counting, 1);
  Opener opener(counting_secret());
  std::vector<std::byte> datagram(1'472);
  const std::span<const std::byte> part = std::span(datagram).first(1'452);
  const std::size_t before = library_allocations;
  for (int i = 0; i < 100; ++i) {
    const proto::Trailer trailer = sealer.seal({&part, 1});
    std::memcpy(datagram.data() + part.size(), &trailer, sizeof(trailer));
    ASSERT_EQ(opener.open(datagram), Opener::Verdict::kGood);
  }
  EXPECT_EQ(library_allocations, before);
  EXPECT_GT(before, 0U) << "libcrypto's allocations are not seen";
}

TEST(Sealer, GivesTheSameBytesAnotherTrailerEachTime) {
  Sealer sealer(counting_secret());
  const auto first = sealed(sealer, {std::byte{1}});
  const auto second = sealed(sealer, {std::byte{1}});
  EXPECT_NE(first, second);
  EXPECT_EQ(proto::read_trailer(first).counter.value(), 1U);
  EXPECT_EQ(proto::read_trailer(second).counter.value(), 2U);
}

}  // namespace
}  // namespace natagg::test
