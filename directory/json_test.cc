// SPDX-License-Identifier: Apache-2.0
#include "directory/json.h"

#include <gtest/gtest.h>

#include "directory/test_site.h"

namespace sekisho::directory {
namespace {

TEST(Json, IsTheSameObjectsUnderTheirModelsNames) {
  const auto document = ToJson(MakeEntries(TestProfile(), TestState(), {.is_connected = true}, kTestBase));

  EXPECT_EQ(document["AdminDomain"][0]["ID"], "urn:ad:siteA");
  EXPECT_EQ(document["ComputingShare"][0]["FreeSlots"], 12);
  EXPECT_EQ(document["ComputingShare"][0]["ServiceForeignKey"][0], "urn:ogf:ComputingService:a-dmz:siteA");
  EXPECT_EQ(document["ComputingEndpoint"][0]["URL"], "https://a-dmz:2119");
  EXPECT_EQ(document["ComputingEndpoint"][0]["JobDescription"][0], "globus:rsl");
  EXPECT_EQ(document["ExecutionEnvironment"][0]["ConnectivityOut"], true);
  EXPECT_EQ(document["ExecutionEnvironment"][0]["MainMemorySize"], 8192);
  EXPECT_FALSE(document.contains("Group"));
}

}  // namespace
}  // namespace sekisho::directory
