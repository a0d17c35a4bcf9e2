// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/jobmanagers.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>

#include <fmt/format.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <openssl/rand.h>
#include <sys/wait.h>
#include <asio/buffer.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>

#include "common/caught.h"
#include "common/identity/proxy.h"
#include "common/log.h"
#include "common/tls/client_tls.h"
#include "gatekeeper/errors.h"

namespace sekisho::gatekeeper {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr int kFailuresMax = 6;           // in a row, then it waits to be asked for
constexpr milliseconds kCleanAfter{500};  // up for so long, and told to end: that was no failure
constexpr seconds kHealthyAfter{60};      // up for so long: earlier failures are forgotten
constexpr seconds kTermGrace{5};          // between SIGTERM and SIGKILL
constexpr seconds kClockSetBack{5};       // more than it is corrected by in small steps
constexpr int kUnansweredMax = 4;
constexpr int kMessageBytesMax = 4 << 20;
constexpr int kWindowInside = 128 << 10;  // of a call

std::string NewToken() {
  std::array<unsigned char, 32> bytes;
  CHECK(RAND_bytes(bytes.data(), bytes.size()) == 1);
  std::string text;
  for (const unsigned char byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

std::string Ended(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("killed by signal {}", WTERMSIG(status));
  }
  switch (const int code = WEXITSTATUS(status)) {
    case 122:
      return "the account's user or groups could not be set";
    case 126:
      return "the program cannot be executed";
    case 127:
      return "there is no such program";
    default:
      return fmt::format("it exited with code {}", code);
  }
}

// Calls go over a pair that the child was born with: no path is followed as root, and nobody else
// of the account can be at the other end.
std::shared_ptr<grpc::Channel> ChannelOver(int fd) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  // So much of an answer stays here that its caller does not take: of each call, and nothing is far
  // on this host.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowInside);
  return grpc::CreateCustomInsecureChannelFromFd("jobmanager", fd, arguments);
}

}  // namespace

struct JobManagers::Manager {
  Manager(Loop& loop, std::string name)
      : account(std::move(name)), changed(loop), control(loop), ended(loop), attention(loop) {}

  enum class State { kStopped, kStarting, kReady, kWaiting };

  const std::string account;
  State state = State::kStopped;
  Signal changed;
  pid_t pid = -1;
  asio::local::stream_protocol::socket control;
  asio::posix::stream_descriptor ended;
  asio::steady_timer attention;
  std::string token;
  std::shared_ptr<grpc::Channel> channel;
  absl::Status failure;  // of the last start
  uint64_t attempts = 0;
  int failures = 0;
  bool is_clean = false;  // the last one ended because it was told to
  bool is_late = false;   // the last start took too long: ended by us
  int unanswered = 0;     // questions in a row
  bool answers = false;   // one of an earlier version never does
  Clock::time_point next_start{};
};

int FailuresAfter(int failures, bool is_clean, Clock::duration lived) {
  if (is_clean && lived > kCleanAfter) {
    return 0;
  }
  return lived > kHealthyAfter ? 1 : failures + 1;
}

milliseconds BackOff(int failures) {
  return failures <= 0 ? milliseconds(0)
                       : std::min(milliseconds(30'000),
                                  milliseconds(100) * (1 << std::min(failures - 1, 12)));
}

std::vector<std::string> LeadingAccounts(const std::string& state_directory) {
  std::vector<std::string> accounts;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(state_directory, error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    if (is_regular_file(symlink_status(entry->path() / "leads", unreadable))) {
      accounts.push_back(entry->path().filename());
    }
  }
  std::sort(accounts.begin(), accounts.end());
  return accounts;
}

JobManagers::JobManagers(Loop& loop, Options options) : loop_(loop), options_(std::move(options)) {}
JobManagers::~JobManagers() = default;

std::string JobManagers::TokenOf(const std::string& account) const {
  const auto found = managers_.find(account);
  return found == managers_.end() ? "" : found->second->token;
}

awaitable<absl::StatusOr<std::shared_ptr<grpc::Channel>>> JobManagers::Get(std::string account) {
  auto& entry = managers_[account];
  if (!entry) {
    entry = std::make_shared<Manager>(loop_, account);
  }
  const auto manager = entry;
  const uint64_t seen = manager->attempts;
  const auto deadline = Clock::now() + options_.start_timeout;

  while (!is_stopping_) {
    if (manager->state == Manager::State::kReady) {
      co_return manager->channel;
    }
    // A start failed: this call's own, or an earlier one that is not repeated soon.
    const bool is_far = manager->next_start > Clock::now() + seconds(2);
    if (!manager->failure.ok() && (manager->attempts > seen || is_far)) {
      co_return manager->failure;
    }
    if (manager->state == Manager::State::kStopped) {
      manager->state = Manager::State::kWaiting;
      co_spawn(loop_, Keep(manager), [manager](const std::exception_ptr& thrown) {
        Logged("the jobmanager of account=" + manager->account)(thrown);
        manager->state = Manager::State::kStopped;  // the next call has another try
        manager->changed.Notify();
      });
    }
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      co_return NotReady(account);
    }
    co_await manager->changed.WaitFor(left);
  }
  co_return errors::Stopping();
}

absl::Status JobManagers::NotReady(const std::string& account) const {
  return errors::CannotStart(account, fmt::format("it was not ready within {} s",
                                                  options_.start_timeout.count() / 1000.0));
}

void JobManagers::StartLeading() {
  for (const std::string& account : LeadingAccounts(options_.state_directory)) {
    spdlog::info("jobmanager leads on account={}", account);
    co_spawn(
        loop_,
        [](JobManagers* self, std::string name) -> awaitable<void> {
          (co_await self->Get(std::move(name))).status().IgnoreError();  // Keep() has said why
        }(this, account),
        Logged("starting the jobmanager of account=" + account));
  }
}

awaitable<void> JobManagers::Keep(std::shared_ptr<Manager> manager) {
  while (!is_stopping_ && manager->failures < kFailuresMax) {
    if (const auto wait = manager->next_start - Clock::now(); wait.count() > 0) {
      co_await Sleep(loop_, std::chrono::ceil<milliseconds>(wait));
      continue;
    }
    const auto lived =
        co_await Caught("the jobmanager of account=" + manager->account, KeepOne(manager));
    manager->state = Manager::State::kWaiting;
    manager->channel.reset();
    if (!lived.ok()) {
      co_await End(manager, false);  // it may be there yet, and its lock would refuse the next one
    }
    manager->attention.cancel();
    manager->failures =
        FailuresAfter(manager->failures, manager->is_clean, lived.value_or(Clock::duration(0)));
    manager->next_start = Clock::now() + BackOff(manager->failures);
    manager->changed.Notify();
  }
  manager->failures = kFailuresMax - 1;  // asked for again: one start at a time
  manager->state = Manager::State::kStopped;
  manager->changed.Notify();
}

awaitable<absl::StatusOr<Clock::duration>> JobManagers::KeepOne(std::shared_ptr<Manager> manager) {
  manager->state = Manager::State::kStarting;
  const auto begun = Clock::now();
  manager->failure =
      co_await Caught("starting the jobmanager of account=" + manager->account, Start(manager));
  ++manager->attempts;
  const bool is_up = manager->failure.ok() && !is_stopping_;
  if (is_up) {
    spdlog::info("jobmanager ready account={} pid={} ms={}", manager->account, manager->pid,
                 std::chrono::duration_cast<milliseconds>(Clock::now() - begun).count());
    manager->state = Manager::State::kReady;
    manager->changed.Notify();
    co_spawn(loop_, Attend(manager),
             Logged("attending the jobmanager of account=" + manager->account));
    co_spawn(loop_, Hear(manager), Logged("hearing the jobmanager of account=" + manager->account));
  } else {
    manager->channel.reset();  // for which it waits
  }
  std::string why = co_await End(manager, is_up);
  if (is_up && manager->answers && manager->unanswered > kUnansweredMax) {
    why = "it was there and answered nothing; " + why;
  }
  if (!manager->failure.ok()) {
    if (manager->is_late) {
      manager->failure = NotReady(manager->account);
    } else if (!why.empty()) {
      manager->failure = errors::CannotStart(manager->account, why);
    }
    spdlog::error("jobmanager does not start account={}: {}", manager->account,
                  Message(manager->failure));
  } else if (!is_stopping_) {
    spdlog::warn("jobmanager ended account={}: {}", manager->account, why);
  }
  co_return is_up ? Clock::now() - begun : Clock::duration(0);
}

awaitable<absl::Status> JobManagers::Start(std::shared_ptr<Manager> manager) {
  CO_ASSIGN_OR_RETURN(const Account account, FindAccount(manager->account));
  CO_ASSIGN_OR_RETURN(const std::string state, AccountDirectory(options_.state_directory, account));
  manager->token = NewToken();
  CO_ASSIGN_OR_RETURN(const proto::Handover handover,
                      MakeHandover(*manager));  // before there is anybody to give it to
  CO_ASSIGN_OR_RETURN(
      const Child child,
      Launch(account, {options_.program, "--account", account.name, "--state", state, "--config",
                       options_.config, "--control", "3", "--calls", "4"}));
  manager->pid = child.pid;
  manager->control.assign(asio::local::stream_protocol(), child.control_fd);
  manager->ended.assign(child.pid_fd);
  manager->channel = ChannelOver(child.calls_fd);

  // A jobmanager that hangs is ended when its time is up, which ends the wait below.
  manager->is_late = false;
  asio::steady_timer timeout(loop_, options_.start_timeout);
  timeout.async_wait([manager](const std::error_code& error) {
    if (!error && manager->pid > 0) {  // not reaped: the number is still its own
      manager->is_late = true;
      kill(manager->pid, SIGKILL);
    }
  });
  CO_RETURN_IF_ERROR(co_await HandOver(manager, handover));
  co_return absl::OkStatus();
}

awaitable<absl::Status> JobManagers::HandOver(std::shared_ptr<Manager> manager,
                                              proto::Handover handover) {
  const auto failed = errors::CannotStart(manager->account, "it ended before it was ready");
  char byte = 0;
  auto [asked, asked_bytes] =
      co_await asio::async_read(manager->control, asio::buffer(&byte, 1), kAsTuple);
  if (asked || byte != 'k') {
    co_return failed;
  }
  CO_RETURN_IF_ERROR(co_await SendHandover(manager, std::move(handover)));
  auto [ready, ready_bytes] =
      co_await asio::async_read(manager->control, asio::buffer(&byte, 1), kAsTuple);
  co_return ready || byte != 'r' ? failed : absl::OkStatus();
}

// With a credential that whoever steals it can use for some hours, and for this account's jobs
// only.
absl::StatusOr<proto::Handover> JobManagers::MakeHandover(const Manager& manager) const {
  const auto credential =
      identity::CreateProxy(options_.service,
                            {.kind = identity::CredentialKind::kIndependentProxy,
                             .path_length = 0,
                             .life = options_.credential_life,
                             .name = manager.account},
                            tls::SystemClock());
  if (!credential.ok()) {
    return errors::CannotStart(manager.account, "no proxy of the service certificate for it: " +
                                                    Message(credential.status()));
  }
  proto::Handover handover = options_.handover;
  handover.set_certificate_pem(credential->ChainPem());
  handover.set_key_pem(credential->KeyPem());
  handover.set_token(manager.token);
  return handover;
}

awaitable<absl::Status> JobManagers::SendHandover(std::shared_ptr<Manager> manager,
                                                  proto::Handover handover) {
  const std::string body = handover.SerializeAsString();
  std::string message;
  for (int shift = 24; shift >= 0; shift -= 8) {
    message += static_cast<char>(body.size() >> shift);
  }
  message += body;
  const auto [error, bytes] =
      co_await asio::async_write(manager->control, asio::buffer(message), kAsTuple);
  if (error) {
    co_return errors::CannotStart(manager->account, "it ended before it was ready");
  }
  co_return absl::OkStatus();
}

// As long as the process lives: a new credential long before the last one ends; and its end if it
// hangs, since another one goes on from what is on disk, and whoever waits for a program that this
// one leads would wait for ever.
awaitable<void> JobManagers::Attend(std::shared_ptr<Manager> manager) {
  const pid_t pid = manager->pid;
  auto renewed = Clock::now();
  auto renewed_at = std::chrono::system_clock::now();  // by which it ends, however the clock is set
  manager->unanswered = 0;
  manager->answers = false;
  while (co_await Ask(*manager) && manager->pid == pid) {
    // Beats are counted, not seconds: if all of the host stood still, nobody is to blame.
    if (manager->answers && manager->unanswered > kUnansweredMax) {
      kill(pid, SIGKILL);
      co_return;
    }
    manager->attention.expires_after(options_.beat);
    const auto [error] = co_await manager->attention.async_wait(kAsTuple);
    if (error || manager->pid != pid) {
      co_return;
    }
    const auto by_wall = std::chrono::system_clock::now() - renewed_at;
    if (std::max<std::chrono::nanoseconds>(Clock::now() - renewed, by_wall) >
            options_.credential_life / 4 ||
        by_wall < -kClockSetBack) {
      renewed = Clock::now();
      renewed_at = std::chrono::system_clock::now();
      const auto handover = MakeHandover(*manager);
      absl::Status sent = handover.status();
      if (handover.ok()) {
        sent = co_await SendHandover(manager, *handover);
      }
      if (!sent.ok()) {
        spdlog::error("jobmanager gets no new credential account={}: {}", manager->account,
                      Message(sent));
      }
    }
  }
}

// That it is there; and that it has been told to end.  Then calls wait for the next one, and the
// connection of this one closes with its last call: at our end, which has taken all answers.
awaitable<void> JobManagers::Hear(std::shared_ptr<Manager> manager) {
  const pid_t pid = manager->pid;
  for (;;) {
    char word = 0;
    const auto [error, bytes] =
        co_await asio::async_read(manager->control, asio::buffer(&word, 1), kAsTuple);
    if (error || manager->pid != pid) {
      co_return;
    }
    manager->unanswered = 0;
    manager->answers = true;
    if (word == 's') {
      manager->state = Manager::State::kWaiting;
      manager->channel.reset();
    }
  }
}

// A handover of no bytes is the question.
awaitable<bool> JobManagers::Ask(Manager& manager) {
  ++manager.unanswered;
  constexpr std::array<char, 4> kQuestion = {};
  const auto [error, bytes] =
      co_await asio::async_write(manager.control, asio::buffer(kQuestion), kAsTuple);
  co_return !error;
}

// Waits for the end of the process (asks for it first, unless it `is_wanted`) and says how it
// ended.
awaitable<std::string> JobManagers::End(std::shared_ptr<Manager> manager, bool is_wanted) {
  if (manager->pid < 0) {
    co_return "";
  }
  asio::steady_timer kill_later(loop_);
  if (!manager->ended.is_open()) {  // its start has failed half way: nothing would say when it ends
    kill(manager->pid, SIGKILL);
  }
  if (!is_wanted) {
    kill(manager->pid, SIGTERM);
    kill_later.expires_after(kTermGrace);
    kill_later.async_wait([manager, pid = manager->pid](const std::error_code& error) {
      if (!error && manager->pid == pid) {
        kill(pid, SIGKILL);
      }
    });
  }
  co_await manager->ended.async_wait(asio::posix::stream_descriptor::wait_read, kAsTuple);
  int status = 0;
  waitpid(manager->pid, &status, 0);
  manager->is_clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  std::error_code ignored;
  manager->ended.close(ignored);
  manager->control.close(ignored);
  manager->pid = -1;
  co_return Ended(status);
}

awaitable<void> JobManagers::Stop() {
  is_stopping_ = true;
  for (const auto& [account, manager] : managers_) {
    if (manager->pid > 0) {
      kill(manager->pid, SIGTERM);
    }
    manager->changed.Notify();
  }
  const auto give_up = Clock::now() + kTermGrace;
  for (const auto& [account, manager] : managers_) {
    while (manager->pid > 0) {
      const auto left = std::chrono::ceil<milliseconds>(give_up - Clock::now());
      if (left.count() <= 0) {
        kill(manager->pid, SIGKILL);
      }
      co_await manager->changed.WaitFor(std::max(left, milliseconds(100)));
    }
  }
}

}  // namespace sekisho::gatekeeper
