// SPDX-License-Identifier: Apache-2.0
#include "qserver/network_keeper.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "topology/text_format.h"

namespace sekisho::qserver {
namespace {

constexpr size_t kLongestLine = 4096;
constexpr int64_t kProberSeconds = 900;

}  // namespace

NetworkKeeper::NetworkKeeper(Settings settings, Send send, MakeKey make_key)
    : settings_(std::move(settings)),
      send_(std::move(send)),
      make_key_(std::move(make_key)),
      upkeep_(settings_.upkeep) {}

proto::TaskKey NetworkKeeper::Key() const {
  proto::TaskKey key;
  key.set_job_id(job_);
  return key;
}

void NetworkKeeper::Attached(const std::string& node, double now_s) {
  attached_.insert(node);
  upkeep_.Join(node, now_s);
  if (const auto found = probers_.find(node); found != probers_.end()) {
    Lose(found->second);  // what the new stream says of it is of another life
  }
}

void NetworkKeeper::Detached(const std::string& node, double now_s) {
  attached_.erase(node);
  upkeep_.Leave(node, now_s);
  if (const auto found = probers_.find(node); found != probers_.end()) {
    Lose(found->second);
  }
}

void NetworkKeeper::Launch(double now_s) {
  key_ = make_key_();
  last_job_ = std::exchange(job_, "network");
  for (size_t i = 0; i < 8; ++i) {
    job_ += fmt::format("{:02x}", make_key_()[i]);
  }
  ready_until_s_ = now_s + settings_.ready_within_s;
  for (const std::string& node : attached_) {
    probers_.try_emplace(node);
    proto::ServerMessage message;
    proto::ServerMessage::Start& start = *message.mutable_start();
    *start.mutable_task() = Key();
    start.set_account(settings_.account);
    start.add_argument(settings_.prober);
    start.add_argument("--probe-only");
    if (!settings_.interface.empty()) {
      start.add_argument("--interface");
      start.add_argument(settings_.interface);
    }
    start.set_directory("/");
    start.set_umask(077);
    start.set_has_input(true);
    start.set_wall_limit_s(kProberSeconds);
    send_(node, std::move(message));
  }
}

void NetworkKeeper::Say(const std::string& node, Prober& prober, const std::string& line,
                        bool is_end) {
  proto::ServerMessage message;
  proto::ServerMessage::Input& input = *message.mutable_input();
  *input.mutable_task() = Key();
  input.set_offset(prober.sent);
  input.set_data(line);
  input.set_end(is_end);
  prober.sent += line.size();
  send_(node, std::move(message));
}

void NetworkKeeper::Forget(const std::string& node, const std::string& job) {
  proto::ServerMessage message;
  message.mutable_forget()->set_job_id(job);
  send_(node, std::move(message));
}

void NetworkKeeper::Lose(Prober& prober) {
  if (prober.is_lost) {
    return;
  }
  prober.is_lost = true;
  prober.orders.clear();
  if (session_ && prober.host >= 0) {
    dispatcher_->Kill(prober.host);
    session_->method->Lose(prober.host);
  }
}

void NetworkKeeper::Hear(const std::string& node, Prober& prober, std::string_view line) {
  if (!prober.ready) {
    prober.ready = topology::ParseReady(line);  // what comes before is passed over
    if (prober.ready) {
      Say(node, prober, topology::PrintKeyOrder(key_));
    }
    return;
  }
  const std::optional<topology::ProbeResult> result = topology::ParseResult(line);
  if (!result || prober.orders.erase(result->id) == 0) {
    return Lose(prober);
  }
  if (const topology::Request* request = dispatcher_->Find(result->id)) {
    dispatcher_->Report(
        result->id, topology::ParseAnswer(result->answer, *request).value_or(topology::Answer{}));
  }
}

bool NetworkKeeper::Handle(const std::string& node, const proto::AgentMessage& message,
                           double now_s) {
  const proto::TaskKey* key = message.has_started()       ? &message.started().task()
                              : message.has_exited()      ? &message.exited().task()
                              : message.has_output()      ? &message.output().task()
                              : message.has_input_taken() ? &message.input_taken().task()
                                                          : nullptr;
  if (key == nullptr || key->job_id().empty() ||
      (key->job_id() != job_ && key->job_id() != last_job_)) {
    return false;
  }
  const auto found = key->job_id() == job_ ? probers_.find(node) : probers_.end();
  if (message.has_exited()) {
    if (found != probers_.end()) {
      Lose(found->second);
    }
    Forget(node, key->job_id());
  } else if (message.has_output()) {
    const proto::AgentMessage::Output& output = message.output();
    proto::ServerMessage taken;
    *taken.mutable_output_taken()->mutable_task() = *key;
    taken.mutable_output_taken()->set_stream(output.stream());
    taken.mutable_output_taken()->set_offset(output.offset() + output.data().size());
    send_(node, std::move(taken));
    if (found != probers_.end() && !found->second.is_lost &&
        output.stream() == proto::OutputChunk::STDOUT) {
      Prober& prober = found->second;
      if (output.offset() != prober.heard) {
        Lose(prober);  // a piece is missing, or came again
      }
      prober.heard += output.data().size();
      prober.unread += output.data();
      size_t begin = 0;
      for (size_t end;
           (end = prober.unread.find('\n', begin)) != std::string::npos && !prober.is_lost;
           begin = end + 1) {
        Hear(node, prober, std::string_view(prober.unread).substr(begin, end - begin));
      }
      prober.unread.erase(0, begin);
      if (prober.unread.size() > kLongestLine) {
        Lose(prober);
      }
    }
  }
  if (session_) {
    Order(now_s);
  }
  return true;
}

// With those that are ready.
void NetworkKeeper::Begin(double now_s) {
  std::set<std::string> ready;
  for (const auto& [node, prober] : probers_) {
    if (prober.ready && !prober.is_lost) {
      ready.insert(node);
    }
  }
  session_ = upkeep_.Begin(ready, now_s);
  const int count = static_cast<int>(session_->hosts.size());
  dispatcher_.emplace(count, 0);
  for (int host = 0; host < count; ++host) {
    const auto found = probers_.find(session_->hosts[host]);
    if (ready.contains(session_->hosts[host])) {
      found->second.host = host;
      node_of_[host] = found->first;
    } else {
      dispatcher_->Kill(host);
    }
  }
  Order(now_s);
}

// Gives orders until all that is wanted is under way.
void NetworkKeeper::Order(double now_s) {
  for (;;) {
    for (const topology::Request& request : session_->method->Next()) {
      dispatcher_->Add(request);
    }
    for (const topology::Dispatcher::Order& order : dispatcher_->Start(now_s)) {
      const std::string& node = node_of_.at(order.request.from);
      Prober& prober = probers_.at(node);
      prober.orders[order.id] = now_s + settings_.answer_within_s;
      Say(node, prober,
          topology::PrintMeasureOrder(
              order.id, probers_.at(node_of_.at(order.request.to)).ready->at, order.request));
    }
    const auto done = dispatcher_->TakeDone();
    for (const auto& [request, answer] : done) {
      session_->method->Report(request, answer);
    }
    if (done.empty()) {
      break;
    }
  }
  if (dispatcher_->IsIdle()) {
    End(now_s);
  }
}

void NetworkKeeper::End(double now_s) {
  for (auto& [node, prober] : probers_) {
    if (!prober.is_lost) {
      Say(node, prober, "Q\n", true);
    } else if (attached_.contains(node)) {
      proto::ServerMessage kill;
      kill.mutable_kill()->set_job_id(job_);
      kill.mutable_kill()->set_signal(9);
      send_(node, std::move(kill));
    }
  }
  news_ = upkeep_.End(*std::exchange(session_, std::nullopt), now_s);
  dispatcher_.reset();
  node_of_.clear();
  probers_.clear();
}

void NetworkKeeper::Tick(double now_s) {
  if (probers_.empty()) {
    if (upkeep_.DueAt_s() <= now_s && attached_.size() > 1) {
      Launch(now_s);
    }
    return;
  }
  if (!session_) {
    const bool is_complete = std::all_of(probers_.begin(), probers_.end(), [](const auto& one) {
      return one.second.ready || one.second.is_lost;
    });
    if (is_complete || now_s >= ready_until_s_) {
      for (auto& [node, prober] : probers_) {
        if (!prober.ready) {
          Lose(prober);
        }
      }
      Begin(now_s);
    }
    return;
  }
  for (auto& [node, prober] : probers_) {
    if (std::any_of(prober.orders.begin(), prober.orders.end(),
                    [now_s](const auto& order) { return order.second <= now_s; })) {
      Lose(prober);
    }
  }
  Order(now_s);
}

std::optional<std::string> NetworkKeeper::TakeNews() { return std::exchange(news_, std::nullopt); }

}  // namespace sekisho::qserver
