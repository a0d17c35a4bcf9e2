// SPDX-License-Identifier: Apache-2.0
// A running context as sekisho pm trace sees it.
#include "transport/pm/trace.h"

#include <array>
#include <cstdio>
#include <new>

namespace sekisho::pm {
namespace {

// In the order of the bytes that they were made from.
std::string Hex(std::span<const std::uint64_t> words) {
  std::string text;
  for (const std::uint64_t word : words) {
    for (int i = 0; i < 8; ++i) {
      std::array<char, 3> byte;
      std::snprintf(byte.data(), byte.size(), "%02x", static_cast<unsigned>(word >> 8 * i & 0xff));
      text += byte.data();
    }
  }
  return text;
}

std::string KeyLine(const char* word, const SessionId& id, const SipKey& key) {
  std::array<char, 80> head;
  std::snprintf(head.data(), head.size(), "%s %u %u %u ", word, id.context, id.source,
                id.destination);
  return head.data() + Hex(key) + "\n";
}

}  // namespace

std::error_code TracedContext::Open(int memory, std::unique_ptr<TracedContext>& out) {
  std::unique_ptr<TracedContext> context(new (std::nothrow) TracedContext);
  if (!context) return Error::kNoMemory;
  if (const auto error = context->memory_.Map(memory)) return error;
  context->reader_.emplace(context->memory_.trace());
  context->told_.resize(context->config().nodes);
  out = std::move(context);
  return {};
}

TracedContext::~TracedContext() {
  if (!reader_) return;
  // Others go on: the pages are theirs to give back, and the time runs out without us.
  if (others_at_ != 0 && asked_ - others_at_ < 2 * kSecond) return;
  memory_.trace().Ask(0);
  memory_.ForgetTrace();
}

void TracedContext::Ask(Nanos now) {
  const Nanos until = memory_.trace().until();
  if (until != asked_ && until > now) others_at_ = now;
  asked_ = now + kSecond;
  memory_.trace().Ask(asked_);
}

std::string TracedContext::NewKeys() {
  const Config& config = memory_.config();
  std::string lines;
  if (!told_job_) {
    lines = "PM_PAYLOAD " + std::to_string(config.context) + " " +
            Hex(MakePayloadKey(config.key).words) + "\n";
    told_job_ = true;
  }
  const Endpoint& state = memory_.area(OwnerWord::Of(memory_.head().word.load()).area);
  for (NodeId node = 0; node < config.nodes; ++node) {
    // Keys follow from incarnations; those in the memory may be half written.
    const std::uint64_t theirs = Once(state.peer(node).incarnation);
    if (theirs == 0 || told_[node] == theirs) continue;
    const SessionId out = {config.context, config.node, node, config.incarnation, theirs};
    const SessionId in = {config.context, node, config.node, theirs, config.incarnation};
    for (const SessionId& id : {out, in}) {
      if (told_[node] == 0) lines += KeyLine("PM_GREETING", id, GreetingKey(config.key, id));
      lines += KeyLine("PM_SESSION", id, SessionKey(config.key, id));
    }
    told_[node] = theirs;
  }
  return lines;
}

}  // namespace sekisho::pm
