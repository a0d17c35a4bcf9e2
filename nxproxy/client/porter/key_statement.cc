// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/key_statement.h"

#include <memory>

#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/x509v3.h>

namespace sekisho::nxproxy::client {
namespace {

constexpr std::string_view kLanguage = "2.25.261702524726569109574207370126763815491";
constexpr std::string_view kLimitedProxy = "1.3.6.1.4.1.3536.1.1.1.9";
constexpr int kStatementBytesMost = 4096;

struct FreeInfo {
  void operator()(PROXY_CERT_INFO_EXTENSION* info) const { PROXY_CERT_INFO_EXTENSION_free(info); }
};
using InfoPtr = std::unique_ptr<PROXY_CERT_INFO_EXTENSION, FreeInfo>;

InfoPtr InfoOf(const X509* certificate) {
  InfoPtr info(static_cast<PROXY_CERT_INFO_EXTENSION*>(
      X509_get_ext_d2i(certificate, NID_proxyCertInfo, nullptr, nullptr)));
  ERR_clear_error();
  return info;
}

std::string LanguageOf(const PROXY_CERT_INFO_EXTENSION& info) {
  char text[128] = {};
  OBJ_obj2txt(text, sizeof text, info.proxyPolicy->policyLanguage, 1);
  return text;
}

}  // namespace

std::optional<std::string> TakeLine(std::string_view& text, std::string_view name) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(name) || name.size() + 1 >= end ||
      text[name.size()] != '=') {
    return std::nullopt;
  }
  std::string value(text.substr(name.size() + 1, end - name.size() - 1));
  text.remove_prefix(end + 1);
  return value;
}

std::optional<Speakers> ParseSpeakers(std::string_view text) {
  Speakers speakers;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const size_t space = text.find(' ');
    if (end == std::string_view::npos || space == 0 || space >= end || space + 1 == end ||
        speakers.size() == kSpeakersMost) {
      return std::nullopt;
    }
    speakers.emplace(text.substr(0, space), text.substr(space + 1, end - space - 1));
    text.remove_prefix(end + 1);
  }
  return speakers;
}

std::optional<KeyStatement> StatementOf(const X509* certificate) {
  const InfoPtr info = InfoOf(certificate);
  if (info == nullptr || LanguageOf(*info) != kLanguage || info->proxyPolicy->policy == nullptr ||
      ASN1_STRING_length(info->proxyPolicy->policy) > kStatementBytesMost) {
    return std::nullopt;
  }
  std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(info->proxyPolicy->policy)),
                        static_cast<size_t>(ASN1_STRING_length(info->proxyPolicy->policy)));
  const auto site = TakeLine(text, "site");
  const auto job = TakeLine(text, "job");
  const auto owner = TakeLine(text, "owner");
  return site && job && owner && text.empty() ? std::optional(KeyStatement{*site, *job, *owner})
                                              : std::nullopt;
}

bool SpeaksForSigner(const X509* proxy) {
  const InfoPtr info = InfoOf(proxy);
  return info != nullptr && (OBJ_obj2nid(info->proxyPolicy->policyLanguage) == NID_id_ppl_inheritAll ||
                             LanguageOf(*info) == kLimitedProxy);
}

}  // namespace sekisho::nxproxy::client
