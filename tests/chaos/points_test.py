#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
import os
import tempfile
import unittest

import points
from faults import Schedule


class Tour(unittest.TestCase):
    def test_visits_every_point_from_both_sides_and_says_so(self):
        tour = points.Tour(None, 1)
        tour.learn("qserver", ["write a", "sync a", "send to 7513"])
        seen = set()
        for _ in range(6):
            index, side = tour.next("qserver")
            seen.add((index, side))
            tour.note("qserver", index, side, True)
        self.assertEqual(seen, {(index, side) for index in (1, 2, 3) for side in points.SIDES})
        self.assertEqual(tour.table(), [("qserver", 6, 6, 3, 3)])

    def test_goes_on_where_the_last_run_was(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "visited")
            for run in range(4):
                tour = points.Tour(path, run)
                tour.learn("agent", ["write a", "write b"])
                tour.note("agent", *tour.next("agent"), True)
                tour.save()
            self.assertEqual(points.Tour(path, 9).table(), [("agent", 4, 4, 2, 2)])

    def test_what_is_not_met_is_tried_again_later_and_never_counted(self):
        tour = points.Tour(None, 1)
        tour.learn("agent", ["write a", "write b"])
        first = tour.next("agent")
        tour.note("agent", *first, False)
        for _ in range(20):
            self.assertNotEqual(tour.next("agent"), first)
        self.assertEqual(tour.table()[0][2], 0)

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
    def test_keeps_what_it_is_told_in_the_file_that_the_program_opens(self):
        with tempfile.TemporaryDirectory() as folder:
            control = points.Control(os.path.join(folder, "p"))
            control.arm(17, "after", (3, "before"))
            other = points.Control(os.path.join(folder, "p"))
            self.assertEqual((other.kill_at, other.side, other.again, other.again_side), (17, 1, 3, 0))
            other.start()
            self.assertEqual((control.kill_at, control.again, control.points()), (0, 0, []))


class Schedules(unittest.TestCase):
    def test_a_schedule_is_only_of_its_seed(self):
        def first(seed):
            schedule = Schedule(seed, True)
            return [schedule.next() for _ in range(50)]

        self.assertEqual(first(3), first(3))
        self.assertNotEqual(first(3), first(4))


if __name__ == "__main__":
    unittest.main()
