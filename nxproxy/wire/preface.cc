// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/wire/preface.h"

#include <cstring>

namespace sekisho::nxproxy::wire {
namespace {

constexpr std::string_view kPrefaceMagic = "NXD1";
constexpr std::string_view kOpeningMagic = "NXO1";
constexpr uint8_t kFlagWantsOpening = 1;

void PutBig(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = bytes; i-- > 0;) {
    out += static_cast<char>(value >> (8 * i));
  }
}

uint64_t GetBig(std::string_view bytes, size_t offset, size_t length) {
  uint64_t value = 0;
  for (const char byte : bytes.substr(offset, length)) {
    value = value << 8 | static_cast<uint8_t>(byte);
  }
  return value;
}

void PutAddress(std::string& out, const Address& address) {
  out.append(reinterpret_cast<const char*>(address.ip.data()), address.ip.size());
  PutBig(out, address.port, 2);
}

Address GetAddress(std::string_view bytes, size_t offset) {
  Address address;
  std::memcpy(address.ip.data(), bytes.data() + offset, address.ip.size());
  address.port = static_cast<uint16_t>(GetBig(bytes, offset + 16, 2));
  return address;
}

}  // namespace

std::string EncodeUntagged(const Preface& preface) {
  if (preface.target.size() > kTargetBytesMax) {
    return "";
  }
  std::string out(kPrefaceMagic);
  out.reserve(kPrefaceFixedBytes + preface.target.size() + kTagBytes);
  PutBig(out, static_cast<uint8_t>(preface.kind), 1);
  PutBig(out, preface.wants_opening ? kFlagWantsOpening : 0, 1);
  PutBig(out, preface.target.size(), 2);
  PutBig(out, preface.session, 8);
  PutBig(out, preface.counter, 8);
  PutBig(out, preface.stream, 8);
  PutAddress(out, preface.from);
  PutBig(out, 0, 6);
  return out + preface.target;
}

std::optional<size_t> PrefaceLength(std::string_view bytes) {
  const size_t known = std::min(bytes.size(), kPrefaceMagic.size());
  if (bytes.substr(0, known) != kPrefaceMagic.substr(0, known)) {
    return 0;
  }
  if (bytes.size() < 8) {
    return std::nullopt;
  }
  const size_t target = GetBig(bytes, 6, 2);
  return target <= kTargetBytesMax ? kPrefaceFixedBytes + target + kTagBytes : 0;
}

std::optional<TaggedPreface> DecodePreface(std::string_view bytes) {
  if (bytes.size() < kPrefaceFixedBytes || PrefaceLength(bytes) != bytes.size()) {
    return std::nullopt;
  }
  const auto kind = static_cast<Kind>(bytes[4]);
  const auto flags = static_cast<uint8_t>(bytes[5]);
  if ((kind != Kind::kConnect && kind != Kind::kAccept) || (flags & ~kFlagWantsOpening) != 0 ||
      GetBig(bytes, 50, 6) != 0) {
    return std::nullopt;
  }
  TaggedPreface out;
  out.preface.kind = kind;
  out.preface.wants_opening = (flags & kFlagWantsOpening) != 0;
  out.preface.session = GetBig(bytes, 8, 8);
  out.preface.counter = GetBig(bytes, 16, 8);
  out.preface.stream = GetBig(bytes, 24, 8);
  out.preface.from = GetAddress(bytes, 32);
  out.untagged = bytes.substr(0, bytes.size() - kTagBytes);
  out.tag = bytes.substr(bytes.size() - kTagBytes);
  out.preface.target = std::string(out.untagged.substr(kPrefaceFixedBytes));
  if ((kind == Kind::kConnect) == out.preface.target.empty()) {
    return std::nullopt;
  }
  return out;
}

std::string Encode(const Opening& opening) {
  std::string out(kOpeningMagic);
  out.reserve(kOpeningBytes);
  PutBig(out, static_cast<uint8_t>(opening.code), 2);
  PutAddress(out, opening.peer);
  PutAddress(out, opening.local);
  PutBig(out, opening.endpoint, 8);
  PutBig(out, opening.stream, 8);
  PutBig(out, 0, 6);
  return out;
}

std::optional<Opening> DecodeOpening(std::string_view bytes) {
  if (bytes.size() != kOpeningBytes || !bytes.starts_with(kOpeningMagic)) {
    return std::nullopt;
  }
  const uint64_t code = GetBig(bytes, 4, 2);
  Opening out;
  out.code =
      code <= static_cast<uint64_t>(Code::kInternal) ? static_cast<Code>(code) : Code::kInternal;
  out.peer = GetAddress(bytes, 6);
  out.local = GetAddress(bytes, 24);
  out.endpoint = GetBig(bytes, 42, 8);
  out.stream = GetBig(bytes, 50, 8);
  return out;
}

}  // namespace sekisho::nxproxy::wire
