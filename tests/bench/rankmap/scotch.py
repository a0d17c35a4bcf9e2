# SPDX-License-Identifier: Apache-2.0
# Scotch on relabelled copies of a pattern: whom placements are compared with.
import collections
import json
import math
import os
import random
import shutil
import subprocess
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
SEKISHO = os.environ.get("SEKISHO_BIN", f"{ROOT}/build/release/bin") + "/sekisho"
GMAP = shutil.which("scotch_gmap") or shutil.which("gmap")


def cpu_of_children():
    times = os.times()
    return times.children_user + times.children_system


def sekisho(*words):
    return subprocess.run([SEKISHO, "rankmap", *words], check=True, capture_output=True, text=True).stdout


def read_pattern(path):
    """(ranks, {(low, high): bytes both ways})"""
    edges = collections.Counter()
    with open(path) as file:
        for words in map(str.split, file):
            if words[0] == "ranks":
                ranks = int(words[1])
            elif words[0] != "#" and words[0] != words[1]:
                a, b = sorted((int(words[0]), int(words[1])))
                edges[a, b] += int(words[2])
    return ranks, edges


def write_graph(path, ranks, edges, label):
    around = [[] for _ in range(ranks)]
    unit = math.gcd(*edges.values())
    for (a, b), size in edges.items():
        around[label[a]].append(f"{size // unit} {label[b]}")
        around[label[b]].append(f"{size // unit} {label[a]}")
    with open(path, "w") as file:
        file.write(f"0\n{ranks} {2 * len(edges)}\n0 010\n")
        for peers in around:
            file.write(f"{len(peers)} {' '.join(peers)}\n")


class Target:
    """A network as Scotch knows it: torus:4x4x4, mesh:4x4 or tree:4:3,8:2, each also with ,capacity=N but the tree."""

    def __init__(self, network):
        self.kind, rest = network.split(":", 1)
        words = rest.split(",")
        settings = dict(word.split("=") for word in words if "=" in word)
        self.capacity = int(settings.get("capacity", 1))
        if self.kind == "tree":
            levels = [(*map(int, word.split(":")), 1)[:2] for word in words]
            self.sides = [arity for arity, _ in reversed(levels)]  # the lowest level's number is the fastest
            self.text = f"tleaf {len(levels)} " + " ".join(f"{arity} {distance}" for arity, distance in levels)
        else:
            self.sides = list(map(int, words[0].split("x")))
            count = len(self.sides)
            self.text = f"{self.kind}{count}D " if count in (2, 3) else f"{self.kind}XD {count} "
            self.text += " ".join(map(str, self.sides))
        self.nodes = math.prod(self.sides)

    def _place(self, node):
        place = []
        for side in self.sides:
            place.append(node % side)
            node //= side
        return place

    def distance(self, a, b):
        pairs = list(zip(self._place(a), self._place(b), self.sides))
        if self.kind == "tree":
            return max((level + 1 for level, (p, q, _) in enumerate(pairs) if p != q), default=0)
        return sum(min(abs(p - q), side - abs(p - q)) if self.kind == "torus" else abs(p - q) for p, q, side in pairs)

    def repaired(self, nodes):
        """No node above its capacity: who is too many goes to the nearest that has room."""
        taken = collections.Counter(nodes)
        room = {node for node in range(self.nodes) if taken[node] < self.capacity}
        seen, result = collections.Counter(), []
        for node in nodes:
            if seen[node] == self.capacity:
                node = min(room, key=lambda other: (self.distance(node, other), other))
                taken[node] += 1
                if taken[node] == self.capacity:
                    room.remove(node)
            else:
                seen[node] += 1
            result.append(node)
        return result


def evaluate(network, pattern, placement):
    return json.loads(sekisho("eval", "--network", network, "--pattern", pattern, "--placement", placement, "--json"))


def identity(folder, ranks):
    with open(f"{folder}/identity", "w") as file:
        file.write("".join(f"{rank}\n" for rank in range(ranks)))
    return f"{folder}/identity"


class Scotch:
    """Runs on relabelled copies, and the best of each figure."""

    def __init__(self, folder, pattern, network):
        self.folder, self.pattern, self.network = folder, pattern, network
        self.target = Target(network)
        self.ranks, self.edges = read_pattern(pattern)
        with open(f"{folder}/target", "w") as file:
            file.write(f"{self.target.text}\n")

    def best(self, seconds, keep=(), by_cpu=False):
        """({figure: least}, runs) of so many seconds of wall or of processor; placements that are least in a figure of `keep` stay as FOLDER/best-FIGURE."""
        best, runs, chance, spent, crashes = {}, 0, random.Random(1), 0.0, 0
        while spent < seconds or not best:
            label = list(range(self.ranks))
            if runs > 0:
                chance.shuffle(label)
            write_graph(f"{self.folder}/graph", self.ranks, self.edges, label)
            clock = cpu_of_children if by_cpu else time.monotonic
            began = clock()
            done = subprocess.run([GMAP, "-cq", f"{self.folder}/graph", f"{self.folder}/target", f"{self.folder}/map"], capture_output=True)
            spent += clock() - began  # neither relabelling nor judging counts
            runs += 1
            if done.returncode != 0:  # it crashes on some graphs
                crashes += 1
                if crashes == 20:
                    raise RuntimeError(f"scotch_gmap ended with {done.returncode}, 20 times")
                continue
            with open(f"{self.folder}/map") as file:
                of_label = dict(map(int, line.split()) for line in file.readlines()[1:])
            nodes = self.target.repaired([of_label[label[rank]] for rank in range(self.ranks)])
            with open(f"{self.folder}/placement", "w") as file:
                file.write("".join(f"{node}\n" for node in nodes))
            for key, value in evaluate(self.network, self.pattern, f"{self.folder}/placement").items():
                if value < best.get(key, math.inf):
                    best[key] = value
                    if key in keep:
                        shutil.copy(f"{self.folder}/placement", f"{self.folder}/best-{key}")
        return best, runs
