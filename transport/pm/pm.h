/* SPDX-License-Identifier: Apache-2.0
 * PM: reliable messages between the nodes of a parallel job.  docs/operations/pm.md,
 * docs/protocol/9-pm.md.
 *
 * Names and semantics are those of PM version 2; what it has not is marked "ours".  Nothing blocks
 * but pmWait and, in a stopped job, pmSend, pmxSend and the release of a received message, until it
 * goes on; any other call there, which leaves the processor to others, may sleep up to 10 ms.  Every
 * function returns 0 or an errno value.  Any thread may use a context at any time, but none after
 * pmCloseDevice was called; the one open buffer of each kind is the context's, not the thread's, so
 * threads use the functions with descriptors (pmx...).
 *
 * A context is of the process that opened it.  A child of fork gets ECHILD from every function but
 * pmCloseDevice, which there frees the child's copy and tells nobody; it may open contexts of its
 * own. */
#ifndef SEKISHO_PM_H_
#define SEKISHO_PM_H_

#include <stddef.h>

#define PM_API __attribute__((visibility("default")))
#define PM_VERSION 2
#define PM_MTU 8224 /* longest message: 8192 bytes and 32 for the layer above */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pmContext pmContext;
/* A piece of registered memory.  Bytes that mean the same on every node: send them to who shall use
 * it. */
typedef struct pmHandle {
  unsigned char opaque[32];
} pmHandle;

/* type "udp".  Arguments: --job FILE (else PM_JOB_FILE), or pmi: the nodes are the ranks of whoever
 * started them (PMI_FD, PMI_RANK, PMI_SIZE), all open their contexts in the same order and wait for
 * each other; each is at the address of PM_INTERFACE, and PM_JOB_OUT names a job file that node 0
 * writes.  --node N (else PM_NODE; not with pmi), --daemon SOCKET
 * (else PM_DAEMON, else the one that the job's agent starts when PM_AGENT names it; none, or an
 * empty name: the program drives alone), --wait spin|yield|adaptive|sleep|classic (else PM_WAIT;
 * adaptive), --datagram BYTES, 1200 to 65507, the longest to look for on the path to each node
 * (else PM_DATAGRAM; 8972, as an Ethernet of 9000 carries), --keepalive SECONDS, to 86400: a peer
 * that was silent for so long is asked whether it lives (else PM_KEEPALIVE; 0, never: who only
 * receives does not notice that a host has died).  PM_NEAR=0: no messages through memory inside a
 * host.  EINVAL: arguments or job file; ECONNREFUSED: no daemon there; EADDRINUSE: another
 * program has the node (one that was killed is waited for, up to 5 s, until what it sent has
 * arrived); EACCES: the key file is readable by others; ENOTSUP: PM_ENCRYPT=1, and this library has
 * no cipher (pmAttachContext, too); with pmi ECANCELED: another node could not, EPROTO or ENOENT:
 * what the launcher says is no PMI, ENODEV: no such interface, ETIMEDOUT: not all
 * ranks came; else the system's error. */
PM_API int pmOpenDevice(const char* type, int argc, char** argv, pmContext** context);
/* Frees the context.  With a daemon everything sent still arrives; without one what is not
 * acknowledged is dropped (see pmIsSendDone). */
PM_API int pmCloseDevice(pmContext* context);

/* A context that another process made and detached; the descriptor is closed then.  Waits as
 * PM_WAIT says; needs no job file and no key.  EINVAL: no context is in it; ENOENT: it is over,
 * since the other process ended; ECONNREFUSED: its daemon is not there, try again. */
PM_API int pmAttachContext(const char* type, int fd, pmContext** context);
/* Ours: the other side of it.  The context is freed here, and goes on when another process attaches
 * the descriptor, which exec keeps; until then this process, if there is a daemon, must not end.
 * EINVAL: a buffer is open; EBUSY: remote memory is under way.  Registered memory is none any
 * more. */
PM_API int pmDetachContext(pmContext* context, int* fd);

/* Ours: the own number and the number of nodes. */
PM_API int pmGetNode(pmContext* context, int* node, int* nodes);

/* Room for one message of exactly this length, 1 to PM_MTU.  ENOBUFS: none now, or the job is about
 * to be stopped; go on calling pmReceive.  EINVAL: bad node or length.  EBUSY: a buffer is open.
 * EPIPE: the node is gone. */
PM_API int pmGetSendBuffer(pmContext* context, int node, void** buffer, size_t length);
/* Sends the open buffer.  EINVAL: none is open.  In a stopped job it waits until that goes on; so
 * does pmReleaseReceiveBuffer. */
PM_API int pmSend(pmContext* context);
/* Ours, as pmSend: another message follows at once, whose call sends both.  So does any other call
 * but pmGetSendBuffer; and the daemon, to 0.1 ms, if there is none. */
PM_API int pmSendMore(pmContext* context);
/* 0: everything sent was acknowledged, and all operations on remote memory are done.  EBUSY: not
 * yet.  EPIPE: a node is gone with messages or operations that are not.  EACCES: see pmWrite. */
PM_API int pmIsSendDone(pmContext* context);

/* The next message, which stays the caller's until it is released.  ENOBUFS: none.  EBUSY: one is
 * open. EPIPE: a node is gone (said once for each). */
PM_API int pmReceive(pmContext* context, void** buffer, size_t* length);
/* Ours: the node that sent the open message.  EIO: none is open. */
PM_API int pmGetSource(pmContext* context, int* node);
/* EIO: none is open. */
PM_API int pmReleaseReceiveBuffer(pmContext* context);

/* Several buffers open at once: names and semantics of the third generation, mixed with those above
 * as you like.  A descriptor names a buffer or an operation until it is released.  64 of
 * those that send and 256 messages at a time; EBUSY: that many are in use.
 *
 * As pmGetSendBuffer. */
PM_API int pmxGetSendBuffer(pmContext* context, int node, void** buffer, size_t length,
                            int* descriptor);
/* The message shall be shorter.  EINVAL: no open buffer; longer, or nothing. */
PM_API int pmxTruncateBuffer(pmContext* context, int descriptor, size_t length);
/* As pmSend.  Messages leave in the order of these calls.  ENOBUFS: no room after all, it stays
 * open. */
PM_API int pmxSend(pmContext* context, int descriptor);
/* Of this message or operation: 0, EBUSY, EPIPE, EACCES as pmIsSendDone.  EINVAL: neither sent nor
 * started. */
PM_API int pmxIsSendDone(pmContext* context, int descriptor);
/* An open buffer is given up, what was sent or started goes on.  EINVAL: there is none. */
PM_API int pmxReleaseSendDesc(pmContext* context, int descriptor);
/* As pmReceive. */
PM_API int pmxReceive(pmContext* context, void** buffer, size_t* length, int* descriptor);
/* Ours.  EIO: it is not open. */
PM_API int pmxGetSource(pmContext* context, int descriptor, int* node);
/* In any order; the ring is given back from its beginning on.  EIO: it is not open. */
PM_API int pmxReleaseReceiveBuffer(pmContext* context, int descriptor);

/* Ours: waits for a message in the way that --wait names; a negative time for ever.  ETIMEDOUT. */
PM_API int pmWait(pmContext* context, long timeout_us);

/* pmBeforeSelect, pmReceive until ENOBUFS, poll or select the descriptor, pmAfterSelect, all by one
 * thread: no wake-up is lost. */
PM_API int pmGetDescriptor(pmContext* context, int* descriptor); /* ours */
PM_API int pmBeforeSelect(pmContext* context);
PM_API int pmAfterSelect(pmContext* context);

/* Every node calls this, without an open buffer, until it is not EBUSY: the job stops, and when
 * nothing of any node is under way the callback runs (save what you need) and its answer is
 * returned. Until pmRestartUser nothing is sent or delivered.  EINVAL: a buffer is open. */
PM_API int pmCheckpoint(pmContext* context, int (*callback)(void*), void* argument);
/* Likewise: the job goes on when every node called it.  EBUSY: not yet. */
PM_API int pmRestartUser(pmContext* context);
/* Ours, of a stopped job: how many programs wait for messages, and how many nodes have left.  All
 * that are left wait: the job is over, or in a deadlock.  EBUSY: it is not stopped. */
PM_API int pmGetStopState(pmContext* context, int* waiting, int* gone);

/* Remote memory.  Registers memory to the node, which then may write and read it with the handle;
 * the own node: nobody else may; -1 (ours): every node.  No page is locked.  EINVAL: bad node,
 * address or length (1 to 2^40); ENOMEM: 1024 are registered; ENOTSUP: the job authenticates headers
 * only. */
PM_API int pmMLock(pmContext* context, int node, void* address, size_t length, pmHandle* handle);
/* EBUSY: own operations use it.  What peers have under way in it is refused.  EINVAL: it is none
 * of ours. */
PM_API int pmMUnlock(pmContext* context, pmHandle* handle);
/* Ours: a part of it, also of one that another node registered.  EINVAL: not inside. */
PM_API int pmSubHandle(const pmHandle* handle, size_t offset, size_t length, pmHandle* part);
/* Starts to write `length` bytes from the beginning of what `local`, registered here, names to the
 * beginning of `remote`, registered at `node`; pmRead the other way round.  They go on in every
 * call, there too, and are done (a write: in place there) when pmIsSendDone says 0; it says EACCES
 * once if one was refused.  Not in order with messages or each other.  EINVAL: bad handle or
 * length; ENOBUFS: 16 are under way to the node or 256 in all, go on calling pmReceive; EPIPE: the
 * node is gone. */
PM_API int pmWrite(pmContext* context, int node, const pmHandle* remote, const pmHandle* local,
                   size_t length);
PM_API int pmRead(pmContext* context, int node, const pmHandle* remote, const pmHandle* local,
                  size_t length);

/* The same with a descriptor: pmxIsSendDone says what became of this one, and a failure is not told
 * by pmIsSendDone. */
PM_API int pmxWrite(pmContext* context, int node, const pmHandle* remote, const pmHandle* local,
                    size_t length, int* descriptor);
PM_API int pmxRead(pmContext* context, int node, const pmHandle* remote, const pmHandle* local,
                   size_t length, int* descriptor);

#ifdef __cplusplus
}
#endif

#endif /* SEKISHO_PM_H_ */
