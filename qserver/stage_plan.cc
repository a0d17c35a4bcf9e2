// SPDX-License-Identifier: Apache-2.0
#include "qserver/stage_plan.h"

#include <map>
#include <set>

#include "qserver/staging_errors.h"
#include "qserver/stager/below.h"
#include "rsl/gram_errors.h"
#include "rsl/location.h"

namespace sekisho::qserver {
namespace {

namespace gram = rsl::gram;
using Kind = rsl::Location::Kind;

constexpr size_t kFilesMost = 4096;
constexpr size_t kSumBytes = 32;

rsl::Value Literal(const std::string& text) {
  rsl::Value value;
  value.text = text;
  return value;
}

rsl::Value Pair(const std::string& from, const std::string& to) {
  rsl::Value value;
  value.kind = rsl::Value::Kind::kSequence;
  value.children = {Literal(from), Literal(to)};
  return value;
}

// The relation of an evaluated request without alternatives; none if it is not there.
rsl::Relation* Find(rsl::Spec& spec, const std::string& attribute) {
  if (spec.kind == rsl::Spec::Kind::kRelation) {
    return rsl::Canonical(spec.relation.attribute) == rsl::Canonical(attribute) ? &spec.relation : nullptr;
  }
  for (rsl::Spec& child : spec.children) {
    if (rsl::Relation* const found = Find(child, attribute)) {
      return found;
    }
  }
  return nullptr;
}

void AddPair(rsl::Spec& spec, const std::string& attribute, const std::string& from, const std::string& to) {
  if (rsl::Relation* const given = Find(spec, attribute)) {
    given->values.push_back(Pair(from, to));
    return;
  }
  rsl::Spec added;
  added.relation.attribute = attribute;
  added.relation.values = {Pair(from, to)};
  rsl::Spec* all = &spec;
  while (all->kind == rsl::Spec::Kind::kDisjunction && !all->children.empty()) {
    all = &all->children[0];
  }
  all->children.push_back(std::move(added));
}

absl::Status CheckPath(const std::string& path, const std::string& home, const StagingRules& rules, int gram_code,
                       const char* attribute) {
  std::vector<std::string> roots = {home};
  roots.insert(roots.end(), rules.roots.begin(), rules.roots.end());
  const auto below = stager::FindBelow(roots, path);
  if (below.ok() && !below->path.empty()) {
    return absl::OkStatus();
  }
  return errors::BadStaging(gram_code, attribute,
                            below.ok() ? "expected a file's path, saw the home" : Message(below.status()),
                            "name a path in the home of the account");
}

int OutCode(const rsl::Outgoing& item) {
  return item.attribute == "stdout"   ? gram::RSL_STDOUT
         : item.attribute == "stderr" ? gram::RSL_STDERR
                                      : gram::RSL_FILE_STAGE_OUT;
}

class Planner {
 public:
  Planner(const rsl::JobDescription& job, const ClientFiles& files, const std::string& home, const StagingRules& rules)
      : job_(job), home_(home), rules_(rules), roots_({home}) {
    roots_.insert(roots_.end(), rules.roots.begin(), rules.roots.end());
    for (int i = 0; i < files.size(); ++i) {
      files_.emplace(files[i].url(), std::pair(i, &files[i]));
    }
  }

  absl::Status Add(const rsl::Transfer& transfer, const char* attribute, int gram_code, bool is_shared) {
    const rsl::Location from = rsl::ReadLocation(transfer.from);
    if (from.kind == Kind::kOther) {
      return errors::UnknownScheme(gram_code, attribute, transfer.from);
    }
    StageIn item{.source = transfer.from, .target = AbsolutePath(transfer.to, job_, home_), .is_shared = is_shared};
    const bool is_program = item.target == job_.executable;
    const int code = is_program ? gram::STAGING_EXECUTABLE
                     : item.target == job_.standard_input ? gram::STAGING_STDIN : gram_code;
    item.mode = is_program ? 0700 : 0600;
    if (from.kind == Kind::kWeb || from.kind == Kind::kFile) {
      item.file = kNotOfTheClient;
      RETURN_IF_ERROR(from.kind == Kind::kFile ? CheckPath(from.path, home_, rules_, code, attribute) : absl::OkStatus());
    } else {
      RETURN_IF_ERROR(AddClientFile(transfer.from, code, attribute, item));
    }
    const auto below = stager::FindBelow(roots_, item.target);
    if (!below.ok() || below->path.empty()) {
      return errors::BadStaging(code, attribute,
                                below.ok() ? "expected a file's path, saw the home" : Message(below.status()),
                                "stage to a path in the home of the account");
    }
    if (!targets_.insert(below->root + "/" + below->path).second) {
      return errors::BadStaging(code, attribute, "two files for " + item.target, "give each a path of its own");
    }
    items_.push_back(std::move(item));
    return absl::OkStatus();
  }

  std::vector<StageIn> Take() { return std::move(items_); }

 private:
  absl::Status AddClientFile(const std::string& source, int code, const char* attribute, StageIn& item) const {
    const auto found = files_.find(source);
    if (found == files_.end() || found->second.second->sha256().size() != kSumBytes) {
      return errors::NotSent(code, attribute, source);
    }
    const proto::RequestBody::ClientFile& file = *found->second.second;
    item.file = found->second.first;
    item.mode |= file.mode() & 0100;
    return rules_.file_bytes_max > 0 && file.size() > rules_.file_bytes_max
               ? errors::FileTooLarge(source, file.size(), rules_.file_bytes_max)
               : absl::OkStatus();
  }

  const rsl::JobDescription& job_;
  const std::string& home_;
  const StagingRules& rules_;
  std::vector<std::string> roots_;
  std::map<std::string, std::pair<int, const proto::RequestBody::ClientFile*>> files_;  // by URL
  std::set<std::string> targets_;
  std::vector<StageIn> items_;
};

}  // namespace

std::string AbsolutePath(const std::string& path, const rsl::JobDescription& job, const std::string& home) {
  if (path.starts_with("/")) {
    return path;
  }
  const std::string& directory = job.directory;
  return (directory.empty() ? home : directory.starts_with("/") ? directory : home + "/" + directory) + "/" + path;
}

std::string JobPlace(const std::string& home, const std::string& job_id) { return home + "/.sekisho/jobs/" + job_id; }

std::string CredentialDirectory(const std::string& home, const std::string& job_id) {
  return JobPlace(home, job_id) + "/credential";
}

std::string CredentialPlace(const std::string& home, const std::string& job_id) {
  return CredentialDirectory(home, job_id) + "/proxy";
}

void NameCredential(rsl::Spec& evaluated, const std::string& home, const std::string& job_id) {
  AddPair(evaluated, "environment", "X509_USER_PROXY", CredentialPlace(home, job_id));
}

bool LocalizeStaged(rsl::Spec& evaluated, const rsl::JobDescription& job, const std::string& home,
                    const std::string& job_id) {
  bool has_changed = false;
  const auto localize = [&](const char* attribute, const std::string& source, const std::string& target) {
    if (rsl::ReadLocation(source).kind != Kind::kPath) {
      Find(evaluated, attribute)->values = {Literal(target)};
      AddPair(evaluated, "file_stage_in", source, target);
      has_changed = true;
    }
  };
  const std::string place = JobPlace(home, job_id);
  localize("executable", job.executable, place + "/bin/" + rsl::PlainName(job.executable, "program"));
  localize("stdin", job.standard_input, place + "/stdin");
  return has_changed;
}

absl::StatusOr<std::vector<StageIn>> PlanStageIn(const rsl::JobDescription& job, const ClientFiles& files,
                                                 const std::string& home, const StagingRules& rules) {
  if (size_t(files.size()) > kFilesMost || job.file_stage_in.size() + job.file_stage_in_shared.size() > kFilesMost) {
    return errors::TooManyFiles(kFilesMost);
  }
  Planner planner(job, files, home, rules);
  for (const rsl::Transfer& transfer : job.file_stage_in) {
    RETURN_IF_ERROR(planner.Add(transfer, "file_stage_in", gram::RSL_FILE_STAGE_IN, false));
  }
  for (const rsl::Transfer& transfer : job.file_stage_in_shared) {
    RETURN_IF_ERROR(planner.Add(transfer, "file_stage_in_shared", gram::RSL_FILE_STAGE_IN_SHARED, true));
  }
  return planner.Take();
}

std::string KeptPlace(const std::string& home, const std::string& job_id, int number) {
  return JobPlace(home, job_id) + "/out/" + std::to_string(number);
}

bool HasStageOut(const rsl::JobDescription& job) {
  return !rsl::OutgoingOf(job).empty() || !job.file_clean_up.empty() || !job.scratch_dir.empty();
}

absl::StatusOr<std::vector<StageOut>> PlanStageOut(const rsl::JobDescription& job, const std::string& home,
                                                   const std::string& job_id, const StagingRules& rules,
                                                   const rsl::Redirections& redirections) {
  const std::vector<rsl::Outgoing> outgoing = rsl::OutgoingOf(job, redirections);
  if (outgoing.size() > kFilesMost) {
    return errors::TooManyFiles(kFilesMost);
  }
  std::vector<StageOut> items;
  for (const rsl::Outgoing& one : outgoing) {
    const int code = OutCode(one);
    const char* const attribute = one.attribute.c_str();
    const rsl::Location to = rsl::ReadLocation(one.to);
    if (to.kind == Kind::kOther) {
      return errors::UnknownScheme(code, attribute, one.to);
    }
    StageOut item{.number = one.number, .attribute = one.attribute, .stream = one.stream, .position = one.position,
                  .destination = one.to};
    if (rsl::IsCacheUrl(one.from) && (one.stream == rsl::kNoStream || one.from.find("/" + job_id + "/std") == std::string::npos)) {
      return errors::BadStaging(code, attribute,
                                "expected a path, or the job's own $(GLOBUS_CACHED_STDOUT) or _STDERR, saw \"" +
                                    Printable(one.from) + "\"",
                                "a site keeps nothing else under such a name");
    }
    item.source = one.stream == rsl::kNoStream
                      ? AbsolutePath(one.from, job, home)
                      : JobPlace(home, job_id) + (one.stream == 0 ? "/stdout" : "/stderr");
    item.is_kept = rsl::IsForClient(one);
    item.target = item.is_kept              ? KeptPlace(home, job_id, one.number)
                  : to.kind == Kind::kFile ? to.path
                  : to.kind == Kind::kPath ? AbsolutePath(to.path, job, home)
                                           : "";
    RETURN_IF_ERROR(CheckPath(item.source, home, rules, code, attribute));
    if (!item.target.empty()) {
      RETURN_IF_ERROR(CheckPath(item.target, home, rules, code, attribute));
    }
    items.push_back(std::move(item));
  }
  return items;
}

absl::StatusOr<std::vector<std::string>> PlanCleanUp(const rsl::JobDescription& job, const std::string& home,
                                                     const StagingRules& rules) {
  std::vector<std::string> paths;
  for (const std::string& path : job.file_clean_up) {
    paths.push_back(AbsolutePath(path, job, home));
    RETURN_IF_ERROR(CheckPath(paths.back(), home, rules, gram::RSL_FILE_CLEANUP, "file_clean_up"));
  }
  return paths;
}

absl::StatusOr<std::string> PlanScratch(const rsl::JobDescription& job, const std::string& home,
                                        const std::string& job_id, const StagingRules& rules) {
  if (job.scratch_dir.empty()) {
    return "";
  }
  const std::string above = job.scratch_dir.starts_with("/") ? job.scratch_dir : home + "/" + job.scratch_dir;
  const std::string path = above + "/" + job_id;
  RETURN_IF_ERROR(CheckPath(path, home, rules, gram::RSL_SCRATCH, "scratch_dir"));
  return path;
}

}  // namespace sekisho::qserver
