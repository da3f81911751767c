/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the threshold trigger as text and as numbers: PATTERN >|< LIMIT[UNIT] [for TIME] [severity].
 */
#ifndef TRIGGERS_RULES_H
#define TRIGGERS_RULES_H

#include <stddef.h>
#include <stdint.h>

#include <triggers/triggers.h>

enum { TRIGGERS_RULES_MAX = 64 };

struct triggers_rule {
	char pattern[TRIGGERS_NAME_MAX]; /* of series names; * stands for anything */
	int above;                       /* >, else < */
	int is_time;                     /* the limit was given with a unit of time, and is in ns */
	double limit;
	int64_t for_ns;
	enum triggers_severity severity;
};

struct triggers_rules {
	uint32_t count;
	uint32_t version; /* grows with every change */
	struct triggers_rule rule[TRIGGERS_RULES_MAX];
};

/* Adds one; an empty text removes all. -EINVAL with a plain sentence. */
int triggers_rules_add(struct triggers_rules *rules, const char *text, char *error, size_t error_room);

#endif
