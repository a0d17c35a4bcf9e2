// SPDX-License-Identifier: Apache-2.0
// sekisho rankmap as a user types it: results, mistakes, and files that are whole or not there.
#include "client/rankmap/verb_rankmap.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace sekisho::client {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

class RankmapVerb : public testing::Test {
 protected:
  RankmapVerb()
      : directory_(std::filesystem::temp_directory_path() /
                   ("rankmap-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(directory_);
  }
  ~RankmapVerb() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return (directory_ / name).string(); }
  std::string Write(const std::string& name, std::string_view text) const {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }
  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  size_t Files() const {
    return std::distance(std::filesystem::directory_iterator(directory_), {});
  }

  static Outcome Run(std::vector<std::string> words) {
    std::ostringstream out, err;
    auto* old_out = std::cout.rdbuf(out.rdbuf());
    auto* old_err = std::cerr.rdbuf(err.rdbuf());
    Outcome outcome;
    CLI::App app;
    AddRankmapVerb(app, outcome.code);
    words.insert(words.begin(), "rankmap");
    std::reverse(words.begin(), words.end());
    try {
      app.parse(words);
    } catch (const CLI::ParseError&) {
      outcome.code = 64;
    }
    std::cout.rdbuf(old_out);
    std::cerr.rdbuf(old_err);
    outcome.out = out.str();
    outcome.err = err.str();
    return outcome;
  }

  std::filesystem::path directory_;
};

// Pairs that talk are put at one switch of a tree that `topology infer` wrote.
TEST_F(RankmapVerb, PlacesRanksByATreeOfHosts) {
  Write("t.edges", "a s1 20\nb s1 20\nc s2 20\nd s2 20\ns1 s2 100\n");
  Write("hosts", "a:1\nc:1\nb:1\nd:1\n");
  Write("p", "ranks 4\n0 1 1000\n2 3 1000\n1 0 1000\n3 2 1000\n");

  const Outcome solved = Run({"solve", "--network", Path("t.edges") + "," + Path("hosts"), "--pattern",
                              Path("p"), "-o", Path("out"), "--iterations", "20000"});

  ASSERT_EQ(solved.code, 0) << solved.err;
  const std::string text = Read(Path("out"));
  std::istringstream lines(text.substr(0, text.rfind('\n')));
  std::vector<int> nodes;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') {
      nodes.push_back(std::stoi(line));
    }
  }
  ASSERT_EQ(nodes.size(), 4u) << text;
  EXPECT_EQ(nodes[0] % 2, nodes[1] % 2) << text;  // lines a and b, or c and d
  EXPECT_EQ(nodes[2] % 2, nodes[3] % 2) << text;
}

TEST_F(RankmapVerb, NamesTheHostThatATreeDoesNotKnow) {
  Write("t.edges", "a s1 20\nb s1 20\n");
  Write("hosts", "a\nz\n");
  Write("p", "ranks 2\n0 1 1000\n");

  const Outcome solved = Run({"solve", "--network", Path("t.edges") + "," + Path("hosts"), "--pattern",
                              Path("p"), "-o", Path("out")});

  EXPECT_EQ(solved.code, 64);
  EXPECT_EQ(solved.err, Path("hosts") + ":2: z is no host of " + Path("t.edges") + "\n");
  EXPECT_FALSE(std::filesystem::exists(Path("out")));
}

TEST_F(RankmapVerb, NamesWhatIsMissingOrUnknown) {
  Write("p", "ranks 2\n0 1 1000\n");

  EXPECT_THAT(Run({"bound", "--network", "torus:2"}).err, HasSubstr("--network and --pattern (or --qap) are needed"));
  EXPECT_THAT(Run({"gen", "foo"}).err, HasSubstr("pattern 'foo': expected bruck"));
  EXPECT_THAT(Run({"gen", "foo", "--grid", "4x4"}).err, HasSubstr("pattern 'foo': expected bruck"));
  EXPECT_THAT(Run({"solve", "--network", "torus:2", "--pattern", Path("p"), "-o", Path("out"), "--report", "r.pdf"}).err,
              HasSubstr("--report r.pdf: expected a name that ends with .svg or .html"));
  EXPECT_FALSE(std::filesystem::exists(Path("out")));
}

TEST_F(RankmapVerb, GeneratesSolvesAndEvaluates) {
  ASSERT_EQ(Run({"gen", "stencil", "--grid", "4x4x4", "--permute", "1", "-o", Path("p")}).code, 0);

  const Outcome solved = Run({"solve", "--network", "torus:4x4x4", "--pattern", Path("p"), "-o",
                              Path("out"), "--iterations", "200000", "--report", Path("r.html")});
  ASSERT_EQ(solved.code, 0) << solved.err;
  const Outcome eval = Run({"eval", "--network", "torus:4x4x4", "--pattern", Path("p"),
                            "--placement", Path("out"), "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;

  const auto json = nlohmann::json::parse(eval.out);
  EXPECT_EQ(json["avg_hops"], 1.0);
  EXPECT_EQ(json["hop_bytes"], 64 * 6 * 65536);
  EXPECT_EQ(json["hops_sum"], 64 * 6);
  EXPECT_EQ(json["rmatt_eval"], json["hops_sum"].get<int64_t>() * json["max_link"].get<int64_t>());
  EXPECT_EQ(json["step_sum"], json["max_link"]);
  EXPECT_THAT(Read(Path("r.html")), AllOf(HasSubstr("</svg>"), HasSubstr("waiting at routers"), HasSubstr("ends after")));
}

TEST_F(RankmapVerb, IterationsRepeatAndResumeByteForByte) {
  ASSERT_EQ(Run({"gen", "random", "--ranks", "60", "-o", Path("p")}).code, 0);
  const auto solve = [&](const std::string& out, std::vector<std::string> more) {
    std::vector<std::string> words = {"solve", "--network", "mesh:8x8",    "--pattern", Path("p"),
                                      "-o",    Path(out),   "--objective", "maxlink"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(Run(words).code, 0);
    return Read(Path(out));
  };

  const std::string once = solve("a", {"--iterations", "60000"});
  const std::string again = solve("b", {"--iterations", "60000", "--checkpoint", Path("c")});
  const std::string resumed = solve("d", {"--iterations", "60000", "--resume", Path("c")});

  EXPECT_EQ(once, again);
  EXPECT_EQ(once, resumed);
}

TEST_F(RankmapVerb, SearchesThatShareAFolderTakeTheBestOfOneAnother) {
  ASSERT_EQ(Run({"gen", "random", "--ranks", "60", "-o", Path("p")}).code, 0);
  const auto solve = [&](const std::string& out, std::vector<std::string> more) {
    std::vector<std::string> words = {"solve", "--network", "mesh:8x8", "--pattern", Path("p"), "-o", Path(out)};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  };
  ASSERT_EQ(solve("good", {"--iterations", "400000"}).code, 0);
  std::filesystem::create_directory(Path("shared"));
  std::filesystem::copy(Path("good"), Path("shared") + "/7.place");
  std::ofstream(Path("shared") + "/8.place") << "of another problem\n";

  ASSERT_EQ(solve("taken", {"--iterations", "1", "--exchange", Path("shared"), "--island", "0"}).code, 0);

  EXPECT_EQ(Read(Path("taken")), Read(Path("good")));
  EXPECT_FALSE(std::filesystem::exists(Path("shared")));  // the first one has ended
  EXPECT_EQ(solve("late", {"--iterations", "1", "--exchange", Path("shared"), "--island", "2"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(Path("late")));
  EXPECT_EQ(solve("none", {"--exchange", Path("shared"), "--island", "0"}).code, 64);
}

TEST_F(RankmapVerb, SolvesQaplibInstances) {
  Write("q.dat", "3\n\n0 1 9\n1 0 1\n9 1 0\n\n0 5 1\n5 0 5\n1 5 0\n");

  const Outcome solved =
      Run({"solve", "--qap", Path("q.dat"), "-o", Path("q.sln"), "--iterations", "2000"});

  ASSERT_EQ(solved.code, 0) << solved.err;
  EXPECT_THAT(Read(Path("q.sln")), StartsWith("3 38\n"));
  const Outcome printed = Run({"solve", "--qap", Path("q.dat"), "-o", "-", "--iterations", "2000"});
  EXPECT_THAT(printed.out, StartsWith("3 38\n"));
  EXPECT_FALSE(std::filesystem::exists("-"));
}

// A search in a process of its own, for signals.
class Background {
 public:
  explicit Background(const std::function<int()>& run) : child_(fork()) {
    if (child_ == 0) {
      _exit(run());
    }
  }
  ~Background() { End(SIGKILL); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  void End(int signal) {
    if (child_ > 0) {
      kill(child_, signal);
      waitpid(child_, nullptr, 0);
      child_ = -1;
    }
  }

 private:
  pid_t child_;
};

// Whether it comes to be so within 30 s.
bool Eventually(const std::function<bool()>& is_so) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > until) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class QapVerb : public RankmapVerb {
 protected:
  // Uniform, of 60 facilities: it takes long.
  QapVerb() {
    std::string text = "60\n";
    uint64_t random = 7;
    for (int i = 0; i < 2 * 60 * 60; ++i) {
      random = random * 6364136223846793005 + 1442695040888963407;
      text += std::to_string(random >> 57) + (i % 60 == 59 ? "\n" : " ");
    }
    Write("q.dat", text);
  }
  std::vector<std::string> Words(const std::string& out, std::vector<std::string> more) const {
    std::vector<std::string> words = {"solve", "--qap", Path("q.dat"), "-o", Path(out), "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  int64_t Value(const std::string& name) const {
    std::istringstream text(Read(Path(name)));
    int64_t size = 0, value = 0;
    text >> size >> value;
    EXPECT_EQ(size, 60) << name;
    return value;
  }
};

TEST_F(QapVerb, KilledByNineItHasWrittenASolutionAndResumesNoWorse) {
  for (const char* method : {"auto", "tabu", "iterated", "grasp"}) {
    for (const char* threads : {"1", "2"}) {
      SCOPED_TRACE(std::string(method) + " by " + threads);
      std::filesystem::remove(Path("q.sln"));
      std::filesystem::remove(Path("state"));
      Background search([&] {
        return Run(Words("q.sln", {"--method", method, "--threads", threads, "--time", "60s", "--checkpoint", Path("state")})).code;
      });
      ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(Path("q.sln")); }));
      const int64_t first = Value("q.sln");
      ASSERT_TRUE(Eventually([&] { return Value("q.sln") < first; }));
      search.End(SIGKILL);

      const Outcome resumed = Run(Words("r.sln", {"--method", method, "--threads", threads, "--iterations", "1", "--resume", Path("state")}));

      ASSERT_EQ(resumed.code, 0) << resumed.err;
      EXPECT_LE(Value("r.sln"), Value("q.sln"));
    }
  }
}

TEST_F(QapVerb, StoppedAnywhereAndResumedItEndsInTheUnbrokenRunsBytes) {
  for (const char* method : {"auto", "tabu", "grasp"}) {
    const std::vector<std::string> limits = {"--method", method, "--iterations", "60000"};
    ASSERT_EQ(Run(Words("unbroken.sln", limits)).code, 0);
    for (const int after_ms : {0, 40, 150}) {
      SCOPED_TRACE(std::string(method) + " after " + std::to_string(after_ms) + " ms");
      std::filesystem::remove(Path("state"));
      std::vector<std::string> begun = limits;
      begun.insert(begun.end(), {"--checkpoint", Path("state")});
      Background search([&] { return Run(Words("q.sln", begun)).code; });
      ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(Path("state")); }));
      std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));  // wherever that is
      search.End(SIGINT);
      std::vector<std::string> more = limits;
      more.insert(more.end(), {"--resume", Path("state")});

      ASSERT_EQ(Run(Words("q.sln", more)).code, 0);

      EXPECT_EQ(Read(Path("q.sln")), Read(Path("unbroken.sln")));
    }
  }
}

TEST_F(QapVerb, ACheckpointIsForItsThreadsAndMethodOnly) {
  ASSERT_EQ(Run(Words("q.sln", {"--iterations", "100", "--threads", "2", "--checkpoint", Path("state")})).code, 0);

  const Outcome one = Run(Words("r.sln", {"--iterations", "100", "--resume", Path("state")}));
  EXPECT_EQ(one.code, 64);
  EXPECT_THAT(one.err, StartsWith(Path("state") + ":0: checkpoint: of a run with 2 threads, not 1"));
  const Outcome tabu = Run(Words("r.sln", {"--iterations", "100", "--threads", "2", "--method", "tabu", "--resume", Path("state")}));
  EXPECT_EQ(tabu.code, 64);
  EXPECT_FALSE(std::filesystem::exists(Path("r.sln")));
}

TEST_F(RankmapVerb, WithoutTimeItWritesWhatIsThereAtOnce) {
  ASSERT_EQ(Run({"gen", "random", "--ranks", "60", "-o", Path("p")}).code, 0);

  for (const char* objective : {"qap", "hopbytes", "maxlink", "rmatt", "steps"}) {
    const Outcome solved = Run({"solve", "--network", "mesh:8x8", "--pattern", Path("p"), "-o", Path(objective), "--time", "0", "--objective", objective});
    ASSERT_EQ(solved.code, 0) << solved.err;
    EXPECT_EQ(Run({"eval", "--network", "mesh:8x8", "--pattern", Path("p"), "--placement", Path(objective)}).code, 0);
  }
}

TEST_F(RankmapVerb, ADeviceStaysOne) {
  Write("p", "ranks 2\n0 1 5\n");
  std::filesystem::create_symlink("/dev/null", Path("sink"));

  ASSERT_EQ(Run({"solve", "--network", "torus:2x2", "--pattern", Path("p"), "-o", Path("sink"), "--iterations", "100"}).code, 0);

  EXPECT_TRUE(std::filesystem::is_symlink(Path("sink")));
  EXPECT_EQ(Run({"solve", "--network", "torus:2x2", "--pattern", Path("p"), "-o", Path("."), "--iterations", "100"}).code, 64);
}

TEST_F(RankmapVerb, NumbersThatMakeNoSenseAreRefused) {
  const std::string p = Write("p", "ranks 2\n0 1 5\n");
  const std::string q = Write("q.dat", "2\n0 1 1 0\n0 2 2 0\n");
  const std::vector<std::vector<std::string>> wrong = {
      {"--iterations", "0"}, {"--iterations", "-5"}, {"--threads", "0"}, {"--threads", "-1"}, {"--threads", "99999"},
      {"--time", "-1"}, {"--time", "nan"}, {"--time", "inf"}, {"--time", "5 parsecs"}, {"--time", "1s", "--iterations", "5"},
      {"--jobs", "0"}};
  const size_t files = Files();

  for (const auto& words : wrong) {
    std::vector<std::string> placement = {"solve", "--network", "torus:2x2", "--pattern", p, "-o", Path("out")};
    placement.insert(placement.end(), words.begin(), words.end());
    EXPECT_EQ(Run(placement).code, 64) << words[0] << ' ' << words[1];
    std::vector<std::string> qap = {"solve", "--qap", q, "-o", Path("out")};
    qap.insert(qap.end(), words.begin(), words.end());
    EXPECT_EQ(Run(qap).code, 64) << words[0] << ' ' << words[1];
  }
  EXPECT_EQ(Files(), files);
}

TEST_F(RankmapVerb, MistakesAreNamedAndLeaveNoFile) {
  const std::string good = Write("good", "ranks 2\n0 1 5\n");
  const std::string cut = Write("cut", "ranks 2\n0 1 5\n1 0");
  const std::string many = Write("many", "ranks 9\n0 8 5\n");
  const std::string nan = Write("nan", "matrix 2\n0 nan\n1 0\n");
  const size_t files = Files();
  const auto error = [&](const std::string& network, const std::string& pattern) {
    const Outcome outcome = Run(
        {"solve", "--network", network, "--pattern", pattern, "-o", Path("out"), "--time", "1s"});
    EXPECT_EQ(outcome.code, 64);
    return outcome.err;
  };

  EXPECT_THAT(error("torus:2x2", cut), StartsWith(cut + ":3: "));
  EXPECT_THAT(error(nan, good), StartsWith(nan + ":2: "));
  EXPECT_THAT(error("torus:2x2", many), HasSubstr("9 ranks"));
  EXPECT_THAT(error("torus:2x2", Path("none")), HasSubstr("cannot be opened"));
  EXPECT_THAT(error("torus:2y2", good), HasSubstr("size"));
  EXPECT_EQ(Run({"solve", "--network", "torus:2x2", "--pattern", good, "-o", Path("no/such/out"),
                 "--iterations", "10"})
                .code,
            64);
  EXPECT_EQ(Run({"solve", "--network", "torus:2x2", "--pattern", good, "-o", Path("out"),
                 "--objective", "best"})
                .code,
            64);
  EXPECT_EQ(Run({"solve", "--network", "torus:2x2", "--pattern", good}).code, 64);
  EXPECT_EQ(Files(), files);
}

// What each wrong file is answered with: its name and line.
TEST_F(RankmapVerb, WrongFilesAreNamedWithTheLineAndLeaveTheOldResult) {
  const std::string good = Write("good", "ranks 2\n0 1 5\n");
  const std::string old = Write("out", "0\n1\n");
  struct Wrong {
    std::string network, pattern, place;
  };
  const std::string torus = "torus:2x2";
  const std::string tree = Write("t.edges", "a s1 20\nb s1 20\n");
  std::string crowd = "# hosts\n";
  for (int i = 0; i < 8193; ++i) {
    crowd += "a\n";
  }
  const std::string spare_rank = "E 0 2 5 bytes 1 msgs sent\n";  // nobody has rank 2's file
  Write("lost.0.prof", spare_rank);
  Write("lost.1.prof", "");
  const std::vector<Wrong> wrong = {
      {tree + "," + Write("unknown", "# two\na\n\nz:2\n"), good, "unknown:4: z is no host of "},
      {tree + "," + Write("crowd", crowd), good, "crowd:8194: expected 1 to 8192 hosts, saw 8193"},
      {tree + "," + Write("nobody", "# none\n"), good, "nobody:1: expected 1 to 8192 hosts, saw 0"},
      {Write("two.edges", "a s1 20\nb s1 20\n# far\nc s2 20\nd s2 20\n"), good,
       "two.edges:4: the lines are not one tree: no way from a to c"},
      {Write("ring.edges", "a s1 20\nb s1 20\na b 3\n"), good, "ring.edges:3: the lines are not one tree: another way from a to b"},
      {torus, Path("lost"), "lost.2.prof:0: is missing"},
      {torus, Write("cut.dat", "2\n0 1 2 0\n0 3 4 1"), "cut.dat:3: the last line does not end"},
      {Write("short", "matrix 2\n0 1\n1\n"), good, "short:3: "},
      {Write("oblong", "matrix 2\n0 1 2\n1 0 2\n"), good, "oblong:2: "},
      {Write("negative", "matrix 2\n0 -1\n1 0\n"), good, "negative:2: "},
      {Write("nan", "matrix 2\n0 nan\n1 0\n"), good, "nan:2: "},
      {Write("apart", "matrix 2\n0 inf\n1 0\n"), good, "apart:2: the network is disconnected"},
      {Write("clusters", "cluster a 2 1\ncluster b 2 1\n"), good, "clusters:2: the network is disconnected"},
      {Write("cutnetwork", "matrix 2\n0 1\n1 0"), good, "cutnetwork:3: "},
      {Write("huge", "torus 70000x70000\n"), good, "huge:1: "},
      {torus, Write("cut", "ranks 2\n0 1 5\n1 0 1"), "cut:3: "},
      {torus, Write("many", "# nine\nranks 9\n0 8 5\n"), "many:2: for the network torus:2x2: the pattern has 9 ranks"},
      {torus, Write("minus", "ranks 2\n0 1 -5\n"), "minus:2: "},
      {torus, Write("nanbytes", "ranks 2\n0 1 nan\n"), "nanbytes:2: "},
      {torus, Write("sums", "ranks 2\n0 1 9007199254740992\n1 0 9007199254740992\n"), "sums:3: "},
      {torus, Write("far.graph", "2 1 001\n2 5\n1 4\n"), "far.graph:1: "},
      {torus, Write("cut.grf", "0\n2 2\n0 010\n1 5 1\n1"), "cut.grf:5: "},
  };
  const size_t files = Files();

  for (const Wrong& one : wrong) {
    const Outcome outcome = Run({"solve", "--network", one.network, "--pattern", one.pattern, "-o", old, "--time", "1s"});
    EXPECT_EQ(outcome.code, 64) << one.place;
    EXPECT_THAT(outcome.err, StartsWith(Path(one.place)));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    const Outcome bound = Run({"bound", "--network", one.network, "--pattern", one.pattern});
    EXPECT_EQ(bound.code, 64) << one.place;
  }
  EXPECT_EQ(Read(old), "0\n1\n");
  EXPECT_EQ(Files(), files);
}

TEST_F(RankmapVerb, WrongPlacementsAndInstancesAreNamedWithTheLine) {
  const std::string good = Write("good", "ranks 2\n0 1 5\n");
  const std::pair<const char*, const char*> placements[] = {{"# two\n0\n5\n", "p:3: rank 1 on node 5"}, {"0\n\n0\n", "p:3: rank 1"},
                                                            {"0\n", "p:1: 1 lines for 2"}, {"0\n1\n2\n", "p:3: 3 lines for 2"},
                                                            {"0\n1", "p:2: "}, {"0\n-1\n", "p:2: "}};
  for (const auto& [text, place] : placements) {
    const std::string path = Write("p", text);
    const Outcome outcome = Run({"eval", "--network", "torus:2x2", "--pattern", good, "--placement", path});
    EXPECT_EQ(outcome.code, 64) << place;
    EXPECT_THAT(outcome.err, StartsWith(Path(place)));
    EXPECT_EQ(Run({"solve", "--network", "torus:2x2", "--pattern", good, "-o", Path("out"), "--start", path}).code, 64);
  }
  for (const char* text : {"2\n0 1 2 0\n0 3 4\n", "2\n0 1 -2 0\n0 3 4 0\n", "2\n0 nan 2 0\n0 3 4 0\n", "2\n0 1 2 0\n0 3 4 0 5 6\n", "2\n0 1 2 0\n0 3 4 12"}) {
    const Outcome outcome = Run({"solve", "--qap", Write("q.dat", text), "-o", Path("out"), "--time", "1s"});
    EXPECT_EQ(outcome.code, 64) << text;
    EXPECT_THAT(outcome.err, testing::ContainsRegex("q[.]dat:[0-9]+: "));
  }
  const std::string state = Write("state", "half a checkp");
  const Outcome resumed = Run({"solve", "--network", "torus:2x2", "--pattern", good, "-o", Path("out"), "--resume", state});
  EXPECT_EQ(resumed.code, 64);
  EXPECT_THAT(resumed.err, StartsWith(state + ":0: "));
  EXPECT_FALSE(std::filesystem::exists(Path("out")));
}

TEST_F(RankmapVerb, ConvertsForLaunchers) {
  const std::string placement = Write("pl", "1\n0\n1\n");
  const std::string hosts = Write("hosts", "alpha\nbeta\n");

  EXPECT_EQ(Run({"convert", "--placement", placement, "--hosts", hosts, "--to", "machinefile"}).out,
            "beta\nalpha\nbeta\n");
  EXPECT_EQ(Run({"convert", "--placement", placement, "--to", "cray"}).out, "1\n0,2\n");
  EXPECT_EQ(Run({"convert", "--placement", placement, "--to", "csv"}).code, 64);
}

TEST_F(RankmapVerb, WhatCannotBeConvertedIsNamedWithTheLine) {
  const std::string placement = Write("pl", "# ranks\n1\n0\n1\n");
  const auto error = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"convert", "--placement", placement, "--to", "machinefile", "-o", Path("out")};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.code, 64);
    EXPECT_FALSE(std::filesystem::exists(Path("out")));
    return outcome.err;
  };

  EXPECT_THAT(error({"--hosts", Write("few", "# one\n\nalpha\n")}), StartsWith(Path("few") + ":3: 1 hosts for 2 nodes"));
  EXPECT_THAT(error({"--network", "torus:2x2"}), StartsWith(placement + ":4: rank 2 on node 1, which is taken: capacity 1"));
  EXPECT_THAT(error({"--network", "tree:1"}), StartsWith(placement + ":2: rank 0 on node 1: the network has 1"));
}

TEST_F(RankmapVerb, BoundsArePrinted) {
  const std::string pattern = Write("p", "ranks 4\n0 1 8\n");

  const Outcome bound = Run({"bound", "--network", "torus:2x2", "--pattern", pattern, "--json"});

  ASSERT_EQ(bound.code, 0) << bound.err;
  EXPECT_EQ(nlohmann::json::parse(bound.out)["hop_bytes"], 8);
}

}  // namespace
}  // namespace sekisho::client
