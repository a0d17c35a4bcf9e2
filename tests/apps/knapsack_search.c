/* SPDX-License-Identifier: Apache-2.0 */
#include "knapsack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t Random(uint64_t* state) { /* xorshift64* */
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * UINT64_C(2685821657736338717);
}

static void* Allocate(size_t count, size_t size) {
  void* const memory = calloc(count, size);
  if (memory == NULL) {
    fprintf(stderr, "knapsack: no memory\n");
    exit(1);
  }
  return memory;
}

void MakeProblem(Problem* problem, int items, uint64_t seed, int is_correlated) {
  uint64_t state = seed * 2 + 1;
  int64_t all = 0;
  problem->items = items;
  for (int i = 0; i < items; ++i) {
    const int64_t weight = 100 + (int64_t)(Random(&state) % 900);
    const int64_t profit = is_correlated ? weight + 100 : 100 + (int64_t)(Random(&state) % 900);
    int at = i; /* sorted by profit per weight */
    for (; at > 0 && problem->profit[at - 1] * weight < profit * problem->weight[at - 1]; --at) {
      problem->weight[at] = problem->weight[at - 1];
      problem->profit[at] = problem->profit[at - 1];
    }
    problem->weight[at] = weight;
    problem->profit[at] = profit;
    all += weight;
  }
  problem->capacity = all / 2;
}

int StackSize(const Stack* stack) { return stack->top - stack->bottom; }

void Push(Stack* stack, Node node) {
  if (stack->top == stack->room) {
    const int size = StackSize(stack);
    const int room = size * 2 + 256;
    Node* const nodes = Allocate((size_t)room, sizeof *nodes);
    if (size > 0) {
      memcpy(nodes, stack->nodes + stack->bottom, (size_t)size * sizeof *nodes);
    }
    free(stack->nodes);
    stack->nodes = nodes;
    stack->room = room;
    stack->bottom = 0;
    stack->top = size;
  }
  stack->nodes[stack->top++] = node;
}

void TakeBottom(Stack* stack, Node* out, int count) {
  memcpy(out, stack->nodes + stack->bottom, (size_t)count * sizeof *out);
  stack->bottom += count;
}

/* The greedy fill from a node, and (*upper) what no selection below it exceeds. */
static int64_t Bounds(const Problem* problem, Node node, int64_t* upper) {
  for (int64_t i = node.item; i < problem->items; ++i) {
    if (problem->weight[i] > node.room) {
      *upper = node.profit + node.room * problem->profit[i] / problem->weight[i];
      for (; i < problem->items; ++i) {
        if (problem->weight[i] <= node.room) {
          node.room -= problem->weight[i];
          node.profit += problem->profit[i];
        }
      }
      return node.profit;
    }
    node.room -= problem->weight[i];
    node.profit += problem->profit[i];
  }
  *upper = node.profit;
  return node.profit;
}

static void Open(const Problem* problem, Node node, Stack* stack, int64_t* low) {
  int64_t upper = 0;
  const int64_t lower = Bounds(problem, node, &upper);
  if (lower > *low) {
    *low = lower;
  }
  if (node.item == problem->items || (problem->prunes && upper <= *low)) {
    return;
  }
  const Node out = {node.item + 1, node.profit, node.room};
  Push(stack, out);
  if (problem->weight[node.item] <= node.room) {
    const Node in = {node.item + 1, node.profit + problem->profit[node.item],
                     node.room - problem->weight[node.item]};
    Push(stack, in);
  }
}

void Branch(const Problem* problem, Stack* stack, int64_t* low) {
  Open(problem, stack->nodes[--stack->top], stack, low);
}

void BranchBottom(const Problem* problem, Stack* stack, int64_t* low) {
  Open(problem, stack->nodes[stack->bottom++], stack, low);
}

int64_t BestProfit(const Problem* problem) {
  int64_t* const best = Allocate((size_t)problem->capacity + 1, sizeof *best);
  for (int i = 0; i < problem->items; ++i) {
    for (int64_t room = problem->capacity; room >= problem->weight[i]; --room) {
      const int64_t with = best[room - problem->weight[i]] + problem->profit[i];
      best[room] = with > best[room] ? with : best[room];
    }
  }
  const int64_t result = best[problem->capacity];
  free(best);
  return result;
}

int64_t NodesOfTree(const Problem* problem) {
  int64_t* const ways = Allocate((size_t)problem->capacity + 1, sizeof *ways); /* by weight so far */
  int64_t nodes = 1;
  ways[0] = 1;
  for (int i = 0; i < problem->items; ++i) {
    for (int64_t weight = problem->capacity; weight >= problem->weight[i]; --weight) {
      ways[weight] += ways[weight - problem->weight[i]];
    }
    for (int64_t weight = 0; weight <= problem->capacity; ++weight) {
      nodes += ways[weight];
    }
  }
  free(ways);
  return nodes;
}
