/* SPDX-License-Identifier: Apache-2.0 */
/* Names without end, as of a job that numbers its spans: what matters is found after them as before. */
#include <stdio.h>

#include "sources/series.h"
#include "support.h"

#define SECOND_NS INT64_C(1000000000)

/* Names of ids; above, each id has a name of its own, as a ring's dictionary holds 65,535. */
enum { LOAD = 1, LOSS, NUMBERED };

static int name_of(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	static char text[32];
	(void)context;
	snprintf(text, sizeof(text), id == LOAD ? "load" : id == LOSS ? "loss" : "batch %u", id);
	*ret_text = text;
	*ret_bytes = strlen(text);
	return 0;
}

static int track_of(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	(void)context, (void)id;
	*ret_text = "pump";
	*ret_bytes = 4;
	return 0;
}

static struct triggers_engine *engine;
static struct series *series;
static const struct series_source source = {.source = 3, .rank = 1, .name = name_of, .track = track_of};
static int64_t now_ns;

static void set_up(void)
{
	char *patterns[] = {(char[]){"step"}, (char[]){"load"}, (char[]){"track:pump"}};
	now_ns = 1000 * SECOND_NS;
	assert_ok(triggers_engine_new(NULL, &engine));
	assert_ok(series_new(engine, patterns, 3, &series));
}

static void tear_down(void)
{
	series_free(series);
	triggers_engine_free(engine);
}

static void span(uint32_t track, uint32_t name, const char *text)
{
	const struct series_event event = {.kind = DREC_SPAN,
					   .track = track,
					   .name = name,
					   .text = text,
					   .text_bytes = text ? strlen(text) : 0,
					   .start_ns = now_ns,
					   .end_ns = now_ns + SECOND_NS,
					   .sample = -1};
	series_event(series, &source, &event);
	now_ns += SECOND_NS;
}

/* Samples of the series of this name on this track, of whichever role; 0 where there is none. */
static uint64_t samples_of(enum triggers_role role, uint32_t track, const char *name)
{
	struct triggers_belief belief;
	for (uint32_t i = 0; i < triggers_engine_series_count(engine); i++)
		if (triggers_engine_belief(engine, i, &belief) == 0 && belief.key.role == role &&
		    belief.key.track == track && strcmp(belief.key.name, name) == 0)
			return belief.samples;
	return 0;
}

START_TEST(a_table_full_of_names_still_takes_what_alarms)
{
	for (uint32_t i = 0; i < 2 * SERIES_KNOWN_MAX; i++)
		span(i / 40000, NUMBERED + i % 40000, NULL);
	for (int i = 0; i < 5; i++)
		span(70, LOAD, NULL);
	ck_assert_uint_eq(samples_of(TRIGGERS_SPAN, 70, "load"), 5);
	ck_assert_uint_le(series_counters(series)->followed, SERIES_FOLLOWED_MAX);
}
END_TEST

START_TEST(texts_without_end_still_leave_room)
{
	char text[32];
	span(1, 0, "load");
	for (int i = 0; i < 4 * SERIES_TEXTS_MAX; i++) {
		snprintf(text, sizeof(text), "batch %d", i);
		span(1, 0, text);
		if (i % 1000 == 0)
			span(1, 0, "load");
	}
	span(2, 0, "load");
	ck_assert_uint_eq(samples_of(TRIGGERS_SPAN, 1, "load"), 1 + (4 * SERIES_TEXTS_MAX + 999) / 1000);
	ck_assert_uint_eq(samples_of(TRIGGERS_SPAN, 2, "load"), 1);
	ck_assert_uint_eq(series_counters(series)->alarming, 4);
	ck_assert_uint_eq(series_counters(series)->followed, SERIES_FOLLOWED_MAX);
	series_source_end(series, source.source);
	ck_assert_uint_eq(series_counters(series)->alarming + series_counters(series)->followed, 0);
}
END_TEST

START_TEST(a_counter_and_a_span_of_one_name_are_two)
{
	for (int i = 0; i < 5; i++) {
		const struct series_event event = {.kind = DREC_COUNTER,
						   .track = 1,
						   .name = LOSS,
						   .value = 2.5,
						   .start_ns = now_ns,
						   .end_ns = now_ns,
						   .sample = -1};
		series_event(series, &source, &event);
		span(1, LOSS, NULL);
	}
	ck_assert_uint_eq(samples_of(TRIGGERS_COUNTER, 1, "loss"), 5);
	ck_assert_uint_eq(samples_of(TRIGGERS_SPAN, 1, "loss"), 5);
}
END_TEST

START_TEST(what_is_open_without_a_name_is_no_track)
{
	series_open(series, &source, 0, 7, 0, now_ns, 0);
	span(7, LOSS, NULL);
	ck_assert_uint_eq(series_counters(series)->alarming, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("series of many names");
	TCase *many = tcase_create("names without end");
	tcase_add_checked_fixture(many, set_up, tear_down);
	tcase_set_timeout(many, 60);
	tcase_add_test(many, a_table_full_of_names_still_takes_what_alarms);
	tcase_add_test(many, texts_without_end_still_leave_room);
	suite_add_tcase(suite, many);
	TCase *roles = tcase_create("one name, two roles");
	tcase_add_checked_fixture(roles, set_up, tear_down);
	tcase_add_test(roles, a_counter_and_a_span_of_one_name_are_two);
	tcase_add_test(roles, what_is_open_without_a_name_is_no_track);
	suite_add_tcase(suite, roles);
	return test_run(suite);
}
