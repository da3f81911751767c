/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Own work of tracks: unions held against a bitmap, waits by their names, and jobs of several ranks from their events
 * to the rank that is named.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sources/cover.h"
#include "sources/series.h"
#include "sources/waits.h"
#include "support.h"

enum { MS = 1000000, BITS = 4096 };

/* ---- unions ---- */

static unsigned char bitmap[BITS];

static void both(struct cover *cover, int64_t start, int64_t end)
{
	cover_add(cover, start, end);
	for (int64_t i = start; i < end; i++)
		bitmap[i] = 1;
}

static int64_t counted(int64_t from, int64_t to)
{
	int64_t sum = 0;
	for (int64_t i = from; i < to; i++)
		sum += bitmap[i];
	return sum;
}

static void valid(const struct cover *cover)
{
	ck_assert_uint_le(cover->count, COVER_PIECES);
	for (uint32_t i = 0; i < cover->count; i++) {
		const struct cover_piece *piece = &cover->piece[i];
		ck_assert_int_lt(piece->start_ns, piece->end_ns);
		ck_assert_int_gt(piece->covered_ns, 0);
		ck_assert_int_le(piece->covered_ns, piece->end_ns - piece->start_ns);
		if (i)
			ck_assert_int_gt(piece->start_ns, cover->piece[i - 1].end_ns);
	}
}

/* Few pieces: exact anywhere, in whatever order they come. */
START_TEST(spans_in_any_order_are_exact)
{
	for (int round = 0; round < 60; round++) {
		struct cover cover = {0};
		memset(bitmap, 0, sizeof(bitmap));
		for (int i = 0; i < COVER_PIECES - 1; i++) {
			int64_t start = (int64_t)test_random_below(BITS - 200);
			both(&cover, start, start + (int64_t)test_random_below(round % 2 ? 20 : 200));
			valid(&cover);
		}
		for (int i = 0; i < 20; i++) {
			int64_t from = (int64_t)test_random_below(BITS),
				to = (int64_t)test_random_below(BITS);
			ck_assert_int_eq(cover_within(&cover, from, to), from < to ? counted(from, to) : 0);
		}
		int64_t cut = (int64_t)test_random_below(BITS);
		cover_cut(&cover, cut);
		valid(&cover);
		ck_assert_int_eq(cover_within(&cover, 0, BITS), counted(cut, BITS));
	}
}
END_TEST

/* Many pieces: the sum is exact still; a part of it is off by no more than the gaps of the piece it cuts. */
START_TEST(many_pieces_keep_their_sum)
{
	struct cover cover = {0};
	memset(bitmap, 0, sizeof(bitmap));
	for (int64_t at = 1; at < BITS - 8; at += 4) {
		both(&cover, at, at + 1 + (int64_t)test_random_below(3));
		valid(&cover);
		if (at % 64 == 1)
			ck_assert_int_eq(cover_within(&cover, 0, BITS), counted(0, BITS));
	}
	both(&cover, 3000, BITS - 4); /* encloses the latest */
	valid(&cover);
	int64_t off = cover_within(&cover, 0, BITS) - counted(0, BITS);
	ck_assert_int_le(labs(off), 64);
	both(&cover, 0, BITS); /* encloses all */
	ck_assert_int_eq(cover_within(&cover, 0, BITS), BITS);
	ck_assert_uint_eq(cover.count, 1);
}
END_TEST

START_TEST(times_at_the_ends_of_64_bits_do_no_harm)
{
	static const int64_t times[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
	struct cover cover = {0};
	for (int i = 0; i < 1000; i++) {
		int64_t start = times[test_random_below(7)], end = times[test_random_below(7)];
		cover_add(&cover, start, end);
		ck_assert_int_ge(cover_within(&cover, end, start), 0);
		if (i % 100 == 99)
			cover_cut(&cover, start);
	}
}
END_TEST

/* ---- names ---- */

static const struct {
	const char *name;
	bool waits;
} names[] = {
	{"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", true},
	{"ncclKernel_AllGather_RING_LL_Sum_int8_t", true},
	{"nccl:all_reduce", true},
	{"rcclGenericKernel<4, false>", true},
	{"c10d::allreduce_", true},
	{"gloo:all_reduce", true},
	{"record_param_comms", true},
	{"all-reduce.3", true},
	{"AllReduceStart", true},
	{"reduce-scatter.1", true},
	{"all-to-all.7", true},
	{"collective-permute-done.2", true},
	{"grads-reduce-scatter", true},
	{"forward-recv", true},
	{"backward-send", true},
	{"send-done.4", true},
	{"infeed.1", true},
	{"barrier", true},
	{"torch.distributed.barrier", true},
	{"PjRtAsyncWait", true},
	{"wait_for_peers", true},
	{"block_until_ready", true},
	{"cudaDeviceSynchronize", true},
	{"hipStreamSynchronize", true},
	{"<built-in method acquire of _thread.lock object at 0x7f>", true},
	{"forward-compute", false},
	{"optimizer", false},
	{"aten::mm", false},
	{"fusion.12", false},
	{"gc", false},
	{"loss_reduce", false},
	{"broadcast.5", false},
	{"next(loader)", false},
	{"Memcpy HtoD (Pinned -> Device)", false},
	{"", false},
};

START_TEST(waits_are_known_by_their_names)
{
	const char *name = names[_i].name;
	ck_assert_msg(waits_name(NULL, name, strlen(name)) == names[_i].waits, "%s", name);
}
END_TEST

static bool by_own(const struct waits *own, const char *name)
{
	return waits_name(own, name, strlen(name));
}

START_TEST(a_job_has_names_of_its_own)
{
	char stage[] = "Pipeline_Stage-Idle*", gather[] = "my_all_gather_of_*", all[] = "*";
	char *const wait[] = {stage}, *const own[] = {gather}, *const any[] = {all};
	const struct waits job = {.wait = wait, .n_wait = 1, .own = own, .n_own = 1};
	const struct waits nothing = {.own = any, .n_own = 1};
	ck_assert(by_own(&job, "pipeline-stage-idle (2)"));
	ck_assert(!by_own(&job, "my_all_gather_of_shards"));
	ck_assert(by_own(&job, "all_gather"));
	ck_assert(!by_own(&job, "forward"));
	ck_assert(!by_own(&nothing, "ncclAllReduce"));
}
END_TEST

/* ---- from events to the rank that is named ---- */

enum { COMPUTE = 1, INNER, ALL_REDUCE, WRAPPER, EVAL, LAST_NAME };
enum { MAIN = 5, STREAM = 6, OTHER = 7 };
static const char *const texts[] = {"", "forward", "matmul", "all_reduce", "train_step", "eval"};

struct heard {
	unsigned count;
	struct triggers_firing first;
};

static struct heard heard;
static struct triggers_engine *engine;
static struct series *series;

static void on_firing(void *context, const struct triggers_firing *firing, enum triggers_gate gate)
{
	(void)context, (void)gate;
	if (strcmp(firing->trigger, "straggler") != 0)
		return;
	if (!heard.count++)
		heard.first = *firing;
}

static int name_of(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	(void)context;
	if (!id || id >= LAST_NAME)
		return -1;
	*ret_text = texts[id];
	*ret_bytes = strlen(texts[id]);
	return 0;
}

static int track_of(void *context, uint32_t id, const char **ret_text, size_t *ret_bytes)
{
	(void)context;
	*ret_text = id == STREAM ? "stream 7" : id == MAIN ? "main 4711" : "helper";
	*ret_bytes = strlen(*ret_text);
	return 0;
}

static bool is_stream(void *context, uint32_t track)
{
	(void)context;
	return track == STREAM;
}

static struct series_source source_of(unsigned rank)
{
	return (struct series_source){.source = rank,
				      .rank = rank,
				      .job = 9,
				      .name = name_of,
				      .track = track_of,
				      .is_stream = is_stream};
}

static void set_up(void)
{
	static char pattern[] = "nothing";
	static char *const patterns[] = {pattern};
	const struct triggers_listener listener = {.firing = on_firing};
	heard = (struct heard){0};
	assert_ok(triggers_engine_new(&listener, &engine));
	assert_ok(series_new(engine, patterns, 1, &series));
}

static void tear_down(void)
{
	series_free(series);
	triggers_engine_free(engine);
}

static void tell_span(unsigned rank, uint32_t track, uint32_t name, int64_t start_ns, int64_t end_ns)
{
	const struct series_source source = source_of(rank);
	const struct series_event event = {.kind = DREC_SPAN,
					   .track = track,
					   .name = name,
					   .start_ns = start_ns,
					   .end_ns = end_ns,
					   .sample = -1};
	series_event(series, &source, &event);
}

static void end_step(unsigned rank, uint64_t number, uint32_t phase, int64_t start_ns, int64_t end_ns)
{
	const struct series_source source = source_of(rank);
	const struct series_event event = {.kind = DREC_MARK,
					   .mark = DREC_MARK_STEP_END,
					   .track = MAIN,
					   .name = phase,
					   .start_ns = start_ns,
					   .end_ns = end_ns,
					   .id = number,
					   .sample = -1};
	series_event(series, &source, &event);
}

static int noise(int ns)
{
	return ns + (int)test_random_below((uint64_t)ns / 50);
}

/*
 * A step of 100 ms as a rank of a synchronous job has it: its own work in two nested spans, then a collective until
 * the slowest is done; all within one wrapper.
 */
static void one_step(unsigned rank, unsigned number, int own_ms, uint32_t phase)
{
	int64_t start_ns = (int64_t)number * 100 * MS + rank * 1000, end_ns = start_ns + 100 * MS - 10000;
	int64_t done_ns = start_ns + 2 * MS + noise(own_ms * MS);
	tell_span(rank, MAIN, INNER, start_ns + 3 * MS, done_ns - MS);
	tell_span(rank, MAIN, COMPUTE, start_ns + 2 * MS, done_ns);
	tell_span(rank, MAIN, ALL_REDUCE, done_ns, end_ns - MS);
	tell_span(rank, MAIN, WRAPPER, start_ns, end_ns);
	end_step(rank, number, phase, start_ns, end_ns);
}

static double peers_of(unsigned rank, uint32_t track)
{
	struct triggers_belief belief;
	for (uint32_t i = 0; i < triggers_engine_series_count(engine); i++)
		if (triggers_engine_belief(engine, i, &belief) == 0 && belief.key.role == TRIGGERS_BUSY &&
		    belief.key.source == rank && belief.key.track == track)
			return belief.peers;
	return -1;
}

START_TEST(the_rank_that_works_longest_is_named)
{
	for (unsigned number = 0; number < 40; number++)
		for (unsigned rank = 0; rank < 8; rank++)
			one_step(rank, number, rank == 3 ? 70 : 40, 0);
	ck_assert_uint_eq(heard.count, 1);
	ck_assert_uint_eq(heard.first.rank, 3);
	ck_assert_str_eq(heard.first.series, "busy:main 4711");
	ck_assert_double_eq_tol(heard.first.value, 73 * MS, 3 * MS);
	ck_assert_double_eq_tol(heard.first.expected, 43 * MS, 3 * MS);
	ck_assert_int_le(heard.first.step, 10);
}
END_TEST

/* All steps are as long, all wait for the same: nothing to see but in what they do themselves. */
START_TEST(where_all_work_alike_nobody_is)
{
	for (unsigned number = 0; number < 300; number++)
		for (unsigned rank = 0; rank < 8; rank++)
			one_step(rank, number, number % 7 ? 40 : 80, 0);
	ck_assert_uint_eq(heard.count, 0);
	ck_assert_double_eq_tol(peers_of(0, MAIN), 43 * MS, 3 * MS);
}
END_TEST

START_TEST(eval_steps_do_not_count)
{
	for (unsigned number = 0; number < 100; number++)
		for (unsigned rank = 0; rank < 8; rank++)
			one_step(rank, number, rank == 3 ? 90 : 40, EVAL);
	ck_assert_uint_eq(heard.count, 0);
}
END_TEST

START_TEST(a_rank_that_slows_down_is_named_with_its_first_slow_step)
{
	for (unsigned number = 0; number < 80; number++)
		for (unsigned rank = 0; rank < 4; rank++)
			one_step(rank, number, rank == 2 && number >= 50 ? 60 : 40, 0);
	ck_assert_uint_eq(heard.count, 1);
	ck_assert_uint_eq(heard.first.rank, 2);
	ck_assert_int_eq(heard.first.t0_ns, INT64_C(50) * 100 * MS + 2000);
	ck_assert_int_le(heard.first.step, 53);
}
END_TEST

/* The thread launches and waits; its stream works, a little behind. Other tracks are nobody's business. */
START_TEST(a_slow_stream_is_named)
{
	for (unsigned number = 0; number < 40; number++) {
		for (unsigned rank = 0; rank < 6; rank++) {
			int64_t start_ns = (int64_t)number * 100 * MS, late_ns = start_ns + 30 * MS;
			int own = noise((rank == 4 ? 60 : 30) * MS);
			tell_span(rank, OTHER, COMPUTE, start_ns, start_ns + (rank == 1 ? 90 : 1) * MS);
			tell_span(rank, STREAM, COMPUTE, late_ns, late_ns + own);
			tell_span(rank, STREAM, ALL_REDUCE, late_ns + own, late_ns + 99 * MS);
			tell_span(rank, MAIN, COMPUTE, start_ns + MS, start_ns + 10 * MS);
			end_step(rank, number, 0, start_ns, start_ns + 100 * MS);
		}
	}
	ck_assert_uint_eq(heard.count, 1);
	ck_assert_uint_eq(heard.first.rank, 4);
	ck_assert_uint_eq(heard.first.track, STREAM);
	ck_assert_str_eq(heard.first.series, "busy:stream 7");
	ck_assert(peers_of(0, OTHER) < 0);
}
END_TEST

START_TEST(sources_come_and_go)
{
	for (unsigned number = 0; number < 3000; number++) {
		for (unsigned rank = 0; rank < 4; rank++)
			one_step(rank + number / 10 * 4, number, 40, 0);
		for (unsigned rank = 0; rank < 4 && number % 10 == 9; rank++)
			series_source_end(series, rank + number / 10 * 4);
	}
	ck_assert_uint_eq(heard.count, 0);
	ck_assert(peers_of(0, MAIN) < 0);
}
END_TEST

/* More tracks than there is room for, and more streams: the first ones are followed. */
START_TEST(tracks_without_end_take_bounded_room)
{
	for (uint32_t track = 100; track < 100 + 20000; track++)
		tell_span(0, track, COMPUTE, 0, MS);
	for (unsigned number = 0; number < 20; number++)
		for (unsigned rank = 1; rank < 700; rank++)
			one_step(rank, number, 40, 0);
	ck_assert_uint_eq(heard.count, 0);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);
	tcase_set_timeout(tcase, 20);
	suite_add_tcase(suite, tcase);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("busy");
	TCase *tcase = add_case(suite, "unions");
	tcase_add_test(tcase, spans_in_any_order_are_exact);
	tcase_add_test(tcase, many_pieces_keep_their_sum);
	tcase_add_test(tcase, times_at_the_ends_of_64_bits_do_no_harm);
	tcase = add_case(suite, "names");
	tcase_add_loop_test(tcase, waits_are_known_by_their_names, 0, sizeof(names) / sizeof(names[0]));
	tcase_add_test(tcase, a_job_has_names_of_its_own);
	tcase = add_case(suite, "ranks");
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, the_rank_that_works_longest_is_named);
	tcase_add_test(tcase, where_all_work_alike_nobody_is);
	tcase_add_test(tcase, eval_steps_do_not_count);
	tcase_add_test(tcase, a_rank_that_slows_down_is_named_with_its_first_slow_step);
	tcase_add_test(tcase, a_slow_stream_is_named);
	tcase_add_test(tcase, sources_come_and_go);
	tcase_add_test(tcase, tracks_without_end_take_bounded_room);
	return test_run(suite);
}
