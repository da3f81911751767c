/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `driverec scope` makes of a macro view, a store and a raw window of known content, and whole frames
 * against scope/<name>.txt (UPDATE_GOLDEN=1 writes them). What it draws cell by cell: test_scope_draw.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <driverec/driverec.h>

#include "command.h"
#include "scope/gather.h"
#include "scope/json.h"
#include "scope_model.h"

/* --- gathering --- */

static const char *store_path;

static struct reducer_text text(const char *string)
{
	return (struct reducer_text){string, strlen(string)};
}

static void need(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "failed: %s\n", strerror(-rc));
		abort();
	}
}

static uint32_t row_of(struct reducer_tiers *tiers, const char *source, const char *key, const char *label,
		       enum reducer_row_kind kind, uint8_t depth)
{
	uint32_t track, row;
	need(reducer_tiers_track(tiers, text(source), text(key), text(label), &track));
	need(reducer_tiers_row(tiers, track, kind, depth, &row));
	return row;
}

/*
 * A minute of one rank: steps of 500 ms one after another, of which the first 400 ms are work; a loader that
 * is busy a quarter of the time. Step 80 (at 40 s) takes 3 s, all of it work.
 */
static void make_tiers(const char *path)
{
	struct reducer_tiers_options options;
	struct reducer_tiers *tiers;
	reducer_tiers_defaults(&options);
	options.bytes_max = 4 << 20;
	assert_ok(reducer_tiers_open(path, &options, BASE, &tiers));
	uint32_t step = row_of(tiers, "r0", "3", "rank0.0123456789abcdef main", REDUCER_ROW_SPANS, 0);
	uint32_t work = row_of(tiers, "r0", "3", "rank0.0123456789abcdef main", REDUCER_ROW_SPANS, 1);
	uint32_t loader = row_of(tiers, "r0", "4", "rank0.0123456789abcdef loader", REDUCER_ROW_SPANS, 0);
	uint32_t lengths = row_of(tiers, "r0", "steps/3/0/train", "lengths", REDUCER_ROW_COUNTER, 0);
	uint32_t limits = row_of(tiers, "r0", "limits/3/0/train", "limits", REDUCER_ROW_COUNTER, 0);
	int64_t at = 0;
	for (int number = 0; at < MINUTE; number++) {
		int64_t length = number == 80 ? 3 * SECOND : SECOND / 2;
		reducer_tiers_tick(tiers, BASE + at + length);
		assert_ok(reducer_tiers_span(tiers, work, 0, BASE + at,
					     BASE + at + length - length / 5 * (number != 80)));
		assert_ok(reducer_tiers_span(tiers, step, 0, BASE + at, BASE + at + length));
		assert_ok(reducer_tiers_span(tiers, loader, 0, BASE + at, BASE + at + length / 4));
		assert_ok(reducer_tiers_counter(tiers, lengths, BASE + at + length, (double)length));
		if (number >= 16)
			assert_ok(reducer_tiers_counter(tiers, limits, BASE + at + length, 750e6));
		at += length;
	}
	assert_ok(reducer_tiers_commit(tiers, BASE + MINUTE, NULL, 0, false));
	reducer_tiers_free(tiers);
}

static void write_step(drec *rec, uint32_t track, uint64_t number, int64_t start_ns, int64_t load_ns)
{
	struct drec_event event = {.kind = DREC_SPAN, .flags = DREC_FLAG_ABS, .depth = 1, .track = track};
	event.name = drec_name(rec, "load");
	event.start = (uint64_t)start_ns;
	event.dur_or_value = (uint64_t)load_ns;
	assert_ok(drec_write(rec, &event));
	event.name = drec_name(rec, "compute");
	event.start = (uint64_t)(start_ns + load_ns);
	event.dur_or_value = 300 * MS;
	assert_ok(drec_write(rec, &event));
	event.kind = DREC_MARK;
	event.category = DREC_MARK_STEP_END;
	event.flags |= DREC_FLAG_ID;
	event.depth = 0;
	event.id = number;
	event.name = drec_name(rec, "train");
	event.start = (uint64_t)start_ns;
	event.dur_or_value = (uint64_t)(load_ns + 400 * MS);
	assert_ok(drec_write(rec, &event));
}

/* The raw window: steps 70 to 80; of those step 79 is slow, too, and no example of a good one. */
static void make_raw(const char *path)
{
	const struct drec_options options = {.run_dir = test_shm_folder(),
					     .job = "made",
					     .name = "rank0",
					     .ring_bytes = 1 << 20,
					     .no_exit_mark = 1};
	const char *why = "";
	drec *rec;
	size_t bytes;
	mkdir(test_path(options.run_dir, "rings"), 0700);
	int result = drec_open_strict(&options, &rec, &why);
	ck_assert_msg(result == 0, "%s", why);
	uint32_t track = drec_track(rec, "rank0", "main");
	for (uint64_t number = 70; number < 80; number++)
		write_step(rec, track, number, BASE + 40 * SECOND - (80 - (int64_t)number) * 1500 * MS,
			   number == 79 ? 900 * MS : 100 * MS);
	write_step(rec, track, 80, BASE + 40 * SECOND, 2600 * MS);
	char *ring = strdup(drec_path(rec));
	drec_close(rec);
	char *content = test_read_file(ring, &bytes);
	test_write_file(path, content, bytes);
	free(content);
	free(ring);
}

static void make_incident(const char *id, const char *trigger, int64_t t0_ns, int64_t step, bool raw)
{
	char folder[INCIDENTS_FOLDER_MAX], path[512], manifest[2048];
	uint8_t bytes[INCIDENTS_ID_BYTES];
	need(incidents_id_parse(id, bytes));
	incidents_folder_name(folder, t0_ns, trigger, bytes);
	snprintf(path, sizeof(path), "%s/incidents/%s", store_path, folder);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	strcat(path, "/raw");
	ck_assert_int_eq(mkdir(path, 0700), 0);
	strcat(path, "/rank0.drec");
	if (raw)
		make_raw(path);
	snprintf(
		manifest, sizeof(manifest),
		"{\"schema\":\"driverec.incident/1\",\"revision\":1,\"id\":\"%s\",\"trigger\":\"%s\","
		"\"severity\":\"critical\",\"verdict\":\"complete\",\"job\":\"made\",\"rank\":0,\"step\":\"%"
		"lld\","
		"\"sentence\":\"Rank 0 took 3.0 s for \\\"step\\\" at step "
		"%lld.\",\"t0_ns\":\"%lld\",\"detected_ns\":\"%lld\","
		"\"rings\":[{\"name\":\"rank1\",\"rank\":1,\"windows\":[{\"file\":\"raw/../../../passwd\"}]},"
		"{\"name\":\"rank0\",\"rank\":0,\"windows\":[{\"file\":\"raw/"
		"rank0.drec\"}]}],\"firings\":[]}",
		id, trigger, (long long)step, (long long)step, (long long)t0_ns, (long long)(t0_ns + SECOND));
	snprintf(path, sizeof(path), "%s/incidents/%s/manifest.json", store_path, folder);
	test_write_file(path, manifest, strlen(manifest));
}

static void make_store(void)
{
	struct incidents_store *store;
	store_path = strdup(test_path(test_folder(), "store"));
	assert_ok(incidents_store_open(store_path, true, &store));
	incidents_store_free(store);
	setenv("DRIVEREC_RUN_DIR", test_folder(), 1);
}

static void make_all(void)
{
	char path[512];
	make_store();
	snprintf(path, sizeof(path), "%s/macro.tiers", store_path);
	make_tiers(path);
	make_incident("0a110000000000000000000000000001", "stall", BASE + 20 * SECOND, 40, false);
	make_incident("7f3a0000000000000000000000000002", "latency_spike", BASE + 40 * SECOND, 80, true);
}

static struct scope_gather *gather_store(void)
{
	struct scope_gather *gather;
	assert_ok(scope_gather_new(test_folder(), store_path, &gather));
	return gather;
}

static void fill(struct scope_gather *gather, unsigned columns)
{
	const struct scope_room room = {.columns = columns, .tracks = 16, .overlay_cells = 60};
	assert_ok(scope_gather_fill(gather, &view, &room, model));
}

START_TEST(columns_hold_what_the_file_has)
{
	make_all();
	struct scope_gather *gather = gather_store();
	scope_view_show(&view, MINUTE, 60);
	fill(gather, 60);
	ck_assert(!model->live && model->has_picture && model->has_steps);
	ck_assert_str_eq(model->not_live, "no daemon is running");
	ck_assert_int_eq(model->from_ns, BASE);
	ck_assert_int_eq(model->width_ns, SECOND);
	ck_assert_uint_eq(model->n_tracks, 2);
	ck_assert_str_eq(model->track[0].label, "rank0 loader");
	ck_assert_str_eq(model->track[1].label, "rank0 main");
	/* The share is that of the work inside of steps: a step by itself is busy all the time. */
	ck_assert_uint_eq(model->track[1].busy[5], 800);
	ck_assert_uint_eq(model->track[1].busy[41], 1000);
	ck_assert_uint_eq(model->track[0].busy[5], 250);
	/* The slow step stands where it was, in all of its columns, and so does the limit, once it was known.
	 */
	ck_assert_int_eq(model->steps[5].longest_ns, SECOND / 2);
	for (unsigned i = 40; i < 43; i++)
		ck_assert_int_eq(model->steps[i].longest_ns, 3 * SECOND);
	ck_assert_int_eq(model->steps[44].longest_ns, SECOND / 2);
	ck_assert_int_eq(model->steps[30].warn_ns, 750 * MS);
	ck_assert_uint_eq(model->n_incidents, 2);
	ck_assert_uint_eq(model->selected, 1);
	scope_gather_free(gather);
}
END_TEST

START_TEST(a_step_longer_than_the_window_fills_it)
{
	make_all();
	struct scope_gather *gather = gather_store();
	view.follow = false;
	view.end_ns = BASE + 41500 * MS;
	fill(gather, 100);
	ck_assert_int_eq(model->width_ns, 10 * MS);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_msg(model->steps[i].longest_ns == 3 * SECOND, "column %u: %lld", i,
			      (long long)model->steps[i].longest_ns);
	scope_gather_free(gather);
}
END_TEST

START_TEST(what_is_out_of_reach_is_not_idle)
{
	make_all();
	struct scope_gather *gather = gather_store();
	/* Ten minutes of 10 ms bins are kept; eleven minutes ago there are none, and nothing is said. */
	view.follow = false;
	view.end_ns = BASE + MINUTE - 650 * SECOND;
	fill(gather, 100);
	for (unsigned t = 0; t < model->n_tracks; t++)
		for (unsigned i = 0; i < 100; i++)
			ck_assert_uint_eq(model->track[t].busy[i], SCOPE_UNKNOWN);
	/* And nothing is said of the future. */
	view.end_ns = BASE + MINUTE + 500 * MS;
	fill(gather, 100);
	ck_assert_uint_ne(model->track[0].busy[10], SCOPE_UNKNOWN);
	ck_assert_uint_eq(model->track[0].busy[99], SCOPE_UNKNOWN);
	scope_gather_free(gather);
}
END_TEST

START_TEST(the_bad_step_lies_over_the_last_good_one)
{
	make_all();
	struct scope_gather *gather = gather_store();
	fill(gather, 60);
	const struct scope_overlay *overlay = &model->overlay;
	ck_assert_str_eq(overlay->why, "");
	const struct scope_overlay_step *good = &overlay->step[SCOPE_GOOD_STEP],
					*bad = &overlay->step[SCOPE_BAD_STEP];
	ck_assert(good->there && bad->there && !bad->unfinished);
	ck_assert_int_eq(bad->number, 80);
	ck_assert_int_eq(bad->length_ns, 3 * SECOND);
	/* Step 79 was nearer, and slow. */
	ck_assert_int_eq(good->number, 78);
	ck_assert_int_eq(good->length_ns, SECOND / 2);
	ck_assert_int_eq(overlay->cell_ns, 50 * MS);
	ck_assert(!overlay->cut);
	ck_assert_uint_eq(overlay->n_tracks, 1);
	const struct scope_overlay_track *track = &overlay->track[0];
	ck_assert_str_eq(track->label, "main");
	ck_assert_str_eq(track->grew, "load");
	ck_assert_int_eq(track->grew_ns[SCOPE_GOOD_STEP], 100 * MS);
	ck_assert_int_eq(track->grew_ns[SCOPE_BAD_STEP], 2600 * MS);
	ck_assert_uint_eq(track->busy[SCOPE_GOOD_STEP][7], 1000);
	ck_assert_uint_eq(track->busy[SCOPE_GOOD_STEP][9], 0);
	ck_assert_uint_eq(track->busy[SCOPE_GOOD_STEP][10], SCOPE_UNKNOWN);
	ck_assert_uint_eq(track->busy[SCOPE_BAD_STEP][57], 1000);
	ck_assert_uint_eq(track->busy[SCOPE_BAD_STEP][59], 0);
	scope_gather_free(gather);
}
END_TEST

/* As a stall leaves it: the step and what it is inside of have no end in the window. */
static void make_open(const char *path)
{
	const struct drec_options options = {.run_dir = test_shm_folder(),
					     .job = "made",
					     .name = "rank0",
					     .ring_bytes = 1 << 20,
					     .no_exit_mark = 1};
	const char *why = "";
	drec *rec;
	size_t bytes;
	mkdir(test_path(options.run_dir, "rings"), 0700);
	int result = drec_open_strict(&options, &rec, &why);
	ck_assert_msg(result == 0, "%s", why);
	uint32_t track = drec_thread_track(rec);
	for (uint64_t number = 70; number < 80; number++)
		write_step(rec, track, number, BASE - (int64_t)(80 - number) * SECOND, 100 * MS);
	drec_step_begin(rec, 80, drec_name(rec, "train"));
	drec_begin(rec, drec_name(rec, "load"));
	drec_instant(rec, 0, drec_name(rec, "later"));
	char *content = test_read_file(drec_path(rec), &bytes);
	test_write_file(path, content, bytes);
	free(content);
	drec_close(rec);
}

START_TEST(a_step_without_an_end_is_still_open)
{
	char path[512];
	struct incidents_entry *entries;
	struct incidents_store *store;
	size_t count;
	make_all();
	assert_ok(incidents_store_open(store_path, false, &store));
	assert_ok(incidents_store_list(store, &entries, &count));
	ck_assert_uint_eq(count, 2);
	snprintf(path, sizeof(path), "%s/incidents/%s/raw/rank0.drec", store_path, entries[1].folder);
	make_open(path);
	free(entries);
	incidents_store_free(store);
	struct scope_gather *gather = gather_store();
	fill(gather, 60);
	const struct scope_overlay *overlay = &model->overlay;
	ck_assert_str_eq(overlay->why, "");
	ck_assert(overlay->step[SCOPE_BAD_STEP].there && overlay->step[SCOPE_BAD_STEP].unfinished);
	ck_assert_int_eq(overlay->step[SCOPE_BAD_STEP].number, 80);
	scope_gather_free(gather);
}
END_TEST

START_TEST(an_incident_without_its_raw_window_says_so)
{
	make_all();
	struct scope_gather *gather = gather_store();
	strcpy(view.selected, "0a11000000000000");
	for (unsigned i = 0; i < 2; i++) {
		fill(gather, 60);
		memcpy(view.selected, model->incident[0].id, sizeof(view.selected));
	}
	ck_assert_uint_eq(model->selected, 0);
	ck_assert_str_ne(model->overlay.why, "");
	ck_assert(!model->overlay.step[SCOPE_BAD_STEP].there);
	scope_gather_free(gather);
}
END_TEST

START_TEST(new_incidents_are_seen)
{
	make_all();
	struct scope_gather *gather = gather_store();
	fill(gather, 60);
	ck_assert_uint_eq(model->n_incidents, 2);
	make_incident("99990000000000000000000000000003", "manual", BASE + 50 * SECOND, 90, false);
	ck_assert_int_eq(scope_gather_poll(gather, 10 * SECOND), 1);
	fill(gather, 60);
	ck_assert_uint_eq(model->n_incidents, 3);
	ck_assert_int_eq(scope_gather_poll(gather, 12 * SECOND), 0);
	scope_gather_free(gather);
}
END_TEST

START_TEST(names_stay_names)
{
	make_all();
	struct scope_gather *gather = gather_store();
	fill(gather, 60);
	strcpy(model->track[0].label, "\x1b[31m\xff");
	cJSON *json = scope_json(model);
	char *printed = cJSON_PrintUnformatted(json);
	ck_assert_ptr_nonnull(strstr(printed, "\"?[31m?\""));
	ck_assert_ptr_nonnull(strstr(printed, "\"from_ns\":\"1796008"));
	cJSON_free(printed);
	cJSON_Delete(json);
	scope_gather_free(gather);
}
END_TEST

/* --- reading what is written --- */

enum { SHARED = 6, COMMITS = 300, CHURN_EVERY = 75 };

/*
 * In commit n each of the rows gets the same span, so that a reader who sees a whole commit sees equal rows;
 * new tracks come, bins are given up for want of room, and now and then the file is made anew, as a daemon
 * does with a damaged one.
 */
static void write_equal_rows(const char *path)
{
	struct reducer_tiers_options options;
	struct reducer_tiers *tiers = NULL;
	char key[64];
	reducer_tiers_defaults(&options);
	options.bytes_max = REDUCER_TIERS_BYTES_MIN;
	for (int64_t i = 0; i < COMMITS; i++) {
		if (i % CHURN_EVERY == 0) {
			reducer_tiers_free(tiers);
			unlink(path);
			need(reducer_tiers_open(path, &options, BASE, &tiers));
		}
		for (int r = 0; r < SHARED; r++) {
			snprintf(key, sizeof(key), "equal%d", r);
			uint32_t row = row_of(tiers, "source", key, key, REDUCER_ROW_SPANS, 0);
			need(reducer_tiers_span(tiers, row, 0, BASE + i * 50 * MS,
						BASE + i * 50 * MS + 5 * MS));
		}
		for (int r = 0; r < 4; r++) {
			snprintf(key, sizeof(key), "other%lld.%d", (long long)i, r);
			uint32_t row = row_of(tiers, "source", key, key, REDUCER_ROW_SPANS, 0);
			need(reducer_tiers_span(tiers, row, 0, BASE + i * 50 * MS, BASE + i * 50 * MS + MS));
		}
		need(reducer_tiers_commit(tiers, BASE + i * 50 * MS + 10 * MS, NULL, 0, false));
	}
	reducer_tiers_free(tiers);
}

/* Whether all rows "equal…" hold the same. */
static unsigned check_equal(void)
{
	unsigned seen = 0;
	const struct scope_track *first = NULL;
	for (unsigned t = 0; t < model->n_tracks; t++) {
		const struct scope_track *track = &model->track[t];
		if (strncmp(track->label, "equal", 5) != 0)
			continue;
		seen++;
		first = first ? first : track;
		ck_assert_mem_eq(track->busy, first->busy, model->columns * sizeof(first->busy[0]));
	}
	ck_assert_msg(seen == 0 || seen == SHARED, "%u of the rows that come together", seen);
	return seen;
}

START_TEST(a_writer_may_go_on_meanwhile)
{
	char path[512];
	make_store();
	snprintf(path, sizeof(path), "%s/macro.tiers", store_path);
	pid_t child = fork();
	if (child == 0) {
		write_equal_rows(path);
		_exit(0);
	}
	struct scope_gather *gather = gather_store();
	const struct scope_room room = {.columns = 200, .tracks = SCOPE_TRACKS_MAX, .overlay_cells = 60};
	unsigned good = 0, busy = 0;
	int status = 0;
	/* Every look is 3 s later to the reader, so that it asks for everything each time. */
	for (int64_t mono_ns = SECOND; waitpid(child, &status, WNOHANG) == 0; mono_ns += 3 * SECOND) {
		scope_gather_poll(gather, mono_ns);
		int result = scope_gather_fill(gather, &view, &room, model);
		ck_assert_msg(result == 0 || result == -EAGAIN, "%s", strerror(-result));
		busy += result < 0;
		good += result == 0 && check_equal() > 0;
	}
	ck_assert_int_eq(status, 0);
	ck_assert_uint_gt(good, 0);
	scope_gather_poll(gather, INT64_C(1) << 60);
	assert_ok(scope_gather_fill(gather, &view, &room, model));
	ck_assert_uint_eq(check_equal(), SHARED);
	ck_assert_int_eq(model->picture_ns, BASE + (COMMITS - 1) * 50 * MS + 10 * MS);
	printf("%u whole pictures, %u times again\n", good, busy);
	scope_gather_free(gather);
}
END_TEST

/* --- the command --- */

/* Its exit status; what it prints on stdout goes to *ret_out (malloc). */
static int scope_command(const char *const *more, char **ret_out)
{
	const char *argv[16] = {"driverec", "scope"};
	int argc = 2, status;
	size_t bytes;
	char *out_path = strdup(test_path(test_folder(), "out"));
	for (; *more && argc < 15; more++)
		argv[argc++] = *more;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open(out_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		dup2(fd, STDOUT_FILENO);
		setenv("HOME", test_folder(), 1);
		setenv("LC_ALL", "C.UTF-8", 1);
		char *copy[16] = {NULL};
		for (int i = 0; i < argc; i++)
			copy[i] = strdup(argv[i]);
		status = command_main(argc, copy);
		fflush(NULL);
		_exit(status); /* what the test itself holds is no leak of the command's */
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	*ret_out = test_read_file(out_path, &bytes);
	free(out_path);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static const struct {
	const char *name, *size, *more, *value;
} frames[] = {
	{"frame", "100x32", "--once", NULL},          {"small", "40x10", "--ascii", NULL},
	{"zoomed", "80x24", "--span", "3s"},          {"month", "80x24", "--span", "30d"},
	{"incident", "110x24", "--incident", "0a11"},
};

START_TEST(frames_are_as_they_were)
{
	char path[512], *out, *expected;
	size_t bytes;
	make_all();
	const char *arguments[] = {"--store",       store_path,       "--size", frames[_i].size,
				   frames[_i].more, frames[_i].value, NULL};
	ck_assert_int_eq(scope_command(arguments, &out), 0);
	snprintf(path, sizeof(path), "%s/%s.txt", SCOPE_FRAMES, frames[_i].name);
	if (getenv("UPDATE_GOLDEN"))
		test_write_file(path, out, strlen(out));
	expected = test_read_file(path, &bytes);
	ck_assert_msg(strcmp(out, expected) == 0, "%s is now\n%s", path, out);
	free(out);
	free(expected);
}
END_TEST

START_TEST(where_there_is_nothing_it_is_4)
{
	char *out;
	const char *nothing[] = {"--once", "--store", "/nonexistent/store", "--run-dir", test_folder(), NULL};
	ck_assert_int_eq(scope_command(nothing, &out), COMMAND_NO_DAEMON);
	ck_assert_str_eq(out, "");
	free(out);
}
END_TEST

START_TEST(sizes_that_are_none_are_misuse)
{
	static const char *const sizes[] = {"",     "80",      "80x",   "x24",      "0x24",
					    "80x0", "80x24x1", "-1x24", "99999x24", "80 x 24"};
	char *out;
	make_store();
	const char *arguments[] = {"--store", store_path, "--size", sizes[_i], NULL};
	ck_assert_int_eq(scope_command(arguments, &out), COMMAND_MISUSE);
	free(out);
}
END_TEST

START_TEST(json_has_the_same_numbers)
{
	char *out;
	make_all();
	const char *arguments[] = {"--store", store_path, "--json", "--size",
				   "95x40",   "--span",   "1min",   NULL};
	ck_assert_int_eq(scope_command(arguments, &out), 0);
	cJSON *json = cJSON_Parse(out);
	ck_assert_ptr_nonnull(json);
	const cJSON *steps = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "steps"), "longest_ns");
	ck_assert(cJSON_IsFalse(cJSON_GetObjectItem(json, "live")));
	ck_assert_int_eq(cJSON_GetArraySize(steps),
			 (int)cJSON_GetNumberValue(cJSON_GetObjectItem(json, "columns")));
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "tracks")), 2);
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "incidents")), 2);
	const cJSON *bad = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "overlay"), "bad");
	ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(bad, "length_ns")), "3000000000");
	cJSON_Delete(json);
	free(out);
}
END_TEST

static void add_gathering(Suite *suite)
{
	TCase *tcase = add_case(suite, "gathering");
	tcase_add_test(tcase, columns_hold_what_the_file_has);
	tcase_add_test(tcase, a_step_longer_than_the_window_fills_it);
	tcase_add_test(tcase, what_is_out_of_reach_is_not_idle);
	tcase_add_test(tcase, the_bad_step_lies_over_the_last_good_one);
	tcase_add_test(tcase, a_step_without_an_end_is_still_open);
	tcase_add_test(tcase, an_incident_without_its_raw_window_says_so);
	tcase_add_test(tcase, new_incidents_are_seen);
	tcase_add_test(tcase, names_stay_names);
	tcase = add_case(suite, "reading what is written");
	tcase_add_test(tcase, a_writer_may_go_on_meanwhile);
}

int main(void)
{
	Suite *suite = suite_create("scope");
	add_gathering(suite);
	TCase *tcase = add_case(suite, "command");
	tcase_add_loop_test(tcase, frames_are_as_they_were, 0, (int)(sizeof(frames) / sizeof(frames[0])));
	tcase_add_test(tcase, where_there_is_nothing_it_is_4);
	tcase_add_loop_test(tcase, sizes_that_are_none_are_misuse, 0, 10);
	tcase_add_test(tcase, json_has_the_same_numbers);
	return test_run(suite);
}
