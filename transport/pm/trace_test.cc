// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/pcapng.h"
#include "transport/pm/trace_ring.h"

namespace sekisho::pm {
namespace {

Address Ipv4(std::uint8_t last, std::uint16_t port) {
  Address address;
  address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, last};
  address.port = port;
  return address;
}

class Ring : public ::testing::Test {
 protected:
  void Write(std::uint8_t fill, std::size_t size = 100) {
    const std::vector<std::uint8_t> bytes(size, fill);
    ring_->Write(fill, Ipv4(fill, 7), fill % 2 == 1, Side::kKeeper, bytes);
  }

  std::unique_ptr<TraceRing> ring_ = std::make_unique<TraceRing>();
  TracedDatagram seen_;
};

TEST_F(Ring, GivesBackWhatWasWrittenSinceTheReaderCame) {
  Write(1);
  TraceReader reader(*ring_);
  Write(3, 21);
  Write(4, 10'000);

  ASSERT_TRUE(reader.Next(seen_, 1000));
  EXPECT_EQ(seen_.time, 3);
  EXPECT_EQ(seen_.remote, Ipv4(3, 7));
  EXPECT_TRUE(seen_.sent);
  EXPECT_EQ(seen_.driver, Side::kKeeper);
  EXPECT_EQ(seen_.size, 21u);
  EXPECT_EQ(std::vector<std::uint8_t>(seen_.kept().begin(), seen_.kept().end()),
            std::vector<std::uint8_t>(21, 3));
  ASSERT_TRUE(reader.Next(seen_, 1000));
  EXPECT_FALSE(seen_.sent);
  EXPECT_EQ(seen_.size, 10'000u);
  EXPECT_EQ(seen_.kept().size(), TracedDatagram::kBytes);
  EXPECT_FALSE(reader.Next(seen_, 1000));
  EXPECT_EQ(reader.lost(), 0u);
}

TEST_F(Ring, CountsWhatASlowReaderMissed) {
  TraceReader reader(*ring_);
  for (std::uint64_t i = 0; i < TraceRing::kSlots + 10; ++i) Write(static_cast<std::uint8_t>(i));

  ASSERT_TRUE(reader.Next(seen_, 1000));
  EXPECT_EQ(seen_.time, 10);
  EXPECT_EQ(reader.lost(), 10u);
}

TEST_F(Ring, IsOnOnlyAsLongAsSomebodyAsks) {
  EXPECT_FALSE(ring_->asked());
  EXPECT_FALSE(ring_->IsOn(0));

  ring_->Ask(100);

  EXPECT_TRUE(ring_->IsOn(99));
  EXPECT_FALSE(ring_->IsOn(100));
}

// A word that is one more than the last ticket but no whole slot: its writer was killed.
TEST_F(Ring, ADatagramWhoseWriterDiedIsSkippedInTime) {
  TraceReader reader(*ring_);
  Write(1);
  Write(2);
  std::memset(reinterpret_cast<std::uint8_t*>(ring_.get()) + 128, 0, 8);  // the first slot's ticket

  EXPECT_FALSE(reader.Next(seen_, 1000));
  EXPECT_FALSE(reader.Next(seen_, 999 + TraceReader::kWriting));  // however often it is asked
  ASSERT_TRUE(reader.Next(seen_, 1000 + TraceReader::kWriting));
  EXPECT_EQ(seen_.time, 2);
  EXPECT_EQ(reader.lost(), 1u);

  TraceReader late(*ring_);
  Write(3);
  Write(4);
  std::memset(reinterpret_cast<std::uint8_t*>(ring_.get()) + 128 + 2 * 9216, 0, 8);  // the third's
  ASSERT_TRUE(late.Next(seen_, kNever)) << "it is not waited for";
  EXPECT_EQ(seen_.time, 4);
}

// The end of one tracer gives the ring's pages back while another reads.
TEST_F(Ring, AReaderGoesOnAfterAnothersEndEmptiedTheRing) {
  for (std::uint8_t i = 0; i < 10; ++i) Write(i);
  TraceReader one(*ring_), other(*ring_);
  Write(10);
  ASSERT_TRUE(one.Next(seen_, 1000));
  ASSERT_TRUE(other.Next(seen_, 1000));
  EXPECT_EQ(seen_.time, 10);

  std::memset(reinterpret_cast<std::uint8_t*>(ring_.get()), 0, sizeof(TraceRing));
  EXPECT_FALSE(other.Next(seen_, 1000));
  Write(11);
  Write(12);

  ASSERT_TRUE(other.Next(seen_, 1000));
  EXPECT_EQ(seen_.time, 11);
  ASSERT_TRUE(other.Next(seen_, 1000));
  EXPECT_EQ(seen_.time, 12);
  EXPECT_FALSE(other.Next(seen_, 1000));
  EXPECT_EQ(other.lost(), 0u);
}

// Two could: one that stood still for kSlots datagrams spoils another's slot.
TEST_F(Ring, NeverMixesTheBytesOfTwoDatagramsOfOneWriter) {
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 50'000; ++i) Write(static_cast<std::uint8_t>(i), 64 + i % 512);
    done = true;
  });
  TraceReader reader(*ring_);
  std::uint64_t whole = 0;
  for (bool last = false; !last;) {
    last = done;
    while (reader.Next(seen_, 1000)) {
      ++whole;
      for (const std::uint8_t byte : seen_.kept()) ASSERT_EQ(byte, seen_.remote.ip[15]);
      ASSERT_EQ(static_cast<std::uint8_t>(seen_.time), seen_.remote.ip[15]);
    }
  }
  writer.join();

  EXPECT_GT(whole, 0u);
}

std::string Hex(std::string_view text) {
  std::string out;
  for (const char c : text) {
    constexpr const char* kDigits = "0123456789abcdef";
    out += kDigits[static_cast<std::uint8_t>(c) >> 4];
    out += kDigits[c & 15];
  }
  return out;
}

TEST(Pcapng, ADatagramIsAUdpPacketWithDirectionAndDriver) {
  std::string out;
  TracedDatagram datagram;
  datagram.time = 5;
  datagram.remote = Ipv4(2, 0x1234);
  datagram.sent = true;
  datagram.driver = Side::kKeeper;
  datagram.size = 3;
  datagram.bytes = {'a', 'b', 'c'};

  PcapngWriter(out).Datagram(1, Ipv4(1, 0x5678), 0x100000000, datagram);

  const std::string ip =
      "4500001f000040004011b6ca"
      "c0000201c0000202"
      "56781234000b0000"
      "616263";
  EXPECT_EQ(Hex(out),
            "06000000"
            "64000000"
            "01000000"
            "01000000"
            "05000000"
            "1f000000"
            "1f000000" +
                ip +
                "00"
                "02000400"
                "02000000"
                "01001400" +
                Hex("driven by the daemon") +
                "00000000"
                "64000000");
}

// The one's complement sum of a header with its checksum is all ones.
std::uint32_t Sum(std::string_view text) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    sum += static_cast<std::uint32_t>(static_cast<std::uint8_t>(text[i]) << (i % 2 == 0 ? 8 : 0));
  }
  while (sum > 0xffff) sum = (sum >> 16) + (sum & 0xffff);
  return sum;
}

TEST(Pcapng, ChecksumsAreRight) {
  TracedDatagram datagram;
  datagram.remote = Ipv4(2, 9);
  datagram.size = 5;
  datagram.bytes = {1, 2, 3, 4, 5};
  std::string v4, v6;

  PcapngWriter(v4).Datagram(0, Ipv4(1, 8), 0, datagram);
  Address own;
  own.ip[0] = 0x20, own.ip[15] = 1;
  datagram.remote = own;
  PcapngWriter(v6).Datagram(0, own, 0, datagram);

  EXPECT_EQ(Sum(v4.substr(28, 20)), 0xffffu);
  const std::string packet = v6.substr(28, 40 + 8 + 5);
  EXPECT_EQ(Sum(packet.substr(8, 32) + std::string("\0\0\0\x0d\0\0\0\x11", 8) + packet.substr(40)),
            0xffffu);
}

TEST(Pcapng, BlocksAreAlignedAndSayTheirLengthTwice) {
  std::string out;
  PcapngWriter writer(out);
  writer.Section("a test");
  writer.Interface("pm17.0", "");
  writer.Secrets(kPmKeyLog, "PM_SESSION\n");
  writer.Statistics(0, 1, 2, 3);

  std::size_t blocks = 0;
  for (std::size_t at = 0; at < out.size(); ++blocks) {
    std::uint32_t size, again;
    std::memcpy(&size, out.data() + at + 4, 4);
    ASSERT_EQ(size % 4, 0u);
    ASSERT_LE(at + size, out.size());
    std::memcpy(&again, out.data() + at + size - 4, 4);
    ASSERT_EQ(size, again);
    at += size;
  }
  EXPECT_EQ(blocks, 4u);
}

}  // namespace
}  // namespace sekisho::pm
