/* SPDX-License-Identifier: Apache-2.0
 * Lines on standard error for whoever has started the program to measure it: docs/protocol/8-rankmap-files.md, "Reported". */
#ifndef SEKISHO_RANKMAP_TRACE_REPORT_H
#define SEKISHO_RANKMAP_TRACE_REPORT_H

#include <stdint.h>

/* Of one rank; lines are gathered and written whole, so that they meet no half line of the program's. */
void report_line(const char *word, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
/* "done": how many lines this rank has written. */
void report_end(int rank, int ranks);

#endif
