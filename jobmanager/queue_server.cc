// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/queue_server.h"

#include <algorithm>
#include <optional>

#include <asio/ip/tcp.hpp>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "common/caller_refused.h"
#include "common/log.h"
#include "jobmanager/errors.h"

namespace sekisho::jobmanager {
namespace {

using asio::ip::tcp;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kFresh{2'000};       // heard of so lately: no ping before a call
constexpr milliseconds kPing{2'000};
constexpr milliseconds kConnect{2'000};
constexpr milliseconds kManyAnswer{50'000};  // less than a client's patience
constexpr milliseconds kRedialMin{200};
constexpr milliseconds kRedialMax{5'000};

struct Address {
  std::string host;
  std::string port;
};

Address Split(const std::string& text) {
  const auto colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return {host, colon == std::string::npos ? "" : text.substr(colon + 1)};
}

void TakeEach(const proto::JobEvent& event, const std::function<void(const proto::JobEvent&)>& take) { take(event); }
void TakeEach(const proto::EventGroup& group, const std::function<void(const proto::JobEvent&)>& take) {
  std::for_each(group.event().begin(), group.event().end(), take);
}

// It judged nothing of what was asked: the site's own certificates and lists are to be mended.
std::optional<std::string> WhyWeAreRefused(const absl::Status& status) {
  const std::string said = Message(status);
  return said.starts_with(kCallerRefused) ? std::optional(said.substr(sizeof kCallerRefused - 1)) : std::nullopt;
}

}  // namespace

bool IsVerdict(const absl::Status& status) {
  if (WhyWeAreRefused(status)) {
    return false;
  }
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
      return GramCode(status) != 0 || !Remedy(status).empty();
    default:
      return true;
  }
}

QueueServer::QueueServer(Loop& loop, Options options, Dial dial, std::function<absl::Status()> tls_verdict)
    : loop_(loop),
      options_(std::move(options)),
      dial_(std::move(dial)),
      tls_verdict_(std::move(tls_verdict)),
      channel_(dial_()),
      stub_(proto::Queue::NewStub(channel_)) {}

void QueueServer::Heard() { heard_ = Clock::now(); }

// TCP would try to revive a silent connection for minutes, though a new one may come through at once.
void QueueServer::Redial() {
  channel_ = dial_();
  stub_ = proto::Queue::NewStub(channel_);
  FollowAnew();
}

void QueueServer::FollowAnew() {
  if (end_events_) {
    end_events_();
  }
}

awaitable<absl::Status> QueueServer::Ping() {
  const auto reply = co_await rpc::Call<Async, proto::StatusRequest, proto::StatusReply>(
      loop_, stub_->async(), &Async::Status, proto::StatusRequest(), {.timeout = kPing});
  if (reply.ok() || IsVerdict(reply.status())) {
    Heard();
    co_return absl::OkStatus();
  }
  co_return reply.status();
}

awaitable<absl::Status> QueueServer::Reach() {
  if (channel_->GetState(true) == GRPC_CHANNEL_READY && Clock::now() - heard_ < kFresh) {
    co_return absl::OkStatus();
  }
  absl::Status refused;
  // Only here, while a user waits for a connection that is not there, is anything asked repeatedly.
  const auto deadline = Clock::now() + options_.reach;
  for (milliseconds pause{5}; Clock::now() < deadline; pause = std::min(pause * 2, milliseconds(100))) {
    if (channel_->GetState(true) == GRPC_CHANNEL_READY) {
      const auto asked = channel_;
      const absl::Status alive = co_await Ping();
      if (alive.ok()) {
        co_return absl::OkStatus();
      }
      // Our user has gone: that says nothing about the connection, on which others are.
      const asio::cancellation_state mine = co_await asio::this_coro::cancellation_state;
      if (mine.cancelled() != asio::cancellation_type::none) {
        co_return alive;
      }
      const auto why = WhyWeAreRefused(alive);
      refused = why ? errors::JobmanagerRefused(options_.address, options_.site, *why) : absl::OkStatus();
      if (!why && channel_ == asked) {  // nobody else has meanwhile
        Redial();
      }
    }
    co_await Sleep(loop_, pause);
  }
  CO_RETURN_IF_ERROR(refused);
  CO_RETURN_IF_ERROR(co_await Probe());
  const absl::Status verdict = tls_verdict_();
  co_return verdict.ok() || verdict.code() == absl::StatusCode::kUnavailable
      ? errors::QueueServerDown(options_.address, options_.site, "the port answers, the server does not")
      : errors::QueueServerStranger(options_.address, options_.site, Message(verdict));
}

std::string QueueServer::WhySilent(const absl::Status& status) const {
  if (const auto why = WhyWeAreRefused(status)) {
    return "the queue server refuses this site's jobmanager: " + *why;
  }
  const absl::Status verdict = tls_verdict_();
  return verdict.ok() || verdict.code() == absl::StatusCode::kUnavailable
             ? "the queue server does not answer; it is asked again"
             : "what answers as queue server is not trusted: " + Message(verdict);
}

awaitable<absl::Status> QueueServer::Probe() {
  const Address address = Split(options_.address);
  tcp::resolver resolver(loop_);
  const auto [unresolved, endpoints] =
      co_await resolver.async_resolve(address.host, address.port, kAsTuple);
  if (unresolved) {
    co_return errors::QueueServerDown(options_.address, options_.site,
                                      "its name cannot be resolved (" + unresolved.message() + ")");
  }
  std::error_code failure = asio::error::timed_out;
  for (const auto& entry : endpoints) {
    // The timer's: who waits may be gone when it fires.
    const auto socket = std::make_shared<tcp::socket>(loop_);
    const auto is_late = std::make_shared<bool>(false);
    asio::steady_timer timeout(loop_, kConnect);
    timeout.async_wait([socket, is_late](const std::error_code& error) {
      if (!error) {
        *is_late = true;
        std::error_code ignored;
        socket->cancel(ignored);
      }
    });
    const auto [error] = co_await socket->async_connect(entry.endpoint(), kAsTuple);
    timeout.cancel();
    if (!error) {
      co_return absl::OkStatus();
    }
    failure = *is_late ? make_error_code(asio::error::timed_out) : error;
  }
  co_return failure == asio::error::connection_refused
      ? errors::QueueServerDown(options_.address, options_.site, "the connection is refused")
      : errors::PinholeClosed(options_.address, options_.site);
}

awaitable<absl::StatusOr<proto::SubmitReply>> QueueServer::Submit(const proto::SignedRequest& request) {
  proto::QueueRequest message;
  *message.mutable_request() = request;
  message.set_account(options_.account);
  auto reply = co_await rpc::Call<Async, proto::QueueRequest, proto::SubmitReply>(
      loop_, stub_->async(), &Async::Submit, std::move(message), {.timeout = options_.answer});
  if (reply.ok() || IsVerdict(reply.status())) {
    Heard();
  }
  co_return reply;
}

awaitable<absl::StatusOr<proto::CommandReply>> QueueServer::Command(const proto::SignedRequest& request) {
  proto::QueueRequest message;
  *message.mutable_request() = request;
  message.set_account(options_.account);
  auto reply = co_await rpc::Call<Async, proto::QueueRequest, proto::CommandReply>(
      loop_, stub_->async(), &Async::Command, std::move(message), {.timeout = options_.answer});
  if (reply.ok() || IsVerdict(reply.status())) {
    Heard();
  }
  co_return reply;
}

awaitable<absl::StatusOr<proto::ManyReply>> QueueServer::Many(ManyMethod method, proto::SignedRequest request) {
  proto::QueueRequest message;
  *message.mutable_request() = std::move(request);
  message.set_account(options_.account);
  auto reply = co_await rpc::Call<Async, proto::QueueRequest, proto::ManyReply>(
      loop_, stub_->async(), method, std::move(message), {.timeout = kManyAnswer});
  if (reply.ok() || IsVerdict(reply.status())) {
    Heard();
  }
  co_return reply;
}

awaitable<absl::StatusOr<proto::ManyReply>> QueueServer::SubmitMany(const proto::SignedRequest& request) {
  return Many(&Async::SubmitMany, request);
}

awaitable<absl::StatusOr<proto::ManyReply>> QueueServer::CommandMany(const proto::SignedRequest& request) {
  return Many(&Async::CommandMany, request);
}

awaitable<absl::StatusOr<proto::AdministerReply>> QueueServer::Administer(const proto::SignedRequest& request) {
  proto::QueueRequest message;
  *message.mutable_request() = request;
  message.set_account(options_.account);
  co_return co_await rpc::Call<Async, proto::QueueRequest, proto::AdministerReply>(
      loop_, stub_->async(), &Async::Administer, std::move(message), {.timeout = options_.answer});
}

awaitable<absl::StatusOr<proto::StatusReply>> QueueServer::States(std::vector<std::string> job_ids) {
  proto::StatusRequest request;
  request.mutable_job_id()->Assign(job_ids.begin(), job_ids.end());
  request.set_unknown_only(true);
  co_return co_await rpc::Call<Async, proto::StatusRequest, proto::StatusReply>(
      loop_, stub_->async(), &Async::Status, std::move(request), {.timeout = options_.answer});
}

awaitable<absl::StatusOr<proto::SiteInfo>> QueueServer::Site() {
  co_return co_await rpc::Call<Async, proto::SiteRequest, proto::SiteInfo>(
      loop_, stub_->async(), &Async::Site, proto::SiteRequest(), {.timeout = options_.answer});
}

awaitable<absl::StatusOr<proto::LinksReply>> QueueServer::Links(const proto::LinksRequest& request) {
  co_return co_await rpc::Call<Async, proto::LinksRequest, proto::LinksReply>(
      loop_, stub_->async(), &Async::Links, request, {.timeout = options_.answer});
}

QueueServer::OutputCall QueueServer::Output(const proto::OutputRequest& request) {
  return rpc::Start<rpc::ClientReader<proto::OutputChunk>>(
      loop_, {}, [&](auto& call) { stub_->async()->Output(&call.context(), &request, &call); });
}

QueueServer::InputCall QueueServer::Input() {
  return rpc::Start<rpc::ClientWriter<proto::InputChunk, proto::InputReply>>(
      loop_, {}, [&](auto& call) { stub_->async()->Input(&call.context(), &call.reply, &call); });
}

QueueServer::PartCall QueueServer::Part() {
  return rpc::Start<rpc::ClientDuplex<proto::PartDown, proto::PartUp>>(
      loop_, {}, [&](auto& call) { stub_->async()->Part(&call.context(), &call); });
}

QueueServer::UploadCall QueueServer::Upload() {
  return rpc::Start<rpc::ClientDuplex<proto::UploadRequest, proto::UploadReply>>(
      loop_, {}, [&](auto& call) { stub_->async()->Upload(&call.context(), &call); });
}

awaitable<absl::StatusOr<proto::DelegationOffer>> QueueServer::Delegation(proto::DelegationRequest request) {
  co_return co_await rpc::Call<Async, proto::DelegationRequest, proto::DelegationOffer>(
      loop_, stub_->async(), &Async::Delegation, std::move(request), {.timeout = options_.answer});
}

QueueServer::FilesCall QueueServer::Files(const proto::SignedRequest& request) {
  proto::QueueRequest message;
  *message.mutable_request() = request;
  message.set_account(options_.account);
  return rpc::Start<rpc::ClientReader<proto::FilePiece>>(
      loop_, {}, [&](auto& call) { stub_->async()->Files(&call.context(), &message, &call); });
}

QueueServer::HopsCall QueueServer::Diagnose() {
  const proto::DiagnoseRequest request;
  return rpc::Start<rpc::ClientReader<proto::Hop>>(
      loop_, {.timeout = options_.answer},
      [&](auto& call) { stub_->async()->Diagnose(&call.context(), &request, &call); });
}

// One stream of events, to its end.
template <typename Message>
awaitable<absl::Status> QueueServer::Hear(EventsMethod<Message> method, uint64_t position,
                                          std::function<void(const proto::JobEvent&)> take) {
  proto::EventsRequest request;
  request.set_account(options_.account);
  request.set_after_sequence(position);
  const auto call = rpc::Start<rpc::ClientReader<Message>>(loop_, {.wait_for_ready = true}, [&](auto& started) {
    (stub_->async()->*method)(&started.context(), &request, &started);
  });
  end_events_ = [&call = *call] { call.Cancel(); };
  Message message;
  while (co_await call->Read(message)) {
    Heard();
    TakeEach(message, take);
  }
  end_events_ = nullptr;
  co_return co_await call->Finish();
}

awaitable<void> QueueServer::Follow(std::function<uint64_t()> position,
                                    std::function<void(const proto::JobEvent&)> take) {
  milliseconds redial = kRedialMin;
  const auto heard = [&redial, &take](const proto::JobEvent& event) {
    redial = kRedialMin;
    take(event);
  };
  for (;;) {
    const uint64_t from = position();
    absl::Status status = co_await Hear<proto::EventGroup>(&Async::EventGroups, from, heard);
    if (absl::IsUnimplemented(status)) {  // a queue server of before
      status = co_await Hear<proto::JobEvent>(&Async::Events, from, heard);
    }
    spdlog::warn("events of the queue server ended, dialling again address={}: {}", options_.address,
                 Printable(Message(status)));
    co_await Sleep(loop_, redial);
    redial = std::min(redial * 2, kRedialMax);
  }
}

}  // namespace sekisho::jobmanager
