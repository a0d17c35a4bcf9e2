// SPDX-License-Identifier: Apache-2.0
// rankmap_simgrid DIMS PATTERN PLACEMENT: seconds that the pattern takes on a torus of 5 GB/s and 120 ns a hop, step
// after step with a barrier between, by SimGrid.  Model CM02: LV08, the usual one, multiplies latency by 13.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>
#include <unistd.h>

#include "client/rankmap/rankmap_files.h"
#include "rankmap/network_format.h"
#include "rankmap/pattern_format.h"

namespace s4u = simgrid::s4u;

namespace {

// SimGrid reads its platforms from files only.
std::string WritePlatform(std::string dims, int nodes) {
  for (char& c : dims) {
    c = c == 'x' ? ',' : c;
  }
  std::string path = std::filesystem::temp_directory_path() / "rankmap_simgrid.XXXXXX.xml";
  const int file = mkstemps(path.data(), 4);
  std::ostringstream xml;
  xml << "<?xml version='1.0'?>\n"
         "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
         "<platform version=\"4.1\">\n<cluster id=\"torus\" prefix=\"n\" suffix=\"\" radical=\"0-"
      << nodes - 1
      << "\" speed=\"1Gf\" bw=\"5GBps\" lat=\"120ns\" topology=\"TORUS\" topo_parameters=\"" << dims
      << "\" sharing_policy=\"SPLITDUPLEX\"/>\n</platform>\n";
  const std::string text = xml.str();
  if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    std::perror(path.c_str());
    std::exit(1);
  }
  close(file);
  return path;
}

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", std::string(value.status().message()).c_str());
    std::exit(64);
  }
  return *std::move(value);
}

}  // namespace

int main(int argc, char** argv) {
  s4u::Engine engine(&argc, argv);
  if (argc != 4) {
    std::fprintf(stderr, "usage: rankmap_simgrid 16x16x16 PATTERN PLACEMENT\n");
    return 64;
  }
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/crosstraffic:0");
  const auto network = OrDie(sekisho::rankmap::ParseNetworkSpec(std::string("torus:") + argv[1]));
  const auto pattern = OrDie(sekisho::client::ReadPattern(argv[2]));
  const auto placement = OrDie(sekisho::client::ReadPlacement(argv[3], pattern, network));
  const std::string platform = WritePlatform(argv[1], network.nodes());
  engine.load_platform(platform);
  unlink(platform.c_str());

  std::vector<s4u::Host*> host;
  for (int node = 0; node < network.nodes(); ++node) {
    host.push_back(s4u::Host::by_name(std::string("n").append(std::to_string(node))));
  }
  s4u::Actor::create("steps", host[0], [&] {
    for (int step = 0; step < pattern.steps(); ++step) {
      std::vector<s4u::CommPtr> messages;
      for (const auto& m : pattern.messages()) {
        if (m.step == step && m.source != m.target) {
          messages.push_back(s4u::Comm::sendto_async(host[placement.slot_of(m.source)],
                                                     host[placement.slot_of(m.target)],
                                                     static_cast<uint64_t>(m.bytes)));
        }
      }
      s4u::Comm::wait_all(messages);
    }
  });
  engine.run();
  std::printf("%.6e\n", s4u::Engine::get_clock());
  return 0;
}
