// SPDX-License-Identifier: Apache-2.0
// sekisho proxy init|info|destroy.
#include "client/local/verb_proxy.h"

#include <charconv>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "common/identity/chain.h"
#include "common/identity/describe.h"
#include "common/identity/dn.h"
#include "common/identity/files.h"
#include "common/identity/proxy.h"
#include "common/identity/trust_store.h"
#include "common/refusal.h"

namespace sekisho::client {
namespace {

using identity::Credential;
using identity::Description;
using identity::Time;

constexpr int kNo = 1;
constexpr int kUsageError = 64;

std::string Text(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

int Fail(ProxyStreams streams, const absl::Status& status) {
  streams.err << "sekisho proxy: " << Text(status) << '\n';
  if (const std::string remedy = Remedy(status); !remedy.empty()) {
    streams.err << "  -> " << remedy << '\n';
  }
  return absl::IsInvalidArgument(status) ? kUsageError : kNo;
}

Time Now() { return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()); }

absl::Status NoPassphrase(const std::string& what) {
  return Refuse(absl::StatusCode::kCancelled, 0, what,
                "the private key is encrypted: say its passphrase when asked, or give it with --pwstdin");
}

// Asks on the terminal, echo off; OpenSSL restores the terminal when a signal comes.
absl::StatusOr<std::string> AskOnTerminal() {
  std::string buffer(1024, '\0');
  if (EVP_read_pw_string_min(buffer.data(), 0, static_cast<int>(buffer.size()),
                             "Passphrase of the private key: ", /*verify=*/0) != 0) {
    return NoPassphrase("no passphrase was given");
  }
  std::string passphrase(buffer.c_str());
  OPENSSL_cleanse(buffer.data(), buffer.size());
  return passphrase;
}

absl::StatusOr<std::string> AskOnInput() {
  std::string passphrase;
  if (!std::getline(std::cin, passphrase)) {
    return NoPassphrase("no passphrase on standard input");
  }
  return passphrase;
}

bool ParseNumber(const std::string& text, long* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

absl::StatusOr<identity::ProxyOptions> ToProxyOptions(const ProxyInit& options) {
  if (options.is_limited && options.is_independent) {
    return absl::InvalidArgumentError("expected --limited or --independent, saw both");
  }
  identity::ProxyOptions proxy;
  ASSIGN_OR_RETURN(proxy.life, ParseHoursMinutes(options.valid));
  if (options.hours != 0) {
    proxy.life = std::chrono::hours(options.hours);
  }
  if (proxy.life <= std::chrono::seconds(0)) {
    return Refuse(absl::StatusCode::kInvalidArgument, 0, "expected a life of at least a minute",
                  "leave out --valid and --hours, for 12 hours");
  }
  proxy.bits = options.bits;
  proxy.path_length = options.path_length;
  proxy.kind = options.is_limited       ? identity::CredentialKind::kLimitedProxy
               : options.is_independent ? identity::CredentialKind::kIndependentProxy
                                        : identity::CredentialKind::kFullProxy;
  return proxy;
}

absl::StatusOr<Credential> LoadIssuer(const ProxyInit& options,
                                      const identity::AskPassphrase& ask) {
  identity::KeyPairPaths paths = identity::DefaultKeyPairPaths();
  if (!options.certificate.empty()) {
    paths.certificate = options.certificate;
    paths.key = options.key.empty() ? options.certificate : options.key;
  } else if (!options.key.empty()) {
    paths.key = options.key;
  }
  auto issuer = identity::LoadKeyPair(paths.certificate, paths.key, ask);
  if (absl::IsNotFound(issuer.status()) && Remedy(issuer.status()).empty()) {
    return Refuse(absl::StatusCode::kNotFound, 0, Message(issuer.status()),
                  "put your certificate and key there, or name them with --cert and --key");
  }
  return issuer;
}

absl::Status VerifyAgainstTrust(const Credential& proxy, const std::string& directory, Time now) {
  std::string trust_directory = directory;
  if (trust_directory.empty()) {
    ASSIGN_OR_RETURN(trust_directory, identity::FindTrustDirectory());
  }
  ASSIGN_OR_RETURN(const auto trust, identity::TrustStore::LoadFor(trust_directory, proxy.chain));
  return identity::VerifyChain(proxy.chain, *trust, now).status();
}

absl::StatusOr<Credential> Make(const ProxyInit& options, const identity::AskPassphrase& ask,
                                Time now) {
  ASSIGN_OR_RETURN(const identity::ProxyOptions proxy_options, ToProxyOptions(options));
  ASSIGN_OR_RETURN(const Credential issuer, LoadIssuer(options, ask));
  ASSIGN_OR_RETURN(Credential proxy, identity::CreateProxy(issuer, proxy_options, now));
  if (options.is_verified) {
    RETURN_IF_ERROR(VerifyAgainstTrust(proxy, options.trust_directory, now));
  }
  return proxy;
}

// One field of grid-proxy-info; empty name: none such.
std::string Field(const std::string& name, const Description& proxy, const std::string& path,
                  std::chrono::seconds left) {
  if (name == "subject") return proxy.subject;
  if (name == "issuer") return proxy.issuer;
  if (name == "identity") return proxy.identity;
  if (name == "type") return proxy.type;
  if (name == "strength") return std::to_string(proxy.strength_bits);
  if (name == "path") return path;
  return std::to_string(left.count());  // timeleft
}

std::string HoursMinutesSeconds(std::chrono::seconds left) {
  const auto all = left.count();
  return fmt::format("{}:{:02}:{:02}", all / 3600, all / 60 % 60, all % 60);
}

void PrintAll(const Description& proxy, const std::string& path, std::chrono::seconds left,
              std::ostream& out) {
  out << fmt::format(
      "subject  : {}\nissuer   : {}\nidentity : {}\ntype     : {}\nstrength : {} bits\n"
      "path     : {}\ntimeleft : {}\n",
      proxy.subject, proxy.issuer, proxy.identity, proxy.type, proxy.strength_bits, path,
      left.count() > 0 ? HoursMinutesSeconds(left) : "0:00:00 (expired)");
}

nlohmann::json ToJson(const Description& proxy, const std::string& path,
                      std::chrono::seconds left) {
  return {{"subject", proxy.subject},
          {"issuer", proxy.issuer},
          {"identity", proxy.identity},
          {"type", proxy.type},
          {"is_limited", proxy.is_limited},
          {"strength_bits", proxy.strength_bits},
          {"path", path},
          {"not_after", identity::FormatTime(proxy.not_after)},
          {"timeleft_s", left.count()}};
}

// A word that scripts say and that changes nothing.
void AcceptWord(CLI::App& verb, const std::string& word, const std::string& help) {
  verb.add_flag_function(
      word, [](int64_t /*count*/) {}, help);
}

void AddInit(CLI::App& proxy, int& exit_code) {
  const auto options = std::make_shared<ProxyInit>();  // lives as long as the callbacks
  const auto from_input = std::make_shared<bool>(false);
  CLI::App* init =
      proxy.add_subcommand("init",
                           "Make a proxy of your certificate, for single sign-on.  Asks for the "
                           "key's passphrase on the\n"
                           "terminal.  Writes $X509_USER_PROXY or /tmp/x509up_u<uid>, mode 0600.");
  init->add_option("--cert", options->certificate,
                   "Certificate (default $X509_USER_CERT or ~/.globus/usercert.pem); a proxy file "
                   "makes a proxy of that proxy");
  init->add_option("--key", options->key,
                   "Private key (default $X509_USER_KEY or ~/.globus/userkey.pem)");
  init->add_option("--out", options->out, "Where to write the proxy");
  init->add_option("--valid", options->valid, "Life as HOURS:MINUTES")->default_str("12:00");
  init->add_option("--hours", options->hours, "Life in hours, instead of --valid");
  init->add_option("--bits", options->bits, "An RSA key of this size, for tools that read no other")
      ->default_str("an elliptic-curve key, P-256");
  init->add_flag("--limited", options->is_limited, "A limited proxy: moves files, starts no jobs");
  init->add_flag("--independent", options->is_independent, "A proxy that speaks for itself only");
  init->add_option("--path-length", options->path_length, "How many further proxies may follow");
  init->add_flag("--verify", options->is_verified, "Check the chain against the trust directory");
  init->add_option("--certdir", options->trust_directory,
                   "Trust directory for --verify (default $X509_CERT_DIR, ~/.globus/certificates, "
                   "/etc/grid-security/certificates)");
  init->add_flag("--pwstdin", *from_input, "Read the passphrase from standard input");
  init->add_flag("-q,--quiet", options->is_quiet, "Print nothing but errors");
  AcceptWord(*init, "--rfc", "Accepted for scripts: proxies are always of RFC 3820");
  AcceptWord(*init, "--debug", "Accepted for scripts: messages are complete as they are");
  init->callback([options, from_input, &exit_code] {
    exit_code = InitProxy(*options, *from_input ? AskOnInput : AskOnTerminal, Now(),
                          {std::cout, std::cerr});
  });
}

void AddInfo(CLI::App& proxy, int& exit_code) {
  const auto options = std::make_shared<ProxyInfo>();
  CLI::App* info = proxy.add_subcommand(
      "info",
      "Show a proxy.  Exit code 1 if there is none; with --exists, also if it is too short.");
  info->add_option("-f,--file", options->file, "Proxy file (default as for init)");
  for (const char* field :
       {"subject", "issuer", "identity", "type", "strength", "path", "timeleft"}) {
    info->add_flag_callback(
        std::string("--") + field, [options, field] { options->fields.emplace_back(field); },
        std::string("Print only the ") + field);
  }
  AcceptWord(*info, "--all", "Print everything (the default)");
  info->add_flag("--json", options->is_json, "Print everything as JSON");
  info->add_flag("-e,--exists", options->exists,
                 "Print nothing: exit code 0 if the proxy is valid for --valid, with --bits");
  info->add_option("--valid", options->valid, "HOURS:MINUTES that must be left")
      ->default_str("0:0");
  info->add_option("--bits", options->bits, "RSA bits that the key must have, or an elliptic curve as strong (P-256: 3072)");
  AcceptWord(*info, "--debug", "Accepted for scripts: messages are complete as they are");
  info->callback([options, &exit_code] {
    exit_code = InfoProxy(*options, Now(), {std::cout, std::cerr});
  });
}

void AddDestroy(CLI::App& proxy, int& exit_code) {
  const auto options = std::make_shared<ProxyDestroy>();
  CLI::App* destroy = proxy.add_subcommand("destroy", "Overwrite and remove proxy files");
  destroy->add_option("FILE", options->files, "Files (default as for init)");
  destroy->add_flag("--dry-run,--dryrun", options->is_dry_run, "Print what would be removed");
  AcceptWord(*destroy, "--default",
             "Accepted for scripts: without files the default proxy is removed");
  AcceptWord(*destroy, "--debug", "Accepted for scripts: messages are complete as they are");
  destroy->callback([options, &exit_code] {
    exit_code = DestroyProxy(*options, {std::cout, std::cerr});
  });
}

}  // namespace

absl::StatusOr<std::chrono::seconds> ParseHoursMinutes(const std::string& text) {
  constexpr long kHoursMax = 10 * 366 * 24;
  const size_t colon = text.find(':');
  long hours = 0;
  long minutes = 0;
  const bool is_valid =
      ParseNumber(text.substr(0, colon), &hours) &&
      (colon == std::string::npos || ParseNumber(text.substr(colon + 1), &minutes)) && hours >= 0 &&
      hours <= kHoursMax && minutes >= 0 && minutes < 60;
  if (!is_valid) {
    return Refuse(absl::StatusCode::kInvalidArgument, 0, fmt::format("expected HOURS:MINUTES, saw \"{}\"", text),
                  "write for example 12:00, for half a day");
  }
  return std::chrono::hours(hours) + std::chrono::minutes(minutes);
}

int InitProxy(const ProxyInit& options, const identity::AskPassphrase& ask, Time now,
              ProxyStreams streams) {
  const std::string path = options.out.empty() ? identity::DefaultProxyPath() : options.out;
  const absl::StatusOr<Credential> proxy = Make(options, ask, now);
  if (!proxy.ok()) {
    return Fail(streams, proxy.status());
  }
  if (const absl::Status status = identity::WriteProxyFile(*proxy, path); !status.ok()) {
    return Fail(streams, status);
  }
  const Description made = identity::DescribeChain(proxy->chain);
  if (!options.is_quiet) {
    streams.out << fmt::format("Your identity: {}\nYour proxy {} is valid until: {}\n",
                               made.identity, path, identity::FormatTime(made.not_after));
  }
  if (made.not_after < now + std::chrono::minutes(1)) {
    streams.err << "sekisho proxy: warning: the certificate below this proxy is about to expire\n";
  }
  return 0;
}

int InfoProxy(const ProxyInfo& options, Time now, ProxyStreams streams) {
  const std::string path = options.file.empty() ? identity::DefaultProxyPath() : options.file;
  const absl::StatusOr<std::chrono::seconds> wanted = ParseHoursMinutes(options.valid);
  if (!wanted.ok()) {
    return Fail(streams, wanted.status());
  }
  const absl::StatusOr<Credential> credential = identity::LoadProxyFile(path);
  if (!credential.ok()) {
    if (!options.exists) {
      const bool is_missing = absl::IsNotFound(credential.status());
      streams.err << "sekisho proxy: " << Text(credential.status())
                  << (is_missing ? " (make a proxy: sekisho proxy init)\n" : "\n");
    }
    return kNo;
  }
  const Description proxy = identity::DescribeChain(credential->chain);
  const std::chrono::seconds left = std::max(proxy.not_after - now, std::chrono::seconds(0));
  if (options.exists) {
    const bool is_enough =
        left.count() > 0 && left >= *wanted && proxy.strength_rsa_bits >= options.bits;
    return is_enough ? 0 : kNo;
  }
  if (options.is_json) {
    streams.out << ToJson(proxy, path, left).dump(2) << '\n';
  } else if (options.fields.empty()) {
    PrintAll(proxy, path, left, streams.out);
  } else {
    for (const std::string& field : options.fields) {
      streams.out << Field(field, proxy, path, left) << '\n';
    }
  }
  return 0;
}

int DestroyProxy(const ProxyDestroy& options, ProxyStreams streams) {
  std::vector<std::string> files = options.files;
  if (files.empty()) {
    files.push_back(identity::DefaultProxyPath());
  }
  int exit_code = 0;
  for (const std::string& file : files) {
    if (options.is_dry_run) {
      streams.out << "Would remove " << file << '\n';
    } else if (const absl::Status status = identity::DestroyPrivateFile(file); !status.ok()) {
      exit_code = Fail(streams, status);
    }
  }
  return exit_code;
}

void AddProxyVerb(CLI::App& app, int& exit_code) {
  CLI::App* proxy = app.add_subcommand("proxy", "Make, show or remove your proxy (single sign-on)");
  proxy->require_subcommand(1);
  AddInit(*proxy, exit_code);
  AddInfo(*proxy, exit_code);
  AddDestroy(*proxy, exit_code);
}

}  // namespace sekisho::client
