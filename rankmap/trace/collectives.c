/* SPDX-License-Identifier: Apache-2.0 */
#include "rankmap/trace/collectives.h"

#include "rankmap/trace/choices.h"

/* Some choices count elements: they are taken for doubles. */
enum { ELEMENT = 8, KNOMIAL_RADIX = 4 };

static void send_to(const traffic_caller *caller, int peer, uint64_t bytes) {
  caller->sent(caller->context, peer, bytes);
}

static int shifted(const traffic_caller *caller, int by) {
  return (int)(((int64_t)caller->rank + by % caller->size + caller->size) % caller->size);
}

static int is_power_of_two(int number) { return (number & (number - 1)) == 0; }

static int largest_power(int size) {
  int power = 1;
  while (power * 2 <= size) {
    power *= 2;
  }
  return power;
}

/* The ranks counted from the root, and back. */
static int from_root(const traffic_caller *caller, int root) { return shifted(caller, -root); }

static void send_from_root(const traffic_caller *caller, int root, int other, uint64_t bytes) {
  send_to(caller, (other + root) % caller->size, bytes);
}

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
  const int self = from_root(caller, root);
  for (int distance = lowest_bit(self, caller->size) >> 1; distance > 0; distance >>= 1) {
    if (self + distance < caller->size) {
      send_from_root(caller, root, self + distance, whole + each * (uint64_t)subtree(self, distance, caller->size));
    }
  }
}

/* And up. */
static void up_tree(const traffic_caller *caller, int root, uint64_t each, uint64_t whole) {
  const int self = from_root(caller, root);
  if (self == 0) {
    return;
  }
  const int distance = lowest_bit(self, caller->size);
  send_from_root(caller, root, self - distance, whole + each * (uint64_t)subtree(self - distance, distance, caller->size));
}

/* A binary tree in breadth: a level's first half of children follows it, then the second. */
static int binary_level(int self) {
  int width = 1;
  while (2 * width - 1 <= self) {
    width *= 2;
  }
  return width; /* of its level, which begins at width - 1 */
}

static void down_binary(const traffic_caller *caller, int root, uint64_t bytes) {
  const int self = from_root(caller, root);
  const int width = binary_level(self);
  for (int child = self + width; child <= self + 2 * width && child < caller->size; child += width) {
    send_from_root(caller, root, child, bytes);
  }
}

static void up_binary(const traffic_caller *caller, int root, uint64_t bytes) {
  const int self = from_root(caller, root);
  if (self == 0) {
    return;
  }
  const int width = binary_level(self) / 2; /* of the parent's level, from width - 1 to 2 width - 2 */
  send_from_root(caller, root, self - width < 2 * width - 1 ? self - width : self - 2 * width, bytes);
}

/* A child has one bit more, above its parent's highest. */
static void down_high_bits(const traffic_caller *caller, int root, uint64_t bytes) {
  const int self = from_root(caller, root);
  int bit = 1;
  while (bit <= self) {
    bit <<= 1;
  }
  for (; bit < caller->size && self + bit < caller->size; bit <<= 1) {
    send_from_root(caller, root, self + bit, bytes);
  }
}

static void down_knomial(const traffic_caller *caller, int root, uint64_t bytes) {
  const int self = from_root(caller, root);
  int64_t reach = 1;
  while (reach < caller->size && self % (KNOMIAL_RADIX * reach) == 0) {
    reach *= KNOMIAL_RADIX;
  }
  for (reach /= KNOMIAL_RADIX; reach > 0; reach /= KNOMIAL_RADIX) {
    for (int i = 1; i < KNOMIAL_RADIX && self + i * reach < caller->size; ++i) {
      send_from_root(caller, root, (int)(self + i * reach), bytes);
    }
  }
}

static void straight_to(const traffic_caller *caller, int root, uint64_t bytes) {
  if (caller->rank != root) {
    send_to(caller, root, bytes);
  }
}

static void straight_from(const traffic_caller *caller, int root, uint64_t bytes) {
  for (int peer = 0; caller->rank == root && peer < caller->size; ++peer) {
    if (peer != root) {
      send_to(caller, peer, bytes);
    }
  }
}

/* `bytes` cut as evenly as goes into a block for each rank. */
static uint64_t part_of(uint64_t bytes, int which, int size) {
  return bytes / (uint64_t)size + ((uint64_t)which < bytes % (uint64_t)size);
}

/* Blocks by a binomial tree, then each rank gets every other's. */
static void scattered_bcast(const traffic_caller *caller, int root, uint64_t bytes) {
  const uint64_t block = part_of(bytes, 0, caller->size);
  down_tree(caller, root, block, 0);
  const int self = from_root(caller, root);
  for (int distance = 1; distance < caller->size; distance <<= 1) {
    const int count = distance < caller->size - distance ? distance : caller->size - distance;
    const int other = is_power_of_two(caller->size) ? self ^ distance : (self + caller->size - distance) % caller->size;
    send_from_root(caller, root, other, block * (uint64_t)count);
  }
}

void traffic_bcast(const traffic_caller *caller, int root, uint64_t bytes) {
  switch (choose_bcast(caller->size, bytes)) {
    case BCAST_LINEAR: straight_from(caller, root, bytes); break;
    case BCAST_CHAIN:
      if (from_root(caller, root) + 1 < caller->size) {
        send_to(caller, shifted(caller, 1), bytes);
      }
      break;
    case BCAST_BINARY: down_binary(caller, root, bytes); break;
    case BCAST_BINOMIAL: down_high_bits(caller, root, bytes); break;
    case BCAST_KNOMIAL: down_knomial(caller, root, bytes); break;
    case BCAST_SCATTERED: scattered_bcast(caller, root, bytes); break;
  }
}

void traffic_reduce(const traffic_caller *caller, int root, uint64_t bytes) {
  switch (choose_reduce(caller->size, bytes)) {
    case REDUCE_LINEAR: straight_to(caller, root, bytes); break;
    case REDUCE_CHAIN:
      if (caller->rank != root) {
        send_to(caller, shifted(caller, -1), bytes);
      }
      break;
    case REDUCE_BINARY: up_binary(caller, root, bytes); break;
    case REDUCE_BINOMIAL: up_tree(caller, root, 0, bytes); break;
  }
}

/* Who takes part when only a power of two of the ranks does: of the first 2 x `extra` every second one. */
typedef struct {
  int extra;
  int self; /* our number among them; -1: a neighbour does our part */
  int odd;  /* 1: of the first pairs the odd ranks take part */
} few;

static few few_of(const traffic_caller *caller, int odd) {
  const int extra = caller->size - largest_power(caller->size);
  const few of = {extra,
                  caller->rank >= 2 * extra    ? caller->rank - extra
                  : caller->rank % 2 == odd ? caller->rank / 2
                                               : -1,
                  odd};
  return of;
}

static int rank_of(few of, int other) { return other < of.extra ? 2 * other + of.odd : other + of.extra; }

/* Ranks beyond a power of two give theirs to a neighbour before, and get the result after. */
static void recursive_doubling(const traffic_caller *caller, uint64_t bytes) {
  const few of = few_of(caller, 1);
  if (of.self < 0) {
    send_to(caller, caller->rank + 1, bytes);
    return;
  }
  for (int distance = 1; distance < caller->size - of.extra; distance <<= 1) {
    send_to(caller, rank_of(of, of.self ^ distance), bytes);
  }
  if (of.self < of.extra) {
    send_to(caller, caller->rank - 1, bytes);
  }
}

/* Each block goes round, and its sum again. */
static void allreduce_ring(const traffic_caller *caller, uint64_t bytes) {
  for (int step = 0; step < caller->size - 1; ++step) {
    send_to(caller, shifted(caller, 1), part_of(bytes, shifted(caller, -step), caller->size));
    send_to(caller, shifted(caller, 1), part_of(bytes, shifted(caller, 1 - step), caller->size));
  }
}

/* Rabenseifner's: halves to a partner, halves of the half to the next; then their sums the same way back. */
static void allreduce_halving(const traffic_caller *caller, uint64_t bytes) {
  const few of = few_of(caller, 0);
  const uint64_t left = bytes / ELEMENT / 2 * ELEMENT;
  if (of.self < 0) { /* half of each one's sums by its neighbour */
    send_to(caller, caller->rank - 1, left);
    send_to(caller, caller->rank - 1, bytes - left);
    return;
  }
  const int has_pair = of.self < of.extra;
  if (has_pair) {
    send_to(caller, caller->rank + 1, bytes - left);
  }
  uint64_t window = bytes / ELEMENT;
  for (int distance = 1; distance < caller->size - of.extra; distance <<= 1) {
    const int other = of.self ^ distance;
    const uint64_t half = window / 2;
    const uint64_t kept = of.self < other ? half : window - half;
    send_to(caller, rank_of(of, other), (window - kept) * ELEMENT);
    send_to(caller, rank_of(of, other), kept * ELEMENT); /* on the way back */
    window = kept;
  }
  if (has_pair) {
    send_to(caller, caller->rank + 1, bytes);
  }
}

void traffic_allreduce(const traffic_caller *caller, uint64_t bytes) {
  const int power = largest_power(caller->size);
  switch (choose_allreduce(caller->size, bytes)) {
    case ALLREDUCE_REDUCED:
      traffic_reduce(caller, 0, bytes);
      traffic_bcast(caller, 0, bytes);
      return;
    case ALLREDUCE_DOUBLING: recursive_doubling(caller, bytes); return;
    case ALLREDUCE_RING:
      if (bytes / ELEMENT < (uint64_t)caller->size) {
        recursive_doubling(caller, bytes);
      } else {
        allreduce_ring(caller, bytes);
      }
      return;
    case ALLREDUCE_HALVING:
      if (bytes / ELEMENT < (uint64_t)power) {
        straight_to(caller, 0, bytes);
        straight_from(caller, 0, bytes);
      } else {
        allreduce_halving(caller, bytes);
      }
      return;
  }
}

void traffic_barrier(const traffic_caller *caller) {
  const barrier_choice choice = choose_barrier(caller->size);
  if (choice == BARRIER_LINEAR) {
    straight_to(caller, 0, 0);
    straight_from(caller, 0, 0);
    return;
  }
  const int power = largest_power(caller->size);
  if (choice == BARRIER_BRUCK) {
    for (int distance = 1; distance < caller->size; distance <<= 1) {
      send_to(caller, shifted(caller, distance), 0);
    }
  } else if (caller->rank >= power) {
    send_to(caller, caller->rank - power, 0);
  } else {
    for (int distance = 1; distance < power; distance <<= 1) {
      send_to(caller, caller->rank ^ distance, 0);
    }
    if (caller->rank + power < caller->size) {
      send_to(caller, caller->rank + power, 0);
    }
  }
}

void traffic_gather(const traffic_caller *caller, int root, uint64_t block) {
  if (choose_gather(caller->size, block) == BY_TREE) {
    up_tree(caller, root, block, 0);
  } else {
    straight_to(caller, root, block);
  }
}

void traffic_gatherv(const traffic_caller *caller, int root, uint64_t own) { straight_to(caller, root, own); }

void traffic_scatter(const traffic_caller *caller, int root, uint64_t block) {
  if (choose_scatter(caller->size, block) == BY_TREE) {
    down_tree(caller, root, block, 0);
  } else {
    straight_from(caller, root, block);
  }
}

void traffic_scatterv(const traffic_caller *caller, int root, const uint64_t *blocks) {
  for (int peer = 0; caller->rank == root && peer < caller->size; ++peer) {
    if (peer != root) {
      send_to(caller, peer, blocks[peer]);
    }
  }
}

/* Each rank's block, or the same of all. */
typedef struct {
  const uint64_t *each;
  uint64_t same;
} blocks_of;

static uint64_t block_of(blocks_of blocks, int rank) { return blocks.each ? blocks.each[rank] : blocks.same; }

static uint64_t sum_of(const traffic_caller *caller, blocks_of blocks, int first, int count) {
  uint64_t sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += block_of(blocks, (first + i) % caller->size);
  }
  return sum;
}

static void allgather_ring(const traffic_caller *caller, blocks_of blocks) {
  for (int step = 0; step < caller->size - 1; ++step) {
    send_to(caller, shifted(caller, 1), block_of(blocks, shifted(caller, -step)));
  }
}

/* By turns with the one neighbour and the other: at first the own block, then the two that came last. */
static void allgather_neighbours(const traffic_caller *caller, blocks_of blocks) {
  const int is_even = caller->rank % 2 == 0;
  const int partner = shifted(caller, is_even ? 1 : -1);
  const int other = shifted(caller, is_even ? -1 : 1);
  send_to(caller, partner, block_of(blocks, caller->rank));
  int first = is_even ? caller->rank : partner; /* of the two blocks that go on */
  for (int step = 1; step < caller->size / 2; ++step) {
    const int to_other = step % 2 == 1;
    send_to(caller, to_other ? other : partner, sum_of(caller, blocks, first, 2));
    /* What comes is the pair beyond those we have, on the side that we have just turned to. */
    const int side = to_other == is_even ? -1 : 1;
    first = (int)(((int64_t)(is_even ? caller->rank : partner) + side * 2 * ((step + 1) / 2) + 2 * (int64_t)caller->size) %
                  caller->size);
  }
}

/* Recursive doubling, else Bruck's. */
static void allgather_doubling(const traffic_caller *caller, blocks_of blocks, int is_doubling) {
  for (int distance = 1; distance < caller->size; distance <<= 1) {
    const int count = distance < caller->size - distance ? distance : caller->size - distance;
    if (is_doubling && is_power_of_two(caller->size)) {
      send_to(caller, caller->rank ^ distance, sum_of(caller, blocks, caller->rank & ~(distance - 1), count));
    } else {
      send_to(caller, shifted(caller, -distance), sum_of(caller, blocks, caller->rank, count));
    }
  }
}

static void allgather_by(const traffic_caller *caller, allgather_choice choice, blocks_of blocks) {
  switch (choice) {
    case GATHERED_FIRST:
      straight_to(caller, 0, block_of(blocks, caller->rank));
      traffic_bcast(caller, 0, sum_of(caller, blocks, 0, caller->size));
      break;
    case GATHER_RING: allgather_ring(caller, blocks); break;
    case GATHER_NEIGHBOURS:
      if (caller->size % 2 == 1) {
        allgather_ring(caller, blocks);
      } else {
        allgather_neighbours(caller, blocks);
      }
      break;
    case GATHER_BRUCK: allgather_doubling(caller, blocks, 0); break;
    case GATHER_DOUBLING: allgather_doubling(caller, blocks, 1); break;
  }
}

void traffic_allgather(const traffic_caller *caller, uint64_t block) {
  const blocks_of blocks = {0, block};
  allgather_by(caller, choose_allgather(caller->size, block), blocks);
}

void traffic_allgatherv(const traffic_caller *caller, const uint64_t *each) {
  const blocks_of blocks = {each, 0};
  const uint64_t mean = sum_of(caller, blocks, 0, caller->size) / (uint64_t)caller->size;
  allgather_by(caller, choose_allgatherv(caller->size, mean), blocks);
}

void traffic_alltoall(const traffic_caller *caller, uint64_t block) {
  const int size = caller->size;
  if (choose_alltoall(size, block) == ALLTOALL_BRUCK) {
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

/* A ring: the block of the rank behind first. */
static void reduce_scatter_ring(const traffic_caller *caller, blocks_of blocks) {
  for (int step = 0; step < caller->size - 1; ++step) {
    send_to(caller, shifted(caller, 1), block_of(blocks, shifted(caller, -1 - step)));
  }
}

/* What the taking part number `which` stands for: its own block, and its neighbour's. */
static uint64_t block_for(few of, blocks_of blocks, int which) {
  const int rank = rank_of(of, which);
  return block_of(blocks, rank) + (which < of.extra ? block_of(blocks, of.odd ? rank - 1 : rank + 1) : 0);
}

/* Those that the partner's half needs, then of what is left. */
static void reduce_scatter_halving(const traffic_caller *caller, blocks_of blocks) {
  const few of = few_of(caller, 1);
  if (of.self < 0) {
    send_to(caller, caller->rank + 1, sum_of(caller, blocks, 0, caller->size));
    return;
  }
  for (int distance = (caller->size - of.extra) / 2; distance > 0; distance >>= 1) {
    const int other = of.self ^ distance;
    uint64_t bytes = 0;
    for (int which = other & ~(distance - 1), end = which + distance; which < end; ++which) {
      bytes += block_for(of, blocks, which);
    }
    send_to(caller, rank_of(of, other), bytes);
  }
  if (of.self < of.extra) {
    send_to(caller, caller->rank - 1, block_of(blocks, caller->rank - 1));
  }
}

/* Halves to the next, quarters to the one after: at the end each has the blocks of the rank whose number has its own one's bits
 * mirrored, and hands them on.  Or blocks were mirrored before, and each has its own. */
static void reduce_scatter_butterfly(const traffic_caller *caller, blocks_of blocks, int is_mirrored) {
  const few of = few_of(caller, 1);
  if (of.self < 0) {
    send_to(caller, caller->rank + 1, sum_of(caller, blocks, 0, caller->size));
    return;
  }
  int first = 0;
  int count = caller->size - of.extra;
  for (int distance = 1; distance < caller->size - of.extra; distance <<= 1) {
    const int other = of.self ^ distance;
    count /= 2;
    const int sent = of.self < other ? first + count : first;
    uint64_t bytes = 0;
    for (int which = sent; which < sent + count; ++which) {
      bytes += block_for(of, blocks, which);
    }
    send_to(caller, rank_of(of, other), bytes);
    first += of.self < other ? 0 : count;
  }
  const int owner = rank_of(of, first);
  if (first < of.extra) {
    send_to(caller, owner - 1, block_of(blocks, owner - 1));
  }
  if (!is_mirrored && first != of.self) {
    send_to(caller, owner, block_of(blocks, owner));
  }
}

/* Each time all but what one's own group needs by itself; of a group that has fewer partners, who has one passes on what it got. */
static void reduce_scatter_doubling(const traffic_caller *caller, blocks_of blocks) {
  const uint64_t all = sum_of(caller, blocks, 0, caller->size);
  for (int distance = 1; distance < caller->size; distance <<= 1) {
    const int other = caller->rank ^ distance;
    const int first = caller->rank & ~(distance - 1);
    const int count = first + distance <= caller->size ? distance : caller->size - first;
    if (other < caller->size) {
      send_to(caller, other, all - sum_of(caller, blocks, first, count));
    }
    const int theirs = first ^ distance;
    const int partners = caller->size - theirs;
    for (int step = distance >> 1; partners > 0 && partners < distance && step > 0; step >>= 1) {
      const int to = caller->rank ^ step;
      const int have = (caller->rank & ~(2 * step - 1)) + partners; /* those below it */
      if (caller->rank < have && to >= have) {
        send_to(caller, to, all - sum_of(caller, blocks, theirs, partners));
      }
    }
  }
}

void traffic_reduce_scatter(const traffic_caller *caller, const uint64_t *each) {
  const blocks_of blocks = {each, 0};
  const uint64_t all = sum_of(caller, blocks, 0, caller->size);
  switch (choose_reduce_scatter(caller->size, all)) {
    case REDUCED_FIRST:
      traffic_reduce(caller, 0, all);
      traffic_scatterv(caller, 0, each);
      break;
    case SCATTER_DOUBLING: reduce_scatter_doubling(caller, blocks); break;
    case SCATTER_HALVING: reduce_scatter_halving(caller, blocks); break;
    case SCATTER_BUTTERFLY: reduce_scatter_butterfly(caller, blocks, 0); break;
    case SCATTER_RING: reduce_scatter_ring(caller, blocks); break;
  }
}

void traffic_reduce_scatter_block(const traffic_caller *caller, uint64_t block) {
  const blocks_of blocks = {0, block};
  switch (choose_reduce_scatter_block(caller->size, block)) {
    case REDUCED_FIRST:
      traffic_reduce(caller, 0, block * (uint64_t)caller->size);
      traffic_scatter(caller, 0, block);
      break;
    case SCATTER_DOUBLING: reduce_scatter_doubling(caller, blocks); break;
    case SCATTER_HALVING: reduce_scatter_halving(caller, blocks); break;
    case SCATTER_BUTTERFLY: reduce_scatter_butterfly(caller, blocks, is_power_of_two(caller->size)); break;
    case SCATTER_RING: reduce_scatter_ring(caller, blocks); break;
  }
}

void traffic_scan(const traffic_caller *caller, uint64_t bytes) {
  if (caller->rank + 1 < caller->size) {
    send_to(caller, caller->rank + 1, bytes);
  }
}
