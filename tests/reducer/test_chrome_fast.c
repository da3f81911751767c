/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Chrome reader's fast ways against its plain one: whatever the bytes, the same events, members, problems
 * and counts. Texts are made of events as real producers write them, whole and with random damage.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/chrome.h>

#include "chrome_fast.h"
#include "support.h"

enum { HEARD_MAX = 1 << 20, TEXT_MAX = 2 << 20, ROUNDS = 250, LONG_ROUNDS = 24 };

/* A hash of each thing that was delivered, in order. */
struct heard {
	uint64_t *item;
	size_t n;
	uint64_t all;
	int result;
	uint64_t stop_after; /* the sink ends the reading with 7 then; 0 = never */
	struct reducer_read_report report;
};

static uint64_t hash(uint64_t seed, const void *data, size_t bytes)
{
	const unsigned char *p = data;
	for (size_t i = 0; i < bytes; i++)
		seed = (seed ^ p[i]) * 0x100000001b3u;
	return (seed ^ bytes) * 0x100000001b3u;
}

static uint64_t hash_text(uint64_t seed, struct reducer_text text)
{
	return hash(seed, text.data, text.bytes);
}

static int keep(struct heard *heard, uint64_t item)
{
	if (heard->n < HEARD_MAX)
		heard->item[heard->n] = item;
	heard->n++;
	heard->all = hash(heard->all, &item, sizeof(item));
	return heard->stop_after && heard->n == heard->stop_after ? 7 : 0;
}

static int hear_event(void *context, const struct reducer_event *event)
{
	const uint64_t numbers[] = {event->kind, event->args_flag, event->depth, event->has_time, event->has_duration,
				    event->has_id, event->mark, event->start_ps, event->duration_ps,
				    (uint64_t)event->start_ns, (uint64_t)event->duration_ns, event->id, event->count,
				    event->offset, event->bytes};
	uint64_t item = hash(1, numbers, sizeof(numbers));
	item = hash(item, &event->value, sizeof(event->value));
	const struct reducer_text texts[] = {event->name, event->name_raw, event->category, event->category_raw,
					     event->group, event->track, event->args, event->extra};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		item = hash_text(item, texts[i]);
	return keep(context, item);
}

static int hear_member(void *context, const struct reducer_member *member)
{
	return keep(context, hash_text(hash_text(2, member->key), member->value));
}

static struct heard new_heard(void)
{
	struct heard heard = {.item = malloc(HEARD_MAX * sizeof(uint64_t))};
	ck_assert_ptr_nonnull(heard.item);
	return heard;
}

static void start_hearing(struct heard *heard, struct reducer_sink *sink)
{
	heard->n = 0;
	heard->all = 0;
	*sink = (struct reducer_sink){heard, hear_event, hear_member};
}

/* Feeds `text` in pieces of the lengths given, over and over. */
static void hear(struct heard *heard, const char *text, size_t bytes, const size_t *piece, size_t n_pieces)
{
	struct reducer_sink sink;
	struct reducer_chrome *reader;
	start_hearing(heard, &sink);
	assert_ok(reducer_chrome_new(&sink, NULL, &heard->report, &reader));
	heard->result = 0;
	for (size_t at = 0, i = 0; at < bytes && heard->result == 0; i++) {
		size_t some = piece[i % n_pieces] < bytes - at ? piece[i % n_pieces] : bytes - at;
		/* A copy that ends where the piece does shows any look beyond it. */
		char *copy = malloc(some);
		memcpy(copy, text + at, some);
		heard->result = reducer_chrome_feed(reader, copy, some);
		free(copy);
		at += some;
	}
	if (heard->result == 0)
		heard->result = reducer_chrome_finish(reader);
	reducer_chrome_free(reader);
}

static void assert_same(const struct heard *heard, const struct heard *wanted, const char *what)
{
	for (size_t i = 0; i < heard->n && i < wanted->n && i < HEARD_MAX; i++)
		ck_assert_msg(heard->item[i] == wanted->item[i], "%s: item %zu differs", what, i);
	ck_assert_msg(heard->n == wanted->n, "%s: %zu items, not %zu", what, heard->n, wanted->n);
	ck_assert_msg(heard->all == wanted->all, "%s: differs late", what);
	ck_assert_msg(heard->result == wanted->result, "%s: %d, not %d", what, heard->result, wanted->result);
	const struct reducer_read_report *a = &heard->report, *b = &wanted->report;
	ck_assert_msg(a->events == b->events, "%s: other number of events", what);
	ck_assert_msg(a->damaged == b->damaged, "%s: other damage", what);
	ck_assert_msg(a->skipped_bytes == b->skipped_bytes, "%s: other bytes skipped", what);
	/* How much is read by the time of an early end depends on the pieces. */
	ck_assert_msg(wanted->result || a->text_bytes == b->text_bytes, "%s: other bytes", what);
	ck_assert_msg(a->array_root == b->array_root && a->has_base == b->has_base &&
			      a->base_unix_ns == b->base_unix_ns, "%s: another root or base", what);
	ck_assert_msg(a->n_problems == b->n_problems, "%s: %u problems, not %u", what, a->n_problems, b->n_problems);
	for (unsigned i = 0; i < a->n_problems; i++)
		ck_assert_msg(a->problem[i].offset == b->problem[i].offset &&
				      strcmp(a->problem[i].what, b->problem[i].what) == 0,
			      "%s: problem %u is \"%s\" at %llu, not \"%s\" at %llu", what, i, a->problem[i].what,
			      (unsigned long long)a->problem[i].offset, b->problem[i].what,
			      (unsigned long long)b->problem[i].offset);
}

static const char *const events[] = {
	"{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaMemcpyAsync\", \"pid\": 1102, \"tid\": 1102, \"ts\": "
	"12509448.979, \"dur\": 4.686, \"args\": {\"External id\": 646, \"cbid\": 41, \"correlation\": 135369}}",
	"{\"ph\": \"s\", \"id\": 21135369, \"pid\": 1102, \"tid\": 1102, \"ts\": 12509448.979, \"cat\": \"ac2g\", \"name\": "
	"\"ac2g\"}",
	"{\"ph\": \"f\", \"id\": 21135374, \"pid\": 0, \"tid\": 7, \"ts\": 12509463, \"cat\": \"ac2g\", \"name\": "
	"\"ac2g\", \"bp\": \"e\"}",
	"{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"torch::autograd::AccumulateGrad<a, b>(c)\", \"pid\": 2910249, "
	"\"tid\": 2919752,\n    \"ts\": 4458676556496.150, \"dur\": 45.197,\n    \"args\": {\n      \"External id\": 2792,"
	"\"Record function id\": 2652, \"Ev Idx\": 743\n    }\n  }",
	"{\n            \"ph\": \"X\",\n            \"cat\": \"cpu_op\",\n            \"name\": \"aten::as_strided\",\n"
	"            \"pid\": 6583,\n            \"tid\": 6583,\n            \"ts\": 1365627867949.417,\n            \"dur\": 0.337,"
	"\n            \"args\": {\n                \"External id\": 176,\n                \"Concrete Inputs\": [\n"
	"                    \"\",\n                    \"[2]\",\n                    \"[1]\"\n                ],\n"
	"                \"Input Dims\": [[2, 3], [], [[]], {\"a\": {}}]\n            }\n        }",
	"{\"name\":\"forward-send\",\"cat\":\"forward-send\",\"pid\":2,\"tid\":121,\"ts\":10462297.616526484,\"dur\":"
	"1313.4479522705078,\"ph\":\"X\",\"args\":{\"step\":16,\"model_chunk\":-1,\"mb_id\":-1,\"seq_id\":16}}",
	"{\"ph\": \"X\", \"cat\": \"Operator\", \n    \"name\": \"aten::contiguous\", \"pid\": 25738, \"tid\": \"25738\",\n    "
	"\"ts\": 1623142623482350, \"dur\": 155,\n    \"args\": {\"Call stack\": \"/home/a\\\\b.py(136): \\\"x\\\";\\n<module>\"}}",
	"{\"ph\":\"C\",\"name\":\"GPU 0 \xc3\xa9\",\"pid\":\"Spans\",\"ts\":\"17.5\",\"args\":{\"Total Reserved\":12.5e3,\"b\":1}}",
	"{\"name\": \"process_name\", \"ph\": \"M\", \"ts\": 1712195495501688.5, \"pid\": 1102, \"tid\": 0, \"args\": {\"name\": "
	"\"python\\u00e9\"}}",
	"{\"ph\":\"b\",\"id\":\"0x1f\",\"id2\":{\"local\":\"0x2\"},\"cat\":\"a\",\"name\":\"x\\ty\",\"pid\":1,\"tid\":2,\"ts\":-0.5}",
	"{\"ph\":\"i\",\"s\":\"g\",\"ts\":9223372036854775.807,\"dur\":3,\"name\":null,\"tid\":18446744073709551616,\"pid\":-1}",
	"{\"ph\":\"X\",\"name\":\"0123456789012345678901234567890123456789\",\"ts\":1e3,\"dur\":0.0000005,\"args\":\"none\"}",
	"{\"ph\":\"e\",\"id\":0123,\"ts\":999999999999999999.25,\"args\":[[],{}],\"tts\":7}",
	"{\"ph\":\"R\",\"name\":\"other\"}",
	"{\"ph\":\"i\",\"args\":{\"a\":x\\\"y\":2,\"c\":\"}\"},\"tid\":3}",
	"{\"ph\":\"i\",\"name\":N/A,\"cat\":null,\"ts\":NaN,\"dur\":12.}",
	"{\"ph\":\"X\",\"name\":\"\",\"cat\":[],\"ts\":\"\",\"dur\":12.}",
	"{}",
};

static const char *const between[] = {",", ",\n", ", ", ",\n  ", "\n", "", ",,"};

static size_t add_text(char *text, size_t at, const char *more)
{
	size_t bytes = strlen(more);
	ck_assert_uint_lt(bytes, TEXT_MAX - at);
	memcpy(text + at, more, bytes);
	return at + bytes;
}

#define ONE_OF(table) (table)[test_random_below(sizeof(table) / sizeof((table)[0]))]

/* A trace of some producers' events, mostly one's. */
static size_t make_text(char *text, size_t count)
{
	static const char *const begins[] = {"[", "{\"traceEvents\":[", "{\"schemaVersion\":1,\"traceEvents\": [\n", ""};
	static const char *const ends[] = {"]", "]}", "\n],\"traceName\":\"x\",\"baseTimeNanoseconds\":17}", "", "}"};
	size_t at = add_text(text, 0, ONE_OF(begins));
	const char *space = ONE_OF(between);
	size_t first = test_random_below(sizeof(events) / sizeof(events[0]));
	for (size_t i = 0; i < count; i++) {
		at = add_text(text, at, test_random_below(3) ? events[(first + test_random_below(3)) %
			      (sizeof(events) / sizeof(events[0]))] : ONE_OF(events));
		at = add_text(text, at, test_random_below(20) ? space : ONE_OF(between));
	}
	return add_text(text, at, ONE_OF(ends));
}

/* Changes one place: a byte set, a run left out, or put in twice. */
static size_t damage(char *text, size_t bytes)
{
	static const char marks[] = "\"\"\"\\\\{}[],,::  \n\t.0123456789eE+-XsfMp\x80\xc3\xa9\xff\x01";
	size_t at = test_random_below(bytes), run = 1 + test_random_below(test_random_below(4) ? 3 : 200);
	if (run > bytes - at)
		run = bytes - at;
	switch (test_random_below(3)) {
	case 0:
		text[at] = marks[test_random_below(sizeof(marks) - 1)];
		return bytes;
	case 1:
		memmove(text + at, text + at + run, bytes - at - run);
		return bytes - run;
	default:
		if (bytes + run >= TEXT_MAX)
			return bytes;
		memmove(text + at + run, text + at, bytes - at);
		return bytes + run;
	}
}

struct variant {
	enum chrome_fast_variant variant;
	const char *name;
};

static const struct variant variants[] = {
	{CHROME_FAST_GENERIC, "generic"},
	{CHROME_FAST_SSE2, "sse2"},
	{CHROME_FAST_AVX2, "avx2"},
	{CHROME_FAST_AVX512, "avx512"},
};

enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

static size_t choose_pieces(size_t *piece)
{
	size_t n = 1 + test_random_below(8), most = test_random_below(2) ? 100 : 20000;
	for (size_t i = 0; i < n; i++)
		piece[i] = 1 + test_random_below(most);
	if (test_random_below(3) == 0) {
		piece[0] = TEXT_MAX;
		return 1;
	}
	return n;
}

START_TEST(any_text_reads_the_same)
{
	const struct variant *variant = &variants[_i];
	static char text[TEXT_MAX];
	struct heard heard = new_heard(), wanted = new_heard();
	if (!chrome_fast_choose(variant->variant)) {
		fprintf(stderr, "%s: not on this machine\n", variant->name);
		return;
	}
	for (int round = 0; round < ROUNDS; round++) {
		size_t bytes = make_text(text, 1 + test_random_below(150)), piece[8];
		for (uint64_t n = test_random_below(3) ? test_random_below(8) : 0; n > 0 && bytes > 0; n--)
			bytes = damage(text, bytes);
		size_t n_pieces = choose_pieces(piece);
		heard.stop_after = wanted.stop_after = test_random_below(8) ? 0 : 1 + test_random_below(50);
		chrome_fast_choose(CHROME_FAST_NONE);
		hear(&wanted, text, bytes, piece, n_pieces);
		chrome_fast_choose(variant->variant);
		hear(&heard, text, bytes, piece, n_pieces);
		assert_same(&heard, &wanted, variant->name);
	}
	free(heard.item);
	free(wanted.item);
}
END_TEST

static bool is_chrome_name(const char *name)
{
	return strstr(name, ".json") != NULL;
}

static void hear_file(struct heard *heard, const char *path, unsigned threads)
{
	struct reducer_sink sink;
	struct reducer_input *input;
	struct reducer_problem problem;
	struct reducer_chrome_options options = {.threads = threads};
	start_hearing(heard, &sink);
	assert_ok(reducer_input_open(path, &input, &problem));
	heard->result = reducer_chrome_read(input, &sink, &options, &heard->report);
	reducer_input_free(input);
}

START_TEST(any_long_text_reads_the_same_with_threads)
{
	static char text[TEXT_MAX];
	struct heard heard = new_heard(), wanted = new_heard();
	const char *path = test_path(test_folder(), "trace.json");
	for (int round = 0; round < LONG_ROUNDS; round++) {
		size_t bytes = make_text(text, 1 + test_random_below(6000));
		for (uint64_t n = test_random_below(3) ? test_random_below(8) : 0; n > 0; n--)
			bytes = damage(text, bytes);
		test_write_file(path, text, bytes);
		heard.stop_after = wanted.stop_after = test_random_below(8) ? 0 : 1 + test_random_below(5000);
		chrome_fast_choose(CHROME_FAST_NONE);
		hear_file(&wanted, path, 1);
		chrome_fast_choose(CHROME_FAST_BEST);
		hear_file(&heard, path, 2 + (unsigned)test_random_below(3));
		assert_same(&heard, &wanted, "threads");
	}
	free(heard.item);
	free(wanted.item);
}
END_TEST

START_TEST(handed_traces_read_the_same)
{
	const char *data = test_data_folder();
	if (!data) {
		fprintf(stderr, "no handed traces here: not tested\n");
		return;
	}
	const char *folder = test_path(data, "traces");
	struct heard heard = new_heard(), wanted = new_heard();
	DIR *dir = opendir(folder);
	ck_assert_ptr_nonnull(dir);
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		if (!is_chrome_name(entry->d_name))
			continue;
		char path[4096];
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		chrome_fast_choose(CHROME_FAST_NONE);
		hear_file(&wanted, path, 1);
		for (size_t i = 0; i < VARIANTS; i++) {
			if (!chrome_fast_choose(variants[i].variant))
				continue;
			for (unsigned threads = 1; threads <= 3; threads++) {
				hear_file(&heard, path, threads);
				assert_same(&heard, &wanted, entry->d_name);
			}
		}
	}
	closedir(dir);
	free(heard.item);
	free(wanted.item);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("chrome_fast");
	TCase *random = tcase_create("random"), *handed = tcase_create("handed");
	TCase *threads = tcase_create("threads");
	tcase_set_timeout(random, 120);
	tcase_set_timeout(threads, 120);
	tcase_set_timeout(handed, 120);
	tcase_add_loop_test(random, any_text_reads_the_same, 0, VARIANTS);
	tcase_add_test(threads, any_long_text_reads_the_same_with_threads);
	tcase_add_test(handed, handed_traces_read_the_same);
	suite_add_tcase(suite, random);
	suite_add_tcase(suite, threads);
	suite_add_tcase(suite, handed);
	return test_run(suite);
}
