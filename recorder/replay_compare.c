/* SPDX-License-Identifier: Apache-2.0 */
#include "replay_compare.h"

#include <errno.h>
#include <string.h>

#include "ns.h"
#include "output.h"
#include "replay_past.h"
#include "replay_report.h"

/* The begin of what is the same anomaly may be told that far apart. */
#define SAME_NS INT64_C(1000000)

void replay_side_take(void *side_, const struct triggers_firing *firing)
{
	struct replay_side *side = side_;
	if (firing->severity == TRIGGERS_NOTE)
		return;
	if (firing->severity == TRIGGERS_CRITICAL)
		side->critical++;
	else
		side->warn++;
	if (side->n_found == REPLAY_FOUND_MAX)
		return;
	struct replay_found *found = &side->found[side->n_found++];
	*found = (struct replay_found){.t0_ns = firing->t0_ns, .detected_ns = firing->detected_ns};
	memcpy(found->trigger, firing->trigger, sizeof(found->trigger));
}

static int64_t apart(int64_t a_ns, int64_t b_ns)
{
	return a_ns > b_ns ? ns_sub(a_ns, b_ns) : ns_sub(b_ns, a_ns);
}

static const struct replay_found *nearest(const struct replay_side *side, const char *trigger, int64_t t0_ns)
{
	const struct replay_found *best = NULL;
	for (unsigned i = 0; i < side->n_found; i++) {
		const struct replay_found *found = &side->found[i];
		if (!strcmp(found->trigger, trigger) &&
		    (!best || apart(found->t0_ns, t0_ns) < apart(best->t0_ns, t0_ns)))
			best = found;
	}
	return best;
}

/* Anomalies that both sides found, and at another time. */
struct moved {
	unsigned count;
	int64_t earlier_ns; /* the one that moved most; below 0: later */
};

static void note_moved(struct moved *moved, const struct replay_found *was, const struct replay_found *is)
{
	int64_t earlier_ns = ns_sub(was->detected_ns, is->detected_ns);
	moved->count += earlier_ns != 0;
	if (apart(earlier_ns, 0) > apart(moved->earlier_ns, 0))
		moved->earlier_ns = earlier_ns;
}

static struct moved found_moved(const struct replay_side *before, const struct replay_side *after,
				const struct replay_about *about)
{
	struct moved moved = {.count = 0};
	for (unsigned i = 0; i < after->n_found && !about->known; i++) {
		const struct replay_found *is = &after->found[i],
					  *was = nearest(before, is->trigger, is->t0_ns);
		if (was && apart(was->t0_ns, is->t0_ns) < SAME_NS)
			note_moved(&moved, was, is);
	}
	if (about->known) {
		const struct replay_found *was = nearest(before, about->trigger, about->t0_ns),
					  *is = nearest(after, about->trigger, about->t0_ns);
		if (was && is)
			note_moved(&moved, was, is);
	}
	return moved;
}

void replay_compare_past(const struct replay_about *about, const struct replay_settings *settings,
			 struct replay_sides *sides)
{
	struct replay_settings quiet[2] = {*settings, *settings};
	struct replay_side *side[2] = {&sides->past_before, &sides->past_after};
	struct replay_past *past = NULL;
	char error[256];
	int result = about->known ? replay_past_read(about->store, about->t0_ns, &past) : -ENODATA;
	quiet[0].set.count = 0;
	for (int i = 0; i < 2 && result == 0; i++) {
		struct replay replay = {
			.settings = &quiet[i], .fired = replay_side_take, .fired_context = side[i]};
		result = replay_past_run(past, &replay, error, sizeof(error));
		replay_free(&replay);
	}
	if (result == 0)
		sides->past_ns = replay_past_length_ns(past);
	replay_past_free(past);
}

static void add_side(cJSON *json, const char *name, const struct replay_side *side)
{
	cJSON *object = cJSON_AddObjectToObject(json, name);
	output_json_count(object, "critical", side->critical);
	output_json_count(object, "warn", side->warn);
}

static void compare_json(const struct replay_sides *sides, const struct moved *moved, const char *name,
			 FILE *out)
{
	cJSON *json = cJSON_CreateObject(), *compared = cJSON_AddObjectToObject(json, "compared");
	output_json_text(compared, "of", name);
	add_side(compared, "as_configured", &sides->before);
	add_side(compared, "with_set", &sides->after);
	output_json_count(compared, "found_at_another_time", moved->count);
	output_json_ns(compared, "found_earlier_ns", moved->earlier_ns);
	if (sides->past_ns) {
		cJSON *past = cJSON_AddObjectToObject(compared, "past");
		output_json_ns(past, "length_ns", sides->past_ns);
		add_side(past, "as_configured", &sides->past_before);
		add_side(past, "with_set", &sides->past_after);
	}
	replay_report_json(json, out);
}

static void past_text(const struct replay_sides *sides, FILE *out)
{
	char text[OUTPUT_TEXT_MAX] = "24 h";
	const struct replay_side *before = &sides->past_before, *after = &sides->past_after;
	if (sides->past_ns < REPLAY_DAY_NS - REPLAY_HOUR_NS / 2)
		output_duration(text, sides->past_ns);
	fprintf(out, "; over the last %s: %llu -> %llu warn", text, (unsigned long long)before->warn,
		(unsigned long long)after->warn);
	if (before->critical || after->critical)
		fprintf(out, ", %llu -> %llu critical", (unsigned long long)before->critical,
			(unsigned long long)after->critical);
}

void replay_compare(const struct replay_sides *sides, const struct replay_about *about, const char *name,
		    bool json, FILE *out)
{
	const struct replay_side *before = &sides->before, *after = &sides->after;
	char text[OUTPUT_TEXT_MAX];
	const struct moved moved = found_moved(before, after, about);
	if (json) {
		compare_json(sides, &moved, name, out);
		return;
	}
	fprintf(out, "%s%sfirings %llu -> %llu", name ? name : "", name ? ": " : "",
		(unsigned long long)(before->warn + before->critical),
		(unsigned long long)(after->warn + after->critical));
	if (before->critical != after->critical && before->warn + after->warn)
		fprintf(out, " (critical %llu -> %llu)", (unsigned long long)before->critical,
			(unsigned long long)after->critical);
	if (moved.count)
		fprintf(out, ", ");
	if (moved.count && after->n_found > 1 && !about->known)
		fprintf(out, "%u ", moved.count);
	if (moved.count)
		fprintf(out, "found %s%s %s", moved.count > 1 ? "up to " : "",
			output_duration(text, apart(moved.earlier_ns, 0)),
			moved.earlier_ns > 0 ? "earlier" : "later");
	if (sides->past_ns)
		past_text(sides, out);
	fputc('\n', out);
}
