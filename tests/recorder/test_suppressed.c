/* SPDX-License-Identifier: Apache-2.0 */
/* The log of what was held back: a storm is one line, nothing grows without a bound, no file makes it crash.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "incidents/suppressed.h"
#include "support.h"

#define S INT64_C(1000000000)

static struct suppressed *suppressed;
static int64_t now_ns;

static void setup(void)
{
	now_ns = 1700000000 * S;
	assert_ok(suppressed_new(&suppressed));
}

static void teardown(void)
{
	suppressed_free(suppressed);
}

static struct triggers_firing firing_of(const char *trigger, const char *series,
					enum triggers_severity severity)
{
	struct triggers_firing firing = {.severity = severity,
					 .detected_ns = now_ns,
					 .t0_ns = now_ns - S,
					 .ratio = 2,
					 .rank = 3,
					 .step = 40,
					 .evidence = "as usual"};

	snprintf(firing.trigger, sizeof(firing.trigger), "%s", trigger);
	snprintf(firing.series, sizeof(firing.series), "%s", series);
	return firing;
}

static void add(const char *trigger, const char *series, enum triggers_gate gate)
{
	struct triggers_firing firing = firing_of(trigger, series, TRIGGERS_WARN);

	suppressed_add(suppressed, &firing, gate);
}

static const struct suppressed_line *line_at(size_t index)
{
	const struct suppressed_line *line = suppressed_oldest(suppressed);

	for (; line && index > 0; index--)
		line = suppressed_newer(suppressed, line);
	ck_assert_ptr_nonnull(line);
	return line;
}

START_TEST(a_storm_is_one_line)
{
	for (int i = 0; i < 10000; i++) {
		add("latency_spike", "load", TRIGGERS_COOLDOWN);
		now_ns += S / 10000;
	}
	ck_assert_uint_eq(suppressed_count(suppressed), 1);
	ck_assert_uint_eq(line_at(0)->count, 10000);
	ck_assert_int_eq(line_at(0)->last_ns - line_at(0)->first_ns, S / 10000 * 9999);
	ck_assert_str_eq(line_at(0)->gate, "cooldown");
}
END_TEST

START_TEST(other_series_gates_and_times_are_other_lines)
{
	add("latency_spike", "load", TRIGGERS_COOLDOWN);
	add("latency_spike", "step", TRIGGERS_COOLDOWN);
	add("latency_spike", "load", TRIGGERS_BUDGET_HOUR);
	add("shift", "load", TRIGGERS_COOLDOWN);
	ck_assert_uint_eq(suppressed_count(suppressed), 4);
	now_ns += 59 * S;
	add("latency_spike", "load", TRIGGERS_COOLDOWN);
	ck_assert_uint_eq(suppressed_count(suppressed), 4);
	ck_assert_uint_eq(line_at(3)->count, 2); /* the last one added to */
	now_ns += 61 * S;
	add("latency_spike", "load", TRIGGERS_COOLDOWN);
	ck_assert_uint_eq(suppressed_count(suppressed), 5);
	ck_assert_uint_eq(line_at(4)->count, 1);
	/* A clock set back by an hour folds nothing into what was before. */
	now_ns -= 3600 * S;
	add("latency_spike", "load", TRIGGERS_COOLDOWN);
	ck_assert_uint_eq(suppressed_count(suppressed), 6);
}
END_TEST

START_TEST(the_worst_one_is_told)
{
	struct triggers_firing worst = firing_of("latency_spike", "load", TRIGGERS_CRITICAL);

	add("latency_spike", "load", TRIGGERS_BUDGET_DAY);
	worst.rank = 7;
	worst.step = 99;
	strcpy(worst.evidence, "much worse");
	suppressed_add(suppressed, &worst, TRIGGERS_BUDGET_DAY);
	add("latency_spike", "load", TRIGGERS_BUDGET_DAY);
	ck_assert_uint_eq(line_at(0)->count, 3);
	ck_assert_int_eq(line_at(0)->severity, TRIGGERS_CRITICAL);
	ck_assert_uint_eq(line_at(0)->rank, 7);
	ck_assert_int_eq(line_at(0)->step, 99);
	ck_assert_str_eq(line_at(0)->evidence, "much worse");
}
END_TEST

static void storm_of_series(int first, int count)
{
	char series[32];

	for (int i = first; i < first + count; i++) {
		snprintf(series, sizeof(series), "span %d", i);
		add("latency_spike", series, TRIGGERS_COOLDOWN);
	}
}

START_TEST(a_storm_of_many_series_is_few_lines)
{
	add("stall", "step", TRIGGERS_BUDGET_HOUR);
	storm_of_series(0, 10000);
	ck_assert_uint_eq(suppressed_count(suppressed), 1 + SUPPRESSED_ALIKE_MAX + 1);
	ck_assert_str_eq(line_at(0)->trigger, "stall");
	ck_assert(line_at(SUPPRESSED_ALIKE_MAX + 1)->others);
	ck_assert_uint_eq(line_at(SUPPRESSED_ALIKE_MAX + 1)->count, 10000 - SUPPRESSED_ALIKE_MAX);
	/* Those that have a line keep it, and others have room of their own. */
	add("latency_spike", "span 5", TRIGGERS_COOLDOWN);
	add("shift", "span 9000", TRIGGERS_COOLDOWN);
	ck_assert_uint_eq(suppressed_count(suppressed), 1 + SUPPRESSED_ALIKE_MAX + 2);
}
END_TEST

START_TEST(the_oldest_goes)
{
	for (int i = 0; i < 100; i++) {
		storm_of_series(1000 * i, 60);
		now_ns += 120 * S;
	}
	ck_assert_uint_eq(suppressed_count(suppressed), SUPPRESSED_MAX);
	ck_assert_uint_eq(suppressed_forgotten(suppressed), 6000 - SUPPRESSED_MAX);
	ck_assert_str_eq(line_at(0)->series, "span 31044"); /* 1904 = 31 x 60 + 44 */
	ck_assert_str_eq(line_at(SUPPRESSED_MAX - 1)->series, "span 99059");
	/* Those that went are not found any more, those that stay are. */
	now_ns -= 120 * S;
	add("latency_spike", "span 99000", TRIGGERS_COOLDOWN);
	ck_assert_uint_eq(line_at(SUPPRESSED_MAX - 1)->count, 2);
}
END_TEST

static void check_equal(const struct suppressed *other)
{
	const struct suppressed_line *a = suppressed_oldest(suppressed), *b = suppressed_oldest(other);

	ck_assert_uint_eq(suppressed_count(suppressed), suppressed_count(other));
	ck_assert_uint_eq(suppressed_forgotten(suppressed), suppressed_forgotten(other));
	for (; a && b; a = suppressed_newer(suppressed, a), b = suppressed_newer(other, b)) {
		ck_assert_int_eq(a->first_ns, b->first_ns);
		ck_assert_int_eq(a->last_ns, b->last_ns);
		ck_assert_uint_eq(a->count, b->count);
		ck_assert_int_eq(a->severity, b->severity);
		ck_assert_int_eq(a->others, b->others);
		ck_assert_uint_eq(a->rank, b->rank);
		ck_assert_int_eq(a->step, b->step);
		ck_assert(a->ratio == b->ratio);
		ck_assert_str_eq(a->trigger, b->trigger);
		ck_assert_str_eq(a->gate, b->gate);
		ck_assert_str_eq(a->series, b->series);
		ck_assert_str_eq(a->evidence, b->evidence);
	}
	ck_assert(!a && !b);
}

START_TEST(it_comes_back_as_it_was)
{
	struct triggers_firing nobody = firing_of("crash", "", TRIGGERS_NOTE);
	struct suppressed *other;
	char *bytes;
	size_t count;

	nobody.rank = UINT32_MAX;
	nobody.step = -1;
	memset(nobody.evidence, 'x', sizeof(nobody.evidence) - 1);
	suppressed_add(suppressed, &nobody, TRIGGERS_SILENCED);
	for (int i = 0; i < 100; i++) {
		storm_of_series(1000 * i, 100);
		now_ns += 120 * S;
	}
	ck_assert(suppressed_changed(suppressed));
	assert_ok(suppressed_save(suppressed, &bytes, &count));
	ck_assert(!suppressed_changed(suppressed));
	ck_assert_uint_lt(count, SUPPRESSED_BYTES_MAX);
	assert_ok(suppressed_parse(bytes, count, &other));
	check_equal(other);
	/* It goes on folding where it was. */
	now_ns -= 120 * S;
	struct triggers_firing firing = firing_of("latency_spike", "span 99000", TRIGGERS_WARN);
	suppressed_add(other, &firing, TRIGGERS_COOLDOWN);
	suppressed_add(suppressed, &firing, TRIGGERS_COOLDOWN);
	check_equal(other);
	suppressed_free(other);
	free(bytes);
}
END_TEST

START_TEST(the_largest_log_fits_its_file)
{
	struct triggers_firing firing = firing_of("latency_spike", "", TRIGGERS_WARN);
	struct suppressed *other;
	char *bytes;
	size_t count;

	memset(firing.evidence, 'x', sizeof(firing.evidence) - 1);
	memset(firing.series, 's', sizeof(firing.series) - 1);
	memset(firing.trigger, 't', sizeof(firing.trigger) - 1);
	for (int i = 0; i < SUPPRESSED_MAX; i++) {
		firing.detected_ns += 100 * S;
		suppressed_add(suppressed, &firing, TRIGGERS_COOLDOWN);
	}
	assert_ok(suppressed_save(suppressed, &bytes, &count));
	ck_assert_uint_lt(count, SUPPRESSED_BYTES_MAX);
	assert_ok(suppressed_parse(bytes, count, &other));
	ck_assert_uint_eq(suppressed_count(other), SUPPRESSED_MAX);
	suppressed_free(other);
	free(bytes);
}
END_TEST

START_TEST(damage_is_noticed)
{
	struct suppressed *other = NULL;
	char *bytes, *damaged;
	size_t count;

	storm_of_series(0, 5);
	assert_ok(suppressed_save(suppressed, &bytes, &count));
	damaged = malloc(count + 1);
	ck_assert_ptr_nonnull(damaged);
	for (size_t i = 0; i < count; i++) {
		ck_assert_int_eq(suppressed_parse(bytes, i, &other), -EBADMSG);
		memcpy(damaged, bytes, count);
		damaged[i] ^= (char)(1 + test_random_below(255));
		ck_assert_int_eq(suppressed_parse(damaged, count, &other), -EBADMSG);
	}
	memcpy(damaged, bytes, count);
	damaged[count] = 0;
	ck_assert_int_eq(suppressed_parse(damaged, count + 1, &other), -EBADMSG);
	ck_assert_ptr_null(other);
	free(damaged);
	free(bytes);
}
END_TEST

static uint32_t crc_of(const char *bytes, size_t count)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < count; i++) {
		crc ^= (unsigned char)bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

/* A file with a right checksum may hold anything: it is taken or refused, and never runs out of bounds. */
START_TEST(a_made_up_file_does_no_harm)
{
	char *bytes;
	size_t count;
	unsigned taken = 0;

	storm_of_series(0, 70);
	assert_ok(suppressed_save(suppressed, &bytes, &count));
	for (int round = 0; round < 400; round++) {
		char *made = malloc(count);
		struct suppressed *other = NULL;

		ck_assert_ptr_nonnull(made);
		memcpy(made, bytes, count);
		for (uint64_t n = 1 + test_random_below(4); n > 0; n--)
			made[24 + test_random_below(count - 24)] = (char)test_random();
		uint32_t crc = crc_of(made + 24, count - 24);
		memcpy(made + 16, &crc, sizeof(crc));
		int r = suppressed_parse(made, count, &other);
		ck_assert(r == 0 || r == -EBADMSG);
		taken += r == 0;
		if (r == 0) {
			struct triggers_firing firing = firing_of("latency_spike", "span 3", TRIGGERS_WARN);

			suppressed_add(other, &firing, TRIGGERS_COOLDOWN);
			suppressed_free(other);
		}
		free(made);
	}
	ck_assert_uint_gt(taken, 0);
	free(bytes);
}
END_TEST

int main(void)
{
	const struct {
		const char *name;
		const TTest *test;
	} cases[] = {
		{"a storm", a_storm_is_one_line},
		{"apart", other_series_gates_and_times_are_other_lines},
		{"the worst", the_worst_one_is_told},
		{"many series", a_storm_of_many_series_is_few_lines},
		{"full", the_oldest_goes},
		{"saved", it_comes_back_as_it_was},
		{"largest", the_largest_log_fits_its_file},
		{"damage", damage_is_noticed},
		{"made up", a_made_up_file_does_no_harm},
	};
	Suite *suite = suite_create("suppressed");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TCase *tcase = tcase_create(cases[i].name);

		tcase_add_checked_fixture(tcase, setup, teardown);
		tcase_add_test(tcase, cases[i].test);
		suite_add_tcase(suite, tcase);
	}
	return test_run(suite);
}
