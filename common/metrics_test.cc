// SPDX-License-Identifier: Apache-2.0
#include "common/metrics.h"

#include <asio/connect.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace sekisho {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Metrics, SaysHelpAndTypeOncePerNameAndEscapesLabels) {
  Metrics metrics("qserver");
  metrics.Gauge("jobs", "Jobs, by state.", 3, {{"state", "pending"}});
  metrics.Gauge("jobs", "Jobs, by state.", 1.5, {{"state", "a\"b\\c\nd"}, {"queue", "long"}});
  metrics.Counter("events_total", "Events.", 1234567);

  EXPECT_EQ(metrics.text(),
            "# HELP sekisho_qserver_jobs Jobs, by state.\n# TYPE sekisho_qserver_jobs gauge\n"
            "sekisho_qserver_jobs{state=\"pending\"} 3\n"
            "sekisho_qserver_jobs{state=\"a\\\"b\\\\c\\nd\",queue=\"long\"} 1.5\n"
            "# HELP sekisho_qserver_events_total Events.\n# TYPE sekisho_qserver_events_total counter\n"
            "sekisho_qserver_events_total 1234567\n");
}

TEST(Metrics, TellWhatTheProcessUses) {
  Metrics metrics("agent");
  metrics.AddProcess();

  EXPECT_THAT(metrics.text(), HasSubstr("process_resident_memory_bytes "));
  EXPECT_EQ(metrics.text().find("process_resident_memory_bytes 0\n"), std::string::npos);
  EXPECT_EQ(metrics.text().find("process_threads 0\n"), std::string::npos);
  EXPECT_THAT(metrics.text(), HasSubstr("sekisho_build_info{daemon=\"agent\",version="));
}

TEST(Metrics, AnswerGetOfTheirPageAndNothingElse) {
  const auto text = [] { return std::string("x 1\n"); };

  EXPECT_THAT(AnswerHttp("GET /metrics HTTP/1.1\r\n\r\n", text), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(AnswerHttp("GET /metrics HTTP/1.1\r\n\r\n", text), HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(AnswerHttp("GET /metricsx HTTP/1.1\r\n\r\n", text), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(AnswerHttp("POST /metrics HTTP/1.1\r\n\r\n", text), StartsWith("HTTP/1.1 405"));
}

TEST(Metrics, AreServedOnASocketOfTheAccountAlone) {
  Loop loop(1);
  const std::string path = testing::TempDir() + "metrics-" + std::to_string(getpid());
  ServeMetrics(loop, "jobmanager", "unix:" + path, [](Metrics& metrics) { metrics.Gauge("jobs", "Jobs.", 7); });
  std::string answer;
  co_spawn(
      loop,
      [&]() -> awaitable<void> {
        asio::local::stream_protocol::socket socket(loop);
        socket.connect(asio::local::stream_protocol::endpoint(path));
        const std::string request = "GET /metrics HTTP/1.1\r\n\r\n";
        co_await asio::async_write(socket, asio::buffer(request), kAsTuple);
        co_await asio::async_read(socket, asio::dynamic_buffer(answer), kAsTuple);
        loop.stop();
      },
      Vital("the test"));
  loop.run();

  EXPECT_THAT(answer, HasSubstr("sekisho_jobmanager_jobs 7\n"));
  unlink(path.c_str());
}

TEST(Metrics, ThatCannotBeServedStopNobody) {
  Loop loop(1);
  ServeMetrics(loop, "agent", "nonsense", [](Metrics&) {});
  ServeMetrics(loop, "agent", "unix:/nowhere/at/all", [](Metrics&) {});
  loop.run();  // nothing to do
}

}  // namespace
}  // namespace sekisho
