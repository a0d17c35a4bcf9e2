// SPDX-License-Identifier: Apache-2.0
// OpenLDAP's client library, loaded when it is first needed: it brings a second TLS library with it, which a
// command that asks no directory should not pay for.
#pragma once

#include <ldap.h>

#include "common/status.h"

namespace sekisho::glue {

#define SEKISHO_LDAP_FUNCTIONS(X)                                                                         \
  X(ldap_initialize) X(ldap_set_option) X(ldap_get_option) X(ldap_start_tls_s) X(ldap_sasl_bind_s)        \
  X(ldap_search_ext) X(ldap_add_ext) X(ldap_modify_ext) X(ldap_delete_ext) X(ldap_refresh) X(ldap_result) \
  X(ldap_first_message) X(ldap_next_message) X(ldap_msgtype) X(ldap_msgid) X(ldap_parse_result)           \
  X(ldap_get_dn_ber) X(ldap_get_attribute_ber) X(ldap_msgfree) X(ldap_memfree)                            \
  X(ldap_err2string) X(ldap_unbind_ext_s) X(ldap_abandon_ext) X(ber_free) X(ber_memfree)

struct LdapLibrary {
#define SEKISHO_LDAP_MEMBER(name) decltype(&::name) name = nullptr;
  SEKISHO_LDAP_FUNCTIONS(SEKISHO_LDAP_MEMBER)
#undef SEKISHO_LDAP_MEMBER
};

// Unavailable, naming the package, if it is not installed.
absl::StatusOr<const LdapLibrary*> LoadLdapLibrary();

}  // namespace sekisho::glue
