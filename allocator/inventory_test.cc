// SPDX-License-Identifier: Apache-2.0
#include "allocator/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::allocator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Figure 4 of the paper, as it stands there.
constexpr char kFigure4[] =
    "#\tName\ttype\tprocs\tnnodes\tclock\tepithet\n"
    "\tCOMPas\tc\t4\t8\t200\tcompas\n"
    "\tCOMPas2\tc\t4\t4\t450\tcompas-2\n"
    "\tSR2201\tp\t1\t256\t150\tsr2201\n";

std::string ErrorOf(std::string_view text) {
  const absl::Status status = ParseInventory(text, "F").status();
  return std::string(status.message().data(), status.message().size());
}

TEST(Inventory, ReadsTheTableOfThePaper) {
  const absl::StatusOr<Inventory> inventory = ParseInventory(kFigure4, "figure4");

  ASSERT_TRUE(inventory.ok()) << inventory.status();
  ASSERT_EQ(inventory->resources.size(), 3u);
  const Resource& compas = inventory->resources[0];
  EXPECT_EQ(compas.name, "COMPas");
  EXPECT_THAT(compas.nodes, ElementsAre("compas0", "compas1", "compas2", "compas3", "compas4",
                                        "compas5", "compas6", "compas7"));
  EXPECT_EQ(compas.processors(), 32);
  EXPECT_EQ(compas.clock_mhz, 200);
  EXPECT_THAT(inventory->resources[1].nodes,
              ElementsAre("compas-20", "compas-21", "compas-22", "compas-23"));
}

TEST(Inventory, TakesTheEpithetOfAParallelMachineAsItsOneName) {
  const absl::StatusOr<Inventory> inventory = ParseInventory(kFigure4, "figure4");

  ASSERT_TRUE(inventory.ok());
  const Resource& machine = inventory->resources[2];
  EXPECT_TRUE(machine.is_machine);
  EXPECT_THAT(machine.nodes, ElementsAre("sr2201"));
  EXPECT_EQ(machine.processors(), 256);
}

TEST(Inventory, ReadsTheSameFromJson) {
  const auto table = ParseInventory(kFigure4, "figure4");
  const auto json = ParseInventory(R"(// the same
    {"resource": [
      {"name": "COMPas", "procs": 4, "nnodes": 8, "clock": 200, "epithet": "compas"},
      {"name": "COMPas2", "type": "c", "procs": 4, "nnodes": 4, "clock": 450, "epithet": "compas-2"},
      {"name": "SR2201", "type": "p", "procs": 1, "nnodes": 256, "clock": 150, "epithet": "sr2201"}
    ]})",
                                   "F");

  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->resources, table->resources);
}

TEST(Inventory, ReadsAttributesAndNodeNamesFromJson) {
  const auto inventory = ParseInventory(R"({"resource": [{
      "name": "A", "procs": 2, "nodes": ["a-n1", "a-n2"], "clock": 2400, "architecture": "x86_64",
      "os": "debian12", "memory": 2048, "tags": ["ib", "gpu"], "queues": ["long", "debug"]}]})",
                                        "F");

  ASSERT_TRUE(inventory.ok()) << inventory.status();
  const Resource& a = inventory->resources[0];
  EXPECT_THAT(a.nodes, ElementsAre("a-n1", "a-n2"));
  EXPECT_THAT(a.tags, ElementsAre("ib", "gpu"));
  EXPECT_EQ(a.memory_mb, 2048);
  EXPECT_EQ(a.architecture, "x86_64");
  EXPECT_EQ(a.os, "debian12");
  EXPECT_THAT(inventory->queues(), ElementsAre("debug", "long"));
}

TEST(Inventory, NamesFileAndLineOfEveryError) {
  EXPECT_THAT(ErrorOf("# x\nA c 4 8 200\n"), HasSubstr("F:2: expected 6 columns"));
  EXPECT_THAT(ErrorOf("A x 4 8 200 a\n"), HasSubstr("F:1: type: expected 'c'"));
  EXPECT_THAT(ErrorOf("A c 0 8 200 a\n"), HasSubstr("F:1: procs: expected a number from 1"));
  EXPECT_THAT(ErrorOf("A c 4 1e3 200 a\n"), HasSubstr("F:1: nnodes:"));
  EXPECT_THAT(ErrorOf("A c 4 99999999999999999999 200 a\n"), HasSubstr("F:1: nnodes:"));
  EXPECT_THAT(ErrorOf("A c 4 8 -200 a\n"), HasSubstr("F:1: clock:"));
  EXPECT_THAT(ErrorOf("A c 4 8 200 a/b\n"), HasSubstr("F:1: epithet:"));
  EXPECT_THAT(ErrorOf("A c 1 1 1 a\nA c 1 1 1 b\n"),
              HasSubstr("F:2: Name: expected each resource once"));
  EXPECT_THAT(ErrorOf("A c 1 11 1 a\nB c 1 1 1 a1\n"),
              HasSubstr("F:2: node names: expected each once, saw a10"));
  EXPECT_THAT(ErrorOf("# nothing\n"), HasSubstr("expected at least one resource"));
  EXPECT_THAT(ErrorOf("A p 1000000 2 1 a\n"), HasSubstr("procs x nnodes"));
}

TEST(Inventory, NamesFileAndLineOfEveryErrorInJson) {
  EXPECT_THAT(ErrorOf("{\n\"resource\": [\n{\"name\": \"A\", }]}"),
              HasSubstr("F:3: expected JSON"));
  EXPECT_THAT(ErrorOf("{\"resource\": [\n {\"name\":\"A\",\"procs\":1,\"nodes\":[\"a\"]},\n"
                      " /* {\n */ {\"nam\": 1}]}"),
              HasSubstr("F:4: unknown key \"nam\""));
  EXPECT_THAT(ErrorOf("{\"resource\": [{\"name\":\"A\",\"procs\":\"4\"}]}"),
              HasSubstr("F:1: procs: expected a number"));
  EXPECT_THAT(ErrorOf("{\"resources\": []}"), HasSubstr("expected {\"resource\":"));
  EXPECT_THAT(ErrorOf("{\"resource\": [{\"name\":\"A\",\"procs\":4}]}"),
              HasSubstr("expected \"nodes\""));
  EXPECT_THAT(ErrorOf("{\"resource\": " + std::string(100000, '[')), HasSubstr("at most 8 levels"));
}

TEST(Inventory, RefusesMoreThanItsLimits) {
  EXPECT_THAT(ErrorOf(std::string(kMaxInventoryBytes + 1, '#')),
              HasSubstr("expected at most 1048576 bytes"));
  EXPECT_THAT(ErrorOf("A c 1 100000 1 a\nB c 1 1 1 b\n"),
              HasSubstr("F:2: expected at most 100000 nodes"));
}

TEST(Inventory, SaysWhatItCannotRead) {
  const absl::Status status = LoadInventory("/does/not/exist").status();

  EXPECT_THAT(std::string(status.message().data(), status.message().size()),
              HasSubstr("cannot read the inventory /does/not/exist: No such file"));
}

}  // namespace
}  // namespace sekisho::allocator
