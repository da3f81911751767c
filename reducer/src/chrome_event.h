/* SPDX-License-Identifier: Apache-2.0 */
/* One event object of a Chrome trace: its members found, then mapped to struct reducer_event. */
#ifndef REDUCER_CHROME_EVENT_H
#define REDUCER_CHROME_EVENT_H

#include <reducer/event.h>

#include "json.h"

enum chrome_field {
	FIELD_OTHER,
	FIELD_PH,
	FIELD_NAME,
	FIELD_CAT,
	FIELD_PID,
	FIELD_TID,
	FIELD_TS,
	FIELD_DUR,
	FIELD_ID,
	FIELD_ARGS,
	FIELD_COUNT
};

struct chrome_member {
	struct reducer_text key;   /* raw, with its quotes; without them only where they were missing */
	struct reducer_text value; /* raw */
	enum chrome_field field;
};

/* Zeroed at first; its memory is used again for each event. */
struct chrome_event {
	struct chrome_member *member;
	size_t n_members, room;
	int at[FIELD_COUNT]; /* index + 1 of the member that counts, 0 = none */
	bool loose;          /* texts had unescaped quotes */
	unsigned doubled;    /* members that stood twice */
	int failed;          /* 0 or -ENOMEM */
	struct buffer name, category, extra, args, group, track;
};

/*
 * Finds the members of the object at *p. JSON_OK: *p is put after it. JSON_BAD: *p is put where it cannot be
 * read on. The texts point into [*p, end).
 */
enum json_end chrome_event_scan(struct chrome_event *found, const char **p, const char *end, enum json_how how);

/* What was found, as an event; valid until the next scan. 0 or -ENOMEM. */
int chrome_event_map(struct chrome_event *found, struct reducer_event *ret_event);

/* The field that a key names; the key with or without its quotes. */
enum chrome_field chrome_field_of(struct reducer_text key);

/* The enum drec_kind that a value of `ph` says; DREC_OTHER for an unknown one. */
uint8_t chrome_event_kind(struct reducer_text phase);

/* The value of a counter: the first number among its args. */
double chrome_event_counter(struct reducer_text args);

void chrome_event_free(struct chrome_event *found);

#endif
