// SPDX-License-Identifier: Apache-2.0
// Do we accept what Debian's stock `globusrun -p` accepts?  It wants a credential before it parses,
// so the test makes a CA, a certificate and a proxy of its own and throws them away.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rsl/parser.h"

extern char** environ;

namespace sekisho::rsl {
namespace {

// The exit code, output thrown away; -1 if it does not start.
int RunCommand(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int fd : {0, 1, 2}) {
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failed != 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
    return -1;
  }
  return WEXITSTATUS(status);
}

constexpr const char* kMakeCredential = R"sh(
set -e
cd "$0"
mkdir certs
openssl req -x509 -newkey rsa:2048 -nodes -keyout cakey.pem -out ca.pem -days 2 \
  -subj '/C=JP/O=Throwaway/CN=CA'
openssl req -newkey rsa:2048 -nodes -keyout userkey.pem -out req.pem -subj '/C=JP/O=Throwaway/CN=Tester'
openssl x509 -req -in req.pem -CA ca.pem -CAkey cakey.pem -CAcreateserial -days 2 -out usercert.pem
chmod 600 userkey.pem
hash=$(openssl x509 -hash -noout -in ca.pem)
cp ca.pem "certs/$hash.0"
cat > "certs/$hash.signing_policy" <<END
access_id_CA X509 '/C=JP/O=Throwaway/CN=CA'
pos_rights globus CA:sign
cond_subjects globus '"/C=JP/O=Throwaway/*"'
END
grid-proxy-init -cert usercert.pem -key userkey.pem -out proxy.pem -valid 1:00 -q
)sh";

class Globusrun : public testing::Test {
 protected:
  void SetUp() override {
    if (RunCommand({"sh", "-c",
                    "command -v globusrun && command -v grid-proxy-init && command -v openssl"}) !=
        0) {
      GTEST_SKIP() << "needs globus-gram-client-tools, globus-proxy-utils and openssl";
    }
    std::string pattern =
        (std::filesystem::temp_directory_path() / "rsl-globusrun-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    setenv("X509_CERT_DIR", (directory_ / "certs").c_str(), 1);
    setenv("X509_USER_PROXY", (directory_ / "proxy.pem").c_str(), 1);
    ASSERT_EQ(RunCommand({"sh", "-c", kMakeCredential, directory_.string()}), 0);
  }
  void TearDown() override {
    if (!directory_.empty()) {
      std::filesystem::remove_all(directory_);
    }
  }

  static bool TheyAccept(const std::string& text) {
    const int code = RunCommand({"globusrun", "-p", text});
    EXPECT_THAT(code, testing::AnyOf(0, 255, 48)) << text;  // 48 where a bare relation fails later
    return code == 0;
  }

 private:
  std::filesystem::path directory_;
};

// Why they accept what we refuse, if it is a known fault of theirs; empty if it is not.
std::string KnownFault(const std::string& text, const Error& error) {
  // Their scanner stops at what it cannot read; if a whole request came before, they take that
  // alone.
  for (size_t end = 1; end < text.size(); ++end) {
    if (Parse(text.substr(0, end)).ok()) {
      return "drops the rest of the text";
    }
  }
  if (error.message.starts_with("expected an attribute's name, saw")) {
    return "takes an attribute without a name";
  }
  if (error.message.starts_with("expected \")\" after the variable")) {
    return "takes a variable of three values, which no evaluation can make sense of";
  }
  if (error.message.starts_with("expected a default or \")\"")) {
    return "takes a list for a variable's default, which no evaluation can make sense of";
  }
  return "";
}

TEST_F(Globusrun, AgreesOnACorpus) {
  const std::vector<std::string> corpus = {
      "&(executable=/bin/date)",
      "executable=/bin/date",
      "(executable=/bin/date)",
      "&(a=)",
      "&(a=())",
      "&(a=\"\")",
      "&&(a=1)",
      "&(a b=1)",
      "&(|(a=1)(b=2))(c=3)",
      "+(a=1)(b=2)",
      "|(a=1)(b=2)",
      "&(x=$ ( HOME ))",
      "&(a=1)(a=2)",
      "&(a=1",
      "&(a=1))",
      "&((a=1))",
      "&()",
      "&",
      "&(a=1)&(b=2)",
      "&(a!=1)(b>2)(c>=3)(d<4)(e<=5)",
      "&(a==1)",
      "&(a=>1)",
      "&(a=x+y&z|w)",
      "&(a=+x)",
      "&(a=x#y)",
      "&(a=x#)",
      "&(a=#x)",
      "&(a=(x)#y)",
      "&(a=x#(y))",
      "&(a=$(X)#$(Y)#z)",
      "&(a=p$(X)q$(Y))",
      "&(a=\"p\"$(X)\"q\")",
      "&(a=$(X d))",
      "&(a=$(X d e))",
      "&(a=$(X (d e)))",
      "&(a=$($(X)))",
      "&(a=$())",
      "&(a=$X)",
      "&('quoted name'=1)",
      "&($(X)=1)",
      "&(a='it''s' \"say \"\"x\"\"\" ^%50%%%)",
      "&(a='x)",
      "&(a=\"x)",
      "&(* c *)(a(* c *)=(* c *)1)",
      "&(* c (a=1)",
      "&(a=1)(* c *)",
      "&\n(a=1)\t(b=2)\n",
      "&(a=((x y) (z (w))))",
      "&(a=(x)(y) z)",
      "&(environment=(A b)(C \"d e\"))(arguments=-a \"\" b)",
      "+(&(resourceManagerContact=\"h/j\")(label=\"s 0\"))(&(resourceManagerContact=\"i\"))",
      "&(rsl_substitution=(A b)(C $(A)/d))(x=$(C))",
      "&(a=back\\slash)(b=\"back\\\\slash\")",
      "&(a=http://h:80/p%20q;x@y,z[1]{2}`)",
      "&(executable=/bin/date)*(count=4)",
      "&(executable=/bin/date)?(count=4)",
      "&(executable=/bin/date)~(count=4)",
      "&(executable=/bin/date)!(count=4)",
      "&(executable=/bin/date)\"(count=4)",
      "&(executable=/bin/date)''",
      "&(\"\"=1)",
      "&(__=1)",
      "&(a=*)",
      "&(a=b*c)",
      "&(a=" + std::string(100'000, 'x') + ")",
      "&(a=" + std::string(2000, '(') + "x" + std::string(2000, ')') + ")",
  };
  for (const std::string& text : corpus) {
    const Result<Spec> ours = Parse(text);
    const bool theirs = TheyAccept(text);
    if (ours.ok() != theirs) {
      EXPECT_FALSE(ours.ok()) << "only we accept " << text;
      EXPECT_NE(ours.ok() ? "" : KnownFault(text, ours.error()), "") << text;
    }
  }
}

TEST_F(Globusrun, RefusesCarriageReturnsThatWeTakeAsWhiteSpace) {
  const std::string text = "&\r\n(a=1)\r\n";
  EXPECT_TRUE(Parse(text).ok());
  EXPECT_FALSE(TheyAccept(text));
}

TEST_F(Globusrun, AgreesOnDamagedTexts) {
  const char* given = std::getenv("SEKISHO_SEED");
  const unsigned seed = given != nullptr ? std::atoi(given) : std::random_device()();
  SCOPED_TRACE("SEKISHO_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  const std::vector<std::string> whole = {
      "&(executable=/bin/date)", "&(a=$(HOME)/x)(b=c)", "+(&(a=1)(b=2))(&(c=\"x\"\"y\"))",
      "&(e=(A b)(C d))",         "&(a=^%x%% y%)",       "&(a=b#c # $(D))",
      "|(a>=3)(b!=4)(c<2)",      "&(a=(b (c d)))",      "&(a=x$(B)y$(C))",
      "&(* hi *)('q a'=1)",      "&(a=$(X y))",
  };
  const std::string noise = "+&|=!<>()\"'^*$#?~ ab_1/";

  for (int i = 0; i < 150; ++i) {
    std::string text = whole[below(whole.size())];
    const size_t at = below(text.size());
    switch (below(3)) {
      case 0:
        text.insert(at, 1, noise[below(noise.size())]);
        break;
      case 1:
        text.erase(at, 1);
        break;
      default:
        text[at] = noise[below(noise.size())];
    }
    const Result<Spec> ours = Parse(text);
    if (ours.ok() != TheyAccept(text)) {
      EXPECT_NE(ours.ok() ? "" : KnownFault(text, ours.error()), "") << text;
    }
  }
}

}  // namespace
}  // namespace sekisho::rsl
