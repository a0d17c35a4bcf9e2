#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import points
from faults import Schedule


def alone(texts):
    """A calm run in which one process made all."""
    return [[texts]]


class Tour(unittest.TestCase):
    def test_visits_every_point_from_both_sides_and_says_so(self):
        tour = points.Tour(None, 1)
        tour.learn("qserver", alone(["write a", "sync a", "write a", "send to 7513"]), [])
        seen = set()
        for _ in range(8):
            places = tour.next("qserver", 1, 4)
            seen.update(places)
            tour.note("qserver", places, 1)
        self.assertEqual(seen, {(text, nth, side) for text, nth in (("write a", 1), ("sync a", 1), ("write a", 2), ("send to 7513", 1))
                                for side in points.SIDES})  # fmt: skip
        self.assertEqual(tour.table(), [("qserver", 8, 8, 0, 6, 6)])
        self.assertEqual(tour.left(), 0)

    def test_a_round_has_no_more_deaths_than_it_has_room_for(self):
        tour = points.Tour(None, 1)
        tour.learn("qserver", alone([f"write {number}" for number in range(40)]), [])
        cost = {f"write {number}": number + 1 for number in range(40)}
        for _ in range(20):
            places = tour.next("qserver", 5, 40)
            self.assertLessEqual(len(places), 5)
            self.assertLessEqual(sum(cost[text] for text, _, _ in places), 40)
            self.assertEqual(len(places), len(set(places)))
            tour.note("qserver", places, len(places))

    def test_goes_on_where_the_last_run_was_and_shares_with_one_that_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "visited")
            tours = [points.Tour(path, run) for run in range(2)]
            for tour in tours:
                tour.learn("agent", alone(["write a", "write b"]), [])
            for tour in tours * 2:
                tour.note("agent", tour.next("agent", 1, 2), 1)
                tour.save()
            last = points.Tour(path, 9)
            last.learn("agent", alone(["write a", "write b"]), [])
            self.assertEqual(last.table(), [("agent", 4, 4, 0, 4, 4)])

    def test_what_is_not_met_is_not_counted_and_what_comes_behind_it_had_no_chance(self):
        tour = points.Tour(None, 1)
        tour.learn("agent", alone(["write a", "write b"]), [])
        tour.note("agent", [("write a", 1, "before"), ("write b", 1, "before"), ("write b", 1, "after")], 1)
        self.assertEqual(tour.table(), [("agent", 4, 1, 0, 4, 1)])
        self.assertNotIn(("write a", 1, "before"), tour.next("agent", 4, 9))

    def test_what_is_never_met_is_let_be_after_some_tries_and_told(self):
        tour = points.Tour(None, 1)
        tour.learn("agent", alone(["write a"]), [])
        tries = 0
        while tour.left() > 0:
            tour.note("agent", tour.next("agent", 1, 1), 0)
            tries += 1
        self.assertEqual(tries, 2 * points.Tour.TRIES)
        self.assertEqual(tour.table(), [("agent", 2, 0, 2, 2, 0)])

    def test_a_point_is_what_every_calm_run_made_whose_text_it_has(self):
        tour = points.Tour(None, 1)
        calm = [[["send", "send", "sync a"]], [["send", "sync a", "write b"]]]
        again = [[["send", "create a", "send", "send"]]]
        tour.learn("agent", calm, again)
        names = {f"{text} #{nth}" for text, nth, _ in (tour.next("agent", 1, 9)[0] for _ in range(200))}
        self.assertEqual(names, {"send #1", "sync a #1"})  # who dies first runs already
        self.assertEqual(tour.table()[0][1], 2 * len(["send", "sync a", "write b", "create a"]))

    def test_the_lives_of_a_program_are_counted_each_by_itself(self):
        tour = points.Tour(None, 1)
        tour.learn("stager", [[["write a", "write b"], ["write a"]]], [])
        self.assertEqual(tour.table(), [("stager", 4, 0, 0, 4, 0)])

    def test_the_order_is_the_seeds(self):
        orders = []
        for seed in (5, 5, 6):
            tour = points.Tour(None, seed)
            tour.learn("agent", alone(["write"] * 50), [])
            orders.append([tour.next("agent", 3, 50) for _ in range(10)])
        self.assertEqual(orders[0], orders[1])
        self.assertNotEqual(orders[0], orders[2])


class Control(unittest.TestCase):
    """With killpoints.c itself, loaded into a program that writes."""

    def setUp(self):
        self.library = os.environ.get("SEKISHO_KILL_POINTS", "")
        if not os.path.exists(self.library):
            self.skipTest("no killpoints.so here: $SEKISHO_KILL_POINTS")
        self.folder = tempfile.mkdtemp(dir="/tmp", prefix="k")
        self.addCleanup(shutil.rmtree, self.folder)
        self.control = points.Control(f"{self.folder}/control")

    def write(self, name, times=3, sync=False):
        """Creates a file and writes to it; maybe a sync after each."""
        code = f"""
import os
fd = os.open({self.folder!r} + "/{name}", os.O_WRONLY | os.O_CREAT)
for _ in range({times}):
    os.write(fd, b"x")
    if {sync}:
        os.fsync(fd)
os._exit(0)"""
        done = subprocess.run([sys.executable, "-S", "-c", code], env={"LD_PRELOAD": self.library, "SEKISHO_KILL_POINTS_CONTROL":
                              f"{self.folder}/control", "SEKISHO_KILL_POINTS_DURABLE": self.folder})  # fmt: skip
        return done.returncode

    def size(self, name):
        return os.stat(f"{self.folder}/{name}").st_size

    def test_kills_where_it_was_told_process_after_process(self):
        text = f"write {self.folder}/file"
        self.control.arm((text, 3, "before"), (text, 1, "after"))
        ends, sizes = [], []
        for _ in range(3):
            ends.append(self.write("file"))
            sizes.append(self.size("file"))
            os.unlink(f"{self.folder}/file")
        self.assertEqual(ends, [-signal.SIGKILL, -signal.SIGKILL, 0])
        self.assertEqual(sizes, [2, 1, 3])
        self.assertEqual(self.control.deaths(), 2)
        create = f"create {self.folder}/file"
        self.assertEqual(self.control.lives(), [[], [create, text, text, text], [create, text], [create, text, text, text]])
        self.control.start()
        self.assertEqual((self.control.lives(), self.control.deaths()), ([[]], 0))
        self.assertEqual(self.write("file"), 0)

    def test_a_process_that_does_not_come_there_lives_and_the_next_may(self):
        self.control.arm((f"write {self.folder}/file", 5, "before"))
        self.assertEqual([self.write("file", 4), self.write("file", 4), self.write("file", 5)], [0, 0, -signal.SIGKILL])

    def test_names_are_without_ids_hashes_and_numbers(self):
        for name, plain in (("36nh3bj7yl7lt", "JOB"), ("36nh3bj7yl7lt[12]", "JOB"), (".sekisho.36nh3bj7yl7lt.part", ".sekisho.JOB.part"),
                            ("ab" * 32, "SHA"), ("0.out", "N.out"), ("17", "N"), ("jobs.db", "jobs.db"), ("x509.new", "x509.new"),
                            ("abcdefghijklmn", "abcdefghijklmn")):  # fmt: skip
            self.control.start()
            self.write(name, 0)
            self.assertEqual(self.control.lives(), [[], [f"create {self.folder}/{plain}"]])

    def test_what_is_written_to_a_database_between_two_syncs_is_one_write(self):
        self.write("a-wal", 3)
        self.assertEqual(self.control.lives()[-1], [f"create {self.folder}/a-wal", f"write {self.folder}/a-wal"])
        self.write("a-wal", 2, sync=True)
        self.assertEqual(self.control.lives()[-1][1:], [f"write {self.folder}/a-wal", f"sync {self.folder}/a-wal"] * 2)


class Schedules(unittest.TestCase):
    def test_a_schedule_is_only_of_its_seed(self):
        def first(seed):
            schedule = Schedule(seed, True)
            return [schedule.next() for _ in range(50)]

        self.assertEqual(first(3), first(3))
        self.assertNotEqual(first(3), first(4))


if __name__ == "__main__":
    unittest.main()
