// SPDX-License-Identifier: Apache-2.0
#include "rankmap/importers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rankmap/generate.h"
#include "rankmap/outputs.h"

namespace sekisho::rankmap {
namespace {

using testing::HasSubstr;

TEST(Importers, GraphsComeBackAsTheyWere) {
  const Pattern stencil = *Generate("stencil", {.grid = {3, 4}, .bytes = 1});

  const auto scotch = ParseScotchGraph(PrintScotchGraph(stencil), "f");
  const auto metis = ParseMetisGraph(PrintMetisGraph(stencil), "f");

  ASSERT_TRUE(scotch.ok()) << scotch.status();
  ASSERT_TRUE(metis.ok()) << metis.status();
  EXPECT_EQ(scotch->Hash(), metis->Hash());
  EXPECT_EQ(scotch->messages().size(), stencil.messages().size());
}

TEST(Importers, CutGraphsAreRefused) {
  const Pattern stencil = *Generate("stencil", {.grid = {3, 4}, .bytes = 1});
  const std::string scotch = PrintScotchGraph(stencil);
  const std::string metis = PrintMetisGraph(stencil);
  for (size_t cut = 0; cut < scotch.size(); ++cut) {
    EXPECT_FALSE(ParseScotchGraph(scotch.substr(0, cut), "f").ok()) << cut;
  }
  for (size_t cut = 0; cut < metis.size(); ++cut) {
    EXPECT_FALSE(ParseMetisGraph(metis.substr(0, cut), "f").ok()) << cut;
  }
  EXPECT_THAT(std::string(ParseMetisGraph("2 1 001\n2 5\n1 4\n", "f").status().message()),
              HasSubstr("both ways"));
  EXPECT_THAT(std::string(ParseMetisGraph("2 1 001\n2 5\n3 5\n", "f").status().message()),
              HasSubstr("f:3: "));
  EXPECT_THAT(std::string(ParseMetisGraph("% one\n2 1 001\n% two\n2 5\n3 5\n", "f").status().message()),
              testing::StartsWith("f:5: "));
}

TEST(Importers, GraphsWithMoreThanTheirHeadersSayAreRefused) {
  EXPECT_THAT(std::string(ParseScotchGraph("0\n2 2\n0 010\n1 5 1\n1 5 0\n0\n", "f").status().message()),
              testing::StartsWith("f:6: more than 2 vertices"));
  EXPECT_THAT(std::string(ParseMetisGraph("2 1 001\n2 5\n1 5\n\n1 5\n", "f").status().message()),
              testing::StartsWith("f:5: more than 2 vertices"));
}

TEST(Importers, MonitoringCountsApplicationAndLibraryMessagesOnce) {
  const std::vector<NamedText> files = {
      {"p.0.prof",
       "# POINT TO POINT\nE\t0\t1\t100 bytes\t4 msgs sent\t0,0,1\nI\t0\t1\t20 bytes\t2 msgs sent\n"
       "# OSC\nS\t0\t1\t7 bytes\t1 msgs sent\n# COLLECTIVES\nC\t0\t1\t20 bytes\t2 msgs sent\n"
       "D\tMPI_COMM_WORLD\tprocs: 0,1\n"},
      {"p.1.prof", "# POINT TO POINT\n"},
      {"p.2.prof", ""}};

  const auto pattern = ParseMonitoring(files);

  ASSERT_TRUE(pattern.ok()) << pattern.status();
  EXPECT_EQ(pattern->ranks(), 3);
  EXPECT_THAT(pattern->messages(), testing::ElementsAre(Message{0, 1, 120, 0, 6}));
  EXPECT_FALSE(ParseMonitoring({}).ok());
  const std::vector<NamedText> cut = {{"p.0.prof", "E\t0\t1\t5 bytes\t4 msgs se"}};
  EXPECT_THAT(std::string(ParseMonitoring(cut).status().message()), testing::HasSubstr("p.0.prof:1: the last line does not end"));
  const std::vector<NamedText> bad = {{"p.0.prof", "E\t0\t1\tx bytes\t4 msgs sent\n"}};
  EXPECT_THAT(std::string(ParseMonitoring(bad).status().message()),
              testing::StartsWith("p.0.prof:1: "));
}

TEST(Importers, MonitoringOfWhichARanksFileIsMissingIsRefusedWithItsName) {
  const auto error = [](const std::vector<NamedText>& files) {
    return std::string(ParseMonitoring(files).status().message());
  };
  const std::string to_2 = "E\t0\t2\t100 bytes\t4 msgs sent\n";

  EXPECT_THAT(error({{"d/p.0.prof", to_2}, {"d/p.1.prof", ""}}), testing::StartsWith("d/p.2.prof:0: is missing"));
  EXPECT_THAT(error({{"p.0.prof", ""}, {"p.3.prof", ""}}), testing::StartsWith("p.1.prof:0: is missing"));
  EXPECT_THAT(error({{"p.0.prof", "D\tMPI_COMM_WORLD\tprocs: 0,1\n"}}), testing::StartsWith("p.1.prof:0: is missing"));
  EXPECT_THAT(error({{"p.0.prof", ""}, {"q.0.prof", ""}}), testing::StartsWith("q.0.prof:0: rank 0 has p.0.prof as well"));
  EXPECT_THAT(error({{"p.x.prof", ""}}), testing::StartsWith("p.x.prof:0: "));
}

TEST(Outputs, SayThePlacementInEachLaunchersWords) {
  const std::vector<int> nodes = {2, 0, 2, 1};
  const std::vector<std::string> hosts = {"a", "b", "c"};

  EXPECT_EQ(PrintRankfile(nodes, hosts),
            "rank 0=c slot=0\nrank 1=a slot=0\nrank 2=c slot=1\nrank 3=b slot=0\n");
  EXPECT_EQ(PrintHostList(nodes, hosts), "c\na\nc\nb\n");
  EXPECT_EQ(PrintCrayRankOrder(nodes), "1\n3\n0,2\n");
  EXPECT_EQ(PrintRmattMap(std::vector<int>{2, 0}, 3), "1\n-1\n0\n");
  EXPECT_EQ(PrintRmattMap(nodes, 4), "1\n3\n0,2\n-1\n");
}

TEST(Outputs, HostsAreNames) {
  EXPECT_THAT(*ParseHosts("# x\nnode-1.site\n\nn2\n", "f"),
              testing::ElementsAre("node-1.site", "n2"));
  EXPECT_FALSE(ParseHosts("a b\n", "f").ok());
  EXPECT_FALSE(ParseHosts("a;reboot\n", "f").ok());
}

}  // namespace
}  // namespace sekisho::rankmap
