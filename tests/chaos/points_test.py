#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
import os
import signal
import subprocess
import sys
import tempfile
import unittest

import points
from faults import Schedule


def met(texts, place):
    """What Control.died() says of a process that was killed just there."""
    index, side = place
    return [(texts[index - 1], texts[:index].count(texts[index - 1]), side)]


class Tour(unittest.TestCase):
    def test_visits_every_point_from_both_sides_and_says_so(self):
        tour, texts = points.Tour(None, 1), ["write a", "sync a", "write a", "send to 7513"]
        tour.learn("qserver", texts)
        seen = set()
        for _ in range(8):
            (place,) = tour.next("qserver")
            seen.add(place)
            tour.note("qserver", [place], met(texts, place))
        self.assertEqual(seen, {(index, side) for index in (1, 2, 3, 4) for side in points.SIDES})
        self.assertEqual(tour.table(), [("qserver", 8, 8, 0, 6, 6)])
        self.assertEqual(tour.left(), 0)

    def test_goes_on_where_the_last_run_was(self):
        texts = ["write a", "write b"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "visited")
            for run in range(4):
                tour = points.Tour(path, run)
                tour.learn("agent", texts)
                places = tour.next("agent")
                tour.note("agent", places, met(texts, places[0]))
                tour.save()
            self.assertEqual(points.Tour(path, 9).table(), [("agent", 4, 4, 0, 4, 4)])

    def test_what_was_met_counts_and_not_what_was_meant(self):
        tour = points.Tour(None, 1)
        tour.learn("agent", ["write a", "write b"])
        tour.note("agent", [(1, "before")], [("write b", 1, "after")])
        self.assertEqual(tour.table(), [("agent", 4, 1, 0, 4, 1)])
        self.assertNotIn((2, "after"), tour.next("agent", 3))

    def test_of_a_list_that_grows_the_points_visited_stay_the_same(self):
        tour = points.Tour(None, 1)
        tour.learn("agent", ["write a", "write b"])
        tour.note("agent", [(2, "before")], [("write b", 1, "before")])
        tour.learn("agent", ["write a", "write a", "write b"])
        self.assertEqual(tour.table(), [("agent", 6, 1, 0, 4, 1)])
        self.assertNotIn((3, "before"), tour.next("agent", 5))

    def test_what_is_not_met_is_tried_again_later_and_never_counted(self):
        tour = points.Tour(None, 1)
        tour.learn("agent", ["write a", "write b"])
        (first,) = tour.next("agent")
        tour.note("agent", [first], [])
        for _ in range(20):
            self.assertNotEqual(tour.next("agent"), [first])
        self.assertEqual(tour.table()[0][2], 0)

    def test_what_is_never_met_is_let_be_after_some_tries_and_told(self):
        tour = points.Tour(None, 1)
        tour.learn("agent", ["write a"])
        for _ in range(points.Tour.TRIES * 2):
            self.assertGreater(tour.left(), 0)
            tour.note("agent", tour.next("agent"), [])
        self.assertEqual(tour.left(), 0)
        self.assertEqual(tour.table(), [("agent", 2, 0, 2, 2, 0)])

    def test_the_order_is_the_seeds(self):
        orders = []
        for seed in (5, 5, 6):
            tour = points.Tour(None, seed)
            tour.learn("agent", ["write"] * 50)
            orders.append([tour.next("agent") for _ in range(10)])
        self.assertEqual(orders[0], orders[1])
        self.assertNotEqual(orders[0], orders[2])

    def test_kinds_do_not_depend_on_ids_hashes_and_ports(self):
        self.assertEqual(points.plain("write /var/lib/sekisho/qserver/spool/36nh3bj7yl7lt[12]/0.out"),
                         "write /var/lib/sekisho/qserver/spool/JOB/N.out")  # fmt: skip
        self.assertEqual(points.plain("send to 7513"), "send to 7513")
        self.assertEqual(points.plain("send from 40123"), "send from N")


class Control(unittest.TestCase):
    """With killpoints.c itself, loaded into a program that writes."""

    def test_kills_where_it_was_told_process_after_process_and_says_where(self):
        library = os.environ.get("SEKISHO_KILL_POINTS", "")
        if not os.path.exists(library):
            self.skipTest("no killpoints.so here: $SEKISHO_KILL_POINTS")
        with tempfile.TemporaryDirectory() as folder:
            control = points.Control(os.path.join(folder, "control"))
            control.arm((3, "before"), (2, "after"))
            ends = [self.write(library, folder) for _ in range(3)]
            self.assertEqual(ends, [-signal.SIGKILL, -signal.SIGKILL, 0])
            self.assertEqual([(number, side) for _, number, side in control.died()], [(2, "before"), (1, "after")])
            self.assertEqual([text.split()[0] for text, _, _ in control.died()], ["write", "write"])
            self.assertEqual(control.count, 3 + 2 + 4)
            control.start()
            self.assertEqual((control.points(), control.died()), ([], []))

    def write(self, library, folder):
        """Creates a file and writes to it three times: four points."""
        code = f"""
import os
fd = os.open({folder!r} + "/file", os.O_WRONLY | os.O_CREAT)
for _ in range(3):
    os.write(fd, b"x")
os._exit(0)"""
        return subprocess.run([sys.executable, "-S", "-c", code], env={"LD_PRELOAD": library, "SEKISHO_KILL_POINTS_CONTROL":
                              f"{folder}/control", "SEKISHO_KILL_POINTS_DURABLE": folder}).returncode  # fmt: skip


class Schedules(unittest.TestCase):
    def test_a_schedule_is_only_of_its_seed(self):
        def first(seed):
            schedule = Schedule(seed, True)
            return [schedule.next() for _ in range(50)]

        self.assertEqual(first(3), first(3))
        self.assertNotEqual(first(3), first(4))


if __name__ == "__main__":
    unittest.main()
