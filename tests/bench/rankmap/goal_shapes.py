# SPDX-License-Identifier: Apache-2.0
# What no solver here was made for: patterns that `rankmap gen` does not know, with permuted ranks unless said, on tori that are no cubes, meshes,
# machines of five dimensions, fat-trees, partly filled, several ranks a node; never worse than the best of as many relabelled Scotch
# runs as fit into the same time.
import os

import shapes
from goal_torus import against

# name: (network, pattern or words of `rankmap gen`)
CASES = {
    "pencils 32x32, 8x8x16": ("8x8x16", lambda: shapes.pencils(32, 32, 4096)),
    "pencils 24x36, 12x10x8": ("12x10x8", lambda: shapes.pencils(24, 36, 1000)),
    "rows of 30, 40 of them, 12x10x10": ("12x10x10", "fftrows --grid 30x40 --bytes 2000 --permute 3"),
    "all-to-all of 200, 6x6x6": ("6x6x6", "alltoall --ranks 200 --bytes 3000"),
    "hubs, 1,680 in 40s, 12x10x14": ("12x10x14", lambda: shapes.hubs(1680, 40, 8192)),
    "master of 1,000, 10x10x10": ("10x10x10", lambda: shapes.master(1000, 65536)),
    "mesh of 4,000 in space, 16x16x16": ("16x16x16", lambda: shapes.mesh(4000, 3, 8, 1)),
    "mesh of 1,600 in the plane, 12x10x14": ("12x10x14", lambda: shapes.mesh(1600, 2, 6, 2)),
    "scale-free, 2,000, 16x16x8": ("16x16x8", lambda: shapes.scale_free(2000, 4, 3)),
    "box 8x8x8x8, 16x16x16": ("16x16x16", lambda: shapes.box((8, 8, 8, 8), (4096,) * 4)),
    "box 12x10x14, uneven bytes": ("12x10x14", lambda: shapes.box((12, 10, 14), (65536, 1024, 16))),
    "box 64x64, 16x16x16": ("16x16x16", lambda: shapes.box((64, 64), (65536, 65536))),
    "box 30x56, 12x10x14": ("12x10x14", lambda: shapes.box((30, 56), (6000, 1000))),
    "ring of 3,000, 16x16x12": ("16x16x12", lambda: shapes.box((3000,), (1024,))),
    "hypercube of 2,048, 16x16x8": ("16x16x8", lambda: shapes.cube(11, 4096)),
    "teams of 24, 70 of them, 12x10x14": ("12x10x14", lambda: shapes.blocks(70, 24, 4096, 65536)),
    "shuffles, 3 of 1,500, 12x10x14": ("12x10x14", lambda: shapes.shuffles(1500, 3, 4)),
    "binomial tree of 2,000, 16x16x8": ("16x16x8", lambda: shapes.tree(2000, 64)),
    "random, 1,680 of degree 2, 12x10x14": ("12x10x14", "random --ranks 1680 --degree 2 --seed 3"),
    "random, 2,000 of degree 16, 16x16x8": ("16x16x8", "random --ranks 2000 --degree 16 --seed 4"),
    "Bruck of 1,000, 16x16x16": ("16x16x16", "bruck --ranks 1000 --bytes 512 --permute 4"),
    "recursive, 1,024, 8x8x16": ("8x8x16", "recursive --ranks 1024 --bytes 512 --permute 4"),
    "Bruck of 4,096, 8x8x8 of 8": ("torus:8x8x8,capacity=8", "bruck --ranks 4096 --bytes 2048 --permute 4"),
    "mesh in space of 3,900, 10x10x10 of 4": ("torus:10x10x10,capacity=4", lambda: shapes.mesh(3900, 3, 8, 6)),
    "halo 60x60, 8x8x15 of 4": ("torus:8x8x15,capacity=4", "halo --grid 60x60 --permute 4"),
    "random of 1,900, degree 4, 10x10x5 of 4": ("torus:10x10x5,capacity=4", "random --ranks 1900 --degree 4 --seed 4"),
    "Bruck of 1,024, mesh 8x8x16": ("mesh:8x8x16", "bruck --ranks 1024 --bytes 2048 --permute 4"),
    "mesh in space of 1,500, mesh 12x10x14": ("mesh:12x10x14", lambda: shapes.mesh(1500, 3, 8, 7)),
    "box 32x32, mesh 32x32": ("mesh:32x32", lambda: shapes.box((32, 32), (1024, 1024))),
    "Bruck of 1,024, 4x4x4x8x2": ("4x4x4x8x2", "bruck --ranks 1024 --bytes 2048 --permute 4"),
    "Bruck of 1,024 in its order, 4x4x4x8x2": ("4x4x4x8x2", "bruck --ranks 1024 --bytes 2048"),
    "Bruck of 480, 6x10x4x2": ("6x10x4x2", "bruck --ranks 480 --bytes 2048 --permute 4"),
    "Bruck of 480 in its order, 6x10x4x2": ("6x10x4x2", "bruck --ranks 480 --bytes 2048"),
    "Bruck of 625, 5x5x5x5": ("5x5x5x5", "bruck --ranks 625 --bytes 2048 --permute 4"),
    "recursive, 512, 8x4x4x2x2": ("8x4x4x2x2", "recursive --ranks 512 --bytes 512 --permute 4"),
    "rows of 24, 20 of them, 6x10x4x2": ("6x10x4x2", "fftrows --grid 20x24 --bytes 4096 --permute 4"),
    "rows of 60, 50 of them, 16x16x12": ("16x16x12", "fftrows --grid 50x60 --bytes 4096 --permute 4"),
    "mesh in space of 600, 5x5x5x5": ("5x5x5x5", lambda: shapes.mesh(600, 3, 8, 21)),
    "mesh in space of 1,000, 4x4x4x8x2": ("4x4x4x8x2", lambda: shapes.mesh(1000, 3, 8, 8)),
    "random of 60, degree 5, ring of 64": ("64", "random --ranks 60 --degree 5 --seed 4"),
    "LU of 729, 9x9x9": ("9x9x9", "lu --grid 27x27 --permute 4"),
    "LU of 729 in its order, 9x9x9": ("9x9x9", "lu --grid 27x27"),
    "stencil 27x9x9, 13x13x13": ("13x13x13", "stencil --grid 27x9x9 --permute 4"),
    "stencil 27x9x9 in its order, 13x13x13": ("13x13x13", "stencil --grid 27x9x9"),
    "stencil 16x12x16, mesh 32x4x8 of 3": ("mesh:32x4x8,capacity=3", "stencil --grid 16x12x16 --permute 4"),
    "Bruck of 3,072, mesh 32x4x8 of 3": ("mesh:32x4x8,capacity=3", "bruck --ranks 3072 --bytes 1024 --permute 4"),
    "mesh in space of 3,000, mesh 32x4x8 of 3": ("mesh:32x4x8,capacity=3", lambda: shapes.mesh(3000, 3, 8, 22)),
    "Bruck of 768, 16x6x8": ("16x6x8", "bruck --ranks 768 --bytes 2048 --permute 4"),
    "all-to-all of 300, 7x7x7": ("7x7x7", "alltoall --ranks 300 --bytes 100 --permute 4"),
    "MG of 1,000, 12x10x14": ("12x10x14", "mg --grid 10x10x10 --permute 4"),
    "Bruck of 512, fat-tree 8x8x8": ("tree:8:3:4,8:2:2,8:1", "bruck --ranks 512 --bytes 2048 --permute 4"),
    "mesh in space of 700, fat-tree 9x9x9": ("tree:9:3:4,9:2:2,9:1", lambda: shapes.mesh(700, 3, 8, 9)),
}  # fmt: skip


def run(bench):
    seconds = bench.options.fresh
    part, parts = bench.options.part
    for number, (name, (network, pattern)) in list(enumerate(CASES.items()))[part - 1 :: parts]:
        if callable(pattern):
            path = bench.path(f"shape-{number}")
            shapes.write(path, pattern(), permute=5)
        else:
            path = bench.pattern(pattern)
        by_step = isinstance(pattern, str) and pattern.startswith(("bruck", "recursive", "mg"))
        against(bench, name, path, network, ("hopbytes", "maxlink", "rmatt", "steps")[: 4 if by_step else 3], seconds)
        if callable(pattern):
            os.unlink(path)


ROWS = [("other shapes", run)]
