#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# The command line, from its words to its exit code, over a site that is played here: its jobs run as they are, in a
# home of their own, and what `--plant` makes of them must be told by the table and the exit code.
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import subprocess
import tempfile
import unittest
from unittest import mock

import auditor
import plan
import scenes
import wave
import world

HERE = os.path.dirname(os.path.realpath(__file__))
_loader = importlib.machinery.SourceFileLoader("chaos_run", f"{HERE}/run")
suite = importlib.util.module_from_spec(importlib.util.spec_from_loader("chaos_run", _loader))
_loader.exec_module(suite)


class PlayedWorld:
    daemons, restarts, has_kill_points = (), 0, False

    def __init__(self, name, is_relayed, say):
        self.name, self.is_relayed, self.say = name, is_relayed, say
        self.fallen = []
        self.left = {"processes": [], "directories": []}
        self._folder = tempfile.TemporaryDirectory()

    def up(self, kill_points):
        pass

    def start(self):
        os.makedirs(self.path("a-head", f"/home/alice/{plan.RAN}"))
        with open(self.path("a-head", f"/home/alice/{plan.FOLDER}/work"), "w") as file:
            file.write(plan.WORK)
        os.chmod(file.name, 0o755)

    def down(self):
        self._folder.cleanup()

    def until_up(self):
        return True

    def path(self, host, path):
        return self._folder.name + path

    def logs(self):
        return self._folder.name

    def shell(self, host, script, user="root"):
        self.left["processes" if "setsid" in script else "directories"].append(script)

    def on(self, host, *words):
        self.left["processes" if "pkill" in words else "directories"].clear()


class PlayedWave:
    def __init__(self, world, prefix, deadline, problems=()):
        self.world, self.prefix, self.deadline, self.problems = world, prefix, deadline, list(problems)
        self.plan, self.names, self.arrays, self.says, self.output = {}, {}, {}, {}, {}
        self.refusals, self.may_fail = [], ()

    def submit(self, job, *options):
        label, job_id = self.prefix + job.label, f"id{len(self.plan)}"
        job = plan.dataclasses.replace(job, label=label)
        self.plan[label], self.names[label] = job, f"siteA/{job_id}"
        self.says[label] = {"state": "PENDING", "reason": "", "exit_code": None, "submitted_ms": 1, "ended_ms": 2}
        if "--hold" not in options:
            home = self.world.path("a-head", "/home/alice")
            ran = subprocess.run([f"{home}/{plan.FOLDER}/work", *job.words()[1:]], capture_output=True,
                                 env={**os.environ, "HOME": home, "SEKISHO_JOB_ID": job_id, "SEKISHO_TASK": "0"})  # fmt: skip
            self.output[label, 0] = (ran.stdout, ran.stderr)
            self.says[label].update(state="DONE", exit_code=ran.returncode)

    def cancel(self, label):
        self.says[self.prefix + label].update(state="CANCELLED", reason="cancelled by its user")

    def settle(self, timeout_s):
        return True

    def _files(self):
        folder = self.world.path("a-head", f"/home/alice/{plan.RAN}")
        return [f"{folder}/{name}" for name in os.listdir(folder) if name.startswith(self.prefix) and not name.endswith(".plant")]

    def evidence(self):
        ran = {}
        for path in self._files():
            with open(path) as file:
                ran[os.path.basename(path)] = file.read().splitlines()
        return auditor.Evidence(self.plan, self.names, ran, self.says, self.output, {})

    def clean(self):
        for path in self._files():
            os.unlink(path)


def calm_script(wave):
    wave.submit(plan.Job("well", code=3, pause_s=0))


def run(*words):
    """(exit code, what it printed)"""
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as logs, contextlib.redirect_stdout(out), \
            mock.patch("sys.argv", ["run", "--seed", "2", "--only", "points", "--logs", logs, *words]), \
            mock.patch.object(os, "geteuid", lambda: 0), mock.patch.object(world, "World", PlayedWorld), \
            mock.patch.object(wave, "Wave", PlayedWave), mock.patch.object(wave, "setup", lambda world: None), \
            mock.patch("rounds.script", calm_script), \
            mock.patch.object(scenes, "left", lambda world, ids, timeout_s=20: {kind: list(what) for kind, what in world.left.items()}):  # fmt: skip
        code = suite.main()
    return code, out.getvalue()


def rows(text):
    """The rows of the table that must be zero."""
    table = text.split("\nchaos suite\n")[1]
    return {kind: int(line[40:]) for line in table.splitlines() for kind in auditor.KINDS if line[2:40].strip() == kind}


class Run(unittest.TestCase):
    def test_a_run_in_which_all_is_well_ends_with_0(self):
        code, text = run()
        self.assertEqual((code, rows(text)), (0, dict.fromkeys(auditor.KINDS, 0)), text)
        self.assertIn("planted faults found                   6 of 6\n", text)

    def test_each_planted_fault_makes_the_run_fail_by_its_row_alone(self):
        for plant, kind in scenes.PLANTS.items():
            with self.subTest(plant):
                code, text = run("--plant", plant)
                self.assertEqual(code, 1, text)
                self.assertEqual([one for one, number in rows(text).items() if number > 0], [kind], text)
                self.assertIn("FAILED with seed 2", text)

    def test_an_auditor_that_does_not_see_a_planted_fault_makes_the_run_fail(self):
        with mock.patch.object(auditor, "_audit_output", lambda label, job, output: []):
            code, text = run()
        self.assertEqual(code, 1, text)
        self.assertIn("planted faults were not found: ['output bytes wrong']", text)


if __name__ == "__main__":
    unittest.main()
