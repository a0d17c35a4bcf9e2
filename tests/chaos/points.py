# SPDX-License-Identifier: Apache-2.0
# The kill points of one program on one host: killpoints.c's other side.  And the list of all of them, with what has
# been visited, which outlives a run.
import collections
import fcntl
import itertools
import json
import mmap
import os
import random
import re
import struct

_TEXT, _CAPACITY = 64, 32768
_FIELDS = ("count", "deaths", "seen")
DEATHS_MAX = 16
_DEATHS, _DEATH = 8 * len(_FIELDS), 16 + _TEXT  # nth, side, point
_POINTS = _DEATHS + DEATHS_MAX * _DEATH
SIDES = ("before", "after")


class Control:
    """`struct control` of killpoints.c, at the path that the program opens."""

    def __init__(self, path):
        with open(path, "a+b") as file:
            os.fchmod(file.fileno(), 0o666)
            file.truncate(_POINTS + _TEXT * _CAPACITY)
            self._memory = mmap.mmap(file.fileno(), 0)

    def start(self):
        """Lists from here on, and kills nothing."""
        self.arm()

    def arm(self, *places):
        """Kills the process that runs at the first of these places, counted from here on, what comes then at the second,
        and so on.  A place: (text, its how manyth in that process, side)."""
        for number in range(DEATHS_MAX):  # none, while the others are not all there
            struct.pack_into("<Q", self._memory, _DEATHS + _DEATH * number, 0)
        struct.pack_into("<3Q", self._memory, 0, 0, 0, 0)
        for number, (text, nth, side) in reversed(list(enumerate(places))):
            at = _DEATHS + _DEATH * number
            struct.pack_into(f"<Q{_TEXT}s", self._memory, at + 8, SIDES.index(side), text.encode())
            struct.pack_into("<Q", self._memory, at, nth)

    def deaths(self):
        """How many of the places have been met."""
        return struct.unpack_from("<Q", self._memory, 8 * _FIELDS.index("deaths"))[0]

    def lives(self):
        """[[text, ...], ...]: the points of each process, from the last start() on."""
        (count,) = struct.unpack_from("<Q", self._memory, 0)
        lives = [[]]
        for number in range(min(count, _CAPACITY)):
            at = _POINTS + _TEXT * number
            text = self._memory[at:at + _TEXT].split(b"\0", 1)[0].decode(errors="replace")
            if text:
                lives[-1].append(text)
            else:
                lives.append([])
        return lives


def _numbered(texts):
    """[(text, its how manyth), ...]"""
    counts = collections.Counter()
    for text in texts:
        counts[text] += 1
        yield text, counts[text]


def _name(place):
    text, nth, side = place
    return f"{text} #{nth} {side}"


class Tour:
    """All points of all programs, both sides, and which have been visited.  A point is a text and its how manyth in a
    process.  What has been visited is kept in `path`, if there is one; several runs may share it."""

    TRIES = 8  # after so many in vain a point is let be, until all others have been visited
    _VERSION = 3  # of what is kept

    def __init__(self, path, seed):
        self._path, self._random = path, random.Random(seed)
        self._cost = {}  # program -> {(text, how manyth): so many points a process makes until then}
        self._of_a_start = {}  # program -> texts that only a process makes that begins
        self._visited = collections.defaultdict(set)  # program -> {"text #2 before", ...}
        self._missed = collections.Counter()  # "program: text #2 before" -> how often it was meant and not met
        self._read()

    def learn(self, program, calm, again):
        """What each calm run of the script made in a program: the lives of its processes.  A point is listed if it came
        in every run in which its text came at all, as no two are alike to the last send.  Of runs that began with new
        processes, `again`, it is what the others have not."""
        cost = {}
        for runs in (calm, again):
            most = [collections.Counter() for _ in runs]  # text -> its most in a life
            places = {}
            for counts, lives in zip(most, runs):
                for at, (text, nth) in ((at, point) for life in lives for at, point in enumerate(_numbered(life), 1)):
                    counts[text] = max(counts[text], nth)
                    places[text, nth] = min(at, places.get((text, nth), at))
            known = {text for text, _ in cost}
            least = {text: min(counts[text] for counts in most if text in counts) for text in set(itertools.chain(*most)) - known}
            cost.update((point, at) for point, at in places.items() if point[1] <= least.get(point[0], 0))
        self._cost[program] = dict(sorted(cost.items()))
        self._of_a_start[program] = {text for text, _ in cost if not all(any(text in life for life in lives) for lives in calm)}

    def next(self, program, most, room):
        """Up to so many places that were not visited yet, for one process of a daemon after the other, where all of them
        together make no more than `room` points; of any place if all were visited."""
        cost = self._cost[program]
        places = [(*point, side) for point in cost for side in SIDES]
        self._random.shuffle(places)
        visited = self._visited[program]
        left = [place for place in places if _name(place) not in visited]
        left.sort(key=lambda place: self._missed[f"{program}: {_name(place)}"] >= self.TRIES)
        # The first to die runs already.
        runs = [place for place in (*left, *places) if place[0] not in self._of_a_start[program]]
        chosen = [place for place in runs if cost[place[:2]] <= room][:1] or runs[:1]
        for place in left:
            taken = sum(cost[one[:2]] for one in chosen)
            if taken + cost[place[:2]] <= room and len(chosen) < most and place not in chosen:
                chosen.append(place)
        return chosen[:1] + sorted(chosen[1:], key=lambda place: cost[place[:2]])

    def note(self, program, meant, met):
        """Of what next() gave, so many were met, one after the other."""
        self._visited[program].update(map(_name, meant[:met]))
        if met < len(meant):  # those behind it had no chance
            self._missed[f"{program}: {_name(meant[met])}"] += 1

    def _read(self):
        if self._path and os.path.exists(self._path):
            with open(self._path) as file:
                kept = json.load(file)
            if kept.get("version") == self._VERSION:
                for program, names in kept["visited"].items():
                    self._visited[program].update(names)

    def save(self):
        """And learns what other runs have visited meanwhile."""
        if not self._path:
            return
        with open(f"{self._path}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._read()
            with open(f"{self._path}.new", "w") as file:
                json.dump({"version": self._VERSION, "visited": {program: sorted(names) for program, names in self._visited.items()}}, file)
            os.rename(f"{self._path}.new", self._path)

    def left(self, program=None):
        """How many, of one program or of all, are neither visited nor tried in vain often enough."""
        return sum(row[1] - row[2] - row[3] for row in self.table() if program in (None, row[0]))

    def table(self):
        """[(program, points, visited, tried in vain, kinds of points, kinds visited)]; each has two sides."""
        rows = []
        for program, cost in self._cost.items():
            visited = self._visited[program]
            names = {_name((*point, side)) for point in cost for side in SIDES}
            in_vain = sum(1 for name in names - visited if self._missed[f"{program}: {name}"] >= self.TRIES)
            kinds = {f"{text} {side}" for text, _ in cost for side in SIDES}
            seen = {re.sub(r" #\d+ ", " ", name) for name in visited} & kinds
            rows.append((program, len(names), len(visited & names), in_vain, len(kinds), len(seen)))
        return rows
