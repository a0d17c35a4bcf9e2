// SPDX-License-Identifier: Apache-2.0
#include "agent/rank/pmix_server.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <pmix.h>
#include <pmix_server.h>

namespace sekisho::agent::pmix {

std::vector<int> Layout::RanksOf(int which) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < static_cast<int>(node_of.size()); ++rank) {
    if (node_of[rank] == which) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

namespace {

int event_pipe[2] = {-1, -1};

struct Fence {
  pmix_modex_cbfunc_t done;
  void* done_data;
};

struct Leave {
  pmix_op_cbfunc_t done;
  void* done_data;
};

// A pointer is written in one piece, and whoever reads it owns what it points to.
void Post(std::unique_ptr<Event> event) {
  Event* const pointer = event.release();
  if (write(event_pipe[1], &pointer, sizeof pointer) != sizeof pointer) {
    delete pointer;
  }
}

void PostOf(Event::Kind kind, const pmix_proc_t* proc, int code) {
  auto event = std::make_unique<Event>();
  event->kind = kind;
  event->rank = static_cast<int>(proc->rank);
  event->code = code;
  Post(std::move(event));
}

pmix_status_t Done(pmix_op_cbfunc_t done, void* data) {
  if (done != nullptr) {
    done(PMIX_SUCCESS, data);
  }
  return PMIX_SUCCESS;
}

pmix_status_t OnConnected(const pmix_proc_t* proc, void*, pmix_op_cbfunc_t done, void* data) {
  PostOf(Event::Kind::kInside, proc, 0);
  return Done(done, data);
}

pmix_status_t OnFinalized(const pmix_proc_t* proc, void*, pmix_op_cbfunc_t done, void* data) {
  auto event = std::make_unique<Event>();
  event->kind = Event::Kind::kOutside;
  event->rank = static_cast<int>(proc->rank);
  event->waits = new Leave{done, data};
  Post(std::move(event));
  return PMIX_SUCCESS;
}

// It gets no answer: it is ended.
pmix_status_t OnAbort(const pmix_proc_t* proc, void*, int status, const char*, pmix_proc_t*, size_t,
                      pmix_op_cbfunc_t, void*) {
  PostOf(Event::Kind::kAborted, proc, status);
  return PMIX_SUCCESS;
}

pmix_status_t OnFence(const pmix_proc_t*, size_t, const pmix_info_t*, size_t, char* data,
                      size_t size, pmix_modex_cbfunc_t done, void* done_data) {
  auto event = std::make_unique<Event>();
  event->kind = Event::Kind::kFence;
  event->data.assign(data != nullptr ? data : "", data != nullptr ? size : 0);
  event->waits = new Fence{done, done_data};
  Post(std::move(event));
  return PMIX_SUCCESS;
}

// Clients that have not called PMIx_Finalize; what the library notices within a second comes as one event.
void OnLost(size_t, pmix_status_t, const pmix_proc_t* first, pmix_info_t* info, size_t infos, pmix_info_t*, size_t,
            pmix_event_notification_cbfunc_fn_t done, void* data) {
  PostOf(Event::Kind::kLost, first, 0);
  for (size_t i = 0; i < infos; ++i) {
    if (PMIX_CHECK_KEY(&info[i], PMIX_PROCID) && info[i].value.type == PMIX_PROC) {
      PostOf(Event::Kind::kLost, info[i].value.data.proc, 0);
    }
  }
  if (done != nullptr) {
    done(PMIX_EVENT_ACTION_COMPLETE, nullptr, 0, nullptr, nullptr, data);
  }
}

pmix_status_t OnRegisterEvents(pmix_status_t*, size_t, const pmix_info_t*, size_t,
                               pmix_op_cbfunc_t done, void* data) {
  return Done(done, data);
}

pmix_status_t OnDeregisterEvents(pmix_status_t*, size_t, pmix_op_cbfunc_t done, void* data) {
  return Done(done, data);
}

pmix_status_t OnJobControl(const pmix_proc_t*, const pmix_proc_t*, size_t, const pmix_info_t*,
                           size_t, pmix_info_cbfunc_t done, void* data) {
  if (done != nullptr) {
    done(PMIX_SUCCESS, nullptr, 0, data, nullptr, nullptr);
  }
  return PMIX_SUCCESS;
}

pmix_server_module_t Module() {
  pmix_server_module_t module{};
  module.client_connected = OnConnected;
  module.client_finalized = OnFinalized;
  module.abort = OnAbort;
  module.fence_nb = OnFence;
  module.register_events = OnRegisterEvents;
  module.deregister_events = OnDeregisterEvents;
  module.job_control = OnJobControl;
  return module;
}

// What the library is told, key by key; it copies all of it.
class Infos {
 public:
  void Text(const char* key, const std::string& value) { Add(key, value.c_str(), PMIX_STRING); }
  void Number(const char* key, uint32_t value) { Add(key, &value, PMIX_UINT32); }
  void Short(const char* key, uint16_t value) { Add(key, &value, PMIX_UINT16); }
  void Rank(const char* key, int value) {
    const auto rank = static_cast<pmix_rank_t>(value);
    Add(key, &rank, PMIX_PROC_RANK);
  }
  void Regex(const char* key, const char* value) { Add(key, value, PMIX_REGEX); }
  void Nested(const char* key, Infos& inner) {
    pmix_data_array_t array;
    array.type = PMIX_INFO;
    array.size = inner.infos_.size();
    array.array = inner.infos_.data();
    Add(key, &array, PMIX_DATA_ARRAY);
  }
  pmix_info_t* data() { return infos_.data(); }
  size_t size() const { return infos_.size(); }

 private:
  void Add(const char* key, const void* value, pmix_data_type_t type) {
    pmix_info_t& info = infos_.emplace_back();
    std::memset(&info, 0, sizeof info);
    PMIX_INFO_LOAD(&info, key, value, type);
  }
  std::vector<pmix_info_t> infos_;
};

std::string Joined(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) {
    text += text.empty() ? "" : ",";
    text += std::to_string(rank);
  }
  return text;
}

std::string Wrong(const char* what, pmix_status_t status) {
  return std::string(what) + ": " + PMIx_Error_string(status);
}

bool IsDone(pmix_status_t status) {
  return status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED;
}

std::string AddMaps(const Layout& layout, Infos& job) {
  std::string hosts;
  std::string ranks;
  for (size_t node = 0; node < layout.hosts.size(); ++node) {
    hosts += node == 0 ? "" : ",";
    hosts += layout.hosts[node];
    ranks += node == 0 ? "" : ";";
    ranks += Joined(layout.RanksOf(static_cast<int>(node)));
  }
  char* node_map = nullptr;
  char* rank_map = nullptr;
  if (const auto status = PMIx_generate_regex(hosts.c_str(), &node_map); status != PMIX_SUCCESS) {
    return Wrong("PMIx_generate_regex", status);
  }
  if (const auto status = PMIx_generate_ppn(ranks.c_str(), &rank_map); status != PMIX_SUCCESS) {
    return Wrong("PMIx_generate_ppn", status);
  }
  job.Regex(PMIX_NODE_MAP, node_map);
  job.Regex(PMIX_PROC_MAP, rank_map);
  return "";
}

void AddRank(const Layout& layout, int rank, int local_rank, Infos& job) {
  Infos about;
  about.Rank(PMIX_RANK, rank);
  about.Rank(PMIX_GLOBAL_RANK, rank);
  about.Number(PMIX_APPNUM, 0);
  about.Short(PMIX_LOCAL_RANK, static_cast<uint16_t>(local_rank));
  about.Short(PMIX_NODE_RANK, static_cast<uint16_t>(local_rank));
  about.Number(PMIX_NODEID, static_cast<uint32_t>(layout.node_of[rank]));
  about.Text(PMIX_HOSTNAME, layout.hosts[layout.node_of[rank]]);
  job.Nested(PMIX_PROC_DATA, about);
}

}  // namespace

std::string Start(const std::string& directory, const std::string& host) {
  if (pipe2(event_pipe, O_CLOEXEC) != 0) {
    return std::string("pipe2: ") + std::strerror(errno);
  }
  Infos infos;
  infos.Text(PMIX_SERVER_TMPDIR, directory);
  infos.Text(PMIX_SYSTEM_TMPDIR, directory);
  infos.Text(PMIX_HOSTNAME, host);
  pmix_server_module_t module = Module();
  if (const auto status = PMIx_server_init(&module, infos.data(), infos.size()); status != PMIX_SUCCESS) {
    return Wrong("PMIx_server_init", status);
  }
  pmix_status_t lost = PMIX_ERR_LOST_CONNECTION;
  const auto id = PMIx_Register_event_handler(&lost, 1, nullptr, 0, OnLost, nullptr, nullptr);  // negative: an error
  return id >= 0 ? "" : Wrong("PMIx_Register_event_handler", id);
}

std::string Register(const Layout& layout) {
  const std::vector<int> local = layout.RanksOf(layout.node);
  const auto size = static_cast<uint32_t>(layout.node_of.size());
  Infos job;
  job.Text(PMIX_JOBID, layout.world);
  job.Number(PMIX_UNIV_SIZE, size);
  job.Number(PMIX_JOB_SIZE, size);
  job.Number(PMIX_MAX_PROCS, size);
  job.Number(PMIX_JOB_NUM_APPS, 1);
  job.Number(PMIX_NUM_NODES, static_cast<uint32_t>(layout.hosts.size()));
  job.Number(PMIX_LOCAL_SIZE, static_cast<uint32_t>(local.size()));
  job.Number(PMIX_NODE_SIZE, static_cast<uint32_t>(local.size()));
  job.Text(PMIX_LOCAL_PEERS, Joined(local));
  job.Rank(PMIX_LOCALLDR, local.front());
  if (std::string wrong = AddMaps(layout, job); !wrong.empty()) {
    return wrong;
  }
  std::vector<int> count(layout.hosts.size());
  for (int rank = 0; rank < static_cast<int>(size); ++rank) {
    AddRank(layout, rank, count[layout.node_of[rank]]++, job);
  }
  pmix_proc_t proc;
  PMIX_LOAD_PROCID(&proc, layout.world.c_str(), PMIX_RANK_UNDEF);
  const auto status = PMIx_server_register_nspace(proc.nspace, static_cast<int>(local.size()),
                                                  job.data(), job.size(), nullptr, nullptr);
  if (!IsDone(status)) {
    return Wrong("PMIx_server_register_nspace", status);
  }
  for (const int rank : local) {
    proc.rank = static_cast<pmix_rank_t>(rank);
    const auto registered =
        PMIx_server_register_client(&proc, geteuid(), getegid(), nullptr, nullptr, nullptr);
    if (!IsDone(registered)) {
      return Wrong("PMIx_server_register_client", registered);
    }
  }
  return "";
}

std::vector<std::string> Environment(const std::string& world, int rank) {
  pmix_proc_t proc;
  PMIX_LOAD_PROCID(&proc, world.c_str(), static_cast<pmix_rank_t>(rank));
  char** variables = nullptr;
  std::vector<std::string> environment;
  if (PMIx_server_setup_fork(&proc, &variables) == PMIX_SUCCESS) {
    for (char** each = variables; each != nullptr && *each != nullptr; ++each) {
      environment.emplace_back(*each);
    }
  }
  return environment;
}

int EventFd() { return event_pipe[0]; }

std::unique_ptr<Event> NextEvent() {
  Event* pointer = nullptr;
  return read(event_pipe[0], &pointer, sizeof pointer) == sizeof pointer
             ? std::unique_ptr<Event>(pointer)
             : nullptr;
}

void LetGo(const Event& event) {
  const std::unique_ptr<Leave> leave(static_cast<Leave*>(event.waits));
  Done(leave->done, leave->done_data);
}

void EndFence(const Event& event, bool is_ok, std::string all) {
  const std::unique_ptr<Fence> fence(static_cast<Fence*>(event.waits));
  auto* const kept = new std::string(std::move(all));
  fence->done(
      is_ok ? PMIX_SUCCESS : PMIX_ERR_LOST_CONNECTION, kept->data(), kept->size(), fence->done_data,
      [](void* text) { delete static_cast<std::string*>(text); }, kept);
}

}  // namespace sekisho::agent::pmix
