/* SPDX-License-Identifier: Apache-2.0
 * The 0-1 knapsack problem by branch and bound, as in Tanaka et al., chapter 4: no MPI in it.
 *
 * A node of the search tree is which item comes next, the profit so far and the room left; branching opens the two
 * nodes below (the item stays out, the item goes in).  Items are sorted by profit per weight, so the greedy fill from a node is
 * a lower bound, and with a part of the item that does not fit any more an upper one.
 */
#pragma once

#include <stdint.h>

enum { kItemsMax = 128, kWords = 3 };  /* of a node in a message */

typedef struct {
  int64_t item;
  int64_t profit;
  int64_t room;
} Node;

typedef struct {
  int items;
  int64_t weight[kItemsMax];
  int64_t profit[kItemsMax];
  int64_t capacity;
  int prunes;  /* else every feasible selection is visited: the paper's data on which no pruning occurs */
} Problem;

/* A stack that grows at its top; work is given away at its bottom, where the largest subtrees are. */
typedef struct {
  Node* nodes;
  int bottom;
  int top;
  int room;
} Stack;

/* The same for the same seed everywhere.  Correlated items are hard to prune. */
void MakeProblem(Problem* problem, int items, uint64_t seed, int is_correlated);

int StackSize(const Stack* stack);
void Push(Stack* stack, Node node);
/* From the bottom; at most StackSize(). */
void TakeBottom(Stack* stack, Node* out, int count);

/* Opens the node on top, or the one at the bottom: depth first, or breadth first.  Raises *low if it finds a better
 * selection. */
void Branch(const Problem* problem, Stack* stack, int64_t* low);
void BranchBottom(const Problem* problem, Stack* stack, int64_t* low);

/* The best profit, and how many nodes the tree has without pruning: both by dynamic programming. */
int64_t BestProfit(const Problem* problem);
int64_t NodesOfTree(const Problem* problem);
