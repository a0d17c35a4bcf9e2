// SPDX-License-Identifier: Apache-2.0
#include "qserver/stager/web.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "qserver/stager/resumed.h"

namespace sekisho::qserver::stager {
namespace {

constexpr long kConnect_s = 30;
constexpr long kRedirects = 5;
// Slower than this for so long is given up.
constexpr long kSlow_bytes_s = 1024;
constexpr long kSlow_s = 60;
// A fetch that breaks off goes on after so long; not when so many connections in a row brought next to nothing.
constexpr std::chrono::seconds kPause{1};
constexpr int kIdleMost = 5;

// Of an answer that nobody asked for.
constexpr uint64_t kAnswerMost = 1 << 20;

// One talk with a server, and what went wrong besides what libcurl says.
struct Talk {
  absl::Status status;
  std::string refused;  // an address
  std::array<char, CURL_ERROR_SIZE> words{};
};

struct Fetching : Talk {
  explicit Fetching(const std::function<absl::Status(std::string_view)>& to, uint64_t most) : add(to), bytes_most(most) {}
  const std::function<absl::Status(std::string_view)>& add;
  uint64_t bytes_most;
  Fetched fetched;
  CURL* curl = nullptr;  // of this connection
  uint64_t from = 0;     // its first byte
};

struct Sending : Talk {
  explicit Sending(const std::function<absl::StatusOr<std::string>()>& from) : next(from) {}
  const std::function<absl::StatusOr<std::string>()>& next;
  std::string piece;
  size_t given = 0;  // of the piece
  uint64_t answered = 0;
};

bool IsV4Fetchable(uint32_t ip) {
  const uint32_t first = ip >> 24;
  return first != 0 && first != 127 && first < 224 && (ip >> 16) != 0xA9FE;  // 169.254
}

bool IsV6Fetchable(const in6_addr& ip) {
  if (IN6_IS_ADDR_V4MAPPED(&ip)) {
    uint32_t v4 = 0;
    std::memcpy(&v4, ip.s6_addr + 12, sizeof v4);
    return IsV4Fetchable(ntohl(v4));
  }
  return !IN6_IS_ADDR_LOOPBACK(&ip) && !IN6_IS_ADDR_UNSPECIFIED(&ip) && !IN6_IS_ADDR_LINKLOCAL(&ip) &&
         !IN6_IS_ADDR_MULTICAST(&ip);
}

curl_socket_t Dial(void* to, curlsocktype, curl_sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* const ip = address->family == AF_INET
                             ? static_cast<const void*>(&reinterpret_cast<sockaddr_in*>(&address->addr)->sin_addr)
                             : &reinterpret_cast<sockaddr_in6*>(&address->addr)->sin6_addr;
  if (inet_ntop(address->family, ip, text.data(), text.size()) == nullptr || !IsFetchable(text.data())) {
    static_cast<Talk*>(to)->refused = text.data();
    return CURL_SOCKET_BAD;
  }
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

std::string HeaderOf(CURL* curl, const char* name) {
  constexpr int kLastAnswer = -1;
  curl_header* header = nullptr;
  return curl_easy_header(curl, name, 0, CURLH_HEADER, kLastAnswer, &header) == CURLHE_OK ? header->value : "";
}

// What tells this content from any other under the URL (RFC 9110, 8.8); empty: nothing does.
std::string ValidatorOf(CURL* curl) {
  const std::string tag = HeaderOf(curl, "ETag");
  if (!tag.empty() && !tag.starts_with("W/")) {
    return tag;
  }
  const std::string modified = HeaderOf(curl, "Last-Modified");
  const time_t since = curl_getdate(modified.c_str(), nullptr);
  const time_t now = curl_getdate(HeaderOf(curl, "Date").c_str(), nullptr);
  return since >= 0 && since < now ? modified : "";  // not of a second that may have seen another change
}

long CodeOf(CURL* curl) {
  long code = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
  return code;
}

// Of a connection that was to go on: sets `status` if it does not, for the fetch to begin anew.
void CheckResumed(Fetching& fetching) {
  CURL* const curl = fetching.curl;
  const Resumed answer{CodeOf(curl), HeaderOf(curl, "Content-Range"), HeaderOf(curl, "ETag"), HeaderOf(curl, "Last-Modified")};
  fetching.fetched.size = SizeIfGoesOn(fetching.fetched, answer);
  if (!fetching.fetched.size) {
    fetching.status = absl::FailedPreconditionError("it has changed since the fetch broke off");
  }
}

size_t Take(char* data, size_t, size_t size, void* to) {
  auto& fetching = *static_cast<Fetching*>(to);
  uint64_t& bytes = fetching.fetched.bytes;
  if (fetching.from > 0 && bytes == fetching.from) {
    CheckResumed(fetching);
    if (!fetching.status.ok()) {
      return 0;
    }
  }
  bytes += size;
  if (fetching.bytes_most > 0 && bytes > fetching.bytes_most) {
    fetching.status = absl::InvalidArgumentError(
        fmt::format("it has more than the {} bytes that the site takes", fetching.bytes_most));
    return 0;
  }
  fetching.status = fetching.add({data, size});
  return fetching.status.ok() ? size : 0;
}

size_t Give(char* data, size_t, size_t room, void* from) {
  auto& sending = *static_cast<Sending*>(from);
  if (sending.given == sending.piece.size()) {
    absl::StatusOr<std::string> piece = sending.next();
    if (!piece.ok()) {
      sending.status = piece.status();
      return CURL_READFUNC_ABORT;
    }
    sending.piece = *std::move(piece);
    sending.given = 0;
  }
  const size_t size = std::min(room, sending.piece.size() - sending.given);
  std::memcpy(data, sending.piece.data() + sending.given, size);
  sending.given += size;
  return size;
}

size_t Drop(char*, size_t, size_t size, void* to) {
  auto& sending = *static_cast<Sending*>(to);
  sending.answered += size;
  return sending.answered > kAnswerMost ? 0 : size;
}

bool IsForGood(CURLcode code, long answer) {
  return code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_TOO_MANY_REDIRECTS ||
         code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         (answer >= 400 && answer < 500 && answer != 408 && answer != 429);
}

}  // namespace

bool IsFetchable(std::string_view ip) {
  const std::string text(ip);
  in_addr v4{};
  in6_addr v6{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) {
    return IsV4Fetchable(ntohl(v4.s_addr));
  }
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IsV6Fetchable(v6);
}

namespace {

using Curl = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using Headers = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

// What every talk is bound to.
Curl Begin(const std::string& url, Talk* talk) {
  static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
  Curl curl(curl_easy_init(), curl_easy_cleanup);
  CHECK(global == CURLE_OK && curl != nullptr);
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");  // the environment is nobody's word
  curl_easy_setopt(curl.get(), CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, kConnect_s);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_LIMIT, kSlow_bytes_s);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_TIME, kSlow_s);
  curl_easy_setopt(curl.get(), CURLOPT_USERAGENT, "sekisho-stager");
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, talk->words.data());
  curl_easy_setopt(curl.get(), CURLOPT_OPENSOCKETFUNCTION, Dial);
  curl_easy_setopt(curl.get(), CURLOPT_OPENSOCKETDATA, talk);
  return curl;
}

absl::Status Perform(const Curl& curl, const std::string& url, const Talk& talk) {
  const CURLcode code = curl_easy_perform(curl.get());
  const long answer = CodeOf(curl.get());
  if (!talk.status.ok()) {
    return absl::Status(talk.status.code(),
                        url + ": " + std::string(talk.status.message().data(), talk.status.message().size()));
  }
  if (code == CURLE_OK && answer / 100 == 2) {
    return absl::OkStatus();
  }
  if (!talk.refused.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} is an address of this machine or its link, which is not asked", url, talk.refused));
  }
  if (code == CURLE_OK) {
    return absl::InvalidArgumentError(fmt::format("{}: expected 2xx, the server answers {}", url, answer));
  }
  const std::string why = talk.words[0] != 0 ? talk.words.data() : curl_easy_strerror(code);
  return IsForGood(code, answer) ? absl::InvalidArgumentError(url + ": " + why)
                                 : absl::FailedPreconditionError(url + ": " + why);
}

}  // namespace

namespace {

// After the first connection: what another has to give, to go on.
void LearnContent(const Curl& curl, Fetched& fetched) {
  curl_off_t size = -1;
  curl_easy_getinfo(curl.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size);
  if (size >= 0) {
    fetched.size = uint64_t(size);
  }
  fetched.validator = ValidatorOf(curl.get());
}

// After another: is what has come the whole?  An answer without a body is judged here; a server may also give less than it
// was asked for.
absl::Status JudgeResumed(const std::string& url, Fetching& fetching, absl::Status status) {
  constexpr long kNoSuchRange = 416;  // it is shorter now
  const bool is_bodiless = status.ok() && fetching.fetched.bytes == fetching.from;
  if (fetching.status.ok() && (is_bodiless || CodeOf(fetching.curl) == kNoSuchRange)) {
    CheckResumed(fetching);
  }
  if (!fetching.status.ok()) {
    return absl::Status(fetching.status.code(), url + ": " + std::string(fetching.status.message()));
  }
  if (status.ok() && fetching.fetched.bytes != fetching.fetched.size) {
    return absl::FailedPreconditionError(
        fmt::format("{}: {} bytes of {} have come", url, fetching.fetched.bytes, *fetching.fetched.size));
  }
  return status;
}

// By one connection, from where the last one broke off.
absl::Status FetchOnce(const std::string& url, Fetching& fetching) {
  fetching.words = {};
  fetching.refused.clear();
  const Curl curl = Begin(url, &fetching);
  fetching.curl = curl.get();
  fetching.from = fetching.fetched.bytes;
  const std::string if_range = "If-Range: " + fetching.fetched.validator;
  const Headers headers(fetching.from > 0 ? curl_slist_append(nullptr, if_range.c_str()) : nullptr, curl_slist_free_all);
  const std::string range = fmt::format("{}-", fetching.from);
  if (fetching.from > 0) {
    curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl.get(), CURLOPT_RANGE, range.c_str());
  }
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_MAXREDIRS, kRedirects);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, Take);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &fetching);
  absl::Status status = Perform(curl, url, fetching);
  if (fetching.from == 0) {
    LearnContent(curl, fetching.fetched);
    return status;
  }
  return JudgeResumed(url, fetching, std::move(status));
}

}  // namespace

absl::Status FetchUrl(const std::string& url, uint64_t bytes_most,
                      const std::function<absl::Status(std::string_view)>& add) {
  Fetching fetching(add, bytes_most);
  const Fetched& fetched = fetching.fetched;
  for (int idle = 0;;) {
    const uint64_t before = fetched.bytes;
    absl::Status status = FetchOnce(url, fetching);
    const bool may_go_on = absl::IsFailedPrecondition(status) && fetching.status.ok() && fetched.bytes > 0 &&
                           !fetched.validator.empty();
    idle = fetched.bytes - before < kSlow_bytes_s * kSlow_s ? idle + 1 : 0;
    if (!may_go_on || idle > kIdleMost) {
      return status;
    }
    std::this_thread::sleep_for(kPause);
  }
}

absl::Status SendToUrl(const std::string& url, uint64_t from, uint64_t size,
                       const std::function<absl::StatusOr<std::string>()>& next) {
  Sending sending(next);
  const Curl curl = Begin(url, &sending);
  curl_easy_setopt(curl.get(), CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_INFILESIZE_LARGE, curl_off_t(size - from));
  const std::string range = fmt::format("Content-Range: bytes {}-{}/{}", from, size - 1, size);
  const Headers headers(from > 0 ? curl_slist_append(nullptr, range.c_str()) : nullptr, curl_slist_free_all);
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl.get(), CURLOPT_READFUNCTION, Give);
  curl_easy_setopt(curl.get(), CURLOPT_READDATA, &sending);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, Drop);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &sending);
  return Perform(curl, url, sending);
}

}  // namespace sekisho::qserver::stager
