/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is exported together: one file, or the raw windows of an incident, read as one trace. Processes of
 * different sources stay apart, an event that is in two windows of a ring comes once, and top-level members
 * are those of the first source.
 *
 * Time: one source keeps its own, which counts from `base_unix_ns` where it says so; several are in Unix
 * time.
 */
#ifndef RECORDER_EXPORT_SOURCES_H
#define RECORDER_EXPORT_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <reducer/drec_codec.h>
#include <reducer/trace.h>

#include "command.h"
#include "export_pids.h"
#include "export_seen.h"

enum { EXPORT_SOURCES_MAX = 2048 };

struct export_sources {
	const struct command_call *call;
	char *path[EXPORT_SOURCES_MAX]; /* as people wrote it */
	size_t count;
	enum reducer_format format; /* of the one there is; DREC for windows of an incident */
	int spool_fd;               /* where a pipe's bytes are; -1 */
	unsigned open_spans, captures;
	struct reducer_drec_options within; /* the incident's windows */
	unsigned windows;
	/* Known after export_sources_base(). */
	bool array_root, has_base;
	int64_t base_unix_ns;
	/* While it is read. */
	struct export_seen seen;
	struct export_pids pids;
	size_t ring; /* that is read now; files of one ring have one number */
	uint8_t ring_id[EXPORT_SOURCES_MAX][16];
	const struct reducer_sink *sink;
	int sink_failed; /* what the sink returned */
};

/*
 * Finds what `what` names: a file that is there, else an incident of `store`. What cannot be read twice is
 * copied to an unnamed file in `folder`. Returns enum command_exit; the message is out.
 */
int export_sources_find(struct export_sources *sources, const char *what, const char *store,
			const char *folder);

/* Learns the root's form and what times count from; `all`: even where the trace says it only after its
 * events. */
int export_sources_base(struct export_sources *sources, bool all);

/* Reads everything into `sink`. COMMAND_DONE, or COMMAND_FAILED after a message, but not where the sink
 * failed: then sink_failed is what it returned. May be repeated; damage is told if `say_damage`. */
int export_sources_read(struct export_sources *sources, const struct reducer_sink *sink, bool say_damage);

/* The path to open for a source. `room` bytes at `buffer` are used if need be. */
const char *export_sources_path(const struct export_sources *sources, size_t index, char *buffer,
				size_t room);

void export_sources_free(struct export_sources *sources);

#endif
