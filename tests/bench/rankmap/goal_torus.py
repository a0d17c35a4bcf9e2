# SPDX-License-Identifier: Apache-2.0
# Goals on tori of some thousand nodes: paper 002's pattern and others, also with permuted ranks and on other shapes.
from goal import BIG

BRUCK = "bruck --ranks 4096 --bytes 2048"
FIGURE = {"hopbytes": "avg_hops", "maxlink": "max_link", "rmatt": "rmatt_eval", "steps": "step_sum"}


def one(bench, words, objective, seconds, must, stretch, torus=BIG, bytes_of_pattern=None):
    """A search; one of minutes ends early, once it has come to what it has to, or may."""
    target = bench.goal(must, stretch) * (bytes_of_pattern or 1) if seconds > 60 else None
    values, run = bench.solve(bench.pattern(words), torus, objective, seconds, target=target)
    figure = FIGURE[objective]
    bench.say(f"{figure}, {seconds:g} s", values[figure], must, stretch, run.wall, run.cpu)
    return values


def bruck_hops(bench):
    one(bench, BRUCK, "hopbytes", 10, 1.495, 1.475)
    one(bench, BRUCK, "hopbytes", bench.ten_minutes(), 1.482, 1.45, bytes_of_pattern=bench.bytes_of(BRUCK))


def bruck_links(bench):
    one(bench, BRUCK, "maxlink", 60, 7.60e6, 7.2e6)
    bench.solve(bench.pattern(BRUCK), BIG, "maxlink", bench.ten_minutes(), target=bench.goal(7.5e6, 6.8e6), keep="at-once")
    values = bench.evaluate(BIG, bench.pattern(BRUCK), bench.path("at-once"))
    bench.say(f"max_link, {bench.ten_minutes():g} s", values["max_link"], 7.50e6, 6.8e6)
    bench.say("simulated time all at once (max-min flows) over identity", simulated(bench, "rankmap_bench", "at-once", "time"),
              0.225, 0.205, form="{:.4f}")  # fmt: skip


def bruck_eval(bench):
    one(bench, BRUCK, "rmatt", bench.ten_minutes(), 1.85e12, 1.60e12)


def simulated(bench, program, placement, *words):
    pattern = bench.pattern(BRUCK)
    with open(bench.path("identity"), "w") as file:
        file.write("".join(f"{rank}\n" for rank in range(4096)))
    network = f"torus:{BIG}" if words else BIG
    times = [float(bench.test(program, *words, network, pattern, bench.path(name)).checked().out.split()[0])
             for name in (placement, "identity")]  # fmt: skip
    return times[0] / times[1]


def bruck_steps(bench):
    bench.solve(bench.pattern(BRUCK), BIG, "steps", bench.ten_minutes(), target=bench.goal(9.3e6, 8.9e6), keep="stepped")
    bench.say("simulated time step by step (SimGrid CM02) over identity", simulated(bench, "rankmap_simgrid", "stepped"), 0.2065, 0.195,
              form="{:.4f}")  # fmt: skip


def bruck_permuted(bench):
    words = f"{BRUCK} --permute 11"
    one(bench, words, "hopbytes", bench.ten_minutes(), 1.52, 1.45, bytes_of_pattern=bench.bytes_of(words))
    one(bench, words, "maxlink", bench.ten_minutes(), 8.6e6, 6.8e6)
    one(bench, words, "rmatt", bench.ten_minutes(), 1.96e12, 1.60e12)


def stencil(bench):
    for seed in (7, 8, 9):
        values, run = bench.solve(bench.pattern(f"stencil --grid {BIG} --permute {seed}"), BIG, "hopbytes", 5)
        bench.say(f"seed {seed}: avg_hops, 5 s", values["avg_hops"], 1.40, 1.0, run.wall, run.cpu)
        bench.say(f"seed {seed}: max_link, 60 s", values["max_link"], 65536, 65536, run.wall, run.cpu)


def halo(bench):
    words = "halo --grid 64x64"
    one(bench, words, "hopbytes", bench.ten_minutes(), 1.44, 1.25, bytes_of_pattern=bench.bytes_of(words))
    one(bench, words, "maxlink", bench.ten_minutes(), 262144, 196608)


def fft(bench):
    for words in ("fftrows --grid 64x64 --bytes 16384", "fftrows --grid 64x64 --bytes 16384 --permute 11"):
        values, run = bench.solve(bench.pattern(words), BIG, "hopbytes", 20)
        kind = "permuted" if "permute" in words else "natural order"
        bench.say(f"{kind}: avg_hops, 20 s", values["avg_hops"], 3.81, None, run.wall, run.cpu)
        one(bench, words, "maxlink", 60, 1048576, 917504)
    words, torus = "fftrows --grid 60x60 --bytes 16384", "16x16x15"
    against(bench, f"60x60, {torus}", bench.pattern(words), torus, ("hopbytes", "maxlink"), 30)


def random_graph(bench):
    words = "random --ranks 4096 --degree 4 --seed 5"
    one(bench, words, "hopbytes", bench.ten_minutes(), 5.40, 5.25, bytes_of_pattern=bench.bytes_of(words))
    one(bench, words, "maxlink", bench.ten_minutes(), 4.1e6, 3.5e6)


def against(bench, name, pattern, torus, objectives, seconds):
    """No worse than the best of as many relabelled Scotch runs as fit into the same time."""
    scotch, runs = bench.scotch(pattern, torus, seconds)
    for objective in objectives:
        values, run = bench.solve(pattern, torus, objective, seconds)
        figure = FIGURE[objective]
        bench.say(f"{name}: {figure}, {seconds:g} s, must: best of {runs} Scotch runs", values[figure], scotch[figure], None,
                  run.wall, run.cpu)  # fmt: skip


FRESH = {
    "Bruck": ("bruck --ranks 4096 --bytes 2048", BIG, ("hopbytes", "maxlink", "steps")),
    "Bruck, blocks of 24,576": ("bruck --ranks 4096 --bytes 24576", BIG, ("hopbytes", "maxlink")),
    "Bruck of 1,680": ("bruck --ranks 1680 --bytes 2048", "12x10x14", ("hopbytes", "maxlink")),
    "Bruck of 4,000": ("bruck --ranks 4000 --bytes 1000", BIG, ("hopbytes", "maxlink")),
    "halo 40x42": ("halo --grid 40x42", "12x10x14", ("hopbytes", "maxlink")),
    "FFT 40x42": ("fftrows --grid 40x42 --bytes 3000", "12x10x14", ("hopbytes", "maxlink")),
    "open stencil 15x14x13": ("stencil --grid 15x14x13 --open", BIG, ("hopbytes", "maxlink")),
    "stencil with corners 8x9x10": ("stencil --grid 8x9x10 --corners", "10x9x8", ("hopbytes", "maxlink")),
    "random of 4,000": ("random --ranks 4000 --degree 4 --seed 6", BIG, ("hopbytes", "maxlink")),
    "random of 900, degree 8": ("random --ranks 900 --degree 8 --seed 9", "10x10x10", ("hopbytes", "maxlink")),
    "NPB-like BT 31x31": ("bt --grid 31x31", "8x8x16", ("hopbytes", "maxlink")),
    "NPB-like MG 16x8x8": ("mg --grid 16x8x8", "12x12x8", ("hopbytes", "maxlink")),
}


def fresh(bench):
    for name, (words, torus, objectives) in FRESH.items():
        if "random" not in name:  # whose order says nothing
            against(bench, f"{name}, {torus}", bench.pattern(words), torus, objectives, bench.options.fresh)


def fresh_permuted(bench):
    for name, (words, torus, objectives) in FRESH.items():
        against(bench, f"{name}, {torus}", bench.pattern(f"{words} --permute 5"), torus, objectives, bench.options.fresh)


ROWS = [
    ("Bruck hops", bruck_hops),
    ("Bruck links", bruck_links),
    ("Bruck eval", bruck_eval),
    ("Bruck step by step", bruck_steps),
    ("Bruck permuted", bruck_permuted),
    ("permuted stencil", stencil),
    ("halo 64x64", halo),
    ("FFT rows", fft),
    ("random graph", random_graph),
    ("fresh shapes", fresh),
    ("permuted fresh shapes", fresh_permuted),
]
