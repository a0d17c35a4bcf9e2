// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/wire/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::nxproxy::wire {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Message Bind() {
  Message message;
  message.verb = Verb::kBind;
  message.id = 7;
  message.scope = static_cast<uint64_t>(Scope::kPublic);
  message.port = 5201;
  message.inside = "10.1.0.11:5201";
  return message;
}

Message Full() {
  Message all = Bind();
  all.verb = Verb::kWelcome;
  all.version = all.session = all.hops = all.port_max = all.endpoint = all.stream = all.code =
      ~0ull;
  all.heartbeat_s = all.grace_s = all.spares = all.encrypt = all.backlog = all.counter = all.others = 1;
  all.key = all.secret = all.cookie = std::string(kSecretBytes, '\0');
  all.token = all.program = all.address = all.words = all.remedy = all.rule = all.site = "x";
  all.job = all.owner = all.upstream = all.label = all.text = all.allow = all.place = "y";
  return all;
}

TEST(NxproxyMessage, EveryFieldSurvivesTheWire) {
  for (const Message& message : {Bind(), Full()}) {
    const Decoded decoded = Decode(Encode(message));

    EXPECT_EQ(decoded.code, Code::kOk) << decoded.why;
    EXPECT_EQ(decoded.message, message);
  }
}

TEST(NxproxyMessage, AbsentFieldsCostNothing) {
  EXPECT_THAT(Encode({.verb = Verb::kPing, .id = 3}), SizeIs(kHeaderBytes));
}

TEST(NxproxyMessage, TheLengthIsKnownFromTheFirstFourBytes) {
  const std::string frame = Encode(Bind());

  EXPECT_EQ(FrameLength(std::string_view(frame).substr(0, 3)), std::nullopt);
  EXPECT_EQ(FrameLength(std::string_view(frame).substr(0, 4)), frame.size());
  EXPECT_EQ(FrameLength("\x01\x02\xff\xff"), 0u);
}

TEST(NxproxyMessage, RefusesAnotherVersionByName) {
  std::string frame = Encode(Bind());
  frame[0] = 2;

  EXPECT_EQ(Decode(frame).code, Code::kVersion);
  EXPECT_EQ(Decode(frame).message.id, 7u);
}

TEST(NxproxyMessage, RefusesAVerbWithoutItsFields) {
  Message bind = Bind();
  bind.scope = 0;

  const Decoded decoded = Decode(Encode(bind));

  EXPECT_EQ(decoded.code, Code::kProtocol);
  EXPECT_THAT(decoded.why, HasSubstr("BIND without field 7"));
}

TEST(NxproxyMessage, SkipsFieldsOfLaterVersionsUnlessTheyMustBeUnderstood) {
  std::string frame = Encode(Bind());
  const auto extend = [](std::string text, char tag) {
    text += tag;
    text += std::string("\0\1x", 3);
    text[3] = static_cast<char>(text.size() - kHeaderBytes);
    return text;
  };

  EXPECT_EQ(Decode(extend(frame, 100)).message, Bind());
  EXPECT_EQ(Decode(extend(frame, static_cast<char>(200))).code, Code::kProtocol);
}

TEST(NxproxyMessage, RefusesWhatIsCutShortRepeatedOrUnknown) {
  const std::string frame = Encode(Bind());
  for (size_t length = 0; length < frame.size(); ++length) {
    EXPECT_EQ(Decode(frame.substr(0, length)).code, Code::kProtocol) << length;
  }
  EXPECT_EQ(Decode(frame + "x").code, Code::kProtocol);

  std::string unknown = frame;
  unknown[1] = 99;
  EXPECT_EQ(Decode(unknown).code, Code::kProtocol);

  std::string twice = frame + frame.substr(kHeaderBytes, 11);
  twice[3] = static_cast<char>(twice.size() - kHeaderBytes);
  EXPECT_THAT(Decode(twice).why, HasSubstr("ascending"));
}

TEST(NxproxyMessage, DoesNotEncodeWhatTheOtherSideWouldRefuse) {
  Message bind = Bind();
  bind.label = std::string(65, 'x');
  EXPECT_THAT(Encode(bind), IsEmpty());

  bind = Bind();
  bind.secret = "short";
  EXPECT_THAT(Encode(bind), IsEmpty());
}

TEST(NxproxyError, EveryCodeHasWordsAnErrnoAndANameOfItsOwn) {
  for (const CodeInfo& info : AllCodes()) {
    EXPECT_EQ(CodeOfName(info.name), info.code);
    EXPECT_EQ(&Info(info.code), &info);
    EXPECT_EQ(info.error == 0, info.code == Code::kOk);
    EXPECT_STRNE(info.words, "");
  }
  EXPECT_EQ(Info(static_cast<Code>(200)).code, Code::kInternal);
}

TEST(NxproxyError, AnErrorMessageAlwaysFitsTheWire) {
  const Message message = ErrorMessage(5, Code::kDenied, std::string(5000, 'x'), "no-public");

  EXPECT_EQ(Decode(Encode(message)).message, message);
}

}  // namespace
}  // namespace sekisho::nxproxy::wire
