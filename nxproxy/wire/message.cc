// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/wire/message.h"

#include <array>
#include <cstring>
#include <variant>

namespace sekisho::nxproxy::wire {
namespace {

using Number = uint64_t Message::*;
using Text = std::string Message::*;

// Numbers travel as 8 bytes, big-endian.  Tags from 128 on are not to be skipped by who does not
// know them.
struct Field {
  uint8_t tag;
  std::variant<Number, Text> member;
  size_t min = 0;  // of a text
  size_t max = 8;
};

constexpr size_t kName = 512;   // a subject
constexpr size_t kPlace = 300;  // host:port
constexpr size_t kToken = 32 * 1024;

const std::array<Field, 34> kFields = {{
    {1, &Message::version},
    {2, &Message::session},
    {3, &Message::key, kSecretBytes, kSecretBytes},
    {4, &Message::token, 1, kToken},
    {5, &Message::program, 1, 64},
    {6, &Message::hops},
    {7, &Message::scope},
    {8, &Message::port},
    {9, &Message::port_max},
    {10, &Message::endpoint},
    {11, &Message::secret, kSecretBytes, kSecretBytes},
    {12, &Message::address, 1, kPlace},
    {13, &Message::inside, 1, kPlace},
    {14, &Message::stream},
    {15, &Message::code},
    {16, &Message::words, 1, 1024},
    {17, &Message::remedy, 1, 512},
    {18, &Message::rule, 1, 64},
    {19, &Message::site, 1, 64},
    {20, &Message::job, 1, 64},
    {21, &Message::owner, 1, kName},
    {22, &Message::heartbeat_s},
    {23, &Message::grace_s},
    {24, &Message::spares},
    {25, &Message::upstream, 1, kPlace},
    {26, &Message::encrypt},
    {27, &Message::label, 1, 64},
    {28, &Message::backlog},
    {29, &Message::counter},
    {30, &Message::text, 1, kBodyBytesMax - 64},
    {31, &Message::cookie, 16, 64},
    {32, &Message::allow, 1, 1024},
    {33, &Message::others},
    {34, &Message::place, 1, kPlace},
}};

struct VerbInfo {
  Verb verb;
  const char* name;
  std::array<uint8_t, 4> required{};  // tags; 0: no more
};

constexpr VerbInfo kVerbs[] = {
    {Verb::kHello, "HELLO", {1, 5}},
    {Verb::kBind, "BIND", {7}},
    {Verb::kUnbind, "UNBIND", {10}},
    {Verb::kResolve, "RESOLVE", {12}},
    {Verb::kReject, "REJECT", {14}},
    {Verb::kInvite, "INVITE", {10, 12, 31}},
    {Verb::kPing, "PING", {}},
    {Verb::kStats, "STATS", {}},
    {Verb::kBye, "BYE", {}},
    {Verb::kWelcome, "WELCOME", {1, 2, 3}},
    {Verb::kBound, "BOUND", {10, 11, 12}},
    {Verb::kDone, "DONE", {}},
    {Verb::kResolved, "RESOLVED", {7, 10}},
    {Verb::kAnnounce, "ANNOUNCE", {10, 12, 14}},
    {Verb::kInvited, "INVITED", {10, 12, 31}},
    {Verb::kPong, "PONG", {}},
    {Verb::kReport, "REPORT", {30}},
    {Verb::kFailed, "FAILED", {15}},
    {Verb::kError, "ERROR", {15, 16}},
    {Verb::kDrain, "DRAIN", {}},
};

const VerbInfo* Find(Verb verb) {
  for (const VerbInfo& info : kVerbs) {
    if (info.verb == verb) {
      return &info;
    }
  }
  return nullptr;
}

const Field* FindField(uint8_t tag) {
  return tag >= 1 && tag <= kFields.size() ? &kFields[tag - 1] : nullptr;
}

bool IsPresent(const Message& message, const Field& field) {
  if (const Number* number = std::get_if<Number>(&field.member)) {
    return message.*(*number) != 0;
  }
  return !(message.*std::get<Text>(field.member)).empty();
}

void PutBig(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = bytes; i-- > 0;) {
    out += static_cast<char>(value >> (8 * i));
  }
}

uint64_t GetBig(std::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) {
    value = value << 8 | static_cast<uint8_t>(byte);
  }
  return value;
}

Decoded Broken(const Message& message, std::string why, Code code = Code::kProtocol) {
  return {code, std::move(why), message};
}

}  // namespace

const char* Name(Verb verb) {
  const VerbInfo* info = Find(verb);
  return info != nullptr ? info->name : "?";
}

std::string Encode(const Message& message) {
  std::string body;
  for (const Field& field : kFields) {
    if (!IsPresent(message, field)) {
      continue;
    }
    body += static_cast<char>(field.tag);
    if (const Number* number = std::get_if<Number>(&field.member)) {
      PutBig(body, 8, 2);
      PutBig(body, message.*(*number), 8);
      continue;
    }
    const std::string& text = message.*std::get<Text>(field.member);
    if (text.size() < field.min || text.size() > field.max) {
      return "";
    }
    PutBig(body, text.size(), 2);
    body += text;
  }
  if (body.size() > kBodyBytesMax) {
    return "";
  }
  std::string frame;
  frame.reserve(kHeaderBytes + body.size());
  PutBig(frame, kVersion, 1);
  PutBig(frame, static_cast<uint8_t>(message.verb), 1);
  PutBig(frame, body.size(), 2);
  PutBig(frame, message.id, 4);
  return frame + body;
}

std::optional<size_t> FrameLength(std::string_view bytes) {
  if (bytes.size() < 4) {
    return std::nullopt;
  }
  const size_t body = GetBig(bytes.substr(2, 2));
  return body <= kBodyBytesMax ? kHeaderBytes + body : 0;
}

Decoded Decode(std::string_view frame) {
  Message message;
  if (frame.size() < kHeaderBytes || FrameLength(frame) != frame.size()) {
    return Broken(message, "the frame's length is wrong");
  }
  message.verb = static_cast<Verb>(frame[1]);
  message.id = static_cast<uint32_t>(GetBig(frame.substr(4, 4)));
  if (static_cast<uint8_t>(frame[0]) != kVersion) {
    return Broken(message, "version " + std::to_string(static_cast<uint8_t>(frame[0])),
                  Code::kVersion);
  }
  const VerbInfo* verb = Find(message.verb);
  if (verb == nullptr) {
    return Broken(message, "unknown verb " + std::to_string(static_cast<int>(message.verb)));
  }
  std::string_view body = frame.substr(kHeaderBytes);
  unsigned last_tag = 0;
  while (!body.empty()) {
    if (body.size() < 3) {
      return Broken(message, "a field is cut short");
    }
    const auto tag = static_cast<uint8_t>(body[0]);
    const size_t length = GetBig(body.substr(1, 2));
    if (body.size() - 3 < length) {
      return Broken(message, "field " + std::to_string(tag) + " is cut short");
    }
    if (tag <= last_tag) {
      return Broken(message, "fields are not in ascending order");
    }
    last_tag = tag;
    const std::string_view value = body.substr(3, length);
    body.remove_prefix(3 + length);
    const Field* field = FindField(tag);
    if (field == nullptr) {
      if (tag >= 128) {
        return Broken(message, "field " + std::to_string(tag) + " must be understood and is not");
      }
      continue;  // of a later version
    }
    if (const Number* number = std::get_if<Number>(&field->member)) {
      if (length != 8) {
        return Broken(message, "field " + std::to_string(tag) + " is no number");
      }
      message.*(*number) = GetBig(value);
      continue;
    }
    if (length < field->min || length > field->max) {
      return Broken(message, "field " + std::to_string(tag) + " has a wrong length");
    }
    message.*std::get<Text>(field->member) = std::string(value);
  }
  for (const uint8_t tag : verb->required) {
    if (tag != 0 && !IsPresent(message, *FindField(tag))) {
      return Broken(message, std::string(verb->name) + " without field " + std::to_string(tag));
    }
  }
  return {Code::kOk, "", message};
}

Message ErrorMessage(uint32_t id, Code code, std::string words, std::string rule) {
  constexpr size_t kWordsMax = 1024;
  Message message;
  message.verb = Verb::kError;
  message.id = id;
  message.code = static_cast<uint64_t>(code);
  message.words = words.empty() ? Info(code).words : words.substr(0, kWordsMax);
  message.remedy = Info(code).remedy;
  message.rule = std::move(rule);
  return message;
}

}  // namespace sekisho::nxproxy::wire
