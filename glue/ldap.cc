// SPDX-License-Identifier: Apache-2.0
#include "glue/ldap.h"

#include <algorithm>

#include <fmt/format.h>

#include "glue/ldap_library.h"

namespace sekisho::glue {
namespace {

constexpr size_t kWindow = 256;  // requests that wait for their answer at a time

timeval Timeval(std::chrono::milliseconds time) {
  return {time.count() / 1000, (time.count() % 1000) * 1000};
}

absl::StatusCode CodeOf(int code) {
  switch (code) {
    case LDAP_NO_SUCH_OBJECT:
      return absl::StatusCode::kNotFound;
    case LDAP_ALREADY_EXISTS:
      return absl::StatusCode::kAlreadyExists;
    case LDAP_INSUFFICIENT_ACCESS:
    case LDAP_INAPPROPRIATE_AUTH:
    case LDAP_STRONG_AUTH_REQUIRED:
      return absl::StatusCode::kPermissionDenied;
    case LDAP_INVALID_CREDENTIALS:
    case LDAP_AUTH_UNKNOWN:
    case LDAP_AUTH_METHOD_NOT_SUPPORTED:
    case LDAP_CONFIDENTIALITY_REQUIRED:
      return absl::StatusCode::kUnauthenticated;
    case LDAP_FILTER_ERROR:
    case LDAP_PARAM_ERROR:
    case LDAP_OBJECT_CLASS_VIOLATION:
    case LDAP_INVALID_SYNTAX:
    case LDAP_CONSTRAINT_VIOLATION:
    case LDAP_UNDEFINED_TYPE:
      return absl::StatusCode::kInvalidArgument;
    case LDAP_SIZELIMIT_EXCEEDED:
    case LDAP_ADMINLIMIT_EXCEEDED:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

// An LDAPMod array over an entry's attributes; lives as long as the call that takes it.
class Modifications {
 public:
  Modifications(const Attributes& attributes, int operation) {
    mods_.reserve(attributes.size());
    values_.reserve(attributes.size());
    size_t count = 0;
    for (const auto& [name, values] : attributes) {
      count += values.size();
    }
    bytes_.reserve(count);
    for (const auto& [name, values] : attributes) {
      std::vector<berval*>& list = values_.emplace_back();
      for (const std::string& value : values) {
        bytes_.push_back({value.size(), const_cast<char*>(value.data())});
        list.push_back(&bytes_.back());
      }
      list.push_back(nullptr);
      LDAPMod& mod = mods_.emplace_back();
      mod.mod_op = operation | LDAP_MOD_BVALUES;
      mod.mod_type = const_cast<char*>(name.c_str());
      mod.mod_bvalues = values.empty() ? nullptr : list.data();
    }
    for (LDAPMod& mod : mods_) {
      pointers_.push_back(&mod);
    }
    pointers_.push_back(nullptr);
  }
  LDAPMod** get() { return pointers_.data(); }

 private:
  std::vector<LDAPMod> mods_;
  std::vector<std::vector<berval*>> values_;
  std::vector<berval> bytes_;
  std::vector<LDAPMod*> pointers_;
};

size_t Depth(const Change& change) {
  const auto names = ParseDn(change.dn);
  return names ? names->size() : 0;
}

// An answer must have come before the next of these is sent: a server works on several requests at once, and
// a parent must be there before its child.
bool MayShare(const Change& one, const Change& next) {
  if (one.kind != next.kind) {
    return false;
  }
  return one.kind == Change::Kind::kModify || one.kind == Change::Kind::kRefresh || Depth(one) == Depth(next);
}

}  // namespace

struct Ldap::Handle {
  const LdapLibrary* lib = nullptr;
  LDAP* ld = nullptr;
  ~Handle() {
    if (ld != nullptr) {
      lib->ldap_unbind_ext_s(ld, nullptr, nullptr);
    }
  }
};

Ldap::Ldap(Options options, std::unique_ptr<Handle> handle)
    : options_(std::move(options)), handle_(std::move(handle)) {}
Ldap::~Ldap() = default;

absl::Status Ldap::Fail(int code, const std::string& what) const {
  std::string detail;
  char* text = nullptr;
  if (handle_->lib->ldap_get_option(handle_->ld, LDAP_OPT_DIAGNOSTIC_MESSAGE, &text) == LDAP_OPT_SUCCESS &&
      text != nullptr) {
    detail = *text == '\0' ? "" : fmt::format(" ({})", text);
    handle_->lib->ldap_memfree(text);
  }
  return absl::Status(CodeOf(code), fmt::format("{}: {}: {}{}", options_.url, what,
                                                handle_->lib->ldap_err2string(code), detail));
}

absl::StatusOr<std::unique_ptr<Ldap>> Ldap::Open(const Options& options) {
  ASSIGN_OR_RETURN(const LdapLibrary* lib, LoadLdapLibrary());
  auto handle = std::make_unique<Handle>();
  handle->lib = lib;
  if (lib->ldap_initialize(&handle->ld, options.url.c_str()) != LDAP_SUCCESS) {
    return absl::InvalidArgumentError(
        fmt::format("'{}': expected ldap://HOST:PORT, ldaps://HOST:PORT or ldapi://SOCKET", options.url));
  }
  std::unique_ptr<Ldap> self(new Ldap(options, std::move(handle)));
  LDAP* ld = self->handle_->ld;
  const int version = LDAP_VERSION3;
  const timeval timeout = Timeval(options.timeout);
  const int demand = LDAP_OPT_X_TLS_HARD;
  lib->ldap_set_option(ld, LDAP_OPT_PROTOCOL_VERSION, &version);
  lib->ldap_set_option(ld, LDAP_OPT_NETWORK_TIMEOUT, &timeout);
  lib->ldap_set_option(ld, LDAP_OPT_TIMEOUT, &timeout);
  lib->ldap_set_option(ld, LDAP_OPT_REFERRALS, LDAP_OPT_OFF);
  const bool has_tls = options.starts_tls || options.url.rfind("ldaps:", 0) == 0;
  if (has_tls) {
    lib->ldap_set_option(ld, LDAP_OPT_X_TLS_REQUIRE_CERT, &demand);
    for (const auto& [option, value] :
         {std::pair(LDAP_OPT_X_TLS_CACERTFILE, &options.ca_file), {LDAP_OPT_X_TLS_CRLFILE, &options.crl_file},
          {LDAP_OPT_X_TLS_CERTFILE, &options.certificate}, {LDAP_OPT_X_TLS_KEYFILE, &options.key}}) {
      if (!value->empty()) {
        lib->ldap_set_option(ld, option, value->c_str());
      }
    }
    const int is_server = 0;
    if (lib->ldap_set_option(ld, LDAP_OPT_X_TLS_NEWCTX, &is_server) != LDAP_OPT_SUCCESS) {
      return absl::FailedPreconditionError(fmt::format(
          "{}: its certificate, key and trusted authorities cannot be used for TLS (they are read by GnuTLS); see {} "
          "and {}",
          options.url, options.certificate, options.ca_file));
    }
  }
  if (options.starts_tls) {
    if (const int code = lib->ldap_start_tls_s(ld, nullptr, nullptr); code != LDAP_SUCCESS) {
      return self->Fail(code, "TLS does not come up");
    }
  }
  berval nothing{0, const_cast<char*>("")};
  const int code = lib->ldap_sasl_bind_s(ld, "", options.is_external ? "EXTERNAL" : LDAP_SASL_SIMPLE, &nothing,
                                         nullptr, nullptr, nullptr);
  if (code != LDAP_SUCCESS) {
    return self->Fail(code, options.is_external ? "cannot bind by certificate" : "cannot connect");
  }
  return self;
}

absl::StatusOr<std::vector<Entry>> Ldap::Search(const std::string& base, Scope scope, const std::string& filter,
                                                const std::vector<std::string>& attributes) {
  std::vector<Entry> entries;
  RETURN_IF_ERROR(Search(base, scope, filter, attributes, [&](Entry entry) { entries.push_back(std::move(entry)); }));
  return entries;
}

absl::Status Ldap::Search(const std::string& base, Scope scope, const std::string& filter,
                          const std::vector<std::string>& attributes, const Each& each) {
  const LdapLibrary& lib = *handle_->lib;
  LDAP* ld = handle_->ld;
  std::vector<char*> wanted;
  for (const std::string& name : attributes) {
    wanted.push_back(const_cast<char*>(name.c_str()));
  }
  wanted.push_back(nullptr);
  const int ldap_scope = scope == Scope::kBase       ? LDAP_SCOPE_BASE
                         : scope == Scope::kOneLevel ? LDAP_SCOPE_ONELEVEL
                                                     : LDAP_SCOPE_SUBTREE;
  int id = 0;
  if (const int code = lib.ldap_search_ext(ld, base.c_str(), ldap_scope, filter.c_str(),
                                           attributes.empty() ? nullptr : wanted.data(), 0, nullptr, nullptr,
                                           nullptr, LDAP_NO_LIMIT, &id);
      code != LDAP_SUCCESS) {
    return Fail(code, "search");
  }
  for (;;) {
    timeval timeout = Timeval(options_.timeout);
    LDAPMessage* message = nullptr;
    const int type = lib.ldap_result(ld, id, LDAP_MSG_ONE, &timeout, &message);
    if (type <= 0) {
      lib.ldap_abandon_ext(ld, id, nullptr, nullptr);
      return type == 0 ? absl::UnavailableError(options_.url + ": search: no answer") : Fail(LDAP_SERVER_DOWN, "search");
    }
    if (type == LDAP_RES_SEARCH_ENTRY) {
      BerElement* ber = nullptr;
      berval name{};
      Entry entry;
      if (lib.ldap_get_dn_ber(ld, message, &ber, &name) == LDAP_SUCCESS) {
        entry.dn.assign(name.bv_val, name.bv_len);
        berval attribute{};
        berval* values = nullptr;
        while (lib.ldap_get_attribute_ber(ld, message, ber, &attribute, &values) == LDAP_SUCCESS &&
               attribute.bv_val != nullptr) {
          auto& list = entry.attributes[std::string(attribute.bv_val, attribute.bv_len)];
          for (berval* value = values; value != nullptr && value->bv_val != nullptr; ++value) {
            list.emplace_back(value->bv_val, value->bv_len);
          }
          lib.ber_memfree(values);
          values = nullptr;
        }
      }
      lib.ber_free(ber, 0);
      each(std::move(entry));
    } else if (type == LDAP_RES_SEARCH_RESULT) {
      int result = 0;
      lib.ldap_parse_result(ld, message, &result, nullptr, nullptr, nullptr, nullptr, 1);
      if (result != LDAP_SUCCESS) {
        return Fail(result, "search below " + base);
      }
      return absl::OkStatus();
    }
    lib.ldap_msgfree(message);
  }
}

int Ldap::descriptor() const {
  int fd = -1;
  handle_->lib->ldap_get_option(handle_->ld, LDAP_OPT_DESC, &fd);
  return fd;
}

absl::StatusOr<int> Ldap::Send(const Change& change) {
  const LdapLibrary& lib = *handle_->lib;
  int id = 0;
  int code = LDAP_SUCCESS;
  switch (change.kind) {
    case Change::Kind::kDelete:
      code = lib.ldap_delete_ext(handle_->ld, change.dn.c_str(), nullptr, nullptr, &id);
      break;
    case Change::Kind::kAdd:
      code = lib.ldap_add_ext(handle_->ld, change.dn.c_str(), Modifications(change.attributes, LDAP_MOD_ADD).get(),
                              nullptr, nullptr, &id);
      break;
    case Change::Kind::kModify:
      code = lib.ldap_modify_ext(handle_->ld, change.dn.c_str(),
                                 Modifications(change.attributes, LDAP_MOD_REPLACE).get(), nullptr, nullptr, &id);
      break;
    case Change::Kind::kRefresh: {
      berval name{change.dn.size(), const_cast<char*>(change.dn.data())};
      code = lib.ldap_refresh(handle_->ld, &name, change.ttl_s, nullptr, nullptr, &id);
      break;
    }
  }
  if (code != LDAP_SUCCESS) {
    return Fail(code, change.dn);
  }
  return id;
}

absl::Status Ldap::Await(std::map<int, const Change*>& sent, size_t most) {
  const LdapLibrary& lib = *handle_->lib;
  while (sent.size() > most) {
    timeval timeout = Timeval(options_.timeout);
    LDAPMessage* message = nullptr;
    const int type = lib.ldap_result(handle_->ld, LDAP_RES_ANY, LDAP_MSG_ALL, &timeout, &message);
    if (type <= 0) {
      return type == 0 ? absl::UnavailableError(options_.url + ": a write is not answered")
                       : Fail(LDAP_SERVER_DOWN, "write");
    }
    const auto found = sent.find(lib.ldap_msgid(message));
    int result = 0;
    lib.ldap_parse_result(handle_->ld, message, &result, nullptr, nullptr, nullptr, nullptr, 1);
    if (found == sent.end()) {
      continue;
    }
    const Change& change = *found->second;
    sent.erase(found);
    const bool is_gone_already = change.kind == Change::Kind::kDelete && result == LDAP_NO_SUCH_OBJECT;
    if (result != LDAP_SUCCESS && !is_gone_already) {
      return Fail(result, change.dn);
    }
  }
  return absl::OkStatus();
}

absl::Status Ldap::Apply(const std::vector<Change>& changes) {
  std::map<int, const Change*> sent;
  const Change* last = nullptr;
  for (const Change& change : changes) {
    if (last != nullptr && !MayShare(*last, change)) {
      RETURN_IF_ERROR(Await(sent, 0));
    }
    RETURN_IF_ERROR(Await(sent, kWindow - 1));
    ASSIGN_OR_RETURN(const int id, Send(change));
    sent[id] = &change;
    last = &change;
  }
  return Await(sent, 0);
}

}  // namespace sekisho::glue
