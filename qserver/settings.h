// SPDX-License-Identifier: Apache-2.0
// What the configuration says, as the queue server's parts take it: defaults, units, what cannot be.
#pragma once

#include <map>
#include <set>
#include <string>

#include "common/status.h"
#include "qserver/admission.h"
#include "qserver/config.pb.h"
#include "qserver/network_keeper.h"
#include "qserver/site_state.h"
#include "qserver/slurm.h"
#include "qserver/staging.h"
#include "qserver/tasks.h"

namespace sekisho::qserver {

inline constexpr char kListenNodes[] = "0.0.0.0:7513";

// What cannot be served, by the setting's name.
absl::Status CheckConfig(const Config& config);

std::set<std::string> Subjects(const google::protobuf::RepeatedPtrField<std::string>& subjects);  // normalized

AdmissionRules MakeRules(const Config& config);
// What may change while it runs: who is an administrator, whom requests may be signed for, limits.
AdmissionRules ReadAgain(const Config& config, const AdmissionRules& rules);
std::map<std::string, int> AccountPriorities(const Config& config);
RelaySettings MakeRelaySettings(const Config& config);
Staging::Settings MakeStagingSettings(const Config& config);
TaskSettings MakeTaskSettings(const Config& config);
SiteFacts MakeSiteFacts(const Config& config);
NetworkKeeper::Settings MakeNetworkSettings(const Config::Network& given);
SlurmSettings MakeSlurmSettings(const Config& config);

}  // namespace sekisho::qserver
