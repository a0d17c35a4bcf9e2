// SPDX-License-Identifier: Apache-2.0
// The seam for encryption (docs/protocol/9-pm.md, "Tag and keys") filled as a fabric would fill it:
// with OpenSSL's ciphers.
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "transport/pm/seal.h"
#include "transport/pm/sim/cluster.h"

namespace sekisho::pm {
namespace {

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

// An AEAD of OpenSSL's.  Notes every key with every nonce, of which none may be used twice.
class OpenSslCipher final : public Cipher {
 public:
  OpenSslCipher(const EVP_CIPHER* kind, const JobKey& job) : kind_(kind), job_(job) {}

  void Seal(const SipKey& session, std::uint64_t nonce, Bytes additional, MutableBytes text,
            std::span<std::uint8_t, kCipherTagSize> tag) override {
    EXPECT_TRUE(sealed_.insert({session, nonce}).second) << "packet " << nonce << " twice";
    const Context context = Begin(session, nonce, additional, true);
    int size = 0;
    EXPECT_EQ(EVP_EncryptUpdate(context.get(), text.data(), &size, text.data(),
                                static_cast<int>(text.size())),
              1);
    EXPECT_EQ(EVP_EncryptFinal_ex(context.get(), text.data() + size, &size), 1);
    EXPECT_EQ(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG,
                                  static_cast<int>(tag.size()), tag.data()),
              1);
  }

  bool Open(const SipKey& session, std::uint64_t nonce, Bytes additional, MutableBytes text,
            std::span<const std::uint8_t, kCipherTagSize> tag) override {
    const Context context = Begin(session, nonce, additional, false);
    int size = 0;
    (void)EVP_DecryptUpdate(context.get(), text.data(), &size, text.data(),
                            static_cast<int>(text.size()));
    (void)EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, static_cast<int>(tag.size()),
                              const_cast<std::uint8_t*>(tag.data()));
    return EVP_DecryptFinal_ex(context.get(), text.data() + size, &size) == 1;
  }

  std::size_t sealed() const { return sealed_.size(); }

 private:
  // 256 bits of the whole job key, for one direction of one session.
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> KeyOf(const SipKey& session) const {
    std::array<std::uint8_t, EVP_MAX_MD_SIZE> key{};
    unsigned size = 0;
    HMAC(EVP_sha256(), job_.data(), static_cast<int>(job_.size()),
         reinterpret_cast<const std::uint8_t*>(session.data()), sizeof session, key.data(), &size);
    return key;
  }

  Context Begin(const SipKey& session, std::uint64_t nonce, Bytes additional, bool seal) const {
    Context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
    std::array<std::uint8_t, 12> number{};
    for (int i = 0; i < 8; ++i) {
      number[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(nonce >> 8 * i);
    }
    EVP_CipherInit_ex(context.get(), kind_, nullptr, KeyOf(session).data(), number.data(), seal);
    int size = 0;
    EVP_CipherUpdate(context.get(), nullptr, &size, additional.data(),
                     static_cast<int>(additional.size()));
    return context;
  }

  const EVP_CIPHER* kind_;
  JobKey job_;
  std::set<std::pair<SipKey, std::uint64_t>> sealed_;
};

constexpr std::string_view kSecret = "the energy of the ground state is -76.4";

class CipherTest : public ::testing::TestWithParam<const char*> {
 protected:
  CipherTest() {
    for (sim::Link& link : cluster_.network().links()) link.loss = 0.05;
    cluster_.on_datagram = [this](std::uint32_t, std::uint32_t, Bytes datagram) {
      const std::string_view text(reinterpret_cast<const char*>(datagram.data()), datagram.size());
      shown_ = shown_ || text.find(kSecret.substr(0, 12)) != text.npos;
      return true;
    };
    cluster_.on_turn = [this](std::uint32_t node) { Read(node); };
  }

  std::unique_ptr<OpenSslCipher> Make() const {
    return std::make_unique<OpenSslCipher>(EVP_get_cipherbyname(GetParam()),
                                           cluster_[0].config().key);
  }

  void Read(std::uint32_t node) {
    Message message;
    while (cluster_[node].Receive(message)) {
      std::string text(message.bytes.first.begin(), message.bytes.first.end());
      text.append(message.bytes.second.begin(), message.bytes.second.end());
      ++received_[text];
      (void)cluster_[node].Release(message.source, message.channel, cluster_.now());
    }
  }

  // Of several sizes, up to some packets each.
  std::string Text(int number) const {
    std::string text(static_cast<std::size_t>(number * 37 % 5000), '.');
    return std::string(kSecret) + std::to_string(number) + text;
  }

  void Exchange(int first, int end) {
    const auto send = [this](NodeId from, NodeId to, const std::string& text) {
      const Bytes bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
      ASSERT_TRUE(cluster_.Run(10 * kSecond, [&] {
        const bool sent = !cluster_[from].Send(to, 0, bytes, cluster_.now());
        cluster_.Pump(from);
        return sent;
      }));
    };
    for (int i = first; i < end; ++i) send(i % 2 == 0 ? 0 : 1, i % 2 == 0 ? 1 : 0, Text(i));
    ASSERT_TRUE(cluster_.Run(10 * kSecond,
                             [&] { return cluster_[0].Drained(1) && cluster_[1].Drained(0); }));
    for (int i = first; i < end; ++i) EXPECT_EQ(received_[Text(i)], 1) << i;
  }

  sim::Cluster cluster_{2};
  std::map<std::string, int> received_;
  bool shown_ = false;  // any of it, to who listens on the way
};

TEST_P(CipherTest, NothingThatIsSaidIsShownAndAllOfItArrives) {
  const auto cipher = Make();
  for (std::uint32_t node : {0, 1}) cluster_.Encrypt(node, cipher.get());

  Exchange(0, 300);
  EXPECT_FALSE(shown_);
  EXPECT_GT(cluster_[0].counters().retransmitted + cluster_[1].counters().retransmitted, 0u);

  cluster_.Restart(1);
  cluster_.SendText(1, 0, 0, 10);  // what is sent to the dead one before dies with it
  ASSERT_TRUE(cluster_.Run(10 * kSecond, [&] { return received_.contains(std::string(10, 'x')); }));
  Exchange(300, 400);
  EXPECT_FALSE(shown_);
  EXPECT_GT(cipher->sealed(), 400u);
}

TEST_P(CipherTest, WithoutOneEverythingIsShown) {
  Exchange(0, 10);
  EXPECT_TRUE(shown_);
}

TEST_P(CipherTest, WhatWasChangedOnTheWayIsDropped) {
  const auto cipher = Make();
  for (std::uint32_t node : {0, 1}) cluster_.Encrypt(node, cipher.get());
  for (sim::Link& link : cluster_.network().links()) link.corrupt = 0.1;

  Exchange(0, 100);

  EXPECT_GT(cluster_[0].counters().bad_tag + cluster_[1].counters().bad_tag, 0u);
  EXPECT_EQ(received_.size(), 100u);
}

// A job is encrypted or not: who does not know that hears nothing, and says nothing that counts.
TEST_P(CipherTest, OneWithACipherDoesNotTalkToOneWithout) {
  const auto cipher = Make();
  cluster_.Encrypt(0, cipher.get());
  cluster_.SendText(1, 0, 0, 100);
  cluster_.SendText(0, 1, 0, 100);

  cluster_.Run(kSecond);

  EXPECT_TRUE(received_.empty());
  EXPECT_GT(cluster_[0].counters().bad_tag, 0u);
  EXPECT_GT(cluster_[1].counters().bad_tag, 0u);
}

INSTANTIATE_TEST_SUITE_P(OpenSsl, CipherTest, ::testing::Values("ChaCha20-Poly1305", "AES-256-GCM"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace sekisho::pm
