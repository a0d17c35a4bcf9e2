// SPDX-License-Identifier: Apache-2.0
#include "common/tls/link.h"

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <asio/local/stream_protocol.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/write.hpp>

#include "common/tls/judge_server.h"

namespace sekisho::tls {
namespace {

using identity::Chain;
using identity::Credential;
using identity::Deleter;
using Descriptor = asio::posix::stream_descriptor;
using Socket = asio::local::stream_protocol::socket;
using ContextPtr = std::unique_ptr<SSL_CTX, Deleter<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, Deleter<SSL_free>>;

constexpr size_t kPumpBytes = 128 * 1024;  // passed on at once: whoever takes them wakes once, not for each record
constexpr unsigned char kHttp2[] = {2, 'h', '2'};

// What OpenSSL writes to and reads from.
struct Wire {
  int fd;
  bool has_more = false;  // more follows what is written now: one packet may take both
};

// OpenSSL's own socket BIO writes without MSG_NOSIGNAL: a gatekeeper that goes would end the
// command.
Wire& WireOf(BIO* bio) { return *static_cast<Wire*>(BIO_get_data(bio)); }

int ReadSocket(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = recv(WireOf(bio).fd, data, static_cast<size_t>(size), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    BIO_set_retry_read(bio);
  }
  return static_cast<int>(got);
}

int WriteSocket(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const Wire& wire = WireOf(bio);
  const int flags = MSG_NOSIGNAL | (wire.has_more ? MSG_MORE : 0);
  const ssize_t sent = send(wire.fd, data, static_cast<size_t>(size), flags);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
    BIO_set_retry_write(bio);
  }
  return static_cast<int>(sent);
}

long ControlSocket(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO* NewSocketBio(Wire& wire) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_read(made, ReadSocket);
    BIO_meth_set_write(made, WriteSocket);
    BIO_meth_set_ctrl(made, ControlSocket);
    return made;
  }();
  BIO* bio = BIO_new(method);
  BIO_set_data(bio, &wire);
  BIO_set_init(bio, 1);
  return bio;
}

// What the verification, inside the handshake, needs and finds.
struct Judgement {
  const std::string& trust_directory;
  const ExpectedServer& expected;
  const Clock& clock;
  absl::StatusOr<identity::Identity> result = absl::UnavailableError("the handshake did not end");
};

int Verify(X509_STORE_CTX* store, void* context) {
  auto* judgement = static_cast<Judgement*>(context);
  Chain chain;
  STACK_OF(X509)* const presented = X509_STORE_CTX_get0_untrusted(store);  // with the leaf
  for (int i = 0; i < sk_X509_num(presented); ++i) {
    chain.push_back(identity::Share(sk_X509_value(presented, i)));
  }
  judgement->result =
      JudgeServer(chain, judgement->trust_directory, judgement->expected, judgement->clock());
  X509_STORE_CTX_set_error(store, judgement->result.ok() ? X509_V_OK : X509_V_ERR_CERT_UNTRUSTED);
  return judgement->result.ok() ? 1 : 0;
}

// Our credential, asked for when it is needed at the latest.
struct Presentation {
  const Link::CredentialSource& source;
  bool was_asked = false;
  absl::Status result;
};

absl::Status Use(SSL* ssl, const Link::CredentialSource& source) {
  ASSIGN_OR_RETURN(const Credential* const credential, source());
  bool is_good = SSL_use_certificate(ssl, credential->chain.front().get()) == 1 &&
                 SSL_use_PrivateKey(ssl, credential->key.get()) == 1;
  for (size_t i = 1; i < credential->chain.size(); ++i) {
    is_good = is_good && SSL_add1_chain_cert(ssl, credential->chain[i].get()) == 1;
  }
  return is_good ? absl::OkStatus()
                 : absl::FailedPreconditionError("TLS cannot use " + credential->source + ": " +
                                                 identity::LastOpenSslError());
}

// OpenSSL calls it when the server asks for our certificate.
int Present(SSL* ssl, void* context) {
  auto* presentation = static_cast<Presentation*>(context);
  if (!std::exchange(presentation->was_asked, true)) {
    presentation->result = Use(ssl, presentation->source);
  }
  return presentation->result.ok() ? 1 : 0;
}

SslPtr NewSsl(Judgement& judgement, Presentation& presentation) {
  const ContextPtr context(SSL_CTX_new(TLS_client_method()));
  CHECK(context != nullptr);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  CHECK(SSL_CTX_set1_groups_list(context.get(), "P-256:X25519:P-384") ==
        1);  // gRPC's own comes first
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(context.get(), Verify, &judgement);
  SSL_CTX_set_cert_cb(context.get(), Present, &presentation);
  SSL_CTX_set_alpn_protos(context.get(), kHttp2, sizeof(kHttp2));
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_default_read_buffer_len(context.get(), kPumpBytes);
  return SslPtr(SSL_new(context.get()));
}

bool IsAddress(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

// False: the connection broke, or the time is up.
bool ShakeHands(SSL* ssl, int fd, Link::Deadline deadline) {
  for (;;) {
    ERR_clear_error();
    const int done = SSL_connect(ssl);
    if (done == 1) {
      return true;
    }
    const int wanted = SSL_get_error(ssl, done);
    if (wanted != SSL_ERROR_WANT_READ && wanted != SSL_ERROR_WANT_WRITE) {
      return false;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd waiting{fd, static_cast<short>(wanted == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT), 0};
    if (left.count() <= 0 ||
        (poll(&waiting, 1, static_cast<int>(left.count())) < 0 && errno != EINTR)) {
      return false;
    }
  }
}

bool SpeaksHttp2(const SSL* ssl) {
  const unsigned char* protocol = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(ssl, &protocol, &size);
  return size == 2 && protocol[0] == 'h' && protocol[1] == '2';
}

}  // namespace

// The two directions.  Each is a coroutine that holds the pump; when one ends, both ends are shut.
struct Link::Pump {
  Pump(Loop& loop, std::unique_ptr<Wire> connected, SslPtr shaken, int plain)
      : wire(std::move(connected)),
        ssl(std::move(shaken)),
        network(loop, wire->fd),
        plain(loop, asio::local::stream_protocol(), plain) {}

  void Shut() {
    shutdown(network.native_handle(), SHUT_RDWR);
    shutdown(plain.native_handle(), SHUT_RDWR);
  }

  // Waits for what OpenSSL wants.  False: the connection is over.
  awaitable<bool> WaitFor(int result) {
    const int wanted = SSL_get_error(ssl.get(), result);
    if (wanted != SSL_ERROR_WANT_READ && wanted != SSL_ERROR_WANT_WRITE) {
      co_return false;
    }
    const auto ready = wanted == SSL_ERROR_WANT_READ ? Descriptor::wait_read : Descriptor::wait_write;
    const auto [error] = co_await network.async_wait(ready, kAsTuple);
    co_return !error;
  }

  static awaitable<void> In(std::shared_ptr<Pump> pump) {
    std::vector<char> buffer(kPumpBytes);
    for (bool is_open = true; is_open;) {
      size_t size = 0;
      int got = 1;
      while (got > 0 && size < buffer.size()) {
        ERR_clear_error();
        got = SSL_read(pump->ssl.get(), buffer.data() + size, static_cast<int>(buffer.size() - size));
        size += got > 0 ? static_cast<size_t>(got) : 0;
      }
      if (size > 0) {
        const auto [error, sent] =
            co_await asio::async_write(pump->plain, asio::buffer(buffer.data(), size), kAsTuple);
        is_open = !error;
      } else {
        is_open = co_await pump->WaitFor(got);
      }
    }
    pump->Shut();
  }

  static awaitable<void> Out(std::shared_ptr<Pump> pump) {
    std::vector<char> buffer(kPumpBytes);
    for (bool is_open = true; is_open;) {
      const auto [error, size] =
          co_await pump->plain.async_read_some(asio::buffer(buffer), kAsTuple);
      if (error) {
        break;
      }
      for (size_t done = 0; is_open && done < size;) {
        ERR_clear_error();
        pump->wire->has_more = size - done > SSL3_RT_MAX_PLAIN_LENGTH;  // one record a call
        const int sent =
            SSL_write(pump->ssl.get(), buffer.data() + done, static_cast<int>(size - done));
        if (sent > 0) {
          done += static_cast<size_t>(sent);
        } else {
          is_open = co_await pump->WaitFor(sent);
        }
      }
    }
    pump->Shut();
  }

  std::unique_ptr<Wire> wire;
  SslPtr ssl;
  Descriptor network;
  Socket plain;  // written to as a socket: when gRPC has closed its end, no SIGPIPE ends the command
};

absl::StatusOr<std::unique_ptr<Link>> Link::Open(Loop& loop, int fd,
                                                 const CredentialSource& credential,
                                                 const std::string& trust_directory,
                                                 const ExpectedServer& expected, Deadline deadline,
                                                 const Clock& clock) {
  Judgement judgement{trust_directory, expected, clock};
  Presentation presentation{credential, false, absl::OkStatus()};
  auto wire = std::make_unique<Wire>(Wire{fd});
  SslPtr ssl = NewSsl(judgement, presentation);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  BIO* const bio = NewSocketBio(*wire);
  SSL_set_bio(ssl.get(), bio, bio);
  if (!IsAddress(expected.host)) {
    SSL_set_tlsext_host_name(ssl.get(), expected.host.c_str());
  }
  SSL_connect(ssl.get());  // says hello; what comes of it, ShakeHands() sees
  Present(ssl.get(),
          &presentation);  // now, while the server works, unless its answer was here already
  const bool is_done =
      presentation.result.ok() && ShakeHands(ssl.get(), fd, deadline) && SpeaksHttp2(ssl.get());
  ERR_clear_error();
  if (!is_done || !judgement.result.ok()) {
    close(fd);
    RETURN_IF_ERROR(presentation.result);
    RETURN_IF_ERROR(judgement.result.status());
    return absl::UnavailableError("the server closed the connection during the handshake");
  }

  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  std::unique_ptr<Link> link(new Link);
  link->server_ = *std::move(judgement.result);
  link->plain_end_ = ends[0];
  link->pump_ = std::make_shared<Pump>(loop, std::move(wire), std::move(ssl), ends[1]);
  co_spawn(loop, Pump::In(link->pump_), Vital("what a server says"));
  co_spawn(loop, Pump::Out(link->pump_), Vital("what it says to a server"));
  return link;
}

Link::~Link() {
  pump_->Shut();
  if (plain_end_ >= 0) {
    close(plain_end_);
  }
}

int Link::TakePlainEnd() { return std::exchange(plain_end_, -1); }

}  // namespace sekisho::tls
