// SPDX-License-Identifier: Apache-2.0
#include "qserver/tasks.h"

#include <algorithm>

#include <fmt/format.h>

#include "qserver/pilot_node.h"
#include "rsl/outgoing.h"

namespace sekisho::qserver {
namespace {

using Placements = google::protobuf::RepeatedPtrField<proto::Placement>;
using Start = proto::ServerMessage::Start;

std::string NodeList(const Placements& placement, const std::string& job_id) {
  std::string list;
  for (const proto::Placement& place : placement) {
    list += list.empty() ? "" : ",";
    list += HostOf(place.node(), job_id);
  }
  return list;
}

std::string MachineFile(const Placements& placement, const std::string& job_id, bool is_openmpi) {
  std::string text;
  for (const proto::Placement& place : placement) {
    text += fmt::format(fmt::runtime(is_openmpi ? "{} slots={}\n" : "{}:{}\n"),
                        HostOf(place.node(), job_id), place.processes());
  }
  return text;
}

bool IsOpenmpi(const rsl::JobDescription& job, const MpiSettings& mpi) {
  return job.mpi_type.empty() ? mpi.is_openmpi : job.mpi_type == "openmpi";
}

// GRAM: a relative path is relative to the job's directory, also where a launcher would search
// PATH.  And "-x/y" is no option, of a launcher or of a script's interpreter.
std::string InDirectory(const std::string& executable) {
  return executable.starts_with('/') ? executable : "./" + executable;
}

// What a launcher starts.  A word ":" would begin another program to it, and nothing can be put before it
// that says otherwise: a shell says it in its place.
std::vector<std::string> ProgramOf(const rsl::JobDescription& job) {
  std::vector<std::string> words = {InDirectory(job.executable)};
  std::string script = R"(exec "$0")";
  for (const std::string& argument : job.arguments) {
    if (argument == ":") {
      script += " :";
    } else {
      script += fmt::format(R"( "${{{}}}")", words.size());
      words.push_back(argument);
    }
  }
  if (words.size() <= job.arguments.size()) {
    words.insert(words.begin(), {"/bin/sh", "-c", script});
  }
  return words;
}

void SetEnvironment(const proto::JobStatus& status, const rsl::JobDescription& job,
                    const std::string& job_contact, const TaskSettings& settings, Start& start) {
  auto& environment = *start.mutable_environment();
  environment["X509_CERT_DIR"] = settings.ca_directory;
  environment["GLOBUS_GRAM_JOB_CONTACT"] = job_contact;
  environment["GLOBUS_LOCATION"] = "/usr";
  for (const rsl::EnvironmentVariable& variable : job.environment) {
    environment[variable.name] = variable.value;
  }
  // Ours are the truth: a job's description cannot change them.
  environment["SEKISHO_JOB_ID"] = status.job_id();
  if (status.has_element()) {
    environment["SEKISHO_ARRAY_JOB"] = status.element().array();
    environment["SEKISHO_ARRAY_INDEX"] = std::to_string(status.element().index());
  }
  environment["SEKISHO_TASK"] = std::to_string(start.task().task());
  environment["SEKISHO_TASKS"] =
      std::to_string(job.job_type == rsl::JobType::kSingle ? 1 : job.count);
  environment["SEKISHO_NODES"] = NodeList(status.placement(), status.job_id());
  environment["SEKISHO_SITE"] = settings.site;
  environment["SEKISHO_RESOURCE"] = status.resource();
  if (!status.queue().empty()) environment["SEKISHO_QUEUE"] = status.queue();
  if (!job.project.empty()) environment["SEKISHO_PROJECT"] = job.project;
}

void SetArguments(const rsl::JobDescription& job, const TaskSettings& settings, Start& start) {
  const auto add = [&start](auto&&... words) { (start.add_argument(words), ...); };
  if (job.job_type != rsl::JobType::kMpi) {
    add(job.executable.find('/') == std::string::npos ? job.executable : InDirectory(job.executable));
  } else if (IsOpenmpi(job, settings.mpi)) {
    add(settings.mpi.openmpi, "--mca", "plm_rsh_agent", settings.mpi.remote_shell, "--mca",
        "plm_rsh_no_tree_spawn", "1", "--mca", "orte_leave_session_attached", "1", "--hostfile",
        "@FILES@/machines");  // daemons that left their helper would end with it
    for (const auto& [name, value] : start.environment()) {
      add("-x", name);  // it passes on only what it is told to
    }
    add("-np", std::to_string(job.count));
  } else {
    add(settings.mpi.mpich, "-launcher", "rsh", "-launcher-exec", settings.mpi.remote_shell, "-f",
        "@FILES@/machines");
    if (!settings.mpi.mpich_preload.empty()) {
      const auto own = start.environment().find("LD_PRELOAD");
      add("-genv", "LD_PRELOAD",
          own == start.environment().end() ? settings.mpi.mpich_preload
                                           : own->second + ":" + settings.mpi.mpich_preload);
    }
    add("-n", std::to_string(job.count));
  }
  const bool is_mpi = job.job_type == rsl::JobType::kMpi;
  for (const std::string& word : is_mpi ? ProgramOf(job) : job.arguments) {
    add(word);
  }
  if (is_mpi) {
    start.add_needed_program(settings.mpi.remote_shell);  // without it mpirun would wait for ever
  }
}

}  // namespace

int TaskCount(const rsl::JobDescription& job) {
  return job.job_type == rsl::JobType::kMultiple ? int(job.count) : 1;
}

size_t TaskBytes(const rsl::JobDescription& job) {
  size_t bytes = job.executable.size();
  for (const std::string& argument : job.arguments) {
    bytes += argument.size();
  }
  for (const rsl::EnvironmentVariable& variable : job.environment) {
    bytes += variable.name.size() + variable.value.size();
  }
  return bytes;
}

std::vector<std::string> TaskNodes(const rsl::JobDescription& job, const Placements& placement) {
  std::vector<std::string> nodes;
  for (const proto::Placement& place : placement) {
    for (int i = 0; i < place.processes() && int(nodes.size()) < TaskCount(job); ++i) {
      nodes.push_back(place.node());
    }
  }
  return nodes;
}

std::vector<Start> MakeStarts(const proto::JobStatus& status, const rsl::JobDescription& job,
                              bool has_input, const std::string& job_contact, int64_t wall_limit_s,
                              const TaskSettings& settings) {
  std::vector<Start> starts(TaskNodes(job, status.placement()).size());
  for (size_t number = 0; number < starts.size(); ++number) {
    Start& start = starts[number];
    start.mutable_task()->set_job_id(status.job_id());
    start.mutable_task()->set_task(int(number));
    start.set_account(status.account());
    SetEnvironment(status, job, job_contact, settings, start);
    if (job.job_type != rsl::JobType::kMultiple) {
      (*start.mutable_file())["machines"] =
          MachineFile(status.placement(), status.job_id(), IsOpenmpi(job, settings.mpi));
      (*start.mutable_environment())["SEKISHO_NODE_FILE"] = "@FILES@/machines";
    }
    SetArguments(job, settings, start);
    start.set_directory(job.directory);
    start.set_umask(job.umask.value_or(022));
    start.set_stdin_path(job.standard_input);
    start.set_has_input(number == 0 && has_input && job.standard_input.empty());
    start.set_stdout_path(rsl::WrittenByTasks(job.standard_output));
    start.set_stderr_path(rsl::WrittenByTasks(job.standard_error));
    start.set_append_output(number > 0);
    start.set_wall_limit_s(wall_limit_s);
    start.set_cpu_limit_s(job.max_cpu_time_minutes.value_or(0) * 60);
    start.set_memory_limit_mb(job.max_memory_mb.value_or(0));
  }
  return starts;
}

std::string HostOfSubject(const std::string& subject) {
  const size_t at = subject.rfind("/CN=");
  if (at == std::string::npos) {
    return "";
  }
  const std::string name = subject.substr(at + 4);
  return name.starts_with("host/") ? name.substr(5) : name;
}

std::string JobContact(const std::string& gatekeeper_subject, const std::string& job_id) {
  return fmt::format("https://{}:2119/{}/", HostOfSubject(gatekeeper_subject), job_id);
}

}  // namespace sekisho::qserver
