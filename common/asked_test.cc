// SPDX-License-Identifier: Apache-2.0
#include "common/asked.h"

#include <gtest/gtest.h>

namespace sekisho {
namespace {

proto::RequestBody::Submit Submit(const std::string& rsl) {
  proto::RequestBody::Submit submit;
  submit.set_rsl(rsl);
  return submit;
}

TEST(Asked, IsTheSameInEveryVersion) {
  proto::RequestBody::Submit submit = Submit("&(executable=/bin/true)");
  EXPECT_EQ(AskedBy(submit), 234550304367861800U);
  submit.add_file()->set_url("client:///a");
  submit.mutable_file(0)->set_sha256("12");
  EXPECT_EQ(AskedBy(submit), 3741964042991406368U);
}

TEST(Asked, OfAJobIsOfWhatItsUserSignedAndNotOfWhatTheSiteMadeOfIt) {
  proto::RequestBody body;
  *body.mutable_submit() = Submit("&(executable=$(HOME)/a)");
  proto::JobEvent::Submitted submitted;
  submitted.set_rsl("&(executable=/home/alice/a)");
  submitted.set_asked(7);
  submitted.mutable_request()->set_body(body.SerializeAsString());
  EXPECT_EQ(AskedBy(submitted), AskedBy(body.submit()));
}

TEST(Asked, OfOneOfManyIsAsTheQueueServerSays) {
  proto::JobEvent::Submitted submitted;
  submitted.set_rsl("&(executable=/bin/true)");
  submitted.set_asked(7);
  EXPECT_EQ(AskedBy(submitted), 7U);

  proto::RequestBody many;
  many.mutable_submit_many()->add_job()->set_rsl("&(executable=/bin/true)");
  submitted.mutable_request()->set_body(many.SerializeAsString());  // it keeps the request of all
  EXPECT_EQ(AskedBy(submitted), 7U);
}

}  // namespace
}  // namespace sekisho
