/* SPDX-License-Identifier: Apache-2.0
 * How long a message takes between nodes, and inside each, by the program's own MPI. */
#ifndef SEKISHO_RANKMAP_TRACE_DISTANCES_H
#define SEKISHO_RANKMAP_TRACE_DISTANCES_H

/* Collective, once MPI is there: each rank reports its node, one rank of each node the distances from it. */
void distances_report(void);

#endif
