/* SPDX-License-Identifier: Apache-2.0 */
#include "rankmap/trace/collectives.h"

/* Where coll/tuned changes its mind. */
enum { ALLREDUCE_RING = 10000, ALLGATHER_RING = 50000, GATHER_BINOMIAL_RANKS = 10, GATHER_BINOMIAL = 1024,
       SCATTER_BINOMIAL_RANKS = 10, SCATTER_BINOMIAL = 300, ALLTOALL_BRUCK_RANKS = 12, ALLTOALL_BRUCK = 200 };

static void send_to(const traffic_caller *caller, int peer, uint64_t bytes) {
  caller->sent(caller->context, peer, bytes);
}

static int shifted(const traffic_caller *caller, int by) {
  return (int)(((int64_t)caller->rank + by % caller->size + caller->size) % caller->size);
}

static int is_power_of_two(int number) { return (number & (number - 1)) == 0; }

/* In a binomial tree whose root is 0: the ranks that hang below a child at `distance`, itself among them. */
static int subtree(int virtual_rank, int distance, int size) {
  const int child = virtual_rank + distance;
  return child + distance <= size ? distance : size - child;
}

static int lowest_bit(int virtual_rank, int size) {
  int bit = 1;
  while (bit < size && (virtual_rank & bit) == 0) {
    bit <<= 1;
  }
  return bit;
}

/* From the root down; a message carries `each` for every rank of the subtree, or `whole`. */
static void down_tree(const traffic_caller *caller, int root, uint64_t each, uint64_t whole) {
  const int self = shifted(caller, -root);
  for (int distance = lowest_bit(self, caller->size) >> 1; distance > 0; distance >>= 1) {
    if (self + distance < caller->size) {
      send_to(caller, (self + distance + root) % caller->size,
              whole + each * (uint64_t)subtree(self, distance, caller->size));
    }
  }
}

/* And up. */
static void up_tree(const traffic_caller *caller, int root, uint64_t each, uint64_t whole) {
  const int self = shifted(caller, -root);
  if (self == 0) {
    return;
  }
  const int distance = lowest_bit(self, caller->size);
  send_to(caller, (self - distance + root) % caller->size,
          whole + each * (uint64_t)subtree(self - distance, distance, caller->size));
}

/* `bytes` cut as evenly as goes into a block for each rank. */
static uint64_t part_of(uint64_t bytes, int which, int size) {
  return bytes / (uint64_t)size + ((uint64_t)which < bytes % (uint64_t)size);
}

void traffic_barrier(const traffic_caller *caller) {
  for (int distance = 1; distance < caller->size; distance <<= 1) {
    send_to(caller, shifted(caller, distance), 0);
  }
}

void traffic_bcast(const traffic_caller *caller, int root, uint64_t bytes) { down_tree(caller, root, 0, bytes); }

void traffic_reduce(const traffic_caller *caller, int root, uint64_t bytes) { up_tree(caller, root, 0, bytes); }

/* Ranks beyond a power of two give theirs to a neighbour before, and get the result after. */
static void recursive_doubling(const traffic_caller *caller, uint64_t bytes) {
  int power = 1;
  while (power * 2 <= caller->size) {
    power *= 2;
  }
  const int extra = caller->size - power;
  const int has_partner = caller->rank < 2 * extra;
  if (has_partner && caller->rank % 2 == 0) {
    send_to(caller, caller->rank + 1, bytes);
    return;
  }
  const int self = has_partner ? caller->rank / 2 : caller->rank - extra;
  for (int distance = 1; distance < power; distance <<= 1) {
    const int other = self ^ distance;
    send_to(caller, other < extra ? 2 * other + 1 : other + extra, bytes);
  }
  if (has_partner) {
    send_to(caller, caller->rank - 1, bytes);
  }
}

void traffic_allreduce(const traffic_caller *caller, uint64_t bytes) {
  if (bytes < ALLREDUCE_RING) {
    recursive_doubling(caller, bytes);
    return;
  }
  for (int step = 0; step < caller->size - 1; ++step) { /* each block goes round, and its sum again */
    send_to(caller, shifted(caller, 1), part_of(bytes, shifted(caller, -step), caller->size));
    send_to(caller, shifted(caller, 1), part_of(bytes, shifted(caller, 1 - step), caller->size));
  }
}

void traffic_gather(const traffic_caller *caller, int root, uint64_t block) {
  if (caller->size >= GATHER_BINOMIAL_RANKS && block < GATHER_BINOMIAL) {
    up_tree(caller, root, block, 0);
  } else {
    traffic_gatherv(caller, root, block);
  }
}

void traffic_gatherv(const traffic_caller *caller, int root, uint64_t own) {
  if (caller->rank != root) {
    send_to(caller, root, own);
  }
}

void traffic_scatter(const traffic_caller *caller, int root, uint64_t block) {
  if (caller->size > SCATTER_BINOMIAL_RANKS && block < SCATTER_BINOMIAL) {
    down_tree(caller, root, block, 0);
    return;
  }
  for (int peer = 0; caller->rank == root && peer < caller->size; ++peer) {
    if (peer != root) {
      send_to(caller, peer, block);
    }
  }
}

void traffic_scatterv(const traffic_caller *caller, int root, const uint64_t *blocks) {
  for (int peer = 0; caller->rank == root && peer < caller->size; ++peer) {
    if (peer != root) {
      send_to(caller, peer, blocks[peer]);
    }
  }
}

void traffic_allgather(const traffic_caller *caller, uint64_t block) {
  const int size = caller->size;
  if (block * (uint64_t)size >= ALLGATHER_RING) {
    for (int step = 0; step < size - 1; ++step) {
      send_to(caller, shifted(caller, 1), block);
    }
    return;
  }
  for (int distance = 1; distance < size; distance <<= 1) { /* recursive doubling, else Bruck's */
    const int count = distance < size - distance ? distance : size - distance;
    send_to(caller, is_power_of_two(size) ? caller->rank ^ distance : shifted(caller, -distance),
            block * (uint64_t)count);
  }
}

void traffic_allgatherv(const traffic_caller *caller, const uint64_t *blocks) {
  for (int step = 0; step < caller->size - 1; ++step) {
    send_to(caller, shifted(caller, 1), blocks[shifted(caller, -step)]);
  }
}

void traffic_alltoall(const traffic_caller *caller, uint64_t block) {
  const int size = caller->size;
  if (size >= ALLTOALL_BRUCK_RANKS && block < ALLTOALL_BRUCK) {
    for (int distance = 1; distance < size; distance <<= 1) {
      int count = 0;
      for (int which = 1; which < size; ++which) {
        count += (which & distance) != 0;
      }
      send_to(caller, shifted(caller, distance), block * (uint64_t)count);
    }
    return;
  }
  for (int step = 1; step < size; ++step) {
    send_to(caller, shifted(caller, step), block);
  }
}

void traffic_alltoallv(const traffic_caller *caller, const uint64_t *blocks) {
  for (int step = 1; step < caller->size; ++step) {
    send_to(caller, shifted(caller, step), blocks[shifted(caller, step)]);
  }
}

void traffic_reduce_scatter(const traffic_caller *caller, const uint64_t *blocks) {
  for (int step = 0; step < caller->size - 1; ++step) { /* a ring: the block of the rank behind first */
    send_to(caller, shifted(caller, 1), blocks[shifted(caller, -1 - step)]);
  }
}

void traffic_reduce_scatter_block(const traffic_caller *caller, uint64_t block) {
  traffic_reduce(caller, 0, block * (uint64_t)caller->size);
  traffic_scatter(caller, 0, block);
}

void traffic_scan(const traffic_caller *caller, uint64_t bytes) {
  if (caller->rank + 1 < caller->size) {
    send_to(caller, caller->rank + 1, bytes);
  }
}
