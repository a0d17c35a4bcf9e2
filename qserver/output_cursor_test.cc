// SPDX-License-Identifier: Apache-2.0
#include "qserver/output_cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Key = OutputCursor::Key;

Job Running(size_t tasks) {
  Job job;
  job.tasks.resize(tasks);
  return job;
}

TEST(OutputCursor, LooksOnlyAtStreamsThatHaveGrown) {
  Job job = Running(1000);
  OutputCursor cursor{proto::OutputRequest()};
  EXPECT_THAT(cursor.Due(job, false), IsEmpty());

  job.tasks[7].spooled[1] = 5;
  EXPECT_THAT(cursor.Due(job, false), ElementsAre(Key(7, 1)));
  cursor.Read({7, 1}, 5);

  EXPECT_THAT(cursor.Due(job, false), IsEmpty());
  EXPECT_EQ(cursor.offset({7, 1}), 5u);
}

TEST(OutputCursor, BeginsWhereItsReaderWas) {
  Job job = Running(1);
  job.tasks[0].spooled = {5, 5};
  proto::OutputRequest request;
  request.add_position()->set_offset(5);

  EXPECT_THAT(OutputCursor(request).Due(job, false), ElementsAre(Key(0, 1)));
}

TEST(OutputCursor, ReadsAllOfAnEndedJobOnceToItsEnd) {
  Job job;
  job.status.add_task()->set_task(9);
  OutputCursor cursor{proto::OutputRequest()};
  EXPECT_THAT(cursor.Due(job, true), SizeIs(20));

  for (const Key& key : cursor.Due(job, true)) {
    cursor.Read(key, key == Key(3, 0) ? 10 : 0);
  }

  EXPECT_THAT(cursor.Due(job, true), ElementsAre(Key(3, 0)));
  cursor.Read({3, 0}, 0);
  EXPECT_THAT(cursor.Due(job, true), IsEmpty());
}

TEST(OutputCursor, HasRoomForWhatItsReaderAskedFor) {
  proto::OutputRequest request;
  EXPECT_EQ(OutputCursor(request).room(), UINT64_MAX);
  request.set_most_bytes(10);
  OutputCursor cursor(request);
  cursor.Read({0, 0}, 7);
  EXPECT_EQ(cursor.room(), 3u);
  cursor.Read({0, 1}, 3);
  EXPECT_EQ(cursor.room(), 0u);
}

TEST(OutputCursor, KeepsToOneTaskIfAsked) {
  Job job = Running(3);
  for (Task& task : job.tasks) {
    task.spooled = {1, 0};
  }
  proto::OutputRequest request;
  request.set_task(2);
  EXPECT_THAT(OutputCursor(request).Due(job, false), ElementsAre(Key(1, 0)));
  request.set_task(7);
  EXPECT_THAT(OutputCursor(request).Due(job, false), IsEmpty());
}

}  // namespace
}  // namespace sekisho::qserver
