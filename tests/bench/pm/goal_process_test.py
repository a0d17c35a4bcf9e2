#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
import os
import signal
import threading
import time
import unittest

import goal_process


def lives(pid):
    return os.path.exists(f"/proc/{pid}")


class OneProcess(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        goal_process.TO_END_S = goal_process.TO_CLEAN_UP_S = 0.3

    def setUp(self):
        self.processes = goal_process.Processes()

    def run_shell(self, script, limit_s=20):
        return self.processes.run(["sh", "-c", script], limit_s)

    def test_says_what_it_printed_and_why_it_failed(self):
        done = self.run_shell("echo 5; echo 'no network' >&2; exit 3")
        self.assertEqual((done.out, done.why), ("5\n", "sh: no network"))
        self.assertEqual(self.run_shell("exit 3").why, "sh: exit code 3")
        self.assertEqual(self.run_shell("true").why, "")
        self.assertEqual(self.processes.run(["/nowhere/sh"], 1).why, "there is no /nowhere/sh")

    def test_counts_the_processor_time_of_that_process_alone(self):
        busy = self.run_shell("i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done")
        self.assertGreater(busy.user_s, 5 * self.run_shell("true").user_s)

    def test_what_takes_too_long_is_interrupted_so_that_it_can_clean_up(self):
        done = self.run_shell("trap 'echo cleaned; exit' INT; echo begun; while :; do sleep 0.02; done", limit_s=0.5)
        self.assertEqual((done.out, done.why), ("begun\ncleaned\n", "took longer than 0 s"))

    def test_what_does_not_listen_is_killed(self):
        self.assertIn("took longer", self.run_shell("trap '' INT; sleep 60", limit_s=0.1).why)

    def test_no_orphan_is_left_not_even_in_a_session_of_its_own(self):
        orphan = int(self.run_shell("setsid sh -c 'echo $$; sleep 60; :' & sleep 0.2").out)
        self.assertFalse(lives(orphan))
        self.assertEqual(goal_process.children(), [])

    def test_an_interruption_ends_the_one_that_runs_and_begins_no_other(self):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
        begin = time.monotonic()
        self.assertEqual(self.run_shell("echo 1; sleep 60")[:2], ("1\n", "interrupted"))
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual(self.run_shell("echo 2")[:2], ("", "interrupted"))


if __name__ == "__main__":
    unittest.main()
