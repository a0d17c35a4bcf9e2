# SPDX-License-Identifier: Apache-2.0
# The kill points of one program on one host: killpoints.c's other side.  And the list of all of them, with what has
# been visited, which outlives a run.
import json
import mmap
import os
import random
import re
import struct

_HEAD, _TEXT, _CAPACITY = 64, 64, 32768
_FIELDS = ("count", "kill_at", "side", "again", "again_side", "deaths", "died_at", "born_at")
SIDES = ("before", "after")


class Control:
    """`struct control` of killpoints.c, at the path that the program opens."""

    def __init__(self, path):
        with open(path, "a+b") as file:
            os.fchmod(file.fileno(), 0o666)
            file.truncate(_HEAD + _TEXT * _CAPACITY)
            self._memory = mmap.mmap(file.fileno(), 0)

    def __getattr__(self, name):
        return struct.unpack_from("<Q", self._memory, 8 * _FIELDS.index(name))[0]

    def put(self, **values):
        for name, value in values.items():
            struct.pack_into("<Q", self._memory, 8 * _FIELDS.index(name), value)

    def start(self):
        """Counts from here on, and kills nothing."""
        self.put(kill_at=0, again=0, count=0, born_at=0, deaths=0, died_at=0)

    def arm(self, index, side, again=None):
        """Kill at the index-th point from here on; `again`: (index, side) of the process that comes then."""
        self.start()
        if again:
            self.put(again_side=SIDES.index(again[1]), again=again[0])
        self.put(side=SIDES.index(side), kill_at=index)

    def points(self):
        """What each point is, from the last start() on."""
        return [self.text(number) for number in range(1, min(self.count, _CAPACITY) + 1)]

    def text(self, number):
        if not 0 < number <= _CAPACITY:
            return "?"
        at = _HEAD + _TEXT * (number - 1)
        return plain(self._memory[at:at + _TEXT].split(b"\0", 1)[0].decode(errors="replace"))


def plain(text):
    """A point without what is different each time: ids, hashes, numbers."""
    text = re.sub(r"(from|to) (?!2119|751[23])\d+", r"\1 N", text)
    text = re.sub(r"[a-z2-7]{13}(\[\d+\])?", "JOB", text)
    text = re.sub(r"[0-9a-f]{32,}", "SHA", text)
    return re.sub(r"/\d+(?=[/.]|$)", "/N", text)


class Tour:
    """All points of all programs, both sides, and which have been visited.  Kept in `path`, if there is one."""

    def __init__(self, path, seed):
        self._path, self._random = path, random.Random(seed)
        self._points = {}  # program -> [text of point 1, ...]
        self._visited = {}  # program -> {"17 before", ...}
        self._missed = {}  # "program 17 before" -> how often it was not met
        if path and os.path.exists(path):
            with open(path) as file:
                kept = json.load(file)
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

    def next(self, program):
        """(index, side) of a point that was not visited yet; of any if all were; None if there is none."""
        visited = self._visited[program]
        all_of_them = [(index, side) for index in range(1, len(self._points[program]) + 1) for side in SIDES]
        left = [one for one in all_of_them if f"{one[0]} {one[1]}" not in visited]
        if not all_of_them:
            return None
        fewest = min((self._missed.get(f"{program} {i} {s}", 0) for i, s in left), default=0)
        return self._random.choice([one for one in left if self._missed.get(f"{program} {one[0]} {one[1]}", 0) == fewest]
                                   or all_of_them)  # fmt: skip

    def note(self, program, index, side, was_met):
        if was_met:
            self._visited[program].add(f"{index} {side}")
        else:
            key = f"{program} {index} {side}"
            self._missed[key] = self._missed.get(key, 0) + 1

    def save(self):
        if not self._path:
            return
        with open(f"{self._path}.new", "w") as file:
            json.dump({"points": self._points, "missed": self._missed,
                       "visited": {program: sorted(visited) for program, visited in self._visited.items()}}, file)  # fmt: skip
        os.rename(f"{self._path}.new", self._path)

    def table(self):
        """[(program, points, visited, kinds of points, kinds visited)]; each point has two sides."""
        rows = []
        for program, texts in self._points.items():
            seen = {texts[int(one.split()[0]) - 1] for one in self._visited[program] if int(one.split()[0]) <= len(texts)}
            rows.append((program, 2 * len(texts), len(self._visited[program]), len(set(texts)), len(seen)))
        return rows
