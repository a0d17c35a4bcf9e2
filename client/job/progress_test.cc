// SPDX-License-Identifier: Apache-2.0
#include "client/job/progress.h"

#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

proto::OutputChunk Chunk(int task, uint64_t offset, const std::string& data) {
  proto::OutputChunk chunk;
  chunk.set_task(task);
  chunk.set_stream(proto::OutputChunk::STDERR);
  chunk.set_offset(offset);
  chunk.set_data(data);
  return chunk;
}

proto::AttachRequest Wanted() {
  proto::AttachRequest wanted;
  wanted.set_events(true);
  wanted.set_output(true);
  wanted.set_follow(true);
  return wanted;
}

TEST(Progress, GoesOnAtTheRightByteOfEachStream) {
  Progress progress(Wanted());

  EXPECT_EQ(progress.Take(Chunk(0, 0, "hello ")), "hello ");
  EXPECT_EQ(progress.Take(Chunk(1, 0, "you")), "you");
  EXPECT_EQ(progress.Take(Chunk(0, 6, "world")), "world");

  const proto::AttachRequest again = progress.Again("job");
  EXPECT_EQ(again.job_id(), "job");
  EXPECT_TRUE(again.events() && again.output() && again.follow());
  ASSERT_EQ(again.position_size(), 2);
  EXPECT_EQ(again.position(0).offset(), 11u);
  EXPECT_EQ(again.position(0).stream(), proto::OutputChunk::STDERR);
  EXPECT_EQ(again.position(1).task(), 1);
  EXPECT_EQ(again.position(1).offset(), 3u);
}

TEST(Progress, ShowsNothingTwice) {
  Progress progress(Wanted());
  progress.Take(Chunk(0, 0, "hello"));

  EXPECT_EQ(progress.Take(Chunk(0, 0, "hello")), "");
  EXPECT_EQ(progress.Take(Chunk(0, 3, "lo world")), " world");
  EXPECT_EQ(progress.Take(Chunk(0, 1, "ell")), "");
}

TEST(Progress, BeginsWhereTheFirstStreamWasToBegin) {
  proto::AttachRequest wanted = Wanted();
  proto::OutputPosition& position = *wanted.add_position();
  position.set_stream(proto::OutputChunk::STDERR);
  position.set_offset(100);
  Progress progress(wanted);

  EXPECT_EQ(progress.Again("job").position(0).offset(), 100u);
}

TEST(Progress, AsksForEventsAfterTheLastOne) {
  Progress progress(Wanted());
  proto::JobEvent event;
  event.set_sequence(7);
  progress.Take(event);
  event.set_sequence(5);  // the jobmanager's own carry the number of the one before
  progress.Take(event);

  EXPECT_EQ(progress.Again("job").after_sequence(), 7u);
}

}  // namespace
}  // namespace sekisho::client
