/* SPDX-License-Identifier: Apache-2.0 */
#include "rankmap/trace/choices.h"

#include <limits.h>
#include <stddef.h>

/* The first line of which both ranks and bytes are below decides. */
typedef struct {
  int ranks;
  uint64_t bytes;
  int choice;
} line;

enum { K = 1024, M = 1024 * 1024, MANY = INT_MAX };
#define ANY UINT64_MAX
#define CHOOSE(lines, ranks, bytes) choose(lines, sizeof(lines) / sizeof((lines)[0]), ranks, bytes)

static int choose(const line *lines, size_t count, int ranks, uint64_t bytes) {
  size_t i = 0;
  while (i + 1 < count && (ranks >= lines[i].ranks || bytes >= lines[i].bytes)) {
    ++i;
  }
  return lines[i].choice;
}

bcast_choice choose_bcast(int ranks, uint64_t bytes) {
  static const line lines[] = {
      {4, 32, BCAST_CHAIN},        {4, 256, BCAST_BINARY},      {4, 512, BCAST_CHAIN},       {4, K, BCAST_KNOMIAL},
      {4, 32 * K, BCAST_LINEAR},   {4, 128 * K, BCAST_BINARY},  {4, 256 * K, BCAST_CHAIN},   {4, 512 * K, BCAST_LINEAR},
      {4, M, BCAST_BINOMIAL},      {4, ANY, BCAST_BINARY},      {8, 64, BCAST_BINARY},       {8, 128, BCAST_BINOMIAL},
      {8, 2 * K, BCAST_BINARY},    {8, 8 * K, BCAST_BINOMIAL},  {8, M, BCAST_LINEAR},        {8, ANY, BCAST_CHAIN},
      {16, 8, BCAST_KNOMIAL},      {16, 64, BCAST_BINARY},      {16, 4 * K, BCAST_KNOMIAL},  {16, 16 * K, BCAST_BINARY},
      {16, 32 * K, BCAST_BINOMIAL}, {16, ANY, BCAST_LINEAR},    {32, 4 * K, BCAST_KNOMIAL},  {32, M, BCAST_BINOMIAL},
      {32, ANY, BCAST_SCATTERED},  {64, 2 * K, BCAST_BINOMIAL}, {128, ANY, BCAST_KNOMIAL},   {256, 2, BCAST_BINOMIAL},
      {256, 16 * K, BCAST_BINARY}, {256, 32 * K, BCAST_LINEAR}, {256, 64 * K, BCAST_BINARY}, {256, ANY, BCAST_KNOMIAL},
      {1024, 16 * K, BCAST_KNOMIAL}, {1024, 32 * K, BCAST_BINARY}, {1024, ANY, BCAST_KNOMIAL},
      {2048, 512 * K, BCAST_KNOMIAL}, {2048, ANY, BCAST_SCATTERED}, {4096, 256 * K, BCAST_KNOMIAL},
      {4096, ANY, BCAST_SCATTERED}, {MANY, 8 * K, BCAST_KNOMIAL}, {MANY, 16 * K, BCAST_BINARY}, {MANY, ANY, BCAST_KNOMIAL},
  };
  return (bcast_choice)CHOOSE(lines, ranks, bytes);
}

reduce_choice choose_reduce(int ranks, uint64_t bytes) {
  static const line lines[] = {
      {4, 8, REDUCE_BINOMIAL},     {4, 16, REDUCE_BINARY},      {4, 32, REDUCE_CHAIN},    {4, 256 * K, REDUCE_LINEAR},
      {4, ANY, REDUCE_CHAIN},      {8, 4 * K, REDUCE_BINARY},   {8, 64 * K, REDUCE_CHAIN}, {8, 256 * K, REDUCE_BINOMIAL},
      {8, 512 * K, REDUCE_LINEAR}, {8, M, REDUCE_BINOMIAL},     {8, ANY, REDUCE_LINEAR},  {16, 8 * K, REDUCE_BINARY},
      {32, 4 * K, REDUCE_BINARY},  {MANY, ANY, REDUCE_BINOMIAL},
  };
  return (reduce_choice)CHOOSE(lines, ranks, bytes);
}

allreduce_choice choose_allreduce(int ranks, uint64_t bytes) {
  static const line lines[] = {
      {4, 8, ALLREDUCE_RING},           {4, 4 * K, ALLREDUCE_DOUBLING},   {4, 8 * K, ALLREDUCE_RING},
      {4, 16 * K, ALLREDUCE_DOUBLING},  {4, 256 * K, ALLREDUCE_RING},     {4, ANY, ALLREDUCE_HALVING},
      {8, 16, ALLREDUCE_RING},          {16, 8 * K, ALLREDUCE_DOUBLING},  {16, ANY, ALLREDUCE_HALVING},
      {32, 64, ALLREDUCE_RING},         {32, 4 * K, ALLREDUCE_DOUBLING},  {32, ANY, ALLREDUCE_HALVING},
      {64, 128, ALLREDUCE_RING},        {64, ANY, ALLREDUCE_HALVING},     {128, 256 * K, ALLREDUCE_DOUBLING},
      {128, ANY, ALLREDUCE_HALVING},    {256, 128 * K, ALLREDUCE_REDUCED}, {256, 256 * K, ALLREDUCE_DOUBLING},
      {256, ANY, ALLREDUCE_HALVING},    {512, 4 * K, ALLREDUCE_REDUCED},  {512, ANY, ALLREDUCE_HALVING},
      {4096, 2 * K, ALLREDUCE_REDUCED}, {2048, 16 * K, ALLREDUCE_DOUBLING}, {2048, ANY, ALLREDUCE_HALVING},
      {4096, 4 * K, ALLREDUCE_RING},    {4096, 16 * K, ALLREDUCE_DOUBLING}, {4096, ANY, ALLREDUCE_HALVING},
      {MANY, 2 * K, ALLREDUCE_REDUCED}, {MANY, 16 * K, ALLREDUCE_RING},   {MANY, 32 * K, ALLREDUCE_DOUBLING},
      {MANY, ANY, ALLREDUCE_RING},
  };
  return (allreduce_choice)CHOOSE(lines, ranks, bytes);
}

root_choice choose_gather(int ranks, uint64_t bytes) {
  static const line lines[] = {
      {4, 4, STRAIGHT},     {4, 32 * K, BY_TREE}, {4, 64 * K, STRAIGHT}, {4, 128 * K, BY_TREE}, {4, ANY, STRAIGHT},
      {8, K, BY_TREE},      {8, 8 * K, STRAIGHT}, {8, 32 * K, BY_TREE},  {8, ANY, STRAIGHT},    {256, ANY, BY_TREE},
      {512, 2 * K, BY_TREE}, {512, 8 * K, STRAIGHT}, {MANY, ANY, BY_TREE},
  };
  return (root_choice)CHOOSE(lines, ranks, bytes);
}

root_choice choose_scatter(int ranks, uint64_t bytes) {
  static const line lines[] = {
      {4, ANY, STRAIGHT},    {8, 2 * K, BY_TREE}, {8, 4 * K, STRAIGHT},   {8, 8 * K, BY_TREE}, {8, ANY, STRAIGHT},
      {32, 16 * K, BY_TREE}, {32, ANY, STRAIGHT}, {64, 512, BY_TREE},     {64, 8 * K, STRAIGHT}, {64, 16 * K, BY_TREE},
      {64, ANY, STRAIGHT},   {MANY, 512, BY_TREE}, {MANY, ANY, STRAIGHT},
  };
  return (root_choice)CHOOSE(lines, ranks, bytes);
}

allgather_choice choose_allgather(int ranks, uint64_t bytes) {
  static const line lines[] = {
      {32, ANY, GATHER_DOUBLING},         {64, K, GATHER_DOUBLING},         {128, 512, GATHER_DOUBLING},
      {128, 64 * K, GATHER_NEIGHBOURS},   {128, ANY, GATHER_RING},          {256, 512, GATHER_DOUBLING},
      {256, 128 * K, GATHER_NEIGHBOURS},  {256, 512 * K, GATHER_RING},      {256, M, GATHER_NEIGHBOURS},
      {256, ANY, GATHER_RING},
      {512, 32, GATHER_DOUBLING},         {512, 128, GATHER_BRUCK},         {512, K, GATHER_DOUBLING},
      {512, 128 * K, GATHER_NEIGHBOURS},  {512, 512 * K, GATHER_RING},      {512, M, GATHER_NEIGHBOURS},
      {512, ANY, GATHER_RING},            {1024, 64, GATHER_DOUBLING},      {1024, 256, GATHER_BRUCK},
      {1024, 2 * K, GATHER_DOUBLING},     {1024, ANY, GATHER_NEIGHBOURS},   {2048, 4, GATHER_DOUBLING},
      {2048, 8, GATHER_BRUCK},            {2048, 16, GATHER_DOUBLING},      {2048, 32, GATHER_BRUCK},
      {2048, 256, GATHER_DOUBLING},       {2048, 512, GATHER_BRUCK},        {2048, 4 * K, GATHER_DOUBLING},
      {2048, ANY, GATHER_NEIGHBOURS},     {4096, 32, GATHER_BRUCK},         {4096, 128, GATHER_DOUBLING},
      {4096, 512, GATHER_BRUCK},          {MANY, 2, GATHER_DOUBLING},       {4096, 4 * K, GATHER_DOUBLING},
      {MANY, 8, GATHER_BRUCK},            {4096, ANY, GATHER_NEIGHBOURS},   {MANY, 16, GATHER_DOUBLING},
      {MANY, 512, GATHER_BRUCK},          {MANY, 4 * K, GATHER_DOUBLING},   {MANY, ANY, GATHER_NEIGHBOURS},
  };
  return (allgather_choice)CHOOSE(lines, ranks, bytes);
}

allgather_choice choose_allgatherv(int ranks, uint64_t bytes) {
  static const line lines[] = {
      {3, ANY, GATHER_RING},             {8, 256, GATHERED_FIRST},         {8, 4 * K, GATHER_NEIGHBOURS},
      {8, 8 * K, GATHER_RING},           {8, 16 * K, GATHER_NEIGHBOURS},   {8, 256 * K, GATHER_BRUCK},
      {8, ANY, GATHER_NEIGHBOURS},       {16, K, GATHERED_FIRST},          {16, ANY, GATHER_BRUCK},
      {32, 128, GATHERED_FIRST},         {32, 256 * K, GATHER_BRUCK},      {32, ANY, GATHER_RING},
      {128, 256, GATHERED_FIRST},        {64, 8 * K, GATHER_BRUCK},        {64, ANY, GATHER_RING},
      {128, 4 * K, GATHER_BRUCK},        {128, ANY, GATHER_RING},          {512, K, GATHER_BRUCK},
      {256, 64 * K, GATHER_NEIGHBOURS},  {512, ANY, GATHER_RING},          {1024, 512, GATHER_BRUCK},
      {1024, K, GATHERED_FIRST},         {MANY, 4 * K, GATHER_BRUCK},      {1024, M, GATHER_NEIGHBOURS},
      {1024, ANY, GATHER_RING},          {MANY, ANY, GATHER_NEIGHBOURS},
  };
  return (allgather_choice)CHOOSE(lines, ranks, bytes);
}

alltoall_choice choose_alltoall(int ranks, uint64_t bytes) {
  static const line lines[] = {
      {16, ANY, PAIRS},           {32, 4, PAIRS},               {64, 512, ALLTOALL_BRUCK},    {64, ANY, PAIRS},
      {512, K, ALLTOALL_BRUCK},   {512, ANY, PAIRS},            {2048, 512, ALLTOALL_BRUCK},  {2048, ANY, PAIRS},
      {4096, K, ALLTOALL_BRUCK},  {4096, ANY, PAIRS},           {8192, 2 * K, ALLTOALL_BRUCK}, {MANY, ANY, PAIRS},
  };
  return (alltoall_choice)CHOOSE(lines, ranks, bytes);
}

reduce_scatter_choice choose_reduce_scatter(int ranks, uint64_t bytes) {
  static const line lines[] = {
      {4, 64 * K, SCATTER_RING},       {4, 128 * K, SCATTER_BUTTERFLY}, {4, ANY, SCATTER_RING},
      {8, 8, REDUCED_FIRST},           {32, 256 * K, SCATTER_HALVING},  {32, ANY, SCATTER_RING},
      {64, 64, REDUCED_FIRST},         {64, 2 * K, SCATTER_HALVING},    {64, 512 * K, SCATTER_BUTTERFLY},
      {64, ANY, SCATTER_RING},         {512, 256, REDUCED_FIRST},       {256, 512, SCATTER_HALVING},
      {128, 2 * K, SCATTER_BUTTERFLY}, {128, 4 * K, SCATTER_HALVING},   {256, ANY, SCATTER_BUTTERFLY},
      {512, K, SCATTER_HALVING},       {512, ANY, SCATTER_BUTTERFLY},   {4096, 512, REDUCED_FIRST},
      {1024, 2 * K, SCATTER_HALVING},  {1024, 8 * K, SCATTER_BUTTERFLY}, {1024, 16 * K, SCATTER_HALVING},
      {1024, ANY, SCATTER_BUTTERFLY},  {4096, 4 * K, SCATTER_HALVING},  {2048, 16 * K, SCATTER_BUTTERFLY},
      {2048, 32 * K, SCATTER_HALVING}, {4096, ANY, SCATTER_BUTTERFLY},  {MANY, K, REDUCED_FIRST},
      {MANY, 8 * K, SCATTER_HALVING},  {MANY, ANY, SCATTER_BUTTERFLY},
  };
  return (reduce_scatter_choice)CHOOSE(lines, ranks, bytes);
}

/* Of three ranks at most a butterfly is the same as halving. */
reduce_scatter_choice choose_reduce_scatter_block(int ranks, uint64_t bytes) {
  static const line lines[] = {
      {4, 4, SCATTER_DOUBLING},          {4, 128 * K, SCATTER_HALVING},     {4, ANY, REDUCED_FIRST},
      {8, 8, SCATTER_HALVING},           {8, 32, SCATTER_DOUBLING},         {8, 256, SCATTER_BUTTERFLY},
      {8, 8 * K, SCATTER_HALVING},       {8, 16 * K, SCATTER_BUTTERFLY},    {8, M, SCATTER_HALVING},
      {8, ANY, REDUCED_FIRST},           {16, 4, REDUCED_FIRST},            {16, 32, SCATTER_HALVING},
      {16, 128, SCATTER_BUTTERFLY},      {16, 512 * K, SCATTER_HALVING},    {16, 4 * M, REDUCED_FIRST},
      {16, ANY, SCATTER_BUTTERFLY},      {32, 32, REDUCED_FIRST},           {32, 512 * K, SCATTER_HALVING},
      {32, 2 * M, REDUCED_FIRST},        {32, 4 * M, SCATTER_HALVING},      {32, ANY, SCATTER_BUTTERFLY},
      {MANY, 4, SCATTER_HALVING},        {MANY, 16, REDUCED_FIRST},         {MANY, 64 * K, SCATTER_BUTTERFLY},
      {MANY, 256 * K, REDUCED_FIRST},    {MANY, ANY, SCATTER_BUTTERFLY},
  };
  return (reduce_scatter_choice)CHOOSE(lines, ranks, bytes);
}

barrier_choice choose_barrier(int ranks) {
  return ranks >= 4 && ranks < 8 ? BARRIER_LINEAR : ranks < 64 ? BARRIER_DOUBLING : BARRIER_BRUCK;
}
