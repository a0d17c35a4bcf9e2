// SPDX-License-Identifier: Apache-2.0
// What an outsider sees of two programs that talk, with a real sekisho-pmd between.
#include "transport/pm/trace.h"

#include "transport/pm/daemon/daemon_test.h"
#include "transport/pm/seal.h"

namespace sekisho::pm {
namespace {

class Traced : public DaemonTest {
 protected:
  std::unique_ptr<TracedContext> Trace(std::uint16_t node) {
    std::unique_ptr<TracedContext> context;
    if (const int memory = MemoryOf(node); memory >= 0) {
      EXPECT_FALSE(TracedContext::Open(memory, context));
    }
    return context;
  }
};

TEST_F(Traced, ShowsWhatProgramAndDaemonSendWithKeysThatOpenIt) {
  pmContext* sender = Open(0);
  const pid_t receiver = Spawn(1, [this](pmContext* context) {
    std::uint64_t number;
    int error;
    for (int got = 0; got < 2;) got += ReceiveNumber(context, number, error) ? 1 : 0;
    board_->ready = 1;
    while (board_->stop == 0) usleep(1000);  // computes: its keeper drives
    pmCloseDevice(context);
  });
  ASSERT_NE(sender, nullptr);
  const auto talk = [&](int count) {
    const Nanos limit = Wire::Now() + 20 * kSecond;
    for (int sent = 0; sent < count && Wire::Now() < limit;) {
      sent += SendNumber(sender, 1, 7, 500) == 0 ? 1 : 0;
      void* buffer;
      size_t length;
      (void)pmReceive(sender, &buffer, &length);
    }
    while (pmIsSendDone(sender) == EBUSY && Wire::Now() < limit) (void)pmWait(sender, 1000);
  };
  ASSERT_NO_FATAL_FAILURE(talk(2));
  ASSERT_TRUE(Until(20 * kSecond, [this] { return board_->ready == 1; }));

  const std::unique_ptr<TracedContext> here = Trace(0), there = Trace(1);
  ASSERT_TRUE(here && there);
  here->Ask(Wire::Now() + 60 * kSecond);
  there->Ask(Wire::Now() + 60 * kSecond);
  talk(5);

  int sent = 0, by_keeper = 0, genuine = 0;
  TracedDatagram seen;
  while (here->Next(seen, Wire::Now())) {
    Packet packet;
    ASSERT_EQ(ParsePacket(seen.kept(), packet), ParseError::kNone);
    sent += seen.sent && seen.driver == Side::kProgram ? 1 : 0;
  }
  const std::string keys = there->NewKeys();
  EXPECT_NE(keys.find("PM_PAYLOAD 5 "), std::string::npos);
  EXPECT_NE(keys.find("PM_GREETING 5 0 1 "), std::string::npos);
  const std::size_t at = keys.find("PM_SESSION 5 0 1 ");
  ASSERT_NE(at, std::string::npos);
  std::array<std::uint8_t, 16> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(std::stoul(keys.substr(at + 17 + 2 * i, 2), nullptr, 16));
  }
  const PayloadKey payload_key = MakePayloadKey(here->config().key);
  while (there->Next(seen, Wire::Now())) {
    by_keeper += seen.driver == Side::kKeeper ? 1 : 0;
    if (seen.sent) continue;
    EXPECT_EQ(seen.remote, here->own());
    const MutableBytes datagram = std::span(seen.bytes).first(seen.size);
    Packet packet;
    ASSERT_EQ(ParsePacket(datagram, packet), ParseError::kNone);
    genuine += pm::Open(SipKeyFrom(bytes), nullptr, &payload_key, datagram, packet) ? 1 : 0;
  }
  EXPECT_GE(sent, 1);
  EXPECT_GE(genuine, 1);
  EXPECT_GE(by_keeper, 1);
  EXPECT_EQ(there->NewKeys(), "");

  board_->stop = 1;
  pmCloseDevice(sender);
  waitpid(receiver, nullptr, 0);
}

TEST_F(Traced, NothingIsRecordedForNobody) {
  pmContext* program = Open(0);
  ASSERT_NE(program, nullptr);
  const std::unique_ptr<TracedContext> context = Trace(0);
  ASSERT_TRUE(context);

  (void)SendNumber(program, 1, 7, 100);  // greets

  TracedDatagram seen;
  EXPECT_FALSE(context->Next(seen, Wire::Now()));
  context->Ask(Wire::Now() + 60 * kSecond);
  EXPECT_TRUE(Until(20 * kSecond,
                    [&] { return context->Next(seen, Wire::Now()); }));  // the greeting, again
  EXPECT_EQ(seen.bytes[0] & 15, static_cast<int>(Kind::kHello));
  pmCloseDevice(program);
}

}  // namespace
}  // namespace sekisho::pm
