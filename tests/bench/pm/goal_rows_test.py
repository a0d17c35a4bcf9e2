#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
import os
import re
import unittest

import goal_parts
import goal_rows as rows

SPREAD = {"min": 0.9, "median": 1.2, "max": 2, "bound": "<=", "must": 1, "stretch": 0.85, "verdict": "MISSED", "rounds": 5}


def verdicts(some):
    return {row.goal: row.verdict for row in some}


def gang_line(switches=100, p99_us=2000, ratio=1.2, wrong=0):
    times = {"p50": p99_us / 2, "p99": p99_us, "max": p99_us}
    return {"switches": switches, "late": 0, "stop_us": times, "switch_us": times, "ratio": ratio, "wrong": wrong}


class Bounds(unittest.TestCase):
    def test_a_value_at_the_bound_meets_it_and_one_beyond_misses_it(self):
        for bound, best, good, bad in ((rows.at_most(1, 0.5), 0.5, 1, 1.01), (rows.at_least(2, 10), 10, 2, 1.99),
                                       (rows.Bound((0.35, 0.65), (0.45, 0.55), ""), 0.55, 0.65, 0.66)):  # fmt: skip
            self.assertEqual([bound.verdict(value) for value in (best, good, bad)], [rows.STRETCH, rows.MET, rows.MISSED], bound)

    def test_too_much_for_one_half_is_missed_as_well_as_too_little(self):
        fair = rows.Bound((0.35, 0.65), None, "")
        self.assertEqual([fair.verdict(part) for part in (0.34, 0.35, 0.66)], [rows.MISSED, rows.MET, rows.MISSED])

    def test_without_a_stretch_nothing_reaches_it(self):
        self.assertEqual(rows.at_most(2).verdict(0), rows.MET)

    def test_says_what_must_be(self):
        self.assertEqual([str(bound) for bound in (rows.at_most(0.5, 0.1, "ms"), rows.at_least(3), rows.Bound((0.35, 0.65), None, ""))],
                         ["<= 0.5 ms", ">= 3 x TCP", "0.35 to 0.65"])  # fmt: skip


class Judging(unittest.TestCase):
    GOAL = "computing program, answer p99"  # at most 4, at best 1 ms

    def test_the_median_is_judged_neither_the_best_nor_the_worst_round(self):
        row = rows.judge(self.GOAL, [9, 0.1, 3, 2, 9.5], 5)
        self.assertEqual((row.verdict, row.measured, row.values), (rows.MET, "0.1 / 3 / 9.5", (0.1, 3, 9.5)))

    def test_fewer_rounds_than_wanted_are_shown_but_not_judged(self):
        row = rows.judge(self.GOAL, [0.1, 0.1], 5, "killed")
        self.assertEqual((row.verdict, row.why, row.measured), (rows.NOT_MEASURED, "2 of 5 rounds: killed", "0.1"))

    def test_nothing_is_not_a_zero(self):
        row = rows.judge(self.GOAL, [], 5, "it is not built")
        self.assertEqual((row.verdict, row.why, row.must), (rows.NOT_MEASURED, "it is not built", "<= 4 ms"))


class Counting(unittest.TestCase):
    GOAL = "daemon killed and restarted"

    def test_as_many_as_wanted_without_a_failure_meet_it(self):
        self.assertEqual(rows.counted(self.GOAL, 1000).verdict, rows.MET)

    def test_fewer_say_nothing(self):
        row = rows.counted(self.GOAL, 999)
        self.assertEqual((row.verdict, row.why), (rows.NOT_MEASURED, "999 of 1,000"))

    def test_one_failure_misses_it_however_few_there_were(self):
        for count in (0, 1, 1000):
            self.assertEqual(rows.counted(self.GOAL, count, "lost").verdict, rows.MISSED)

    def test_a_test_that_did_not_come_to_its_end_shows_nothing(self):
        self.assertEqual(rows.tried(self.GOAL, 1000, {}, "Kills", "signal 11").why, "signal 11")

    def test_of_a_test_programs_report_each_tests_first_failure_is_taken(self):
        failed = {"name": "B", "failures": [{"failure": "a.cc:1\n  wrong"}, {"failure": "later"}]}
        report = {"testsuites": [{"testsuite": [{"name": "A"}, failed]}]}
        self.assertEqual(rows.gtest_failures(report), {"A": "", "B": "a.cc:1 wrong"})


class Bench(unittest.TestCase):
    def test_is_taken_as_it_was_judged_there(self):
        row = rows.bench_row({"what": "round trip", "unit": "us", "pm": 3, "tcp": 2, "judged": "ratio", **SPREAD, "load": 1}, "veth")
        self.assertEqual((row.goal, row.must, row.measured, row.verdict), ("round trip, veth", "<= 1 x TCP", "0.9 / 1.2 / 2", "MISSED"))

    def test_a_ratio_is_to_what_was_beside_it_and_a_value_has_its_unit(self):
        line = {"what": "attack", "unit": "MB/s", "pm": 3, "pm_beside": 2, "bad_packets": 7, "judged": "ratio", **SPREAD}
        self.assertEqual(rows.bench_row(line, "lo").must, "<= 1 x PM beside")
        self.assertEqual(rows.bench_row({**line, "judged": "pm"}, "lo").must, "<= 1 MB/s")


class Computing(unittest.TestCase):
    def test_percentiles_are_read_in_milliseconds_from_what_the_test_prints(self):
        said = "64 messages acknowledged after us: p50 77.3 p90 90.5 p99 4100.0, longest 5000.0\n"
        self.assertEqual(verdicts(rows.computing_rows([said], 1, "")),
                         {"computing program, answer p90": rows.MET, "computing program, answer p99": rows.MISSED})  # fmt: skip


class Share(unittest.TestCase):
    def rows(self, **more):
        lines = [{"rtt_ms": rtt, "pm_part": 0.5, "pm_jain": 0.97, "dropped": 8, **more} for rtt in rows.RTTS_MS]
        return rows.share_rows(lines, 1, "")

    def test_halves_and_evenness_are_rows_of_their_own_for_each_round_trip(self):
        self.assertEqual(verdicts(self.rows()), {goal: rows.STRETCH if goal.endswith("part of PM") else rows.MET for goal in rows.SHARE})
        self.assertEqual(set(verdicts(self.rows(pm_part=0.3, pm_jain=0.9)).values()), {rows.MISSED})

    def test_where_nothing_was_dropped_nobody_was_fair(self):
        self.assertEqual(set(verdicts(self.rows(dropped=0)).values()), {rows.NOT_MEASURED})


class Incast(unittest.TestCase):
    def test_each_turn_of_pm_is_compared_with_the_one_of_tcp_after_it(self):
        turn = lambda kind, goodput, p99: {"kind": kind, "goodput_mbps": goodput, "p99_ms": p99, "median_ms": 20}
        lines = [turn("pm", 100, 30), turn("tcp", 50, 300), turn("pm", 10, 30), turn("tcp", 10, 200)]
        goodput, of_median, of_tcp = rows.incast_rows((16, 32), lines, 2, "")
        self.assertEqual((goodput.values, goodput.verdict), ((1, 1.5, 2), rows.STRETCH))
        self.assertEqual((of_median.measured, of_median.verdict), ("1.5", rows.MET))
        self.assertEqual((of_tcp.measured, of_tcp.verdict), ("0.1 / 0.125 / 0.15", rows.MET))


class Alltoall(unittest.TestCase):
    def lines(self, **pm_of):
        """TCP as fast as PM, whose time grows with the size."""
        times = {size: pm_of.get(f"at{size}", 100 + size / 10) for size in rows.SIZES}
        return [{"key": size, "pm": time, "ratio": [0.7, 0.8, 0.9], "rounds": 3} for size, time in times.items()]

    def test_a_dip_is_a_loss_of_bytes_a_second_from_one_size_to_the_next(self):
        self.assertEqual(rows.dips({4: 10, 8: 20, 16: 15, 32: 15}), [(0.25, 8, 16), (0.0, 16, 32), (0.0, 4, 8)])

    def test_smooth_and_faster_at_all_sizes_is_met(self):
        self.assertEqual(verdicts(rows.alltoall_rows(self.lines(), 3, "")), dict.fromkeys(rows.ALLTOALL, rows.MET))

    def test_one_slow_size_is_enough_to_miss_two_goals_but_not_the_median(self):
        lines = self.lines(at65536=20_000)
        next(line for line in lines if line["key"] == 65536)["ratio"] = [1, 2, 3]
        slowest, dip, speed = rows.alltoall_rows(lines, 3, "")
        self.assertEqual((slowest.verdict, dip.verdict, speed.verdict), (rows.MISSED, rows.MISSED, rows.MET))
        self.assertIn("64 KiB", slowest.measured)
        self.assertIn("32 KiB to 64 KiB", dip.measured)

    def test_a_size_that_is_missing_might_be_the_slow_one(self):
        for lines in (self.lines()[1:], [{**self.lines()[0], "rounds": 2}, *self.lines()[1:]]):
            got = rows.alltoall_rows(lines, 3, "time-out")
            self.assertEqual({(row.verdict, row.why) for row in got}, {(rows.NOT_MEASURED, "18 of 19 sizes: time-out")})


class Kernels(unittest.TestCase):
    LINE = {"of": "ft", "key": "W", "ranks": 8, "loss": 1.0, "ratio": [0.1, 0.25, 0.5], "rounds": 3, "same_results": True}
    GOAL = "FT W, 8 ranks, 1 % loss"

    def row(self, **more):
        return rows.kernel_rows([self.GOAL], [{**self.LINE, **more}], 3, {self.GOAL: "tcp: time-out"})[0]

    def test_finds_its_row_and_judges_the_median(self):
        self.assertEqual((self.row().verdict, self.row(loss=0.0).why), (rows.MET, "tcp: time-out"))

    def test_a_wrong_result_is_no_speed(self):
        self.assertEqual(self.row(same_results=False).verdict, rows.MISSED)

    def test_a_round_without_tcp_is_missing(self):
        self.assertEqual((self.row(rounds=2).verdict, self.row(rounds=2).why), (rows.NOT_MEASURED, "2 of 3 rounds: tcp: time-out"))


class Gang(unittest.TestCase):
    def test_stops_of_few_and_of_many_nodes_have_their_own_bounds(self):
        for nodes, verdict in ((2, rows.MISSED), (16, rows.MET)):
            self.assertEqual(rows.gang_rows(nodes, "lo", [gang_line()], 1, "")[0].verdict, verdict)

    def test_jobs_that_were_never_stopped_did_not_stop_in_no_time(self):
        got = rows.gang_rows(16, "veth", [gang_line(switches=0, p99_us=0)], 1, "")
        self.assertEqual(set(verdicts(got).values()), {rows.NOT_MEASURED})

    def test_one_wrong_answer_misses_it(self):
        lines = [gang_line(switches=6000), gang_line(switches=6000)]
        self.assertEqual(rows.answers_row(lines, "").verdict, rows.MET)
        self.assertEqual(rows.answers_row([*lines, gang_line(wrong=1)], "").verdict, rows.MISSED)
        self.assertEqual(rows.answers_row(lines[:1], "").verdict, rows.NOT_MEASURED)


class Simulator(unittest.TestCase):
    SAID = "100 seeds, 3000000 events, 5 messages, 1 times the job was stopped\n"

    def test_speed_is_that_of_the_program_and_seeds_are_added_up(self):
        seeds, speed = rows.simulator_rows([(self.SAID, 1.5, 0.5), (self.SAID, 1, 0.5)], 2, "", "", 7)
        self.assertEqual((seeds.why, speed.values, speed.verdict), ("200 of 1,000,000", (2, 2.5, 3), rows.MET))

    def test_a_seed_that_failed_says_how_to_repeat_it(self):
        row = rows.simulator_rows([("", 1, 0)], 1, "replay: PM_SIM_FIRST=5", "", 5)[0]
        self.assertEqual((row.verdict, row.why), (rows.MISSED, "replay: PM_SIM_FIRST=5"))


class Kills(unittest.TestCase):
    PROGRAM, DAEMON = rows.KILLS
    SAID = ("3 contexts freed after us: p50 3000.0 p90 4000.0 p99 5000.0, longest 2000000.0\n"
            "3 longest silences after a kill us: p50 900.0 p90 950.0 p99 970.0, longest 1900.0\n")  # fmt: skip

    def test_the_longest_is_judged_in_the_goals_unit(self):
        freed, silence = rows.kill_rows(self.PROGRAM, self.SAID, 3, "")
        self.assertEqual((freed.goal, freed.measured, freed.verdict), (rows.FREED, "2 (median 0.003)", rows.MISSED))
        self.assertEqual((silence.measured, silence.verdict), ("1.9 (median 0.9)", rows.STRETCH))

    def test_of_a_killed_daemon_no_context_is_freed(self):
        self.assertEqual([row.goal for row in rows.kill_rows(self.DAEMON, self.SAID.splitlines()[1], 3, "")],
                         ["daemon killed, longest silence of a peer"])  # fmt: skip

    def test_of_fewer_kills_or_none_nothing_is_said(self):
        self.assertEqual({row.verdict for row in rows.kill_rows(self.PROGRAM, self.SAID, 4, "")}, {rows.NOT_MEASURED})
        self.assertEqual([row.why for row in rows.kill_rows(self.PROGRAM, "", 3, "signal 11")], ["signal 11", "signal 11"])


class Goals(unittest.TestCase):
    def test_each_belongs_to_one_part(self):
        of_parts = [goal for goals in goal_parts.Parts.goals().values() for goal in goals]
        self.assertEqual(sorted(of_parts), sorted(rows.GOALS))

    def test_the_benchs_rows_are_called_as_they_are_there(self):
        with open(f"{os.path.dirname(os.path.realpath(__file__))}/../../../transport/pm/bench_goals.cc") as file:
            there = re.findall(r'^    \{"([^"]+)", "', file.read(), re.MULTILINE)
        here = [goal.removesuffix(", lo") for goal, bound in rows.GOALS.items() if bound is None and goal.endswith(", lo")]
        self.assertGreater(len(there), 20)
        self.assertEqual(sorted(there), sorted(here))


if __name__ == "__main__":
    unittest.main()
