// SPDX-License-Identifier: Apache-2.0
#include "common/identity/dn.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/support/test_ca.h"

namespace sekisho::identity {
namespace {

void Add(X509_NAME* name, int nid, const std::string& value, int set = 0) {
  ASSERT_EQ(X509_NAME_add_entry_by_NID(name, nid, MBSTRING_UTF8,
                                       reinterpret_cast<const unsigned char*>(value.data()),
                                       static_cast<int>(value.size()), -1, set),
            1);
}

TEST(Dn, PrintsRdnInTheOrderOfTheCertificate) {
  const NamePtr name(X509_NAME_new());
  Add(name.get(), NID_domainComponent, "jp");
  Add(name.get(), NID_organizationName, "Grid");
  Add(name.get(), NID_commonName, "host/gate.example.org");
  Add(name.get(), NID_pkcs9_emailAddress, "taro@example.org");

  EXPECT_EQ(DnText(*name), "/DC=jp/O=Grid/CN=host/gate.example.org/emailAddress=taro@example.org");
}

TEST(Dn, AgreesWithOpenSslWhereThatIsUnambiguous) {
  const NamePtr name(X509_NAME_new());
  Add(name.get(), NID_organizationName, "Grid, Inc. (Tokyo) <\"x\"> 50%");
  Add(name.get(), NID_commonName, "\u6771 Taro's");
  char* oneline = X509_NAME_oneline(name.get(), nullptr, 0);

  EXPECT_EQ(DnText(*name), oneline);
  OPENSSL_free(oneline);
}

TEST(Dn, NoTwoNamesShareOneText) {
  std::set<std::string> texts;
  const NamePtr two(X509_NAME_new());
  Add(two.get(), NID_organizationName, "a");
  Add(two.get(), NID_commonName, "b");
  const NamePtr slash(X509_NAME_new());
  Add(slash.get(), NID_organizationName, "a/CN=b");
  const NamePtr plus(X509_NAME_new());
  Add(plus.get(), NID_organizationName, "a+CN=b");
  const NamePtr joined(X509_NAME_new());
  Add(joined.get(), NID_organizationName, "a");
  Add(joined.get(), NID_commonName, "b", -1);
  const NamePtr escape(X509_NAME_new());
  Add(escape.get(), NID_organizationName, "a\\x2FCN=b");
  for (const NamePtr* name : {&two, &slash, &plus, &joined, &escape}) {
    const std::string text = DnText(**name);
    EXPECT_TRUE(texts.insert(text).second) << text;
    EXPECT_EQ(NormalizeDn(text), text);
  }
}

TEST(Dn, ReadsEmailAndOtherSpellingsAsTheSame) {
  EXPECT_TRUE(SameDn("/O=a/Email=x@y", "/O=a/emailAddress=x@y"));
  EXPECT_TRUE(SameDn("/O=a/E=x@y", "/O=a/emailAddress=x@y"));
  EXPECT_TRUE(SameDn("/O=a/USERID=x", "/O=a/UID=x"));
  EXPECT_TRUE(SameDn("/O=\\x41", "/O=A"));
  EXPECT_TRUE(SameDn("/CN=\u6771", "/CN=\\xE6\\x9D\\xB1"));
  EXPECT_TRUE(SameDn("/CN=\\xe6\\x9d\\xb1", "/CN=\\xE6\\x9D\\xB1"));
  EXPECT_FALSE(SameDn("/O=a/CN=b", "/O=a\\x2FCN=b"));
  EXPECT_FALSE(SameDn("/O=a\\x2FC\\x4E=b", "/O=a/CN=b"));
  EXPECT_FALSE(SameDn("/O=a", "/O=A"));
}

}  // namespace
}  // namespace sekisho::identity
