// SPDX-License-Identifier: Apache-2.0
#include "client/site/session.h"

#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <grpcpp/create_channel_posix.h>
#include <openssl/rand.h>

#include "client/site/harmless.h"
#include "client/site/reach.h"
#include "common/call_metadata.h"
#include "common/identity/signed_request.h"
#include "common/identity/trust_store.h"
#include "common/rpc_window.h"

namespace sekisho::client {
namespace {

constexpr std::chrono::seconds kHandshakeTime{10};

// Channels live as long as the process.  When the last one goes, gRPC 1.51 ends the threads that deliver
// callbacks, and a channel opened soon after meets their remains: one `sites` in ten aborted.
// Sessions with several sites are opened at once, by threads.
void Keep(std::shared_ptr<grpc::Channel> channel) {
  struct Kept {
    std::shared_ptr<grpc::Channel> channel;
    Kept* next;
  };
  static std::atomic<Kept*> kept;
  auto* const own = new Kept{std::move(channel), kept.load()};
  while (!kept.compare_exchange_weak(own->next, own)) {
  }
}

absl::StatusOr<std::string> TrustDirectory() {
  auto directory = identity::FindTrustDirectory();
  if (!directory.ok()) {
    return Refuse(absl::StatusCode::kUnauthenticated, 7, Message(directory.status()),
                  "ask your site's administrator for the CA directory, and set X509_CERT_DIR");
  }
  return *std::move(directory);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Open(Loop& loop, const Target& target) {
  std::unique_ptr<Session> session(new Session(loop, target));
  ASSIGN_OR_RETURN(session->trust_directory_, TrustDirectory());
  const auto fd = Dial(target);
  if (!fd.ok()) {
    RETURN_IF_ERROR(session->LoadCredential().status());  // nothing helps before there is a proxy
    return fd.status();
  }
  RETURN_IF_ERROR(session->Connect(*fd));
  return session;
}

// `fd`: to the gatekeeper; ours from here on.
absl::Status Session::Connect(int fd) {
  const Contact& contact = target_.contact;
  absl::Status credential;
  auto link = tls::Link::Open(
      loop_, fd,
      [&] {
        auto loaded = LoadCredential();
        credential = loaded.status();
        return loaded;
      },
      trust_directory_, {contact.host, contact.subject}, std::chrono::steady_clock::now() + kHandshakeTime);
  RETURN_IF_ERROR(credential);
  if (!link.ok()) {
    return ExplainHandshake(target_, link.status());
  }
  link_ = *std::move(link);
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, contact.Address());
  // A link that is cut without a word is found, by Dial()'s kSilenceMs too.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetMaxReceiveMessageSize(16 << 20);
  rpc::SetWindow(arguments);
  channel_ = grpc::CreateCustomInsecureChannelFromFd(contact.Address(), link_->TakePlainEnd(), arguments);
  Keep(channel_);
  if (stub_ != nullptr) {
    lost_.push_back(std::move(stub_));
  }
  stub_ = proto::JobService::NewStub(channel_);
  return absl::OkStatus();
}

awaitable<absl::Status> Session::OpenAgain() {
  struct Dialled {
    explicit Dialled(Loop& loop) : done(loop) {}
    Signal done;
    std::optional<absl::StatusOr<int>> fd;
  };
  // A silent firewall keeps a connect waiting, and the loop has Ctrl-C to hear.
  auto dialled = std::make_shared<Dialled>(loop_);
  std::thread([dialled, &loop = loop_, target = target_] {
    absl::StatusOr<int> fd = Dial(target);
    asio::post(loop, [dialled, fd] {
      dialled->fd = fd;
      dialled->done.Notify();
    });
  }).detach();
  while (!dialled->fd) {
    co_await dialled->done.Wait();
  }
  CO_RETURN_IF_ERROR(dialled->fd->status());
  co_return Connect(**dialled->fd);
}

absl::Status Session::Explain(const absl::Status& error) const {
  if (error.code() != absl::StatusCode::kUnavailable || GramCode(error) != 0 || !Remedy(error).empty()) {
    return error;
  }
  return Refuse(error.code(), 0,
                fmt::format("the connection to {} was lost before its answer: {}", target_.contact.Address(), Message(error)),
                "ask again: what is done already is not done twice");
}

absl::StatusOr<const identity::Credential*> Session::LoadCredential() {
  auto credential = identity::LoadUserCredential();
  if (!credential.ok()) {
    return Refuse(absl::StatusCode::kUnauthenticated, 7, Message(credential.status()),
                  "make a proxy: sekisho proxy init");
  }
  credential_ = *std::move(credential);
  return &credential_;
}

absl::StatusOr<proto::SignedRequest> Session::Sign(proto::RequestBody body) const {
  body.set_site(target_.site);
  body.set_gatekeeper_subject(gatekeeper_subject());
  body.set_service(target_.contact.service);
  body.set_account(target_.contact.account);
  body.set_time_ms(std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count());
  if (body.request_id().empty()) {
    body.set_request_id(NewRequestId());
  }
  ASSIGN_OR_RETURN(identity::SignedRequest made, identity::Sign(body.SerializeAsString(), credential_));
  proto::SignedRequest request;
  request.set_body(std::move(made.body));
  request.set_signature(std::move(made.signature));
  for (std::string& certificate : made.chain) {
    request.add_chain(std::move(certificate));
  }
  return request;
}

rpc::CallOptions Session::Options(std::chrono::milliseconds timeout) const {
  rpc::CallOptions options;
  options.timeout = timeout;
  options.metadata.emplace_back(metadata::kService, target_.contact.service);
  if (!target_.contact.account.empty()) {
    options.metadata.emplace_back(metadata::kAccount, target_.contact.account);
  }
  return options;
}

std::string JobName(const Target& target, const std::string& site, const std::string& id) {
  const std::string name = target.site.empty() ? target.contact.Address() : site;
  return Harmless(name + "/" + id);
}

std::string NewRequestId() {
  unsigned char bytes[16];
  CHECK(RAND_bytes(bytes, sizeof(bytes)) == 1);
  std::string text;
  for (const unsigned char byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

Loop& NewLoop() { return *new Loop; }

int RunOnLoop(Loop& loop, awaitable<int> body) {
  int result = 125;
  co_spawn(loop, std::move(body), [&](std::exception_ptr thrown, int code) {
    if (thrown) {
      std::rethrow_exception(thrown);
    }
    result = code;
    loop.stop();
  });
  loop.run();
  return result;
}

}  // namespace sekisho::client
