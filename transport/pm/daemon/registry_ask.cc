// SPDX-License-Identifier: Apache-2.0
// What users ask of a context: answered here, or by its keeper.
#include <errno.h>
#include <sys/wait.h>

#include <array>
#include <string>

#include "transport/pm/daemon/registry.h"
#include "transport/pm/job_file.h"
#include "transport/pm/wire.h"

namespace sekisho::pm {

// The context that is meant, if the client has its key.
int Registry::Named(const Client& client, const AskMessage& ask, const Received& received,
                    Context*& context) {
  JobKey key;
  if (received.fd_count == 0) return EINVAL;
  if (const auto error = ReadKeyFile(received.fds[0], client.uid, key)) return Errno(error);
  context = Find(key, ask.config.context, ask.config.node, client.uid);
  return context == nullptr ? ENOENT : 0;
}

// Who has user and key of a program may see what it sees.
int Registry::Trace(const Client& client, const AskMessage& ask, const Received& received) {
  Context* context = nullptr;
  if (const int error = Named(client, ask, received, context)) return error;
  Reply(client.fd, 0, "", std::span(&context->fds.memory, 1));
  return 0;
}

bool Registry::AreOfOneJob(const Context& a, const Context& b) {
  return a.number == b.number && a.uid == b.uid && a.key == b.key;
}

// Their programs begin nothing new, or go on.
void Registry::SayStopIsNear(const Context& asked, bool is_near) {
  const Nanos now = Wire::Now();
  for (const auto& context : contexts_) {
    if (!AreOfOneJob(*context, asked) || context->head.get() == nullptr) continue;
    auto& stop = context->head.get()->stop_is_near;
    // Who asks again and again holds nobody up for longer.
    if (!is_near || !IsNear(stop.load(), now)) stop.store(is_near ? now + kStopIsNear : 0);
  }
}

// All of a job that are on this host are about to hear of it.
void Registry::Attend(const Context& asked) {
  AskMessage ask;
  ask.ask = Ask::kAttend;
  for (const auto& context : contexts_) {
    if (context.get() != &asked && AreOfOneJob(*context, asked) && context->control >= 0) {
      (void)SendMessage(context->control, BytesOf(ask), {}, MSG_DONTWAIT);
    }
  }
}

// The keeper answers the client itself.
int Registry::Forward(const Client& client, const AskMessage& ask, const Received& received) {
  const std::array<int, 2> fds = {client.fd, received.fds[1]};
  for (;;) {
    Context* context = nullptr;
    if (const int error = Named(client, ask, received, context)) return error;
    const bool stops = ask.ask == Ask::kStop;
    if (stops || ask.ask == Ask::kGo) SayStopIsNear(*context, stops);
    const int error =
        SendMessage(context->control, BytesOf(ask),
                    std::span(fds).first(received.fd_count > 1 ? 2u : 1u), MSG_DONTWAIT);
    if (stops && error == 0) Attend(*context);
    if (stops && error != 0) SayStopIsNear(*context, false);
    if (error != EPIPE) return error;
    // The keeper is ending: either the context is over, or another takes its place.
    siginfo_t ended;
    while (waitid(P_PID, static_cast<id_t>(context->keeper), &ended, WEXITED | WNOWAIT) != 0) {
      if (errno != EINTR) return error;
    }
    Reap();
  }
}

// All of the user's, or with a key file those that have its key.
int Registry::List(const Client& client, const AskMessage& ask, const Received& received) const {
  constexpr std::size_t kRoom = sizeof(AnswerMessage::text) - 200;  // of a line, and of the last
  const bool of_key = received.fd_count > 0;
  JobKey key;
  if (of_key) {
    if (const auto error = ReadKeyFile(received.fds[0], client.uid, key)) return Errno(error);
  }
  std::string text;
  for (std::size_t i = ask.first; i < contexts_.size(); ++i) {
    const Context& context = *contexts_[i];
    if (context.uid != client.uid && (of_key || client.uid != 0)) continue;
    if (of_key && context.key != key) continue;
    if (text.size() > kRoom) {
      text += "more " + std::to_string(i) + "\n";
      break;
    }
    text += "context " + std::to_string(context.number) + " node " + std::to_string(context.node) +
            " program " + std::to_string(context.program.pid) + " keeper " +
            std::to_string(context.keeper) + " starts " + std::to_string(context.starts) +
            " parked " + std::to_string(context.parked) + "\n";
  }
  Reply(client.fd, 0, text, {});
  return 0;
}

}  // namespace sekisho::pm
