// SPDX-License-Identifier: Apache-2.0
// What the leader of a world may do at a site, and what whoever has stolen its key may not.
#include <gmock/gmock.h>

#include "common/identity/leader_key.h"
#include "qserver/server_fixture.h"

namespace sekisho::qserver {
namespace {

using identity::LeaderKey;
using ::testing::HasSubstr;

constexpr char kWorld[] = "world-00112233445566778899aabbccddeeff";
constexpr char kOtherWorld[] = "world-ffeeddccbbaa99887766554433221100";

class PartServiceTest : public ServerTest {
 protected:
  std::string SubmitPart(const std::string& world, const LeaderKey& key) {
    proto::QueueRequest request = Request(world + ".0", "/CN=Alice");
    proto::RequestBody body;
    body.ParseFromString(request.request().body());
    body.mutable_submit()->set_rsl("&(executable=/bin/x)(jobtype=multiple)");
    proto::Charter& charter = *body.mutable_submit()->mutable_charter();
    charter.set_world(world);
    charter.set_parts(1);
    charter.set_ranks(1);
    charter.set_leader_key(key.open);
    charter.set_ready_by_ms(int64_t{1} << 60);
    request.mutable_request()->set_body(body.SerializeAsString());
    grpc::ClientContext context;
    proto::SubmitReply reply;
    const grpc::Status status = queue_->Submit(&context, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply.job_id();
  }
  // Its one task stands ready.
  std::string ReadyPart(Agent& agent, const std::string& world, const LeaderKey& key) {
    const std::string job = SubmitPart(world, key);
    proto::AgentMessage ready;
    *ready.mutable_ready()->mutable_task() = agent.NextStart().task();
    agent.Say(ready);
    return job;
  }

  static proto::Order OrderFor(const std::string& world, const std::string& job) {
    proto::Order order;
    order.set_world(world);
    order.set_job_id(job);
    return order;
  }
  static proto::Order ReleaseOf(const std::string& world, const std::string& job) {
    proto::Order order = OrderFor(world, job);
    order.mutable_release()->set_process_mapping("(vector,(0,1,1))");
    return order;
  }
  static proto::SignedOrder Signed(const proto::Order& order, const LeaderKey& key) {
    proto::SignedOrder text;
    text.set_body(order.SerializeAsString());
    text.set_signature(identity::SignOrder(text.body(), key));
    return text;
  }
  // What becomes of an order that is brought to `job` once it has said that it is ready; empty: it
  // was taken.
  std::string Refusal(const std::string& job, const proto::SignedOrder& order) {
    grpc::ClientContext context;
    auto call = queue_->Part(&context);
    proto::PartDown down;
    down.set_job_id(job);
    call->Write(down);
    proto::PartUp up;  // the first says that it is there
    if (!call->Read(&up) || !call->Read(&up) || !up.report().has_ready()) {
      return call->Finish().error_message();
    }
    *down.mutable_order() = order;
    call->Write(down);
    call->WritesDone();
    while (call->Read(&up)) {
    }
    return call->Finish().error_message();
  }

  const LeaderKey key_ = identity::MakeLeaderKey();
  const LeaderKey other_key_ = identity::MakeLeaderKey();
};

TEST_F(PartServiceTest, TheLeaderOfItsCharterReleasesIt) {
  const auto agent = Attach("n1");
  const std::string job = ReadyPart(*agent, kWorld, key_);

  EXPECT_EQ(Refusal(job, Signed(ReleaseOf(kWorld, job), key_)), "");

  const proto::ServerMessage message = agent->Next();
  ASSERT_TRUE(message.has_release()) << message.DebugString();
  EXPECT_EQ(message.release().process_mapping(), "(vector,(0,1,1))");
}

// Its first word and its end are heard in one go, as by a server that was busy meanwhile.  (Whoever is too slow here
// to have them wait for each other tries again; it fails only where a leader stays.)
TEST_F(PartServiceTest, ALeaderWhoseCallIsCutAtOnceIsGone) {
  const std::string job = SubmitPart(kWorld, key_);
  constexpr std::chrono::milliseconds kShortly(20);
  for (int i = 0; i < 10; ++i) {
    grpc::ClientContext context;
    auto call = queue_->Part(&context);
    proto::PartDown down;
    down.set_job_id(job);
    std::this_thread::sleep_for(kShortly);
    server_->OnLoop([&](Conductor&) {
      call->Write(down);
      std::this_thread::sleep_for(kShortly);
      context.TryCancel();
      std::this_thread::sleep_for(kShortly);
    });
    call->Finish();
  }

  const auto leaders = [&] {
    return server_->OnLoop([&](Conductor& conductor) { return conductor.queue().Find(job)->part->leaders; });
  };
  EXPECT_TRUE(test::Eventually([&] { return leaders() == 0; })) << leaders();
}

TEST_F(PartServiceTest, NobodyElsesOrderIsTaken) {
  const auto agent = Attach("n1");
  const std::string job = ReadyPart(*agent, kWorld, key_);
  proto::SignedOrder changed = Signed(ReleaseOf(kWorld, job), key_);
  proto::Order cancel = OrderFor(kWorld, job);
  cancel.mutable_cancel()->set_reason("mine");
  changed.set_body(cancel.SerializeAsString());

  for (const proto::SignedOrder& order :
       {Signed(ReleaseOf(kWorld, job), other_key_), changed, proto::SignedOrder()}) {
    EXPECT_THAT(Refusal(job, order), HasSubstr("is not its leader's"));
  }
}

TEST_F(PartServiceTest, AStolenKeyIsGoodForThePartsOfItsOwnWorldOnly) {
  const auto agent = Attach("n1");
  const std::string job = ReadyPart(*agent, kWorld, key_);
  const std::string other = ReadyPart(*agent, kOtherWorld, other_key_);

  EXPECT_THAT(Refusal(other, Signed(ReleaseOf(kOtherWorld, other), key_)),
              HasSubstr("is not its leader's"));
  EXPECT_THAT(Refusal(other, Signed(ReleaseOf(kWorld, job), key_)),
              HasSubstr("is not its leader's"));
  EXPECT_THAT(Refusal(job, Signed(ReleaseOf(kOtherWorld, job), key_)),
              HasSubstr("is not its leader's"));
}

TEST_F(PartServiceTest, AnOrdinaryJobTakesNoOrders) {
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");

  EXPECT_THAT(Refusal(job, Signed(ReleaseOf(kWorld, job), key_)), HasSubstr("is no part of"));
}

TEST_F(PartServiceTest, KeepsWhatItsRanksConnectTo) {
  const auto agent = Attach("n1");
  const std::string job = SubmitPart(kWorld, key_);
  const proto::TaskKey task = agent->NextStart().task();
  agent->Started(task);
  for (const auto& [offset, text] : {std::pair(0, "relayed 10.2.0.11:1\n"),
                                     std::pair(0, "relayed 10.2.0.11:1\ndirect 10.1.0.12:1\n"),
                                     std::pair(999, "with a gap\n"), std::pair(1 << 20, "too many\n")}) {
    proto::AgentMessage message;
    *message.mutable_links()->mutable_task() = task;
    message.mutable_links()->set_offset(uint64_t(offset));
    message.mutable_links()->set_data(text);
    agent->Say(message);
  }
  proto::AgentMessage ready;
  *ready.mutable_ready()->mutable_task() = task;
  agent->Say(ready);
  EXPECT_THAT(Refusal(job, proto::SignedOrder()), HasSubstr("is not its leader's"));  // all was heard

  grpc::ClientContext context;
  proto::LinksRequest request;
  request.set_job_id(job);
  proto::LinksReply reply;
  const grpc::Status status = queue_->Links(&context, request, &reply);

  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.world(), kWorld);
  EXPECT_FALSE(reply.has_relay());
  ASSERT_EQ(reply.rank_size(), 1);
  EXPECT_EQ(reply.rank(0).node(), "n1");
  EXPECT_EQ(reply.rank(0).records(), "relayed 10.2.0.11:1\ndirect 10.1.0.12:1\n");
}

TEST_F(PartServiceTest, AnOrdinaryJobHasNoLinks) {
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");
  grpc::ClientContext context;
  proto::LinksRequest request;
  request.set_job_id(job);
  proto::LinksReply reply;

  EXPECT_THAT(queue_->Links(&context, request, &reply).error_message(), HasSubstr("is no part of"));
}

TEST_F(PartServiceTest, IsReadyAgainAfterARestartAndTakesItsReleaseOnlyThen) {
  auto agent = Attach("n1");
  const std::string job = SubmitPart(kWorld, key_);
  const proto::TaskKey task = agent->NextStart().task();
  agent.reset();
  Restart();
  agent = Attach("n1", {task});
  grpc::ClientContext context;
  auto call = queue_->Part(&context);
  proto::PartDown down;
  down.set_job_id(job);
  call->Write(down);

  proto::AgentMessage ready;
  *ready.mutable_ready()->mutable_task() = task;
  agent->Say(ready);
  proto::PartUp up;
  ASSERT_TRUE(call->Read(&up));
  EXPECT_FALSE(up.has_report());  // it is there
  ASSERT_TRUE(call->Read(&up));
  EXPECT_TRUE(up.report().has_ready());
  *down.mutable_order() = Signed(ReleaseOf(kWorld, job), key_);
  call->Write(down);

  EXPECT_TRUE(agent->Next().has_release());
  call->WritesDone();
  call->Finish();
}

}  // namespace
}  // namespace sekisho::qserver
