# SPDX-License-Identifier: Apache-2.0
# The kill points of one program on one host: killpoints.c's other side.  And the list of all of them, with what has
# been visited, which outlives a run.
import collections
import json
import mmap
import os
import random
import re
import struct

_TEXT, _CAPACITY = 64, 32768
_FIELDS = ("count", "kill_at", "side", "deaths", "born_at")
_DEATHS, _DEATHS_MAX, _DEATH = 64, 8, 32  # at, side, born, died: 8 bytes each
_POINTS = _DEATHS + _DEATHS_MAX * _DEATH
SIDES = ("before", "after")


class Control:
    """`struct control` of killpoints.c, at the path that the program opens."""

    def __init__(self, path):
        with open(path, "a+b") as file:
            os.fchmod(file.fileno(), 0o666)
            file.truncate(_POINTS + _TEXT * _CAPACITY)
            self._memory = mmap.mmap(file.fileno(), 0)

    def __getattr__(self, name):
        return struct.unpack_from("<Q", self._memory, 8 * _FIELDS.index(name))[0]

    def _put(self, **values):
        for name, value in values.items():
            struct.pack_into("<Q", self._memory, 8 * _FIELDS.index(name), value)

    def start(self):
        """Counts from here on, and kills nothing."""
        self._put(kill_at=0)
        for number in range(_DEATHS_MAX):
            struct.pack_into("<4Q", self._memory, _DEATHS + _DEATH * number, 0, 0, 0, 0)
        self._put(count=0, born_at=0, deaths=0)

    def arm(self, *plan):
        """Kill at the index-th point from here on, as each (index, side) says; those behind the first are of the process
        that comes then."""
        self.start()
        for number, (index, side) in enumerate(plan):
            struct.pack_into("<2Q", self._memory, _DEATHS + _DEATH * number, index, SIDES.index(side))
        index, side = plan[0]
        self._put(side=SIDES.index(side), kill_at=index)

    def died(self):
        """Where it was killed, one after the other: (text, its how manyth in that process, side)."""
        found = []
        for number in range(self.deaths):
            _, side, born, died = struct.unpack_from("<4Q", self._memory, _DEATHS + _DEATH * number)
            texts = [self.text(one) for one in range(born + 1, died + 1)]
            found.append((texts[-1], texts.count(texts[-1]), SIDES[side]))
        return found

    def points(self):
        """What each point is, from the last start() on."""
        return [self.text(number) for number in range(1, min(self.count, _CAPACITY) + 1)]

    def text(self, number):
        if not 0 < number <= _CAPACITY:
            return "?"
        at = _POINTS + _TEXT * (number - 1)
        return plain(self._memory[at:at + _TEXT].split(b"\0", 1)[0].decode(errors="replace"))


def plain(text):
    """A point without what is different each time: ids, hashes, numbers."""
    text = re.sub(r"(from|to) (?!2119|751[23])\d+", r"\1 N", text)
    text = re.sub(r"[a-z2-7]{13}(\[\d+\])?", "JOB", text)
    text = re.sub(r"[0-9a-f]{32,}", "SHA", text)
    return re.sub(r"/\d+(?=[/.]|$)", "/N", text)


class Tour:
    """All points of all programs, both sides, and which have been visited.  A point is a text and its how manyth in a
    process: what was meant and what was met may differ, and what was met counts.  Kept in `path`, if there is one."""

    TRIES = 5  # after so many in vain a point is let be, until all others have been visited

    _VERSION = 2  # of what is kept

    def __init__(self, path, seed):
        self._path, self._random = path, random.Random(seed)
        self._points = {}  # program -> [text of point 1, ...]
        self._visited = {}  # program -> {"text #2 before", ...}
        self._missed = {}  # "program: text #2 before" -> how often it was meant and not met
        if path and os.path.exists(path):
            with open(path) as file:
                kept = json.load(file)
            if kept.get("version") == self._VERSION:
                self._points = kept["points"]
                self._visited = {program: set(visited) for program, visited in kept["visited"].items()}
                self._missed = kept["missed"]

    def learn(self, program, texts):
        """A calm run of the script made these points."""
        if len(texts) >= len(self._points.get(program, [])):
            self._points[program] = texts
        self._visited.setdefault(program, set())

    def programs(self):
        return list(self._points)

    def _all(self, program):
        """{name of a point's side: (index, side)}"""
        counts, found = collections.Counter(), {}
        for index, text in enumerate(self._points[program], 1):
            counts[text] += 1
            found.update({f"{text} #{counts[text]} {side}": (index, side) for side in SIDES})
        return found

    def next(self, program, number=1):
        """(index, side) of so many points that were not visited yet; of any if all were; none if there is none."""
        all_of_them = self._all(program)
        names = list(all_of_them)
        self._random.shuffle(names)
        visited = self._visited[program]
        names.sort(key=lambda name: (name in visited, self._missed.get(f"{program}: {name}", 0)))
        return [all_of_them[name] for name in names[:number]]

    def note(self, program, meant, met):
        """`meant`: what next() gave; `met`: what Control.died() says."""
        visited = self._visited[program]
        visited.update(f"{text} #{number} {side}" for text, number, side in met)
        names = {place: name for name, place in self._all(program).items()}
        for name in (names[place] for place in meant):
            if name not in visited:
                key = f"{program}: {name}"
                self._missed[key] = self._missed.get(key, 0) + 1

    def save(self):
        if not self._path:
            return
        with open(f"{self._path}.new", "w") as file:
            json.dump({"version": self._VERSION, "points": self._points, "missed": self._missed,
                       "visited": {program: sorted(visited) for program, visited in self._visited.items()}}, file)  # fmt: skip
        os.rename(f"{self._path}.new", self._path)

    def left(self):
        """How many are neither visited nor tried in vain often enough."""
        return sum(row[1] - row[2] - row[3] for row in self.table())

    def table(self):
        """[(program, points, visited, tried in vain, kinds of points, kinds visited)]; each has two sides."""
        rows = []
        for program, texts in self._points.items():
            visited = self._visited[program]
            names = self._all(program)
            in_vain = sum(1 for name in names if name not in visited and self._missed.get(f"{program}: {name}", 0) >= self.TRIES)
            kinds = {f"{text} {side}" for text in texts for side in SIDES}
            seen = {re.sub(r" #\d+ ", " ", name) for name in visited} & kinds
            rows.append((program, len(names), len(visited & set(names)), in_vain, len(kinds), len(seen)))
        return rows
