// SPDX-License-Identifier: Apache-2.0
// Where a file is that a request names: docs/protocol/17-staging.md.
#pragma once

#include <string>
#include <string_view>

namespace sekisho::rsl {

struct Location {
  enum class Kind {
    kPath,    // no URL
    kClient,  // client://PATH, what GLOBUSRUN_GASS_URL stands for
    kFile,    // file://PATH, inside the site
    kWeb,     // http or https
    kOther,
  };
  Kind kind = Kind::kPath;
  std::string path;    // of kPath, kClient and kFile; else the URL
  std::string scheme;  // empty: no URL
};

Location ReadLocation(std::string_view text);

// x-gass-cache://...: what the site keeps of a job under GRAM's name for it.
bool IsCacheUrl(std::string_view text);

// The last part of a path or URL, without a query, fit for a file's name: [A-Za-z0-9._+-]{1,100}, no dot first;
// else `fallback`.
std::string PlainName(std::string_view location, std::string_view fallback);

}  // namespace sekisho::rsl
