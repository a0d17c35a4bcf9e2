// SPDX-License-Identifier: Apache-2.0
#include "qserver/site_state.h"

#include <gtest/gtest.h>

namespace sekisho::qserver {
namespace {

proto::InventoryReply Inventory() {
  proto::InventoryReply inventory;
  proto::ResourceInfo& resource = *inventory.add_resource();
  resource.set_name("mikan");
  resource.add_queue("night");
  inventory.add_queue("night");
  for (const char* name : {"n1", "n2", "n3"}) {
    proto::NodeInfo& node = *inventory.add_node();
    node.set_name(name);
    node.set_resource("mikan");
    node.set_processors(8);
  }
  return inventory;
}

TEST(SiteState, CountsOnlyNodesThatAreThere) {
  const std::map<std::string, NodeFacts> attached = {{"n1", {"x86_64", "debian12", 4096}}, {"n2", {}}};

  const proto::SiteState state = MakeSiteState({}, Inventory(), true, attached, {{"n1", 6}, {"n3", 8}}, Census());

  const proto::ResourceState& resource = state.resource(0);
  EXPECT_EQ(resource.nodes(), 3);
  EXPECT_EQ(resource.nodes_up(), 2);
  EXPECT_EQ(resource.nodes_used(), 1);
  EXPECT_EQ(resource.processors_up(), 16);
  EXPECT_EQ(resource.processors_free(), 10);
  EXPECT_EQ(resource.architecture(), "x86_64");
  EXPECT_EQ(resource.memory_mb(), 4096);
}

TEST(SiteState, EveryQueueHasAShareBeforeAJobCame) {
  const proto::SiteState state = MakeSiteState({}, Inventory(), true, {}, {}, Census());

  ASSERT_EQ(state.share_size(), 2);
  EXPECT_EQ(state.share(0).service(), "jobmanager-agent");
  EXPECT_EQ(state.share(1).queue(), "night");
}

TEST(SiteState, ItsSizeIsThatOfTheSiteNotOfItsJobs) {
  Census census;
  std::vector<Census::Mark> marks(100'000);
  proto::JobStatus job;
  job.set_state(proto::PENDING);
  job.set_count(1);
  for (Census::Mark& mark : marks) {
    census.Count(job, false, 0, mark);
  }

  const proto::SiteState state = MakeSiteState({}, Inventory(), true, {}, {}, census);

  EXPECT_EQ(state.share(0).waiting(), 100'000);
  EXPECT_LT(state.ByteSizeLong(), 200u);
}

}  // namespace
}  // namespace sekisho::qserver
