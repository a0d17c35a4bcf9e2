# SPDX-License-Identifier: Apache-2.0
# What the rows of `goals` share: commands with their seconds, patterns made once, Scotch, verdicts.
import json
import os
import subprocess
import tempfile
import time
import traceback

import judge
from scotch import ROOT, SEKISHO, Scotch

TEST = os.environ.get("SEKISHO_TEST", f"{ROOT}/build/release/test")
BIG = "16x16x16"


def network_of(name):
    """A torus by its sides, or a network of another kind by its whole name."""
    return name if ":" in name else f"torus:{name}"


def finish(child):
    """(exit code, wall-independent processor seconds, largest resident bytes)"""
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


class Run:
    """A command that has ended."""

    def __init__(self, words, environment=None):
        began = time.monotonic()
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            child = subprocess.Popen(words, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
            self.code, self.cpu, self.resident = finish(child)
            self.wall = time.monotonic() - began
            out.seek(0), err.seek(0)
            self.out, self.err = out.read(), err.read()

    def checked(self):
        if self.code != 0:
            raise RuntimeError(f"exit code {self.code}: {self.err[-500:]}{self.out[-500:]}")
        return self


class Bench:
    def __init__(self, options):
        self.options = options
        self.met = self.judged = self.stretched = 0
        self.name = ""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def run(self, name, row):
        """A row that breaks is a row that is not met."""
        self.name = name
        try:
            row(self)
        except Exception as error:
            traceback.print_exc()
            self.judged += 1
            print(f"| {name} | | | | {type(error).__name__}: {str(error)[:80]} | | | **broken** |", flush=True)

    def say(self, figure, seen, must, stretch=None, wall=None, cpu=None, form="{:.6g}", at_least=False, note=""):
        """One figure's line.  Smaller is better unless `at_least`."""
        reaches = lambda goal: goal is not None and (seen >= goal if at_least else seen <= goal)  # noqa: E731
        self.judged += 1
        self.met += reaches(must)
        self.stretched += reaches(stretch)
        verdict = "stretch" if reaches(stretch) else "must" if reaches(must) else "**missed**"
        show = lambda value: "" if value is None else form.format(value)  # noqa: E731
        seconds = lambda value: "" if value is None else f"{value:.3g}"  # noqa: E731
        sign = "≥ " if at_least else ""
        print(f"| {self.name} | {figure} | {sign}{show(must)} | {show(stretch)} | {show(seen)}{note} | {seconds(wall)} | {seconds(cpu)} "
              f"| {verdict} |", flush=True)  # fmt: skip

    def path(self, name):
        return f"{self.folder}/{name}"

    def pattern(self, words):
        """The file of `rankmap gen WORDS`, made once."""
        path = self.path("".join(c if c.isalnum() else "-" for c in words))
        if not os.path.exists(path):
            Run([SEKISHO, "rankmap", "gen", *words.split(), "-o", path]).checked()
        return path

    def solve(self, pattern, torus, objective, seconds, *more, target=None, keep="placement"):
        """(what `rankmap eval` says, the run); no `seconds`: `more` says when it ends."""
        goal = [] if target is None else [str(target)]
        if self.options.cpu and not more:
            words = [f"{TEST}/rankmap_bench", "solve", network_of(torus), pattern, self.path(keep), objective, str(seconds), *goal]
        else:
            words = [SEKISHO, "rankmap", "solve", "--network", network_of(torus), "--pattern", pattern, "-o", self.path(keep),
                     "--objective", objective, *(["--time", f"{seconds}s"] if seconds else []), "--quiet", *more,
                     *["--target", *goal][: 2 * len(goal)]]  # fmt: skip
        run = Run(words).checked()
        return self.evaluate(torus, pattern, self.path(keep)), run

    def evaluate(self, torus, pattern, placement):
        words = [SEKISHO, "rankmap", "eval", "--network", network_of(torus), "--pattern", pattern, "--placement", placement, "--json"]
        return json.loads(Run(words).checked().out)

    def bytes_of(self, words):
        _, messages = judge.read(self.pattern(words))
        return sum(one[2] for one in messages)

    def goal(self, must, stretch):
        return must if self.options.until == "must" else stretch

    def ten_minutes(self):
        return 60 * self.options.minutes

    def scotch(self, pattern, torus, seconds):
        return Scotch(self.folder, pattern, network_of(torus)).best(seconds, by_cpu=self.options.cpu)

    def test(self, program, *words, **environment):
        return Run([f"{TEST}/{program}", *words], environment)
