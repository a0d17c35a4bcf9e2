// SPDX-License-Identifier: Apache-2.0
// Who hears of an exception that leaves a coroutine for which nobody waits: co_spawn's last word.
// Vital: there is one, for ever, and without it the program would be half alive; it ends.
// Logged: there are many, whoever has caused them; only this one is lost.
//
// We throw nothing: what comes here is a fault of ours, or a lack of memory.  It goes to stderr, as
// CHECK's words do: commands have no other log.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <asio/error.hpp>
#include <asio/multiple_exceptions.hpp>

namespace sekisho {

// In one line.  None: nothing was thrown, or asio's word for a wait that was cancelled, an end like
// any other.
inline std::optional<std::string> WhyThrown(const std::exception_ptr& thrown) {
  if (!thrown) {
    return std::nullopt;
  }
  std::string why = "not a std::exception";
  try {
    std::rethrow_exception(thrown);
  } catch (const asio::multiple_exceptions& both) {  // of an operator||
    return WhyThrown(both.first_exception());
  } catch (const std::system_error& error) {
    if (error.code() == asio::error::operation_aborted) {
      return std::nullopt;
    }
    why = error.what();
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {
  }
  for (char& c : why) {  // it may quote what came from outside
    c = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return why;
}

// Also to be called by a handler of one's own.
class Logged {
 public:
  explicit Logged(std::string what) : what_(std::move(what)) {}

  template <typename... Result>
  void operator()(const std::exception_ptr& thrown, const Result&...) const {
    if (const auto why = WhyThrown(thrown)) {
      std::fprintf(stderr, "%s: lost by an exception: %s: %.300s\n", program_invocation_short_name,
                   what_.c_str(), why->c_str());
    }
  }

 private:
  std::string what_;
};

// What is known is on disk, and the service manager starts daemons again.
class Vital {
 public:
  explicit Vital(const char* what) : what_(what) {}

  template <typename... Result>
  void operator()(const std::exception_ptr& thrown, const Result&...) const {
    if (const auto why = WhyThrown(thrown)) {
      std::fprintf(stderr, "%s: stopping, it cannot go on without %s: %.300s\n",
                   program_invocation_short_name, what_, why->c_str());
      std::abort();
    }
  }

 private:
  const char* what_;
};

}  // namespace sekisho
