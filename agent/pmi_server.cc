// SPDX-License-Identifier: Apache-2.0
#include "agent/pmi_server.h"

#include <cstdlib>
#include <deque>
#include <optional>
#include <sstream>

#include <asio/experimental/awaitable_operators.hpp>
#include <asio/read_until.hpp>
#include <asio/write.hpp>

#include "agent/local_door.h"
#include "common/log.h"

namespace sekisho::agent {

using asio::experimental::awaitable_operators::operator||;
using asio::local::stream_protocol;

namespace {

constexpr std::chrono::seconds kHelloWithin{10};
constexpr int kStrangersMost = 1024;
constexpr std::chrono::seconds kLeavesWithin{30};  // of a PMIx server that says nothing of a rank that has ended

std::string ValueIn(const task::Spec& spec, const std::string& name) {
  for (const std::string& variable : spec.environment) {
    if (variable.starts_with(name + "=")) {
      return variable.substr(name.size() + 1);
    }
  }
  return "";
}

int NumberIn(const task::Spec& spec, const std::string& name) {
  return std::atoi(ValueIn(spec, name).c_str());
}

}  // namespace

// A rank's line out; what it has not read yet waits here, an answer a question.
struct PmiServer::Connection {
  Connection(Loop& loop, stream_protocol::socket accepted)
      : loop(loop), socket(std::move(accepted)) {}

  Loop& loop;
  stream_protocol::socket socket;
  std::string input;
  std::deque<std::string> output;

  static void Push(const std::shared_ptr<Connection>& self, std::string text) {
    self->output.push_back(std::move(text));
    if (self->output.size() == 1) {
      Write(self);
    }
  }
  static void Write(const std::shared_ptr<Connection>& self) {
    asio::async_write(self->socket, asio::buffer(self->output.front()),
                      [self](const std::error_code& error, size_t) {
                        self->output.pop_front();
                        if (!error && !self->output.empty()) {
                          Write(self);
                        }
                      });
  }
  // Nothing at its end.
  static awaitable<std::optional<std::string>> ReadLine(std::shared_ptr<Connection> self) {
    const auto [error, size] = co_await asio::async_read_until(
        self->socket, asio::dynamic_buffer(self->input, kPmiLineMax), '\n', kAsTuple);
    if (error) {
      co_return std::nullopt;
    }
    std::string line = self->input.substr(0, size - 1);
    self->input.erase(0, size);
    co_return line;
  }
};

PmiServer::PmiServer(Loop& loop, Outbox& outbox, FindTask find_task, KillTask kill_task, TakeEnd take_end)
    : loop_(loop),
      outbox_(outbox),
      find_task_(std::move(find_task)),
      kill_task_(std::move(kill_task)),
      take_end_(std::move(take_end)),
      acceptor_(loop) {}

PmiServer::~PmiServer() = default;

// The token decides who comes in, not the account.
absl::Status PmiServer::Listen(const std::string& path) {
  RETURN_IF_ERROR(ListenAt(acceptor_, path));
  const auto serve = [this](LocalSocket socket) {
    if (strangers_ < kStrangersMost) {
      co_spawn(loop_, Serve(std::make_shared<Connection>(loop_, std::move(socket))), detached);
    }
  };
  co_spawn(loop_, AcceptAll(loop_, acceptor_, serve), detached);
  return absl::OkStatus();
}

awaitable<const task::Spec*> PmiServer::Greet(std::shared_ptr<Connection> connection) {
  ++strangers_;
  const auto came = co_await (Connection::ReadLine(connection) || Sleep(loop_, kHelloWithin));
  --strangers_;
  const std::optional<std::string>* hello = std::get_if<0>(&came);
  std::istringstream words(hello != nullptr ? hello->value_or("") : "");
  std::string mark;
  std::string job_id;
  std::string token;
  int task = -1;
  words >> mark >> job_id >> task >> token;
  const task::Spec* spec = mark == "sekisho" ? find_task_(job_id, token) : nullptr;
  co_return spec != nullptr && spec->task == task ? spec : nullptr;
}

// What its ranks are told of each other is in their specs, so that an agent that was restarted knows it too; but for the
// size of a world whose release says another: that comes again with the release.
PmiServer::Job& PmiServer::JobOf(const task::Spec& spec) {
  Job& job = jobs_[spec.job_id];
  if (!job.ranks) {
    const int ranks = job.release.ranks() > 0 ? job.release.ranks() : NumberIn(spec, "PMI_SIZE");
    job.ranks = std::make_unique<PmiRanks>(ranks, NumberIn(spec, "SEKISHO_LOCAL_RANKS"),
                                           ValueIn(spec, "SEKISHO_WORLD"));
    job.ranks->SetProcessMapping(job.release.process_mapping());
  }
  return job;
}

int PmiServer::RankOf(const Job& job, const task::Spec& spec) {
  return job.release.ranks() > 0 ? job.release.first_rank() + spec.task : NumberIn(spec, "PMI_RANK");
}

awaitable<void> PmiServer::Serve(std::shared_ptr<Connection> connection) {
  const task::Spec* spec = co_await Greet(connection);
  if (spec == nullptr) {
    co_return;
  }
  const std::string job_id = spec->job_id;
  const int task = spec->task;
  Job& own = JobOf(*spec);
  const int rank = RankOf(own, *spec);
  own.by_rank[rank] = connection;
  own.tasks[rank] = task;
  for (;;) {
    const std::optional<std::string> line = co_await Connection::ReadLine(connection);
    const auto job = jobs_.find(job_id);
    if (job == jobs_.end() || !job->second.ranks) {
      co_return;
    }
    if (!line) {
      job->second.ranks->OnGone(rank);
      co_return TakeEnds(job_id);
    }
    PmiRanks::Effects effects = job->second.ranks->OnLine(rank, *line);
    if (!effects.complaint.empty()) {
      spdlog::warn("a rank gets no more answers job={} rank={}: {}", job_id, rank,
                   Printable(effects.complaint));
      co_return co_await LetGo(connection);
    }
    if (const auto aborted = job->second.tasks.find(effects.aborted.value_or(-1));
        aborted != job->second.tasks.end()) {
      kill_task_(job_id, aborted->second);
    }
    const bool has_left = effects.has_left;
    Apply(job_id, job->second, std::move(effects));
    if (has_left) {
      TakeEnds(job_id);
    }
  }
}

// Of ranks that have ended already.
void PmiServer::TakeEnds(const std::string& job_id) {
  const auto job = jobs_.find(job_id);
  for (const auto& [rank, since] : std::map(job->second.leaving)) {
    take_end_(job_id, job->second.tasks[rank]);
  }
}

// It reads the end of our answers.  What it says still must not kill it: its exit code is to come.
awaitable<void> PmiServer::LetGo(std::shared_ptr<Connection> connection) {
  std::error_code ignored;
  connection->socket.shutdown(asio::socket_base::shutdown_send, ignored);
  for (bool is_open = true; is_open;) {
    const std::optional<std::string> line = co_await Connection::ReadLine(connection);
    is_open = line.has_value();
  }
}

void PmiServer::Apply(const std::string& job_id, Job& job, PmiRanks::Effects effects) {
  for (auto& [rank, text] : effects.lines) {
    if (const auto connection = job.by_rank[rank].lock()) {
      Connection::Push(connection, std::move(text));
    }
  }
  if (effects.fence) {
    proto::AgentMessage message;
    message.mutable_fence()->set_job_id(job_id);
    *message.mutable_fence()->mutable_fence() = *std::move(effects.fence);
    outbox_.Push(std::move(message));
  }
}

bool PmiServer::Judge(const task::Spec& spec, task::Ended& ended) {
  const auto job = spec.pmi_socket.empty() ? jobs_.end() : jobs_.find(spec.job_id);
  if (job == jobs_.end() || !job->second.ranks || ended.gram_code != 0) {
    return true;
  }
  const int rank = RankOf(job->second, spec);
  if (const auto code = job->second.ranks->AbortCode(rank)) {
    ended.code = *code & 0xff;
    ended.signal = 0;
  }
  const bool is_well = ended.code == 0 && ended.signal == 0;
  if (is_well && job->second.ranks->IsLeaving(rank)) {
    // A program leaves MPI_Finalize after 2 s though its server has not heard it: libpmix does not wait any longer.
    const auto now = std::chrono::steady_clock::now();
    if (now - job->second.leaving.try_emplace(rank, now).first->second < kLeavesWithin) {
      return false;
    }
  }
  job->second.leaving.erase(rank);
  if (is_well && job->second.ranks->IsInside(rank)) {
    ended.gram_code = task::kExecutionFailed;
    ended.reason = job->second.ranks->AbortCode(rank) ? "it called MPI_Abort"
                                                      : "it ended inside MPI, without MPI_Finalize";
  }
  return true;
}

void PmiServer::OnWelcome() {
  for (auto& [job_id, job] : jobs_) {
    if (job.ranks) {
      PmiRanks::Effects again;
      again.fence = job.ranks->pending();
      Apply(job_id, job, std::move(again));
    }
  }
}

void PmiServer::Handle(const proto::ServerMessage& message) {
  if (message.has_release()) {
    jobs_[message.release().job_id()].release = message.release();
  } else if (message.has_fence()) {
    if (const auto job = jobs_.find(message.fence().job_id());
        job != jobs_.end() && job->second.ranks) {
      PmiRanks::Effects effects = job->second.ranks->OnFenceDone(message.fence().fence());
      if (!effects.complaint.empty()) {
        spdlog::error("{} job={}", effects.complaint, job->first);
      }
      Apply(job->first, job->second, std::move(effects));
    }
  } else if (message.has_forget() && message.forget().task() == 0) {
    jobs_.erase(message.forget().job_id());
  }
}

}  // namespace sekisho::agent
