# SPDX-License-Identifier: Apache-2.0
# Goals on quadratic assignment: QAPLIB and paper 000's clusters.
import os
import re
import subprocess
import sys

from goal import Run
from scotch import SEKISHO

HERE = os.path.dirname(os.path.realpath(__file__))


def qaplib(bench, seconds):
    """({row: (gap, solved, count)}, (worst instance, its gap), the run)"""
    if not bench.options.qaplib:
        raise RuntimeError("--qaplib DIR, or SEKISHO_QAPLIB, is needed")
    run = bench.test("rankmap_bench", "qaplib", bench.options.qaplib, "--seconds", str(seconds)).checked()
    rows = {name: (float(gap), int(solved), int(count))
            for name, gap, solved, count in re.findall(r"^\| ([^|]+) \| ([\d.]+) \| (\d+) of (\d+) \|", run.out, re.M)}  # fmt: skip
    worst = re.search(r"^worst: (\S+) ([\d.]+)", run.out, re.M)
    return rows, (worst[1], float(worst[2])), run


def short(bench):
    for seconds, mean, large, most in ((1, (0.12, 0.06), (0.42, 0.2), 3), (10, (0.05, 0.02), (0.17, 0.08), 1)):
        rows, (worst, gap), run = qaplib(bench, seconds)
        what = f"{seconds} s of processor"
        bench.say(f"mean gap of {rows['all'][2]}, %, {what}", rows["all"][0], *mean, run.wall, run.cpu, form="{:.3f}")
        bench.say(f"n ≥ 50: mean gap, %, {what}", rows["n >= 50"][0], *large, form="{:.3f}")
        bench.say(f"the worst, %, {what}", gap, most, None, form="{:.2f}", note=f" ({worst})")


def best_known(folder):
    """{instance: its value}, of those whose .dat is there."""
    with open(f"{folder}/SOURCES.md") as file:
        found = re.findall(r"^\| (\w+) \| \d+ \| (\d+) \|", file.read(), re.M)
    values = {name: int(value) for name, value in found if os.path.exists(f"{folder}/{name}.dat")}
    if "kra32" in values:
        values["kra32"] = 17740  # the list has five times the file's value
    return values


def minute(bench):
    """Each by two threads until it is at best known, or for a minute; esc16f, of value 0, is solved or not like the others."""
    folder = bench.options.qaplib
    if not folder:
        raise RuntimeError("--qaplib DIR, or SEKISHO_QAPLIB, is needed")
    gaps, sizes, wall, cpu = {}, {}, 0, 0
    part, parts = bench.options.part
    for name, value in list(best_known(folder).items())[part - 1 :: parts]:
        out = bench.path("minute.sln")
        run = Run([SEKISHO, "rankmap", "solve", "--qap", f"{folder}/{name}.dat", "-o", out, "--threads", "2", "--time", "60s",
                   "--target", str(value), "--quiet"]).checked()  # fmt: skip
        wall, cpu = wall + run.wall, cpu + run.cpu
        with open(out) as file:
            sizes[name], found = map(int, file.readline().split())
        gaps[name] = 100 * (found - value) / value if value else float(found > 0)
        if found > value:
            print(f"  {name} {found}: {gaps[name]:+.3f} %", file=sys.stderr)
    large = [gap for name, gap in gaps.items() if sizes[name] >= 50]
    small = [gap for name, gap in gaps.items() if sizes[name] <= 36]
    if parts > 1:  # the whole is whoever's who adds them up
        print(f"  part {part} of {parts}: {sum(large):.4f} % of {len(large)} with n >= 50; n <= 36: {sum(gap <= 0 for gap in small)} of {len(small)}; "
              f"in all {sum(gap <= 0 for gap in gaps.values())} of {len(gaps)}; {wall:.0f} s, {cpu:.0f} s CPU, load {os.getloadavg()[0]:.1f}")  # fmt: skip
        return
    bench.say("n ≥ 50: mean gap, %, 60 s of two threads", sum(large) / len(large), 0.12, 0.05, wall, cpu, form="{:.3f}")
    bench.say("n ≤ 36 at best known", sum(gap <= 0 for gap in small), len(small), None, at_least=True, form="{:d}")
    bench.say(f"of {len(gaps)} at best known", sum(gap <= 0 for gap in gaps.values()), 112, 118, at_least=True, form="{:d}")


def ours(seconds):
    """{instance: over the best of the 24 host-name orders}, the run"""
    run = Run([sys.executable, f"{HERE}/multi_cluster", "--time", str(seconds), "--threads", "2"]).checked()
    return {name: float(ratio) for name, ratio in re.findall(r"^\| (\w\w \d+) \|.*\| ([\d.]+) \|$", run.out, re.M)}, run


def clusters(bench):
    """Best seen: by ten seconds of ours, or the orders."""
    quick, _ = ours(1)
    slow, _ = ours(10)
    for name, ratio in quick.items():
        best = min(ratio, slow[name], 1)
        margin = 1 if name.endswith(" 64") else 1.05
        bench.say(f"{name}, 1 s, 2 threads: over the best of 24 host-name orders", ratio, min(1, margin * best), best, form="{:.4f}")


def held_back(bench):
    """Instances that nobody has tuned for: uniform and structured, made here; against paper 000's GRASP in the same time."""
    import random

    for kind, n in (("uniform", 45), ("grid", 56), ("sparse", 70)):
        chance = random.Random(n)
        side = next(d for d in range(int(n**0.5), 0, -1) if n % d == 0)

        def flow():
            return chance.randint(0, 99) if kind != "sparse" or chance.random() < 0.2 else 0

        def far(i, j):
            if kind == "uniform":
                return 0 if i == j else chance.randint(0, 99)
            return abs(i % side - j % side) + abs(i // side - j // side)

        path = bench.path(f"{kind}.dat")
        with open(path, "w") as file:
            file.write(f"{n}\n\n" + "".join(" ".join(str(0 if i == j else flow()) for j in range(n)) + "\n" for i in range(n)))
            file.write("\n" + "".join(" ".join(str(far(i, j)) for j in range(n)) + "\n" for i in range(n)))
        costs = {}
        for method in ("auto", "grasp"):
            out = bench.path("q.sln")
            solve(path, out, method)
            with open(out) as file:
                costs[method] = int(file.readline().split()[1])
        bench.say(f"{kind}, n = {n}, 5 s: over GRASP", costs["auto"] / costs["grasp"], 1.0, None, form="{:.4f}")


def solve(path, out, method):
    subprocess.run([SEKISHO, "rankmap", "solve", "--qap", path, "-o", out, "--method", method, "--time", "5s", "--quiet"], check=True,
                   capture_output=True)  # fmt: skip


ROWS = [("QAPLIB, short", short), ("QAPLIB, 60 s", minute), ("multi-cluster QAP", clusters), ("QAP, fresh instances", held_back)]
