// SPDX-License-Identifier: Apache-2.0
// What a stager is told of a file that a job wants.  Pure.
#pragma once

#include "proto/job.pb.h"
#include "qserver/stage_plan.h"
#include "qserver/stager.pb.h"

namespace sekisho::qserver {

Content ContentOf(const proto::RequestBody::ClientFile& file);

// How it comes to its place: out of the cache, from a web server, or from elsewhere at the site.
StagerOrder OrderFor(const StageIn& item, const ClientFiles& files, const StagingRules& rules);

}  // namespace sekisho::qserver
