// SPDX-License-Identifier: Apache-2.0
// sekisho-rank --mpi mpich|openmpi|auto -- [WRAPPER... --] PROGRAM ARGUMENTS...
//
// What an agent puts before each rank of a world: looks which MPI the program was built with,
// refuses it if that is not what was asked for, and becomes it; or sekisho-pmix, which serves an
// Open MPI program.  docs/protocol/15-mpirun.md.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "agent/rank/mpi_kind.h"
#include "agent/rank/pmi_client.h"

namespace sekisho::agent {
namespace {

constexpr int kUsage = 64;
constexpr int kCannotRun = 125;

// Of what cannot be read: unknown.
MpiKind KindOfFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0 || info.st_size == 0) {
    return MpiKind::kUnknown;
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? MpiKind::kUnknown
                              : KindOf(NeededLibraries({static_cast<char*>(memory), size}));
}

std::string OwnFolder() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  const std::string text(path, size > 0 ? static_cast<size_t>(size) : 0);
  return text.substr(0, text.rfind('/') + 1);
}

// Behind our own wrappers, each of which ends in `--`.
size_t PlaceOfProgram(const std::vector<char*>& words) {
  size_t at = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    if (i == at && word.substr(word.rfind('/') + 1).starts_with("sekisho-")) {
      while (i < words.size() && std::strcmp(words[i], "--") != 0) {
        ++i;
      }
      at = i + 1;
    }
  }
  return at;
}

// What counts the program's messages, if its user asked for that: `sekisho mpirun --profile`.
void LoadTracer(MpiKind kind) {
  if (std::getenv("SEKISHO_TRAFFIC") == nullptr || kind == MpiKind::kUnknown) {
    return;
  }
  const char* const loaded = std::getenv("LD_PRELOAD");
  const std::string tracer = OwnFolder() + "libsekisho-traffic-" + std::string(Name(kind)) + ".so";
  setenv("LD_PRELOAD", (loaded != nullptr ? tracer + ":" + loaded : tracer).c_str(), 1);
}

// Under a relay's porter: who it is for the ranks at other sites, and that it is to end if it cannot reach them.
void NameForPorter() {
  const char* const rank = std::getenv("PMI_RANK");
  const char* const site = std::getenv("NXPROXY_SITE");
  if (rank != nullptr && site != nullptr) {
    setenv("NXPROXY_LABEL", (std::string("rank ") + rank + " at " + site).c_str(), 1);
    setenv("NXPROXY_UNREACHED", "end", 1);
  }
}

// The version of its MPI, to the leader of a world of several parts: each part's first task does, and of Open MPI's ranks
// those whose node's server they are.
void TellMpi(bool is_openmpi) {
  const auto variable = [](const char* name) { return std::string(std::getenv(name) != nullptr ? std::getenv(name) : ""); };
  const bool is_told = variable("SEKISHO_TASKS") != variable("SEKISHO_RANKS") && (is_openmpi || variable("SEKISHO_TASK") == "0");
  if (is_told) {
    setenv("SEKISHO_TELL_MPI", "pmi", 1);
  }
}

int Fail(const std::string& program, const std::string& what) {
  std::fprintf(stderr, "sekisho: rank %s: %s: %s\n", std::getenv("PMI_RANK"), program.c_str(),
               what.c_str());
  return kCannotRun;
}

// Its place may have moved since its environment was made: parts of the world may have been dropped.
bool TakePlace() {
  const char* const fd = std::getenv("PMI_FD");
  const auto place = fd != nullptr ? PmiClient(std::atoi(fd)).AskPlace() : std::nullopt;
  if (!place) {
    return false;
  }
  for (const char* name : {"PMI_RANK", "SEKISHO_RANK"}) {
    setenv(name, std::to_string(place->rank).c_str(), 1);
  }
  for (const char* name : {"PMI_SIZE", "SEKISHO_RANKS"}) {
    setenv(name, std::to_string(place->size).c_str(), 1);
  }
  return true;
}

int Main(const std::string& asked, std::vector<char*> words) {
  const size_t at = PlaceOfProgram(words);
  if (at >= words.size()) {
    return kUsage;
  }
  const std::string program = words[at];
  if (!TakePlace()) {
    return Fail(program, "its agent does not tell it its place in the world");
  }
  const MpiKind kind = KindOfFile(program);
  if (kind != MpiKind::kUnknown && asked != "auto" && asked != Name(kind)) {
    return Fail(program, std::string("is built with ") + std::string(Name(kind)) + ", and " +
                             asked + " was asked for; say --mpi auto, or build it with " + asked);
  }
  const bool is_openmpi =
      kind == MpiKind::kOpenMpi || (kind == MpiKind::kUnknown && asked == "openmpi");
  LoadTracer(kind);
  TellMpi(is_openmpi);
  NameForPorter();
  std::string server = OwnFolder() + "sekisho-pmix";
  if (is_openmpi) {
    words.insert(words.begin(), server.data());
  }
  words.push_back(nullptr);
  execv(words[0], words.data());
  return Fail(words[0], std::strerror(errno));
}

}  // namespace
}  // namespace sekisho::agent

int main(int argc, char** argv) {
  if (argc < 5 || std::strcmp(argv[1], "--mpi") != 0 || std::strcmp(argv[3], "--") != 0) {
    std::fputs("usage: sekisho-rank --mpi mpich|openmpi|auto -- PROGRAM ARGUMENTS...\n", stderr);
    return sekisho::agent::kUsage;
  }
  return sekisho::agent::Main(argv[2], {argv + 4, argv + argc});
}
