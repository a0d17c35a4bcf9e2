// SPDX-License-Identifier: Apache-2.0
// Datagrams as a pcapng file (draft-ietf-opsawg-pcapng), for Wireshark and its kin.  Pure: blocks
// are appended to a text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "transport/pm/trace_ring.h"

namespace sekisho::pm {

// Of our Decryption Secrets Blocks: lines of text, docs/protocol/9-pm.md, "Trace".
inline constexpr std::uint32_t kPmKeyLog = 0x504d4b4c;  // "PMKL"

class PcapngWriter {
 public:
  explicit PcapngWriter(std::string& out) : out_(out) {}

  void Section(std::string_view application);
  // The first has number 0, and so on.
  void Interface(std::string_view name, std::string_view description);
  void Secrets(std::uint32_t type, std::string_view text);
  // As an IP packet, from or to `own`.  `clock` is added to its time: to nanoseconds since 1970.
  void Datagram(std::uint32_t interface, const Address& own, Nanos clock,
                const TracedDatagram& datagram);
  void Statistics(std::uint32_t interface, Nanos now, std::uint64_t received, std::uint64_t lost);

 private:
  template <typename Body>
  void Block(std::uint32_t type, Body body);
  void Put(std::uint64_t value, int bytes);
  void Time(Nanos time);
  void Pad();
  void Option(std::uint16_t code, std::string_view value);
  void IpPacket(const Address& from, const Address& to, const TracedDatagram& datagram);

  std::string& out_;
};

}  // namespace sekisho::pm
