/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h: the daemon's log. One logfmt line an entry:
 *
 *     time=2026-11-30T07:01:04.123Z level=warn kind=ring.open msg="rank3: header" error="Permission denied"
 *
 * `kind` names what happened, never whom it happened to: of each kind at most one line a minute is written,
 * and the next one says how many were suppressed. Errors and what an operator must see (an incident) are
 * kinds of their own. Includes nothing of ours, keeps errno, allocates nothing, may be called from any
 * thread.
 */
#ifndef RECORDER_LOG_H
#define RECORDER_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_DEBUG = 0, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

/* Where lines go (default: stderr) and from which level on (default: info). */
void log_to(int fd, enum log_level least);

/* For tests: Unix time in ns instead of the system's; NULL = the system's. */
void log_clock(int64_t (*now_ns)(void));

/* With the text of errno, like warn(3). */
void log_error(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_warn(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Without, like warnx(3). */
void log_errorx(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_warnx(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_info(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_debug(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Every time: for the few lines that are the record of something (started, incident, stopped). */
void log_record(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
