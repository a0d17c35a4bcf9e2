// SPDX-License-Identifier: Apache-2.0
#include "qserver/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::qserver {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

using Start = proto::ServerMessage::Start;

// Ranks 2 and 3 of 4, at siteB.
proto::Charter SomeCharter() {
  proto::Charter charter;
  charter.set_world("world-00112233445566778899aabbccddeeff");
  charter.set_part(1);
  charter.set_parts(2);
  charter.set_first_rank(2);
  charter.set_ranks(4);
  charter.set_leader_key(std::string(32, 'k'));
  charter.set_relay("a-dmz:7514");
  return charter;
}

TaskSettings Settings(const RelaySettings& relay) {
  TaskSettings settings;
  settings.site = "siteB";
  settings.mpi.mpich_preload = "/opt/libsekisho-mpich.so";
  settings.mpi.rank_program = "/opt/sekisho-rank";
  settings.relay = relay;
  return settings;
}

std::vector<Start> Ranks(const proto::Charter& charter, const RelaySettings& relay,
                         bool is_released = false, const std::string& more = "") {
  proto::JobStatus status;
  status.set_job_id("abcdefghijklm");
  for (const char* node : {"b-n1", "b-n2"}) {
    status.add_placement()->set_node(node);
    status.mutable_placement()->rbegin()->set_processes(1);
  }
  const auto job = rsl::ParseAndDescribe("&(executable=/bin/x)(count=2)" + more, {});
  std::vector<Start> starts =
      MakeStarts(status, *job, false, "https://g:2119/j/", 60, Settings(relay));
  MakeRanks(charter, *job, status, is_released, Settings(relay), starts);
  return starts;
}

proto::RequestBody Asking(int64_t time_ms, int64_t ready_by_ms) {
  proto::RequestBody body;
  body.set_time_ms(time_ms);
  body.mutable_submit()->mutable_charter()->set_ready_by_ms(ready_by_ms);
  return body;
}

TEST(ReadyBy, CountsFromTheSubmissionByOurClockWhateverTheUsersSays) {
  for (const int64_t skew_ms : {-299'000, 0, 299'000}) {
    EXPECT_EQ(ReadyBy(Asking(1'000'000 + skew_ms, 1'060'000 + skew_ms), 1'000'000), 1'060'000);
  }
}

TEST(ReadyBy, IsNeverBeforeTheSubmissionNorAMonthBehindIt) {
  constexpr int64_t kMonthMs = int64_t{30} * 24 * 3600 * 1000;
  EXPECT_EQ(ReadyBy(Asking(1000, 999), 5000), 5000);
  EXPECT_EQ(ReadyBy(Asking(-1, INT64_MAX), 5000), 5000);
  EXPECT_EQ(ReadyBy(Asking(1, INT64_MAX), 5000), 5000 + kMonthMs);
}

std::map<std::string, std::string> Environment(const Start& start) {
  return {start.environment().begin(), start.environment().end()};
}

const RelaySettings kOpenNodes{"b-dmz:7514", "", "/opt/sekisho-nxporter"};
const RelaySettings kClosedNodes{"b-dmz:7514", "b-head:7514", "/opt/sekisho-nxporter"};

TEST(Ranks, AreTheCharters) {
  const std::vector<Start> starts = Ranks(SomeCharter(), kOpenNodes);

  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[1].rank().rank(), 3);
  EXPECT_EQ(starts[1].rank().ranks(), 4);
  EXPECT_EQ(starts[1].rank().local_ranks(), 1);
  EXPECT_EQ(starts[1].rank().world(), "world-00112233445566778899aabbccddeeff");
  EXPECT_THAT(Environment(starts[1]), Contains(Pair("SEKISHO_RANK", "3")));
  EXPECT_THAT(Environment(starts[1]), Contains(Pair("GLOBUS_DUROC_SUBJOB_INDEX", "1")));
}

TEST(Ranks, AreInTheOrderThatTheCharterGivesThem) {
  proto::Charter charter = SomeCharter();
  charter.set_first_rank(0);
  for (const int rank : {3, 0}) {
    charter.add_rank(rank);
  }

  const std::vector<Start> starts = Ranks(charter, kOpenNodes);

  EXPECT_EQ(starts[0].rank().rank(), 3);
  EXPECT_EQ(starts[1].rank().rank(), 0);
  const proto::Charter in_order = SomeCharter();
  EXPECT_EQ(InputTask(&charter), 1);
  EXPECT_EQ(InputTask(&in_order), 0);
  EXPECT_EQ(InputTask(nullptr), 0);
}

TEST(Ranks, OfAnOrderAreOneForEachTask) {
  const auto job = rsl::ParseAndDescribe("&(executable=/bin/x)(count=2)(jobtype=multiple)", {});
  const auto is_good = [&](int first, const std::vector<int>& ranks) {
    proto::Charter charter = SomeCharter();
    charter.set_first_rank(first);
    charter.mutable_rank()->Assign(ranks.begin(), ranks.end());
    return CheckCharter(charter, *job, kOpenNodes).ok();
  };

  EXPECT_TRUE(is_good(0, {3, 0}));
  EXPECT_FALSE(is_good(1, {3, 0}));
  EXPECT_FALSE(is_good(0, {0}));
  EXPECT_FALSE(is_good(0, {0, 0}));
  EXPECT_FALSE(is_good(0, {0, 4}));
  EXPECT_FALSE(is_good(0, {0, 1, 2}));
  EXPECT_FALSE(is_good(-1, {-1, 0}));
}

TEST(Ranks, WaitUntilTheirPartIsReleased) {
  EXPECT_TRUE(Ranks(SomeCharter(), kOpenNodes, false)[0].await_release());
  EXPECT_FALSE(Ranks(SomeCharter(), kOpenNodes, true)[0].await_release());
}

TEST(Ranks, OfSeveralSitesMeetAtTheRelayUnderAToken) {
  const Start start = Ranks(SomeCharter(), kOpenNodes)[0];

  EXPECT_THAT(Environment(start), Contains(Pair("NXPROXY_SERVER", "a-dmz:7514")));
  EXPECT_THAT(Environment(start), Contains(Pair("NXPROXY_SITE", "siteB")));
  EXPECT_THAT(start.wrapper(), ElementsAre("/opt/sekisho-rank", "--mpi", "auto", "--",
                                           "/opt/sekisho-nxporter", "exec", "--"));
}

TEST(Ranks, KnowHowManyOfThemEachNodeHas) {
  EXPECT_THAT(Environment(Ranks(SomeCharter(), kOpenNodes)[1]), Contains(Pair("SEKISHO_NODE_RANKS", "1,1")));
}

TEST(Ranks, ThatCannotDialOutGoThroughTheRelayInside) {
  proto::Charter charter = SomeCharter();
  charter.set_relay("b-dmz:7514");

  EXPECT_THAT(Environment(Ranks(charter, kClosedNodes)[0]),
              Contains(Pair("NXPROXY_SERVER", "b-head:7514")));
}

TEST(Ranks, AreToldTheirSitesWaysPastTheRelay) {
  EXPECT_THAT(Environment(Ranks(SomeCharter(), kOpenNodes)[0]),
              Not(Contains(Key(testing::AnyOf("NXPROXY_DIRECT", "NXPROXY_REVERSE", "SEKISHO_DIRECT_UNTRANSLATED")))));
  RelaySettings relay = kOpenNodes;
  relay.direct = "10.2.0.0/24,10.3.0.0/24";
  relay.direct_untranslated = "10.3.0.0/24";
  relay.is_reversed = true;

  EXPECT_THAT(Environment(Ranks(SomeCharter(), relay)[0]),
              IsSupersetOf({Pair("NXPROXY_DIRECT", "10.2.0.0/24,10.3.0.0/24"), Pair("NXPROXY_REVERSE", "1"),
                            Pair("SEKISHO_DIRECT_UNTRANSLATED", "10.3.0.0/24")}));
  EXPECT_THAT(Environment(Ranks(SomeCharter(), relay, false, "(environment=(NXPROXY_DIRECT 10.9.0.0/16)(NXPROXY_REVERSE 0))")[0]),
              IsSupersetOf({Pair("NXPROXY_DIRECT", "10.9.0.0/16"), Pair("NXPROXY_REVERSE", "0")}));
}

TEST(Ranks, OfEachPartListenAtPortsOfTheirOwn) {
  proto::Charter charter = SomeCharter();
  const Start second = Ranks(charter, kOpenNodes)[1];
  EXPECT_THAT(Environment(second), IsSupersetOf({Pair("OMPI_MCA_btl_tcp_port_min_v4", "3000"), Pair("OMPI_MCA_btl_tcp_port_range_v4", "1000"),
                                                 Pair("OMPI_MCA_btl_tcp_port_min_v6", "3000"), Pair("UCX_TCP_PORT_RANGE", "3000-3999")}));
  charter.set_parts(1024);
  charter.set_part(61);
  EXPECT_THAT(Environment(Ranks(charter, kOpenNodes)[0]), Contains(Pair("UCX_TCP_PORT_RANGE", "63000-63999")));
  charter.set_part(62);
  EXPECT_THAT(Environment(Ranks(charter, kOpenNodes)[0]), Contains(Pair("UCX_TCP_PORT_RANGE", "2000-2999")));
}

TEST(Ranks, OfOneSiteNeedNoRelay) {
  proto::Charter charter = SomeCharter();
  charter.clear_relay();

  const Start start = Ranks(charter, kOpenNodes)[0];

  EXPECT_THAT(Environment(start), Not(Contains(Key("NXPROXY_SERVER"))));
  EXPECT_THAT(start.wrapper(), ElementsAre("/opt/sekisho-rank", "--mpi", "auto", "--"));
}

TEST(Ranks, AreOfTheMpiThatTheirJobNames) {
  const Start start = Ranks(SomeCharter(), kOpenNodes, false, "(mpi_type=openmpi)")[0];

  EXPECT_EQ(start.wrapper(2), "openmpi");
  EXPECT_THAT(Environment(start), Contains(Pair("SEKISHO_PMIX_LOCK", "@FILES@/pmix-lock")));
  EXPECT_EQ(start.file().count("pmix-lock"), 1u);
}

TEST(Ranks, KeepWhatTheUserPreloadsAndChooses) {
  const Start start =
      Ranks(SomeCharter(), kOpenNodes, false, "(environment=(LD_PRELOAD /my.so)(UCX_TLS all)(UCX_TCP_PORT_RANGE 0))")[0];

  EXPECT_THAT(Environment(start), Contains(Pair("LD_PRELOAD", "/my.so:/opt/libsekisho-mpich.so")));
  EXPECT_THAT(Environment(start), Contains(Pair("UCX_TLS", "all")));
  EXPECT_THAT(Environment(start), Contains(Pair("UCX_TCP_PORT_RANGE", "0")));
}

absl::Status Check(const proto::Charter& charter, const RelaySettings& relay,
                   const std::string& rsl = "&(executable=/bin/x)(count=2)") {
  return CheckCharter(charter, *rsl::ParseAndDescribe(rsl, {}), relay);
}

TEST(Charter, OfAWorldThatEncryptsNamesThisQueueServer) {
  proto::Charter charter = SomeCharter();
  EXPECT_TRUE(CheckSpeaker(charter, "siteB", "/CN=b-head").ok());

  charter.set_encrypt(true);
  EXPECT_THAT(CheckSpeaker(charter, "siteB", "/CN=b-head").message(), testing::HasSubstr("take nobody for it"));
  (*charter.mutable_speaker())["siteB"] = "/CN=b-dmz";
  EXPECT_THAT(CheckSpeaker(charter, "siteB", "/CN=b-head").message(),
              testing::HasSubstr("the queue server of siteB is /CN=b-head, its user's tools take /CN=b-dmz for it"));
  (*charter.mutable_speaker())["siteB"] = "/CN=b-head";
  EXPECT_TRUE(CheckSpeaker(charter, "siteB", "/CN=b-head").ok());
}

TEST(Charter, MustNameAWorldALeaderAndRanksInside) {
  EXPECT_TRUE(Check(SomeCharter(), kOpenNodes).ok());
  proto::Charter charter = SomeCharter();
  charter.set_world("world-1");
  EXPECT_FALSE(Check(charter, kOpenNodes).ok());
  charter = SomeCharter();
  charter.set_leader_key("short");
  EXPECT_FALSE(Check(charter, kOpenNodes).ok());
  charter = SomeCharter();
  charter.set_ranks(3);
  EXPECT_FALSE(Check(charter, kOpenNodes).ok());
  EXPECT_FALSE(Check(SomeCharter(), kOpenNodes, "&(executable=/bin/x)(count=2)(jobtype=mpi)").ok());
}

TEST(Charter, MustMeetWhereTheNodesCanGo) {
  EXPECT_FALSE(Check(SomeCharter(), kClosedNodes).ok());
  EXPECT_FALSE(Check(SomeCharter(), {}).ok());
}

}  // namespace
}  // namespace sekisho::qserver
