// SPDX-License-Identifier: Apache-2.0
#include "client/topology/verb_topology.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "client/topology/shell_child.h"
#include "client/topology/topology_infer.h"
#include "client/topology/topology_jobs.h"
#include "client/topology/topology_live.h"
#include "client/topology/topology_show.h"
#include "topology/fast.h"

namespace sekisho::client {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string Oracle(const std::string& arguments) {
  const char* bin = std::getenv("SEKISHO_BIN");
  return fmt::format("{}/sekisho-topology-oracle {}", bin == nullptr ? "." : bin, arguments);
}

class TopologyVerb : public ::testing::Test {
 protected:
  TopologyVerb() {
    std::string name = (fs::temp_directory_path() / "topologyXXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~TopologyVerb() override { fs::remove_all(directory_); }

  std::string File(const std::string& name) const { return (directory_ / name).string(); }
  void WriteHosts(int count, bool has_sites = false) const {
    std::ofstream file(File("hosts"));
    for (int i = 0; i < count; ++i) {
      file << fmt::format("h{:04}{}\n", i, has_sites ? " c0" : "");
    }
  }
  absl::Status Infer(const std::string& oracle, const std::string& method = "fast") {
    return InferTopology({.source = {.hosts = File("hosts"), .oracle = oracle, .timeout_s = 1},
                          .out = File("tree"),
                          .report = File("report"),
                          .method = method},
                         out_, log_);
  }
  // Neither a tree nor a part of one.
  bool IsEmpty() const {
    for (const auto& entry : fs::directory_iterator(directory_)) {
      if (entry.path().filename() != "hosts" && entry.path().filename() != "log") {
        return false;
      }
    }
    return true;
  }
  size_t Lines(const std::string& name) const {
    std::ifstream file(File(name));
    size_t lines = 0;
    for (std::string line; std::getline(file, line);) {
      ++lines;
    }
    return lines;
  }

  std::string ReadAll(const std::string& name) const {
    std::ifstream file(File(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  int RelayedLines(const std::string& name) const {
    std::ifstream file(File(name));
    int lines = 0;
    for (std::string line; std::getline(file, line);) {
      lines += line.ends_with(" relayed") ? 1 : 0;
    }
    return lines;
  }

  fs::path directory_;
  std::ostringstream out_;
  std::ostringstream log_;
};

TEST_F(TopologyVerb, BringsAKnownTreeUpToDateForFewMeasurements) {
  WriteHosts(64);
  ASSERT_TRUE(Infer(Oracle("single64 7")).ok());
  fs::rename(File("tree"), File("old"));

  const absl::Status status =
      InferTopology({.source = {.hosts = File("hosts"), .oracle = Oracle("single64 7")},
                     .out = File("tree"),
                     .known = File("old")},
                    out_, log_);

  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_THAT(out_.str(), HasSubstr("0 placed, 0 moved"));
}

TEST_F(TopologyVerb, KeepsATreeUpToDateAndBearsARoundThatFails) {
  WriteHosts(64);
  const auto answer_as = [this](const std::string& command) {
    std::ofstream(File("oracle")) << "exec " << command << '\n';
  };
  answer_as(Oracle("single64 7"));
  int rounds = 0;
  std::string before;

  const absl::Status status = KeepTopology(
      {.source = {.hosts = File("hosts"), .oracle = "exec sh " + File("oracle"), .timeout_s = 1},
       .out = File("tree")},
      [&] {
        before = rounds == 0 ? ReadAll("tree") : before;
        answer_as(rounds == 0 ? "false" : Oracle("single64 7"));
        EXPECT_EQ(ReadAll("tree"), before);
        return ++rounds < 3;
      },
      out_, log_);

  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_THAT(log_.str(), HasSubstr("the tree stays as it is: the oracle ended"));
  EXPECT_THAT(out_.str(), HasSubstr("0 placed, 0 moved"));
}

TEST_F(TopologyVerb, SaysWhichHostIsASwitchOfTheKnownTree) {
  WriteHosts(3);
  std::ofstream(File("old")) << "h0000 h0001 1\nh0001 h0002 1\n";

  const absl::Status status =
      InferTopology({.source = {.hosts = File("hosts"), .oracle = Oracle("tiny3 7")},
                     .out = File("tree"),
                     .known = File("old")},
                    out_, log_);

  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.ToString(), HasSubstr("h0001 is a switch there"));
  EXPECT_FALSE(fs::exists(File("tree")));
}

TEST_F(TopologyVerb, InfersATreeThatCanBeShown) {
  WriteHosts(64);

  ASSERT_TRUE(Infer(Oracle("single64 3")).ok());

  EXPECT_THAT(out_.str(), HasSubstr("64 hosts, 1 site, "));
  EXPECT_GE(Lines("tree"), 64u);
  for (const bool is_svg : {false, true}) {
    std::ostringstream shown;
    ASSERT_TRUE(ShowTopology({.tree = File("tree"), .is_svg = is_svg}, shown).ok());
    EXPECT_THAT(shown.str(), HasSubstr("h0063"));
  }
}

TEST_F(TopologyVerb, SaysHowSureItIs) {
  WriteHosts(64);

  ASSERT_TRUE(Infer(Oracle("single64 3")).ok());

  EXPECT_THAT(out_.str(), HasSubstr("least sure switches (confidence): s"));
}

TEST_F(TopologyVerb, SaysWhereARedundantCoreIs) {
  WriteHosts(256);

  ASSERT_TRUE(Infer(Oracle("spine256 3")).ok());

  EXPECT_THAT(out_.str(), HasSubstr(": not one switch: ways across it differ from pair to pair"));
  EXPECT_THAT(out_.str(), HasSubstr("least sure switches (confidence): s"));
  EXPECT_THAT(ReadAll("report"), HasSubstr("\"several_ways\": "));
  EXPECT_THAT(ReadAll("report"), HasSubstr("\"confidence\": 0.0"));
}

TEST_F(TopologyVerb, ShowsHowSureSwitchesAreAndWhatLinksCarry) {
  std::ofstream(File("tree")) << "a s0 9\nb s0 9\nc s1 9\nd s1 9\ns0 s1 2\n";
  std::ofstream(File("report")) << R"({"links": [
    {"u": "s0", "v": "a", "confidence": 1}, {"u": "s0", "v": "b", "confidence": 1},
    {"u": "c", "v": "s1", "confidence": 1}, {"u": "d", "v": "s1", "confidence": 1},
    {"u": "s1", "v": "s0", "confidence": 0.75}]})";
  std::ofstream(File("map")) << R"({"links": [
    {"u": "s1", "v": "s0", "mbps": 12.5}, {"u": "a", "v": "s0", "mbps": 7.5, "is_at_least": true}]})";
  std::ofstream(File("other"))
      << R"({"links": [{"u": "x", "v": "y", "confidence": 1, "mbps": 1}]})";
  std::ofstream(File("nothing")) << "a s0 20\n";

  for (const char* kind : {"text", "dot", "svg", "json"}) {
    std::ostringstream shown;
    ASSERT_TRUE(ShowTopology({.tree = File("tree"),
                              .hosts = "",
                              .report = File("report"),
                              .bandwidth = File("map"),
                              .is_dot = kind[0] == 'd',
                              .is_svg = kind[0] == 's',
                              .is_json = kind[0] == 'j'},
                             shown)
                    .ok());
    EXPECT_THAT(shown.str(), HasSubstr("0.75")) << kind;
    EXPECT_THAT(shown.str(), HasSubstr("12.5")) << kind;
    EXPECT_THAT(shown.str(), HasSubstr(kind[0] == 'j' ? "\"is_at_least\": true" : ">=7.5 Mb/s"))
        << kind;
  }
  for (const char* wrong : {"other", "nothing"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        ShowTopology({.tree = File("tree"), .hosts = "", .report = File(wrong)}, out_)));
    EXPECT_TRUE(absl::IsInvalidArgument(
        ShowTopology({.tree = File("tree"), .hosts = "", .bandwidth = File(wrong)}, out_)));
  }
}

TEST_F(TopologyVerb, NamesAHostThatStopsAnswering) {
  WriteHosts(64);

  ASSERT_TRUE(Infer(Oracle("single64 3 --dead-after 7:20")).ok());

  EXPECT_THAT(log_.str(), HasSubstr("h0007: stopped answering"));
  EXPECT_EQ(log_.str().find('\n'), log_.str().size() - 1) << log_.str();
}

TEST_F(TopologyVerb, AsksOnlyMeasurementsAtTimesThatNeverDecrease) {
  WriteHosts(64);

  ASSERT_TRUE(Infer(Oracle("single64 3 --log " + File("log"))).ok());

  std::ifstream log(File("log"));
  double last = 0;
  int from, to, pings;
  double start, duration;
  int lines = 0;
  while (log >> from >> to >> pings >> start >> duration) {
    EXPECT_GE(start, last);
    last = start;
    ++lines;
  }
  EXPECT_GT(lines, 500);
}

TEST_F(TopologyVerb, WritesNothingIfTheOracleDies) {
  WriteHosts(64);

  const absl::Status status = Infer(Oracle("single64 3 --die-after 100"));

  EXPECT_THAT(std::string(status.message()), HasSubstr("exit code 3 after 100 answers"));
  EXPECT_TRUE(IsEmpty());
}

TEST_F(TopologyVerb, WritesNothingIfTheOracleIsSilent) {
  WriteHosts(2);

  const absl::Status status = Infer("sleep 100");

  EXPECT_THAT(std::string(status.message()), HasSubstr("did not answer for 1 s"));
  EXPECT_TRUE(IsEmpty());
}

TEST_F(TopologyVerb, WritesNothingIfTheOracleTalksNonsense) {
  WriteHosts(64);

  EXPECT_FALSE(Infer("yes").ok());
  EXPECT_FALSE(Infer("/nonexistent/oracle").ok());
  EXPECT_FALSE(Infer("echo 64; while read line; do echo nonsense; done").ok());
  EXPECT_TRUE(IsEmpty());
}

TEST_F(TopologyVerb, WritesNothingIfTheOracleSaysMoreThanItIsAsked) {
  WriteHosts(20);

  const absl::Status status = Infer(R"(while read what rest; do case $what in
    N) echo 20 ;;
    M) echo 100 100 100 1 250; echo 100 100 100 1 250 ;;
    esac; done)");

  EXPECT_THAT(std::string(status.message()), HasSubstr("where nothing was asked"));
  EXPECT_TRUE(IsEmpty());
}

TEST_F(TopologyVerb, BearsSomeGarbage) {
  WriteHosts(64);

  EXPECT_TRUE(Infer(Oracle("single64 3 --garbage-every 15")).ok());
  EXPECT_GE(Lines("tree"), 64u);
}

TEST_F(TopologyVerb, NamesHostsThatAreDead) {
  WriteHosts(64);

  ASSERT_TRUE(Infer(Oracle("single64 3 --dead 7 --dead 9")).ok());

  EXPECT_EQ(log_.str(), "h0007: no answer\nh0009: no answer\n");

  // Also where nothing is left of which there could be a tree.
  WriteHosts(2);
  fs::remove(File("tree"));
  fs::remove(File("report"));
  log_.str("");
  EXPECT_THAT(std::string(Infer(Oracle("tiny2 3 --dead 1")).message()),
              HasSubstr("no host answered another"));
  EXPECT_EQ(log_.str(), "h0000: no answer\nh0001: no answer\n");
  EXPECT_TRUE(IsEmpty());
}

TEST_F(TopologyVerb, FindsOneSwitchWhereAllRoundTripsAreTheSame) {
  WriteHosts(20);

  ASSERT_TRUE(Infer(R"(while read what rest; do case $what in
    N) echo 20 ;;
    M) echo 100 100 100 1 250 ;;
    Q) exit ;;
    esac; done)")
                  .ok());

  EXPECT_THAT(out_.str(), HasSubstr("20 hosts, 1 site, 1 switches"));
  EXPECT_EQ(Lines("tree"), 20u);
}

TEST_F(TopologyVerb, RefusesAnOracleForOtherHosts) {
  WriteHosts(63);

  EXPECT_THAT(std::string(Infer(Oracle("single64 3")).message()),
              HasSubstr("names 63 hosts, the oracle says 64"));
}

std::string Prober() {
  const char* bin = std::getenv("SEKISHO_BIN");
  return fmt::format("exec {}/sekisho-agent --probe-only --interface lo",
                     bin == nullptr ? "." : bin);
}

TEST_F(TopologyVerb, NamesProbersThatCannotDoTheirPart) {
  const topology::HostList hosts{
      .names = {"good", "twice", "gone", "frozen", "liar"}, .cluster_of = {}, .cluster_names = {}};
  TopologyProbers probers(std::chrono::seconds(1));
  ASSERT_TRUE(
      probers
          .Start(hosts,
                 fmt::format("case $HOST in\n"
                             "good|twice) {} ;;\n"
                             "gone) exit 7 ;;\n"
                             "frozen) echo welcome; echo R 9 127.0.0.2 frozen; exec sleep 100 ;;\n"
                             "liar) echo R 9 127.0.0.3 liar; exec yes ;;\n"
                             "esac",
                             Prober()),
                 20)
          .ok());

  topology::FastMethod method(5, {.site_hints = {0, 0, 0, 0, 0}});
  RunLive(method, probers, 0);

  EXPECT_EQ(probers.Lost(0), "");
  EXPECT_THAT(probers.Lost(1), HasSubstr("the same host as good"));
  EXPECT_EQ(probers.Lost(2), "its prober ended with exit code 7");
  EXPECT_EQ(probers.Lost(3), "its prober was silent for 1 s");
  EXPECT_EQ(probers.Lost(4), "its prober said \"y\"");
}

TEST_F(TopologyVerb, AProberRefusesWhatIsNoOrder) {
  ShellChild child;
  ASSERT_TRUE(child.Start(Prober() + " 2>&1 | tail -n 1 > " + File("log")).ok());

  ASSERT_EQ(write(child.socket(), "M 1 127.0.0.1 9 1 1 1\n", 22), 22);  // before the key
  child.End(std::chrono::steady_clock::now() + std::chrono::seconds(20));

  std::ifstream log(File("log"));
  std::string line;
  std::getline(log, line);
  EXPECT_THAT(line, HasSubstr("expected \"K KEY\" first"));
}

TEST_F(TopologyVerb, AProberSendsOnceItIsToldToGo) {
  const topology::HostList hosts{.names = {"one"}, .cluster_of = {}, .cluster_names = {}};
  TopologyProbers probers(std::chrono::seconds(5));
  ASSERT_TRUE(probers.Start(hosts, Prober(), 20).ok());
  const auto answer = [&probers](const std::string& order, long id) {
    probers.Order(0, id, order);
    std::string said;
    for (const TopologyProbers::Event& event : probers.Wait()) {
      said = event.answer.value_or("lost: " + probers.Lost(event.host));
    }
    return said;
  };

  EXPECT_EQ(answer(topology::PrintGoOrder(1, 7), 1), "0 0");
  EXPECT_EQ(answer(topology::PrintWaitOrder(2, probers.Ready(0).at, 50), 2), topology::kConnected);
  EXPECT_GT(topology::ParseFlow(answer(topology::PrintGoOrder(3, 2), 3)), 1);
  EXPECT_EQ(answer(topology::PrintGoOrder(4, 2), 4), "0 0");  // it has gone already
}

TEST_F(TopologyVerb, NeedsToKnowWhereMeasurementsComeFrom) {
  WriteHosts(2);

  for (const TopologySourceOptions& source : std::vector<TopologySourceOptions>{
           {},
           {.hosts = File("hosts"), .oracle = "true", .launch = "true"},
           {.launch = "true"},
           {.sites = {"siteA", "siteA"}, .nodes = {2}},
           {.sites = {"siteA", "siteB"}, .nodes = {2, 2, 2}},
           {.hosts = File("hosts"), .sites = {"siteA"}, .nodes = {2}}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        InferTopology({.source = source, .out = File("tree"), .report = ""}, out_, log_)));
  }
  EXPECT_TRUE(IsEmpty());
}

// What stands in for ssh notes what it was told, and does it here.
TEST_F(TopologyVerb, ReachesHostsByTheirNamesOverSsh) {
  std::ofstream(File("ssh")) << "#!/bin/sh\necho \"$@\" >> " << File("told") << "\n"
                             << "while [ \"$1\" != -- ]; do shift; done\n"
                             << "test $2 = h0001 && exit 255\nshift 2\nexec \"$@\"\n";
  fs::permissions(File("ssh"), fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  const char* bin = std::getenv("SEKISHO_BIN");
  setenv("PATH", (directory_.string() + ":" + path).c_str(), 1);
  WriteHosts(2);
  TopologyProbers probers;

  const auto hosts =
      OpenProbers({.hosts = File("hosts"),
                   .prober = fmt::format("{}/sekisho-agent", bin == nullptr ? "." : bin),
                   .interface = "lo"},
                  probers);
  setenv("PATH", path.c_str(), 1);

  ASSERT_TRUE(hosts.ok()) << hosts.status().ToString();
  EXPECT_EQ(probers.Lost(0), "");
  EXPECT_EQ(probers.Lost(1), "its prober ended with exit code 255");
  EXPECT_THAT(ReadAll("told"), HasSubstr("-T -o BatchMode=yes -- h0000 "));
}

TEST(ProberJobs, AreOnTheNodesThatTakeJobs) {
  EXPECT_THAT(NodesOf(R"([{"site": "a", "nodes": [
                {"name": "n2", "is_up": true, "state": "up"},
                {"name": "n3", "is_up": false, "state": "down"},
                {"name": "n4", "is_up": true, "state": "drained"},
                {"name": "n1", "is_up": true}]}])"),
              ::testing::ElementsAre("n1", "n2"));
  EXPECT_TRUE(NodesOf("").empty());
  EXPECT_TRUE(NodesOf(R"([{"site": "a", "is_up": false}])").empty());
}

TEST(ProberRelay, IsThatOfTheSiteWhoseNodesReachNoOther) {
  const auto site = [](const char* name, const char* relay, bool is_only_way) {
    return fmt::format(
        R"([{{"site": "{}", "is_up": true, "relay": {{"address": "{}", "is_only_way": {}}}}}])",
        name, relay, is_only_way);
  };

  const auto relay = RelayOf({site("siteA", "a:1", false), site("siteB", "b:1", true)});
  ASSERT_TRUE(relay.ok());
  EXPECT_EQ(relay->site, "siteB");
  EXPECT_EQ(relay->address, "b:1");
  EXPECT_EQ(
      RelayOf({R"([{"site": "siteC", "is_up": false}])", "", site("siteA", "a:1", false)})->site,
      "siteA");
  EXPECT_FALSE(RelayOf({site("siteA", "", false), site("siteB", "", false)}).ok());
  EXPECT_FALSE(RelayOf({site("siteA", "a:1", true), site("siteB", "b:1", true)}).ok());
}

// The oracle says that all between the two halves of its hosts goes through a relay.
TEST_F(TopologyVerb, MarksWhatARelayIsTheOnlyWayTo) {
  WriteHosts(4);
  const std::string oracle = R"(while read what i j rest; do case $what in
    N) echo 4 ;;
    M) if [ $((i / 2)) = $((j / 2)) ]; then echo 100 100 100 1 250; else echo 900 900 900 1 5000 relayed; fi ;;
    Q) exit ;;
    esac; done)";

  ASSERT_TRUE(Infer(oracle).ok());
  EXPECT_THAT(out_.str(), HasSubstr("4 hosts, 2 sites"));
  EXPECT_THAT(out_.str(), HasSubstr("through a relay"));
  EXPECT_EQ(RelayedLines("tree"), 1);
  ASSERT_TRUE(ShowTopology({.tree = File("tree"), .is_json = true}, out_).ok());
  EXPECT_THAT(out_.str(), HasSubstr("\"relayed\": true"));
  ASSERT_TRUE(ShowTopology({.tree = File("tree")}, out_).ok());
  EXPECT_THAT(out_.str(), HasSubstr(" us relayed"));
  ASSERT_TRUE(ShowTopology({.tree = File("tree"), .is_dot = true}, out_).ok());
  EXPECT_THAT(out_.str(), HasSubstr("style=dashed"));
  ASSERT_TRUE(ShowTopology({.tree = File("tree"), .is_svg = true}, out_).ok());
  EXPECT_THAT(out_.str(), HasSubstr("stroke-dasharray"));

  ASSERT_TRUE(
      WriteTopologyMatrix(
          {.source = {.hosts = File("hosts"), .oracle = oracle}, .out = File("matrix")}, out_, log_)
          .ok());
  EXPECT_EQ(Lines("matrix"), 6u);
  EXPECT_EQ(RelayedLines("matrix"), 4);
}

TEST_F(TopologyVerb, TakesTwoHostsAndOne) {
  WriteHosts(2);
  EXPECT_TRUE(Infer(Oracle("tiny2 3")).ok());
  EXPECT_EQ(Lines("tree"), 1u);

  WriteHosts(1);
  EXPECT_TRUE(Infer("read line; echo 1; read line").ok());
  EXPECT_EQ(Lines("tree"), 0u);
}

TEST_F(TopologyVerb, WritesAMatrixOfAllPairs) {
  WriteHosts(64);
  for (const char* method : {"tree", "alpha"}) {
    ASSERT_TRUE(
        WriteTopologyMatrix({.source = {.hosts = File("hosts"), .oracle = Oracle("single64 3")},
                             .out = File("matrix"),
                             .method = method},
                            out_, log_)
            .ok());
    EXPECT_EQ(Lines("matrix"), 64u * 63 / 2);
  }
  EXPECT_EQ(log_.str(), "");
}

TEST_F(TopologyVerb, AMatrixNamesHostsThatAreDead) {
  WriteHosts(64);
  for (const char* method : {"tree", "alpha"}) {
    log_.str("");
    ASSERT_TRUE(WriteTopologyMatrix({.source = {.hosts = File("hosts"),
                                                .oracle = Oracle("single64 3 --dead 7 --dead 9")},
                                     .out = File("matrix"),
                                     .method = method},
                                    out_, log_)
                    .ok());
    EXPECT_EQ(Lines("matrix"), 62u * 61 / 2) << method;
    EXPECT_EQ(log_.str(), "h0007: no answer\nh0009: no answer\n") << method;
  }

  WriteHosts(2);
  fs::remove(File("matrix"));
  log_.str("");
  EXPECT_THAT(std::string(WriteTopologyMatrix({.source = {.hosts = File("hosts"),
                                                          .oracle = Oracle("tiny2 3 --dead 1")},
                                               .out = File("matrix")},
                                              out_, log_)
                              .message()),
              HasSubstr("no host answered another"));
  EXPECT_EQ(log_.str(), "h0000: no answer\nh0001: no answer\n");
  EXPECT_FALSE(fs::exists(File("matrix")));
}

TEST_F(TopologyVerb, SimulatesANetworkFromAFile) {
  std::ofstream(File("truth")) << "a x 20 20 1000\nb x 21 21 1000\nx y 3 3 1000\nc y 22 22 1000\n"
                                  "d y 20 20 1000\n";

  ASSERT_TRUE(SimulateTopology({.truth = File("truth"), .noise = "exact"}, out_).ok());

  EXPECT_THAT(out_.str(), HasSubstr("robinson_foulds        0"));
  EXPECT_FALSE(SimulateTopology({.truth = File("nowhere")}, out_).ok());
  EXPECT_FALSE(SimulateTopology({.family = "nothing"}, out_).ok());
}

}  // namespace
}  // namespace sekisho::client
