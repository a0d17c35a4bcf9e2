// SPDX-License-Identifier: Apache-2.0
// Messages about remote memory with any content, from a hostile member of the job: nothing but what
// was registered to it changes, and what it makes us keep has an end.  The input is a list of
// messages (the names of real regions and operations are put in where it asks for that) and calls.
#include <cstdlib>
#include <cstring>

#include "transport/pm/fuzz_input.h"
#include "transport/pm/remote_memory.h"

using namespace sekisho::pm;

namespace {

class Port final : public RemotePort {
 public:
  bool Send(NodeId, Bytes, Bytes body) override {
    for (const std::uint8_t byte : body) {
      if (byte == 9) std::abort();  // from elsewhere
    }
    return has_room;
  }
  bool IsGone(NodeId) override { return false; }
  void Await(NodeId, bool) override {}
  std::uint32_t Session(NodeId) override { return session; }
  bool MayBeNear(NodeId) override { return true; }
  bool Copy(const NearPlace& from, std::uint64_t secret, MutableBytes to) override {
    if (from.proof % 2 != 0 || secret == 0) return false;
    (void)to;  // by whom it was asked is not known here
    return true;
  }
  std::uint32_t Process() override { return 1; }
  std::uint64_t Random() override { return next_random += 0x100000001b3; }

  bool has_room = true;
  std::uint32_t session = 1;
  std::uint64_t next_random = 7;
};

struct Memory {
  std::array<std::uint8_t, 64> before, shared, behind;
};

void Check(const Memory& memory, std::uint8_t other_writer) {
  for (std::size_t i = 0; i < 64; ++i) {
    if (memory.before[i] != 9 || memory.behind[i] != 9) std::abort();
    if (memory.shared[i] == other_writer) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  Port port;
  RemoteMemory under_test;
  if (under_test.Init(1, 3, port)) std::abort();
  std::array<Memory, 3> memories;
  std::array<RegionName, 3> names;
  for (std::size_t i = 0; i < 3; ++i) {  // for node 0, for us alone, for node 2
    memories[i].before.fill(9), memories[i].shared.fill(5), memories[i].behind.fill(9);
    if (under_test.Register(static_cast<std::int32_t>(i), memories[i].shared.data(), 64,
                            names[i])) {
      std::abort();
    }
  }
  std::uint32_t number = 0;
  std::array<std::uint8_t, kRemoteHeadSize + 128> text;
  for (int steps = 0; !input.empty() && steps < 400; ++steps) {
    switch (input.Byte() % 8) {
      case 0:
        port.has_room = !port.has_room;
        break;
      case 1:
        under_test.Pump();
        break;
      case 2: {
        RegionName remote = names[0];
        remote.owner = static_cast<NodeId>(input.Byte() % 3);
        remote.length = input.Number();
        const std::uint64_t length = input.Number();
        const RegionName& local = names[1];
        if (input.Byte() % 2 == 0) {
          (void)under_test.Write(remote, local, length, number);
        } else {
          (void)under_test.Read(remote, local, length, number);
        }
        break;
      }
      case 3:
        port.session += input.Byte() % 16 == 0 ? 1 : 0;
        (void)under_test.TakeFailure();
        break;
      default: {
        RemoteMessage message;
        message.what = static_cast<RemoteWhat>(input.Byte() % 11);
        const std::uint8_t flags = input.Byte();
        message.last = (flags & 1) != 0;
        message.near = (flags & 2) != 0;
        message.operation = (flags & 4) != 0 ? number : static_cast<std::uint32_t>(input.Number());
        const RegionName& name = names[flags / 8 % 3];
        message.region =
            (flags & 32) != 0 ? static_cast<std::uint32_t>(input.Number()) : name.region;
        message.key = (flags & 64) != 0 ? input.Number() : name.key;
        message.offset = input.Number();
        message.length = input.Number();
        message.place.proof = flags;
        const std::size_t body = message.length <= 128 && flags < 128 ? message.length : 0;
        const RemoteHead head = WriteRemoteHead(message);
        const auto node = static_cast<NodeId>(input.Byte() % 4);
        text.fill(static_cast<std::uint8_t>(10 + node));
        std::memcpy(text.data(), head.data(), head.size());
        const Bytes all = Bytes(text).first(kRemoteHeadSize + body);
        const std::size_t cut = input.Byte() % (all.size() + 1);
        under_test.OnMessage(node, {all.first(cut), all.subspan(cut)});
      }
    }
    Check(memories[0], 12);
    Check(memories[1], 11);  // what it reads comes from the others
    Check(memories[2], 10);
  }
  port.has_room = true;
  under_test.Pump();
  return 0;
}
