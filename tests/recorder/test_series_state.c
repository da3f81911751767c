/* SPDX-License-Identifier: Apache-2.0 */
/* What the series know beside the engine, saved and restored; and bytes that no daemon has written. */
#include <errno.h>
#include <stdlib.h>

#include "sources/series.h"
#include "support.h"

static const char *const names[] = {"", "eval", "load", "compute"};
enum { EVAL = 1, LOAD, COMPUTE, NAMES, MS = 1000000 };

static const int64_t BEGIN_NS = 1700000000000000000;

static int name_of(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	(void)context;
	if (id == 0 || id >= NAMES)
		return -ENOENT;
	*ret_text = names[id];
	*ret_bytes = strlen(names[id]);
	return 0;
}

static int track_of(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	(void)context, (void)id;
	*ret_text = "main";
	*ret_bytes = 4;
	return 0;
}

static const struct series_source source = {
	.source = 3, .rank = 1, .job = 1, .name = name_of, .track = track_of};
static char *patterns[] = {(char[]){"step"}, (char[]){"phase:*"}, (char[]){"load"}};

struct side {
	struct triggers_engine *engine;
	struct series *series;
};

static void begin(struct side *side)
{
	assert_ok(triggers_engine_new(NULL, &side->engine));
	assert_ok(series_new(side->engine, patterns, sizeof(patterns) / sizeof(patterns[0]), &side->series));
}

static void end(struct side *side)
{
	series_free(side->series);
	triggers_engine_free(side->engine);
}

static void event(const struct side *side, unsigned kind, unsigned mark, uint32_t name, int64_t start_ns,
		  int64_t end_ns, uint64_t id)
{
	const struct series_event event = {.kind = (uint8_t)kind,
					   .mark = (uint16_t)mark,
					   .track = 5,
					   .name = name,
					   .start_ns = BEGIN_NS + start_ns,
					   .end_ns = BEGIN_NS + end_ns,
					   .id = id,
					   .sample = -1};
	series_event(side->series, &source, &event);
}

/* An evaluation whose second step is under way. */
static void evaluate(const struct side *side)
{
	event(side, DREC_MARK, DREC_MARK_STEP_BEGIN, EVAL, 0, 0, 0);
	event(side, DREC_SPAN, 0, LOAD, 0, 30 * MS, 0);
	event(side, DREC_MARK, DREC_MARK_STEP_END, EVAL, 0, 100 * MS, 0);
	event(side, DREC_MARK, DREC_MARK_STEP_BEGIN, EVAL, 100 * MS, 100 * MS, 1);
	event(side, DREC_SPAN, 0, COMPUTE, 100 * MS, 120 * MS, 0);
}

static char *save(const struct side *side, size_t *ret_count)
{
	int64_t count = series_save(side->series, NULL, 0);
	ck_assert_int_gt(count, 0);
	char *bytes = malloc((size_t)count);
	ck_assert_ptr_nonnull(bytes);
	ck_assert_int_eq(series_save(side->series, bytes, (size_t)count - 1), -ENOSPC);
	ck_assert_int_eq(series_save(side->series, bytes, (size_t)count), count);
	*ret_count = (size_t)count;
	return bytes;
}

static void copy_engine(const struct side *from, const struct side *to)
{
	int64_t count = triggers_engine_save(from->engine, NULL, 0);
	char *bytes = malloc((size_t)count);
	ck_assert_int_eq(triggers_engine_save(from->engine, bytes, (size_t)count), count);
	assert_ok(triggers_engine_restore(to->engine, bytes, (size_t)count));
	free(bytes);
}

static uint64_t samples_of(const struct side *side, const char *name)
{
	struct triggers_belief belief;
	for (uint32_t id = 0; id < triggers_engine_series_count(side->engine); id++)
		if (triggers_engine_belief(side->engine, id, &belief) == 0 &&
		    strcmp(belief.key.name, name) == 0)
			return belief.samples;
	return 0;
}

START_TEST(a_span_after_a_restart_is_of_the_phase_that_was_open)
{
	struct side first, second;
	size_t count;
	begin(&first);
	begin(&second);
	evaluate(&first);
	char *bytes = save(&first, &count);
	copy_engine(&first, &second);
	assert_ok(series_restore(second.series, bytes, count));
	ck_assert_int_eq(series_last_step(second.series, 3), 0);
	event(&second, DREC_SPAN, 0, LOAD, 120 * MS, 150 * MS, 0);
	ck_assert_uint_eq(samples_of(&second, "load@eval"), 2);
	ck_assert_uint_eq(samples_of(&second, "load"), 0);
	free(bytes);
	end(&first);
	end(&second);
}
END_TEST

START_TEST(what_the_engine_does_not_know_is_left_out)
{
	struct side first, second;
	size_t count;
	begin(&first);
	begin(&second);
	evaluate(&first);
	char *bytes = save(&first, &count);
	assert_ok(series_restore(second.series, bytes, count));
	ck_assert_int_eq(series_last_step(second.series, 3), -1);
	free(bytes);
	end(&first);
	end(&second);
}
END_TEST

START_TEST(cut_bytes_are_refused)
{
	struct side first;
	size_t count;
	begin(&first);
	evaluate(&first);
	char *bytes = save(&first, &count);
	for (size_t cut = 0; cut < count; cut++) {
		struct side second;
		char *part = malloc(cut + 1);
		memcpy(part, bytes, cut);
		begin(&second);
		ck_assert_int_eq(series_restore(second.series, part, cut), -EBADMSG);
		end(&second);
		free(part);
	}
	free(bytes);
	end(&first);
}
END_TEST

/* Whatever is taken can be worked with. */
START_TEST(changed_bytes_do_no_harm)
{
	struct side first;
	size_t count;
	begin(&first);
	evaluate(&first);
	char *bytes = save(&first, &count);
	for (int i = 0; i < 500; i++) {
		struct side second;
		size_t at = (size_t)test_random_below(count);
		char was = bytes[at];
		bytes[at] = (char)test_random();
		begin(&second);
		copy_engine(&first, &second);
		int result = series_restore(second.series, bytes, count);
		ck_assert(result == 0 || result == -EBADMSG);
		event(&second, DREC_SPAN, 0, LOAD, 120 * MS, 150 * MS, 0);
		event(&second, DREC_MARK, DREC_MARK_STEP_END, EVAL, 100 * MS, 200 * MS, 1);
		series_source_end(second.series, 3);
		end(&second);
		bytes[at] = was;
	}
	free(bytes);
	end(&first);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("series_state");
	TCase *restored = tcase_create("restored"), *damaged = tcase_create("damaged");
	tcase_add_test(restored, a_span_after_a_restart_is_of_the_phase_that_was_open);
	tcase_add_test(restored, what_the_engine_does_not_know_is_left_out);
	tcase_set_timeout(damaged, 60);
	tcase_add_test(damaged, cut_bytes_are_refused);
	tcase_add_test(damaged, changed_bytes_do_no_harm);
	suite_add_tcase(suite, restored);
	suite_add_tcase(suite, damaged);
	return test_run(suite);
}
