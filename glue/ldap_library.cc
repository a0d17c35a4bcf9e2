// SPDX-License-Identifier: Apache-2.0
#include "glue/ldap_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace sekisho::glue {
namespace {

constexpr const char* kNames[] = {"libldap-2.5.so.0", "libldap.so.2"};  // Debian 12; OpenLDAP 2.6

absl::StatusOr<const LdapLibrary*> Load() {
  void* handle = nullptr;
  for (const char* name : kNames) {
    handle = handle != nullptr ? handle : dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (handle == nullptr) {
    return absl::UnavailableError(fmt::format(
        "the LDAP client library cannot be loaded ({}); install it: apt-get install libldap-2.5-0", dlerror()));
  }
  static LdapLibrary library;
#define SEKISHO_LDAP_FIND(name)                                                             \
  library.name = reinterpret_cast<decltype(library.name)>(dlsym(handle, #name));            \
  if (library.name == nullptr) {                                                            \
    return absl::UnavailableError("the LDAP client library that is installed has no " #name); \
  }
  SEKISHO_LDAP_FUNCTIONS(SEKISHO_LDAP_FIND)
#undef SEKISHO_LDAP_FIND
  return &library;
}

}  // namespace

absl::StatusOr<const LdapLibrary*> LoadLdapLibrary() {
  static const absl::StatusOr<const LdapLibrary*> loaded = Load();
  return loaded;
}

}  // namespace sekisho::glue
