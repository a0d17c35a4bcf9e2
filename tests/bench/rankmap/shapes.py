# SPDX-License-Identifier: Apache-2.0
# Patterns that `rankmap gen` does not know, as lists of (source, target, bytes): whoever solves only what it was written for fails here.
import random


def pencils(rows, columns, amount):
    """A 3-D FFT on rows x columns pencils: all-to-all in each row, then in each column."""
    rank = lambda x, y: x + columns * y  # noqa: E731
    return rows * columns, [
        (rank(x, y), rank(*other), amount)
        for y in range(rows) for x in range(columns)
        for other in [(k, y) for k in range(columns) if k != x] + [(x, k) for k in range(rows) if k != y]
    ]  # fmt: skip


def hubs(ranks, group, amount):
    """Each group's first rank talks to its members, and to the other first ones."""
    messages = []
    for rank in range(ranks):
        hub = rank - rank % group
        if rank != hub:
            messages += [(rank, hub, amount), (hub, rank, amount)]
    firsts = range(0, ranks, group)
    return ranks, messages + [(a, b, amount * group // 8) for a in firsts for b in firsts if a != b]


def master(ranks, amount):
    """One rank serves all the others, which are a ring."""
    ring = [(r, (r + d) % ranks, amount) for r in range(ranks) for d in (1, ranks - 1)]
    return ranks, ring + [(0, r, amount // 16) for r in range(1, ranks)] + [(r, 0, amount // 16) for r in range(1, ranks)]


def mesh(ranks, dimensions, degree, seed):
    """An unstructured mesh: points at random, each with its nearest ones, more bytes to the nearer."""
    chance = random.Random(seed)
    points = [[chance.random() for _ in range(dimensions)] for _ in range(ranks)]
    cells = max(int((ranks / 4) ** (1 / dimensions)), 1)
    where = {}
    for rank, point in enumerate(points):
        where.setdefault(tuple(int(c * cells) for c in point), []).append(rank)

    def around(cell, reach):
        if not cell:
            return [()]
        return [(cell[0] + d, *rest) for d in range(-reach, reach + 1) for rest in around(cell[1:], reach)]

    messages = {}
    for rank, point in enumerate(points):
        near, reach = [], 1
        while len(near) <= degree:
            near = [other for cell in around(tuple(int(c * cells) for c in point), reach) for other in where.get(cell, ())]
            reach += 1
        near.sort(key=lambda other: sum((a - b) ** 2 for a, b in zip(point, points[other])))
        for place, other in enumerate(near[1 : degree + 1]):
            messages[rank, other] = messages[other, rank] = 4096 * (degree - place)
    return ranks, [(a, b, amount) for (a, b), amount in messages.items()]


def scale_free(ranks, degree, seed):
    """New ranks talk to old ones, mostly to those that many talk to."""
    chance = random.Random(seed)
    ends, messages = [0], []
    for rank in range(1, ranks):
        for other in {chance.choice(ends) for _ in range(degree)} - {rank}:
            amount = 1024 * chance.randint(1, 32)
            messages += [(rank, other, amount), (other, rank, amount)]
            ends += [rank, other]
    return ranks, messages


def box(sides, amounts):
    """A periodic stencil of any dimension, its own bytes along each."""
    strides, ranks = [], 1
    for side in sides:
        strides.append(ranks)
        ranks *= side
    messages = []
    for rank in range(ranks):
        for side, stride, amount in zip(sides, strides, amounts):
            at = rank // stride % side
            messages += [(rank, rank + ((at + d) % side - at) * stride, amount) for d in ((1, -1) if side > 2 else (1,)) if side > 1]
    return ranks, messages


def cube(dimensions, amount):
    """A hypercube of equal weights."""
    return 1 << dimensions, [(r, r ^ (1 << k), amount) for r in range(1 << dimensions) for k in range(dimensions)]


def blocks(count, size, amount, between):
    """Teams that talk among themselves, each rank also to the like rank of the following team."""
    ranks = count * size
    inside = [(r, r - r % size + k, amount) for r in range(ranks) for k in range(size) if r % size != k]
    return ranks, inside + [(r, (r + size) % ranks, between) for r in range(ranks)]


def shuffles(ranks, rounds, seed):
    """In each step every rank sends once and receives once."""
    chance, messages = random.Random(seed), []
    for _ in range(rounds):
        targets = list(range(ranks))
        chance.shuffle(targets)
        amount = 1024 * chance.randint(1, 64)
        messages += [(r, t, amount) for r, t in enumerate(targets) if r != t]
    return ranks, messages


def tree(ranks, amount):
    """A binomial tree: the farther up, the more."""
    messages = []
    for rank in range(1, ranks):
        low = rank & -rank
        messages += [(rank, rank - low, amount * low), (rank - low, rank, amount)]
    return ranks, messages


SHAPES = {
    "pencils": pencils, "hubs": hubs, "master": master, "mesh": mesh, "scale-free": scale_free, "box": box, "cube": cube,
    "blocks": blocks, "shuffles": shuffles, "tree": tree,
}  # fmt: skip


def write(path, shape, permute=None):
    ranks, messages = shape
    label = list(range(ranks))
    if permute is not None:
        random.Random(permute).shuffle(label)
    with open(path, "w") as file:
        file.write(f"ranks {ranks}\n")
        file.writelines(f"{label[a]} {label[b]} {amount}\n" for a, b, amount in messages)
