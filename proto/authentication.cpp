// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "proto/authentication.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace natagg::proto {
namespace {

/// What the library refuses is memory, or an algorithm that a policy of the host forbids.
void check(bool done, const char* call) {
  if (!done) throw std::runtime_error(std::string(call) + " of libcrypto failed");
}

template <auto kFree>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using MacContext = std::unique_ptr<EVP_MAC_CTX, Freed<EVP_MAC_CTX_free>>;
using KdfContext = std::unique_ptr<EVP_KDF_CTX, Freed<EVP_KDF_CTX_free>>;

char kSha256[] = "SHA256";

MacContext make_hmac() {
  const std::unique_ptr<EVP_MAC, Freed<EVP_MAC_free>> algorithm(
      EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  check(algorithm != nullptr, "EVP_MAC_fetch(HMAC)");
  MacContext context(EVP_MAC_CTX_new(algorithm.get()));
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, kSha256, 0),
      OSSL_PARAM_construct_end()};
  check(context != nullptr && EVP_MAC_CTX_set_params(context.get(), parameters) == 1,
        "EVP_MAC_CTX_set_params(SHA256)");
  return context;
}

Secret hkdf(int mode, std::span<const std::byte> key, const char* extra,
            std::span<const std::byte> value) {
  const std::unique_ptr<EVP_KDF, Freed<EVP_KDF_free>> algorithm(
      EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  check(algorithm != nullptr, "EVP_KDF_fetch(HKDF)");
  const KdfContext context(EVP_KDF_CTX_new(algorithm.get()));
  check(context != nullptr, "EVP_KDF_CTX_new()");
  const auto bytes = [](std::span<const std::byte> from) {
    return const_cast<std::byte*>(from.data());  // the library only reads them
  };
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, kSha256, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, bytes(key), key.size()),
      OSSL_PARAM_construct_octet_string(extra, bytes(value), value.size()),
      OSSL_PARAM_construct_end()};
  Secret out;
  check(EVP_KDF_derive(context.get(), out.data(), out.size(), parameters) == 1, "EVP_KDF_derive()");
  return out;
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// A purpose and what is particular to it; each purpose has a fixed length of the rest, so that no
/// two infos are equal by chance.
class Info {
 public:
  explicit Info(std::string_view purpose) { add(as_bytes(purpose)); }
  template <typename T>
  Info& operator<<(const T& value) {
    static_assert(alignof(T) == 1);
    add(std::as_bytes(std::span(&value, 1)));
    return *this;
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return std::span(bytes_).first(size_); }

 private:
  void add(std::span<const std::byte> bytes) {
    check(bytes.size() <= bytes_.size() - size_, "Info::add()");
    std::memcpy(bytes_.data() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  std::array<std::byte, 64> bytes_{};
  std::size_t size_ = 0;
};

EVP_CIPHER_CTX* cipher(void* context) {
  return static_cast<EVP_CIPHER_CTX*>(context);
}

EVP_MAC_CTX* hmac_context(void* context) {
  return static_cast<EVP_MAC_CTX*>(context);
}

}  // namespace

void Hmac::Free::operator()(void* context) const {
  EVP_MAC_CTX_free(hmac_context(context));
}

Hmac::Hmac() : context_(make_hmac().release()) {}

Secret Hmac::operator()(const Secret& key, Parts parts) const {
  EVP_MAC_CTX* context = hmac_context(context_.get());
  bool done = EVP_MAC_init(context, key.data(), key.size(), nullptr) == 1;
  for (const std::span<const std::byte> part : parts) {
    done = done && EVP_MAC_update(context, reinterpret_cast<const unsigned char*>(part.data()),
                                  part.size()) == 1;
  }
  Secret out;
  std::size_t length = 0;
  done = done && EVP_MAC_final(context, out.data(), &length, out.size()) == 1;
  check(done && length == out.size(), "EVP_MAC_final(HMAC)");
  return out;
}

Mac Hmac::handshake(const Secret& key, Parts parts, std::uint32_t counter) const {
  const Be32 end{counter};
  std::array<std::span<const std::byte>, 5> all;
  check(parts.size() < all.size(), "Hmac::handshake()");
  std::copy(parts.begin(), parts.end(), all.begin());
  all[parts.size()] = std::as_bytes(std::span(&end, 1));
  const Secret whole = (*this)(key, Parts(all).first(parts.size() + 1));
  Mac mac;
  std::memcpy(mac.data(), whole.data(), mac.size());
  return mac;
}

bool Hmac::proves(const Secret& key, std::span<const std::byte> datagram) const {
  const Trailer trailer = read_trailer(datagram);
  const std::span<const std::byte> rest = datagram.first(datagram.size() - sizeof(Trailer));
  return equal(handshake(key, {&rest, 1}, trailer.counter.value()), trailer.mac);
}

bool equal(const Mac& a, const Mac& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Secret hkdf_extract(std::span<const std::byte> salt, std::span<const std::byte> key) {
  return hkdf(EVP_KDF_HKDF_MODE_EXTRACT_ONLY, key, OSSL_KDF_PARAM_SALT, salt);
}

Secret hkdf_expand(const Secret& key, std::span<const std::byte> info) {
  return hkdf(EVP_KDF_HKDF_MODE_EXPAND_ONLY, std::as_bytes(std::span(key)), OSSL_KDF_PARAM_INFO,
              info);
}

JobKey::JobKey(std::uint32_t job, std::span<const std::byte> key) : job_(job) {
  if (key.size() < kMinKeyBytes) {
    throw std::invalid_argument("a key has at least " + std::to_string(kMinKeyBytes) +
                                " bytes, not " + std::to_string(key.size()));
  }
  root_ = hkdf_extract(as_bytes("natagg 1"), key);
  from_worker_ = hkdf_expand(root_, (Info("handshake of worker") << Be32{job}).bytes());
  from_aggregator_ = hkdf_expand(root_, (Info("handshake of aggregator") << Be32{job}).bytes());
}

JobKey::~JobKey() {
  OPENSSL_cleanse(root_.data(), root_.size());
  OPENSSL_cleanse(from_worker_.data(), from_worker_.size());
  OPENSSL_cleanse(from_aggregator_.data(), from_aggregator_.size());
}

Secret JobKey::aggregator_session(std::uint32_t epoch, const Nonce& session) const {
  return hkdf_expand(
      root_, (Info("session of aggregator") << Be32{job_} << Be32{epoch} << session).bytes());
}

Secret JobKey::worker_session(std::uint32_t epoch, const Nonce& session, std::uint16_t rank,
                              const Nonce& worker) const {
  return hkdf_expand(root_, (Info("session of worker")
                             << Be32{job_} << Be32{epoch} << session << Be16{rank} << worker)
                                .bytes());
}

void Gmac::Free::operator()(void* context) const {
  EVP_CIPHER_CTX_free(cipher(context));
}

Gmac::Gmac(const Secret& key) : context_(EVP_CIPHER_CTX_new()) {
  check(context_ != nullptr && EVP_EncryptInit_ex(cipher(context_.get()), EVP_aes_256_gcm(),
                                                  nullptr, key.data(), nullptr) == 1,
        "EVP_EncryptInit_ex(AES-256-GCM)");
}

GmacNonce gmac_nonce(std::uint64_t counter) {
  GmacNonce nonce{};
  const Be64 low{counter};
  std::memcpy(nonce.data() + 4, &low, sizeof(low));
  return nonce;
}

Mac Gmac::operator()(const GmacNonce& nonce, Parts parts) const {
  EVP_CIPHER_CTX* context = cipher(context_.get());
  int length = 0;
  bool done = EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) == 1;
  for (const std::span<const std::byte> part : parts) {
    if (part.empty()) continue;
    done = done && EVP_EncryptUpdate(context, nullptr, &length,
                                     reinterpret_cast<const unsigned char*>(part.data()),
                                     static_cast<int>(part.size())) == 1;
  }
  Mac mac{};
  unsigned char none = 0;
  done = done && EVP_EncryptFinal_ex(context, &none, &length) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, mac.size(), mac.data()) == 1;
  // With a key in place the library has no reason to refuse. Were it to, a MAC of zeros must
  // neither be sent nor be taken for a computed one.
  check(done, "EVP_EncryptFinal_ex(AES-256-GCM)");
  return mac;
}

Opener::Verdict Opener::open(std::span<const std::byte> datagram) {
  const Trailer trailer = read_trailer(datagram);
  const std::optional<std::uint64_t> counter = window_.candidate(trailer.counter.value());
  if (!counter) return Verdict::kReplayed;
  const std::span<const std::byte> rest = datagram.first(datagram.size() - sizeof(Trailer));
  if (!equal(gmac_(gmac_nonce(*counter), {&rest, 1}), trailer.mac)) return Verdict::kForged;
  window_.accept(*counter);
  return Verdict::kGood;
}

Trailer read_trailer(std::span<const std::byte> datagram) {
  Trailer trailer;
  std::memcpy(&trailer, datagram.last(sizeof(Trailer)).data(), sizeof(Trailer));
  return trailer;
}

Proof read_proof(std::span<const std::byte> datagram) {
  Proof proof;
  std::memcpy(&proof, datagram.last(sizeof(Proof) + sizeof(Trailer)).data(), sizeof(Proof));
  return proof;
}

std::span<const std::byte> zeros(std::size_t length) {
  static constexpr std::array<std::byte, 9216> kZeros{};
  return std::span(kZeros).first(length);
}

}  // namespace natagg::proto
