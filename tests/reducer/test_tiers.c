/* SPDX-License-Identifier: Apache-2.0 */
#include <reducer/tiers.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define SECOND INT64_C(1000000000)
/* A multiple of every width used here. */
#define BASE (INT64_C(1700000000) / 60 * 60 * SECOND)

/* For what children of a test run, too: Check's own asserts share a file with the parent, and one who is
 * killed while it writes there ruins it. */
static void need(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "failed: %s\n", strerror(-rc));
		abort();
	}
}

static struct reducer_text text(const char *string)
{
	return (struct reducer_text){string, strlen(string)};
}

static struct reducer_tiers *open_tiers(const char *path, const struct reducer_tiers_options *options)
{
	struct reducer_tiers *tiers = NULL;
	need(reducer_tiers_open(path, options, BASE, &tiers));
	return tiers;
}

static uint32_t row_of(struct reducer_tiers *tiers, const char *key, enum reducer_row_kind kind,
		       uint8_t depth)
{
	uint32_t track, row;
	need(reducer_tiers_track(tiers, text("source"), text(key), text(key), &track));
	need(reducer_tiers_row(tiers, track, kind, depth, &row));
	return row;
}

static uint32_t name_of(struct reducer_tiers *tiers, const char *string)
{
	uint32_t name;
	need(reducer_tiers_name(tiers, text(string), &name));
	return name;
}

static struct reducer_tiers_stats stats_of(const struct reducer_tiers *tiers)
{
	struct reducer_tiers_stats stats;
	reducer_tiers_stats(tiers, &stats);
	return stats;
}

/* Tiers of 1, 10 and 100 us, so that a bitmap of ns can tell what is right. */
enum { TIMELINE = 100000, DEPTHS = 3, FINE = 1000 };

static struct reducer_tiers_options fine_options(void)
{
	return (struct reducer_tiers_options){
		.tier = {{FINE, 100000}, {10 * FINE, 100000}, {100 * FINE, 100000}},
		.tiers = 3,
		.bytes_max = 4 << 20};
}

/* What a row should hold: index DEPTHS is the overflow row. */
struct oracle {
	uint8_t busy[DEPTHS + 1][TIMELINE];
	uint8_t track[TIMELINE];
	struct {
		uint64_t count;
		int64_t sum, longest;
		uint32_t name;
	} bin[DEPTHS + 1][TIMELINE / FINE];
	uint64_t overflow;
};

static void oracle_add(struct oracle *oracle, int depth, uint32_t name, int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i++) {
		if (oracle->busy[depth][i]) {
			depth = DEPTHS;
			oracle->overflow++;
			break;
		}
	}
	memset(oracle->busy[depth] + from, 1, (size_t)(to - from));
	memset(oracle->track + from, 1, (size_t)(to - from));
	int64_t b = from / FINE;
	if (!oracle->bin[depth][b].count++ || to - from > oracle->bin[depth][b].longest ||
	    (to - from == oracle->bin[depth][b].longest && name < oracle->bin[depth][b].name)) {
		oracle->bin[depth][b].longest = to - from;
		oracle->bin[depth][b].name = name;
	}
	oracle->bin[depth][b].sum += to - from;
}

static int64_t count_busy(const uint8_t *busy, int64_t from, int64_t to)
{
	int64_t total = 0;
	for (int64_t i = from; i < to; i++)
		total += busy[i];
	return total;
}

static void compare_bin(const struct oracle *oracle, int depth, int64_t b, int64_t width,
			const struct reducer_bin *bin)
{
	uint64_t count = 0;
	int64_t sum = 0, longest = -1;
	uint32_t name = 0;
	for (int64_t i = b * width / FINE; i < (b + 1) * width / FINE; i++) {
		if (!oracle->bin[depth][i].count)
			continue;
		count += oracle->bin[depth][i].count;
		sum += oracle->bin[depth][i].sum;
		if (oracle->bin[depth][i].longest > longest ||
		    (oracle->bin[depth][i].longest == longest && oracle->bin[depth][i].name < name)) {
			longest = oracle->bin[depth][i].longest;
			name = oracle->bin[depth][i].name;
		}
	}
	ck_assert_msg(bin->busy_ns == count_busy(oracle->busy[depth], b * width, (b + 1) * width),
		      "depth %d width %d bin %d: busy %d", depth, (int)width, (int)b, (int)bin->busy_ns);
	ck_assert_uint_eq(bin->count, count);
	ck_assert_int_eq(bin->sum_ns, sum);
	if (count) {
		ck_assert_int_eq(bin->longest_ns, longest);
		ck_assert_uint_eq(bin->name, name);
	}
}

static void compare_all(struct reducer_tiers *tiers, const struct oracle *oracle, int64_t width)
{
	static struct reducer_bin bins[DEPTHS + 1][TIMELINE / FINE];
	size_t count = (size_t)(TIMELINE / width);
	for (int depth = 0; depth <= DEPTHS; depth++) {
		uint32_t row = row_of(tiers, "track", REDUCER_ROW_SPANS,
				      depth == DEPTHS ? REDUCER_DEPTH_OVERFLOW : (uint8_t)depth);
		ck_assert_int_eq(reducer_tiers_read(tiers, row, BASE, width, count, bins[depth]), 0);
		for (size_t b = 0; b < count; b++)
			compare_bin(oracle, depth, (int64_t)b, width, &bins[depth][b]);
	}
	for (size_t b = 0; b < count; b++) {
		int64_t busy = 0;
		for (int depth = 0; depth <= DEPTHS; depth++)
			busy += bins[depth][b].track_busy_ns;
		ck_assert_int_eq(busy,
				 count_busy(oracle->track, (int64_t)b * width, (int64_t)(b + 1) * width));
	}
}

/* Row 0: short spans in any order; row 1: long ones that cover many bins; row 2: nearly sorted. */
static void random_span(int style, int i, int64_t *ret_from, int64_t *ret_to)
{
	int64_t most = style == 1 && test_random_below(4) == 0 ? 30000 : 700;
	int64_t length = (int64_t)test_random_below((uint64_t)most);
	int64_t from = (int64_t)test_random_below((uint64_t)(TIMELINE - most));
	if (style == 2)
		from = i * 120 + (int64_t)test_random_below(600);
	*ret_from = from;
	*ret_to = from + length;
}

START_TEST(busy_time_is_the_union)
{
	struct reducer_tiers_options options = fine_options();
	const char *path = test_path(test_folder(), "tiers");
	struct reducer_tiers *tiers = open_tiers(path, &options);
	struct oracle *oracle = calloc(1, sizeof(*oracle));
	uint32_t row[DEPTHS], name[5];
	for (uint8_t depth = 0; depth < DEPTHS; depth++)
		row[depth] = row_of(tiers, "track", REDUCER_ROW_SPANS, depth);
	for (int i = 0; i < 5; i++)
		name[i] = name_of(tiers, (const char *[]){"a", "b", "c", "d", "e"}[i]);
	for (int i = 0; i < 800; i++) {
		int depth = (int)test_random_below(DEPTHS), n = (int)test_random_below(5);
		int64_t from, to;
		random_span(_i, i, &from, &to);
		oracle_add(oracle, depth, name[n], from, to);
		assert_ok(reducer_tiers_span(tiers, row[depth], name[n], BASE + from, BASE + to));
		if (test_random_below(50) == 0)
			assert_ok(reducer_tiers_commit(tiers, BASE, NULL, 0, false));
		if (test_random_below(200) == 0) {
			assert_ok(reducer_tiers_commit(tiers, BASE, NULL, 0, false));
			reducer_tiers_free(tiers);
			tiers = open_tiers(path, &options);
			/* A row that had no event yet is not in the file: it is asked for again, as the daemon does. */
			for (uint8_t again = 0; again < DEPTHS; again++)
				row[again] = row_of(tiers, "track", REDUCER_ROW_SPANS, again);
		}
	}
	ck_assert_uint_eq(stats_of(tiers).doubtful_ns, 0);
	ck_assert_uint_eq(stats_of(tiers).overflow_spans, oracle->overflow);
	for (int64_t width = FINE; width <= 100 * FINE; width *= 10)
		compare_all(tiers, oracle, width);
	compare_all(tiers, oracle, 2 * FINE);
	free(oracle);
	reducer_tiers_free(tiers);
}
END_TEST

START_TEST(time_before_the_memory_is_counted_as_doubtful)
{
	struct reducer_tiers_options options = fine_options();
	struct reducer_tiers *tiers = open_tiers(test_path(test_folder(), "tiers"), &options);
	uint32_t row = row_of(tiers, "track", REDUCER_ROW_SPANS, 0);
	for (int64_t i = 0; i < 100; i++)
		assert_ok(reducer_tiers_span(tiers, row, 0, BASE + i * FINE, BASE + i * FINE + 900));
	ck_assert_uint_eq(stats_of(tiers).doubtful_ns, 0);
	assert_ok(reducer_tiers_span(tiers, row, 0, BASE + 400, BASE + 950));
	ck_assert_uint_eq(stats_of(tiers).doubtful_ns, 550);
	struct reducer_bin bin;
	assert_ok(reducer_tiers_read(tiers, row, BASE, FINE, 1, &bin));
	ck_assert_int_eq(bin.busy_ns, FINE); /* never more than there is */
	ck_assert_uint_eq(bin.count, 2);
	reducer_tiers_free(tiers);
}
END_TEST

START_TEST(a_long_span_takes_little_room)
{
	struct reducer_tiers_options options;
	reducer_tiers_defaults(&options);
	struct reducer_tiers *tiers = open_tiers(test_path(test_folder(), "tiers"), &options);
	uint32_t row = row_of(tiers, "track", REDUCER_ROW_SPANS, 0);
	int64_t hour = 3600 * SECOND, start = BASE - hour + 5;
	assert_ok(reducer_tiers_span(tiers, row, name_of(tiers, "epoch"), start, start + hour));
	ck_assert_uint_le(stats_of(tiers).blocks_used, 3);
	struct reducer_bin *bins = calloc(60001, sizeof(*bins));
	assert_ok(reducer_tiers_read(tiers, row, BASE - 600 * SECOND, SECOND / 100, 60001, bins));
	for (int i = 1; i < 60000; i++)
		ck_assert_int_eq(bins[i].busy_ns, SECOND / 100);
	ck_assert_int_eq(bins[60000].busy_ns, 5);
	assert_ok(reducer_tiers_read(tiers, row, BASE - hour, 60 * SECOND, 61, bins));
	ck_assert_int_eq(bins[0].busy_ns, 60 * SECOND - 5);
	ck_assert_uint_eq(bins[0].count, 1);
	ck_assert_int_eq(bins[0].longest_ns, hour);
	ck_assert_int_eq(bins[59].busy_ns, 60 * SECOND);
	ck_assert_int_eq(bins[60].busy_ns, 5);
	/* Events within the run cut it, and nothing else changes. */
	uint32_t overflow = row_of(tiers, "track", REDUCER_ROW_SPANS, REDUCER_DEPTH_OVERFLOW);
	assert_ok(reducer_tiers_span(tiers, row, 0, BASE - 60 * SECOND, BASE - 59 * SECOND));
	assert_ok(reducer_tiers_read(tiers, overflow, BASE - 60 * SECOND, SECOND, 2, bins));
	ck_assert_int_eq(bins[0].busy_ns, SECOND);
	ck_assert_int_eq(bins[0].track_busy_ns, 0);
	ck_assert_int_eq(bins[1].busy_ns, 0);
	free(bins);
	reducer_tiers_free(tiers);
}
END_TEST

START_TEST(an_open_span_counts_up_to_now_and_once)
{
	struct reducer_tiers_options options = fine_options();
	const char *path = test_path(test_folder(), "tiers");
	struct reducer_tiers *tiers = open_tiers(path, &options);
	uint32_t row = row_of(tiers, "track", REDUCER_ROW_SPANS, 0);
	struct reducer_bin bins[8];
	assert_ok(reducer_tiers_open_span(tiers, row, BASE + 500, BASE + 2500));
	assert_ok(reducer_tiers_read(tiers, row, BASE, FINE, 8, bins));
	ck_assert_int_eq(bins[0].busy_ns, 500);
	ck_assert_int_eq(bins[1].busy_ns, FINE);
	ck_assert_int_eq(bins[2].busy_ns, 500);
	ck_assert_int_eq(bins[3].busy_ns, 0);
	assert_ok(reducer_tiers_open_span(tiers, row, BASE + 500, BASE + 4100));
	assert_ok(reducer_tiers_commit(tiers, BASE, NULL, 0, false));
	reducer_tiers_free(tiers);
	tiers = open_tiers(path, &options);
	uint32_t child = row_of(tiers, "track", REDUCER_ROW_SPANS, 1);
	assert_ok(reducer_tiers_span(tiers, child, 0, BASE + 600, BASE + 900));
	assert_ok(reducer_tiers_span(tiers, row, 0, BASE + 500, BASE + 5200));
	assert_ok(reducer_tiers_read(tiers, row, BASE, 10 * FINE, 1, bins));
	ck_assert_int_eq(bins[0].busy_ns, 4700);
	ck_assert_int_eq(bins[0].track_busy_ns, 4700);
	ck_assert_uint_eq(bins[0].count, 1);
	/* One that never ends is over when another begins. */
	assert_ok(reducer_tiers_open_span(tiers, row, BASE + 6000, BASE + 6500));
	assert_ok(reducer_tiers_span(tiers, row, 0, BASE + 7000, BASE + 7100));
	assert_ok(reducer_tiers_read(tiers, row, BASE, FINE, 8, bins));
	ck_assert_int_eq(bins[6].busy_ns, 500);
	ck_assert_int_eq(bins[7].busy_ns, 100);
	ck_assert_uint_eq(stats_of(tiers).overflow_spans, 0);
	reducer_tiers_free(tiers);
}
END_TEST

START_TEST(counters_and_instants)
{
	struct reducer_tiers_options options = fine_options();
	const char *path = test_path(test_folder(), "tiers");
	struct reducer_tiers *tiers = open_tiers(path, &options);
	uint32_t counter = row_of(tiers, "loss", REDUCER_ROW_COUNTER, 0);
	uint32_t instants = row_of(tiers, "loss", REDUCER_ROW_INSTANTS, 0);
	assert_ok(reducer_tiers_counter(tiers, counter, BASE + 100, 2.5));
	assert_ok(reducer_tiers_counter(tiers, counter, BASE + 900, -1.0));
	assert_ok(reducer_tiers_counter(tiers, counter, BASE + 5000, 7.0));
	assert_ok(reducer_tiers_counter(tiers, counter, BASE + 200, 9.0)); /* late */
	assert_ok(reducer_tiers_instant(tiers, instants, name_of(tiers, "b"), BASE + 50));
	assert_ok(reducer_tiers_instant(tiers, instants, name_of(tiers, "a"), BASE + 40));
	ck_assert_int_eq(reducer_tiers_instant(tiers, counter, 0, BASE), -EINVAL);
	assert_ok(reducer_tiers_commit(tiers, BASE, NULL, 0, true));
	reducer_tiers_free(tiers);
	assert_ok(reducer_tiers_open_read(path, &tiers));
	ck_assert_int_eq(reducer_tiers_counter(tiers, counter, BASE, 1), -EROFS);
	struct reducer_bin bins[2];
	assert_ok(reducer_tiers_read(tiers, counter, BASE, FINE, 2, bins));
	ck_assert_uint_eq(bins[0].count, 3);
	ck_assert_double_eq(bins[0].min, -1.0);
	ck_assert_double_eq(bins[0].max, 9.0);
	ck_assert_double_eq(bins[0].last, -1.0);
	ck_assert_uint_eq(bins[1].count, 0);
	assert_ok(reducer_tiers_read(tiers, counter, BASE, 10 * FINE, 1, bins));
	ck_assert_double_eq(bins[0].last, 7.0);
	ck_assert_int_eq(bins[0].last_ns, BASE + 5000);
	assert_ok(reducer_tiers_read(tiers, instants, BASE, FINE, 1, bins));
	ck_assert_uint_eq(bins[0].count, 2);
	ck_assert_int_eq(bins[0].first_ns, BASE + 40);
	struct reducer_text name = reducer_tiers_name_text(tiers, bins[0].name);
	ck_assert_uint_eq(name.bytes, 1);
	ck_assert_int_eq(name.data[0], 'a');
	struct reducer_tiers_row_info info;
	assert_ok(reducer_tiers_row_info(tiers, counter, &info));
	ck_assert_uint_eq(info.events, 4);
	ck_assert_int_eq(info.first_ns, BASE + 100);
	ck_assert_int_eq(info.last_ns, BASE + 5000);
	ck_assert_mem_eq(info.key.data, "loss", 4);
	reducer_tiers_free(tiers);
}
END_TEST

/* A source that can be read again from any index: the same events for the same seed. */
enum { SOURCE_EVENTS = 30000, SOURCE_ROWS = 6 };

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 31)) * 0x7fb5d329728ea185u;
	z = (z ^ (z >> 27)) * 0x81dadef4bc2dd44du;
	return z ^ (z >> 33);
}

/* All over the same few bins, so that every commit changes half of the blocks of a small file. */
static void add_dense_event(struct reducer_tiers *tiers, uint64_t random)
{
	uint32_t row = row_of(tiers, random & 1 ? "a" : "b", REDUCER_ROW_COUNTER, 0);
	int64_t bin = (int64_t)(random >> 8) % 3000;
	need(reducer_tiers_counter(tiers, row, BASE + bin * FINE, (double)(random >> 50)));
}

static bool dense;

static void add_source_event(struct reducer_tiers *tiers, uint64_t seed, uint64_t index)
{
	uint64_t random = mix(seed + index);
	if (dense) {
		add_dense_event(tiers, random);
		return;
	}
	int64_t start = BASE + (int64_t)(index * 300 + random % 5000);
	static const char *key[SOURCE_ROWS] = {"t0", "t0", "t1", "t2", "t2", "c"};
	unsigned which = (unsigned)(random >> 20) % SOURCE_ROWS;
	if (which == 5) {
		need(reducer_tiers_counter(tiers, row_of(tiers, "c", REDUCER_ROW_COUNTER, 0), start,
					   (double)(random >> 50)));
		return;
	}
	uint32_t row = row_of(tiers, key[which], REDUCER_ROW_SPANS, (uint8_t)(which % 2));
	char name[16];
	snprintf(name, sizeof(name), "n%u", (unsigned)(random >> 40) % 50);
	int64_t length = (int64_t)((random >> 8) % ((random >> 30) % 100 == 0 ? 200000 : 900));
	need(reducer_tiers_span(tiers, row, name_of(tiers, name), start, start + length));
}

static uint64_t read_from(const struct reducer_tiers *tiers)
{
	const void *data;
	size_t bytes;
	uint64_t index = 0;
	if (reducer_tiers_cursor(tiers, text("ring"), &data, &bytes) == 0) {
		need(bytes == sizeof(index) ? 0 : -EINVAL);
		memcpy(&index, data, sizeof(index));
	}
	return index;
}

static void commit_at(struct reducer_tiers *tiers, uint64_t index)
{
	struct reducer_tiers_cursor cursor = {text("ring"), &index, sizeof(index)};
	need(reducer_tiers_commit(tiers, BASE, &cursor, 1, false));
}

static void read_source(const char *path, const struct reducer_tiers_options *options, uint64_t seed,
			uint64_t commits)
{
	struct reducer_tiers *tiers = open_tiers(path, options);
	for (uint64_t i = read_from(tiers); i < SOURCE_EVENTS; i++) {
		add_source_event(tiers, seed, i);
		if (mix(i ^ commits) % (dense ? 150 : 512) == 0)
			commit_at(tiers, i + 1);
	}
	commit_at(tiers, SOURCE_EVENTS);
	reducer_tiers_free(tiers);
}

/* Reads on in a child that is killed at any instruction. True once one came to the end. */
static bool read_until_killed(const char *path, const struct reducer_tiers_options *options, uint64_t seed)
{
	uint64_t commits = test_random();
	struct itimerval when = {.it_value.tv_usec = 500 + (int)test_random_below(40000)};
	pid_t child = fork();
	if (child == 0) {
		/* The timer's signal kills as SIGKILL would: it is neither caught nor blocked. */
		signal(SIGALRM, SIG_DFL);
		setitimer(ITIMER_REAL, &when, NULL);
		read_source(path, options, seed, commits);
		_exit(0);
	}
	int status;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFSIGNALED(status) ? WTERMSIG(status) == SIGALRM : status == 0, "status %x", status);
	return status == 0;
}

static void compare_files(const char *a_path, const char *b_path)
{
	static struct reducer_bin a_bins[1000], b_bins[1000];
	struct reducer_tiers *a, *b;
	assert_ok(reducer_tiers_open_read(a_path, &a));
	assert_ok(reducer_tiers_open_read(b_path, &b));
	ck_assert_uint_eq(reducer_tiers_rows(a), reducer_tiers_rows(b));
	for (uint32_t row = 0; row < reducer_tiers_rows(a); row++) {
		struct reducer_tiers_row_info a_info, b_info;
		assert_ok(reducer_tiers_row_info(a, row, &a_info));
		assert_ok(reducer_tiers_row_info(b, row, &b_info));
		ck_assert_uint_eq(a_info.events, b_info.events);
		ck_assert_int_eq(a_info.busy_ns, b_info.busy_ns);
		for (int64_t width = FINE; width <= (dense ? 1 : 100) * FINE; width *= 10) {
			for (int64_t from = BASE; from < BASE + 10000 * FINE; from += 1000 * width) {
				assert_ok(reducer_tiers_read(a, row, from, width, 1000, a_bins));
				assert_ok(reducer_tiers_read(b, row, from, width, 1000, b_bins));
				ck_assert_mem_eq(a_bins, b_bins, sizeof(a_bins));
			}
		}
	}
	ck_assert_uint_eq(stats_of(a).coarsened + stats_of(a).dropped_bins + stats_of(b).damaged_blocks, 0);
	ck_assert_uint_eq(stats_of(a).events, SOURCE_EVENTS);
	ck_assert_uint_eq(stats_of(b).events, SOURCE_EVENTS);
	ck_assert_uint_eq(stats_of(a).overflow_spans, stats_of(b).overflow_spans);
	reducer_tiers_free(a);
	reducer_tiers_free(b);
}

START_TEST(killed_anywhere_it_neither_doubles_nor_skips)
{
	struct reducer_tiers_options options = fine_options();
	options.bytes_max = 16 << 20;
	dense = _i == 1;
	if (dense) {
		/* Pages are soon used again: never those of the last commit. */
		options.tiers = 1;
		options.bytes_max = REDUCER_TIERS_BYTES_MIN;
	}
	const char *whole = test_path(test_folder(), "whole"), *killed = test_path(test_folder(), "killed");
	uint64_t seed = test_random();
	read_source(whole, &options, seed, 1);
	int kills = 0;
	while (kills < 300 && !read_until_killed(killed, &options, seed))
		kills++;
	printf("killed %d times\n", kills);
	read_source(killed, &options, seed, 2);
	compare_files(whole, killed);
}
END_TEST

START_TEST(bins_since_the_last_commit_are_gone_with_their_cursor)
{
	struct reducer_tiers_options options = fine_options();
	const char *path = test_path(test_folder(), "tiers");
	struct reducer_tiers *tiers = open_tiers(path, &options);
	for (uint64_t i = 0; i < 100; i++)
		add_source_event(tiers, 1, i);
	commit_at(tiers, 100);
	for (uint64_t i = 100; i < 200; i++)
		add_source_event(tiers, 1, i);
	reducer_tiers_free(tiers);
	tiers = open_tiers(path, &options);
	ck_assert_uint_eq(read_from(tiers), 100);
	ck_assert_uint_eq(stats_of(tiers).events, 100);
	reducer_tiers_free(tiers);
}
END_TEST

static off_t bytes_of(const char *path)
{
	struct stat st;
	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_size;
}

/* Row r is busier than row r - 1. Each span lies in a bin of its own, so blocks fill quickly. */
START_TEST(a_full_file_coarsens_the_least_busy_rows_first)
{
	struct reducer_tiers_options options = fine_options();
	options.bytes_max = REDUCER_TIERS_BYTES_MIN;
	const char *path = test_path(test_folder(), "tiers");
	struct reducer_tiers *tiers = open_tiers(path, &options);
	enum { ROWS = 20, SPANS = 2500 };
	uint32_t row[ROWS];
	char key[16];
	for (int r = 0; r < ROWS; r++) {
		snprintf(key, sizeof(key), "row%d", r);
		row[r] = row_of(tiers, key, REDUCER_ROW_SPANS, 0);
	}
	for (int64_t i = 0; i < SPANS; i++) {
		for (int r = 0; r < ROWS; r++)
			assert_ok(reducer_tiers_span(tiers, row[r], 0, BASE + i * FINE,
						     BASE + i * FINE + 10 + r * 20));
		if (reducer_tiers_wants_commit(tiers) || i % 100 == 0)
			assert_ok(reducer_tiers_commit(tiers, BASE, NULL, 0, false));
	}
	assert_ok(reducer_tiers_commit(tiers, BASE, NULL, 0, false));
	struct reducer_tiers_stats stats = stats_of(tiers);
	ck_assert_uint_gt(stats.coarsened, 0);
	ck_assert_uint_eq(stats.dropped_bins, 0);
	ck_assert_uint_le(stats.blocks_used, stats.blocks);
	ck_assert_int_le(bytes_of(path), (off_t)options.bytes_max);
	unsigned finest = REDUCER_TIERS_MAX, kept = 0;
	for (int r = 0; r < ROWS; r++) {
		struct reducer_tiers_row_info info;
		struct reducer_bin bin;
		assert_ok(reducer_tiers_row_info(tiers, row[r], &info));
		ck_assert_uint_le(info.finest, finest);
		finest = info.finest;
		kept += finest == 0;
		int rc = reducer_tiers_read(tiers, row[r], BASE, FINE, 1, &bin);
		ck_assert_int_eq(rc, finest > 0);
		/* Coarser tiers have everything. */
		int64_t busy = 0;
		for (int64_t at = 0; at < SPANS * FINE; at += 100 * FINE) {
			ck_assert_int_eq(reducer_tiers_read(tiers, row[r], BASE + at, 100 * FINE, 1, &bin),
					 0);
			busy += bin.busy_ns;
		}
		ck_assert_int_eq(busy, SPANS * (10 + r * 20));
	}
	ck_assert_uint_gt(kept, 0);
	ck_assert_uint_lt(kept, ROWS);
	/* When there is room again the row is fine again, but what it gave up is not forgotten. */
	int64_t later = BASE + 3600 * SECOND;
	struct reducer_bin bin;
	assert_ok(reducer_tiers_commit(tiers, later, NULL, 0, false));
	assert_ok(reducer_tiers_commit(tiers, later, NULL, 0, false));
	reducer_tiers_free(tiers);
	assert_ok(reducer_tiers_open(path, &options, later, &tiers));
	uint32_t again = row_of(tiers, "row0", REDUCER_ROW_SPANS, 0);
	assert_ok(reducer_tiers_span(tiers, again, 0, later, later + 10));
	ck_assert_int_eq(reducer_tiers_read(tiers, again, later, FINE, 1, &bin), 0);
	ck_assert_int_eq(bin.busy_ns, 10);
	reducer_tiers_free(tiers);
}
END_TEST

START_TEST(a_row_that_is_fine_again_says_where_it_was_not)
{
	struct reducer_tiers_options options = fine_options();
	options.bytes_max = REDUCER_TIERS_BYTES_MIN;
	options.tier[0].bins = 4000;
	options.tier[2].bins = 1 << 23;
	const char *path = test_path(test_folder(), "tiers");
	struct reducer_tiers *tiers = open_tiers(path, &options);
	uint32_t quiet = row_of(tiers, "quiet", REDUCER_ROW_SPANS, 0), busy[8];
	struct reducer_bin bin;
	char key[16];
	for (int r = 0; r < 8; r++) {
		snprintf(key, sizeof(key), "busy%d", r);
		busy[r] = row_of(tiers, key, REDUCER_ROW_SPANS, 0);
	}
	assert_ok(reducer_tiers_span(tiers, quiet, 0, BASE + 5, BASE + 6));
	ck_assert_int_eq(reducer_tiers_read(tiers, quiet, BASE, FINE, 1, &bin), 0);
	ck_assert_uint_eq(bin.count, 1);
	for (int64_t i = 0; i < 2500; i++)
		for (int r = 0; r < 8; r++)
			assert_ok(reducer_tiers_span(tiers, busy[r], 0, BASE + i * FINE,
						     BASE + i * FINE + 500));
	ck_assert_int_eq(reducer_tiers_read(tiers, quiet, BASE, FINE, 1, &bin), 1);
	ck_assert_uint_eq(bin.count, 0);
	/* Tier 0 reaches back 4 ms: it all goes, and half of the file is free. */
	int64_t later = BASE + 70 * SECOND;
	assert_ok(reducer_tiers_commit(tiers, later, NULL, 0, false));
	assert_ok(reducer_tiers_span(tiers, quiet, 0, later, later + 7));
	ck_assert_int_eq(reducer_tiers_read(tiers, quiet, BASE, FINE, 1, &bin), 1);
	int64_t sure = later + REDUCER_TIERS_AHEAD_NS;
	assert_ok(reducer_tiers_commit(tiers, sure, NULL, 0, false));
	reducer_tiers_free(tiers);
	tiers = open_tiers(path, &options);
	quiet = row_of(tiers, "quiet", REDUCER_ROW_SPANS, 0);
	assert_ok(reducer_tiers_span(tiers, quiet, 0, sure, sure + 7));
	ck_assert_int_eq(reducer_tiers_read(tiers, quiet, sure, FINE, 1, &bin), 0);
	ck_assert_uint_eq(bin.count, 1);
	ck_assert_int_eq(reducer_tiers_read(tiers, quiet, later, FINE, 1, &bin), 1);
	reducer_tiers_free(tiers);
}
END_TEST

START_TEST(the_last_tier_gives_up_its_oldest_bins)
{
	struct reducer_tiers_options options = {
		.tier = {{FINE, 1 << 20}}, .tiers = 1, .bytes_max = REDUCER_TIERS_BYTES_MIN};
	const char *path = test_path(test_folder(), "tiers");
	struct reducer_tiers *tiers = open_tiers(path, &options);
	uint32_t row = row_of(tiers, "c", REDUCER_ROW_COUNTER, 0);
	for (int64_t i = 0; i < 40000; i++) {
		assert_ok(reducer_tiers_counter(tiers, row, BASE + i * FINE, (double)i));
		if (reducer_tiers_wants_commit(tiers))
			assert_ok(reducer_tiers_commit(tiers, BASE, NULL, 0, false));
	}
	assert_ok(reducer_tiers_commit(tiers, BASE, NULL, 0, false));
	ck_assert_int_le(bytes_of(path), (off_t)options.bytes_max);
	uint64_t dropped = stats_of(tiers).dropped_bins;
	ck_assert_uint_gt(dropped, 0);
	struct reducer_bin bin;
	ck_assert_int_eq(reducer_tiers_read(tiers, row, BASE + (int64_t)(dropped - 1) * FINE, FINE, 1, &bin),
			 1);
	ck_assert_uint_eq(bin.count, 0);
	ck_assert_int_eq(reducer_tiers_read(tiers, row, BASE + (int64_t)dropped * FINE, FINE, 1, &bin), 0);
	ck_assert_uint_eq(bin.count, 1);
	ck_assert_double_eq(bin.last, (double)dropped);
	reducer_tiers_free(tiers);
}
END_TEST

START_TEST(more_tracks_than_fit_share_a_row)
{
	struct reducer_tiers_options options = fine_options();
	options.bytes_max = REDUCER_TIERS_BYTES_MIN;
	const char *path = test_path(test_folder(), "tiers");
	struct reducer_tiers *tiers = open_tiers(path, &options);
	char key[32];
	for (int i = 0; i < 2000; i++) {
		snprintf(key, sizeof(key), "thread %d", i);
		assert_ok(reducer_tiers_span(tiers, row_of(tiers, key, REDUCER_ROW_SPANS, 0),
					     name_of(tiers, key), BASE + i, BASE + i + 1));
	}
	ck_assert_uint_gt(stats_of(tiers).merged_rows, 0);
	ck_assert_uint_gt(stats_of(tiers).unnamed, 0);
	uint64_t events = 0;
	for (uint32_t row = 0; row < reducer_tiers_rows(tiers); row++) {
		struct reducer_tiers_row_info info;
		assert_ok(reducer_tiers_row_info(tiers, row, &info));
		events += info.events;
	}
	ck_assert_uint_eq(events, 2000);
	assert_ok(reducer_tiers_commit(tiers, BASE, NULL, 0, false));
	uint32_t rows = reducer_tiers_rows(tiers);
	reducer_tiers_free(tiers);
	tiers = open_tiers(path, &options);
	ck_assert_uint_eq(reducer_tiers_rows(tiers), rows);
	reducer_tiers_free(tiers);
}
END_TEST

/* Every commit adds one event to each row, so a reader that sees a whole one sees equal counts. */
enum { SHARED = 10, COMMITS = 400 };

static void write_equal_rows(const char *path, const struct reducer_tiers_options *options)
{
	struct reducer_tiers *tiers = open_tiers(path, options);
	uint32_t row[SHARED];
	char key[16];
	for (int r = 0; r < SHARED; r++) {
		snprintf(key, sizeof(key), "r%d", r);
		row[r] = row_of(tiers, key, REDUCER_ROW_SPANS, 0);
	}
	for (int64_t i = 0; i < COMMITS; i++) {
		for (int r = 0; r < SHARED; r++)
			need(reducer_tiers_span(tiers, row[r], 0, BASE + i * 7 * FINE,
						BASE + i * 7 * FINE + 100));
		need(reducer_tiers_commit(tiers, BASE, NULL, 0, false));
	}
	reducer_tiers_free(tiers);
}

/* 0 and the count all rows have, -EAGAIN if the writer was too fast. */
static int read_equal_rows(struct reducer_tiers *tiers, uint64_t *ret_count)
{
	static struct reducer_bin bins[COMMITS * 7];
	uint64_t first = 0;
	for (uint32_t row = 3; row < 3 + SHARED && row < reducer_tiers_rows(tiers); row++) {
		uint64_t count = 0;
		int rc = reducer_tiers_read(tiers, row, BASE, FINE, COMMITS * 7, bins);
		if (rc < 0)
			return rc;
		for (int i = 0; i < COMMITS * 7; i++)
			count += bins[i].count;
		if (row == 3)
			first = count;
		ck_assert_uint_eq(count, first);
	}
	*ret_count = first;
	return 0;
}

START_TEST(a_reader_sees_whole_commits)
{
	struct reducer_tiers_options options = fine_options();
	const char *path = test_path(test_folder(), "tiers");
	reducer_tiers_free(open_tiers(path, &options));
	pid_t child = fork();
	if (child == 0) {
		write_equal_rows(path, &options);
		_exit(0);
	}
	struct reducer_tiers *tiers;
	assert_ok(reducer_tiers_open_read(path, &tiers));
	uint64_t last = 0, seen = 0;
	while (last < COMMITS) {
		uint64_t count = 0;
		int rc = reducer_tiers_refresh(tiers);
		ck_assert_msg(rc >= 0 || rc == -EBADMSG, "refresh: %d", rc);
		rc = read_equal_rows(tiers, &count);
		ck_assert_msg(rc == 0 || rc == -EAGAIN, "read: %d", rc);
		if (rc < 0)
			continue;
		ck_assert_uint_ge(count, last);
		seen += count != last;
		last = count;
	}
	ck_assert_uint_gt(seen, 0);
	int status;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	reducer_tiers_free(tiers);
}
END_TEST

START_TEST(what_is_out_of_reach_is_counted)
{
	struct reducer_tiers_options options = fine_options();
	struct reducer_tiers *tiers = open_tiers(test_path(test_folder(), "tiers"), &options);
	uint32_t row = row_of(tiers, "track", REDUCER_ROW_SPANS, 0);
	int64_t reach = 100 * FINE * INT64_C(100000);
	assert_ok(reducer_tiers_span(tiers, row, 0, BASE - reach - 5, BASE - reach));
	assert_ok(reducer_tiers_span(tiers, row, 0, BASE, BASE + REDUCER_TIERS_AHEAD_NS + 1));
	assert_ok(reducer_tiers_span(tiers, row, 0, BASE + 10, BASE));
	assert_ok(reducer_tiers_span(tiers, row, 0, -5, BASE));
	ck_assert_uint_eq(stats_of(tiers).out_of_reach, 4);
	ck_assert_uint_eq(stats_of(tiers).events, 0);
	/* Too old for the finest tier alone: the coarser ones take it. */
	int64_t old = BASE - FINE * INT64_C(100000) * 2;
	assert_ok(reducer_tiers_span(tiers, row, 0, old, old + 7));
	struct reducer_bin bin;
	assert_ok(reducer_tiers_read(tiers, row, old, FINE, 1, &bin));
	ck_assert_uint_eq(bin.count, 0);
	assert_ok(reducer_tiers_read(tiers, row, old, 10 * FINE, 1, &bin));
	ck_assert_uint_eq(bin.count, 1);
	/* What has become too old makes room. */
	uint64_t used = stats_of(tiers).blocks_used;
	ck_assert_uint_gt(used, 0);
	assert_ok(reducer_tiers_commit(tiers, BASE + 2 * reach, NULL, 0, false));
	ck_assert_uint_eq(stats_of(tiers).blocks_used, 0);
	reducer_tiers_free(tiers);
}
END_TEST

static void damage(const char *path, off_t offset, size_t bytes)
{
	char junk[64];
	memset(junk, 0x5a, sizeof(junk));
	int fd = open(path, O_RDWR);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, junk, bytes, offset), (ssize_t)bytes);
	close(fd);
}

START_TEST(a_damaged_commit_falls_back_to_the_one_before)
{
	struct reducer_tiers_options options = fine_options(), other = options;
	const char *path = test_path(test_folder(), "tiers");
	struct reducer_tiers *tiers = open_tiers(path, &options), *second;
	ck_assert_int_eq(reducer_tiers_open(path, &options, BASE, &second), -EBUSY);
	commit_at(tiers, 7); /* commit 2, area 0 */
	commit_at(tiers, 8); /* commit 3, area 1 */
	ck_assert_int_eq(stats_of(tiers).commits, 3);
	reducer_tiers_free(tiers);
	other.tier[0].bins++;
	ck_assert_int_eq(reducer_tiers_open(path, &other, BASE, &second), -ESTALE);
	off_t area = (off_t)(options.bytes_max / 16);
	damage(path, 4096 + area + 140, 8);
	tiers = open_tiers(path, &options);
	ck_assert_uint_eq(read_from(tiers), 7);
	reducer_tiers_free(tiers);
	damage(path, 4096 + 8, 8);
	ck_assert_int_eq(reducer_tiers_open(path, &options, BASE, &second), -EBADMSG);
	damage(path, 20, 1);
	ck_assert_int_eq(reducer_tiers_open(path, &options, BASE, &second), -EBADMSG);
}
END_TEST

/* Any byte of a file may be wrong: opening and reading it ends, whatever it ends with. */
START_TEST(a_file_of_any_bytes_is_refused_or_read)
{
	struct reducer_tiers_options options = fine_options();
	const char *path = test_path(test_folder(), "tiers");
	struct reducer_tiers *tiers = open_tiers(path, &options);
	for (uint64_t i = 0; i < 3000; i++)
		add_source_event(tiers, 3, i);
	commit_at(tiers, 3000);
	reducer_tiers_free(tiers);
	for (int i = 0; i < 300; i++) {
		damage(path, (off_t)test_random_below((uint64_t)bytes_of(path) - 64),
		       1 + test_random_below(4));
		if (reducer_tiers_open(path, &options, BASE, &tiers) < 0)
			continue;
		struct reducer_bin bins[10];
		for (uint32_t row = 0; row < reducer_tiers_rows(tiers); row++)
			reducer_tiers_read(tiers, row, BASE, 100 * FINE, 10, bins);
		for (uint64_t event = 3000; event < 3050; event++)
			add_source_event(tiers, 3, event);
		reducer_tiers_free(tiers);
	}
}
END_TEST

START_TEST(cursors_that_do_not_fit_are_refused)
{
	struct reducer_tiers_options options = fine_options();
	const char *path = test_path(test_folder(), "tiers");
	struct reducer_tiers *tiers = open_tiers(path, &options);
	char *big = calloc(1, options.bytes_max / 16);
	struct reducer_tiers_cursor cursor = {text("ring"), big, options.bytes_max / 16};
	ck_assert_int_eq(reducer_tiers_commit(tiers, BASE, &cursor, 1, false), -E2BIG);
	add_source_event(tiers, 1, 0);
	commit_at(tiers, 1);
	ck_assert_uint_eq(read_from(tiers), 1);
	free(big);
	reducer_tiers_free(tiers);
}
END_TEST

static void add_case(Suite *suite, const char *name, const TTest *test, int rows)
{
	TCase *tcase = tcase_create(name);
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, test, 0, rows);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("tiers");
	add_case(suite, "union", busy_time_is_the_union, 3);
	add_case(suite, "doubtful", time_before_the_memory_is_counted_as_doubtful, 1);
	add_case(suite, "long span", a_long_span_takes_little_room, 1);
	add_case(suite, "open span", an_open_span_counts_up_to_now_and_once, 1);
	add_case(suite, "counters and instants", counters_and_instants, 1);
	add_case(suite, "killed", killed_anywhere_it_neither_doubles_nor_skips, 2);
	add_case(suite, "uncommitted", bins_since_the_last_commit_are_gone_with_their_cursor, 1);
	add_case(suite, "coarsening", a_full_file_coarsens_the_least_busy_rows_first, 1);
	add_case(suite, "fine again", a_row_that_is_fine_again_says_where_it_was_not, 1);
	add_case(suite, "last tier", the_last_tier_gives_up_its_oldest_bins, 1);
	add_case(suite, "shared rows", more_tracks_than_fit_share_a_row, 1);
	add_case(suite, "reader", a_reader_sees_whole_commits, 1);
	add_case(suite, "reach", what_is_out_of_reach_is_counted, 1);
	add_case(suite, "damaged", a_damaged_commit_falls_back_to_the_one_before, 1);
	add_case(suite, "any bytes", a_file_of_any_bytes_is_refused_or_read, 1);
	add_case(suite, "cursors", cursors_that_do_not_fit_are_refused, 1);
	return test_run(suite);
}
