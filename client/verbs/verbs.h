// SPDX-License-Identifier: Apache-2.0
// The table of the command line's verbs: one file each, verb_NAME.cc.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sekisho::client {

// What a verb is given besides its options, and what it leaves.
struct Invocation {
  std::vector<std::string> arguments;  // the verb's own, as rewritten
  std::vector<std::string> command;  // after --
  bool has_command = false;
  int exit_code = 0;
};

void AddRunVerb(CLI::App& app, Invocation& invocation);        // run, globusrun
void AddMpirunVerb(CLI::App& app, Invocation& invocation);
void AddCoallocVerb(CLI::App& app, Invocation& invocation);
void AddSubmitVerb(CLI::App& app, Invocation& invocation);
void AddStatusVerb(CLI::App& app, Invocation& invocation);
void AddWaitVerb(CLI::App& app, Invocation& invocation);
void AddOutputVerb(CLI::App& app, Invocation& invocation);
void AddCancelVerb(CLI::App& app, Invocation& invocation);
void AddSignalVerb(CLI::App& app, Invocation& invocation);
void AddPlainSignalVerbs(CLI::App& app, Invocation& invocation);  // suspend, resume, hold, release
void AddListVerb(CLI::App& app, Invocation& invocation);
void AddSitesVerb(CLI::App& app, Invocation& invocation);
void AddAdminVerb(CLI::App& app, Invocation& invocation);
void AddDoctorVerb(CLI::App& app, Invocation& invocation);
void AddUsageVerb(CLI::App& app, Invocation& invocation);

}  // namespace sekisho::client
