// SPDX-License-Identifier: Apache-2.0
// tests/data/jobmanager-N.db: what a jobmanager of an earlier version has left.  Each stays for ever.
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/event_store.h"
#include "common/job_state.h"
#include "jobmanager/book.h"

namespace sekisho::jobmanager {
namespace {

// Made by 0.1 of 2026-11-22.
TEST(StoredDatabase, HasTheJobsOfAnEarlierVersion) {
  const std::string path = testing::TempDir() + "jobmanager-" + std::to_string(getpid()) + ".db";
  std::filesystem::copy_file(std::string(std::getenv("SEKISHO_SOURCE")) + "/tests/data/jobmanager-1.db", path);
  Loop loop;
  Book book;
  {
    const auto store = EventStore::Open(loop, path);
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    ASSERT_TRUE((*store)->Replay([&](uint64_t, const std::string&, const std::string& bytes) -> absl::Status {
      proto::JobEvent event;
      CHECK(event.ParseFromString(bytes));
      return book.Replay(event);
    }).ok());
  }

  const std::string alice = "/O=Sekisho Lab/OU=People/CN=Alice Liddell";
  std::vector<std::string> seen;
  for (const char* id : {"op2gnn5nymx4p", "f4sb6ujoynniq", "nur4k6eww3qzb", "yrixmkc3mi64p", "sbpzfg7brw3r7",
                         "h2w75xkoxdoy6", "i3lnkutsezlb7", "3cqlc3vqutd7j"}) {
    seen.push_back(StateName(book.Status(id, alice).state()));
  }
  EXPECT_THAT(seen, ::testing::ElementsAre("DONE", "DONE", "DONE", "CANCELLED", "PENDING", "PENDING", "PENDING",
                                           "ACTIVE"));
  EXPECT_EQ(book.Status("f4sb6ujoynniq", alice).exit().code(), 3);
  EXPECT_EQ(book.Status("f4sb6ujoynniq", "/CN=Mallory").state(), proto::UNKNOWN);
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::filesystem::remove(path + suffix);
  }
}

}  // namespace
}  // namespace sekisho::jobmanager
