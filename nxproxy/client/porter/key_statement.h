// SPDX-License-Identifier: Apache-2.0
// By which a site's queue server says that a key is a job's: a proxy of its certificate, with a policy of
// our own.  docs/protocol/14-nxproxy-encryption.md, "The key statement".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <openssl/x509.h>

namespace sekisho::nxproxy::client {

inline constexpr size_t kSpeakersMost = 1024;

// Who speaks for a site: the subject of its queue server, by site.
using Speakers = std::map<std::string, std::string>;

// "SITE SUBJECT\n"...; nullopt if it is anything else, or more than kSpeakersMost.
std::optional<Speakers> ParseSpeakers(std::string_view text);

struct KeyStatement {
  std::string site;
  std::string job;
  std::string owner;
};

// What the certificate states; nullopt if it is no statement.  Who has signed it is not looked at.
std::optional<KeyStatement> StatementOf(const X509* certificate);

// May what holds this proxy's key act as who signed it?  Not by a policy that is unknown to us, nor as an independent
// proxy.
bool SpeaksForSigner(const X509* proxy);

// "name=value\n" at the front of `text`, taken from it.
std::optional<std::string> TakeLine(std::string_view& text, std::string_view name);

}  // namespace sekisho::nxproxy::client
