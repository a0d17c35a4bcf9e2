// SPDX-License-Identifier: Apache-2.0
// A job whose nodes their launcher introduces to each other.
#include "transport/pm/pmi_job.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <atomic>
#include <new>

#include "transport/pm/errors.h"
#include "transport/pm/pmi_farewell.h"
#include "transport/pm/wire.h"

namespace sekisho::pm {
namespace {

constexpr std::size_t kSecretSize = 34;  // the key, and the context's number
constexpr char kCannot[] = "!";          // in place of an address

using Name = std::array<char, 32>;

Name KeyName(unsigned opening) {
  Name name;
  snprintf(name.data(), name.size(), "pm-%u-key", opening);
  return name;
}

Name NodeName(unsigned opening, int rank) {
  Name name;
  snprintf(name.data(), name.size(), "pm-%u-%d", opening, rank);
  return name;
}

int HexDigit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  return -1;
}

// Such an address means nothing without its interface's number at the other end, or is there for
// want of a better one.
bool IsOfTheLinkAlone(const sockaddr& address) {
  if (address.sa_family == AF_INET6) {
    return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
  return ntohl(v4.sin_addr.s_addr) >> 16 == 0xa9fe;  // 169.254.0.0/16
}

// How good an interface's address is, 0: not at all.
int RankOf(const ifaddrs& entry, const char* wanted) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return 0;
  const bool is_v4 = entry.ifa_addr->sa_family == AF_INET;
  if (!is_v4 && entry.ifa_addr->sa_family != AF_INET6) return 0;
  if (wanted != nullptr && strcmp(entry.ifa_name, wanted) != 0) return 0;
  if (IsOfTheLinkAlone(*entry.ifa_addr)) return 0;
  const bool is_loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  if (!is_loopback && (entry.ifa_flags & IFF_RUNNING) == 0) return 0;  // a bridge to nowhere
  return (is_loopback ? 1 : 3) + (is_v4 ? 1 : 0);
}

}  // namespace

std::error_code FindOwnAddress(const char* interface, Address& own) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {errno, std::generic_category()};
  int best = 0;
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    const int rank = RankOf(*entry, interface);
    if (rank <= best) continue;
    best = rank;
    own = AddressFrom(*entry->ifa_addr);
  }
  freeifaddrs(all);
  own.port = 0;
  return best > 0 ? std::error_code() : std::make_error_code(std::errc::no_such_device);
}

std::error_code PmiJob::Begin(JobFile& job, NodeId& node) {
  static std::atomic<unsigned> openings{0};
  if (const auto error = pmi_.Open()) return error;
  SayPmiFarewellAtEnd(pmi_.fd());
  opening_ = openings.fetch_add(1);
  const auto made = pmi_.rank() == 0 ? MakeKey() : std::error_code();
  if (const auto error = pmi_.Barrier()) return error;
  if (made) {
    Withdraw();
    return made;
  }
  node = static_cast<NodeId>(pmi_.rank());
  job.nodes = static_cast<std::uint16_t>(pmi_.size());
  job.addresses.reset(new (std::nothrow) Address[job.nodes]);
  const auto error = job.addresses ? TakeKey(job) : std::error_code(Error::kNoMemory);
  if (error) Withdraw();
  return error;
}

std::error_code PmiJob::MakeKey() {
  std::array<std::uint8_t, kSecretSize> secret;
  if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) {
    return std::make_error_code(std::errc::io_error);
  }
  std::array<char, 2 * kSecretSize + 1> text;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    snprintf(text.data() + 2 * i, 3, "%02x", secret[i]);
  }
  return pmi_.Put(KeyName(opening_).data(), text.data());
}

std::error_code PmiJob::TakeKey(JobFile& job) {
  std::array<char, 2 * kSecretSize + 1> text{};
  if (const auto error = pmi_.Get(KeyName(opening_).data(), text)) return error;
  std::array<std::uint8_t, kSecretSize> secret;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const int high = HexDigit(text[2 * i]), low = HexDigit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::make_error_code(std::errc::protocol_error);
    secret[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  memcpy(job.key.data(), secret.data(), job.key.size());
  job.context = static_cast<std::uint16_t>(secret[32] | secret[33] << 8);
  return {};
}

std::error_code PmiJob::Meet(const Address& own, JobFile& job) {
  const auto put = pmi_.Put(NodeName(opening_, pmi_.rank()).data(), FormatAddress(own).data());
  if (const auto error = pmi_.Barrier()) return error;
  if (put) return put;
  for (int rank = 0; rank < pmi_.size(); ++rank) {
    AddressText text;
    if (const auto error = pmi_.Get(NodeName(opening_, rank).data(), text)) return error;
    if (strcmp(text.data(), kCannot) == 0) {
      return std::make_error_code(std::errc::operation_canceled);
    }
    if (const auto error = ParseAddress(text.data(), job.addresses[rank])) return error;
    if (IsMapped(job.addresses[rank]) != IsMapped(own)) {
      return std::make_error_code(std::errc::address_family_not_supported);
    }
  }
  return {};
}

void PmiJob::Withdraw() {
  (void)pmi_.Put(NodeName(opening_, pmi_.rank()).data(), kCannot);
  (void)pmi_.Barrier();
}

}  // namespace sekisho::pm
