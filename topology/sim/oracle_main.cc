// SPDX-License-Identifier: Apache-2.0
// An oracle for tests: sekisho-topology-oracle FAMILY SEED [--hosts FILE] [--truth FILE]
// [--log FILE] [--dead HOST]... [--liar HOST]... [--dead-after HOST:N]... [--die-after N]
// [--garbage-every N].  A host of --dead-after answers N times, then no more; what a --liar says is
// made up.  Speaks docs/protocol/12-topology.md, "Oracle".
#include <cstdio>
#include <cstdlib>
#include <string>

#include "topology/sim/families.h"
#include "topology/sim/network.h"
#include "topology/sim/truth_format.h"
#include "topology/text_format.h"

namespace sekisho::topology::sim {
namespace {

struct Flaws {
  long die_after = -1;
  long garbage_every = -1;
};

void WriteHosts(const Truth& truth, const char* path) {
  std::FILE* file = std::fopen(path, "w");
  for (int i = 0; file != nullptr && i < truth.host_count; ++i) {
    std::fprintf(file, "%s c%d\n", truth.names[i].c_str(), truth.cluster_of[i]);
  }
  if (file != nullptr) {
    std::fclose(file);
  }
}

void WriteTruth(const Truth& truth, const char* path) {
  std::FILE* file = std::fopen(path, "w");
  if (file != nullptr) {
    std::fputs(PrintTruth(truth).c_str(), file);
    std::fclose(file);
  }
}

int Serve(const Truth& truth, uint64_t seed, const Flaws& flaws, std::FILE* log) {
  Network network(truth, seed);
  char line[256];
  long answers = 0;
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    Request request{.sets = 3, .stop = 10, .most = 30};
    double start_us = -1;
    if (line[0] == 'N') {
      std::printf("%d\n", truth.host_count);
    } else if (std::sscanf(line, "M %d %d %d %d %d %lf", &request.from, &request.to, &request.sets,
                           &request.stop, &request.most, &start_us) >= 2) {
      if (request.from < 0 || request.from >= truth.host_count || request.to < 0 ||
          request.to >= truth.host_count || request.from == request.to) {
        std::printf("no such pair\n");
      } else if (flaws.die_after >= 0 && answers >= flaws.die_after) {
        return 3;
      } else if (flaws.garbage_every > 0 && answers % flaws.garbage_every == 1) {
        std::printf("what?\n");
        ++answers;
      } else {
        const Answer answer = network.Measure(request);
        std::fputs(PrintAnswer(answer).c_str(), stdout);
        if (log != nullptr) {
          std::fprintf(log, "%d %d %d %.3f %.3f\n", request.from, request.to, answer.pings,
                       start_us, answer.duration_us);
        }
        ++answers;
      }
    } else if (line[0] == 'Q') {
      break;
    } else {
      std::printf("what?\n");
    }
    std::fflush(stdout);
  }
  return 0;
}

int Main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: sekisho-topology-oracle FAMILY SEED [OPTIONS]\n");
    return 64;
  }
  const uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  absl::StatusOr<Truth> truth = MakeFamily(argv[1], seed);
  if (!truth.ok()) {
    std::fprintf(stderr, "%s\n", std::string(truth.status().message()).c_str());
    return 64;
  }
  Flaws flaws;
  std::FILE* log = nullptr;
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--hosts") {
      WriteHosts(*truth, argv[i + 1]);
    } else if (option == "--truth") {
      WriteTruth(*truth, argv[i + 1]);
    } else if (option == "--log") {
      log = std::fopen(argv[i + 1], "w");
    } else if (option == "--dead") {
      const int host = std::atoi(argv[i + 1]);
      if (host >= 0 && host < truth->host_count) {
        truth->is_dead[host] = true;
      }
    } else if (option == "--liar") {
      truth->liars.push_back(std::atoi(argv[i + 1]));
    } else if (option == "--dead-after") {
      int host = -1;
      long answers = 0;
      if (std::sscanf(argv[i + 1], "%d:%ld", &host, &answers) != 2 || host < 0 ||
          host >= truth->host_count || answers < 0) {
        std::fprintf(stderr, "--dead-after %s: expected HOST:ANSWERS\n", argv[i + 1]);
        return 64;
      }
      truth->dying.emplace_back(host, answers);
    } else if (option == "--die-after") {
      flaws.die_after = std::atol(argv[i + 1]);
    } else if (option == "--garbage-every") {
      flaws.garbage_every = std::atol(argv[i + 1]);
    }
  }
  const int code = Serve(*truth, seed + 1000, flaws, log);
  if (log != nullptr) {
    std::fclose(log);
  }
  return code;
}

}  // namespace
}  // namespace sekisho::topology::sim

int main(int argc, char** argv) { return sekisho::topology::sim::Main(argc, argv); }
