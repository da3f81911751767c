/* SPDX-License-Identifier: Apache-2.0 */
/* scope/overlay_data.h: what overlay_read.c takes out of a raw window for overlay.c. */
#ifndef RECORDER_SCOPE_OVERLAY_DATA_H
#define RECORDER_SCOPE_OVERLAY_DATA_H

#include <cjson/cJSON.h>

#include "overlay.h"

enum {
	OVERLAY_TEXTS_MAX = 4096,
	OVERLAY_SPANS_MAX = 1 << 19,
	OVERLAY_STEPS_MAX = 1 << 16,
	OVERLAY_FILES_MAX = 256
};

struct overlay_span {
	int64_t start_ns, end_ns;
	uint16_t track, name; /* numbers of texts */
	uint8_t depth, which; /* SCOPE_GOOD_STEP, SCOPE_BAD_STEP */
};

struct overlay_step {
	int64_t number, start_ns, end_ns;
	uint32_t track;
	uint16_t phase;
	bool unfinished;
};

/* Sorted by `which`, track and start once read. */
struct scope_overlay_data {
	char id[INCIDENTS_ID_TEXT];
	char why[SCOPE_TEXT_MAX];
	struct scope_overlay_step step[SCOPE_OVERLAY_STEPS];
	struct overlay_span *span;
	size_t n_spans, spans_room;
	char *text[OVERLAY_TEXTS_MAX]; /* 0 = all that had no room */
	unsigned n_texts;
};

/* The raw files of one ring, in the order of time. */
struct overlay_files {
	int folder_fd;
	char name[OVERLAY_FILES_MAX][INCIDENTS_FOLDER_MAX];
	unsigned count;
};

/* The steps of a ring's files; *ret_steps by free(). */
int overlay_read_steps(struct scope_overlay_data *data, const struct overlay_files *files,
		       struct overlay_step **ret_steps, size_t *ret_count);
/* Spans that meet one of the chosen steps, into data->span. */
int overlay_read_spans(struct scope_overlay_data *data, const struct overlay_files *files);

#endif
