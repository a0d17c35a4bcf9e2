# SPDX-License-Identifier: Apache-2.0
"""The parts of `goals`: what each starts, and how much of it.  A part is called with the rows that are wanted of it, and
gives rows, those that are wanted among them if it could measure them."""

import dataclasses
import itertools
import json
import os
import tempfile
import time

import goal_rows as rows

HERE = os.path.dirname(os.path.realpath(__file__))
SOURCE = os.path.realpath(f"{HERE}/../../..")
BIN = os.path.realpath(os.environ.get("SEKISHO_BIN", f"{SOURCE}/build/release/bin"))
TEST = f"{os.path.dirname(BIN)}/test"


@dataclasses.dataclass
class Effort:
    """How much is measured."""

    rounds: int
    tail_seconds: float
    seeds: int  # of the simulator, in all rounds
    bench_ms: int = 300
    share_flows: int = 16
    share_seconds: float = 60
    incast: dict = dataclasses.field(default_factory=lambda: dict(rows.INCASTS))
    size_seconds: float = 0.1  # each size of alltoall
    ranks_limit_s: int = 600  # one run of a kernel: at 1 % loss TCP takes its time
    messages: int = 200  # to the computing program
    # Below 65,536 / ranks, or the sort of one rank, which says what is right, has other keys.
    gang_iterations: dict = dataclasses.field(default_factory=lambda: {2: 8000, 16: 4000})
    counts: dict = dataclasses.field(default_factory=lambda: {goal: rows.GOALS[goal].must for goal in (*rows.KILLS, *rows.ATTACK)})

    @staticmethod
    def quick():
        few = {**dict.fromkeys(rows.KILLS, 30), **dict.fromkeys(rows.ATTACK, 20_000)}
        return Effort(1, 0.1, 8, 20, 4, 1, dict.fromkeys(rows.INCASTS, 8), 0.01, 20, 20, {2: 1000, 16: 100}, few)

    def __str__(self):
        return (f"sekisho-pm-bench {self.bench_ms / 1000:g} s a round, tails {self.tail_seconds:g} s; share {2 * self.share_flows} flows, "
                f"{self.share_seconds:g} s; incast {', '.join(map(str, self.incast.values()))} rounds a turn; alltoall "
                f"{self.size_seconds:g} s a size; gang {', '.join(map(str, self.gang_iterations.values()))} sorts; "
                f"{self.counts[list(rows.KILLS)[0]]:,} kills; {self.seeds:,} seeds")  # fmt: skip


def json_lines(text):
    """Those that were not cut off in the middle."""
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


class Parts:
    def __init__(self, processes, effort):
        self.processes, self.effort = processes, effort
        self.all = {
            **{part: (lambda wanted, part=part: self.bench(wanted, part)) for part in rows.PLACES},
            "computing": self.computing, "share": self.share, "incast": self.incast, "alltoall": self.alltoall,
            "kernels": lambda wanted: self.kernels(wanted, 0), "kernels-loss": lambda wanted: self.kernels(wanted, 1),
            "kills": self.kills, "gang": self.gang, "attack": self.attack, "simulator": self.simulator,
        }  # fmt: skip

    @staticmethod
    def goals():
        """Part: its rows."""
        in_place = lambda place: [goal for goal, bound in rows.GOALS.items() if bound is None and goal.endswith(f", {place}")]
        return {**{part: in_place(place) for part, place in rows.PLACES.items()}, "computing": rows.COMPUTING, "share": rows.SHARE,
                "incast": rows.INCAST, "alltoall": rows.ALLTOALL, "kernels": rows.kernels(0), "kernels-loss": rows.kernels(1),
                "kills": {**rows.KILLS, **rows.KILL_TIMES}, "gang": {**rows.STOPS, **rows.GANG}, "attack": rows.ATTACK, "simulator": rows.SIMULATOR}  # fmt: skip

    def script(self, name, *words, limit_s):
        return self.processes.run([f"{HERE}/{name}", *words], limit_s, SEKISHO_BIN=BIN)

    def gtest(self, name, only, limit_s, **environment):
        """How it ended, and of each of its tests what failed."""
        with tempfile.TemporaryDirectory() as folder:
            done = self.processes.run([f"{TEST}/{name}", f"--gtest_filter={only}", f"--gtest_output=json:{folder}/report"], limit_s,
                                      SEKISHO_BIN=BIN, **{key: str(value) for key, value in environment.items()})  # fmt: skip
            try:
                with open(f"{folder}/report") as file:
                    return done, rows.gtest_failures(json.load(file))
            except (OSError, ValueError):  # it did not come to its end
                return done, {}

    def bench(self, wanted, part):
        """All rows in one run, or a run for each of a few."""
        effort, place, got, why = self.effort, rows.PLACES[part], {}, ""
        whats = [goal.removesuffix(f", {place}") for goal in wanted]
        # Paced rows last as long as a tail, PM's and TCP's; there are three kinds, by their loss.
        limit = 600 + 4 * (effort.rounds + 1) * 2 * (40 * effort.bench_ms / 1000 + 3 * effort.tail_seconds)
        for what in [""] if set(wanted) >= set(self.goals()[part]) else whats:
            if f"{what}, {place}" not in got:  # else it came with one whose words it has
                words = ["--against", "tcp", "--json", "--rounds", effort.rounds, "--ms", effort.bench_ms,
                         "--tail-seconds", effort.tail_seconds, "--only", what, *(["--veth"] if part == "veth" else [])]  # fmt: skip
                done = self.processes.run([f"{BIN}/sekisho-pm-bench", *words], limit)
                got |= {row.goal: row for row in (rows.bench_row(line, place) for line in json_lines(done.out))}
                why = why or done.why
        why = why or "sekisho-pm-bench leaves it out here: without --json it says what it needs"
        return [*got.values(), *(rows.missing(goal, why) for goal in wanted if goal not in got)]

    def computing(self, _):
        messages = self.effort.messages
        done = [self.gtest("pm_daemon_test", "*AProgramThatComputesAcknowledges*", 60 + messages, PMD_TEST_ROUNDS=messages)[0]
                for _ in range(self.effort.rounds)]  # fmt: skip
        return rows.computing_rows([one.out for one in done], self.effort.rounds, self.first_why(done))

    @staticmethod
    def first_why(done):
        return next((one.why for one in done if one.why), "")

    def share(self, wanted):
        effort, done = self.effort, []
        rtts = [rtt for rtt in rows.RTTS_MS if any(goal.startswith(rows.share_name(rtt, "")) for goal in wanted)]
        for _, rtt in itertools.product(range(effort.rounds), rtts):
            path = ["--policer"] if rtt is rows.POLICER else ["--rtt", rtt]
            done.append(self.script("share", "--json", *path, "--flows", effort.share_flows, "--seconds", effort.share_seconds,
                                    limit_s=120 + 3 * effort.share_seconds))  # fmt: skip
        return rows.share_rows([line for one in done for line in json_lines(one.out)], effort.rounds, self.first_why(done))

    def incast(self, wanted):
        got = []
        for (senders, block), count in self.effort.incast.items():
            if any(goal.startswith(rows.incast_name(senders, block, "")) for goal in wanted):
                # TCP may take a time-out in each round.
                done = self.script("incast", "--json", "--senders", senders, "--block", block, "--rounds", count,
                                   "--turns", self.effort.rounds, limit_s=self.effort.rounds * (120 + 2 * count))  # fmt: skip
                got += rows.incast_rows((senders, block), json_lines(done.out), self.effort.rounds, done.why)
        return got

    def ranks(self, *words, limit_s):
        """A run of tests/bench/pm/bench: how it ended, and its rows."""
        with tempfile.TemporaryDirectory() as folder:
            done = self.script("bench", *words, "--rounds", self.effort.rounds, "--limit", self.effort.ranks_limit_s,
                               "--json", f"{folder}/rows", limit_s=limit_s)  # fmt: skip
            try:
                with open(f"{folder}/rows") as file:
                    return done, json.load(file)
            except (OSError, ValueError):
                return done, []

    def alltoall(self, _):
        done, lines = self.ranks("collectives", "--collectives", "alltoall", "--ranks", 16, "--seconds", self.effort.size_seconds,
                                 limit_s=60 + 3 * self.effort.rounds * self.effort.ranks_limit_s)  # fmt: skip
        return rows.alltoall_rows(lines, self.effort.rounds, done.why or (done.complaints or [""])[-1])

    def kernels(self, wanted, loss):
        """A run for each class and number of ranks: one that hangs takes no other's results along."""
        got, rounds = [], self.effort.rounds
        for size_class, ranks in itertools.product(rows.CLASSES, rows.RANKS):
            names = {rows.kernel_name(kernel, size_class, ranks, loss): kernel for kernel in rows.KERNELS}
            names = {goal: kernel for goal, kernel in names.items() if goal in wanted}
            if names:
                done, lines = self.ranks("kernels", "--kernels", ",".join(names.values()), "--class", size_class, "--ranks", ranks,
                                         "--loss", loss, limit_s=60 + 2 * len(names) * rounds * self.effort.ranks_limit_s)  # fmt: skip
                said = lambda kernel: next((line for line in done.complaints if f"['{kernel}'" in line), "")
                got += rows.kernel_rows(names, lines, rounds, {goal: done.why or said(kernel) for goal, kernel in names.items()})
        return got

    def kills(self, wanted):
        tests = dict(zip(rows.KILLS, ("EverythingThatAKilledProgramSentArrives", "ProgramsGoOnWithoutADaemonAndTheNextOneAdoptsThem")))
        got = []
        for goal in tests:
            if goal in wanted or rows.SILENCES[goal] in wanted or (rows.FREED in wanted and not got):
                count = self.effort.counts[goal]
                done, failures = self.gtest("pm_daemon_test", f"*{tests[goal]}", 60 + 2 * count, PMD_TEST_ROUNDS=count)
                got += [rows.tried(goal, count, failures, tests[goal], done.why), *rows.kill_rows(goal, done.out, count, done.why)]
        return got

    def gang(self, wanted):
        got, answers, whys = [], [], []
        lasts = lambda nodes: 60 + self.effort.rounds * (60 + 0.3 * self.effort.gang_iterations[nodes])
        for nodes, iterations in self.effort.gang_iterations.items():
            for place, where in zip(rows.PLACES.values(), ("lo", "veth")):
                named = (f"{nodes} nodes, {place}", f"{nodes} ranks in slices, {place}", *(("answers right",) if nodes == 16 else ()))
                if any(goal.endswith(named) for goal in wanted):
                    done = self.script("gang", "--json", "--ranks", nodes, "--where", where, "--iterations", iterations,
                                       "--rounds", self.effort.rounds, limit_s=lasts(nodes))  # fmt: skip
                    lines = json_lines(done.out)
                    why = "" if len(lines) == self.effort.rounds else done.why  # who has wrong answers fails at the end
                    got += rows.gang_rows(nodes, place, lines, self.effort.rounds, why)
                    answers += lines if nodes == 16 else []
                    whys += [why] if why and nodes == 16 else []
        return [*got, rows.answers_row(answers, whys[0] if whys else "")]

    def attack(self, wanted):
        kinds = dict(zip(rows.ATTACK, (("Random", "RANDOM"), ("MutatedGenuine", "MUTATED"), ("Replayed", "REPLAYED"))))
        got = []
        for goal in wanted:
            count, (kind, setting) = self.effort.counts[goal], kinds[goal]
            test = f"Of{kind}DatagramsNoneIsAccepted"
            done, failures = self.gtest("pm_attack_test", f"*{test}", 600 + count / 20_000, **{f"PM_ATTACK_{setting}": count})
            got.append(rows.tried(goal, count, failures, test, done.why))
        return got

    def simulator(self, _):
        """Other seeds in each run of ours."""
        first, each = int(time.time()) * 1000, max(1, self.effort.seeds // self.effort.rounds)
        runs, failure, why = [], "", ""
        for turn in range(self.effort.rounds):
            done, failures = self.gtest("pm_sim_test", "*SixteenNodesSurviveEveryFault", 120 + each / 2,
                                        PM_SIM_FIRST=first + turn * each, PM_SIM_SEEDS=each, PM_SIM_NODES=16)  # fmt: skip
            runs.append((done.out, done.user_s, done.system_s))
            failure = failure or next(filter(None, failures.values()), "")
            why = why or ("" if failures else done.why)
        return rows.simulator_rows(runs, self.effort.rounds, failure, why, first)
