// SPDX-License-Identifier: Apache-2.0
#include "client/world/machine_file.h"

#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

std::vector<int> CountsOf(int ranks) {
  const auto machines = ParseMachineFile("\"m1\" 10\n\"m2\" 5\n", "machines");
  const auto parts = DealRanks(*machines, ranks);
  std::vector<int> counts;
  for (const RankRange& part : *parts) {
    counts.push_back(part.count);
  }
  return counts;
}

std::string ErrorOf(std::string_view text) {
  const auto parsed = ParseMachineFile(text, "f");
  return parsed.ok()
             ? ""
             : std::string(parsed.status().message().data(), parsed.status().message().size());
}

TEST(MachineFile, TakesQuotedAndBareContactsWithAndWithoutCount) {
  const std::vector<Machine> expected = {
      {"siteA", 2}, {"host.org:2119/jobmanager-lsf", 1}, {"host-jobmanager", 4}, {"a b", 3}};

  EXPECT_EQ(*ParseMachineFile("# ours\n\n\"siteA\" 2\r\n\"host.org:2119/jobmanager-lsf\"\n"
                              "  host-jobmanager\t4  \n\"a b\" 3",
                              "f"),
            expected);
}

TEST(MachineFile, NamesFileAndLineOfWhatItCannotRead) {
  EXPECT_EQ(ErrorOf("\"a\" 1\n\"b 2\n"), "f:2: expected a second '\"' after the contact, saw none");
  EXPECT_EQ(ErrorOf("a two"), "f:1: expected how many ranks, 1 to 100000, saw 'two'");
  EXPECT_EQ(ErrorOf("a 0"), "f:1: expected how many ranks, 1 to 100000, saw '0'");
  EXPECT_EQ(ErrorOf("a 1 2"), "f:1: expected how many ranks, 1 to 100000, saw '1 2'");
  EXPECT_EQ(ErrorOf("\"a\"2"), "f:1: expected a blank after the contact, saw '2'");
  EXPECT_EQ(ErrorOf("\"\" 2"), "f:1: expected a site's name or a contact, saw none");
  EXPECT_EQ(ErrorOf("# nothing\n"), "f: expected lines \"SITE\" COUNT, saw none");
}

TEST(MachineFile, UnderstandsTheNamesOfMpichG) {
  EXPECT_EQ(ContactOfMachine("moti4.ncsa.uiuc.edu-lsf"), "moti4.ncsa.uiuc.edu/jobmanager-lsf");
  EXPECT_EQ(ContactOfMachine("a-dmz"), "a-dmz");
  EXPECT_EQ(ContactOfMachine("a-dmz-slurm"), "a-dmz/jobmanager-slurm");
  EXPECT_EQ(ContactOfMachine("host:2119/jobmanager-lsf"), "host:2119/jobmanager-lsf");
}

TEST(DealRanks, FillsTheLinesInOrderAndWraps) {
  EXPECT_EQ(CountsOf(8), (std::vector<int>{8}));
  EXPECT_EQ(CountsOf(12), (std::vector<int>{10, 2}));
  EXPECT_EQ(CountsOf(17), (std::vector<int>{10, 5, 2}));
  EXPECT_EQ(CountsOf(32), (std::vector<int>{10, 5, 10, 5, 2}));
}

TEST(DealRanks, GivesEachPartTheRanksAfterTheOneBefore) {
  const std::vector<RankRange> expected = {{"a", 0, 2}, {"b", 2, 2}, {"a", 4, 1}};

  EXPECT_EQ(*DealRanks({{"a", 2}, {"b", 2}}, 5), expected);
}

TEST(DealRanks, RefusesMorePartsThanCanBeLed) {
  EXPECT_TRUE(DealRanks({{"a", 1}}, 1024).ok());
  EXPECT_FALSE(DealRanks({{"a", 1}}, 1025).ok());
}

TEST(TakeFree, TakesWhatIsFreeOfEachLineAndNoMore) {
  const std::vector<Machine> machines = {{"a", 2}, {"b.org", 8}, {"a", 4}};
  const std::map<std::string, std::string> sites = {{"a", "siteA"}, {"b.org", "siteB"}};

  EXPECT_EQ(*TakeFree(machines, sites, {{"siteA", 3}, {"siteB", 5}}),
            (std::vector<RankRange>{{"a", 0, 2}, {"b.org", 2, 5}, {"a", 7, 1}}));
  EXPECT_EQ(*TakeFree(machines, sites, {{"siteA", 0}, {"siteB", 1}}), (std::vector<RankRange>{{"b.org", 0, 1}}));
  EXPECT_FALSE(TakeFree(machines, sites, {{"siteA", 0}, {"siteB", 0}}).ok());
}

}  // namespace
}  // namespace sekisho::client
