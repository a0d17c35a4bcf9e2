// SPDX-License-Identifier: Apache-2.0
// The porter's pure parts.
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nxproxy/client/porter/interfaces.h"
#include "nxproxy/client/porter/link_records.h"
#include "nxproxy/client/porter/options.h"
#include "nxproxy/client/porter/proc_net.h"
#include "nxproxy/client/porter/ways.h"

namespace sekisho::nxproxy::client {
namespace {

using testing::HasSubstr;

wire::Address At(const char* text) { return wire::ParseAddress(text).value(); }

TEST(ProcNet, FindsListenersAndConnections) {
  TcpTable table;
  ParseTcp(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n"
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 "
      "4711 1 0 100 0 0 10 0\n"
      "   1: 0B00010A:0400 0A01000A:1D5A 01 00000000:00000000 00:00000000 00000000     0        0 "
      "4712 1 0 20 4 30 10 -1\n",
      table);
  ParseTcp(
      "   0: 0000000000000000FFFF00000B00010A:0401 0000000000000000FFFF00000A01000A:1D5A 01 0:0 "
      "0:0 0 0 0 4713 1\n"
      "   1: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 0:0 "
      "0:0 0 0 0 4714 1\n",
      table);

  EXPECT_THAT(table.listening, testing::ElementsAre(4711, 4714));
  EXPECT_TRUE(table.connections.contains({At("10.1.0.11:1024"), At("10.0.1.10:7514")}));
  EXPECT_TRUE(table.connections.contains({At("10.1.0.11:1025"), At("10.0.1.10:7514")}));
  EXPECT_EQ(table.connections.size(), 2u);
}

TEST(ProcNet, SkipsLinesThatItCannotRead) {
  TcpTable table;
  ParseTcp(
      "0:\n1: x\n\n2: 0100007F:1F90 00000000:0000 0A 0:0\n3: 0100007F:1F90 0:0 0A a b c d e 7\nend",
      table);
  EXPECT_TRUE(table.listening.empty());
  EXPECT_TRUE(table.connections.empty());
}

TEST(Interfaces, AWildcardIsReachedAtEveryAddress) {
  const Interfaces interfaces({{At("10.1.0.11:1"), 120}, {At("[fd00::1]:1"), 64}});

  EXPECT_EQ(interfaces.InsideText(At("0.0.0.0:80"), true, false), "10.1.0.11:80");
  EXPECT_EQ(interfaces.InsideText(At("[::]:80"), true, true), "10.1.0.11:80,[fd00::1]:80");
  EXPECT_EQ(interfaces.InsideText(At("[::]:80"), false, true), "[fd00::1]:80");
  EXPECT_EQ(interfaces.InsideText(At("10.1.0.11:80"), true, true), "10.1.0.11:80");
}

TEST(Interfaces, KnowTheirNetworks) {
  const Interfaces interfaces({{At("10.1.0.11:1"), 120}});

  EXPECT_TRUE(interfaces.IsOwn(At("10.1.0.11:99")));
  EXPECT_FALSE(interfaces.IsOwn(At("10.1.0.12:99")));
  EXPECT_TRUE(interfaces.IsAttached(At("10.1.0.12:99")));
  EXPECT_FALSE(interfaces.IsAttached(At("10.1.1.12:99")));
}

TEST(LinkRecords, HoldEachFactOnce) {
  const std::string path = testing::TempDir() + "/links";
  std::ofstream(path, std::ios::trunc).close();
  Loop loop;
  {
    LinkRecords records(loop, path);
    records.Listens("10.1.0.11:80,[fd00::1]:80");
    records.Connects(At("10.2.0.11:4000"), TakenWay::kRelayed);
    records.Connects(At("10.2.0.11:4000"), TakenWay::kRelayed);
    records.Connects(At("10.2.0.11:4000"), TakenWay::kReversed);
    records.Connects(At("10.1.0.12:1"), TakenWay::kDirect);
  }

  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(),
            "listens 10.1.0.11:80\nlistens [fd00::1]:80\nrelayed 10.2.0.11:4000\n"
            "reversed 10.2.0.11:4000\ndirect 10.1.0.12:1\n");
}

TEST(LinkRecords, AreWrittenTogetherBeforeTheProgramHasEnded) {
  const std::string path = testing::TempDir() + "/links-so-far";
  std::ofstream(path, std::ios::trunc).close();
  const auto written = [&] {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  Loop loop;
  LinkRecords records(loop, path);
  records.Listens("10.1.0.11:80");
  records.Connects(At("10.1.0.12:1"), TakenWay::kDirect);
  EXPECT_EQ(written(), "");

  std::function<void()> look = [&] {
    if (written().empty()) {
      loop.After(1, look);
    } else {
      loop.Stop();
    }
  };
  look();
  loop.Run();
  EXPECT_EQ(written(), "listens 10.1.0.11:80\ndirect 10.1.0.12:1\n");
}

TEST(Loop, DoesNotRunIfItWasStoppedBefore) {
  Loop loop;
  bool has_run = false;
  loop.After(0, [&] {
    has_run = true;
    loop.Stop();
  });

  loop.Stop();
  loop.Run();
  EXPECT_FALSE(has_run);

  loop.Run();
  EXPECT_TRUE(has_run);
}

TEST(Loop, ADescriptorHasNoEventsOfItsEarlierOwner) {
  int pairs[3][2];
  for (auto& pair : pairs) {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  }
  Loop loop;
  int came = 0;
  for (int own = 0; own < 2; ++own) {  // whoever is called first gives the other's number to the third
    loop.Watch(pairs[own][0], EPOLLIN, [&, own](uint32_t) {
      const int other = pairs[1 - own][0];
      loop.Forget(pairs[own][0]);
      loop.Forget(other);
      ASSERT_EQ(dup2(pairs[2][0], other), other);
      loop.Watch(other, EPOLLIN, [&](uint32_t) { ++came; });
      loop.After(0, [&] { loop.Stop(); });
    });
    ASSERT_EQ(write(pairs[own][1], "x", 1), 1);
  }

  loop.Run();

  EXPECT_EQ(came, 0);
  ASSERT_EQ(write(pairs[2][1], "x", 1), 1);
  loop.After(0, [&] { loop.Stop(); });
  loop.Run();
  EXPECT_EQ(came, 1);
  for (const auto& pair : pairs) {
    close(pair[0]);
    close(pair[1]);
  }
}

TEST(LinkRecords, AreKeptOnlyInAFileThatIsThere) {
  const std::string path = testing::TempDir() + "/no-links";
  Loop loop;
  LinkRecords records(loop, path);
  records.Connects(At("10.1.0.12:1"), TakenWay::kDirect);
  LinkRecords none(loop, "");
  none.Connects(At("10.1.0.12:1"), TakenWay::kDirect);

  EXPECT_FALSE(std::ifstream(path).good());
}

wire::Message Resolved(const char* inside) {
  wire::Message message;
  message.verb = wire::Verb::kResolved;
  message.address = "203.0.113.5:20001";
  message.inside = inside;
  message.owner = "/O=Grid/CN=Alice";
  return message;
}

const wire::Address kInside = At("10.1.0.11:1024");
const wire::Address kAtRelay = At("203.0.113.5:20001");

TEST(Way, WithinASiteIsDirect) {
  const wire::Message answer = Resolved("10.1.0.11:1024,[fd00::1]:1024@siteA");

  const Way near = WayOf({.destination = kInside, .site = "siteA"}, answer);
  EXPECT_EQ(near.kind, Way::Kind::kDirect);
  EXPECT_TRUE(near.is_neighbour);
  const Way way = WayOf({.destination = kAtRelay, .site = "siteA", .is_relay = true}, answer);
  EXPECT_EQ(way.kind, Way::Kind::kInside);
  EXPECT_EQ(way.inside, kInside);
}

TEST(Way, ToAnotherSiteIsTheRelay) {
  const Way way =
      WayOf({.destination = kInside, .site = "siteB"}, Resolved("10.1.0.11:1024@siteA"));
  EXPECT_EQ(way.kind, Way::Kind::kRelay);
  EXPECT_EQ(way.target, "203.0.113.5:20001");
  EXPECT_TRUE(way.is_ours);
}

TEST(Way, ToAnotherSiteIsTheRelayEvenIfOurNetworkHasTheSameAddresses) {
  const Question question = {.destination = kInside, .site = "siteB", .is_near = true};
  EXPECT_EQ(WayOf(question, Resolved("10.1.0.11:1024@siteA")).kind, Way::Kind::kRelay);
}

TEST(Way, NearIsDirectWhereNobodyKnowsTheSites) {
  EXPECT_EQ(WayOf({.destination = kInside, .is_near = true}, Resolved("10.1.0.11:1024@siteA")).kind,
            Way::Kind::kDirect);
  const Way unsure =
      WayOf({.destination = kInside, .site = "siteA", .is_near = true}, Resolved("10.1.0.11:1024"));
  EXPECT_EQ(unsure.kind, Way::Kind::kDirect);
  EXPECT_FALSE(unsure.is_neighbour);  // another relay may know better
  EXPECT_EQ(WayOf({.destination = kInside}, Resolved("10.1.0.11:1024")).kind, Way::Kind::kRelay);
}

TEST(Way, ToWhatTheRelayDoesNotKnowIsDirect) {
  const wire::Message unknown = wire::ErrorMessage(1, wire::Code::kNoSuchEndpoint, "");
  EXPECT_EQ(WayOf({.destination = kInside, .site = "siteB"}, unknown).kind, Way::Kind::kDirect);
}

TEST(Way, ToWhereOnlyEndpointsAreReachedIsRefusedInWordsIfThereIsNone) {
  const wire::Message nobody = wire::ErrorMessage(1, wire::Code::kNoSuchEndpoint, "nobody", "inside");
  const Way way = WayOf({.destination = kInside}, nobody);
  EXPECT_EQ(way.kind, Way::Kind::kRefused);
  EXPECT_TRUE(way.is_unknown);
  EXPECT_EQ(wire::Info(way.refusal.code).error, ECONNREFUSED);
  EXPECT_EQ(WayOf({.destination = kInside, .is_near = true}, nobody).kind, Way::Kind::kDirect);
}

TEST(Way, ToAnEndpointThatIsForbiddenIsRefusedInWords) {
  const wire::Message denied =
      wire::ErrorMessage(1, wire::Code::kDenied, "of another job", "job-scope");
  const Way way = WayOf({.destination = kAtRelay, .is_relay = true}, denied);
  EXPECT_EQ(way.kind, Way::Kind::kRefused);
  EXPECT_THAT(ToText(way.refusal), HasSubstr("rule job-scope"));
}

TEST(Options, AreReadUntilTheCommand) {
  Options options;
  EXPECT_EQ(ParseOptions({"exec", "--server", "a-dmz:7514", "--scope", "public", "--port", "5201",
                          "--port", "80:8080", "--", "/usr/bin/iperf3", "-s", "--port", "1"},
                         options),
            "");
  EXPECT_EQ(options.verb, "exec");
  ASSERT_EQ(options.servers.size(), 1u);
  EXPECT_EQ(options.servers[0].host, "a-dmz");
  EXPECT_EQ(options.plan.scope, wire::Scope::kPublic);
  EXPECT_EQ(options.plan.first_port, 5201);
  EXPECT_EQ(options.plan.ports.at(80), 8080);
  EXPECT_EQ(options.plan.label, "iperf3");
  EXPECT_THAT(options.command, testing::ElementsAre("/usr/bin/iperf3", "-s", "--port", "1"));
}

TEST(Options, NameSeveralRelays) {
  Options options;
  EXPECT_EQ(ParseOptions({"exec", "--server", "a-dmz:7514,[fd00::1]:7515", "--", "true"}, options), "");
  ASSERT_EQ(options.servers.size(), 2u);
  EXPECT_EQ(options.servers[1].port, 7515);
  EXPECT_THAT(ParseOptions({"exec", "--server", "a:1,b", "--", "true"}, options), HasSubstr("not 'b'"));
  EXPECT_THAT(ParseOptions({"exec", "--server", "a:1,a:2,a:3,a:4,a:5"}, options), HasSubstr("at most 4"));
}

TEST(Options, SayWhatIsWrong) {
  Options options;
  EXPECT_THAT(ParseOptions({"exec", "--scope", "world", "--server", "a:1"}, options),
              HasSubstr("--scope"));
  EXPECT_THAT(ParseOptions({"exec", "--port", "70000", "--server", "a:1"}, options),
              HasSubstr("--port"));
  EXPECT_THAT(ParseOptions({"exec", "--port"}, options), HasSubstr("expected a value"));
  EXPECT_THAT(ParseOptions({"exec", "--sever", "a:1"}, options), HasSubstr("unknown option"));
  EXPECT_THAT(ParseOptions({"exec", "--server", "a"}, options), HasSubstr("expected HOST:PORT"));
}

TEST(Options, AJobIsNamedAsSubmitPrintedIt) {
  EXPECT_EQ(TargetText("siteA/1f2e:8888"), "1f2e:8888");
  EXPECT_EQ(TargetText("https://a-dmz:2119/1f2e/:8888"), "1f2e:8888");
  EXPECT_EQ(TargetText("1f2e:8888"), "1f2e:8888");
  EXPECT_EQ(TargetText("[fd00::1]:80"), "[fd00::1]:80");
  EXPECT_EQ(TargetText("words"), "words");
}

}  // namespace
}  // namespace sekisho::nxproxy::client
