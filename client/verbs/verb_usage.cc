// SPDX-License-Identifier: Apache-2.0
// sekisho usage: what ended jobs have used, for the site's administrator.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "client/site/exit_code.h"
#include "client/verbs/usage.h"
#include "client/verbs/verbs.h"

namespace sekisho::client {
namespace {

constexpr char kDefaultFile[] = "/var/lib/sekisho/qserver/accounting.jsonl";

struct Options {
  UsageQuery query;
  std::vector<std::string> files;
  bool is_json = false;
};

int Complain(int code, const std::string& words) {
  fmt::print(stderr, "sekisho usage: {}\n", words);
  return code;
}

int Show(const Options& options) {
  if (const absl::Status status = CheckUsageQuery(options.query); !status.ok()) {
    return Complain(kExitUsage, std::string(status.message()));
  }
  UsageTotals totals(options.query);
  for (const std::string& name : options.files) {
    std::ifstream file(name);
    if (!file) {
      return Complain(kExitFailed, fmt::format("{}: cannot be read: {}; run it on the queue server's host, as one who may "
                                               "read its accounting",
                                               name, std::strerror(errno)));
    }
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      if (file.eof()) {
        break;  // not ended by a newline: being written
      }
      if (const absl::Status status = totals.Add(line); !status.ok()) {
        return Complain(kExitUsage, fmt::format("{}:{}: no line of accounting: {}", name, number,
                                                std::string(status.message())));
      }
    }
  }
  fmt::print("{}", options.is_json ? totals.ToJson().dump() + "\n" : totals.Table());
  return 0;
}

}  // namespace

void AddUsageVerb(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("usage", "Add up what a site's ended jobs have used (on its queue server's host)");
  verb->add_option("FILE", options->files,
                   std::string("Accounting files, oldest first (default ") + kDefaultFile + ")");
  verb->add_option("--by", options->query.by, "account (default), subject, project, queue, resource, day or month");
  verb->add_option("--since", options->query.since, "Jobs that ended then or later: YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ");
  verb->add_option("--until", options->query.until, "Jobs that ended before");
  verb->add_flag("--json", options->is_json, "As JSON");
  verb->footer("Manual: docs/operations/accounting.md");
  verb->callback([options, &invocation] {
    if (options->files.empty()) {
      options->files = {kDefaultFile};
    }
    invocation.exit_code = Show(*options);
  });
}

}  // namespace sekisho::client
