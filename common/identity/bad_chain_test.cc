// SPDX-License-Identifier: Apache-2.0
// The table of chains that are refused, each for its own reason.
#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/param_build.h>

#include "common/identity/chain.h"
#include "tests/support/test_ca.h"

namespace sekisho::identity {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using test::CertificateOptions;
using test::MakeCertificate;
using test::MakeProxy;
using test::ProxyShape;
using test::TemporaryDirectory;
using test::TestCa;
using test::TestNow;
using test::WriteFile;

constexpr char kUser[] = "/C=JP/O=Test/CN=Taro";

// What a verifier sees: a trust directory and a chain.  A row builds both.
struct World {
  TemporaryDirectory trust;
  TestCa ca;
  Chain chain;
  Purpose purpose = Purpose::kClient;

  Credential User(const CertificateOptions& options = {}) const {
    return ca.IssueUser(kUser, options);
  }
  void Present(const Credential& credential) { chain = Share(credential.chain); }
  void Trust(const std::string& crl = "", const std::string& policy = "") const {
    ca.Install(trust.path(), crl, policy);
  }
};

struct Row {
  Reason reason;
  std::function<void(World&)> build;
};

CertificateOptions With(int nid, const std::string& value) {
  CertificateOptions options;
  options.extensions.push_back({nid, value});
  return options;
}

CertificateOptions Between(Time from, Time until) {
  CertificateOptions options;
  options.not_before = from;
  options.not_after = until;
  return options;
}

ProxyShape ProxyBetween(Time from, Time until) {
  ProxyShape shape;
  shape.not_before = from;
  shape.not_after = until;
  return shape;
}

ProxyShape ProxyWith(int nid, const std::string& value) {
  ProxyShape shape;
  shape.certificate = With(nid, value);
  return shape;
}

// A public key of 9000 bits that nobody has the other half of.
KeyPtr HugeKey() {
  BIGNUM* modulus = BN_new();
  BIGNUM* exponent = BN_new();
  BN_rand(modulus, 9000, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ODD);
  BN_set_word(exponent, RSA_F4);
  OSSL_PARAM_BLD* builder = OSSL_PARAM_BLD_new();
  OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus);
  OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, exponent);
  OSSL_PARAM* parameters = OSSL_PARAM_BLD_to_param(builder);
  EVP_PKEY_CTX* context = EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr);
  EVP_PKEY* key = nullptr;
  EVP_PKEY_fromdata_init(context);
  CHECK(EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) == 1);
  EVP_PKEY_CTX_free(context);
  OSSL_PARAM_free(parameters);
  OSSL_PARAM_BLD_free(builder);
  BN_free(modulus);
  BN_free(exponent);
  return KeyPtr(key);
}

// An independent proxy whose policy was changed, after signing, to inheritAll.
void PresentAlteredPolicy(World& world) {
  ProxyShape shape;
  shape.language = "1.3.6.1.5.5.7.21.2";
  const Credential proxy = MakeProxy(world.User(), shape);
  std::string der = ToDer(*proxy.chain.front());
  const size_t at = der.find(std::string("\x2b\x06\x01\x05\x05\x07\x15\x02", 8));
  ASSERT_NE(at, std::string::npos);
  der[at + 7] = 1;
  world.chain.push_back(*ParseDer(der));
  world.chain.push_back(Share(proxy.chain[1].get()));
  world.Trust();
}

std::vector<Row> ChainRows() {
  return {
      {Reason::kEmptyChain, [](World& w) { w.Trust(); }},
      {Reason::kChainTooLong,
       [](World& w) {
         Credential proxy = w.User();
         for (size_t i = 0; i < kChainCertificatesMax; ++i) {
           proxy = MakeProxy(proxy);
         }
         w.Present(proxy);
         w.Trust();
       }},
      {Reason::kSelfSigned,
       [](World& w) {
         w.Present(TestCa("/C=JP/O=Elsewhere/CN=Self").credential());
         w.Trust();
       }},
      {Reason::kUnknownIssuer,
       [](World& w) {
         w.Present(TestCa("/C=JP/O=Elsewhere/CN=CA").IssueUser(kUser));
         w.Trust();
       }},
      {Reason::kIncompleteChain,
       [](World& w) {
         w.Present(MakeProxy(w.User()));
         w.chain.pop_back();
         w.Trust();
       }},
      {Reason::kBadSignature, PresentAlteredPolicy},
      {Reason::kIssuerName,
       [](World& w) {
         ProxyShape shape;
         shape.certificate.issuer = "/C=JP/O=Test/CN=Hanako";
         w.Present(MakeProxy(w.User(), shape));
         w.Trust();
       }},
      {Reason::kOtherAuthorityOfSameName,
       [](World& w) {
         const TestCa impostor;  // the same name, another key, and its certificate sent along
         Credential user = impostor.IssueUser(kUser);
         user.chain.push_back(Share(impostor.credential().chain.front().get()));
         w.Present(user);
         w.Trust();
       }},
      {Reason::kSurplusCertificates,
       [](World& w) {
         w.Present(w.User());
         w.chain.push_back(Share(w.ca.IssueUser("/C=JP/O=Test/CN=Hanako").chain[0].get()));
         w.Trust();
       }},
      {Reason::kKeyTooLarge,
       [](World& w) {
         const KeyPtr huge = HugeKey();
         CertificateOptions options;
         options.subject_key = huge.get();
         w.Present(w.User(options));
         w.Trust();
       }},
      {Reason::kWeakKey,
       [](World& w) {
         ProxyShape shape;
         shape.certificate.rsa_bits = 1024;
         w.Present(MakeProxy(w.User(), shape));
         w.Trust();
       }},
      {Reason::kWeakDigest,
       [](World& w) {
         CertificateOptions options;
         options.digest = "SHA1";
         w.Present(w.User(options));
         w.Trust();
       }},
      {Reason::kWrongPurpose,
       [](World& w) {
         w.Present(MakeProxy(w.User(With(NID_ext_key_usage, "serverAuth"))));
         w.Trust();
       }},
      {Reason::kUnknownCriticalExtension,
       [](World& w) {
         w.Present(MakeProxy(w.User(With(NID_netscape_comment, "critical,obey"))));
         w.Trust();
       }},
  };
}

std::vector<Row> TimeRows() {
  const Time early = TestNow() - hours(48);
  const Time late = TestNow() + hours(48);
  const Time past = TestNow();  // the second in which it ends
  const Time future = TestNow() + seconds(1);
  return {
      {Reason::kProxyExpired,
       [=](World& w) {
         w.Present(MakeProxy(MakeProxy(w.User(), ProxyBetween(early, past))));
         w.Trust();
       }},
      {Reason::kProxyNotYetValid,
       [=](World& w) {
         w.Present(MakeProxy(MakeProxy(w.User()), ProxyBetween(future, late)));
         w.Trust();
       }},
      {Reason::kCertificateExpired,
       [=](World& w) {
         w.Present(MakeProxy(w.User(Between(early, past))));
         w.Trust();
       }},
      {Reason::kCertificateNotYetValid,
       [=](World& w) {
         w.Present(MakeProxy(w.User(Between(future, late))));
         w.Trust();
       }},
      {Reason::kAuthorityExpired,
       [=](World& w) {
         const TestCa old("/C=JP/O=Old/CN=CA", Between(early, past));
         w.Present(MakeProxy(old.IssueUser(kUser)));
         old.Install(w.trust.path());
       }},
      {Reason::kAuthorityNotYetValid,
       [=](World& w) {
         const TestCa young(w.ca, "/C=JP/O=Test/CN=Young CA", Between(future, late));
         w.Present(MakeProxy(young.IssueUser(kUser)));
         w.Trust();
       }},
  };
}

// Refused for reasons that the other tables have, of authorities that are not in the directory.
std::vector<Row> RowsOfAuthoritiesBetween() {
  return {
      {Reason::kSigningPolicy,  // of an authority between, which sends its certificate along
       [](World& w) {
         const TestCa sub(w.ca, "/C=JP/O=Test/CN=Sub");
         w.Present(MakeProxy(sub.IssueUser(kUser)));
         WriteFile(w.trust.File(sub.Hash() + ".signing_policy"), sub.SigningPolicyText({"/C=KR/*"}));
         w.Trust();
       }},
      {Reason::kSigningPolicy,  // of the authority above one that has none of its own
       [](World& w) {
         const TestCa sub(w.ca, "/C=JP/O=Test/CN=Sub");
         w.Present(MakeProxy(sub.IssueUser("/C=KR/O=Test/CN=Taro")));
         w.Trust("", w.ca.SigningPolicyText({"/C=JP/*"}));
       }},
      {Reason::kRevoked,  // by an authority between, which sends its certificate along
       [](World& w) {
         const TestCa sub(w.ca, "/C=JP/O=Test/CN=Sub");
         const Credential user = sub.IssueUser(kUser);
         w.Present(MakeProxy(user));
         WriteFile(w.trust.File(sub.Hash() + ".r0"), sub.Crl({user.chain[0].get()}));
         w.Trust();
       }},
      {Reason::kCrlUnusable,
       [](World& w) {
         const TestCa sub(w.ca, "/C=JP/O=Test/CN=Sub");
         w.Present(MakeProxy(sub.IssueUser(kUser)));
         WriteFile(w.trust.File(sub.Hash() + ".r0"), "no list");
         w.Trust();
       }},
  };
}

std::vector<Row> AuthorityRows() {
  return {
      {Reason::kNotAnAuthority,
       [](World& w) {
         w.Present(MakeCertificate(w.User(), "/C=JP/O=Test/CN=Hanako", {}));
         w.Trust();
       }},
      {Reason::kAuthorityPathLength,
       [](World& w) {
         const TestCa root("/C=JP/O=Short/CN=CA",
                           With(NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
         w.Present(MakeProxy(TestCa(root, "/C=JP/O=Short/CN=Sub").IssueUser(kUser)));
         root.Install(w.trust.path());
       }},
      {Reason::kAuthorityAsLeaf,
       [](World& w) {
         w.Present(w.ca.credential());
         w.Trust();
       }},
      {Reason::kNameConstraints,
       [](World& w) {
         const TestCa sub(w.ca, "/C=JP/O=Test/CN=Sub",
                          With(NID_name_constraints, "critical,permitted;DNS:example.org"));
         w.Present(sub.IssueHost("example.com"));
         w.Trust();
       }},
      {Reason::kSigningPolicy,
       [](World& w) {
         w.Present(MakeProxy(w.User()));
         w.Trust("", w.ca.SigningPolicyText({"/C=JP/O=Other/*", "/C=KR/*"}));
       }},
      {Reason::kSigningPolicyUnreadable,
       [](World& w) {
         w.Present(MakeProxy(w.User()));
         w.Trust("", "pos_rights globus CA:sign\n");
       }},
      {Reason::kRevoked,
       [](World& w) {
         const Credential user = w.User();
         w.Present(MakeProxy(MakeProxy(user)));
         w.Trust(w.ca.Crl({user.chain[0].get()}));
       }},
      {Reason::kAuthorityRevoked,
       [](World& w) {
         const TestCa sub(w.ca, "/C=JP/O=Test/CN=Sub");
         w.Present(MakeProxy(sub.IssueUser(kUser)));
         w.Trust(w.ca.Crl({&sub.certificate()}));
       }},
      {Reason::kCrlExpired,
       [](World& w) {
         w.Present(MakeProxy(w.User()));
         w.Trust(w.ca.Crl({}, {TestNow() - hours(48), TestNow() - hours(1), false}));
       }},
      {Reason::kCrlNotYetValid,
       [](World& w) {
         w.Present(MakeProxy(w.User()));
         w.Trust(w.ca.Crl({}, {TestNow() + hours(1), TestNow() + hours(48), false}));
       }},
      {Reason::kCrlBadSignature,
       [](World& w) {
         w.Present(MakeProxy(w.User()));
         w.Trust(TestCa().Crl({}));  // another authority of the same name
       }},
      {Reason::kCrlUnusable,
       [](World& w) {
         w.Present(MakeProxy(w.User()));
         w.Trust(w.ca.Crl({}, {TestNow() - hours(1), TestNow() + hours(1), true}));
       }},
  };
}

// A row of one proxy of that shape, below an ordinary user.
Row OneProxy(Reason reason, const std::function<void(ProxyShape&)>& change) {
  return {reason, [change](World& w) {
            ProxyShape shape;
            change(shape);
            w.Present(MakeProxy(w.User(), shape));
            w.Trust();
          }};
}

std::vector<Row> ProxyRows() {
  return {
      {Reason::kProxySignedByAuthority,
       [](World& w) {
         w.Present(MakeProxy(w.ca.credential()));
         w.Trust();
       }},
      OneProxy(Reason::kProxySubject,
               [](ProxyShape& s) { s.subject = "/C=JP/O=Test/CN=Hanako/CN=1"; }),
      OneProxy(Reason::kProxyIsAuthority,
               [](ProxyShape& s) { s = ProxyWith(NID_basic_constraints, "critical,CA:TRUE"); }),
      OneProxy(Reason::kProxyAlternativeName,
               [](ProxyShape& s) { s = ProxyWith(NID_subject_alt_name, "DNS:gate.example.org"); }),
      OneProxy(Reason::kProxyInfoNotCritical, [](ProxyShape& s) { s.is_critical = false; }),
      OneProxy(Reason::kProxyInfoMalformed,
               [](ProxyShape& s) { s.info_der = std::string("\x05\x00", 2); }),
      OneProxy(Reason::kProxyPolicyLanguage,
               [](ProxyShape& s) { s.language = "1.3.6.1.5.5.7.21.0"; }),
      OneProxy(Reason::kProxyPolicyForbidden, [](ProxyShape& s) { s.policy = "may do anything"; }),
      {Reason::kProxyPathLength,
       [](World& w) {
         ProxyShape last;
         last.path_length = 0;
         w.Present(MakeProxy(MakeProxy(w.User(), last)));
         w.Trust();
       }},
      OneProxy(Reason::kLegacyProxy,
               [](ProxyShape& s) {
                 s.has_info = false;
                 s.common_name = "limited proxy";
               }),
      OneProxy(Reason::kDraftProxy, [](ProxyShape& s) { s.info_oid = "1.3.6.1.4.1.3536.1.222"; }),
      {Reason::kSignerMayNotSign,
       [](World& w) {
         w.Present(MakeProxy(w.User(With(NID_key_usage, "critical,keyEncipherment"))));
         w.Trust();
       }},
  };
}

std::vector<Row> AllRows() {
  std::vector<Row> rows;
  for (const std::vector<Row>& part : {ChainRows(), TimeRows(), AuthorityRows(), ProxyRows()}) {
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return rows;
}

// What a command reads of the directory leads to the same judgement as all of it.
void ExpectTheSameOfWhatACommandReads(const World& world, Reason reason) {
  if (!world.chain.empty()) {
    const auto some = TrustStore::LoadFor(world.trust.path(), world.chain);
    ASSERT_TRUE(some.ok());
    const Verdict again = JudgeChain(world.chain, **some, TestNow(), world.purpose);
    ASSERT_TRUE(std::holds_alternative<Refusal>(again));
    EXPECT_EQ(Name(std::get<Refusal>(again).reason), Name(reason));
  }
}

TEST(BadChain, EachIsRefusedForItsOwnReason) {
  std::set<Reason> seen;
  std::set<std::string> texts;
  for (const Row& row : AllRows()) {
    SCOPED_TRACE(std::string(Name(row.reason)));
    World world;
    row.build(world);
    const auto trust = TrustStore::Load(world.trust.path());
    ASSERT_TRUE(trust.ok()) << trust.status();

    const Verdict verdict = JudgeChain(world.chain, **trust, TestNow(), world.purpose);

    ASSERT_TRUE(std::holds_alternative<Refusal>(verdict));
    const Refusal& refusal = std::get<Refusal>(verdict);
    EXPECT_EQ(Name(refusal.reason), Name(row.reason)) << refusal.message;
    EXPECT_FALSE(refusal.message.empty());
    EXPECT_FALSE(Remedy(refusal.reason).empty());
    EXPECT_TRUE(absl::IsUnauthenticated(ToStatus(refusal)));
    EXPECT_TRUE(seen.insert(row.reason).second) << "two rows of one reason";
    EXPECT_TRUE(texts.insert(ToStatus(refusal).ToString()).second);
    ExpectTheSameOfWhatACommandReads(world, row.reason);
  }
  EXPECT_GE(seen.size(), 40u);
}

TEST(BadChain, AnAuthorityBetweenIsBoundByFilesOfItsNameAndByThoseAboveIt) {
  for (const Row& row : RowsOfAuthoritiesBetween()) {
    SCOPED_TRACE(std::string(Name(row.reason)));
    World world;
    row.build(world);

    const Verdict verdict =
        JudgeChain(world.chain, **TrustStore::Load(world.trust.path()), TestNow(), world.purpose);

    ASSERT_TRUE(std::holds_alternative<Refusal>(verdict));
    EXPECT_EQ(Name(std::get<Refusal>(verdict).reason), Name(row.reason));
    ExpectTheSameOfWhatACommandReads(world, row.reason);
  }
}

TEST(BadChain, TheSameChainWithoutItsFaultIsTaken) {
  World world;
  world.Present(MakeProxy(MakeProxy(world.User())));
  world.Trust(world.ca.Crl({}), world.ca.SigningPolicyText({"/C=JP/O=Test/*"}));

  const Verdict verdict =
      JudgeChain(world.chain, **TrustStore::Load(world.trust.path()), TestNow(), Purpose::kClient);

  EXPECT_TRUE(std::holds_alternative<Identity>(verdict)) << std::get<Refusal>(verdict).message;
}

}  // namespace
}  // namespace sekisho::identity
