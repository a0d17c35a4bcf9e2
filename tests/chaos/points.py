# SPDX-License-Identifier: Apache-2.0
# The kill points of one program on one host: killpoints.c's other side.  And the list of all of them, with what has
# been visited, which outlives a run.
import collections
import dataclasses
import fcntl
import json
import mmap
import os
import random
import re
import struct

_TEXT, _CAPACITY = 64, 32768
_FIELDS = ("count", "deaths", "armed")
DEATHS_MAX = 16
_DEATHS, _DEATH = 8 * len(_FIELDS), 16 + _TEXT  # nth, side, point
_POINTS, _POINT = _DEATHS + DEATHS_MAX * _DEATH, 8 + _TEXT  # process, text
SIDES = ("before", "after")


class Control:
    """`struct control` of killpoints.c, at the path that the program opens."""

    def __init__(self, path):
        with open(path, "a+b") as file:
            os.fchmod(file.fileno(), 0o666)
            file.truncate(_POINTS + _POINT * _CAPACITY)
            self._memory = mmap.mmap(file.fileno(), 0)

    def start(self):
        """Lists from here on, and kills nothing."""
        self.arm()

    def arm(self, *places):
        """Kills a process at the first of these places, counted from here on, another at the second, and so on.  A place:
        (text, its how manyth in that process, side)."""
        for number in range(DEATHS_MAX):  # none, while the others are not all there
            struct.pack_into("<Q", self._memory, _DEATHS + _DEATH * number, 0)
        (armed,) = struct.unpack_from("<Q", self._memory, 8 * _FIELDS.index("armed"))
        struct.pack_into("<3Q", self._memory, 0, 0, 0, armed + 1)
        for number, (text, nth, side) in reversed(list(enumerate(places))):
            at = _DEATHS + _DEATH * number
            struct.pack_into(f"<Q{_TEXT}s", self._memory, at + 8, SIDES.index(side), text.encode())
            struct.pack_into("<Q", self._memory, at, nth)

    def deaths(self):
        """How many of the places have been met."""
        return struct.unpack_from("<Q", self._memory, 8 * _FIELDS.index("deaths"))[0]

    def lives(self):
        """[[text, ...], ...]: the points of each process, from the last start() on; first of all that ran already."""
        (count,) = struct.unpack_from("<Q", self._memory, 0)
        lives, own = [[]], {}  # process -> its life
        for number in range(min(count, _CAPACITY)):
            at = _POINTS + _POINT * number
            (process,) = struct.unpack_from("<Q", self._memory, at)
            text = self._memory[at + 8:at + _POINT].split(b"\0", 1)[0].decode(errors="replace")
            if text:
                own.get(process, lives[0]).append(text)
            else:
                own[process] = []
                lives.append(own[process])
        return lives


def _numbered(texts):
    """[(text, its how manyth), ...]"""
    counts = collections.Counter()
    for text in texts:
        counts[text] += 1
        yield text, counts[text]


def is_of_the_list(nth):
    """Of a point's how manyth in a process's life: each up to 16, then eight in each doubling.  What comes later is the
    same code for another job or call, among more of them: some are enough."""
    return nth % (1 << max(0, nth.bit_length() - 4)) == 0


def _name(place):
    text, nth, side = place
    return f"{text} #{nth} {side}"


# Points that need not be visited: (program, a pattern of the point's name, why not).
EXCUSED = ()


@dataclasses.dataclass
class Row:
    """Of one program; each point has two sides."""

    program: str
    points: int
    visited: int
    in_vain: int
    excused: int
    rare: int  # of the points, those that not every calm run made
    rare_visited: int
    kinds: int
    kinds_visited: int


class Tour:
    """All points of all programs, both sides, and which have been visited.  A point is a text and its how manyth in a
    process.  What has been visited is kept in `path`, if there is one; several runs may share it."""

    TRIES = 8  # after so many in vain a point is let be, until all others have been visited
    FEW = 8
    _VERSION = 3  # of what is kept

    def __init__(self, path, seed, excused=EXCUSED, is_thorough=False):
        self._path, self._random = path, random.Random(seed)
        self._is_thorough = is_thorough  # each how manyth
        self._excused = excused
        self._cost = {}  # program -> {(text, how manyth): so many points a process makes until then}
        self._seen = {}  # program -> {(text, how manyth): in so many calm runs}
        self._runs = {}  # program -> how many calm runs there were
        self._of_a_start = {}  # program -> texts that only a process makes that begins
        self._visited = collections.defaultdict(set)  # program -> {"text #2 before", ...}
        self._missed = collections.Counter()  # "program: text #2 before" -> how often it was meant and not met
        self._read()

    def learn(self, program, calm, again):
        """What each calm run of the script made in a program: the lives of its processes; and each that began with new
        processes, `again`.  What any of them made is listed, with how often it was seen: of a text the first FEW, and
        of what is behind them as many as each run came to that made it, since which node gets a job more is chance."""
        cost, seen = {}, collections.Counter()
        runs = []  # of each {(text, how manyth): so many points a process made until then}
        for lives in (*calm, *again):
            places = {}
            for life in lives:
                for at, point in enumerate(_numbered(life), 1):
                    places[point] = min(at, places.get(point, at))
            runs.append(places)
        most = {}  # text -> the least of what the runs came to
        for places in runs:
            for text, nth in {text: nth for text, nth in sorted(places)}.items():
                most[text] = min(nth, most.get(text, nth))
        for places in runs:
            listed = {point: at for point, at in places.items()
                      if self._is_thorough or point[1] <= max(self.FEW, most[point[0]]) and is_of_the_list(point[1])}  # fmt: skip
            seen.update(listed.keys())
            cost.update((point, min(at, cost.get(point, at))) for point, at in listed.items())
        self._cost[program], self._seen[program] = dict(sorted(cost.items())), seen
        self._runs[program] = len(calm) + len(again)
        running = {text for lives in calm for life in lives for text in life}
        self._of_a_start[program] = {text for text, _ in cost} - running

    def next(self, program, most, room):
        """Up to so many places that were not visited yet, for one process of a daemon after the other, where all of them
        together make no more than `room` points; of any place if all were visited."""
        cost = self._cost[program]
        places = [(*point, side) for point in cost for side in SIDES]
        self._random.shuffle(places)
        visited = self._visited[program]
        left = [place for place in places if _name(place) not in visited]
        left.sort(key=lambda place: (self._is_in_vain(program, _name(place)) or self._is_excused(program, _name(place)),
                                     self._is_rare(program, place[:2])))  # fmt: skip
        # The first to die runs already.
        runs = [place for place in left if place[0] not in self._of_a_start[program]]
        runs = runs or [place for place in places if place[0] not in self._of_a_start[program]]
        chosen = [place for place in runs if cost[place[:2]] <= room][:1] or runs[:1]
        for place in left:
            taken = sum(cost[one[:2]] for one in chosen)
            if taken + cost[place[:2]] <= room and len(chosen) < most and place not in chosen:
                chosen.append(place)
        return chosen[:1] + sorted(chosen[1:], key=lambda place: (self._is_rare(program, place[:2]), cost[place[:2]]))

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
        """[(program, name, what is known of it)] of the points, of one program or of all, that are neither visited nor excused."""
        return [(one, name, f"seen in {self._seen[one][point]} of {self._runs[one]} calm runs, tried {self._missed[f'{one}: {name}']} times in vain")
                for one, cost in self._cost.items() if program in (None, one)
                for point in cost for name in (_name((*point, side)) for side in SIDES)
                if name not in self._visited[one] and not self._is_excused(one, name)]  # fmt: skip

    def is_worth_going_on(self, program=None):
        """Whether any of what is left was not tried in vain often enough."""
        return any(not self._is_in_vain(one, name) for one, name, _ in self.left(program))

    def table(self):
        rows = []
        for program, cost in self._cost.items():
            visited = self._visited[program]
            names = {_name((*point, side)): point for point in cost for side in SIDES}
            not_visited = names.keys() - visited
            excused = {name for name in not_visited if self._is_excused(program, name)}
            rare = {name for name, point in names.items() if self._is_rare(program, point)}
            kinds = {f"{text} {side}" for text, _ in cost for side in SIDES}
            rows.append(Row(program, len(names), len(visited & names.keys()),
                            sum(1 for name in not_visited - excused if self._is_in_vain(program, name)), len(excused),
                            len(rare), len(rare & visited), len(kinds),
                            len({re.sub(r" #\d+ ", " ", name) for name in visited} & kinds)))  # fmt: skip
        return rows

    def _is_rare(self, program, point):
        return self._seen[program][point] < self._runs[program]

    def _is_in_vain(self, program, name):
        return self._missed[f"{program}: {name}"] >= self.TRIES

    def _is_excused(self, program, name):
        return any(program == one and re.search(pattern, name) for one, pattern, _ in self._excused)
