// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/registry.h"

#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "common/refusal.h"
#include "nxproxy/exposed_file.h"
#include "nxproxy/refusal_log.h"
#include "tests/support/test_ca.h"

namespace sekisho::nxproxy {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

const Caller kAlice{.owner = "/CN=Alice", .job = "j1", .site = "siteA"};
const std::string kHash(64, 'a');

Reservation At(uint64_t id, uint16_t port, const Caller& caller = kAlice) {
  return {.id = id,
          .scope = wire::Scope::kPublic,
          .ip = "192.0.2.1",
          .port = port,
          .secret_hash = kHash,
          .caller = caller,
          .inside = "10.1.0.11:80",
          .label = "a\tb\\c",
          .allow = "192.0.2.0/24",
          .backlog = 9,
          .is_encrypted = true};
}

class RegistryTest : public testing::Test {
 protected:
  Session& Open(uint64_t id, const Caller& caller = kAlice) {
    EXPECT_FALSE(registry_.OpenSession(id, "key", caller, 1'000'000));
    return *registry_.FindSession(id);
  }
  Limits limits_{.grace_s = 60,
                 .endpoints = 2,
                 .streams = 2,
                 .sessions = 2,
                 .job_port_first = 50000,
                 .job_port_last = 50002};
  Registry registry_{limits_};
};

TEST_F(RegistryTest, AnEndpointOutlivesItsControlConnectionByTheGrace) {
  Session& session = Open(1);
  registry_.AddEndpoint(At(7, 20000), {}, &session, 0);
  registry_.Detach(session, 100);

  EXPECT_THAT(registry_.Expire(159, 0).sessions, IsEmpty());
  EXPECT_THAT(registry_.Expire(160, 0).sessions, ElementsAre(1));
  registry_.Attach(session);
  EXPECT_THAT(registry_.Expire(1000, 0).sessions, IsEmpty());
}

TEST_F(RegistryTest, FindsWhatListensInsideOfOnesOwn) {
  Session& session = Open(1);
  Reservation reservation = At(7, 20000);
  reservation.inside = "10.1.0.11:80,[fd00::1]:80@siteA";
  registry_.AddEndpoint(reservation, {}, &session, 0);

  ASSERT_NE(registry_.FindInside("10.1.0.11:80", "", kAlice), nullptr);
  EXPECT_NE(registry_.FindInside("[fd00::1]:80", "siteB", kAlice), nullptr);
  EXPECT_NE(registry_.FindInside("j1:80", "", kAlice), nullptr);
  EXPECT_EQ(registry_.FindInside("j2:80", "", kAlice), nullptr);
  EXPECT_EQ(registry_.FindInside("10.1.0.11:8", "", kAlice), nullptr);
  EXPECT_EQ(registry_.FindInside("10.1.0.11:80", "", {.owner = "/CN=Bob"}), nullptr);
  EXPECT_EQ(registry_.FindInside("10.1.0.11:80", "",
                                 {.owner = "/CN=Alice", .job = "j2", .site = "siteA"}),
            nullptr);
}

TEST_F(RegistryTest, OfTwoWithOneInsideAddressTheAskersSiteComesFirstThenTheLiving) {
  Session& old = Open(1);
  Session& young = Open(2);
  Reservation reservation = At(7, 20000);
  reservation.inside = "10.1.0.11:80@siteA";
  registry_.AddEndpoint(reservation, {}, &old, 0);
  reservation = At(8, 20001);
  reservation.inside = "10.1.0.11:80@siteB";
  registry_.AddEndpoint(reservation, {}, &young, 0);

  EXPECT_EQ(registry_.FindInside("10.1.0.11:80", "siteA", kAlice)->reserved.id, 7u);
  EXPECT_EQ(registry_.FindInside("10.1.0.11:80", "siteB", kAlice)->reserved.id, 8u);
  EXPECT_EQ(registry_.FindInside("10.1.0.11:80", "", kAlice)->reserved.id, 8u);
  registry_.Detach(young, 100);
  EXPECT_EQ(registry_.FindInside("10.1.0.11:80", "", kAlice)->reserved.id, 7u);
}

TEST_F(RegistryTest, TellsAllThatListensInsideOfOnesOwnJobAsTheAskersSiteMeansIt) {
  const auto add = [this](uint64_t id, Session& session, const char* inside) {
    Reservation reservation = At(id, static_cast<uint16_t>(20000 + id), session.caller);
    reservation.inside = inside;
    registry_.AddEndpoint(reservation, {}, &session, 0);
  };
  Session& one = Open(1);
  add(7, one, "10.1.0.11:80,[fd00::1]:80@siteA");
  add(8, one, "10.1.0.11:80@siteB");
  add(9, Open(2, {.owner = "/CN=Alice", .job = "j2", .site = "siteA"}), "10.1.0.12:80@siteA");
  const auto ids = [this](const std::string& site, const Caller& caller, size_t most) {
    std::map<std::string, uint64_t> ids;
    for (const auto& [place, endpoint] : registry_.AllInside(site, caller, most)) {
      ids[place] = endpoint->reserved.id;
    }
    return ids;
  };

  EXPECT_THAT(ids("siteA", kAlice, 9),
              ElementsAre(Pair("10.1.0.11:80", 7), Pair("[fd00::1]:80", 7)));
  EXPECT_THAT(ids("siteB", kAlice, 9),
              ElementsAre(Pair("10.1.0.11:80", 8), Pair("[fd00::1]:80", 7)));
  EXPECT_THAT(ids("siteB", kAlice, 1), ElementsAre(Pair("10.1.0.11:80", 8)));
  EXPECT_THAT(ids("siteA", kAlice, 0), IsEmpty());
  EXPECT_THAT(ids("siteA", {.owner = "/CN=Alice"}, 9), IsEmpty());
  EXPECT_THAT(ids("siteA", {.owner = "/CN=Bob", .job = "j1"}, 9), IsEmpty());
}

TEST_F(RegistryTest, ASessionEndsWithItsCredential) {
  Open(1);

  EXPECT_THAT(registry_.Expire(0, 1'000'000).sessions, IsEmpty());
  EXPECT_THAT(registry_.Expire(0, 1'000'001).sessions, ElementsAre(1));
}

TEST_F(RegistryTest, AfterARestartOnlyTheSecretAndTheSameJobTakeAnEndpointBack) {
  registry_.AddEndpoint(At(7, 20000), {}, nullptr, 100);
  Endpoint* endpoint = nullptr;
  Session& thief = Open(1, {.owner = "/CN=Alice", .job = "j2", .site = "siteA"});
  Session& owner = Open(2);

  EXPECT_EQ(registry_.Reclaim(7, kHash, thief, endpoint)->code, wire::Code::kNotOwner);
  EXPECT_EQ(registry_.Reclaim(7, std::string(64, 'b'), owner, endpoint)->code,
            wire::Code::kNotOwner);
  EXPECT_EQ(registry_.Reclaim(8, kHash, owner, endpoint)->code, wire::Code::kNoSuchEndpoint);
  EXPECT_FALSE(registry_.Reclaim(7, kHash, owner, endpoint));
  EXPECT_EQ(endpoint->session, 2u);
  EXPECT_THAT(registry_.Expire(1000, 0).endpoints, IsEmpty());
}

TEST_F(RegistryTest, AnEndpointIsKnownByItsSecretToItsOwnJobAlone) {
  registry_.AddEndpoint(At(7, 20000), {}, nullptr, 100);

  EXPECT_EQ(registry_.FindSecret(kHash, kAlice), 7u);
  EXPECT_EQ(registry_.FindSecret(std::string(64, 'b'), kAlice), 0u);
  EXPECT_EQ(registry_.FindSecret(kHash, {.owner = "/CN=Alice", .job = "j2", .site = "siteA"}), 0u);
  EXPECT_EQ(registry_.FindSecret(kHash, {.owner = "/CN=Bob", .job = "j1", .site = "siteA"}), 0u);
}

TEST_F(RegistryTest, WhatNobodyTakesBackGoes) {
  registry_.AddEndpoint(At(7, 20000), {}, nullptr, 100);

  EXPECT_THAT(registry_.Expire(159, 0).endpoints, IsEmpty());
  EXPECT_THAT(registry_.Expire(160, 0).endpoints, ElementsAre(7));
}

TEST_F(RegistryTest, AnEndpointTakenOverGoesWithItsNewSessionAndNotWithTheOld) {
  Session& before = Open(1);
  Session& after = Open(2);
  registry_.AddEndpoint(At(7, 20000), {}, &before, 0);
  Endpoint* endpoint = nullptr;
  ASSERT_FALSE(registry_.Reclaim(7, kHash, after, endpoint));

  EXPECT_THAT(registry_.CloseSession(1), IsEmpty());
  EXPECT_THAT(registry_.CloseSession(2), ElementsAre(7));
  EXPECT_EQ(registry_.FindPort(20000), nullptr);
  EXPECT_THAT(registry_.accounts(), IsEmpty());
}

TEST_F(RegistryTest, QuotasAreAnIdentitysOverAllItsSessions) {
  Session& one = Open(1);
  Session& two = Open(2);
  EXPECT_EQ(registry_.OpenSession(3, "key", kAlice, 0)->rule, "quota-sessions");
  registry_.AddEndpoint(At(7, 20000), {}, &one, 0);
  EXPECT_FALSE(registry_.MayBind(two));
  registry_.AddEndpoint(At(8, 20001), {}, &two, 0);
  EXPECT_EQ(registry_.MayBind(one)->rule, "quota-endpoints");

  EXPECT_FALSE(registry_.TakeStream(kAlice.owner));
  EXPECT_FALSE(registry_.TakeStream(kAlice.owner));
  EXPECT_EQ(registry_.TakeStream(kAlice.owner)->rule, "quota-streams");
  registry_.StreamEnded(kAlice.owner);
  EXPECT_FALSE(registry_.TakeStream(kAlice.owner));
}

TEST_F(RegistryTest, JobEndpointsAreReachedFromTheirOwnJobOnly) {
  Reservation reserved = At(7, 50000);
  reserved.scope = wire::Scope::kJob;
  const Endpoint& endpoint = registry_.AddEndpoint(reserved, {}, nullptr, 0);

  EXPECT_FALSE(registry_.MayReach(endpoint, kAlice));
  EXPECT_FALSE(registry_.MayReach(endpoint, {.owner = "/CN=Alice"}));
  EXPECT_EQ(registry_.MayReach(endpoint, {.owner = "/CN=Bob"})->rule, "job-scope");
  EXPECT_EQ(
      registry_.MayReach(endpoint, {.owner = "/CN=Alice", .job = "j1", .site = "siteB"})->rule,
      "job-scope");
}

TEST_F(RegistryTest, NumbersOfJobEndpointsAreUsedUpAndComeBack) {
  for (uint64_t id = 1; id <= 3; ++id) {
    registry_.AddEndpoint(At(id, registry_.FreeJobPort()), {}, nullptr, 0);
  }
  EXPECT_EQ(registry_.FreeJobPort(), 0);
  registry_.RemoveEndpoint(2);
  EXPECT_EQ(registry_.FreeJobPort(), 50001);
}

TEST(NxproxyReservations, AJournalIsWhatStandsAtItsEnd) {
  const std::string journal = ToLine(At(1, 20000)) + "\n" + ToLine(At(2, 20001)) +
                              "\nrubbish\n-\t1\n" + ToLine(At(3, 20002));

  EXPECT_THAT(Replay(journal),
              ElementsAre(std::pair(2ul, At(2, 20001))));  // the last line was cut short
}

TEST(NxproxyReservations, TheFileIsCompactedWhenItIsOpened) {
  const test::TemporaryDirectory directory;
  {
    Journal journal;
    EXPECT_THAT(*journal.Open(directory.path() + "/new"), IsEmpty());
    ASSERT_TRUE(journal.Add(At(1, 20000)).ok());
    ASSERT_TRUE(journal.Add(At(2, 20001)).ok());
    ASSERT_TRUE(journal.Remove(1).ok());
  }
  for (int i = 0; i < 2; ++i) {
    Journal journal;
    EXPECT_THAT(*journal.Open(directory.path() + "/new"),
                ElementsAre(std::pair(2ul, At(2, 20001))));
  }
}

// No file of this process grows beyond `bytes`, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

// In a directory of its own, whose file is `path_`.
class JournalTest : public testing::Test {
 protected:
  // With an entry of 100 KB.
  static Reservation Long(uint64_t id) {
    Reservation reservation = At(id, 20000);
    reservation.label = std::string(100'000, 'x');
    return reservation;
  }
  static void ComeAndGo(Journal& journal, const Reservation& reservation, int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_TRUE(journal.Add(reservation).ok());
      ASSERT_TRUE(journal.Remove(reservation.id).ok());
    }
  }
  std::map<uint64_t, Reservation> Reopened() const {
    Journal journal;
    return journal.Open(directory_.path()).value();
  }
  const test::TemporaryDirectory directory_;
  const std::string path_ = directory_.File("reservations");
};

TEST_F(JournalTest, StaysShortHoweverManyComeAndGo) {
  constexpr int kThousands = 100;  // of pairs: some 15 MB of entries
  {
    Journal journal;
    ASSERT_TRUE(journal.Open(directory_.path()).ok());
    ASSERT_TRUE(journal.Add(At(1, 20000)).ok());
    for (int i = 0; i < kThousands; ++i) {
      ComeAndGo(journal, At(2, 20001), 1000);
      ASSERT_LE(fs::file_size(path_), Journal::kRewriteAboveBytes);
    }
    ASSERT_TRUE(journal.Add(At(3, 20002)).ok());
  }

  EXPECT_THAT(Reopened(), ElementsAre(std::pair(1ul, At(1, 20000)), std::pair(3ul, At(3, 20002))));
}

TEST_F(JournalTest, IsRewrittenOnlyWhenAsMuchHasComeAsStands) {
  constexpr uint64_t kStanding = 20;
  size_t rewritten = 0;
  {
    Journal journal;
    ASSERT_TRUE(journal.Open(directory_.path()).ok());
    for (uint64_t id = 1; id <= kStanding; ++id) {
      ASSERT_TRUE(journal.Add(Long(id)).ok());
    }
    auto before = fs::file_size(path_);
    for (int i = 0; i < 100; ++i) {
      ComeAndGo(journal, Long(kStanding + 1), 1);
      const auto after = fs::file_size(path_);
      rewritten += after < before ? 1 : 0;
      before = after;
    }
  }

  EXPECT_GE(rewritten, 1u);
  EXPECT_LE(rewritten, 100 / kStanding);
  EXPECT_EQ(Reopened().size(), kStanding);
}

TEST_F(JournalTest, ThatCannotBeRewrittenStaysInUseAndIsTriedAgain) {
  {
    Journal journal;
    ASSERT_TRUE(journal.Open(directory_.path()).ok());
    ASSERT_TRUE(journal.Add(At(1, 20000)).ok());
    fs::create_directory(path_ + ".new");
    ComeAndGo(journal, Long(2), 20);
    EXPECT_GT(fs::file_size(path_), Journal::kRewriteAboveBytes);

    fs::remove(path_ + ".new");
    ComeAndGo(journal, Long(2), 20);
    EXPECT_LE(fs::file_size(path_), Journal::kRewriteAboveBytes);
  }

  EXPECT_THAT(Reopened(), ElementsAre(std::pair(1ul, At(1, 20000))));
}

TEST_F(JournalTest, AnEntryThatFindsNoRoomHarmsNoOther) {
  {
    Journal journal;
    ASSERT_TRUE(journal.Open(directory_.path()).ok());
    ASSERT_TRUE(journal.Add(At(1, 20000)).ok());
    const auto before = fs::file_size(path_);
    absl::Status added;
    {
      const FullDisk full(before + 10);
      added = journal.Add(At(2, 20001));
    }
    EXPECT_EQ(added.code(), absl::StatusCode::kInternal);
    EXPECT_EQ(fs::file_size(path_), before);
    ASSERT_TRUE(journal.Add(At(3, 20002)).ok());
  }

  EXPECT_THAT(Reopened(), ElementsAre(std::pair(1ul, At(1, 20000)), std::pair(3ul, At(3, 20002))));
}

TEST_F(JournalTest, OnADiskThatIsFullAtTheStartTheOldFileStaysInUse) {
  test::WriteFile(path_, ToLine(At(1, 20000)) + "\n" + ToLine(At(2, 20001)) + "\n-\t1\n+\t3");
  {
    Journal journal;
    absl::StatusOr<std::map<uint64_t, Reservation>> standing;
    {
      const FullDisk full(0);
      standing = journal.Open(directory_.path());
    }
    ASSERT_TRUE(standing.ok()) << standing.status();
    EXPECT_THAT(*standing, ElementsAre(std::pair(2ul, At(2, 20001))));
    EXPECT_FALSE(fs::exists(path_ + ".new"));
    ASSERT_TRUE(journal.Add(At(4, 20003)).ok());
  }

  EXPECT_THAT(Reopened(), ElementsAre(std::pair(2ul, At(2, 20001)), std::pair(4ul, At(4, 20003))));
}

// Links: a file can be renamed over them, as over one without rights, and not over a folder.
TEST_F(JournalTest, ThatCannotBeReadIsRefusedAndNotReplaced) {
  fs::create_directory(directory_.File("folder"));
  for (const char* target : {"folder", "reservations"}) {  // the latter, itself, cannot be opened
    fs::create_symlink(target, path_);
    Journal journal;
    const absl::Status opened = journal.Open(directory_.path()).status();

    EXPECT_THAT(sekisho::Message(opened), HasSubstr(path_));
    EXPECT_THAT(Remedy(opened), Not(IsEmpty()));
    EXPECT_EQ(fs::read_symlink(path_).string(), target);
    fs::remove(path_);
  }
}

TEST(NxproxyExposed, SurvivesTheFile) {
  const test::TemporaryDirectory directory;
  const std::map<std::string, Bound> bounds = {
      {"127.0.0.1:7512 7512", {42, std::string(31, '\0') + "\xff"}}};

  ASSERT_TRUE(WriteExposed(directory.File("exposed"), bounds).ok());
  EXPECT_EQ(ReadExposed(directory.File("exposed")), bounds);
  EXPECT_THAT(ReadExposed(directory.File("none")), IsEmpty());
}

TEST(NxproxyRefusals, AreCountedAllAndLoggedOnceAMinuteAndSource) {
  RefusalLog log;
  const Refusal refusal{wire::Code::kDenied, "no", "public-bind"};

  EXPECT_TRUE(log.Add(refusal, "/CN=a", 0));
  EXPECT_FALSE(log.Add(refusal, "/CN=a", 100));
  EXPECT_TRUE(log.Add(refusal, "/CN=b", 100));
  EXPECT_TRUE(log.Add(refusal, "/CN=a", 61'000));
  EXPECT_EQ(log.counts().at("denied/public-bind"), 4u);
}

}  // namespace
}  // namespace sekisho::nxproxy
