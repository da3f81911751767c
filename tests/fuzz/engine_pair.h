/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trigger engines that are told the same: one goes on, one is saved and restored into a new one now and then, and one
 * may have been restored from damaged bytes. The first two must say and believe the same, at the same times; the third
 * must only stay in bounds. Each program also sees what holds for any firing.
 */
#ifndef TESTS_ENGINE_PAIR_H
#define TESTS_ENGINE_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <triggers/triggers.h>

enum { PAIR_GOES_ON, PAIR_RESTORED, PAIR_DAMAGED, PAIR_ENGINES, PAIR_SAID_MAX = 256, PAIR_SUSPECTS = 64 };

struct pair_said {
	struct triggers_firing firing;
	int gate; /* -1: it is over */
};

struct pair_engine {
	struct triggers_engine *engine; /* NULL: there is none */
	bool sound;                     /* has not been restored from damaged bytes */
	uint32_t said;                  /* since they were last compared; the first ones are kept */
	struct pair_said kept[PAIR_SAID_MAX];
	struct {
		uint32_t series, count;
	} suspect[PAIR_SUSPECTS];
};

struct pair {
	struct pair_engine is[PAIR_ENGINES];
	char option[32][2][48]; /* what was set, for the next new one */
	unsigned n_options;
	double per_hour, per_day;
	int64_t now_ns; /* of the last tick */
	bool forward;   /* no tick was earlier than the one before: so budgets can be counted */
	uint32_t n_passed;
	int64_t passed_ns[1024];
};

void pair_begin(struct pair *pair);
void pair_end(struct pair *pair);
/* Sets an option in all of them. */
void pair_set(struct pair *pair, const char *key, const char *value);
void pair_tick(struct pair *pair, int64_t now_ns);
/* Both have said the same, and will speak next at the same time. */
void pair_same(struct pair *pair);
/* They believe the same of every series. */
void pair_same_beliefs(const struct pair *pair);
/* Takes the second engine through bytes. What it has open is asked for at once in both. */
void pair_restart(struct pair *pair, int64_t now_ns);
/* The bytes of the first one, changed in `count` places, into a third one. Whether it could be restored. */
bool pair_damage(struct pair *pair, const uint8_t *changes, size_t count);

#endif
