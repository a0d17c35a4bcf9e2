// SPDX-License-Identifier: Apache-2.0
// Traces as the library itself writes them.
#include "client/rankmap/rankmap_otf2.h"

#include <filesystem>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <otf2/otf2.h>
#include <unistd.h>

namespace sekisho::client {
namespace {

using rankmap::Message;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kRanks = 4;
constexpr uint64_t kLocation[] = {70, 71, 72, 73};  // of each rank: not its number
constexpr uint64_t kThread = 90;                    // of rank 2's process
constexpr OTF2_CommRef kWorld = 0, kOdd = 1;

OTF2_FlushType Flush(void*, OTF2_FileType, OTF2_LocationRef, void*, bool) { return OTF2_FLUSH; }
OTF2_TimeStamp Clock(void*, OTF2_FileType, OTF2_LocationRef) { return 100; }

class Otf2 : public testing::Test {
 protected:
  Otf2() : directory_(std::filesystem::temp_directory_path() / ("otf2-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(directory_);
  }
  ~Otf2() override { std::filesystem::remove_all(directory_); }

  using Events = std::function<void(uint64_t location, OTF2_EvtWriter*)>;
  std::string Write(const Events& events) {
    OTF2_Archive* archive = OTF2_Archive_Open(directory_.c_str(), "traces", OTF2_FILEMODE_WRITE, 1 << 20, 1 << 20,
                                              OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    static const OTF2_FlushCallbacks kFlush = {Flush, Clock};
    OTF2_Archive_SetFlushCallbacks(archive, &kFlush, nullptr);
    OTF2_Archive_SetSerialCollectiveCallbacks(archive);
    OTF2_Archive_OpenEvtFiles(archive);
    for (const uint64_t location : {kLocation[0], kLocation[1], kLocation[2], kLocation[3], kThread}) {
      OTF2_EvtWriter* writer = OTF2_Archive_GetEvtWriter(archive, location);
      events(location, writer);
      OTF2_Archive_CloseEvtWriter(archive, writer);
    }
    OTF2_Archive_CloseEvtFiles(archive);
    Define(OTF2_Archive_GetGlobalDefWriter(archive));
    OTF2_Archive_Close(archive);
    return (directory_ / "traces.otf2").string();
  }

 private:
  static void Define(OTF2_GlobalDefWriter* out) {
    OTF2_GlobalDefWriter_WriteClockProperties(out, 1000, 0, 1000, 0);
    OTF2_GlobalDefWriter_WriteString(out, 0, "any");
    OTF2_GlobalDefWriter_WriteSystemTreeNode(out, 0, 0, 0, OTF2_UNDEFINED_SYSTEM_TREE_NODE);
    for (int rank = 0; rank < kRanks; ++rank) {
      OTF2_GlobalDefWriter_WriteLocationGroup(out, rank, 0, OTF2_LOCATION_GROUP_TYPE_PROCESS, 0,
                                              OTF2_UNDEFINED_LOCATION_GROUP);
      OTF2_GlobalDefWriter_WriteLocation(out, kLocation[rank], 0, OTF2_LOCATION_TYPE_CPU_THREAD, 2, rank);
    }
    OTF2_GlobalDefWriter_WriteLocation(out, kThread, 0, OTF2_LOCATION_TYPE_CPU_THREAD, 2, 2);
    const uint64_t all[] = {0, 1, 2, 3}, odd[] = {1, 3};
    OTF2_GlobalDefWriter_WriteGroup(out, 0, 0, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
                                    OTF2_GROUP_FLAG_NONE, kRanks, kLocation);
    OTF2_GlobalDefWriter_WriteGroup(out, 1, 0, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE,
                                    kRanks, all);
    OTF2_GlobalDefWriter_WriteGroup(out, 2, 0, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, 2,
                                    odd);
    OTF2_GlobalDefWriter_WriteComm(out, kWorld, 0, 1, OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE);
    OTF2_GlobalDefWriter_WriteComm(out, kOdd, 0, 2, kWorld, OTF2_COMM_FLAG_NONE);
  }

  std::filesystem::path directory_;
};

TEST_F(Otf2, MessagesGoToRanksOfTheWorld) {
  const std::string path = Write([](uint64_t location, OTF2_EvtWriter* out) {
    if (location == kLocation[0]) {
      OTF2_EvtWriter_MpiSend(out, nullptr, 1, 2, kWorld, 0, 100);
      OTF2_EvtWriter_MpiIsend(out, nullptr, 2, 2, kWorld, 0, 11, 7);
    } else if (location == kLocation[1]) {
      OTF2_EvtWriter_MpiSend(out, nullptr, 1, 1, kOdd, 0, 5);  // the second of the odd ones: rank 3
    } else if (location == kThread) {
      OTF2_EvtWriter_MpiSend(out, nullptr, 1, 0, kWorld, 0, 9);
    }
  });

  const auto pattern = ReadOtf2(path);

  ASSERT_TRUE(pattern.ok()) << pattern.status();
  EXPECT_EQ(pattern->ranks(), kRanks);
  EXPECT_THAT(pattern->messages(),
              ElementsAre(Message{0, 2, 111, 0, 2}, Message{1, 3, 5, 0, 1}, Message{2, 0, 9, 0, 1}));
}

TEST_F(Otf2, ABroadcastIsATree) {
  const std::string path = Write([](uint64_t location, OTF2_EvtWriter* out) {
    if (location != kThread) {
      const uint64_t sent = location == kLocation[0] ? kRanks * 10 : 0;
      OTF2_EvtWriter_MpiCollectiveBegin(out, nullptr, 1);
      OTF2_EvtWriter_MpiCollectiveEnd(out, nullptr, 2, OTF2_COLLECTIVE_OP_BCAST, kWorld, 0, sent, 10);
    }
  });

  const auto pattern = ReadOtf2(path);

  ASSERT_TRUE(pattern.ok()) << pattern.status();
  EXPECT_EQ(pattern->total_bytes(), 3 * 10);
  EXPECT_EQ(pattern->total_count(), 3);
}

TEST_F(Otf2, RefusesWhatIsNoTrace) {
  const std::string path = Write([](uint64_t, OTF2_EvtWriter*) {});
  std::ofstream(path) << "not a trace\n";

  const auto pattern = ReadOtf2(path);

  EXPECT_FALSE(pattern.ok());
  EXPECT_THAT(std::string(pattern.status().message()), HasSubstr("traces.otf2: "));
  EXPECT_FALSE(ReadOtf2(path + ".missing.otf2").ok());
}

}  // namespace
}  // namespace sekisho::client
