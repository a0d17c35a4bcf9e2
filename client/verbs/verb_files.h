// SPDX-License-Identifier: Apache-2.0
// The verbs about jobs' files: docs/protocol/17-staging.md.
#pragma once

namespace CLI {
class App;
}

namespace sekisho::client {

struct Invocation;

void AddUploadVerb(CLI::App& app, Invocation& invocation);
void AddListFilesVerb(CLI::App& app, Invocation& invocation);  // ls
void AddGetVerb(CLI::App& app, Invocation& invocation);
void AddPutVerb(CLI::App& app, Invocation& invocation);

}  // namespace sekisho::client
