/* SPDX-License-Identifier: Apache-2.0 */
/* notify.h: tells the service manager that the daemon is ready, as sd_notify(3) does; nothing without one. */
#ifndef RECORDER_NOTIFY_H
#define RECORDER_NOTIFY_H

void notify_ready(const char *status);
void notify_stopping(void);

#endif
