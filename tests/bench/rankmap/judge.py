# SPDX-License-Identifier: Apache-2.0
# The values of a placement on a torus, written a second time and as plainly as they are defined: whom `rankmap eval` is compared
# with.  Order x, y, z; half way round goes plus.
import collections
import math

KEYS = ("hop_bytes", "hops_sum", "max_link", "rmatt_eval", "step_sum")


def size(sides):
    return math.prod(sides)


def read(path):
    """(ranks, [(source, target, bytes, step, messages)])"""
    messages, ranks = [], 0
    with open(path) as file:
        for line in file:
            words = line.split("#")[0].split()
            if words and words[0] == "ranks":
                ranks = int(words[1])
            elif words:
                source, target, amount, step, count = [*map(int, words), *(0, 1)[len(words) - 3 :]]
                messages.append((source, target, amount, step, count))
    return ranks, messages


def route(sides, here, there):
    """The links from node to node: (node, dimension, direction)."""
    stride = 1
    for dimension, side in enumerate(sides):
        at, end = here // stride % side, there // stride % side
        step = 1 if 2 * ((end - at) % side) <= side else -1
        while at != end:
            yield here, dimension, step
            following = (at + step) % side
            here += (following - at) * stride
            at = following
        stride *= side


def values(sides, messages, nodes):
    loads, steps = collections.Counter(), collections.defaultdict(collections.Counter)
    hop_bytes = hops_sum = 0
    for source, target, amount, step, count in messages:
        hops = 0
        for link in route(sides, nodes[source], nodes[target]):
            hops += 1
            loads[link] += amount
            steps[step][link] += amount
        hop_bytes += amount * hops
        hops_sum += count * hops
    most = max(loads.values(), default=0)
    return {"hop_bytes": hop_bytes, "hops_sum": hops_sum, "max_link": most, "rmatt_eval": hops_sum * most,
            "step_sum": sum(max(one.values()) for one in steps.values())}  # fmt: skip
