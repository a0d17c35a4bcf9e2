// SPDX-License-Identifier: Apache-2.0
// Frames, prefaces and openings from foreign bytes; what is understood is encoded back to the same
// meaning.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "nxproxy/wire/message.h"
#include "nxproxy/wire/preface.h"

using namespace sekisho::nxproxy::wire;  // NOLINT

static void Require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  FrameLength(bytes);
  if (const Decoded decoded = Decode(bytes); decoded.code == Code::kOk) {
    const Decoded again = Decode(Encode(decoded.message));
    Require(again.code == Code::kOk && again.message == decoded.message);
  }
  PrefaceLength(bytes);
  if (const auto preface = DecodePreface(bytes)) {
    Require(EncodeUntagged(preface->preface) == preface->untagged);
  }
  if (const auto opening = DecodeOpening(bytes)) {
    Require(DecodeOpening(Encode(*opening)) == opening);
  }
  if (const auto address = ParseAddress(bytes)) {
    Require(ParseAddress(ToText(*address)) == address);
  }
  return 0;
}
