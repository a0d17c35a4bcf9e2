// SPDX-License-Identifier: Apache-2.0
#include "common/identity/job_token.h"

#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "common/identity/signed_request.h"

namespace sekisho::identity {
namespace {

constexpr std::string_view kPrefix = "nxt1.";
constexpr std::string_view kFirstLine = "sekisho-job-token 1\n";
constexpr size_t kFieldBytesMax = 512;
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string ToBase64(std::string_view bytes) {
  std::string out;
  uint32_t bits = 0;
  int held = 0;
  for (const char byte : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(byte);
    for (held += 8; held >= 6;) {
      held -= 6;
      out += kAlphabet[bits >> held & 63];
    }
  }
  if (held > 0) {
    out += kAlphabet[bits << (6 - held) & 63];
  }
  return out;
}

std::optional<std::string> FromBase64(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) {
      return std::nullopt;
    }
    bits = bits << 6 | static_cast<uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out += static_cast<char>(bits >> held);
    }
  }
  return out;
}

void Put(std::string& out, std::string_view bytes) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += static_cast<char>(bytes.size() >> shift);
  }
  out += bytes;
}

std::optional<std::string_view> Take(std::string_view& from) {
  if (from.size() < 4) {
    return std::nullopt;
  }
  size_t length = 0;
  for (int i = 0; i < 4; ++i) {
    length = length << 8 | static_cast<uint8_t>(from[i]);
  }
  from.remove_prefix(4);
  if (from.size() < length) {
    return std::nullopt;
  }
  const std::string_view bytes = from.substr(0, length);
  from.remove_prefix(length);
  return bytes;
}

bool IsFit(const std::string& field) {
  return !field.empty() && field.size() <= kFieldBytesMax &&
         field.find_first_of("\n\r") == std::string::npos && field.find('\0') == std::string::npos;
}

// "key=value\n" at the front of `body`.
std::optional<std::string> TakeLine(std::string_view& body, std::string_view key) {
  const size_t end = body.find('\n');
  if (end == std::string_view::npos || !body.starts_with(key) || body.size() <= key.size() ||
      body[key.size()] != '=') {
    return std::nullopt;
  }
  std::string value(body.substr(key.size() + 1, end - key.size() - 1));
  body.remove_prefix(end + 1);
  return IsFit(value) ? std::optional(value) : std::nullopt;
}

std::optional<Time> ToSeconds(const std::optional<std::string>& text) {
  int64_t seconds = 0;
  if (!text || text->size() > 12) {
    return std::nullopt;
  }
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  if (error != std::errc() || end != text->data() + text->size() || seconds < 0) {
    return std::nullopt;
  }
  return Time(std::chrono::seconds(seconds));
}

std::optional<JobToken> ParseBody(std::string_view body) {
  if (!body.starts_with(kFirstLine)) {
    return std::nullopt;
  }
  body.remove_prefix(kFirstLine.size());
  const auto site = TakeLine(body, "site");
  const auto job = TakeLine(body, "job");
  const auto owner = TakeLine(body, "owner");
  const auto not_before = ToSeconds(TakeLine(body, "not_before"));
  const auto not_after = ToSeconds(TakeLine(body, "not_after"));
  const auto id = TakeLine(body, "id");
  if (!site || !job || !owner || !not_before || !not_after || !id || !body.empty()) {
    return std::nullopt;
  }
  return JobToken{*site, *job, *owner, *not_before, *not_after, *id};
}

std::optional<SignedRequest> Unpack(std::string_view text) {
  while (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  if (text.size() > kTokenBytesMax || !text.starts_with(kPrefix)) {
    return std::nullopt;
  }
  const std::optional<std::string> packed = FromBase64(text.substr(kPrefix.size()));
  if (!packed) {
    return std::nullopt;
  }
  std::string_view rest(*packed);
  const auto body = Take(rest);
  const auto signature = Take(rest);
  if (!body || !signature) {
    return std::nullopt;
  }
  SignedRequest request{std::string(*body), std::string(*signature), {}};
  while (!rest.empty()) {
    const auto certificate = Take(rest);
    if (!certificate || request.chain.size() >= kChainCertificatesMax) {
      return std::nullopt;
    }
    request.chain.emplace_back(*certificate);
  }
  return request;
}

}  // namespace

absl::StatusOr<std::string> MintJobToken(const JobToken& token, const Credential& signer) {
  for (const std::string* field : {&token.site, &token.job, &token.owner, &token.id}) {
    if (!IsFit(*field)) {
      return absl::InvalidArgumentError(fmt::format("a job token cannot hold '{}'", *field));
    }
  }
  const std::string body =
      fmt::format("{}site={}\njob={}\nowner={}\nnot_before={}\nnot_after={}\nid={}\n", kFirstLine,
                  token.site, token.job, token.owner, token.not_before.time_since_epoch().count(),
                  token.not_after.time_since_epoch().count(), token.id);
  ASSIGN_OR_RETURN(const SignedRequest request, Sign(body, signer));
  std::string packed;
  Put(packed, request.body);
  Put(packed, request.signature);
  for (const std::string& certificate : request.chain) {
    Put(packed, certificate);
  }
  return std::string(kPrefix) + ToBase64(packed);
}

absl::StatusOr<VerifiedToken> VerifyJobToken(std::string_view text, const TrustStore& trust,
                                             Time now, std::chrono::seconds longest_life,
                                             std::chrono::seconds tolerance) {
  const std::optional<SignedRequest> request = Unpack(text);
  if (!request) {
    return absl::InvalidArgumentError("it is not a job token, or it is cut short");
  }
  // Tokens are few and their signers known: nothing is remembered.
  JudgedChains chains({std::shared_ptr<void>(), &trust}, Purpose::kAny);
  ASSIGN_OR_RETURN(Identity signer, VerifyRequest(*request, chains, now));
  const std::optional<JobToken> token = ParseBody(request->body);
  if (!token) {
    return absl::InvalidArgumentError("what it says is not what a job token says");
  }
  if (now > token->not_after + tolerance) {
    return absl::DeadlineExceededError(
        fmt::format("it was good until {}, now {}", FormatTime(token->not_after), FormatTime(now)));
  }
  if (now < token->not_before - tolerance) {
    return absl::FailedPreconditionError(
        fmt::format("it is good from {}, now {}", FormatTime(token->not_before), FormatTime(now)));
  }
  if (token->not_after - token->not_before > longest_life) {
    return absl::FailedPreconditionError(
        fmt::format("it lives longer than the {} s allowed", longest_life.count()));
  }
  return VerifiedToken{*token, std::move(signer)};
}

}  // namespace sekisho::identity
