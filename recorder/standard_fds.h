/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standard_fds.h: stands in for descriptors 0, 1 and 2 where we were started without them.
 *
 * Otherwise the next files opened would get their numbers: what is printed would end up in a store, and libuv
 * aborts when it is told to close one. The stand-ins fail as the missing ones would (EBADF).
 */
#ifndef RECORDER_STANDARD_FDS_H
#define RECORDER_STANDARD_FDS_H

/* Before anything is opened. */
void standard_fds_fill(void);

/* Before another program is executed: it gets what we got. Safe between fork and exec. */
void standard_fds_restore(void);

#endif
