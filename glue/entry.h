// SPDX-License-Identifier: Apache-2.0
// An LDAP entry as a value, its name, and how foreign text goes into names and filters.  Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sekisho::glue {

// Values by attribute, in the schema's spelling.  An attribute without values is not there.
using Attributes = std::map<std::string, std::vector<std::string>>;

struct Entry {
  std::string dn;
  Attributes attributes;

  // The first value; empty if there is none.
  const std::string& First(const std::string& attribute) const;
  const std::vector<std::string>& All(const std::string& attribute) const;
  bool Is(std::string_view object_class) const;

  bool operator==(const Entry&) const = default;
};

// A name as its parts, the entry's own first; each a lower-case attribute and its value.
using Names = std::vector<std::pair<std::string, std::string>>;

// RFC 4514; nothing if it is no such name, or a part has several attributes.
std::optional<Names> ParseDn(std::string_view dn);
// The same name, however it was escaped, is the same text.
std::string CanonicalDn(std::string_view dn);
std::string ToDn(const Names& names);

// "ATTRIBUTE=value,PARENT" with the value escaped by RFC 4514.
std::string ChildDn(const std::string& attribute, std::string_view value, const std::string& parent);
std::string EscapeDnValue(std::string_view value);

// A value in a search filter, by RFC 4515.
std::string EscapeFilterValue(std::string_view value);

}  // namespace sekisho::glue
