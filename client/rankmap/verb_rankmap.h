// SPDX-License-Identifier: Apache-2.0
// sekisho rankmap solve|eval|bound|convert|gen: which rank goes to which node.
#pragma once

#include <string>
#include <utility>

namespace CLI {
class App;
}

namespace sekisho::client {

void AddRankmapVerb(CLI::App& app, int& exit_code);

// Spellings with one dash that CLI11 does not know: rewritten before parsing.
inline constexpr std::pair<const char*, const char*> kRankmapSpellings[] = {
    {"-nw", "--network"}, {"-pt", "--pattern"}, {"-pl", "--placement"}};

}  // namespace sekisho::client
