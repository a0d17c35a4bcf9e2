# SPDX-License-Identifier: Apache-2.0
"""The goals of PM in the order of their table: bounds, verdicts, and the rows that follow from what was measured.  No I/O."""

import dataclasses
import math
import re
import statistics

STRETCH, MET, MISSED, NOT_MEASURED = "stretch", "met", "MISSED", "not measured"


@dataclasses.dataclass(frozen=True)
class Bound:
    """Of a value: where it must be, and where it should be at best (None: nothing is said)."""

    must: tuple
    stretch: tuple | None
    unit: str

    def verdict(self, value):
        is_in = lambda bounds: bounds is not None and bounds[0] <= value <= bounds[1]
        return STRETCH if is_in(self.stretch) else MET if is_in(self.must) else MISSED

    def __str__(self):
        least, most = self.must
        text = f"<= {most:g}" if least == -math.inf else f">= {least:g}" if most == math.inf else f"{least:g} to {most:g}"
        return f"{text} {self.unit}".strip()


@dataclasses.dataclass(frozen=True)
class Count:
    """How many have to go well, with not one failure."""

    must: int
    what: str

    def __str__(self):
        return f"{self.must:,} {self.what}"


@dataclasses.dataclass
class Row:
    goal: str
    must: str = "-"
    measured: str = "-"
    verdict: str = NOT_MEASURED
    why: str = ""
    values: tuple = ()  # smallest, median, largest


def at_most(must, stretch=None, unit="x TCP"):
    return Bound((-math.inf, must), None if stretch is None else (-math.inf, stretch), unit)


def at_least(must, stretch=None, unit="x TCP"):
    return Bound((must, math.inf), None if stretch is None else (stretch, math.inf), unit)


# The goals.  What sekisho-pm-bench measures it judges, too: no bound here.
PLACES = {"loopback": "lo", "veth": "veth"}  # part: the end of its rows' names


def on_both(*names):
    return {f"{name}, {place}": None for name in names for place in PLACES.values()}


LOSSES = ("0.1", "1", "5")
POLICER = None  # in the place of a round trip: a bottleneck without a queue
RTTS_MS = (0.1, 1, 20, POLICER)
INCASTS = {(16, 32): 200, (64, 4): 150, (64, 32): 60}  # senders, KiB: rounds of a turn
SIZES = [4 << i for i in range(19)]  # to 1 MiB
KERNELS = {"cg": (1.00, 0.85), "ft": (0.95, 0.80), "is": (0.95, 0.80)}
CLASSES, RANKS = ("S", "W"), (4, 8, 16)

COMPUTING = {"computing program, answer p90": at_most(0.1, None, "ms"), "computing program, answer p99": at_most(4, 1, "ms")}


def share_name(rtt_ms, what):
    return f"16 PM + 16 TCP, {'policer' if rtt_ms is POLICER else f'RTT {rtt_ms:g} ms'}, {what}"


def incast_name(senders, block, what):
    return f"incast {senders} x {block} KiB, {what}"


def kernel_name(kernel, size_class, ranks, loss):
    return f"{kernel.upper()} {size_class}, {ranks} ranks" + (f", {loss:g} % loss" if loss else "")


def kernels(loss):
    bound = lambda kernel: at_most(0.3, 0.05) if loss else at_most(*KERNELS[kernel])
    return {kernel_name(kernel, size_class, ranks, loss): bound(kernel)
            for kernel in KERNELS for size_class in CLASSES for ranks in RANKS}  # fmt: skip


SHARE = {share_name(rtt, what): bound for rtt in RTTS_MS for what, bound in
         (("part of PM", Bound((0.35, 0.65), (0.45, 0.55), "of both")), ("Jain of PM", at_least(0.95, 0.98, "")))}  # fmt: skip
INCAST = {incast_name(*size, what): bound for size in INCASTS for what, bound in
          (("goodput", at_least(0.95, 1.3)), ("p99 of its median", at_most(2, None, "x its median")),
           ("p99 of TCP's", at_most(0.2, 0.05)))}  # fmt: skip
ALLTOALL = {"alltoall 16 ranks, slowest size, time": at_most(1.25), "alltoall 16 ranks, deepest dip": at_most(20, None, "%"),
            "alltoall 16 ranks, speed, all sizes": at_least(1.2, 1.5)}  # fmt: skip
KILLS = {"program killed, nothing lost or changed": Count(1000, "kills"), "daemon killed and restarted": Count(1000, "kills")}
FREED, SILENCES = "killed program, context freed", {goal: f"{goal.split()[0]} killed, longest silence of a peer" for goal in KILLS}
KILL_TIMES = {FREED: at_most(1, None, "s"), **dict.fromkeys(SILENCES.values(), at_most(10, 2, "ms"))}
STOPS = {f"{what} {nodes} nodes, {place}": bound for nodes, must, stretch in ((2, 0.5, 0.1), (16, 3, 1)) for place in PLACES.values()
         for what, bound in (("stop and flush, p99,", at_most(must, stretch, "ms")), ("whole switch,", at_most(5, 2, "ms")))}  # fmt: skip
GANG = {**{f"two jobs of 16 ranks in slices, {place}": at_most(1.10, 1.05, "x in turn") for place in PLACES.values()},
        "two jobs in slices, answers right": Count(10_000, "switches")}  # fmt: skip
ATTACK = {f"bad packets, {kind}, accepted none": Count(count, "datagrams")
          for kind, count in (("random", 10**8), ("mutated", 10**6), ("replayed", 10**5))}  # fmt: skip
SIMULATOR = {"simulator, 16 nodes, every fault": Count(10**6, "seeds"), "simulator, speed": at_least(2, 10, "M events/s")}

GOALS = {
    **on_both("round trip 8 B, spinning", "round trip 8 B, sleeping", "round trip 8 KiB, spinning", "round trip 8 B, one core, adaptive",
              "1 KiB every 50 us, p99", "1 KiB every 50 us, p99.9", "1 KiB every 50 us, longest"),
    **COMPUTING,
    **on_both("bandwidth 64 KiB", "bandwidth 64 KiB, offloads off", "bandwidth 1 KiB", "bandwidth 8 KiB", "messages of 64 B",
              "messages of 64 B, 64 peers in turn", "processor time, 64 KiB"),
    # The goal of a payload MAC is half of the bandwidth: the others are of headers only. Above, with both.
    **on_both("round trip 8 KiB, header MAC", "64 KiB, header MAC", "64 KiB, offloads off, header MAC", "8 KiB, header MAC",
              "processor time, 64 KiB, header MAC", "header MAC on, of off, 64 KiB", "payload MAC on, of off, 64 KiB"),
    **on_both(*(f"8 KiB at {loss} % loss" for loss in LOSSES), *(f"8 KiB at {loss} % loss, of BBR" for loss in LOSSES), *(f"mean ping-pong 64 B at {loss} % loss" for loss in LOSSES),
              *(f"1 KiB every 50 us, p99 at {loss} % loss" for loss in LOSSES[1:])),
    **SHARE, **INCAST, **on_both(*(incast_name(*size, what) for size in INCASTS for what in ("goodput", "p99 of its median", "p99"))), **ALLTOALL, **kernels(0), **kernels(1),
    **on_both("memory of a peer, 1,000 silent", "memory of a peer, after a message", "64 B to 255 peers and back",
              "first message to a new peer", "first message to one, sleeping"),
    **KILLS, **KILL_TIMES,
    **STOPS, **GANG,
    **on_both("bad packets accepted"), **ATTACK, **on_both("attack on 64 KiB, of one beside it", "attack on 64 KiB, of none"),
    **SIMULATOR,
}  # fmt: skip


# Rows.
def spread(values):
    return (min(values), statistics.median(values), max(values)) if values else ()


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def numbers(low_middle_high):
    return number(low_middle_high[1]) if len(set(low_middle_high)) == 1 else " / ".join(map(number, low_middle_high))


def missing(goal, why):
    """Nothing came of it."""
    return Row(goal, str(GOALS.get(goal) or "-"), why=why or "no result")


def judge(goal, values, rounds, why="", note="", pick=statistics.median, count=None):
    """`pick` of the values is judged, if they are of all rounds (`count`: of so many, if not one each)."""
    if not values:
        return missing(goal, why)
    bound, low_middle_high = GOALS[goal], spread(values)
    count = len(values) if count is None else count
    row = Row(goal, str(bound), numbers(low_middle_high) + (note and f" ({note})"), bound.verdict(pick(values)), values=low_middle_high)
    if count < rounds:
        row.verdict, row.why = NOT_MEASURED, f"{count} of {rounds} rounds" + (why and f": {why}")
    return row


def counted(goal, done, failure="", why="", note=""):
    """One failure is enough to miss it, and fewer than wanted say nothing."""
    wanted = GOALS[goal]
    if failure or done:
        measured = f"FAILED, of {done:,} {wanted.what}" if failure else f"{done:,} {wanted.what}, none failed"
        row = Row(goal, str(wanted), measured + (note and f" ({note})"), MISSED if failure else MET, failure, (done, done, done))
        if not failure and (done < wanted.must or why):
            row.verdict, row.why = NOT_MEASURED, why or f"{done:,} of {wanted.must:,}"
        return row
    return missing(goal, why)


def bench_row(line, place):
    """A line of sekisho-pm-bench, as it was judged there."""
    keys = list(line)
    other = keys[keys.index("pm") + 1] if line["judged"] == "ratio" else ""
    unit = {"tcp": "x TCP", "bbr": "x BBR", "pm_without": "x PM without", "pm_beside": "x PM beside"}.get(other, other and f"x {other}")
    values = (line["min"], line["median"], line["max"])
    return Row(f"{line['what']}, {place}", f"{line['bound']} {line['must']:g} {unit or line['unit']}".strip(),
               numbers(values), line["verdict"], values=values)  # fmt: skip


def computing_rows(texts, rounds, why):
    found = [re.search(r"acknowledged after us: p50 \S+ p90 (\S+) p99 (\S+),", text) for text in texts]
    of = lambda group: [float(match[group]) / 1000 for match in found if match]
    return [judge(goal, of(group), rounds, why) for goal, group in zip(COMPUTING, (1, 2))]


def kill_rows(goal, text, kills, why):
    """The longest of what a test of kills saw."""
    rows = []
    for row, what, unit in ((FREED, "contexts freed after", 1e6), (SILENCES[goal], "longest silences after a kill", 1e3)):
        found = re.search(rf"(\d+) {what} us: p50 (\S+) p90 \S+ p99 \S+, longest (\S+)", text)
        if found or row != FREED or goal == next(iter(KILLS)):
            median, longest = (float(found[group]) / unit for group in (2, 3)) if found else (0, 0)
            rows.append(judge(row, [longest] if found else [], kills, why, f"median {number(median)}", count=int(found[1]) if found else 0))
    return rows


def share_rows(lines, rounds, why):
    rows = []
    for rtt in RTTS_MS:
        mine = [line for line in lines if line["rtt_ms"] == rtt]
        dropped = [line["dropped"] for line in mine]
        part = judge(share_name(rtt, "part of PM"), [line["pm_part"] for line in mine], rounds, why)
        fair = judge(share_name(rtt, "Jain of PM"), [line["pm_jain"] for line in mine], rounds, why)
        for row in (part, fair):
            if mine and min(dropped) == 0:
                row.verdict, row.why = NOT_MEASURED, "the bottleneck dropped nothing: nobody had to give way"
        if mine:
            part.measured += f" (dropped {number(statistics.median(dropped))})"
        rows += [part, fair]
    return rows


def incast_rows(size, lines, turns, why):
    """Turns of PM and of TCP, one after the other."""
    pm, tcp = ([line for line in lines if line["kind"] == kind] for kind in ("pm", "tcp"))
    pairs = list(zip(pm, tcp))
    return [judge(incast_name(*size, "goodput"), [p["goodput_mbps"] / t["goodput_mbps"] for p, t in pairs], turns, why),
            judge(incast_name(*size, "p99 of its median"), [p["p99_ms"] / p["median_ms"] for p in pm], turns, why),
            judge(incast_name(*size, "p99 of TCP's"), [p["p99_ms"] / t["p99_ms"] for p, t in pairs], turns, why)]  # fmt: skip


def dips(speeds):
    """(how much slower than its predecessor, of it; size before, size) of each size, the deepest dip first."""
    pairs = zip(sorted(speeds.items()), sorted(speeds.items())[1:])
    return sorted(((max(0.0, 1 - speed / last), size_before, size) for (size_before, last), (size, speed) in pairs), reverse=True)


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1024 else f"{size} B"


def alltoall_rows(lines, rounds, why):
    by_size = {line["key"]: line for line in lines if line["rounds"] >= rounds}
    slowest, dip, speed = ALLTOALL
    if by_size.keys() != set(SIZES):
        return [missing(goal, f"{len(by_size)} of {len(SIZES)} sizes" + (why and f": {why}")) for goal in ALLTOALL]
    ratios = {size: line["ratio"][1] for size, line in by_size.items()}
    worst = max(ratios, key=ratios.get)
    depth, before, after = dips({size: size / line["pm"] for size, line in by_size.items()})[0]
    return [judge(slowest, list(ratios.values()), 1, note=size_text(worst), pick=max),
            judge(dip, [100 * depth], 1, note=f"{size_text(before)} to {size_text(after)}" if depth else ""),
            judge(speed, [1 / ratio for ratio in ratios.values()], 1)]  # fmt: skip


def kernel_rows(goals, lines, rounds, why):
    """`why`: of each goal that has no result, or too few."""
    by_goal = {kernel_name(line["of"], line["key"], line["ranks"], line["loss"]): line for line in lines}
    rows = []
    for goal in goals:
        line = by_goal.get(goal)
        rows.append(judge(goal, line["ratio"] if line else [], rounds, why.get(goal, ""), count=line and line["rounds"]))
        if line and not line["same_results"]:
            rows[-1].verdict, rows[-1].why = MISSED, "the results differ"
    return rows


def gtest_failures(report):
    """Of gtest's JSON report: each test that ran and what failed in it, "" if nothing."""
    return {test["name"]: " ".join(test["failures"][0]["failure"].split()) if "failures" in test else ""
            for suite in report["testsuites"] for test in suite["testsuite"]}  # fmt: skip


def tried(goal, count, failures, test, why):
    """By a test that was told to try so often."""
    return counted(goal, count, failures[test]) if test in failures else missing(goal, why)


def gang_rows(nodes, place, lines, rounds, why):
    stopped = [line for line in lines if line["switches"] > 0]  # else its times are 0
    stops = sum(line["switches"] for line in lines)
    late = sum(line["late"] for line in lines)
    note = f"{stops:,} stops" + (f", {late} timed out" if late else "")
    why = why or ("the jobs were over before a slice was" if len(stopped) < len(lines) else "")
    rows = [judge(f"stop and flush, p99, {nodes} nodes, {place}", [line["stop_us"]["p99"] / 1000 for line in stopped], rounds, why, note),
            judge(f"whole switch, {nodes} nodes, {place}", [line["switch_us"]["p50"] / 1000 for line in stopped], rounds, why,
                  f"p99 {number(max((line['switch_us']['p99'] for line in stopped), default=0) / 1000)}")]  # fmt: skip
    if nodes == 16:
        rows.append(judge(f"two jobs of 16 ranks in slices, {place}", [line["ratio"] for line in stopped], rounds, why))
    return rows


def answers_row(lines, why):
    wrong = sum(line["wrong"] for line in lines)
    return counted("two jobs in slices, answers right", sum(line["switches"] for line in lines),
                   f"{wrong} answers of {4 * len(lines)} are wrong" if wrong else "", why)  # fmt: skip


def simulator_rows(runs, rounds, failure, why, first):
    """`runs`: what each said, and its seconds of processor in the program and in the kernel."""
    found = [(re.search(r"(\d+) seeds, (\d+) events", text), user, system) for text, user, system in runs]
    found = [(int(match[1]), int(match[2]), user, system) for match, user, system in found if match]
    seeds, speed = SIMULATOR
    rates = [events / user / 1e6 for _, events, user, _ in found if user > 0]
    both = [events / (user + system) / 1e6 for _, events, user, system in found if user > 0]
    return [counted(seeds, sum(one[0] for one in found), failure, why, f"from {first}"),
            judge(speed, rates, rounds, why or failure,
                  f"{number(statistics.median(both))} with the kernel's time" if both else "")]  # fmt: skip
