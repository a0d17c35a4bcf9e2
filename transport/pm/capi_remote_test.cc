// SPDX-License-Identifier: Apache-2.0
// Remote memory.
#include "transport/pm/capi_test.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <vector>

namespace sekisho::pm {
namespace {

TEST_F(CApi, RemoteMemoryAnswersAsTheTableSays) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  std::string here(100, 'h'), there(50, 't');
  pmHandle local, remote, part;
  EXPECT_EQ(pmMLock(contexts_[0], 2, here.data(), 100, &local), EINVAL);
  EXPECT_EQ(pmMLock(contexts_[0], -2, here.data(), 100, &local), EINVAL);
  EXPECT_EQ(pmMLock(contexts_[0], 1, nullptr, 100, &local), EINVAL);
  EXPECT_EQ(pmMLock(contexts_[0], 1, here.data(), 0, &local), EINVAL);
  ASSERT_EQ(pmMLock(contexts_[0], 0, here.data(), 100, &local), 0);
  ASSERT_EQ(pmMLock(contexts_[1], 0, there.data(), 50, &remote), 0);

  EXPECT_EQ(pmSubHandle(&local, 50, 51, &part), EINVAL);
  EXPECT_EQ(pmSubHandle(&local, ~size_t{0}, 2, &part), EINVAL);
  EXPECT_EQ(pmWrite(contexts_[0], 0, &remote, &local, 50), EINVAL) << "another node's handle";
  EXPECT_EQ(pmWrite(contexts_[0], 1, &remote, &local, 51), EINVAL) << "beyond its end";
  EXPECT_EQ(pmWrite(contexts_[0], 1, &remote, &local, 0), EINVAL);
  EXPECT_EQ(pmRead(contexts_[0], 1, &remote, &remote, 10), EINVAL) << "a local one is ours";
  EXPECT_EQ(pmMUnlock(contexts_[0], &remote), EINVAL);
  EXPECT_EQ(pmIsSendDone(contexts_[0]), 0);

  ASSERT_EQ(pmRead(contexts_[0], 1, &remote, &local, 50), 0);
  EXPECT_EQ(pmMUnlock(contexts_[0], &local), EBUSY);
  EXPECT_EQ(pmIsSendDone(contexts_[0]), EBUSY);
  ASSERT_EQ(pmMUnlock(contexts_[1], &remote), 0);
  EXPECT_EQ(Finish(0), EACCES);
  EXPECT_EQ(pmIsSendDone(contexts_[0]), 0) << "said once";
  EXPECT_EQ(here, std::string(100, 'h'));
  EXPECT_EQ(pmMUnlock(contexts_[0], &local), 0);
}

// With messages in both directions, of which the writer reads none, and a buffer open at the other.
TEST_F(CApi, RemoteMemoryIsWrittenAndReadBesideMessages) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  std::string source(3'000'000, 0), target(3'000'000, 0), back(3'000'000, 0);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 31 + i / 1000);
  pmHandle local, remote, into;
  ASSERT_EQ(pmMLock(contexts_[0], 0, source.data(), source.size(), &local), 0);
  ASSERT_EQ(pmMLock(contexts_[0], 0, back.data(), back.size(), &into), 0);
  ASSERT_EQ(pmMLock(contexts_[1], 0, target.data(), target.size(), &remote), 0);

  SendText(1, 0, "before");
  ASSERT_EQ(pmWrite(contexts_[0], 1, &remote, &local, source.size()), 0);
  SendText(0, 1, "beside");
  EXPECT_EQ(ReceiveText(1), "beside") << "bulk leaves room for messages";
  EXPECT_EQ(ReceiveText(0), "before");
  EXPECT_EQ(Finish(0), 0);
  EXPECT_TRUE(target == source);

  pmHandle half_remote, half_into;
  ASSERT_EQ(pmSubHandle(&remote, 1'500'000, 1'500'000, &half_remote), 0);
  ASSERT_EQ(pmSubHandle(&into, 1'500'000, 1'500'000, &half_into), 0);
  ASSERT_EQ(pmRead(contexts_[0], 1, &half_remote, &half_into, 1'500'000), 0);
  EXPECT_EQ(Finish(0), 0);
  EXPECT_TRUE(back == std::string(1'500'000, 0) + source.substr(1'500'000));
}

TEST_F(CApi, AProcessOfTheSameHostWritesAndReadsWithOneCopy) {
  constexpr std::size_t kSize = 1'000'000;
  const pid_t parent = getpid();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<unsigned char> shared(kSize, 1);
    pmHandle handle;
    if (Open(1) != 0 || pmMLock(contexts_[1], 0, shared.data(), kSize, &handle) != 0) _exit(1);
    SendText(1, 0, std::string(reinterpret_cast<char*>(handle.opaque), sizeof handle));
    void* buffer;
    size_t length;
    while (pmReceive(contexts_[1], &buffer, &length) != 0 && getppid() == parent) {
    }
    const bool arrived = std::count(shared.begin(), shared.end(), 7) == kSize;
    _exit(arrived ? 0 : 2);
  }
  ASSERT_EQ(Open(0), 0);
  pmHandle remote, local;
  const std::string text = ReceiveText(0);
  ASSERT_EQ(text.size(), sizeof remote);
  memcpy(&remote, text.data(), sizeof remote);
  std::vector<unsigned char> own(kSize, 0);
  ASSERT_EQ(pmMLock(contexts_[0], 0, own.data(), kSize, &local), 0);

  ASSERT_EQ(pmRead(contexts_[0], 1, &remote, &local, kSize), 0);
  EXPECT_EQ(Finish(0), 0);
  EXPECT_EQ(std::count(own.begin(), own.end(), 1), kSize);
  own.assign(kSize, 7);
  ASSERT_EQ(pmWrite(contexts_[0], 1, &remote, &local, kSize), 0);
  EXPECT_EQ(Finish(0), 0);
  SendText(0, 1, "end");
  int status = -1;
  while (waitpid(child, &status, WNOHANG) == 0) (void)pmIsSendDone(contexts_[0]);
  EXPECT_EQ(status, 0);
}

TEST_F(CApi, ACheckpointWaitsForRemoteMemory) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  std::string source(2'000'000, 's'), target(2'000'000, 't');
  pmHandle local, remote;
  ASSERT_EQ(pmMLock(contexts_[0], 0, source.data(), source.size(), &local), 0);
  ASSERT_EQ(pmMLock(contexts_[1], 0, target.data(), target.size(), &remote), 0);
  ASSERT_EQ(pmWrite(contexts_[0], 1, &remote, &local, source.size()), 0);

  bool saved[2] = {};
  const Nanos limit = Device::Now() + 60 * kSecond;
  while (!(saved[0] && saved[1]) && Device::Now() < limit) {
    for (int node : {1, 0}) {
      if (!saved[node]) saved[node] = pmCheckpoint(contexts_[node], nullptr, nullptr) == 0;
      (void)pmIsSendDone(contexts_[node]);
    }
  }
  EXPECT_TRUE(saved[0] && saved[1]);
  EXPECT_TRUE(target == source);
}

// Both have sent what the other does not read.
TEST_F(CApi, UnreadMessagesDoNotHoldUpRemoteMemory) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  std::string source(100'000, 's'), target(100'000, 't');
  pmHandle local, remote;
  ASSERT_EQ(pmMLock(contexts_[0], 0, source.data(), source.size(), &local), 0);
  ASSERT_EQ(pmMLock(contexts_[1], -1, target.data(), target.size(), &remote), 0);
  for (int i = 0; i < 20; ++i) SendText(0, 1, "forth " + std::to_string(i));
  for (int i = 0; i < 20; ++i) SendText(1, 0, "back " + std::to_string(i));

  int write, bad;
  ASSERT_EQ(pmxWrite(contexts_[0], 1, &remote, &local, source.size(), &write), 0);
  remote.opaque[9] ^= 1;  // its key
  ASSERT_EQ(pmxRead(contexts_[0], 1, &remote, &local, source.size(), &bad), 0);
  EXPECT_EQ(Finish(0), 0) << "who has a descriptor is told by it";
  EXPECT_EQ(pmxIsSendDone(contexts_[0], write), 0);
  EXPECT_EQ(pmxIsSendDone(contexts_[0], bad), EACCES);
  EXPECT_TRUE(target == source);
  for (const int one : {write, bad}) EXPECT_EQ(pmxReleaseSendDesc(contexts_[0], one), 0);

  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ReceiveText(1), "forth " + std::to_string(i));
    EXPECT_EQ(ReceiveText(0), "back " + std::to_string(i));
  }
}

}  // namespace
}  // namespace sekisho::pm
