// SPDX-License-Identifier: Apache-2.0
// What each attribute of a job's description changes in what its tasks are started with.
#include "qserver/tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "qserver/demand.h"

namespace sekisho::qserver {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;

using Start = proto::ServerMessage::Start;

std::vector<Start> Starts(const std::string& rsl,
                          const std::vector<std::pair<std::string, int>>& places) {
  proto::JobStatus status;
  status.set_job_id("abcdefghijklm");
  status.set_account("alice");
  status.set_resource("R");
  for (const auto& [node, processes] : places) {
    proto::Placement& place = *status.add_placement();
    place.set_node(node);
    place.set_processes(processes);
  }
  TaskSettings settings;
  settings.site = "siteA";
  settings.mpi = {"/usr/bin/mpiexec.mpich", "/opt/libmpich.so", "/usr/bin/mpiexec.openmpi",
                  "/opt/sekisho-rsh", false};
  const auto job = rsl::ParseAndDescribe(rsl, {});
  EXPECT_TRUE(job.ok()) << job.error().ToString();
  return MakeStarts(status, *job, false, "https://g:2119/j/", 60, settings);
}
Start One(const std::string& attributes) {
  return Starts("&(executable=/bin/x)" + attributes, {{"n1", 1}})[0];
}
std::map<std::string, std::string> Environment(const Start& start) {
  return {start.environment().begin(), start.environment().end()};
}

TEST(Tasks, MultipleStartsCountProcessesNodeByNode) {
  const std::vector<Start> starts = Starts("&(executable=/bin/x)(count=3)", {{"n1", 2}, {"n2", 1}});

  ASSERT_EQ(starts.size(), 3u);
  EXPECT_EQ(starts[2].task().task(), 2);
  EXPECT_THAT(Environment(starts[2]), Contains(Pair("SEKISHO_TASK", "2")));
  EXPECT_THAT(Environment(starts[2]), Contains(Pair("SEKISHO_TASKS", "3")));
  EXPECT_THAT(Environment(starts[2]), Contains(Pair("SEKISHO_NODES", "n1,n2")));
  EXPECT_THAT(TaskNodes(*rsl::ParseAndDescribe("&(executable=/bin/x)(count=3)", {}),
                        [] {
                          google::protobuf::RepeatedPtrField<proto::Placement> places;
                          places.Add()->set_node("n1");
                          places[0].set_processes(2);
                          places.Add()->set_node("n2");
                          places[1].set_processes(1);
                          return places;
                        }()),
              ElementsAre("n1", "n1", "n2"));
}

TEST(Tasks, SingleStartsOneProcessWhateverTheCount) {
  EXPECT_EQ(Starts("&(executable=/bin/x)(count=3)(job_type=single)", {{"n1", 2}, {"n2", 1}}).size(),
            1u);
}

TEST(Tasks, MpiStartsTheSitesLauncherWithTheMachineFile) {
  const std::vector<Start> starts =
      Starts("&(executable=a.out)(arguments=1 2)(count=3)(job_type=mpi)", {{"n1", 2}, {"n2", 1}});

  ASSERT_EQ(starts.size(), 1u);
  EXPECT_THAT(starts[0].argument(),
              ElementsAre("/usr/bin/mpiexec.mpich", "-launcher", "rsh", "-launcher-exec",
                          "/opt/sekisho-rsh", "-f", "@FILES@/machines", "-genv", "LD_PRELOAD",
                          "/opt/libmpich.so", "-n", "3", "./a.out", "1", "2"));
  EXPECT_EQ(starts[0].file().at("machines"), "n1:2\nn2:1\n");
  EXPECT_THAT(starts[0].needed_program(), ElementsAre("/opt/sekisho-rsh"));
}

TEST(Tasks, MpiTypeChoosesTheLauncher) {
  const std::vector<Start> starts =
      Starts("&(executable=/bin/x)(count=2)(job_type=mpi)(mpi_type=openmpi)", {{"n1", 2}});

  EXPECT_EQ(starts[0].argument(0), "/usr/bin/mpiexec.openmpi");
  EXPECT_THAT(starts[0].argument(), ::testing::Contains("orte_leave_session_attached"));
  EXPECT_EQ(starts[0].file().at("machines"), "n1 slots=2\n");
}

// The words after the count: what the launcher takes for the program.
std::vector<std::string> Launched(const std::string& rest, const std::string& mpi = "mpich") {
  const Start start =
      Starts("&(count=2)(job_type=mpi)(mpi_type=" + mpi + ")" + rest, {{"n1", 2}}).at(0);
  const auto count = std::find(start.argument().begin(), start.argument().end(), "2");
  return {std::next(count), start.argument().end()};
}

TEST(Tasks, NoWordOfAnMpiJobIsAnOptionOfTheLauncher) {
  EXPECT_THAT(Launched("(executable=\"-launcher-exec\")(arguments=-n 1)"), ElementsAre("./-launcher-exec", "-n", "1"));
  EXPECT_THAT(Launched("(executable=\"-f/../x\")"), ElementsAre("./-f/../x"));
  EXPECT_THAT(Launched("(executable=\"/usr/-x\")", "openmpi"), ElementsAre("/usr/-x"));
}

TEST(Tasks, NoProgramsNameIsAnOptionOfItsInterpreter) {
  EXPECT_EQ(Starts("&(executable=\"-c/x\")", {{"n1", 1}}).at(0).argument(0), "./-c/x");
  EXPECT_EQ(Starts("&(executable=x)", {{"n1", 1}}).at(0).argument(0), "x");
}

TEST(Tasks, NoWordOfAnMpiJobBeginsAnotherProgram) {
  EXPECT_THAT(Launched("(executable=x)(arguments=a : -n 1 /bin/id \" : \" : \"$0\")"),
              ElementsAre("/bin/sh", "-c", R"(exec "$0" "${1}" : "${2}" "${3}" "${4}" "${5}" : "${6}")", "./x", "a",
                          "-n", "1", "/bin/id", " : ", "$0"));
  EXPECT_THAT(Launched("(executable=\":\")"), ElementsAre("./:"));
}

TEST(Tasks, EveryAttributeOfAProcessReachesIt) {
  EXPECT_THAT(One("(arguments=a \"b c\")").argument(), ElementsAre("/bin/x", "a", "b c"));
  EXPECT_EQ(One("(directory=/work)").directory(), "/work");
  EXPECT_EQ(One("(stdin=/in)").stdin_path(), "/in");
  EXPECT_EQ(One("(stdout=/out)").stdout_path(), "/out");
  EXPECT_EQ(One("(stderr=/err)").stderr_path(), "/err");
  EXPECT_EQ(One("(umask=077)").umask(), 077u);
  EXPECT_EQ(One("").umask(), 022u);
  EXPECT_EQ(One("(max_cpu_time=2)").cpu_limit_s(), 120);
  EXPECT_EQ(One("(max_memory=64)").memory_limit_mb(), 64);
  EXPECT_EQ(One("").wall_limit_s(), 60);
  EXPECT_THAT(Environment(One("(environment=(A b))")), Contains(Pair("A", "b")));
  EXPECT_THAT(Environment(One("(library_path=/l)")), Contains(Pair("LD_LIBRARY_PATH", "/l")));
  EXPECT_THAT(Environment(One("(project=p)")), Contains(Pair("SEKISHO_PROJECT", "p")));
}

TEST(Tasks, AJobCannotForgeWhatItIs) {
  EXPECT_THAT(Environment(One("(environment=(SEKISHO_JOB_ID x))")),
              Contains(Pair("SEKISHO_JOB_ID", "abcdefghijklm")));
}

TEST(Tasks, OnlyTheFirstTaskEmptiesACommonFile) {
  const std::vector<Start> starts = Starts("&(executable=/bin/x)(count=2)(stdout=o)", {{"n1", 2}});

  EXPECT_FALSE(starts[0].append_output());
  EXPECT_TRUE(starts[1].append_output());
}

TEST(Demand, SaysWhatTheAllocatorMustKnow) {
  const auto demand = [](const std::string& rsl, int64_t max_s = 0) {
    return MakeDemand("j", *rsl::ParseAndDescribe("&(executable=/bin/x)" + rsl, {}), max_s);
  };

  EXPECT_EQ(demand("(count=4)").processes(), 4);
  EXPECT_EQ(demand("(count=4)(job_type=single)").processes(), 4);
  EXPECT_EQ(demand("(count=4)(host_count=2)").host_count(), 2);
  EXPECT_EQ(demand("(queue=long)").queue(), "long");
  EXPECT_EQ(demand("(max_time=2)").wall_time_s(), 120);
  EXPECT_EQ(demand("(max_wall_time=3)").wall_time_s(), 180);
  EXPECT_EQ(demand("", 99).wall_time_s(), 99);
  EXPECT_TRUE(demand("(exclusive=yes)").exclusive());
  EXPECT_EQ(demand("(memory>=512)").condition(0).op(), ">=");
  EXPECT_EQ(demand("(min_memory=512)").condition(0).value(0), "512");
}

TEST(JobContact, NamesTheGatekeepersHost) {
  EXPECT_EQ(JobContact("/C=JP/CN=host/gate.example.org", "j"), "https://gate.example.org:2119/j/");
  EXPECT_EQ(JobContact("/C=JP/CN=gate.example.org", "j"), "https://gate.example.org:2119/j/");
}

}  // namespace
}  // namespace sekisho::qserver
