// SPDX-License-Identifier: Apache-2.0
// Datagrams as a pcapng file.
#include "transport/pm/pcapng.h"

#include <algorithm>

namespace sekisho::pm {
namespace {

constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a, kInterface = 1, kStatistics = 5, kPacket = 6,
                        kSecrets = 10;
constexpr std::uint16_t kLinkRaw = 101;  // an IP packet, whichever version its first bits say
constexpr std::uint16_t kEnd = 0, kComment = 1;
constexpr std::uint16_t kApplication = 4;                        // of a section
constexpr std::uint16_t kName = 2, kDescription = 3, kUnit = 9;  // of an interface
constexpr std::uint16_t kFlags = 2;                              // of a packet
constexpr std::uint16_t kReceived = 4, kDropped = 5;             // of statistics
constexpr std::size_t kUdpSize = 8, kIpv4Size = 20, kIpv6Size = 40;

std::string Number(std::uint64_t value, int bytes, bool big_endian) {
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    text += static_cast<char>(value >> 8 * (big_endian ? bytes - 1 - i : i));
  }
  return text;
}

std::string Big(std::uint64_t value, int bytes) { return Number(value, bytes, true); }

// RFC 1071.
std::uint16_t Checksum(std::string_view text) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    sum += i % 2 == 0 ? static_cast<std::uint32_t>(byte << 8) : byte;
  }
  while (sum > 0xffff) sum = (sum >> 16) + (sum & 0xffff);
  return static_cast<std::uint16_t>(~sum);
}

std::string_view Text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool IsIpv4(const Address& address) {
  return std::all_of(address.ip.begin(), address.ip.begin() + 10,
                     [](std::uint8_t byte) { return byte == 0; }) &&
         address.ip[10] == 0xff && address.ip[11] == 0xff;
}

std::size_t IpSize(const Address& address) {
  return kUdpSize + (IsIpv4(address) ? kIpv4Size : kIpv6Size);
}

}  // namespace

void PcapngWriter::Put(std::uint64_t value, int bytes) { out_ += Number(value, bytes, false); }

void PcapngWriter::Pad() { out_.resize((out_.size() + 3) & ~std::size_t{3}); }

// High half first.
void PcapngWriter::Time(Nanos time) {
  Put(static_cast<std::uint64_t>(time) >> 32, 4);
  Put(static_cast<std::uint32_t>(time), 4);
}

template <typename Body>
void PcapngWriter::Block(std::uint32_t type, Body body) {
  const std::size_t begin = out_.size();
  Put(type, 4);
  Put(0, 4);
  body();
  const auto size = static_cast<std::uint32_t>(out_.size() + 4 - begin);
  out_.replace(begin + 4, 4, Number(size, 4, false));
  Put(size, 4);
}

void PcapngWriter::Option(std::uint16_t code, std::string_view value) {
  Put(code, 2);
  Put(value.size(), 2);
  out_ += value;
  Pad();
}

void PcapngWriter::Section(std::string_view application) {
  Block(kSectionHeader, [&] {
    Put(0x1a2b3c4d, 4);
    Put(1, 2);
    Put(0, 2);
    Put(UINT64_MAX, 8);  // its length is not known
    Option(kApplication, application);
    Option(kEnd, {});
  });
}

void PcapngWriter::Interface(std::string_view name, std::string_view description) {
  Block(kInterface, [&] {
    Put(kLinkRaw, 2);
    Put(0, 2);
    Put(TracedDatagram::kBytes + kIpv6Size + kUdpSize, 4);
    Option(kName, name);
    Option(kDescription, description);
    Option(kUnit, Number(9, 1, false));  // 10^-9 s
    Option(kEnd, {});
  });
}

void PcapngWriter::Secrets(std::uint32_t type, std::string_view text) {
  Block(kSecrets, [&] {
    Put(type, 4);
    Put(text.size(), 4);
    out_ += text;
    Pad();
  });
}

void PcapngWriter::IpPacket(const Address& from, const Address& to,
                            const TracedDatagram& datagram) {
  const bool is_ipv4 = IsIpv4(from);
  const std::uint64_t udp_size = kUdpSize + datagram.size;
  const std::string_view from_ip = Text(from.ip), to_ip = Text(to.ip);
  std::string udp = Big(from.port, 2) + Big(to.port, 2) + Big(udp_size, 2);
  if (is_ipv4) {
    std::string ip = Big(0x45, 1) + Big(0, 1) + Big(kIpv4Size + udp_size, 2);
    ip += Big(0, 2) + Big(0x4000, 2) + Big(64, 1) + Big(17, 1);  // not to be cut; 64 hops; UDP
    const std::string addresses = std::string(from_ip.substr(12)) + std::string(to_ip.substr(12));
    out_ += ip + Big(Checksum(ip + Big(0, 2) + addresses), 2) + addresses;
    out_ += udp + Big(0, 2);  // without a checksum
  } else {
    const std::string addresses = std::string(from_ip) + std::string(to_ip);
    out_ += Big(0x60000000, 4) + Big(udp_size, 2) + Big(17, 1) + Big(64, 1) + addresses;
    const std::string head = addresses + Big(udp_size, 4) + Big(17, 4) + udp + Big(0, 2);
    const bool is_whole = datagram.kept().size() == datagram.size;
    out_ += udp + Big(is_whole ? Checksum(head + std::string(Text(datagram.kept()))) : 0, 2);
  }
  out_ += Text(datagram.kept());
}

void PcapngWriter::Datagram(std::uint32_t interface, const Address& own, Nanos clock,
                            const TracedDatagram& datagram) {
  const std::size_t head = IpSize(datagram.remote);
  Block(kPacket, [&] {
    Put(interface, 4);
    Time(datagram.time + clock);
    Put(head + datagram.kept().size(), 4);
    Put(head + datagram.size, 4);
    IpPacket(datagram.sent ? own : datagram.remote, datagram.sent ? datagram.remote : own,
             datagram);
    Pad();
    Option(kFlags, Number(datagram.sent ? 2 : 1, 4, false));  // outbound, inbound
    Option(kComment,
           datagram.driver == Side::kKeeper ? "driven by the daemon" : "driven by the program");
    Option(kEnd, {});
  });
}

void PcapngWriter::Statistics(std::uint32_t interface, Nanos now, std::uint64_t received,
                              std::uint64_t lost) {
  Block(kStatistics, [&] {
    Put(interface, 4);
    Time(now);
    Option(kReceived, Number(received, 8, false));
    Option(kDropped, Number(lost, 8, false));
    Option(kEnd, {});
  });
}

}  // namespace sekisho::pm
