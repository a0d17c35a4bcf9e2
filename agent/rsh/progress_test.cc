// SPDX-License-Identifier: Apache-2.0
#include "agent/rsh/progress.h"

#include <gtest/gtest.h>

namespace sekisho::agent::rsh {
namespace {

proto::ServerMessage::LaunchOutput Output(uint64_t offset, const std::string& data,
                                          proto::OutputChunk::Stream stream = proto::OutputChunk::STDOUT) {
  proto::ServerMessage::LaunchOutput output;
  output.set_offset(offset);
  output.set_data(data);
  output.set_stream(stream);
  return output;
}

proto::LaunchIn::Begin Said(const Progress& progress) {
  proto::LaunchIn::Begin begin;
  progress.Describe(begin);
  return begin;
}

TEST(Progress, WritesEachByteOfOutputOnce) {
  Progress progress;

  EXPECT_EQ(progress.Output(Output(0, "abc")), "abc");
  EXPECT_EQ(progress.Output(Output(0, "abc")), "");
  EXPECT_EQ(progress.Output(Output(1, "bcde")), "de");
  EXPECT_EQ(progress.Output(Output(7, "later")), "");  // "f" and "g" are missing
  EXPECT_EQ(progress.Output(Output(0, "err", proto::OutputChunk::STDERR)), "err");

}

TEST(Progress, SaysWhatIsWrittenNotWhatHasCome) {
  Progress progress;
  progress.Output(Output(0, "abcde"));
  progress.Output(Output(0, "err", proto::OutputChunk::STDERR));

  EXPECT_EQ(Said(progress).taken().stdout_offset(), 0u);
  progress.Written(proto::OutputChunk::STDOUT, 5);
  EXPECT_FALSE(progress.is_all_written());
  progress.Written(proto::OutputChunk::STDERR, 3);
  EXPECT_TRUE(progress.is_all_written());
  EXPECT_EQ(Said(progress).taken().stdout_offset(), 5u);
  EXPECT_EQ(Said(progress).taken().stderr_offset(), 3u);
}

TEST(Progress, AnEndWhoseOutputHasNotComeIsNotItsOwn) {
  Progress progress;
  progress.Output(Output(0, "abc"));
  proto::ServerMessage::LaunchEnded ended;
  EXPECT_TRUE(progress.HasAllBefore(ended));  // of a queue server of before, or a refusal

  ended.set_stdout_size(4);
  EXPECT_FALSE(progress.HasAllBefore(ended));
  progress.Output(Output(3, "d"));
  EXPECT_TRUE(progress.HasAllBefore(ended));
  ended.set_stderr_size(1);
  EXPECT_FALSE(progress.HasAllBefore(ended));
}

TEST(Progress, OutputWithoutAnOffsetFollows) {
  Progress progress;
  proto::ServerMessage::LaunchOutput output;
  output.set_data("ab");

  EXPECT_EQ(progress.Output(output), "ab");
  EXPECT_EQ(progress.Output(output), "ab");
}

TEST(Progress, KeepsInputUntilTheHelperHasTakenIt) {
  Progress progress;
  progress.AddInput("hello");

  progress.InputTaken(2);
  EXPECT_EQ(progress.input(), "llo");
  progress.InputTaken(1);
  EXPECT_EQ(progress.input(), "llo");
  EXPECT_EQ(Said(progress).input_offset(), 2u);
  progress.InputTaken(1000);
  EXPECT_EQ(progress.input(), "");
  EXPECT_EQ(Said(progress).input_offset(), 5u);
}

TEST(Progress, HasRoomForInputAsLongAsAChunkMoreIsNotTooMuch) {
  Progress progress;
  size_t chunks = 0;
  for (; progress.HasRoom(); ++chunks) {
    progress.AddInput(std::string(Progress::kChunkMost, 'x'));
  }

  EXPECT_EQ(chunks, kInputMost / Progress::kChunkMost);
  progress.InputTaken(1);
  EXPECT_FALSE(progress.HasRoom());
  progress.InputTaken(Progress::kChunkMost);
  EXPECT_TRUE(progress.HasRoom());
}

TEST(Progress, HasNoRoomForMorePiecesOfInputThanTheAgentTakes) {
  Progress progress;
  size_t pieces = 0;
  for (; progress.HasRoom() && pieces <= kInputPiecesMost; ++pieces) {
    progress.AddInput("x");
  }

  EXPECT_EQ(pieces, kInputPiecesMost);
  progress.InputTaken(1);
  EXPECT_TRUE(progress.HasRoom());
}

TEST(Progress, SaysThatTheHelperHasBegunOnceItHasWordOfIt) {
  Progress of_input;
  Progress of_output;
  EXPECT_FALSE(Said(of_input).again());

  of_input.InputTaken(0);
  of_output.Output(Output(0, "x"));

  EXPECT_TRUE(Said(of_input).again());
  EXPECT_TRUE(Said(of_output).again());
}

}  // namespace
}  // namespace sekisho::agent::rsh
