// SPDX-License-Identifier: Apache-2.0
#include "topology/show.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace sekisho::topology {
namespace {

std::vector<std::vector<int>> Children(const Tree& tree, const Rooted& rooted) {
  std::vector<std::vector<int>> children(tree.vertex_count);
  for (size_t i = 1; i < rooted.order.size(); ++i) {
    children[rooted.parent[rooted.order[i]]].push_back(rooted.order[i]);
  }
  for (auto& list : children) {
    std::sort(list.begin(), list.end(), [&](int a, int b) {
      return std::pair(tree.IsHost(a), rooted.depth_us[a]) <
             std::pair(tree.IsHost(b), rooted.depth_us[b]);
    });
  }
  return children;
}

std::string Latency(double rtt_us) {
  return rtt_us < 2000 ? fmt::format("{:.1f} us", rtt_us / 2)
                       : fmt::format("{:.2f} ms", rtt_us / 2000);
}

std::string Note(const std::vector<std::string>& notes, int link, const char* before) {
  return notes.empty() || notes[link].empty() ? "" : before + notes[link];
}

std::string Label(const Tree& tree, int number, const std::vector<std::string>& notes) {
  const Link& link = tree.links[number];
  return Latency(link.rtt_us) + (link.is_relayed ? " relayed" : "") + Note(notes, number, "  ") +
         (link.confidence < 0.995 ? fmt::format("  confidence {:.2f}", link.confidence) : "");
}

}  // namespace

int Centre(const Tree& tree) {
  if (tree.links.empty()) {
    return -1;
  }
  // The middle of the longest path.
  const auto farthest = [&tree](const Rooted& rooted) {
    int best = rooted.order[0];
    for (const int vertex : rooted.order) {
      if (rooted.depth_us[vertex] > rooted.depth_us[best]) {
        best = vertex;
      }
    }
    return best;
  };
  const int start = tree.links[0].u;
  const Rooted one = HangUp(tree, farthest(HangUp(tree, start)));
  const int end = farthest(one);
  int centre = end;
  for (int vertex = end; vertex >= 0; vertex = one.parent[vertex]) {
    const double half = one.depth_us[end] / 2;
    if (!tree.IsHost(vertex) &&
        (tree.IsHost(centre) ||
         std::abs(one.depth_us[vertex] - half) < std::abs(one.depth_us[centre] - half))) {
      centre = vertex;
    }
  }
  return centre;
}

std::string ShowText(const Tree& tree, const std::vector<std::string>& names,
                     const std::vector<std::string>& notes) {
  const int root = Centre(tree);
  if (root < 0) {
    return "";
  }
  const Rooted rooted = HangUp(tree, root);
  const auto children = Children(tree, rooted);
  std::string text;
  std::vector<std::pair<int, int>> stack{{root, 0}};
  while (!stack.empty()) {
    const auto [vertex, level] = stack.back();
    stack.pop_back();
    text += std::string(2 * static_cast<size_t>(level), ' ') + names[vertex];
    if (vertex != root) {
      text += "  " + Label(tree, rooted.parent_link[vertex], notes);
    }
    text += '\n';
    std::string hosts;
    for (auto child = children[vertex].rbegin(); child != children[vertex].rend(); ++child) {
      if (!tree.IsHost(*child)) {
        stack.emplace_back(*child, level + 1);
      }
    }
    for (const int child : children[vertex]) {
      if (tree.IsHost(child)) {
        const Link& link = tree.links[rooted.parent_link[child]];
        hosts += fmt::format(" {} ({:.1f}{}{})", names[child], link.rtt_us / 2,
                             link.is_relayed ? " relayed" : "",
                             Note(notes, rooted.parent_link[child], ", "));
      }
    }
    if (!hosts.empty()) {
      text += std::string(2 * static_cast<size_t>(level) + 2, ' ') + "hosts:" + hosts + '\n';
    }
  }
  return text;
}

std::string ShowDot(const Tree& tree, const std::vector<std::string>& names,
                    const std::vector<std::string>& notes) {
  std::string text = "graph topology {\n  node [fontname=\"sans-serif\"];\n";
  std::vector<bool> is_used(tree.vertex_count, false);
  for (const Link& link : tree.links) {
    is_used[link.u] = is_used[link.v] = true;
  }
  for (int vertex = 0; vertex < tree.vertex_count; ++vertex) {
    if (is_used[vertex]) {
      text += fmt::format("  \"{}\" [shape={}];\n", names[vertex],
                          tree.IsHost(vertex) ? "box" : "circle");
    }
  }
  for (size_t i = 0; i < tree.links.size(); ++i) {
    const Link& link = tree.links[i];
    text += fmt::format("  \"{}\" -- \"{}\" [label=\"{}\"{}];\n", names[link.u], names[link.v],
                        Label(tree, static_cast<int>(i), notes),
                        link.is_relayed ? " style=dashed" : "");
  }
  return text + "}\n";
}

// Layers from left to right; each leaf has a line of its own.
std::string ShowSvg(const Tree& tree, const std::vector<std::string>& names,
                    const std::vector<std::string>& notes) {
  const int root = Centre(tree);
  constexpr double kLine = 16;
  const double column = notes.empty() ? 130 : 210;
  std::string lines;
  std::string labels;
  double height = 2 * kLine;
  int levels = 0;
  if (root >= 0) {
    const Rooted rooted = HangUp(tree, root);
    const auto children = Children(tree, rooted);
    std::vector<double> y(tree.vertex_count, 0);
    std::vector<std::pair<int, bool>> stack{{root, false}};
    while (!stack.empty()) {
      const auto [vertex, is_left] = stack.back();
      stack.pop_back();
      levels = std::max(levels, rooted.level[vertex]);
      if (children[vertex].empty()) {
        y[vertex] = height;
        height += kLine;
      } else if (!is_left) {
        stack.emplace_back(vertex, true);
        for (auto child = children[vertex].rbegin(); child != children[vertex].rend(); ++child) {
          stack.emplace_back(*child, false);
        }
      } else {
        y[vertex] = (y[children[vertex].front()] + y[children[vertex].back()]) / 2;
      }
    }
    for (const int vertex : rooted.order) {
      const double x = 30 + column * rooted.level[vertex];
      if (vertex != root) {
        const int parent = rooted.parent[vertex];
        const Link& link = tree.links[rooted.parent_link[vertex]];
        lines +=
            fmt::format("<path d=\"M{:.0f} {:.1f}V{:.1f}H{:.0f}\"{}/>\n", x - column, y[parent],
                        y[vertex], x, link.is_relayed ? " stroke-dasharray=\"4 3\"" : "");
        labels +=
            fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\" fill=\"#777\">{}</text>\n", x - column + 8,
                        y[vertex] - 3, Label(tree, rooted.parent_link[vertex], notes));
      }
      labels += tree.IsHost(vertex)
                    ? fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\">{}</text>\n", x + 4,
                                  y[vertex] + 4, names[vertex])
                    : fmt::format(
                          "<circle cx=\"{:.0f}\" cy=\"{:.1f}\" r=\"4\"><title>{}</title>"
                          "</circle>\n",
                          x, y[vertex], names[vertex]);
    }
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"10\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#fff\"/>\n<g fill=\"none\" stroke=\"#345\">\n{}</g>\n<g fill=\"#123\">\n{}</g>\n"
      "</svg>\n",
      150 + column * levels, height + kLine, lines, labels);
}

}  // namespace sekisho::topology
