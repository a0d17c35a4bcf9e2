// SPDX-License-Identifier: Apache-2.0
#include "client/world/world_links.h"

#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

struct Rank {
  int rank;
  std::string node;
  std::string records;
};

proto::LinksReply Part(const std::string& site, const std::vector<Rank>& ranks, bool has_relay = true) {
  proto::LinksReply part;
  part.set_world("world-1");
  part.set_site(site);
  part.set_has_relay(has_relay);
  for (const Rank& rank : ranks) {
    part.add_rank()->set_rank(rank.rank);
    part.mutable_rank(part.rank_size() - 1)->set_node(rank.node);
    part.mutable_rank(part.rank_size() - 1)->set_records(rank.records);
  }
  return part;
}

std::set<LinkWay> Between(const WorldLinks& links, int a, int b) {
  const auto found = links.ways.find({a, b});
  return found == links.ways.end() ? std::set<LinkWay>() : found->second;
}

TEST(WorldLinks, AreWhatEitherOfAPairHasConnected) {
  const WorldLinks links = LinksOf(
      {Part("siteA", {{0, "a-n1", "listens 10.1.0.11:4000\nrelayed 10.2.0.11:4001\n"},
                      {1, "a-n1", "listens 10.1.0.11:4005\ndirect 10.1.0.11:4000\n"},
                      {2, "a-n2", "listens 10.1.0.12:4000\ndirect 10.1.0.11:4000\n"}}),
       Part("siteB", {{3, "b-n1", "listens 10.2.0.11:4001\nreversed 10.1.0.12:4000\nrelayed 10.1.0.12:4000\n"}})});

  EXPECT_EQ(Between(links, 0, 1), std::set{LinkWay::kShared});  // whatever sockets they opened besides
  EXPECT_EQ(Between(links, 0, 2), std::set{LinkWay::kDirect});
  EXPECT_EQ(Between(links, 0, 3), std::set{LinkWay::kRelayed});
  EXPECT_EQ(Between(links, 2, 3), (std::set{LinkWay::kReversed, LinkWay::kRelayed}));
  EXPECT_TRUE(Between(links, 1, 3).empty());
}

TEST(WorldLinks, TellSitesWithTheSameAddressesApart) {
  const std::string listens = "listens 10.1.0.11:4000\n";
  const WorldLinks links =
      LinksOf({Part("siteA", {{0, "a-n1", listens}, {1, "a-n2", "direct 10.1.0.11:4000\n"}}),
               Part("siteB", {{2, "b-n1", listens + "relayed 10.1.0.11:4000\n"}})});

  EXPECT_EQ(Between(links, 0, 1), std::set{LinkWay::kDirect});
  EXPECT_EQ(Between(links, 0, 2), std::set{LinkWay::kRelayed});
  EXPECT_TRUE(Between(links, 1, 2).empty());
}

TEST(WorldLinks, DoNotGuessBetweenTwoOfOneAddress) {
  const std::string listens = "listens 10.1.0.11:4000\n";
  const WorldLinks links = LinksOf({Part("siteA", {{0, "a-n1", "relayed 10.1.0.11:4000\n"}}),
                                    Part("siteB", {{1, "b-n1", listens}}), Part("siteC", {{2, "c-n1", listens}})});

  EXPECT_TRUE(links.ways.empty());
}

TEST(WorldLinks, OfOneSiteNeedNoRecords) {
  const WorldLinks links =
      LinksOf({Part("siteA", {{0, "a-n1", ""}, {1, "a-n1", ""}, {2, "a-n2", ""}}, false)});

  EXPECT_EQ(Between(links, 0, 1), std::set{LinkWay::kShared});
  EXPECT_EQ(Between(links, 1, 2), std::set{LinkWay::kDirect});
}

TEST(WorldLinks, AreInTheOrderOfRanksWhateverThatOfTheParts) {
  const WorldLinks links = LinksOf({Part("siteA", {{2, "a-n1", "relayed 10.2.0.1:1\n"}, {1, "a-n2", ""}}),
                                    Part("siteB", {{0, "b-n1", "listens 10.2.0.1:1\n"}})});

  EXPECT_EQ(links.ranks[0].site, "siteB");
  EXPECT_EQ(Between(links, 0, 2), std::set{LinkWay::kRelayed});
}

TEST(WorldLinks, SurviveWhateverStandsInTheRecords) {
  const WorldLinks links = LinksOf({Part("siteA", {{0, "a-n1", "relayed\nlistens\n\n\xff\xfe x y z"}}),
                                    Part("siteB", {{1, "b-n1", "relayed nowhere listens relayed relayed"}})});

  EXPECT_TRUE(links.ways.empty());
}

TEST(WorldLinks, AreShownAsATableAndAsJson) {
  const WorldLinks links = LinksOf({Part("siteA", {{0, "a-n1", ""}, {1, "a-n1", "relayed 10.2.0.1:1\n"}}),
                                    Part("siteB", {{2, "b-n1", "listens 10.2.0.1:1\n"}})});

  EXPECT_EQ(Describe(links),
            "RANK  SITE   NODE  0  1  2\n"
            "0     siteA  a-n1  .  m  -\n"
            "1     siteA  a-n1  m  .  r\n"
            "2     siteB  b-n1  -  r  .\n"
            "m shared memory: 1 pair\n"
            "d direct: 0 pairs\n"
            "v reversed: 0 pairs\n"
            "r relayed: 1 pair\n"
            "- have not met: 1 pair\n");
  EXPECT_EQ(ToJson(links)["links"].dump(),
            R"([{"between":[0,1],"ways":["shared memory"]},{"between":[1,2],"ways":["relayed"]}])");
}

}  // namespace
}  // namespace sekisho::client
