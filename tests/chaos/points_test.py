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


def row(program, of, visited, kinds, kinds_visited, in_vain=0, excused=0, rare=0, rare_visited=0):
    return points.Row(program, of, visited, in_vain, excused, rare, rare_visited, kinds, kinds_visited)


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
        self.assertEqual(tour.table(), [row("qserver", 8, 8, 6, 6)])
        self.assertEqual(tour.left(), [])

    def test_of_many_points_of_a_kind_the_later_ones_are_listed_now_and_then(self):
        listed = [nth for nth in range(1, 70) if points.is_of_the_list(nth)]
        self.assertEqual(listed, [*range(1, 16), *range(16, 32, 2), *range(32, 64, 4), 64])
        for is_thorough, size in ((False, 2 * len(listed)), (True, 2 * 69)):
            tour = points.Tour(None, 1, is_thorough=is_thorough)
            tour.learn("qserver", alone(["write a"] * 69), [])
            self.assertEqual(len(tour.left()), size)

    def test_behind_the_first_few_of_a_kind_as_many_are_listed_as_each_run_came_to_that_made_any(self):
        tour = points.Tour(None, 1)
        runs = {"a": (12, 10, 15), "b": (0, 9, 11), "c": (3, 5, 1)}
        lives = [[[f"write {one}" for one, numbers in runs.items() for _ in range(numbers[run])]] for run in range(3)]
        tour.learn("agent", lives[:2], lives[2:])
        self.assertEqual({name for _, name, _ in tour.left() if name.endswith("after")},
                         {f"write {one} #{nth} after" for one, most in (("a", 10), ("b", 9), ("c", 5)) for nth in range(1, most + 1)})  # fmt: skip

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
            self.assertEqual(last.table(), [row("agent", 4, 4, 4, 4)])

    def test_what_is_not_met_is_not_counted_and_what_comes_behind_it_had_no_chance(self):
        tour = points.Tour(None, 1)
        tour.learn("agent", alone(["write a", "write b"]), [])
        tour.note("agent", [("write a", 1, "before"), ("write b", 1, "before"), ("write b", 1, "after")], 1)
        self.assertEqual(tour.table(), [row("agent", 4, 1, 4, 1)])
        self.assertNotIn(("write a", 1, "before"), tour.next("agent", 4, 9))

    def test_what_is_never_met_is_let_be_after_some_tries_and_is_left_by_name(self):
        tour = points.Tour(None, 1)
        tour.learn("agent", alone(["write a"]), [])
        tries = 0
        while tour.is_worth_going_on():
            tour.note("agent", tour.next("agent", 1, 1), 0)
            tries += 1
        self.assertEqual(tries, 2 * points.Tour.TRIES)
        self.assertEqual(tour.table(), [row("agent", 2, 0, 2, 0, in_vain=2)])
        self.assertEqual(tour.left(), [("agent", f"write a #1 {side}", "seen in 1 of 1 calm runs, tried 8 times in vain") for side in points.SIDES])

    def test_a_point_is_let_go_only_for_a_reason_that_names_it(self):
        tour = points.Tour(None, 1, [("agent", r"^write a #\d+ after$", "nothing comes after it"), ("qserver", "write b", "it is another's")])
        tour.learn("agent", alone(["write a", "write b"]), [])
        self.assertEqual([name for _, name, _ in tour.left()], ["write a #1 before", "write b #1 before", "write b #1 after"])
        self.assertEqual(tour.table(), [row("agent", 4, 0, 4, 0, excused=1)])
        tour.note("agent", [("write a", 1, "after")], 1)  # it came after all
        self.assertEqual(tour.table(), [row("agent", 4, 1, 4, 1)])

    def test_a_point_is_what_any_calm_run_made_and_what_not_all_made_comes_last(self):
        tour = points.Tour(None, 1)
        calm = [[["send", "send", "sync a"]], [["send", "sync a", "write b"]]]
        again = [[["send", "create a", "send", "send", "sync a"]]]
        tour.learn("agent", calm, again)
        self.assertEqual({name: told.split(",")[0] for _, name, told in tour.left()}, {
            f"{name} {side}": f"seen in {often} of 3 calm runs" for side in points.SIDES
            for name, often in (("send #1", 3), ("send #2", 2), ("send #3", 1), ("sync a #1", 3), ("write b #1", 1), ("create a #1", 1))})  # fmt: skip
        order = []
        while tour.left():
            order += tour.next("agent", 1, 9)
            tour.note("agent", order[-1:], 1)
            if len(order) == 10:
                break
        self.assertEqual({place[:2] for place in order[:4]}, {("send", 1), ("sync a", 1)})
        self.assertNotIn(("create a", 1), {place[:2] for place in order})  # who dies first runs already
        self.assertEqual(tour.table()[0], row("agent", 12, 10, 8, 6, rare=8, rare_visited=6))

    def test_the_lives_of_a_program_are_counted_each_by_itself(self):
        tour = points.Tour(None, 1)
        tour.learn("stager", [[["write a", "write b"], ["write a"]]], [])
        self.assertEqual(tour.table(), [row("stager", 4, 0, 4, 0)])

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
        return self.begin(f"""
fd = os.open({self.folder!r} + "/{name}", os.O_WRONLY | os.O_CREAT)
for _ in range({times}):
    os.write(fd, b"x")
    if {sync}:
        os.fsync(fd)""").wait()

    def begin(self, code, program=sys.executable, **options):
        return subprocess.Popen([program, "-S", "-c", f"import os\n{code}\nos._exit(0)"], env={
                                "LD_PRELOAD": self.library, "SEKISHO_KILL_POINTS_CONTROL": f"{self.folder}/control",
                                "SEKISHO_KILL_POINTS_DURABLE": self.folder}, **options)  # fmt: skip

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

    def test_processes_that_run_at_the_same_time_count_each_for_itself(self):
        text = f"write {self.folder}/file"
        code = f"""
fd = os.open({self.folder!r} + "/file", os.O_WRONLY | os.O_CREAT)
for _ in range(3):
    os.read(0, 1)
    os.write(fd, b"x")
    os.write(1, b"x")"""
        self.control.arm((text, 2, "before"), (text, 3, "before"))
        both = [self.begin(code, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
        reached = []
        for number in (0, 1, 0, 1, 1):  # each writes once, then the first a second time; the other goes on
            both[number].stdin.write(b"x")
            both[number].stdin.flush()
            reached.append(len(both[number].stdout.read(1)))
        self.assertEqual([one.wait() for one in both], [-signal.SIGKILL] * 2)
        self.assertEqual((reached, self.control.deaths()), ([1, 1, 0, 1, 0], 2))
        self.assertEqual(sorted(life.count(text) for life in self.control.lives()), [0, 2, 3])
        for one in both:
            one.stdin.close()
            one.stdout.close()

    def test_room_owners_and_a_file_that_is_emptied_are_points_too(self):
        file = f"{self.folder}/file"
        code = f"""
fd = os.open({file!r}, os.O_WRONLY | os.O_CREAT)
os.posix_fallocate(fd, 0, 4096)
os.fchown(fd, -1, -1)
os.chown("file", -1, -1, dir_fd=os.open({self.folder!r}, os.O_RDONLY))
os.open({file!r}, os.O_WRONLY | os.O_TRUNC)
assert os.stat({file!r}).st_size == 0
os.open({file!r}, os.O_WRONLY)"""
        self.assertEqual(self.begin(code).wait(), 0)
        self.assertEqual(self.control.lives()[-1], [f"{operation} {file}" for operation in ("create", "allocate", "chown", "chown", "truncate")])

    def test_a_supervisor_that_leaves_its_parent_is_looked_after_and_its_children_are_not(self):
        program = f"{self.folder}/sekisho-task"
        os.symlink(sys.executable, program)
        file = f"{self.folder}/file"
        code = f"""
if os.fork() != 0:
    os.wait()
    os._exit(0)
os.setsid()
if os.fork() == 0:
    os.setsid()
    os.open({file!r} + "-of-the-task", os.O_CREAT)
    os._exit(0)
os.wait()
os.open({file!r}, os.O_CREAT)"""
        self.assertEqual(self.begin(code, program).wait(), 0)
        self.assertEqual(self.control.lives(), [[], [], [f"create {file}"]])

    def test_names_are_without_ids_hashes_and_numbers(self):
        for name, plain in (("36nh3bj7yl7lt", "JOB"), ("36nh3bj7yl7lt[12]", "JOB"), (".sekisho.36nh3bj7yl7lt.part", ".sekisho.JOB.part"),
                            ("ab" * 32, "SHA"), ("0.out", "N.out"), ("17", "N"), ("exposed.pGsomg", "exposed.XXXXXX"), ("jobs.db", "jobs.db"), ("x509.new", "x509.new"),
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
