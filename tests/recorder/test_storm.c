/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a whole daemon does when far too much fires: a storm of 10,000 firings a second makes one incident,
 * costs bounded memory, a bounded log and a few lines of what was held back, and the daemon goes on
 * answering. And what our own captures slow fires nothing.
 */
#include <time.h>

#include "daemon_child.h"
#include "incidents/manifest.h"
#include "incidents/store.h"
#include "incidents/suppressed.h"

enum { SERIES = 10, STORM_MS = 4000, RSS_GROWTH_MAX = 48 << 20, ANSWER_MAX_MS = 3000 };
#define MS INT64_C(1000000)

static const char storm_config[] =
	"{ \"window\": { \"pre\": \"10 steps\", \"pre_min\": \"100 ms\", \"post_max\": \"1 s\" },"
	"  \"triggers\": { \"threshold\": [ { \"series\": \"load\", \"above\": \"50 ms\", \"severity\": "
	"\"warn\" },"
	"                                   { \"series\": \"next(*)\", \"above\": \"50 ms\", \"severity\": "
	"\"warn\" } ] },"
	"  \"gates\": { \"per_hour\": 100, \"per_day\": 1000, \"coalesce\": \"1 s\" } }";

static void set_up_storm(void)
{
	set_up_with(storm_config);
}

/* Nothing that a busy machine does to steps of 50 ms is told of. */
static void set_up_steps(void)
{
	set_up_with("{ \"window\": { \"pre\": \"10 steps\", \"pre_min\": \"100 ms\", \"post_max\": \"1 s\" },"
		    "  \"triggers\": { \"latency_spike\": { \"warn\": 6, \"critical\": 100 },"
		    "                  \"difference\": { \"floor\": \"900 %\" } } }");
}

static drec *open_large_ring(void)
{
	const struct drec_options options = {.run_dir = run_dir,
					     .job = "test",
					     .name = "job",
					     .ring_bytes = 16 << 20,
					     .clock = DREC_CLOCK_MONO};
	drec *rec = drec_open(&options);
	ck_assert_ptr_nonnull(rec);
	return rec;
}

static int64_t mono_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static cJSON *ask(const char *path, const char *body_text)
{
	struct http_client *client;
	cJSON *answer = NULL, *body = body_text ? cJSON_Parse(body_text) : NULL;
	long status;
	assert_ok(http_client_open(run_dir, store_path, &client));
	assert_ok(http_client_ask(client, path, body, &status, &answer));
	ck_assert_int_eq(status, 200);
	http_client_free(client);
	cJSON_Delete(body);
	return answer;
}

static double number_at(const cJSON *json, const char *a, const char *b, const char *c)
{
	const cJSON *item = cJSON_GetObjectItem(json, a);
	item = b ? cJSON_GetObjectItem(item, b) : item;
	item = c ? cJSON_GetObjectItem(item, c) : item;
	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static long rss_bytes(pid_t pid)
{
	char path[64], text[128] = "";
	long pages = 0;
	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	FILE *file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
	fclose(file);
	ck_assert_int_eq(sscanf(text, "%*d %ld", &pages), 1);
	return pages * sysconf(_SC_PAGESIZE);
}

static void name_series(drec *rec, uint32_t names[SERIES])
{
	char name[32];
	names[0] = drec_name(rec, "load");
	for (int i = 1; i < SERIES; i++) {
		snprintf(name, sizeof(name), "next(%d)", i);
		names[i] = drec_name(rec, name);
	}
}

/* A span of each series, ending now. */
static void write_all(drec *rec, const uint32_t names[SERIES], int64_t duration_ns)
{
	drec_time now = drec_now(rec);
	for (int i = 0; i < SERIES; i++)
		drec_span(rec, 0, names[i], now - (drec_time)duration_ns, now);
}

/* One above the limit and one below, again and again: each series fires a thousand times a second. */
static unsigned storm(drec *rec, const uint32_t names[SERIES], int for_ms)
{
	const struct timespec pause = {.tv_nsec = MS};
	int64_t begin_ms = mono_ms(), done = 0, now_ms = begin_ms;
	for (; now_ms - begin_ms < for_ms; now_ms = mono_ms()) {
		for (; done < now_ms - begin_ms; done++) {
			write_all(rec, names, 100 * MS + (int64_t)test_random_below(50 * MS));
			write_all(rec, names, 10 * MS);
		}
		nanosleep(&pause, NULL);
	}
	return (unsigned)done * SERIES;
}

static int64_t slowest_answer(int64_t slowest_ms)
{
	int64_t begin_ms = mono_ms();
	cJSON_Delete(ask("/api/v1/status", NULL));
	int64_t took_ms = mono_ms() - begin_ms;
	return took_ms > slowest_ms ? took_ms : slowest_ms;
}

static double fired(const cJSON *status)
{
	const cJSON *gate;
	double all = 0;
	cJSON_ArrayForEach(gate, cJSON_GetObjectItem(cJSON_GetObjectItem(status, "triggers"), "gates")) all +=
		gate->valuedouble;
	return all;
}

/* What has fired in all. */
static bool all_fired(void *context)
{
	cJSON *status = ask("/api/v1/status", NULL);
	bool all = fired(status) >= *(const unsigned *)context;
	cJSON_Delete(status);
	return all;
}

static bool none_is_open(void *context)
{
	cJSON *status = ask("/api/v1/status", NULL);
	double open = number_at(status, "incidents", "open", NULL);
	(void)context;
	cJSON_Delete(status);
	return open == 0;
}

static size_t count_incidents(void)
{
	struct incidents_store *store;
	struct incidents_entry *entries;
	size_t count;
	assert_ok(incidents_store_open(store_path, false, &store));
	assert_ok(incidents_store_list(store, &entries, &count));
	for (size_t i = 0; i < count; i++)
		ck_assert(entries[i].readable);
	free(entries);
	incidents_store_free(store);
	return count;
}

/* How many firings the only incident is of. */
static double count_firings(void)
{
	struct incidents_store *store;
	struct incidents_entry *entries;
	size_t count;
	cJSON *manifest;
	assert_ok(incidents_store_open(store_path, false, &store));
	assert_ok(incidents_store_list(store, &entries, &count));
	ck_assert_uint_eq(count, 1);
	assert_ok(incident_manifest_read(store, entries[0].folder, &manifest));
	double firings = cJSON_GetArraySize(cJSON_GetObjectItem(manifest, "firings")) +
			 number_at(manifest, "firings_not_listed", NULL, NULL);
	cJSON_Delete(manifest);
	free(entries);
	incidents_store_free(store);
	return firings;
}

/* The log of what was held back, as the command line reads it: each firing is in one of its lines. */
static void check_log(double held_back, size_t lines_max)
{
	struct suppressed *log;
	double count = 0;
	assert_ok(suppressed_read(store_path, &log));
	ck_assert_uint_le(suppressed_count(log), lines_max);
	for (const struct suppressed_line *line = suppressed_oldest(log); line;
	     line = suppressed_newer(log, line))
		count += (double)line->count;
	ck_assert(count == held_back);
	suppressed_free(log);
}

START_TEST(a_storm_is_one_incident)
{
	uint32_t names[SERIES];
	int64_t slowest_ms = 0;
	pid_t pid = start_daemon();
	drec *rec = open_large_ring();
	name_series(rec, names);
	unsigned wanted = storm(rec, names, STORM_MS / 2);
	slowest_ms = slowest_answer(slowest_ms);
	long before = rss_bytes(pid);
	for (int i = 0; i < 4; i++) {
		wanted += storm(rec, names, STORM_MS / 4);
		slowest_ms = slowest_answer(slowest_ms);
	}
	/* The threshold alone fires as often as that. */
	ck_assert(test_wait(all_fired, &wanted, SECONDS_30));
	ck_assert(test_wait(none_is_open, NULL, SECONDS_30));
	long growth = rss_bytes(pid) - before;
	cJSON *status = ask("/api/v1/status", NULL);
	double coalesced = number_at(status, "triggers", "gates", "coalesced");
	double passed = number_at(status, "triggers", "gates", "passed"),
	       held_back = fired(status) - passed - coalesced;
	ck_assert(number_at(status, "triggers", "unheard", NULL) == 0);
	ck_assert_msg(number_at(status, "incidents", "opened", NULL) == 1, "%g were opened, %g passed",
		      number_at(status, "incidents", "opened", NULL), passed);
	cJSON_Delete(status);
	drec_close(rec);
	stop_daemon(pid);
	ck_assert_msg(slowest_ms <= ANSWER_MAX_MS, "an answer took %lld ms", (long long)slowest_ms);
	ck_assert_msg(growth <= RSS_GROWTH_MAX, "it grew by %ld bytes", growth);
	ck_assert_uint_eq(count_incidents(), 1);
	check_log(held_back, 10 * SERIES);
	ck_assert_msg(count_firings() == passed + coalesced, "%g firings of %g", count_firings(),
		      passed + coalesced);
	struct stat st;
	ck_assert_int_eq(stat(test_path(folder, "run.log"), &st), 0);
	ck_assert_int_lt(st.st_size, 64 << 10);
}
END_TEST

static void write_steps(drec *rec, int first, int count, int ms)
{
	const struct timespec pause = {.tv_nsec = ms * MS};
	for (int i = first; i < first + count; i++) {
		drec_step_begin(rec, (uint64_t)i, 0);
		nanosleep(&pause, NULL);
		drec_step_end(rec);
	}
}

static bool is_held_back(void *context)
{
	cJSON *status = ask("/api/v1/status", NULL);
	double count = number_at(status, "triggers", "gates", context);
	cJSON_Delete(status);
	return count > 0;
}

/* A profiler that we run slows two steps; the same without one is an incident. What was held back outlives
 * the daemon. */
START_TEST(own_captures_fire_nothing)
{
	pid_t pid = start_daemon();
	drec *rec = open_ring();
	write_steps(rec, 0, 25, 50);
	cJSON_Delete(ask("/api/v1/capture", "{\"for\": \"1 s\"}"));
	write_steps(rec, 25, 2, 600);
	ck_assert(test_wait(is_held_back, (char[]){"own_capture"}, SECONDS_30));
	cJSON *status = ask("/api/v1/status", NULL);
	ck_assert(number_at(status, "incidents", "opened", NULL) == 0);
	cJSON_Delete(status);
	stop_daemon(pid);
	pid = start_daemon();
	status = ask("/api/v1/status", NULL);
	ck_assert(number_at(status, "triggers", "suppressed_lines", NULL) >= 1);
	cJSON_Delete(status);
	write_steps(rec, 27, 25, 50); /* over a second: the capture is over */
	write_steps(rec, 52, 1, 600);
	ck_assert(test_wait(is_held_back, (char[]){"passed"}, SECONDS_30));
	ck_assert(test_wait(none_is_open, NULL, SECONDS_30));
	drec_close(rec);
	stop_daemon(pid);
	ck_assert_uint_eq(count_incidents(), 1);
}
END_TEST

START_TEST(what_is_no_capture_is_refused)
{
	static const char *const bodies[] = {"{}", "{\"for\": 3}", "{\"for\": \"soon\"}",
					     "{\"for\": \"1 h\"}", "{\"for\": \"0 s\"}"};
	struct http_client *client;
	pid_t pid = start_daemon();
	assert_ok(http_client_open(run_dir, store_path, &client));
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		cJSON *answer = NULL, *body = cJSON_Parse(bodies[i]);
		long status;
		assert_ok(http_client_ask(client, "/api/v1/capture", body, &status, &answer));
		ck_assert_int_eq(status, 400);
		cJSON_Delete(answer);
		cJSON_Delete(body);
	}
	http_client_free(client);
	stop_daemon(pid);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("storm");
	TCase *tcase = tcase_create("storm");
	tcase_add_checked_fixture(tcase, set_up_storm, NULL);
	tcase_set_timeout(tcase, 90);
	tcase_add_test(tcase, a_storm_is_one_incident);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("own captures");
	tcase_add_checked_fixture(tcase, set_up_steps, NULL);
	tcase_set_timeout(tcase, 90);
	tcase_add_test(tcase, own_captures_fire_nothing);
	tcase_add_test(tcase, what_is_no_capture_is_refused);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
