/* SPDX-License-Identifier: Apache-2.0 */
/* libnxproxy: bind, listen, accept and connect through a firewall that lets nothing in.  nxproxy(3).
 *
 * The calls take the place of those they are named after, on ordinary TCP sockets made by socket(2); what they
 * return works with poll, epoll, select, read, write and every socket option, blocking or not.  They may be
 * called from any thread, and in children of fork(2).  -1 and errno on failure; nxproxy_strerror says more.
 *
 * Environment: NXPROXY_SERVER=HOST:PORT[,...] of the relay, or relays; NXPROXY_TOKEN_FILE (a job's token) or X509_USER_PROXY;
 * X509_CERT_DIR; NXPROXY_SCOPE=job|public. */
#ifndef NXPROXY_H
#define NXPROXY_H

#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NXPROXY_SCOPE_JOB 1    /* reached from the same job, or by the same user */
#define NXPROXY_SCOPE_PUBLIC 2 /* reached by any TCP program */

/* Binds `fd` here and at the relay.  The scope is $NXPROXY_SCOPE, else job; the relay chooses the port there. */
int NxProxyBind(int fd, const struct sockaddr* address, socklen_t length);

/* The same with a scope, and the port wanted at the relay (0: any). */
int NxProxyBindAs(int fd, const struct sockaddr* address, socklen_t length, int scope, int port);

int NxProxyListen(int fd, int backlog);

/* As accept4(2): the peer's true address, SOCK_NONBLOCK, SOCK_CLOEXEC. */
int NxProxyAccept(int fd, struct sockaddr* address, socklen_t* length, int flags);

/* The best way: direct within a site, else through the relay. */
int NxProxyConnect(int fd, const struct sockaddr* address, socklen_t length);

/* Of a bound socket: its address at the relay, which peers connect to.  Of a connection: the end that the peer
 * sees. */
int NxProxyGetsockname(int fd, struct sockaddr* address, socklen_t* length);
int NxProxyGetpeername(int fd, struct sockaddr* address, socklen_t* length);

int NxProxyClose(int fd);

/* What this thread's last failed call met, in words, if it failed with `error`; else strerror(error). */
const char* nxproxy_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif
