// SPDX-License-Identifier: Apache-2.0
// sekisho-pmix PROGRAM ARGUMENTS...: an Open MPI program as a rank of a world.
// docs/protocol/15-mpirun.md, "Open MPI".
//
// The lowest rank of each node hosts the node's PMIx server and is its program's parent; the others
// become their program. What PMIx's collectives give goes with the agent's PMI-1 barriers, as
// MPICH's does.  It runs as the job's account.
#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <thread>

#include "agent/rank/pmi_client.h"
#include "agent/rank/pmix_host.h"
#include "agent/rank/pmix_server.h"
#include "agent/rank/shared_memory.h"

namespace sekisho::agent {
namespace {

constexpr int kCannotRun = 125;
constexpr int kForwarded[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

int Fail(const std::string& what) {
  std::fprintf(stderr, "sekisho: rank %s: %s\n", Variable("PMI_RANK").c_str(), what.c_str());
  return kCannotRun;
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

void Export(const std::vector<std::string>& environment) {
  for (const std::string& variable : environment) {
    const size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

// The world as all wrappers know it after their first barrier.
struct Rank {
  int rank = 0;
  pmix::Layout layout;
  std::string lock;  // held by every program of this node: the server's end waits for it

  std::string files() const { return lock.substr(0, lock.rfind('/')); }  // of the task that hosts the server
  std::string shared_memory() const { return SharedMemoryOf(std::filesystem::path(files()).parent_path()); }
  bool is_server() const { return layout.RanksOf(layout.node).front() == rank; }
};

// What Open MPI must know to run here, unless the user knows better.
void SetOpenMpi(const Rank& self, bool is_host_shared, bool must_yield) {
  const std::string files = self.files();
  const std::string shared_memory = self.shared_memory();
  const std::pair<const char*, const char*> defaults[] = {
      {"OMPI_MCA_pml", "ob1"},
      {"OMPI_MCA_btl", is_host_shared ? "tcp,self" : "tcp,vader,self"},
      {"OMPI_MCA_osc", "pt2pt"},
      {"OMPI_MCA_reachable",
       "weighted"},  // whether a peer is reached is the relay's to say, not the routing table's
      {"OMPI_MCA_mpi_yield_when_idle", must_yield ? "1" : "0"},
      {"OMPI_MCA_orte_tmpdir_base", files.c_str()},  // what it leaves there, as a rank is killed, goes with the task
  };
  for (const auto& [name, value] : defaults) {
    setenv(name, value, 0);
  }
  struct stat made {};
  const bool is_made = lstat(shared_memory.c_str(), &made) == 0 && S_ISDIR(made.st_mode);
  if (is_made && made.st_uid == geteuid()) {  // not somebody else's, who knew its name
    setenv("OMPI_MCA_btl_vader_backing_directory", shared_memory.c_str(), 0);
  }
  // Open MPI drops a connection whose address was translated on the way, and the two ranks wait for ever then,
  // unless the other one's dial was first.  So only the site can say that it is not.
  unsetenv("NXPROXY_DIRECT");
  if (const std::string direct = Variable("SEKISHO_DIRECT_UNTRANSLATED"); !direct.empty()) {
    setenv("NXPROXY_DIRECT", direct.c_str(), 1);
  }
  setenv("JSM_JSRUN_PORT", "1",
         1);  // started directly, not by orterun: else each rank takes itself for a world
  unsetenv("PMI_FD");
  if (Variable("PM_JOB_FILE") == "pmi") {  // nor do nodes of PM meet there
    unsetenv("PM_JOB_FILE");
  }
}

std::string EnvironmentKey(int node) { return "pmix-environment-" + std::to_string(node); }
std::string HostKey(int node) { return "pmix-host-" + std::to_string(node); }

std::string StartServer(PmiClient& pmi, Rank& self, const std::string& host) {
  self.lock = Variable("SEKISHO_PMIX_LOCK");
  mkdir(self.shared_memory().c_str(), 0700);  // without it Open MPI has a place of its own
  if (std::string wrong = pmix::Start(self.files(), host); !wrong.empty()) {
    return wrong;
  }
  std::string text = self.lock + "\n";
  for (const std::string& variable : pmix::Environment(self.layout.world, self.rank)) {
    text += variable.starts_with("PMIX_RANK=") || variable.find('\n') != std::string::npos
                ? ""
                : variable + "\n";
  }
  const bool is_put =
      pmi.Put(EnvironmentKey(self.layout.node), text) && pmi.Put(HostKey(self.layout.node), host);
  return is_put ? "" : "its agent takes nothing for the other ranks";
}

// What the others have put.  A node without is one whose ranks are no Open MPI programs.
std::string Meet(PmiClient& pmi, Rank& self) {
  const int nodes = 1 + *std::max_element(self.layout.node_of.begin(), self.layout.node_of.end());
  for (int node = 0; node < nodes; ++node) {
    const auto host = pmi.Get(HostKey(node));
    if (!host) {
      return "is built with Open MPI, and rank " +
             std::to_string(self.layout.RanksOf(node).front()) +
             " of the same world is not: build the program with one MPI for all sites";
    }
    self.layout.hosts.push_back(*host);
  }
  return "";
}

// Of the layout those on our host: of each part of the world that has ranks here.
std::vector<int> NodesHere(const Rank& self) {
  const auto name = [&](size_t node) {
    return self.layout.hosts[node].substr(0, self.layout.hosts[node].rfind('-'));
  };
  std::vector<int> nodes;
  for (size_t node = 0; node < self.layout.hosts.size(); ++node) {
    if (name(node) == name(self.layout.node)) {
      nodes.push_back(static_cast<int>(node));
    }
  }
  return nodes;
}

// Whether our part of the world, which is one job, is all of it.
bool IsWholeWorld() {
  const std::string ranks = Variable("SEKISHO_RANKS");
  return !ranks.empty() && Variable("SEKISHO_TASKS") == ranks;
}

// As Open MPI's own launcher has it: who has a processor to himself need not offer it to others
// each time that he looks.  Between parts the porters and the relays want it too.
bool MustYield(const Rank& self, const std::vector<int>& nodes_here) {
  size_t ranks = 0;
  for (const int node : nodes_here) {
    ranks += self.layout.RanksOf(node).size();
  }
  cpu_set_t processors;
  const bool is_known = sched_getaffinity(0, sizeof processors, &processors) == 0;
  return !IsWholeWorld() || !is_known || ranks > static_cast<size_t>(CPU_COUNT(&processors));
}

int HoldLock(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR);  // kept over the exec
  return fd >= 0 && flock(fd, LOCK_SH) == 0 ? fd : -1;
}

// Readable once no program of this node holds the lock any more.
int OthersGone(const std::string& path) {
  const int gone = eventfd(0, EFD_CLOEXEC);
  std::thread([path, gone] {
    const int lock = open(path.c_str(), O_RDWR | O_CLOEXEC);
    flock(lock, LOCK_EX);
    eventfd_write(gone, 1);
  }).detach();
  return gone;
}

// The program's parent, as long as any program of this node may need the server.
int Serve(PmiClient& pmi, const Rank& self, char** program, const sigset_t& before,
          const sigset_t& ours) {
  const int signals = signalfd(-1, &ours, SFD_CLOEXEC);
  if (signals < 0 || !pmi.Represent()) {
    return Fail(
        "its agent does not know a node's PMIx server: the agent is older than the queue server");
  }
  int told[2] = {-1, -1};  // which MPI the program has loaded, by itself
  const bool is_told = std::getenv("SEKISHO_TELL_MPI") != nullptr && pipe2(told, O_CLOEXEC | O_NONBLOCK) == 0;
  if (is_told) {  // not behind the fork: a thread of the library may hold the environment's lock then
    setenv("SEKISHO_TELL_MPI", std::to_string(told[1]).c_str(), 1);
  }
  const pid_t child = fork();
  if (child == 0) {
    if (is_told) {
      fcntl(told[1], F_SETFD, 0);
    }
    std::signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    execv(program[0], program);
    _exit(Fail(std::string(program[0]) + ": " + std::strerror(errno)));
  }
  if (child < 0) {
    return Fail(std::string("fork: ") + std::strerror(errno));
  }
  close(told[1]);
  pmix::Host host(pmi, self.layout, child, signals, told[0]);
  const int code = host.Run(self.rank);
  if (code != 0 || host.IsInside(self.rank)) {
    return code;
  }
  const int gone = OthersGone(self.lock);
  sigprocmask(SIG_SETMASK, &before, nullptr);  // whoever ends us now ends nothing else
  return host.ServeOthers(gone);
}

int Main(char** program) {
  sigset_t before;
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGCHLD);
  for (const int number : kForwarded) {
    sigaddset(&ours, number);
  }
  sigprocmask(SIG_BLOCK, &ours, &before);  // before the library has threads that could take one
  std::signal(SIGPIPE, SIG_IGN);
  setenv("PMIX_MCA_gds", "hash", 1);
  setenv("PMIX_MCA_psec", "native", 1);

  Rank self;
  self.rank = std::atoi(Variable("PMI_RANK").c_str());
  self.layout.world = Variable("SEKISHO_WORLD");
  PmiClient pmi(std::atoi(Variable("PMI_FD").c_str()));
  fcntl(pmi.fd(), F_SETFD, FD_CLOEXEC);
  const auto nodes =
      pmi.Init() ? pmi.NodesOfRanks(std::atoi(Variable("PMI_SIZE").c_str())) : std::nullopt;
  if (!nodes || self.rank < 0 || self.rank >= static_cast<int>(nodes->size())) {
    return Fail("its agent does not say which ranks share a node");
  }
  self.layout.node_of = *nodes;
  self.layout.node = (*nodes)[self.rank];
  const std::string host = HostName() + "-" + std::to_string(self.layout.node);
  if (self.is_server()) {
    if (const std::string wrong = StartServer(pmi, self, host); !wrong.empty()) {
      return Fail("its PMIx server does not start: " + wrong);
    }
  }
  if (!pmi.Barrier()) {
    return Fail("the world was not met: its agent has gone");
  }
  if (const std::string wrong = Meet(pmi, self); !wrong.empty()) {
    return Fail(wrong);
  }
  const auto environment = pmi.Get(EnvironmentKey(self.layout.node));
  std::vector<std::string> lines = Lines(environment.value_or(""));
  if (lines.empty()) {
    return Fail("the PMIx server of its node says nothing");
  }
  self.lock = lines.front();
  lines.erase(lines.begin());
  lines.push_back("PMIX_RANK=" + std::to_string(self.rank));
  Export(lines);
  const std::vector<int> nodes_here = NodesHere(self);
  // On a host of two parts Open MPI would mistake the other's shared memory.
  SetOpenMpi(self, nodes_here.size() > 1, MustYield(self, nodes_here));
  if (self.is_server()) {
    if (const std::string wrong = pmix::Register(self.layout); !wrong.empty()) {
      return Fail("its PMIx server: " + wrong);
    }
  } else if (HoldLock(self.lock) < 0) {
    return Fail(self.lock + ": " + std::strerror(errno));
  }
  if (!pmi.Barrier() || !pmi.Finalize()) {
    return Fail("the world was not met: its agent has gone");
  }
  if (self.is_server()) {
    const int code = Serve(pmi, self, program, before, ours);
    std::error_code error;
    std::filesystem::remove_all(self.shared_memory(), error);  // if others still use it the world is ending
    return code;
  }
  unsetenv("SEKISHO_TELL_MPI");
  std::signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  execv(program[0], program);
  return Fail(std::string(program[0]) + ": " + std::strerror(errno));
}

}  // namespace
}  // namespace sekisho::agent

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: sekisho-pmix PROGRAM ARGUMENTS...\n", stderr);
    return 64;
  }
  const int code = sekisho::agent::Main(argv + 1);
  std::fflush(nullptr);
  _exit(code);  // the library's thread may be in the midst of something
}
