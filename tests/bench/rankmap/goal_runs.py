# SPDX-License-Identifier: Apache-2.0
# Goals that are no placement's worth: large machines, speed, exactness, stopping and resuming, the tracer.
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import judge
from goal import BIG, ROOT, Run, finish
from goal_torus import BRUCK
from scotch import SEKISHO

HUGE = "64x32x32"
MIB = 1 << 20


def solving(bench, pattern, torus, objective, *more, out="placement"):
    words = [SEKISHO, "rankmap", "solve", "--network", f"torus:{torus}", "--pattern", pattern, "-o", bench.path(out),
             "--objective", objective, "--quiet", *more]  # fmt: skip
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def remove(path):
    if os.path.exists(path):
        os.unlink(path)


def wait_for(path, child):
    """Seconds until it is there."""
    began = time.monotonic()
    while not os.path.exists(path) and child.poll() is None:
        time.sleep(0.002)
    return time.monotonic() - began


def cpu_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def huge(bench):
    for name, words, first, hops in (
        ("Bruck", "bruck --ranks 65536 --bytes 2048", (5, 2), ((10, 1.528, None), (60, 1.528, 1.50))),
        ("permuted stencil", f"stencil --grid {HUGE} --permute 7", None, ((20, 1.22, 1.05),)),
    ):
        pattern = bench.pattern(words)
        for seconds, must, stretch in hops:
            remove(bench.path("huge"))
            began = time.monotonic()
            child = solving(bench, pattern, HUGE, "hopbytes", "--time", f"{seconds}s", out="huge")
            wait_for(bench.path("huge"), child)
            wall, cpu = time.monotonic() - began, cpu_of(child.pid)
            _, total, resident = finish(child)
            whole = time.monotonic() - began
            if first and seconds == hops[0][0]:
                bench.say(f"{name}, first placement: s", wall, *first, wall, cpu)
                bench.say(f"{name}: resident memory, MiB", resident / MIB, 256, None, form="{:.0f}")
            values = bench.evaluate(HUGE, pattern, bench.path("huge"))
            bench.say(f"{name}: avg_hops, --time {seconds}s", values["avg_hops"], must, stretch, whole, total)
            bench.say(f"{name}: over --time {seconds}s: s", max(whole - seconds, 0), 0.5, None, form="{:.2f}")


def swaps(bench):
    """RMATT's moves from RMATT's start: 38 million swaps by exact link loads on two threads, after BISEM."""
    run = bench.solve(bench.pattern(BRUCK), BIG, "rmatt", None, "--method", "optim", "--threads", "2", "--iterations", "38000000")[1]
    bench.say("38,000,000 evaluations on two threads: s", run.wall, 180, 60, run.wall, run.cpu, form="{:.0f}")


def exactness(bench):
    run = bench.test("rankmap_model_test", SEKISHO_RANKMAP_SWAPS="1000000")
    bench.say("incremental values that differ from the full one after 10^6 swaps: failed tests",
              len(re.findall(r"^\[  FAILED  \] \w+/", run.out, re.M)) if run.code in (0, 1) else run.code, 0, None, run.wall, run.cpu)  # fmt: skip
    wrong = 0
    cases = ((BIG, BRUCK), ("12x10x14", "bruck --ranks 1500 --bytes 999"), ("7x9", "random --ranks 60 --degree 5 --seed 3"),
             ("4x6x5x3", "fftrows --grid 12x20 --bytes 77"))  # fmt: skip
    for torus, words in cases:
        chance = random.Random(words)
        sides = tuple(map(int, torus.split("x")))
        ranks, messages = judge.read(bench.pattern(words))
        for _ in range(3):
            nodes = chance.sample(range(judge.size(sides)), ranks)
            with open(bench.path("any"), "w") as file:
                file.write("".join(f"{node}\n" for node in nodes))
            wrong += judge.values(sides, messages, nodes) != {key: bench.evaluate(torus, bench.pattern(words), bench.path("any"))[key]
                                                              for key in judge.KEYS}  # fmt: skip
    bench.say("placements of which `rankmap eval` and another evaluator differ in a digit, of 12", wrong, 0)


def resume(bench):
    words = "random --ranks 1000 --degree 4 --seed 5"
    pattern, more = bench.pattern(words), ("--iterations", "3000000")
    whole = bench.path("whole")
    finish(solving(bench, pattern, "10x10x10", "maxlink", *more, out="whole"))
    differ = 0
    for delay in (0.4, 1.1, 2.3, 3.7):
        child = solving(bench, pattern, "10x10x10", "maxlink", *more, "--checkpoint", bench.path("state"), out="broken")
        time.sleep(delay)
        child.send_signal(signal.SIGINT)
        finish(child)
        finish(solving(bench, pattern, "10x10x10", "maxlink", *more, "--resume", bench.path("state"), out="resumed"))
        with open(whole) as one, open(bench.path("resumed")) as other:
            differ += one.read() != other.read()
    bench.say("stopped by SIGINT and resumed, of 4: files that differ from the unbroken run's", differ, 0)
    killed(bench)
    for ranks, torus, must in ((4096, BIG, 50), (65536, HUGE, 1000)):
        run = bench.test("rankmap_bench", "checkpoint", f"torus:{torus}", bench.pattern(f"bruck --ranks {ranks} --bytes 2048")).checked()
        median, most = map(float, run.out.split())
        bench.say(f"checkpoint of {ranks:,} ranks: ms, median of 9", median, must, None, form="{:.1f}", note=f" (most {most:.1f})")


def killed(bench):
    """By signal 9, ten seconds on: how old the checkpoint is, and what it is resumed to."""
    state, pattern = bench.path("killed"), bench.pattern(BRUCK)
    child = solving(bench, pattern, BIG, "maxlink", "--time", "60s", "--checkpoint", state, out="lost")
    time.sleep(16)
    child.kill()
    finish(child)
    bench.say("killed after 16 s: seconds lost", time.time() - os.stat(state).st_mtime, 10, None, form="{:.1f}")
    before = bench.evaluate(BIG, pattern, bench.path("lost"))["max_link"]
    finish(solving(bench, pattern, BIG, "maxlink", "--time", "3s", "--resume", state, out="gone-on"))
    after = bench.evaluate(BIG, pattern, bench.path("gone-on"))["max_link"]
    bench.say("resumed for 3 s: max_link over the killed run's last placement", after / before, 1.0, None, form="{:.4f}")


def anytime(bench):
    pattern, first = bench.pattern(BRUCK), []
    for objective in ("hopbytes", "maxlink"):
        for _ in range(3):
            remove(bench.path("early"))
            child = solving(bench, pattern, BIG, objective, "--time", "30s", out="early")
            began = time.monotonic()
            wait_for(bench.path("early"), child)
            first.append((time.monotonic() - began, cpu_of(child.pid)))
            time.sleep(0.7)
            stopped = time.monotonic()
            child.send_signal(signal.SIGINT)
            finish(child)
            first[-1] += (time.monotonic() - stopped,)
    bench.say("the latest of 6 first placements, 4,096 ranks: s", max(one[0] for one in first), 1.0, 0.2, cpu=max(one[1] for one in first))
    bench.say("the longest of 6 ends after SIGINT: s", max(one[2] for one in first), 0.5, None)
    over = max(bench.solve(pattern, BIG, objective, 3, "--seed", "1")[1].wall - 3 for objective in ("hopbytes", "maxlink", "steps"))
    bench.say("over --time 3s, the most of 3: s", over, 0.5, None)


def tracer(bench):
    """By tests/bench/traffic/bench, which prints it as a table and as JSON."""
    run = Run([sys.executable, f"{ROOT}/tests/bench/traffic/bench", "--json"]).checked()
    for kind, seen in json.loads(run.out.splitlines()[-1]).items():
        bench.say(f"{kind}: NPB-like stencil, 4 ranks: % slower, median of {seen['turns']} turns", seen["stencil"], 1.0, 0.3, form="{:.2f}",
                  note=f" (± {seen['off']:.2f} each)")  # fmt: skip
        bench.say(f"{kind}: added to a 64-byte send, ns", seen["send"], 15, 8, form="{:.1f}")
        if "sums" in seen:
            bench.say(f"{kind}: pairs whose sums differ from pml_monitoring's", seen["sums"], 0)
            bench.say(f"{kind}: collectives: % from pml_monitoring's E + I", seen["collectives"], 5, None, form="{:.2f}")


ROWS = [
    ("65,536 ranks", huge),
    ("RMATT's swaps", swaps),
    ("exactness", exactness),
    ("resume", resume),
    ("anytime", anytime),
    ("tracer", tracer),
]
