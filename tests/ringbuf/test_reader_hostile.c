/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings and windows with random damage: whatever they hold, the reading side neither crashes (run under the
 * address sanitizer), nor hangs, nor delivers more than the file can hold.
 */
#include <driverec/freeze.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ring_maker.h"
#include "support.h"

enum { CHUNKS = 64, CHUNK = 8192, BATCHES = 20, TURNS = 5000, FLIPS_MAX = 6, OPEN_MAX = 512 };

struct sum {
	uint64_t events;
	uint64_t bytes;
	struct drec_reader *reader;
};

static int touch(void *context, const struct drec_event *event, const struct drec_place *place)
{
	struct sum *sum = context;
	int64_t start, end;
	unsigned kind;
	const char *text;
	uint32_t bytes;
	struct drec_track_info info;
	sum->events++;
	sum->bytes += place->index & 1;
	for (uint32_t i = 0; i < event->name_bytes; i++)
		sum->bytes += (uint8_t)event->name_text[i];
	for (uint32_t i = 0; i < event->args_bytes; i++)
		sum->bytes += ((const uint8_t *)event->args)[i];
	/* Check writes a record for every assertion that it passes: here only what fails may cost. */
	if (drec_reader_event_time(sum->reader, event, &start, &end) == 0 && start > end)
		ck_abort_msg("an event ends before it begins");
	if (drec_reader_text(sum->reader, event->name, &kind, &text, &bytes) == 0 && bytes)
		sum->bytes += (uint8_t)text[0] + (uint8_t)text[bytes - 1];
	if (drec_reader_track(sum->reader, event->track, &info) == 0 && info.name_bytes)
		sum->bytes += (uint8_t)info.name[info.name_bytes - 1];
	return 0;
}

static int touch_text(void *context, uint32_t id, const char *text, uint32_t bytes)
{
	struct sum *sum = context;
	for (uint32_t i = 0; i < bytes; i++)
		sum->bytes += (uint8_t)text[i] + id;
	return 0;
}

/* A ring with every kind of content; deterministic. */
static struct ring_maker *make_ring(void)
{
	struct ring_maker *maker = ring_maker_new(CHUNKS, CHUNK, 16);
	uint32_t name = ring_maker_name(maker, "allreduce");
	struct drec_track_text head = {DREC_TRACK_THREAD, 3, 4, 9};
	char text[32];
	memcpy(text, &head, sizeof(head));
	memcpy(text + sizeof(head), "pidmain", 7);
	uint32_t track = ring_maker_text(maker, DREC_DICT_TRACK, text, sizeof(head) + 7);
	memcpy(text, &track, 4);
	memcpy(text + 4, "loader", 6);
	ring_maker_text(maker, DREC_DICT_TRACK_NAME, text, 10);
	struct drec_event rich = {.kind = DREC_SPAN, .flags = DREC_FLAG_NAME | DREC_FLAG_ARGS_JSON | DREC_FLAG_ID,
				  .name_text = "inline", .name_bytes = 6, .args = "{\"a\":1}", .args_bytes = 7,
				  .track = track, .start = 500, .dur_or_value = 7};
	struct drec_event loss = {.kind = DREC_LOSS, .flags = DREC_FLAG_ID, .category = DREC_LOSS_TOO_BIG,
				  .start = 5, .dur_or_value = 2, .id = 9};
	for (uint32_t slot = 0; slot < 3; slot++) {
		ring_maker_register(maker, slot, 100 + slot);
		for (uint32_t k = 0; k < 4; k++) {
			ring_maker_take(maker, slot, (slot * 3 + k * 5) % 12);
			for (uint64_t i = 0; i < 12; i++)
				ring_maker_span(maker, slot, name, 1000 * k + 10 * i, 1000 * k + 10 * i + 5);
			ring_maker_append(maker, slot, &rich, 507);
			ring_maker_append(maker, slot, &loss, 9);
			if (k < 3)
				ring_maker_close(maker, slot);
		}
		ring_maker_push(maker, slot, name, 3900);
		ring_maker_push(maker, slot, name, 3950);
	}
	return maker;
}

/* A place that is likely to matter: a header field, a table's entry in use, or an event. */
static uint64_t pick_place(const struct drec_header *header, size_t size)
{
	const struct drec_section *section = &header->section[test_random_below(header->n_sections)];
	uint64_t near[] = {4096, 1024, 128, 600};
	if (test_random_below(4) == 0)
		return test_random_below(512 + 32 * header->n_sections);
	uint64_t span = near[test_random_below(4)], offset = section->offset;
	if (section->type == DREC_SEC_DATA)
		offset += test_random_below(12) * CHUNK;
	offset += test_random_below(span);
	return offset < size - 8 ? offset : size - 8;
}

static void damage(uint8_t *bytes, uint64_t at)
{
	static const uint64_t values[] = {0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, 0x100000000, UINT64_MAX,
					  1u << 20, 4096, INT64_MAX};
	unsigned width = 1u << test_random_below(4);
	uint64_t value = values[test_random_below(sizeof(values) / sizeof(values[0]))];
	at = width > 1 ? at / width * width : at;
	switch (test_random_below(3)) {
	case 0:
		bytes[at] ^= (uint8_t)(1u << test_random_below(8));
		break;
	case 1:
		memcpy(bytes + at, &value, width);
		break;
	default:
		bytes[at] = (uint8_t)test_random();
	}
}

/* Who gets them indexes tables by the ids, as by those of events. */
static void check_open(const struct drec_header *header, const struct drec_open_info *infos, int count)
{
	for (int i = 0; i < count && i < OPEN_MAX; i++) {
		const struct drec_open_info *open = &infos[i];
		uint32_t most = header->n_dict_ids ? header->n_dict_ids - 1 : 0;
		if (open->name > most || open->track > most || open->thread_track > most)
			ck_abort_msg("an open span has an id that the dictionary cannot have");
		if (open->mark != 0 && open->mark != DREC_MARK_STEP_BEGIN && open->mark != DREC_MARK_PHASE_BEGIN)
			ck_abort_msg("an open span has the mark %u", open->mark);
	}
}

static void use(const char *path, int out_fd)
{
	static struct drec_open_info infos[OPEN_MAX];
	struct drec_poll_stats stats = {0};
	struct drec_problem problem;
	struct sum sum = {0};
	if (drec_reader_open(AT_FDCWD, path, NULL, &sum.reader, &problem) < 0) {
		if (!problem.what[0])
			ck_abort_msg("refused without a reason");
		return;
	}
	const struct drec_header *header = drec_reader_header(sum.reader);
	uint64_t most = (uint64_t)header->n_chunks * header->chunk_bytes / 32, from;
	drec_reader_poll(sum.reader, touch, &sum, 0, &stats);
	if (sum.events > most)
		ck_abort_msg("more events than the file can hold");
	drec_reader_changed(sum.reader);
	drec_reader_each_text(sum.reader, DREC_DICT_NAME, touch_text, &sum);
	check_open(header, infos, drec_reader_open_spans(sum.reader, infos, OPEN_MAX));
	uint64_t lost[DREC_LOSS_LIMIT], overwritten;
	drec_reader_losses(sum.reader, lost, &overwritten);
	drec_pin_from(sum.reader, test_random_below(5000), &from);
	if (test_random_below(8) == 0) {
		struct drec_snapshot_request request = {.a_ns = 1000002000, .b_ns = 1000003500,
							.mono_to_unix_ns = 1000000000,
							.from = test_random_below(2) ? 70 : 0};
		struct drec_snapshot_result result;
		drec_snapshot_write(sum.reader, out_fd, &request, &result);
	}
	drec_reader_free(sum.reader);
	if (test_random_below(8) == 0)
		drec_window_verify(AT_FDCWD, path, &problem);
}

/* The file is damaged in place and repaired from `whole`. */
static void turn(uint8_t *map, const uint8_t *whole, size_t size, const char *path, int out_fd)
{
	uint64_t places[FLIPS_MAX], count = 1 + test_random_below(FLIPS_MAX);
	for (uint64_t i = 0; i < count; i++) {
		places[i] = pick_place((const struct drec_header *)whole, size) & ~(uint64_t)7;
		damage(map, places[i] + test_random_below(8));
	}
	use(path, out_fd);
	for (uint64_t i = 0; i < count; i++)
		memcpy(map + places[i], whole + places[i], 8);
}

static void torment(const char *path, const uint8_t *whole, size_t size)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), out_fd = memfd_create("window", MFD_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_ge(out_fd, 0);
	uint8_t *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(map, MAP_FAILED);
	for (int i = 0; i < TURNS; i++)
		turn(map, whole, size, path, out_fd);
	ck_assert_mem_eq(map, whole, size);
	munmap(map, size);
	close(fd);
	close(out_fd);
}

static void assert_memory(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	ck_assert_int_lt(usage.ru_maxrss, 1000 * 1024); /* KiB, with what the sanitizer holds back */
}

START_TEST(damaged_rings)
{
	const char *path = test_path(test_shm_folder(), "a.ring");
	struct ring_maker *maker = make_ring();
	ring_maker_save(maker, path);
	torment(path, maker->bytes, maker->size);
	ring_maker_free(maker);
	assert_memory();
}
END_TEST

START_TEST(damaged_windows)
{
	const char *folder = test_shm_folder();
	char kept[1024];
	strcpy(kept, test_path(folder, "a.drec"));
	const char *path = test_path(folder, "a.ring");
	struct ring_maker *maker = make_ring();
	struct drec_reader *reader;
	struct drec_snapshot_request request = {.a_ns = 1000001000, .b_ns = 1000005000,
						.mono_to_unix_ns = 1000000000};
	struct drec_snapshot_result result;
	ring_maker_save(maker, path);
	assert_ok(drec_reader_open(AT_FDCWD, path, NULL, &reader, NULL));
	int fd = open(kept, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_ok(drec_snapshot_write(reader, fd, &request, &result));
	ck_assert_uint_gt(result.events_in_window, 30);
	close(fd);
	drec_reader_free(reader);
	ring_maker_free(maker);
	size_t size;
	char *whole = test_read_file(kept, &size);
	torment(kept, (const uint8_t *)whole, size);
	free(whole);
	assert_memory();
}
END_TEST

START_TEST(every_cut)
{
	const char *path = test_path(test_shm_folder(), "a.ring");
	struct ring_maker *maker = make_ring();
	int out_fd = memfd_create("window", MFD_CLOEXEC);
	ring_maker_save(maker, path);
	for (uint64_t size = maker->size; size >= 512; size -= 512) {
		ck_assert_int_eq(truncate(path, (off_t)size), 0);
		use(path, out_fd);
	}
	close(out_fd);
	ring_maker_free(maker);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hostile");
	TCase *tcase = tcase_create("200,000 damages");
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, damaged_rings, 0, BATCHES);
	tcase_add_loop_test(tcase, damaged_windows, 0, BATCHES);
	tcase_add_test(tcase, every_cut);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
