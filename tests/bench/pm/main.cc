// SPDX-License-Identifier: Apache-2.0
// One rank of a measurement or of a kernel.  Rank 0 prints one JSON line for each result.
// docs/operations/pm-goals.md, "Kernels".
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tests/bench/pm/kernels.h"

namespace sekisho::pm_bench {

void Die(const std::string& what) {
  fprintf(stderr, "sekisho-pm-ranks: %s\n", what.c_str());
  _exit(1);
}

namespace {

struct Options {
  LinkSettings link;
  std::string name = "pm";
  std::string what;
  std::string state;  // file for what a rank must remember, with its number behind
  bool resumes = false;
  bool leaves = false;  // killed in the checkpoint, to go on elsewhere
  int checkpoint_at = -1;
  int iterations = 0;
  int victim = -1;  // dies with `messages` to each other rank under way
  int messages = 20;
  char size_class = 'S';
  double seconds = 0.2;
  std::size_t least = 4, most = 1 << 20;
};

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Rank 0 decides for all whether there is time for another round.
bool Again(Ranks& ranks, double until) {
  unsigned char more = Now() < until ? 1 : 0;
  ranks.Broadcast(0, {&more, 1});
  return more != 0;
}

// Times one collective call or one message, in rounds that all ranks do together.
template <typename Body>
void Measure(Ranks& ranks, const Options& options, std::size_t bytes, Body body) {
  body();
  ranks.Barrier();
  double spent = 0;
  std::vector<double> times;
  const double until = Now() + options.seconds;
  do {
    const int batch = bytes < 65536 ? 20 : 4;
    ranks.Barrier();
    for (int i = 0; i < batch; ++i) {
      const double begin = Now();
      body();
      times.push_back(Now() - begin);
      spent += times.back();
    }
  } while (Again(ranks, until));
  if (ranks.rank() != 0) return;
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return 1e6 * times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  };
  printf(
      "{\"what\": \"%s\", \"link\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"us\": %.2f, \"p50\": "
      "%.2f, "
      "\"p99\": %.2f, \"max\": %.2f, \"count\": %zu}\n",
      options.what.c_str(), options.name.c_str(), ranks.size(), bytes,
      1e6 * spent / static_cast<double>(times.size()), at(0.5), at(0.99), at(1), times.size());
  fflush(stdout);
}

void Messages(Ranks& ranks, const Options& options) {
  const auto count = static_cast<std::size_t>(ranks.size());
  std::vector<unsigned char> out(options.most * count, 'x'), in(options.most * count);
  const int other = ranks.rank() ^ 1;
  for (std::size_t bytes = options.least; bytes <= options.most; bytes *= 2) {
    const Bytes mine(out.data(), bytes);
    const MutableBytes room(in.data(), bytes);
    Measure(ranks, options, bytes, [&] {
      if (options.what == "roundtrip" && ranks.rank() < 2) {
        if (ranks.rank() == 0) ranks.Send(other, 20, mine), ranks.WaitAll();
        ranks.Receive(other, 20, room), ranks.WaitAll();
        if (ranks.rank() == 1) ranks.Send(other, 20, mine), ranks.WaitAll();
      } else if (options.what == "burst" && ranks.rank() < 2) {  // 64 one way, then a word back
        unsigned char word = 0;
        for (int i = 0; i < 64; ++i) {
          if (ranks.rank() == 0) ranks.Send(1, 21, mine);
          if (ranks.rank() == 1) ranks.Receive(0, 21, room), ranks.WaitAll();
        }
        if (ranks.rank() == 1) ranks.Send(0, 22, {&word, 1});
        if (ranks.rank() == 0) ranks.Receive(1, 22, {&word, 1});
        ranks.WaitAll();
      } else if (options.what == "broadcast") {
        ranks.Broadcast(0, room);
        ranks.Barrier();
      } else if (options.what == "allgather") {
        ranks.Allgather(mine, {in.data(), bytes * count});
      } else if (options.what == "alltoall") {
        ranks.Alltoall(out.data(), in.data(), bytes);
      }
    });
  }
}

// What the victim says to one rank last.
std::vector<unsigned char> LastWords(int to, int number, std::size_t bytes) {
  std::vector<unsigned char> text(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    text[i] = static_cast<unsigned char>(7 * i + 31 * static_cast<std::size_t>(to) +
                                         101 * static_cast<std::size_t>(number));
  }
  return text;
}

// All talk with all; then one is killed as soon as PM has accepted what it sends, and the others
// want to have received all of it.
int Farewell(Ranks& ranks, const Options& options) {
  const auto count = static_cast<std::size_t>(ranks.size());
  std::vector<unsigned char> out(options.least * count), in(options.least * count);
  for (int i = 0; i < 20; ++i) ranks.Alltoall(out.data(), in.data(), options.least);
  std::vector<std::vector<unsigned char>> texts;
  for (int number = 0; number < options.messages; ++number) {
    for (int to = 0; to < ranks.size(); ++to) {
      texts.push_back(LastWords(to, number, options.least));
    }
  }
  if (ranks.rank() == options.victim) {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const int to = static_cast<int>(i % count);
      if (to != ranks.rank()) ranks.Send(to, 30, texts[i]);
    }
    ranks.WaitAll();
    raise(SIGKILL);
  }
  int right = 0;
  for (int number = 0; number < options.messages; ++number) {
    std::vector<unsigned char> got(options.least);
    ranks.Receive(options.victim, 30, got);
    ranks.WaitAll();
    right += got == texts[static_cast<std::size_t>(number) * count +
                          static_cast<std::size_t>(ranks.rank())]
                 ? 1
                 : 0;
  }
  printf("{\"what\": \"farewell\", \"rank\": %d, \"messages\": %d, \"right\": %d}\n", ranks.rank(),
         options.messages, right);
  fflush(stdout);
  return right == options.messages ? 0 : 1;
}

void SaveState(const std::string& file, int iteration, const std::vector<std::int32_t>& keys) {
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&iteration), sizeof iteration);
  out.write(reinterpret_cast<const char*>(keys.data()),
            static_cast<std::streamsize>(keys.size() * 4));
  if (!out.flush()) Die("cannot write " + file);
}

int LoadState(const std::string& file, std::vector<std::int32_t>& keys) {
  std::ifstream in(file, std::ios::binary);
  int iteration = 0;
  in.read(reinterpret_cast<char*>(&iteration), sizeof iteration);
  in.read(reinterpret_cast<char*>(keys.data()), static_cast<std::streamsize>(keys.size() * 4));
  if (!in) Die("cannot read " + file);
  return iteration;
}

KernelResult Sort(Ranks& ranks, const Options& options) {
  IsSetup setup;
  if (options.size_class == 'W') setup = {20, 16, 10};
  if (options.iterations > 0) setup.iterations = options.iterations;
  IntegerSort sort(ranks, setup);
  const std::string file = options.state + "." + std::to_string(ranks.rank());
  int iteration = 1;
  if (options.resumes) {
    iteration = LoadState(file, sort.keys());
    ranks.link().Restart();
  }
  for (; iteration <= setup.iterations; ++iteration) {
    if (iteration == options.checkpoint_at && !options.resumes) {
      ranks.Barrier();
      ranks.link().Checkpoint([&] {
        SaveState(file, iteration, sort.keys());
        if (options.leaves) raise(SIGKILL);
      });
      ranks.link().Restart();
    }
    sort.Iterate(iteration);
    if (ranks.rank() == 0 && iteration % 10 == 0) fprintf(stderr, "iteration %d\n", iteration);
  }
  return sort.Check();
}

KernelResult RunKernel(Ranks& ranks, const Options& options) {
  if (options.what == "is") return Sort(ranks, options);
  if (options.what == "ft") {
    FtSetup setup;
    if (options.size_class == 'W') setup = {128, 128, 32, 6};
    if (options.iterations > 0) setup.iterations = options.iterations;
    return FourierTransform(ranks, setup);
  }
  CgSetup setup;
  if (options.size_class == 'W') setup = {7000, 15, 32};
  if (options.iterations > 0) setup.outer = options.iterations;
  return ConjugateGradient(ranks, setup);
}

int Kernel(Ranks& ranks, const Options& options) {
  if ((ranks.size() & (ranks.size() - 1)) != 0) Die("kernels want 1, 2, 4, 8 ... ranks");
  if (!options.resumes) ranks.Barrier();
  const double begin = Now();
  const KernelResult result = RunKernel(ranks, options);
  const double seconds = Now() - begin;
  if (ranks.rank() == 0) {
    printf(
        "{\"what\": \"%s\", \"class\": \"%c\", \"link\": \"%s\", \"ranks\": %d, \"seconds\": %.6f, "
        "\"correct\": %s, \"value\": %.12g}\n",
        options.what.c_str(), options.size_class, options.name.c_str(), ranks.size(), seconds,
        result.correct ? "true" : "false", result.value);
  }
  return result.correct ? 0 : 1;
}

bool ReadOptions(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--resume" || word == "--leave") {
      (word == "--leave" ? options.leaves : options.resumes) = true;
      continue;
    }
    if (word.rfind("--", 0) != 0) {
      options.what = word;
      continue;
    }
    if (++i == argc) return false;
    const char* value = argv[i];
    if (word == "--link")
      options.name = value;
    else if (word == "--job")
      options.link.job = value;
    else if (word == "--node")
      options.link.rank = atoi(value);
    else if (word == "--daemon")
      options.link.daemon = value;
    else if (word == "--wait")
      options.link.waiting = strcmp(value, "spin") == 0    ? Waiting::kSpin
                             : strcmp(value, "sleep") == 0 ? Waiting::kSleep
                                                           : Waiting::kAdaptive;
    else if (word == "--class")
      options.size_class = value[0];
    else if (word == "--iterations")
      options.iterations = atoi(value);
    else if (word == "--victim")
      options.victim = atoi(value);
    else if (word == "--messages")
      options.messages = atoi(value);
    else if (word == "--checkpoint-at")
      options.checkpoint_at = atoi(value);
    else if (word == "--state")
      options.state = value;
    else if (word == "--seconds")
      options.seconds = atof(value);
    else if (word == "--least")
      options.least = static_cast<std::size_t>(atol(value));
    else if (word == "--most")
      options.most = static_cast<std::size_t>(atol(value));
    else
      return false;
  }
  if ((options.what == "farewell") != (options.victim >= 0)) return false;
  return !options.what.empty();
}

int Main(int argc, char** argv) {
  Options options;
  if (!ReadOptions(argc, argv, options)) {
    fprintf(stderr,
            "usage: sekisho-pm-ranks --job FILE --node N [--link pm|tcp] [--daemon SOCKET] [--wait "
            "spin|sleep|adaptive]\n"
            "  roundtrip|burst|broadcast|allgather|alltoall [--least BYTES] [--most BYTES] "
            "[--seconds S]\n"
            "  farewell --victim NODE [--messages N] [--least BYTES]\n"
            "  is|ft|cg [--class S|W] [--iterations N]; is: [--state FILE --checkpoint-at I "
            "[--leave] | "
            "--resume]\n");
    return 2;
  }
  const std::unique_ptr<Ranks> opened = OpenRanks(options.name, options.link);
  Ranks& ranks = *opened;
  if (options.what == "farewell") return Farewell(ranks, options);
  int code = 0;
  if (options.what == "is" || options.what == "ft" || options.what == "cg") {
    code = Kernel(ranks, options);
  } else {
    Messages(ranks, options);
  }
  ranks.Finish();
  return code;
}

}  // namespace
}  // namespace sekisho::pm_bench

int main(int argc, char** argv) { return sekisho::pm_bench::Main(argc, argv); }
