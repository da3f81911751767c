/* SPDX-License-Identifier: Apache-2.0 */
/* Every handed trace through a ring gives back the same events, and exported again it is the same trace. */
#include <reducer/chrome.h>
#include <reducer/chrome_writer.h>
#include <reducer/drec_codec.h>

#include <driverec/driverec.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { TRACES = 11 };

struct list {
	uint64_t *hash;
	size_t count, room;
	struct reducer_sink also; /* handed on, where it has functions */
	int64_t base_ns;          /* subtracted */
};

static uint64_t mix(uint64_t hash, const void *bytes, size_t count)
{
	const unsigned char *p = bytes;
	for (size_t i = 0; i < count; i++)
		hash = (hash ^ p[i]) * 0x100000001b3u;
	return (hash ^ count) * 0x100000001b3u;
}

static uint64_t hash_event(const struct reducer_event *event, int64_t base_ns)
{
	int64_t start = event->has_time ? event->start_ns - base_ns : 0;
	uint64_t numbers[] = {event->kind, event->has_time, event->has_duration, event->has_id, (uint64_t)start,
			      event->start_ps, (uint64_t)event->duration_ns, event->duration_ps, event->id,
			      drec_value_bits(event->value), event->args_flag};
	uint64_t hash = mix(0xcbf29ce484222325u, numbers, sizeof(numbers));
	const struct reducer_text *texts[] = {&event->name, &event->category, &event->group,
					      &event->track, &event->args, &event->extra};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		hash = mix(hash, texts[i]->data, texts[i]->bytes);
	return hash;
}

static int note_event(void *context, const struct reducer_event *event)
{
	struct list *list = context;
	if (list->count == list->room) {
		list->room = list->room ? list->room * 2 : 1024;
		list->hash = realloc(list->hash, list->room * sizeof(*list->hash));
		ck_assert_ptr_nonnull(list->hash);
	}
	list->hash[list->count++] = hash_event(event, list->base_ns);
	return list->also.event ? list->also.event(list->also.context, event) : 0;
}

static int note_member(void *context, const struct reducer_member *member)
{
	struct list *list = context;
	return list->also.member ? list->also.member(list->also.context, member) : 0;
}

static int is_span(void *context, const struct reducer_event *event)
{
	(void)context;
	return event->kind == DREC_SPAN ? 7 : 0;
}

static void read_chrome(const char *path, struct list *list, struct reducer_read_report *report)
{
	struct reducer_input *input;
	struct reducer_sink sink = {list, note_event, note_member};
	assert_ok(reducer_input_open(path, &input, NULL));
	assert_ok(reducer_chrome_read(input, &sink, NULL, report));
	reducer_input_free(input);
}

static void ck_same(const struct list *a, const struct list *b, const char *what, const char *path)
{
	ck_assert_msg(a->count == b->count, "%s: %s: %zu events, not %zu", path, what, b->count, a->count);
	for (size_t i = 0; i < a->count; i++)
		ck_assert_msg(a->hash[i] == b->hash[i], "%s: %s: event %zu differs", path, what, i);
}

static void read_back(const char *ring, const char *out, struct list *list)
{
	struct drec_reader *reader;
	struct drec_problem problem;
	struct drec_poll_stats stats;
	struct reducer_drec_source source;
	struct reducer_read_report report;
	assert_ok(drec_reader_open(AT_FDCWD, ring, NULL, &reader, &problem));
	assert_ok(reducer_drec_source(reader, &source));
	struct reducer_chrome_writer_options options = {.array_root = source.array_root,
							.gzip_level = 1,
							.has_base = source.has_base,
							.base_unix_ns = source.base_unix_ns};
	struct reducer_chrome_writer *writer;
	int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ck_assert_int_ge(fd, 0);
	assert_ok(reducer_chrome_writer_new(fd, &options, &writer));
	list->also = reducer_chrome_writer_sink(writer);
	list->base_ns = source.has_base ? source.base_unix_ns : 0;
	struct reducer_sink sink = {list, note_event, note_member};
	assert_ok(reducer_drec_read(reader, &sink, NULL, &stats, &report));
	ck_assert_uint_eq(stats.overwritten, 0);
	ck_assert_uint_eq(stats.corrupt_bytes, 0);
	assert_ok(reducer_chrome_writer_finish(writer));
	ck_assert_uint_eq(reducer_chrome_writer_stats(writer)->repaired, 0);
	reducer_chrome_writer_free(writer);
	close(fd);
	drec_reader_free(reader);
}

static void round_trip(const char *path)
{
	const char *folder = test_shm_folder(), *out = test_path(folder, "out.json.gz");
	struct drec_options options = {.run_dir = folder, .job = "test", .name = "feed", .ring_bytes = 128 << 20,
				       .chunk_bytes = 1 << 20, .dict_ids = 32768, .dict_bytes = 8 << 20};
	const char *why = "";
	drec *rec = NULL;
	int result = drec_open_strict(&options, &rec, &why);
	ck_assert_msg(result == 0, "no ring: %s", why);
	struct reducer_ring_sink *ring;
	struct list given = {0}, kept = {0}, exported = {0};
	struct reducer_read_report report;
	assert_ok(reducer_ring_sink_new(rec, NULL, &ring));
	given.also = reducer_ring_sink(ring);
	read_chrome(path, &given, &report);
	ck_assert_uint_eq(report.damaged, 0);
	ck_assert_uint_eq(reducer_ring_sink_stats(ring)->refused, 0);
	drec_close(rec);
	read_back(drec_path(rec), out, &kept);
	ck_same(&given, &kept, "out of the ring", path);
	read_chrome(out, &exported, &report);
	ck_same(&given, &exported, "exported", path);
	reducer_ring_sink_free(ring);
	free(given.hash);
	free(kept.hash);
	free(exported.hash);
	unlink(drec_path(rec));
}

START_TEST(every_trace_comes_back)
{
	glob_t found;
	char pattern[1200];
	snprintf(pattern, sizeof(pattern), "%s/traces/*.trace.json.gz", test_data_folder());
	ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
	ck_assert_uint_gt(found.gl_pathc, (size_t)_i);
	for (size_t i = (size_t)_i; i < found.gl_pathc; i += TRACES)
		round_trip(found.gl_pathv[i]);
	globfree(&found);
}
END_TEST

START_TEST(a_sink_ends_the_reading)
{
	struct reducer_input *input;
	struct reducer_read_report report;
	struct reducer_sink sink = {.event = is_span};
	const char *path = test_path(test_folder(), "t.json");
	const char text[] = "[{\"ph\":\"i\",\"ts\":1},{\"ph\":\"X\",\"ts\":1,\"dur\":1},{\"ph\":\"X\"}]";
	test_write_file(path, text, sizeof(text) - 1);
	assert_ok(reducer_input_open(path, &input, NULL));
	ck_assert_int_eq(reducer_chrome_read(input, &sink, NULL, &report), 7);
	ck_assert_uint_eq(report.events, 2);
	reducer_input_free(input);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("roundtrip");
	TCase *traces = tcase_create("handed traces"), *sinks = tcase_create("sinks");
	if (test_data_folder()) {
		tcase_set_timeout(traces, 120);
		tcase_add_loop_test(traces, every_trace_comes_back, 0, TRACES);
	}
	tcase_add_test(sinks, a_sink_ends_the_reading);
	suite_add_tcase(suite, traces);
	suite_add_tcase(suite, sinks);
	return test_run(suite);
}
