// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rsl/gram_errors.h"
#include "rsl/job_description.h"

namespace sekisho::rsl {
namespace {

const Variables kAtSite = {{"HOME", "/home/alice"}, {"LOGNAME", "alice"}};

// The job of a text that must be good.
JobDescription Job(std::string_view text) {
  Result<JobDescription> job = ParseAndDescribe(text, kAtSite);
  if (!job.ok()) {
    ADD_FAILURE() << text << ": " << job.error().ToString();
    return {};
  }
  return *std::move(job);
}

// A job with one more relation.
JobDescription With(std::string_view relation) {
  return Job("&(executable=x)" + std::string(relation));
}

Error Refused(std::string_view text) {
  Result<JobDescription> job = ParseAndDescribe(text, kAtSite);
  if (job.ok()) {
    ADD_FAILURE() << text << " was accepted";
    return {};
  }
  return job.error();
}

Error RefusedWith(std::string_view relation) {
  return Refused("&(executable=x)" + std::string(relation));
}

TEST(Describe, FillsInGramsDefaults) {
  const JobDescription job = Job("&(executable=/bin/date)");

  EXPECT_EQ(job.executable, "/bin/date");
  EXPECT_EQ(job.count, 1);
  EXPECT_EQ(job.job_type, JobType::kMultiple);
  EXPECT_EQ(job.expiration_seconds, 14400);
  EXPECT_FALSE(job.is_dry_run);
  EXPECT_FALSE(job.host_count);
  EXPECT_TRUE(job.standard_output.empty());
  EXPECT_EQ(job.directory, "");
  EXPECT_FALSE(job.part);
}

TEST(Describe, ReadsTheAttributesOfAPlainJob) {
  const JobDescription job = Job(
      "&(executable=$(HOME)/bin/sim)(arguments=-n 4 \"two words\" \"\")(directory=$(HOME)/run)"
      "(environment=(OMP_NUM_THREADS 2)(WHO $(LOGNAME)))(stdin=in.txt)(stdout=out.txt)"
      "(stderr=/dev/null)(count=4)(host_count=2)(job_type=MPI)(queue=long)(project=p1)"
      "(max_wall_time=90)(max_time=60)(max_cpu_time=5)(min_memory=10)(max_memory=20)(dry_run=yes)"
      "(username=alice)(umask=027)");

  EXPECT_EQ(job.executable, "/home/alice/bin/sim");
  EXPECT_THAT(job.arguments, testing::ElementsAre("-n", "4", "two words", ""));
  EXPECT_EQ(job.directory, "/home/alice/run");
  EXPECT_THAT(job.environment, testing::ElementsAre(EnvironmentVariable{"OMP_NUM_THREADS", "2"},
                                                    EnvironmentVariable{"WHO", "alice"}));
  EXPECT_EQ(job.standard_input, "in.txt");
  EXPECT_THAT(job.standard_output, testing::ElementsAre(Destination{"out.txt", ""}));
  EXPECT_THAT(job.standard_error, testing::ElementsAre(Destination{"/dev/null", ""}));
  EXPECT_EQ(job.count, 4);
  EXPECT_EQ(job.host_count, 2);
  EXPECT_EQ(job.job_type, JobType::kMpi);
  EXPECT_EQ(job.queue, "long");
  EXPECT_EQ(job.project, "p1");
  EXPECT_EQ(job.WallTimeMinutes(), 60);
  EXPECT_EQ(job.max_cpu_time_minutes, 5);
  EXPECT_EQ(job.min_memory_mb, 10);
  EXPECT_EQ(job.max_memory_mb, 20);
  EXPECT_TRUE(job.is_dry_run);
  EXPECT_EQ(job.username, "alice");
  EXPECT_EQ(job.umask, 027u);
  EXPECT_TRUE(Unsupported(job).empty());
}

TEST(Describe, CountsOneProcessForSingleWhateverTheCount) {
  EXPECT_EQ(With("(count=4)(job_type=single)").Processes(), 1);
  EXPECT_EQ(With("(count=4)").Processes(), 4);
}

TEST(Describe, AnswersAWrongShapeAndABadValueWithTheirOwnNumbers) {
  const struct {
    std::string_view relation;
    int code;
  } cases[] = {
      {"(count=1 2)", gram::RSL_COUNT},
      {"(count>1)", gram::RSL_COUNT},
      {"(count=many)", gram::INVALID_COUNT},
      {"(count=0)", gram::INVALID_COUNT},
      {"(count=4x)", gram::INVALID_COUNT},
      {"(count=99999999999999999999)", gram::INVALID_COUNT},
      {"(host_count=(1))", gram::RSL_HOST_COUNT},
      {"(host_count=0)", gram::INVALID_HOST_COUNT},
      {"(host_count=2)(count=1)", gram::INVALID_HOST_COUNT},
      {"(job_type=a b)", gram::RSL_JOBTYPE},
      {"(job_type=pvm)", gram::INVALID_JOBTYPE},
      {"(gram_my_job=(a))", gram::RSL_MYJOB},
      {"(gram_my_job=mine)", gram::INVALID_GRAM_MYJOB},
      {"(max_time=1 2)", gram::RSL_MAXTIME},
      {"(max_time=soon)", gram::INVALID_MAXTIME},
      {"(max_wall_time=(1))", gram::RSL_MAX_WALL_TIME},
      {"(max_wall_time=-1)", gram::INVALID_MAX_WALL_TIME},
      {"(max_cpu_time=(1))", gram::RSL_MAX_CPU_TIME},
      {"(max_cpu_time=-1)", gram::INVALID_MAX_CPU_TIME},
      {"(min_memory=(1))", gram::RSL_MIN_MEMORY},
      {"(min_memory=-1)", gram::INVALID_MIN_MEMORY},
      {"(min_memory=3)(max_memory=2)", gram::INVALID_MIN_MEMORY},
      {"(max_memory=(1))", gram::RSL_MAX_MEMORY},
      {"(max_memory=-1)", gram::INVALID_MAX_MEMORY},
      {"(arguments=(a))", gram::RSL_ARGUMENTS},
      {"(directory=a b)", gram::RSL_DIRECTORY},
      {"(directory=\"\")", gram::BAD_DIRECTORY},
      {"(environment=A b)", gram::RSL_ENVIRONMENT},
      {"(environment=(A b c))", gram::RSL_ENVIRONMENT},
      {"(environment=(\"A=B\" c))", gram::BAD_RSL_ENVIRONMENT},
      {"(environment=(\"\" c))", gram::BAD_RSL_ENVIRONMENT},
      {"(stdin=a b)", gram::RSL_STDIN},
      {"(stdout=a b c)", gram::RSL_STDOUT},
      {"(stderr=(a)(b (c)))", gram::RSL_STDERR},
      {"(queue=a b)", gram::RSL_QUEUE},
      {"(queue=\"\")", gram::INVALID_QUEUE},
      {"(project=a b)", gram::RSL_PROJECT},
      {"(dry_run=(yes))", gram::RSL_DRYRUN},
      {"(dry_run=maybe)", gram::RSL_DRYRUN},
      {"(save_state=(yes))", gram::RSL_SAVE_STATE},
      {"(save_state=maybe)", gram::INVALID_SAVE_STATE},
      {"(two_phase=(1))", gram::RSL_TWO_PHASE_COMMIT},
      {"(two_phase=-1)", gram::INVALID_TWO_PHASE_COMMIT},
      {"(remote_io_url=a b)", gram::RSL_REMOTE_IO_URL},
      {"(scratch_dir=a b)", gram::RSL_SCRATCH},
      {"(file_stage_in=a b)", gram::RSL_FILE_STAGE_IN},
      {"(file_stage_in_shared=(a))", gram::RSL_FILE_STAGE_IN_SHARED},
      {"(file_stage_out=(a b c))", gram::RSL_FILE_STAGE_OUT},
      {"(file_clean_up=(a))", gram::RSL_FILE_CLEANUP},
      {"(gass_cache=a b)", gram::RSL_GASS_CACHE},
      {"(proxy_timeout=(1))", gram::RSL_PROXY_TIMEOUT},
      {"(proxy_timeout=0)", gram::INVALID_PROXY_TIMEOUT},
      {"(username=a b)", gram::RSL_USER_NAME},
      {"(name=a b)", gram::RSL_SCHEDULER_SPECIFIC},
      {"(email_on_abort=maybe)", gram::INVALID_SCHEDULER_SPECIFIC},
      {"(memory=(1))", gram::RSL_SCHEDULER_SPECIFIC},
      {"(memory>=lots)", gram::INVALID_SCHEDULER_SPECIFIC},
      {"(arch>x86_64)", gram::RSL_SCHEDULER_SPECIFIC},
      {"(mpi_type=pvm)", gram::INVALID_SCHEDULER_SPECIFIC},
      {"(umask=8)", gram::INVALID_SCHEDULER_SPECIFIC},
      {"(umask=1000)", gram::INVALID_SCHEDULER_SPECIFIC},
  };
  for (const auto& test : cases) {
    const Error error = RefusedWith(test.relation);
    EXPECT_EQ(error.gram_code, test.code) << test.relation << ": " << error.ToString();
    EXPECT_FALSE(error.attribute.empty()) << test.relation;
  }
}

TEST(Describe, NamesPlaceAttributeAndNumberInOneLine) {
  EXPECT_EQ(
      Refused("&(executable=x)\n (count=many)").ToString(),
      "2:9: count: expected a whole number from 1 to 2147483647, saw \"many\" (GRAM error 14, "
      "INVALID_COUNT)");
}

TEST(Describe, RefusesAnUnknownAttributeAndSuggestsTheNearest) {
  const Error error = Refused("&(exectuable=x)");

  EXPECT_EQ(
      error.ToString(),
      "1:3: expected a known attribute, saw \"exectuable\"; did you mean \"executable\"? (GRAM "
      "error 1, PARAMETER_NOT_SUPPORTED)");
  EXPECT_THAT(RefusedWith("(Max_Wal_Time=1)").remedy, testing::HasSubstr("\"max_wall_time\""));
  EXPECT_EQ(RefusedWith("(zzzzzz=1)").remedy, "");
}

TEST(Describe, DemandsAnExecutable) {
  EXPECT_EQ(Refused("&(count=2)").gram_code, gram::UNDEFINED_EXE);
}

TEST(Describe, RefusesTheSameAttributeTwiceInAnySpelling) {
  const Error error = RefusedWith("(max_time=1)(MaxTime=2)");

  EXPECT_EQ(error.gram_code, gram::RSL_MAXTIME);
  EXPECT_EQ(error.message, "expected it once, saw it again after 1:17");
  EXPECT_EQ(RefusedWith("(memory>=1)(memory>=2)").gram_code, gram::RSL_SCHEDULER_SPECIFIC);
}

TEST(Describe, ReadsEveryFormOfADestination) {
  EXPECT_THAT(With("(stdout=a tag)").standard_output,
              testing::ElementsAre(Destination{"a", "tag"}));
  EXPECT_THAT(With("(stdout=(a))").standard_output, testing::ElementsAre(Destination{"a", ""}));
  EXPECT_THAT(With("(stdout=(a t)(b))").standard_output,
              testing::ElementsAre(Destination{"a", "t"}, Destination{"b", ""}));
}

TEST(Describe, AppendsTheLibraryPathToTheEnvironmentInEitherOrder) {
  const EnvironmentVariable both{"LD_LIBRARY_PATH", "/a:/b:/c"};

  EXPECT_THAT(With("(library_path=/b /c)(environment=(LD_LIBRARY_PATH /a))").environment,
              testing::ElementsAre(both));
  EXPECT_THAT(With("(environment=(LD_LIBRARY_PATH /a))(library_path=/b /c)").environment,
              testing::ElementsAre(both));
  EXPECT_THAT(With("(library_path=/b)").environment,
              testing::ElementsAre(EnvironmentVariable{"LD_LIBRARY_PATH", "/b"}));
}

TEST(Describe, LetsTheLaterValueOfAVariableWin) {
  EXPECT_THAT(With("(environment=(A 1)(B 2)(A 3))").environment,
              testing::ElementsAre(EnvironmentVariable{"A", "3"}, EnvironmentVariable{"B", "2"}));
}

TEST(Describe, ReadsConditionsOnTheNodesWithOperators) {
  const JobDescription job = With(
      "(resource=alpha beta)(ARCH!=sparc)(memory>=4096)(memory<9000)(clock>500)(exclusive=yes)");

  ASSERT_EQ(job.conditions.size(), 5u);
  EXPECT_EQ(job.conditions[0].attribute, "resource");
  EXPECT_THAT(job.conditions[0].values, testing::ElementsAre("alpha", "beta"));
  EXPECT_EQ(job.conditions[1].attribute, "arch");
  EXPECT_EQ(job.conditions[1].op, Operator::kNotEqual);
  EXPECT_EQ(job.conditions[2].op, Operator::kGreaterEqual);
  EXPECT_EQ(job.conditions[3].op, Operator::kLess);
  EXPECT_THAT(job.conditions[4].values, testing::ElementsAre("500"));
  EXPECT_TRUE(job.is_exclusive);
}

TEST(Describe, TakesAnAttributeOnlyWhereItIsValid) {
  EXPECT_EQ(RefusedWith("(stdout_position=0)").gram_code, gram::INVALID_SUBMIT_ATTRIBUTE);
  EXPECT_EQ(Refused("&(restart=https://h:1/2/3/)(count=2)").gram_code,
            gram::INVALID_RESTART_ATTRIBUTE);
  EXPECT_EQ(ParseAndDescribe("&(count=2)", {}, Use::kStdioUpdate).error().gram_code,
            gram::INVALID_STDIO_UPDATE_ATTRIBUTE);
  EXPECT_EQ(RefusedWith("(label=a)").gram_code, gram::INVALID_SUBMIT_ATTRIBUTE);

  EXPECT_EQ(ParseAndDescribe("&(stdout=a)(stderr_position=5000000000)", {}, Use::kStdioUpdate)->standard_error_position,
            5'000'000'000);
  EXPECT_EQ(ParseAndDescribe("&(stdout_position=-1)", {}, Use::kStdioUpdate).error().gram_code,
            gram::INVALID_STDOUT_POSITION);
  EXPECT_EQ(ParseAndDescribe("&(stderr_position=(1 2))", {}, Use::kStdioUpdate).error().gram_code,
            gram::RSL_STDERR_POSITION);
  EXPECT_EQ(ParseAndDescribe("&(rsl_substitution=(A b))", {}, Use::kStdioUpdate).error().gram_code,
            gram::UNDEFINED_ATTRIBUTE);
  const JobDescription restart = Job("&(restart=https://h:1/2/3/)(stderr=b)(stderr_position=0)");
  EXPECT_EQ(restart.use, Use::kRestart);
  EXPECT_EQ(restart.restart_contact, "https://h:1/2/3/");
  EXPECT_EQ(NotASubmission(restart).gram_code, gram::RESTART_FAILED);
  EXPECT_THAT(NotASubmission(restart).ToString(), testing::StartsWith("1:3: restart: expected a description of a new job"));
}

TEST(Describe, FlattensNestedConjunctionsAndRefusesAlternatives) {
  EXPECT_EQ(Job("&(&(executable=x)(count=2))(queue=q)").count, 2);
  EXPECT_EQ(Job("&(executable=x)(|(count=2))").count, 2);

  const Error error = Refused("&(executable=x)(|(count=2)(count=4))");
  EXPECT_EQ(error.gram_code, gram::BAD_RSL);
  EXPECT_THAT(error.ToString(), testing::StartsWith("1:17: expected one job, saw 2 alternatives"));
  EXPECT_EQ(Refused("&(+(&(executable=x)))").gram_code, gram::BAD_RSL);
}

TEST(Unsupported, NamesEveryAttributeThatIsStillToCome) {
  const std::vector<Error> errors =
      Unsupported(With("(expiration=60)(count=2)(name=n)(save_state=yes)"));

  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].gram_code, gram::PARAMETER_NOT_SUPPORTED);
  EXPECT_EQ(errors[0].ToString(),
            "1:17: expiration is not supported: the site says how long it keeps ended jobs; leave it out "
            "(GRAM error 1, PARAMETER_NOT_SUPPORTED)");
  EXPECT_EQ(errors[1].attribute, "name");
}

TEST(Unsupported, RefusesSourcesThatNobodyFetches) {
  EXPECT_EQ(Unsupported(Job("&(executable=client:///h/x)(stdin=client://y)")).size(), 0u);
  EXPECT_EQ(Unsupported(With("(file_stage_in=(a b)(client://c d)(gsiftp://h/f f))")).size(), 1u);
  EXPECT_EQ(Unsupported(With("(file_stage_in_shared=(a b)(gsiftp://h/f f))")).size(), 1u);
  EXPECT_EQ(Unsupported(Job("&(executable=https://h/x)(stdin=file:///h/y)")).size(), 0u);
  EXPECT_EQ(Unsupported(With("(stdin=gsiftp://h/y)")).size(), 1u);
  EXPECT_EQ(Unsupported(With("(job_type=condor)")).at(0).gram_code, gram::JOBTYPE_NOT_SUPPORTED);
}

TEST(Unsupported, RefusesDestinationsThatNobodyReaches) {
  EXPECT_EQ(Unsupported(With("(stdout=https://h/x)(stderr=(a)(client:///b t)(file:///c))")).size(), 0u);
  EXPECT_EQ(Unsupported(With("(file_stage_out=(a https://h/x)(b c))")).size(), 0u);
  EXPECT_EQ(Unsupported(With("(file_stage_out=(a gsiftp://h/x))")).size(), 1u);
  EXPECT_EQ(Unsupported(With("(stderr=(a)(gsiftp://h/x))")).at(0).ToString(),
            "1:17: stderr to \"gsiftp://h/x\" is not supported: expected client://PATH, file://PATH or "
            "http[s]://HOST/PATH; name a file of the client, of the site or of a web server (GRAM error 1, "
            "PARAMETER_NOT_SUPPORTED)");
}

// A value of some shape suits every attribute of the table, so none lacks its setter.
TEST(Describe, KnowsWhereEveryAttributeOfTheTableGoes) {
  for (const Attribute& attribute : Attributes()) {
    std::string_view around = "&(executable=x)({}={})";
    if (attribute.name == "executable" || attribute.name == "restart") {
      around = "&({}={})";
    } else if (attribute.name == "resourceManagerContact") {
      around = "+(&(executable=x)({}={}))";
    } else if (attribute.group == Attribute::Group::kPart) {
      around = "+(&(executable=x)(resourceManagerContact=s)({}={}))";
    } else if ((attribute.valid & kSubmit) == 0) {
      around = "&(restart=c)({}={})";
    }

    bool is_accepted = false;
    for (std::string_view value : {"1", "0", "yes", "(a b)", "text", "mpi", "mpich", "collective",
                                   "no-barrier", "independent"}) {
      is_accepted |=
          ParseAndDescribeParts(fmt::format(fmt::runtime(around), attribute.name, value), {}).ok();
    }
    EXPECT_TRUE(is_accepted) << attribute.name;
  }
}

}  // namespace
}  // namespace sekisho::rsl
