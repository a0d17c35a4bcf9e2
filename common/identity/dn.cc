// SPDX-License-Identifier: Apache-2.0
#include "common/identity/dn.h"

#include <cctype>

#include <fmt/format.h>
#include <openssl/objects.h>

namespace sekisho::identity {
namespace {

bool IsTypeCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
}

// Does `text` begin like an attribute, `TYPE=`?
bool StartsAttribute(std::string_view text) {
  size_t i = 0;
  while (i < text.size() && IsTypeCharacter(text[i])) {
    ++i;
  }
  return i > 0 && i < text.size() && text[i] == '=';
}

// The value's bytes as text.
std::string EscapeValue(std::string_view value) {
  std::string text;
  for (size_t i = 0; i < value.size(); ++i) {
    const auto byte = static_cast<unsigned char>(value[i]);
    const bool reads_as_separator =
        (byte == '/' || byte == '+') && StartsAttribute(value.substr(i + 1));
    if (byte < ' ' || byte > '~' || byte == '\\' || reads_as_separator) {
      text += fmt::format("\\x{:02X}", byte);
    } else {
      text += value[i];
    }
  }
  return text;
}

std::string TypeText(const ASN1_OBJECT* object) {
  const int nid = OBJ_obj2nid(object);
  if (nid != NID_undef) {
    return OBJ_nid2sn(nid);
  }
  char dotted[128];
  const int size = OBJ_obj2txt(dotted, sizeof(dotted), object, 1);
  return size > 0 ? std::string(dotted) : "?";
}

std::string ValueBytes(const ASN1_STRING* value) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, value);
  if (size < 0) {  // not a character string: its bytes as they are
    return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                       static_cast<size_t>(ASN1_STRING_length(value)));
  }
  std::string bytes(reinterpret_cast<char*>(utf8), static_cast<size_t>(size));
  OPENSSL_free(utf8);
  return bytes;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// `type` in the spelling that DnText prints.
std::string_view CanonicalType(std::string_view type) {
  if (type == "Email" || type == "E" || type == "EMAILADDRESS" || type == "emailaddress") {
    return "emailAddress";
  }
  return type == "USERID" ? "UID" : type;
}

// The length of `\xHH` at the start of `text`, or 0; its byte in `byte`.
size_t EscapeAt(std::string_view text, unsigned char* byte) {
  if (text.size() < 4 || text[0] != '\\' || (text[1] != 'x' && text[1] != 'X')) {
    return 0;
  }
  const int high = HexDigit(text[2]);
  const int low = HexDigit(text[3]);
  if (high < 0 || low < 0) {
    return 0;
  }
  *byte = static_cast<unsigned char>(high * 16 + low);
  return 4;
}

// `text` with those \xHH decoded that stand for a plain character, neither separator nor backslash.
std::string DecodePlain(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    unsigned char byte = 0;
    const size_t size = EscapeAt(text.substr(i), &byte);
    const bool plain = byte >= ' ' && byte <= '~' && byte != '\\' && byte != '/' && byte != '+';
    if (size > 0 && plain) {
      out += static_cast<char>(byte);
      i += size;
    } else {
      // An escape that stays is taken whole, so that what follows cannot turn into a new one.
      const size_t taken = size > 0 ? size : 1;
      out += text.substr(i, taken);
      i += taken;
    }
  }
  return out;
}

}  // namespace

std::string DnText(const X509_NAME& name) {
  std::string text;
  int previous_set = -1;
  for (int i = 0; i < X509_NAME_entry_count(&name); ++i) {
    const X509_NAME_ENTRY* entry = X509_NAME_get_entry(&name, i);
    const int set = X509_NAME_ENTRY_set(entry);
    text += set == previous_set ? '+' : '/';
    previous_set = set;
    text += TypeText(X509_NAME_ENTRY_get_object(entry));
    text += '=';
    text += EscapeValue(ValueBytes(X509_NAME_ENTRY_get_data(entry)));
  }
  return text;
}

std::string SubjectText(const X509& certificate) {
  return DnText(*X509_get_subject_name(&certificate));
}

std::string IssuerText(const X509& certificate) {
  return DnText(*X509_get_issuer_name(&certificate));
}

std::string NormalizeDn(std::string_view written) {
  const std::string text_with_plain_letters = DecodePlain(written);
  const std::string_view text = text_with_plain_letters;
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    const std::string_view rest = text.substr(i);
    unsigned char byte = 0;
    if (const size_t size = EscapeAt(rest, &byte); size > 0) {
      // A separator that was escaped stays so, where raw it would begin an attribute.
      const bool separator = (byte == '/' || byte == '+') && StartsAttribute(text.substr(i + size));
      if (byte < ' ' || byte > '~' || byte == '\\' || separator) {
        out += fmt::format("\\x{:02X}", byte);
      } else {
        out += static_cast<char>(byte);
      }
      i += size;
    } else if ((rest[0] == '/' || rest[0] == '+') && StartsAttribute(rest.substr(1))) {
      const size_t equals = rest.find('=');
      out += rest[0];
      out += CanonicalType(rest.substr(1, equals - 1));
      out += '=';
      i += equals + 1;
    } else {
      out += EscapeValue(rest.substr(0, 1));
      i += 1;
    }
  }
  return out;
}

bool SameDn(std::string_view a, std::string_view b) { return NormalizeDn(a) == NormalizeDn(b); }

}  // namespace sekisho::identity
