/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of an incident over real rings, and what the next start makes of one that was killed at each of
 * its points (this program has the points of incidents/point.h compiled in).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <driverec/driverec.h>
#include <driverec/freeze.h>

#include "incidents/incidents.h"
#include "incidents/manifest.h"
#include "incidents/store.h"
#include "support.h"

#define MS INT64_C(1000000)

enum { RINGS = 2 };

struct world {
	const char *run_dir, *store_path, *alerts_path;
	drec *rec[RINGS];
	struct incidents_store *store;
	struct incidents *incidents;
	uv_loop_t *loop; /* NULL: disk work is done inside of calls */
	struct drec_reader *reader[RINGS];
	struct incidents_ring ring[RINGS];
	size_t n_rings;
	int64_t behind_ns; /* how far watermarks lag */
	unsigned hooks;    /* outcomes to come for each alert */
	unsigned settled;
	bool collects, collects_stalls, silent;
	int last_severity, last_told;
	char last_trigger[TRIGGERS_NAME_MAX];
	unsigned n_collected;
	char collected[4][TRIGGERS_NAME_MAX];
	char said[512];
};

static int64_t mono_ns(void *context)
{
	struct timespec now;

	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t mono_to_unix_ns(void *context)
{
	static int64_t offset;
	struct timespec now;

	(void)context;
	if (!offset) {
		clock_gettime(CLOCK_REALTIME, &now);
		offset = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - mono_ns(NULL);
	}
	return offset;
}

static int64_t unix_ns(void)
{
	return mono_ns(NULL) + mono_to_unix_ns(NULL);
}

static size_t rings(void *context, struct incidents_ring *ret, size_t room)
{
	struct world *world = context;

	for (size_t i = 0; i < world->n_rings && i < room; i++) {
		ret[i] = world->ring[i];
		ret[i].watermark_ns = world->ring[i].dead ? INT64_MAX : unix_ns() - world->behind_ns;
	}
	return world->n_rings;
}

static unsigned alert(void *context, const struct incidents_alert *told)
{
	struct world *world = context;
	char line[256];
	int n = snprintf(line, sizeof(line), "%s %s\n", told->event, told->id);
	int fd = world->silent ? -1 : open(world->alerts_path, O_WRONLY | O_CREAT | O_APPEND, 0600);

	if (world->silent)
		return 0;
	world->last_severity = told->severity;
	world->last_told = told->told;
	snprintf(world->last_trigger, sizeof(world->last_trigger), "%s", told->trigger);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, line, (size_t)n), n);
	close(fd);
	ck_assert_int_eq(access(told->manifest, R_OK), 0);
	return world->hooks;
}

static void settled(void *context)
{
	struct world *world = context;

	world->settled++;
}

static void note_log(void *context, const char *kind, const char *sentence)
{
	struct world *world = context;

	if (!strcmp(kind, "incident_refused"))
		snprintf(world->said, sizeof(world->said), "%s", sentence);
}

static bool collect(void *context, const char *id, const struct triggers_firing *firing, uint32_t pid,
		    const char *folder)
{
	struct world *world = context;

	(void)id;
	if (world->n_collected < 4)
		snprintf(world->collected[world->n_collected++], TRIGGERS_NAME_MAX, "%s", firing->trigger);
	if (!world->collects || (world->collects_stalls && strcmp(firing->trigger, "stall") != 0))
		return false;
	ck_assert_uint_eq(pid, (uint32_t)getpid());
	test_write_file(test_path(folder, "stacks.txt"), "main\n", 5);
	return true;
}

static bool abandoned(void *context, const uint8_t store_id[INCIDENTS_ID_BYTES], int64_t for_ns)
{
	(void)context, (void)for_ns;
	return store_id[0] == 1;
}

/* A daemon's half: readers, store, life cycle. */
static void start(struct world *world)
{
	const struct incidents_sizing sizing = {
		.pre_ns = 100 * MS, .post_ns = 30 * MS, .post_max_ns = 1000 * MS, .bytes_max = 64 << 20};
	const struct incidents_host host = {.context = world,
					    .loop = world->loop,
					    .rings = rings,
					    .mono_ns = mono_ns,
					    .mono_to_unix_ns = mono_to_unix_ns,
					    .alert = alert,
					    .settled = settled,
					    .collect = collect,
					    .abandoned = abandoned,
					    .log = note_log};
	const struct drec_reader_options options = {.writable = 1, .rings_only = 1};
	struct drec_problem problem;

	for (size_t i = 0; i < world->n_rings; i++) {
		assert_ok(drec_reader_open(AT_FDCWD, drec_path(world->rec[i]), &options, &world->reader[i],
					   &problem));
		world->ring[i].reader = world->reader[i];
		world->ring[i].path = drec_path(world->rec[i]);
		world->ring[i].source = (uint32_t)i;
		world->ring[i].rank = (uint32_t)i;
	}
	assert_ok(incidents_store_open(world->store_path, true, &world->store));
	assert_ok(incidents_new(&host, world->store, &sizing, &world->incidents));
}

static void stop(struct world *world)
{
	incidents_free(world->incidents);
	incidents_store_free(world->store);
	for (size_t i = 0; i < world->n_rings; i++)
		drec_reader_free(world->reader[i]);
}

static void make_world(struct world *world)
{
	memset(world, 0, sizeof(*world));
	world->run_dir = test_shm_folder();
	ck_assert_int_eq(mkdir(test_path(world->run_dir, "rings"), 0700), 0);
	world->store_path = test_folder();
	world->alerts_path = strdup(test_path(test_folder(), "alerts"));
	world->n_rings = RINGS;
	mono_to_unix_ns(NULL);
	for (int i = 0; i < RINGS; i++) {
		const struct drec_options options = {.run_dir = world->run_dir,
						     .job = "job",
						     .rank = &i,
						     .name = i ? "rank1" : "rank0",
						     .ring_bytes = 1 << 20};

		world->rec[i] = drec_open(&options);
		ck_assert_ptr_nonnull(world->rec[i]);
	}
}

static void end_world(struct world *world)
{
	for (int i = 0; i < RINGS; i++)
		drec_close(world->rec[i]);
	free((void *)(uintptr_t)world->alerts_path);
}

static void record(struct world *world, int count)
{
	for (int r = 0; r < RINGS; r++) {
		for (int i = 0; i < count; i++) {
			drec_step_begin(world->rec[r], (uint64_t)i, 0);
			drec_scope load = drec_begin(world->rec[r], DREC_NAME(world->rec[r], "load"));

			drec_end(world->rec[r], load);
			drec_step_end(world->rec[r]);
		}
	}
}

static struct triggers_firing stall(void)
{
	int64_t now = unix_ns();
	struct triggers_firing firing = {.trigger = "stall",
					 .series = "step",
					 .phase = "train",
					 .severity = TRIGGERS_CRITICAL,
					 .series_id = 3,
					 .source = 0,
					 .rank = 0,
					 .t0_ns = now - 20 * MS,
					 .until_ns = now,
					 .detected_ns = now,
					 .step = 14190,
					 .sample = -1,
					 .ongoing = 1,
					 .evidence = "no progress"};

	return firing;
}

/* Ticks until nothing is to be done. */
static void run(struct world *world)
{
	const struct timespec pause = {.tv_nsec = MS};

	for (int i = 0; i < 12000 && incidents_busy(world->incidents) > 0; i++) {
		incidents_tick(world->incidents);
		if (world->loop)
			uv_run(world->loop, UV_RUN_NOWAIT);
		nanosleep(&pause, NULL);
	}
	ck_assert_uint_eq(incidents_busy(world->incidents), 0);
}

static unsigned told(const struct world *world, const char *event, const char *id)
{
	size_t bytes;
	unsigned n = 0;
	char line[128], *text;

	if (access(world->alerts_path, R_OK) < 0)
		return 0;
	text = test_read_file(world->alerts_path, &bytes);
	snprintf(line, sizeof(line), "%s %s\n", event, id);
	for (const char *at = text; (at = strstr(at, line)); at++)
		n++;
	free(text);
	return n;
}

static unsigned count_pins(struct world *world)
{
	unsigned n = 0;

	for (size_t i = 0; i < world->n_rings; i++) {
		struct drec_pin pins[DREC_PINS_MAX];

		assert_ok(drec_pins_read(world->reader[i], pins));
		for (int p = 0; p < DREC_PINS_MAX; p++)
			n += pins[p].active != 0;
	}
	return n;
}

static struct incidents_entry only_entry(struct world *world)
{
	struct incidents_entry *entries, entry;
	size_t count;

	assert_ok(incidents_store_list(world->store, &entries, &count));
	ck_assert_uint_eq(count, 1);
	entry = entries[0];
	free(entries);
	ck_assert(entry.readable);
	return entry;
}

static unsigned count_files(const char *folder)
{
	char command[4200], digits[16] = "";
	FILE *out;

	snprintf(command, sizeof(command), "ls -A '%s' | wc -l", folder);
	out = popen(command, "r");
	ck_assert_ptr_nonnull(out);
	ck_assert_ptr_nonnull(fgets(digits, sizeof(digits), out));
	pclose(out);
	return (unsigned)atoi(digits);
}

START_TEST(from_firing_to_folder)
{
	struct world world;
	struct triggers_firing firing;
	struct incidents_entry entry;
	char id[INCIDENTS_ID_TEXT];
	drec_scope load;

	make_world(&world);
	start(&world);
	record(&world, 200);
	drec_step_begin(world.rec[0], 14190, 0);
	load = drec_begin(world.rec[0], DREC_NAME(world.rec[0], "load"));
	firing = stall();
	assert_ok(incidents_firing(world.incidents, &firing, id));
	ck_assert_uint_eq(count_pins(&world), 2);
	ck_assert_uint_eq(told(&world, "opened", id), 1);
	run(&world);
	entry = only_entry(&world);
	ck_assert_str_eq(entry.verdict, "complete");
	ck_assert_str_eq(entry.id, id);
	ck_assert_ptr_nonnull(strstr(entry.sentence, "Rank 0 stopped in \"load\" at step 14,190"));
	ck_assert_uint_eq(count_pins(&world), 0);
	ck_assert_uint_eq(told(&world, "ready", id), 1);
	ck_assert_uint_eq(world.settled, 1);
	ck_assert_uint_eq(count_files(test_path(world.store_path, "pending")), 0);

	drec_end(world.rec[0], load);
	incidents_progress(world.incidents, &firing, unix_ns());
	ck_assert_uint_eq(told(&world, "resolved", id), 1);
	entry = only_entry(&world);
	ck_assert_int_gt(entry.resolved_ns, 0);
	ck_assert_uint_eq(incidents_counters(world.incidents)->resolved, 1);
	stop(&world);
	end_world(&world);
}
END_TEST

START_TEST(joining_extends)
{
	struct world world;
	struct triggers_firing firing, other;
	struct incidents_entry entry;
	cJSON *json = NULL;

	make_world(&world);
	start(&world);
	record(&world, 50);
	firing = stall();
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	other = stall();
	other.rank = other.source = 1;
	assert_ok(incidents_join(world.incidents, &other));
	run(&world);
	ck_assert_int_eq(incidents_join(world.incidents, &other), -ENOENT);
	entry = only_entry(&world);
	assert_ok(incident_manifest_read(world.store, entry.folder, &json));
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "firings")), 2);
	cJSON_Delete(json);
	/* One of two moving on does not resolve it. */
	incidents_progress(world.incidents, &firing, unix_ns());
	ck_assert_uint_eq(told(&world, "resolved", entry.id), 0);
	incidents_progress(world.incidents, &other, unix_ns());
	ck_assert_uint_eq(told(&world, "resolved", entry.id), 1);
	stop(&world);
	end_world(&world);
}
END_TEST

START_TEST(the_step_leads)
{
	struct world world;
	struct triggers_firing span, step;
	struct incidents_entry entry;
	cJSON *json = NULL;

	make_world(&world);
	start(&world);
	record(&world, 50);
	step = stall();
	strcpy(step.trigger, "latency_spike");
	step.ongoing = 0;
	span = step;
	strcpy(span.series, "load");
	span.step = -1;
	span.t0_ns += 5 * MS;
	span.until_ns -= 5 * MS;
	assert_ok(incidents_firing(world.incidents, &span, NULL));
	assert_ok(incidents_join(world.incidents, &step));
	/* Another span later on is not around it. */
	assert_ok(incidents_join(world.incidents, &span));
	run(&world);
	entry = only_entry(&world);
	ck_assert_int_eq(entry.step, step.step);
	ck_assert_int_eq(entry.t0_ns, step.t0_ns);
	assert_ok(incident_manifest_read(world.store, entry.folder, &json));
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "firings")), 3);
	cJSON_Delete(json);
	stop(&world);
	end_world(&world);
}
END_TEST

static struct triggers_firing spike(enum triggers_severity severity)
{
	struct triggers_firing firing = stall();

	strcpy(firing.trigger, "latency_spike");
	strcpy(firing.evidence, "slow");
	firing.severity = severity;
	firing.ongoing = 0;
	firing.value = 30e6;
	firing.expected = 10e6;
	firing.ratio = 3;
	return firing;
}

/* Of one that is opened with a warning; then a stall joins. */
START_TEST(a_worse_firing_leads)
{
	struct world world;
	struct triggers_firing first, worse;
	struct incidents_entry entry;
	char id[INCIDENTS_ID_TEXT];

	make_world(&world);
	world.collects = world.collects_stalls = true;
	start(&world);
	record(&world, 50);
	first = spike(TRIGGERS_WARN);
	assert_ok(incidents_firing(world.incidents, &first, id));
	ck_assert_uint_eq(told(&world, "opened", id), 1);
	ck_assert_int_eq(world.last_severity, TRIGGERS_WARN);
	ck_assert_int_eq(world.last_told, -1);
	/* One as severe tells nobody again. */
	assert_ok(incidents_join(world.incidents, &first));
	ck_assert_uint_eq(told(&world, "opened", id), 1);
	worse = stall();
	assert_ok(incidents_join(world.incidents, &worse));
	ck_assert_uint_eq(told(&world, "opened", id), 2);
	ck_assert_int_eq(world.last_severity, TRIGGERS_CRITICAL);
	ck_assert_int_eq(world.last_told, TRIGGERS_WARN);
	ck_assert_str_eq(world.last_trigger, "stall");
	/* What gathers for a stall is run for it. */
	ck_assert_uint_eq(world.n_collected, 2);
	ck_assert_str_eq(world.collected[1], "stall");
	incidents_collected(world.incidents, id);
	run(&world);
	entry = only_entry(&world);
	ck_assert_int_eq(entry.severity, TRIGGERS_CRITICAL);
	ck_assert_str_eq(entry.trigger, "stall");
	ck_assert_msg(strstr(entry.sentence, "stopped"), "%s", entry.sentence);
	ck_assert(entry.ongoing);
	ck_assert_uint_eq(told(&world, "ready", id), 1);
	incidents_progress(world.incidents, &worse, unix_ns());
	ck_assert_uint_eq(told(&world, "resolved", id), 1);
	stop(&world);
	end_world(&world);
}
END_TEST

/* A stall that joins a spike as severe is not over with it. */
START_TEST(what_goes_on_leads)
{
	struct world world;
	struct triggers_firing first, on;
	struct incidents_entry entry;
	char id[INCIDENTS_ID_TEXT];

	make_world(&world);
	start(&world);
	record(&world, 50);
	first = spike(TRIGGERS_CRITICAL);
	assert_ok(incidents_firing(world.incidents, &first, id));
	on = stall();
	assert_ok(incidents_join(world.incidents, &on));
	ck_assert_uint_eq(told(&world, "opened", id), 1);
	run(&world);
	entry = only_entry(&world);
	ck_assert_str_eq(entry.trigger, "stall");
	ck_assert(entry.ongoing && !entry.resolved_ns);
	incidents_progress(world.incidents, &on, unix_ns());
	ck_assert_uint_eq(told(&world, "resolved", id), 1);
	stop(&world);
	end_world(&world);
}
END_TEST

/* While the record is being written others wait to join: the worst leads, all are counted, and one that was
 * over by then is. */
START_TEST(joining_while_it_is_recorded)
{
	enum { MANY = 500 };
	struct world world;
	struct triggers_firing first, worse, other;
	struct incidents_entry entry;
	char id[INCIDENTS_ID_TEXT];
	cJSON *json = NULL;
	uv_loop_t loop;

	make_world(&world);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	world.loop = &loop;
	start(&world);
	record(&world, 50);
	first = spike(TRIGGERS_WARN);
	assert_ok(incidents_firing(world.incidents, &first, id));
	other = spike(TRIGGERS_NOTE);
	for (int i = 0; i < MANY; i++)
		assert_ok(incidents_join(world.incidents, &other));
	worse = stall();
	assert_ok(incidents_join(world.incidents, &worse));
	incidents_joined_more(world.incidents, 7);
	incidents_progress(world.incidents, &worse, unix_ns());
	run(&world);
	entry = only_entry(&world);
	ck_assert_str_eq(entry.trigger, "stall");
	ck_assert_int_eq(entry.severity, TRIGGERS_CRITICAL);
	ck_assert(!entry.ongoing);
	assert_ok(incident_manifest_read(world.store, entry.folder, &json));
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "firings")), 16);
	ck_assert_int_eq((int)json_number(json, "firings_not_listed", 0), 1 + MANY + 1 + 7 - 16);
	cJSON_Delete(json);
	ck_assert_int_eq(world.last_severity, TRIGGERS_CRITICAL);
	stop(&world);
	while (uv_run(&loop, UV_RUN_DEFAULT))
		;
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	end_world(&world);
}
END_TEST

START_TEST(quiet_tells_nobody)
{
	struct world world;
	struct triggers_firing firing;
	struct incidents_entry entry;
	cJSON *json = NULL;
	char id[INCIDENTS_ID_TEXT];

	make_world(&world);
	start(&world);
	record(&world, 50);
	firing = spike(TRIGGERS_WARN);
	strcpy(firing.trigger, "shift");
	firing.quiet = 1;
	assert_ok(incidents_firing(world.incidents, &firing, id));
	run(&world);
	entry = only_entry(&world);
	ck_assert_str_eq(entry.id, id);
	ck_assert_str_eq(entry.trigger, "shift");
	ck_assert_int_eq(entry.severity, TRIGGERS_WARN);
	ck_assert_int_eq(access(world.alerts_path, F_OK), -1);
	assert_ok(incident_manifest_read(world.store, entry.folder, &json));
	ck_assert(json_true(json, "quiet"));
	ck_assert(json_true(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "firings"), 0), "quiet"));
	cJSON_Delete(json);
	ck_assert_uint_eq(incidents_busy(world.incidents), 0);
	stop(&world);
	end_world(&world);
}
END_TEST

/* Of one that was opened quietly everybody hears once something joins that is meant to be heard; over a
 * restart, too. */
START_TEST(loud_joins_quiet)
{
	struct world world;
	struct triggers_firing quiet, loud;
	struct incidents_entry entry;
	cJSON *json = NULL;
	char id[INCIDENTS_ID_TEXT];

	make_world(&world);
	start(&world);
	record(&world, 50);
	quiet = spike(TRIGGERS_WARN);
	strcpy(quiet.trigger, "straggler");
	quiet.quiet = 1;
	assert_ok(incidents_firing(world.incidents, &quiet, id));
	ck_assert_uint_eq(told(&world, "opened", id), 0);
	stop(&world);
	start(&world);
	assert_ok(incidents_adopt(world.incidents));
	ck_assert_uint_eq(world.settled, 0);
	ck_assert_uint_eq(told(&world, "opened", id), 0);
	loud = spike(TRIGGERS_WARN);
	assert_ok(incidents_join(world.incidents, &loud));
	ck_assert_uint_eq(told(&world, "opened", id), 1);
	ck_assert_int_eq(world.last_told, -1);
	ck_assert_str_eq(world.last_trigger, "latency_spike");
	run(&world);
	ck_assert_uint_eq(told(&world, "ready", id), 1);
	entry = only_entry(&world);
	ck_assert_str_eq(entry.trigger, "latency_spike");
	assert_ok(incident_manifest_read(world.store, entry.folder, &json));
	ck_assert(!json_true(json, "quiet"));
	cJSON_Delete(json);
	stop(&world);
	end_world(&world);
}
END_TEST

/* The triggers may have been saved while it took firings in: a later daemon says that it does not any more. */
START_TEST(what_settled_is_settled_after_a_restart)
{
	struct world world;
	struct triggers_firing firing = spike(TRIGGERS_WARN);

	make_world(&world);
	start(&world);
	record(&world, 50);
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	stop(&world);
	start(&world);
	assert_ok(incidents_adopt(world.incidents));
	ck_assert_uint_eq(world.settled, 0);
	run(&world);
	ck_assert_uint_eq(world.settled, 1);
	stop(&world);
	start(&world);
	assert_ok(incidents_adopt(world.incidents));
	ck_assert_uint_eq(world.settled, 2);
	stop(&world);
	end_world(&world);
}
END_TEST

/* However many join: sixteen are listed, the worst and one of each trigger among them, the rest is counted. */
START_TEST(a_storm_joins)
{
	enum { MANY = 2000 };
	struct world world;
	struct triggers_firing firing;
	struct incidents_entry entry;
	cJSON *json = NULL, *item;
	unsigned stragglers = 0;

	make_world(&world);
	start(&world);
	record(&world, 50);
	firing = spike(TRIGGERS_WARN);
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	for (int i = 0; i < MANY; i++) {
		firing = spike(i == MANY / 2 ? TRIGGERS_CRITICAL : TRIGGERS_WARN);
		firing.step = i;
		if (i == MANY / 4)
			strcpy(firing.trigger, "straggler");
		assert_ok(incidents_join(world.incidents, &firing));
	}
	incidents_joined_more(world.incidents, 100);
	run(&world);
	entry = only_entry(&world);
	ck_assert_int_eq(entry.severity, TRIGGERS_CRITICAL);
	ck_assert_int_eq(entry.step, MANY / 2);
	assert_ok(incident_manifest_read(world.store, entry.folder, &json));
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "firings")), 16);
	ck_assert_int_eq((int)json_number(json, "firings_not_listed", 0), MANY + 1 - 16 + 100);
	cJSON_ArrayForEach(item, cJSON_GetObjectItem(json, "firings"))
	{
		stragglers += !strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(item, "trigger")), "straggler");
	}
	ck_assert_uint_eq(stragglers, 1);
	cJSON_Delete(json);
	ck_assert_uint_eq(incidents_counters(world.incidents)->joined, MANY + 100);
	stop(&world);
	end_world(&world);
}
END_TEST

static void continues(struct world *world, const char *folder, char ret_id[INCIDENTS_ID_TEXT])
{
	cJSON *json = NULL;

	assert_ok(incident_manifest_read(world->store, folder, &json));
	json_text(json, "continues", ret_id, INCIDENTS_ID_TEXT);
	cJSON_Delete(json);
}

/* What fires later opens one that names the first; a restart forgets none of it. */
START_TEST(later_ones_name_the_first)
{
	struct world world;
	struct triggers_firing firing;
	struct incidents_entry *entries;
	char first[INCIDENTS_ID_TEXT], named[INCIDENTS_ID_TEXT], path[512], *text;
	const struct timespec pause = {.tv_nsec = 400 * MS};
	size_t count, bytes;

	make_world(&world);
	start(&world);
	record(&world, 50);
	for (int i = 0; i < 4; i++) {
		if (i == 2) {
			stop(&world);
			start(&world);
			assert_ok(incidents_adopt(world.incidents));
		}
		if (i == 3)
			nanosleep(&pause, NULL); /* longer than a window reaches back */
		firing = spike(TRIGGERS_CRITICAL);
		assert_ok(incidents_firing(world.incidents, &firing, i ? NULL : first));
		run(&world);
	}
	assert_ok(incidents_store_list(world.store, &entries, &count));
	ck_assert_uint_eq(count, 4);
	for (size_t i = 0; i < count; i++) {
		continues(&world, entries[i].folder, named);
		ck_assert_str_eq(named, i == 1 || i == 2 ? first : "");
	}
	snprintf(path, sizeof(path), "%s/incidents/%s/report.md", world.store_path, entries[1].folder);
	text = test_read_file(path, &bytes);
	snprintf(named, sizeof(named), "%.8s", first);
	ck_assert_ptr_nonnull(strstr(text, named));
	free(text);
	free(entries);
	stop(&world);
	end_world(&world);
}
END_TEST

START_TEST(collectors_and_hooks)
{
	struct world world;
	struct triggers_firing firing;
	struct incidents_entry entry;
	char id[INCIDENTS_ID_TEXT], path[512], *text;
	size_t bytes;
	const struct timespec pause = {.tv_nsec = MS};

	make_world(&world);
	world.collects = true;
	world.hooks = 1;
	start(&world);
	record(&world, 50);
	firing = stall();
	firing.ongoing = 0;
	assert_ok(incidents_firing(world.incidents, &firing, id));
	incidents_alerted(world.incidents, id, "opened", "mail", NULL);
	for (int i = 0; i < 100; i++) {
		incidents_tick(world.incidents);
		nanosleep(&pause, NULL);
	}
	ck_assert_uint_eq(told(&world, "ready", id), 0);
	incidents_collected(world.incidents, id);
	for (int i = 0; i < 2000 && !told(&world, "ready", id); i++) {
		incidents_tick(world.incidents);
		nanosleep(&pause, NULL);
	}
	ck_assert_uint_eq(incidents_busy(world.incidents), 1);
	ck_assert_uint_eq(count_files(test_path(world.store_path, "pending")), 2);
	incidents_alerted(world.incidents, id, "ready", "mail", "exit status 7");
	ck_assert_uint_eq(incidents_busy(world.incidents), 0);
	entry = only_entry(&world);
	snprintf(path, sizeof(path), "%s/incidents/%s/collected/stacks.txt", world.store_path, entry.folder);
	free(test_read_file(path, &bytes));
	ck_assert_uint_eq(bytes, 5);
	snprintf(path, sizeof(path), "%s/incidents/%s/alerts.ndjson", world.store_path, entry.folder);
	text = test_read_file(path, &bytes);
	ck_assert_ptr_nonnull(strstr(text, "exit status 7"));
	free(text);
	assert_ok(incidents_store_delete(world.store, entry.folder, false));
	stop(&world);
	end_world(&world);
}
END_TEST

START_TEST(late_source_is_partial)
{
	struct world world;
	struct triggers_firing firing;

	make_world(&world);
	start(&world);
	record(&world, 50);
	world.behind_ns = 3600 * INT64_C(1000000000);
	firing = stall();
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	run(&world);
	ck_assert_str_eq(only_entry(&world).verdict, "partial");
	stop(&world);
	end_world(&world);
}
END_TEST

START_TEST(without_write_permission)
{
	struct world world;
	struct triggers_firing firing;
	struct incidents_entry entry;
	const struct drec_reader_options reading = {.rings_only = 1};
	struct drec_problem problem;
	cJSON *json = NULL, *ring;
	char text[64];

	make_world(&world);
	start(&world);
	drec_reader_free(world.reader[0]);
	assert_ok(drec_reader_open(AT_FDCWD, drec_path(world.rec[0]), &reading, &world.reader[0], &problem));
	world.ring[0].reader = world.reader[0];
	record(&world, 500);
	firing = stall();
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	ck_assert_uint_eq(count_pins(&world), 1);
	record(&world, 500);
	run(&world);
	entry = only_entry(&world);
	assert_ok(incident_manifest_read(world.store, entry.folder, &json));
	ring = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "rings"), 0);
	json_text(ring, "kept_by", text, sizeof(text));
	ck_assert_str_eq(text, "copy");
	json_text(ring, "why_copied", text, sizeof(text));
	ck_assert_str_eq(text, "no write permission");
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(ring, "windows")), 2);
	ck_assert_str_eq(entry.verdict, "complete");
	cJSON_Delete(json);
	stop(&world);
	end_world(&world);
}
END_TEST

START_TEST(overwritten_is_partial)
{
	struct world world;
	struct triggers_firing firing;
	struct incidents_entry entry;

	make_world(&world);
	start(&world);
	record(&world, 40000); /* several times the ring, within the window before */
	firing = stall();
	firing.t0_ns = unix_ns();
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	run(&world);
	entry = only_entry(&world);
	ck_assert_str_eq(entry.verdict, "partial");
	stop(&world);
	end_world(&world);
}
END_TEST

START_TEST(suspicion_pins_and_lets_go)
{
	struct world world;
	struct triggers_firing firing;

	make_world(&world);
	start(&world);
	record(&world, 50);
	incidents_suspicion(world.incidents, 3, 0, unix_ns());
	ck_assert_uint_eq(count_pins(&world), 2);
	incidents_suspicion(world.incidents, 4, 1, unix_ns());
	ck_assert_uint_eq(count_pins(&world), 2);
	incidents_suspicion_end(world.incidents, 3, 0);
	ck_assert_uint_eq(count_pins(&world), 2);
	incidents_suspicion_end(world.incidents, 4, 1);
	ck_assert_uint_eq(count_pins(&world), 0);

	incidents_suspicion(world.incidents, 3, 0, unix_ns());
	firing = stall();
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	ck_assert_uint_eq(count_pins(&world), 2); /* the incident's, not the suspicion's */
	run(&world);
	ck_assert_uint_eq(count_pins(&world), 0);
	ck_assert_str_eq(only_entry(&world).verdict, "complete");
	stop(&world);
	end_world(&world);
}
END_TEST

START_TEST(two_windows)
{
	struct world world;
	struct triggers_firing firing;
	struct incidents_entry entry;
	cJSON *json = NULL;

	make_world(&world);
	start(&world);
	record(&world, 50);
	firing = stall();
	firing.t0_ns = firing.detected_ns - 600 * MS;
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	ck_assert_uint_eq(count_pins(&world), 4);
	run(&world);
	entry = only_entry(&world);
	ck_assert_str_eq(entry.verdict, "complete");
	assert_ok(incident_manifest_read(world.store, entry.folder, &json));
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "windows")), 2);
	cJSON_Delete(json);
	stop(&world);
	end_world(&world);
}
END_TEST

START_TEST(manual_window)
{
	struct world world;
	struct triggers_firing firing;
	struct incidents_entry entry;
	cJSON *json = NULL, *asked;

	make_world(&world);
	start(&world);
	record(&world, 50);
	firing = stall();
	firing.t0_ns = firing.detected_ns;
	firing.ongoing = 0;
	assert_ok(incidents_manual(world.incidents, &firing, 40 * MS, NULL));
	run(&world);
	entry = only_entry(&world);
	assert_ok(incident_manifest_read(world.store, entry.folder, &json));
	asked = cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "windows"), 0), "asked");
	ck_assert_int_eq(json_ns(asked, "b_ns", 0) - json_ns(asked, "a_ns", 0), 40 * MS);
	cJSON_Delete(json);
	stop(&world);
	end_world(&world);
}
END_TEST

/* Files may not grow beyond `bytes`, as on a full disk. */
static void limit_files(rlim_t bytes)
{
	const struct rlimit limit = {bytes, RLIM_INFINITY};

	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(no_room_for_raw)
{
	struct world world;
	struct triggers_firing firing;
	struct incidents_entry entry;
	cJSON *json = NULL;

	make_world(&world);
	start(&world);
	record(&world, 200);
	firing = stall();
	firing.ongoing = 0;
	limit_files(24 << 10);
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	run(&world);
	limit_files(RLIM_INFINITY);
	entry = only_entry(&world);
	ck_assert_str_eq(entry.verdict, "partial");
	ck_assert_uint_eq(incidents_counters(world.incidents)->smaller, 1);
	assert_ok(incident_manifest_read(world.store, entry.folder, &json));
	ck_assert_ptr_nonnull(
		strstr(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "notes"), 0)->valuestring, "needed"));
	cJSON_Delete(json);
	ck_assert_uint_eq(count_pins(&world), 0);
	stop(&world);
	end_world(&world);
}
END_TEST

START_TEST(no_room_at_all)
{
	struct world world;
	struct triggers_firing firing;

	make_world(&world);
	start(&world);
	record(&world, 200);
	firing = stall();
	firing.ongoing = 0;
	limit_files(64);
	world.silent = true;
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	run(&world);
	limit_files(RLIM_INFINITY);
	ck_assert_uint_eq(incidents_counters(world.incidents)->refused, 1);
	ck_assert_uint_eq(count_pins(&world), 0);
	ck_assert_uint_eq(count_files(test_path(world.store_path, "incidents")), 0);
	ck_assert_uint_eq(count_files(test_path(world.store_path, "pending")), 0);
	ck_assert_uint_gt(strlen(world.said), 0);
	stop(&world);
	end_world(&world);
}
END_TEST

static unsigned left_pin(struct world *world, uint8_t store, int64_t age_ns)
{
	struct drec_pin pin = {.t0_ns = unix_ns() - age_ns, .trigger = "stall"};
	unsigned entry;

	memset(pin.store, store, sizeof(pin.store));
	memset(pin.incident, 7, sizeof(pin.incident));
	pin.from = drec_reader_header(world->reader[0])->n_chunks + 1;
	ck_assert_int_ge(drec_pin_set(world->reader[0], &pin, 1, &entry), 0);
	return entry;
}

/* Store 1's daemon is gone for good, store 2's is running. */
START_TEST(pins_of_daemons_long_gone_go)
{
	const int64_t day = 86400000 * MS;
	struct drec_pin pins[DREC_PINS_MAX];
	struct world world;
	unsigned old, young, used;

	make_world(&world);
	start(&world);
	old = left_pin(&world, 1, day + 1000 * MS);
	young = left_pin(&world, 1, day / 2);
	used = left_pin(&world, 2, 2 * day);
	assert_ok(incidents_adopt(world.incidents));
	assert_ok(drec_pins_read(world.reader[0], pins));
	ck_assert(!pins[old].active && pins[young].active && pins[used].active);
	stop(&world);
	end_world(&world);
}
END_TEST

/* --- killed at every point --- */

static const char *const points[] = {
	"pinned",         "recorded",         "opened",          "post_over",     "tmp_made",
	"raw_written",    "raw_synced",       "captures_linked", "macro_written", "raw_sealed",
	"report_written", "manifest_written", "sealed",          "published",     "parent_synced",
	"released",       "readied",          "pending_removed", "revised",
};

static void live_until_killed(struct world *world, const char *point)
{
	struct triggers_firing firing = stall();
	const struct timespec pause = {.tv_nsec = MS};

	firing.ongoing = !strcmp(point, "revised");
	setenv("DRIVEREC_KILL_AT", point, 1);
	start(world);
	incidents_firing(world->incidents, &firing, NULL);
	for (int i = 0; i < 5000 && incidents_busy(world->incidents) > 0; i++) {
		incidents_tick(world->incidents);
		nanosleep(&pause, NULL);
	}
	incidents_progress(world->incidents, &firing, unix_ns());
	_exit(0);
}

START_TEST(killed_anywhere_is_finished_once)
{
	struct world world;
	struct incidents_entry entry;
	int status;
	pid_t child;

	make_world(&world);
	record(&world, 100);
	child = fork();
	if (child == 0)
		live_until_killed(&world, points[_i]);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "point %s was not reached",
		      points[_i]);

	unsetenv("DRIVEREC_KILL_AT");
	start(&world);
	assert_ok(incidents_adopt(world.incidents));
	run(&world);
	entry = only_entry(&world);
	ck_assert_msg(!strcmp(entry.verdict, "complete"), "%s: %s", points[_i], entry.sentence);
	ck_assert_str_eq(entry.trigger, "stall");
	ck_assert_uint_ge(told(&world, "opened", entry.id), 1);
	ck_assert_uint_ge(told(&world, "ready", entry.id), 1);
	ck_assert_uint_eq(told(&world, "resolved", entry.id), !strcmp(points[_i], "revised"));
	ck_assert_int_eq(entry.resolved_ns != 0, !strcmp(points[_i], "revised"));
	ck_assert_uint_eq(count_pins(&world), 0);
	ck_assert_uint_eq(count_files(test_path(world.store_path, "pending")), 0);
	ck_assert_uint_eq(count_files(test_path(world.store_path, "incidents")), 1);

	/* And a third start finds nothing to do. */
	stop(&world);
	start(&world);
	assert_ok(incidents_adopt(world.incidents));
	ck_assert_uint_eq(incidents_busy(world.incidents), 0);
	only_entry(&world);
	stop(&world);
	end_world(&world);
}
END_TEST

START_TEST(ongoing_is_resolved_after_restart)
{
	struct world world;
	struct triggers_firing firing;
	struct incidents_entry entry;

	make_world(&world);
	start(&world);
	record(&world, 50);
	firing = stall();
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	run(&world);
	stop(&world);
	start(&world);
	assert_ok(incidents_adopt(world.incidents));
	/* It is only watched: time passes, and what fires meanwhile is of its own. */
	incidents_tick(world.incidents);
	ck_assert_uint_eq(told(&world, "resolved", only_entry(&world).id), 0);
	incidents_progress(world.incidents, &firing, unix_ns());
	entry = only_entry(&world);
	ck_assert_uint_eq(told(&world, "resolved", entry.id), 1);
	ck_assert_int_gt(entry.resolved_ns, 0);
	stop(&world);
	end_world(&world);
}
END_TEST

START_TEST(gone_ring_is_partial)
{
	struct world world;
	struct triggers_firing firing;
	struct incidents_entry entry;

	make_world(&world);
	start(&world);
	record(&world, 50);
	firing = stall();
	firing.ongoing = 0;
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	stop(&world);
	world.n_rings = 1; /* the other one's file is gone by the next start */
	start(&world);
	assert_ok(incidents_adopt(world.incidents));
	run(&world);
	entry = only_entry(&world);
	ck_assert_str_eq(entry.verdict, "partial");
	stop(&world);
	end_world(&world);
}
END_TEST

START_TEST(unlinked_ring_is_still_kept)
{
	struct world world;
	struct triggers_firing firing;

	make_world(&world);
	start(&world);
	record(&world, 50);
	firing = stall();
	assert_ok(incidents_firing(world.incidents, &firing, NULL));
	ck_assert(incidents_ring_needed(world.incidents, 1));
	ck_assert_int_eq(unlink(drec_path(world.rec[1])), 0);
	incidents_ring_gone(world.incidents, 1);
	drec_reader_free(world.reader[1]);
	world.n_rings = 1;
	run(&world);
	ck_assert_str_eq(only_entry(&world).verdict, "complete");
	ck_assert(!incidents_ring_needed(world.incidents, 0));
	stop(&world);
	end_world(&world);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("incident life cycle");
	const struct {
		const char *name;
		const TTest *test;
	} cases[] = {
		{"from firing to folder", from_firing_to_folder},
		{"joining", joining_extends},
		{"the step leads", the_step_leads},
		{"a worse firing", a_worse_firing_leads},
		{"what goes on", what_goes_on_leads},
		{"joining while recorded", joining_while_it_is_recorded},
		{"quiet", quiet_tells_nobody},
		{"loud joins quiet", loud_joins_quiet},
		{"settled", what_settled_is_settled_after_a_restart},
		{"storm joins", a_storm_joins},
		{"names the first", later_ones_name_the_first},
		{"collectors and hooks", collectors_and_hooks},
		{"late source", late_source_is_partial},
		{"no write permission", without_write_permission},
		{"overwritten", overwritten_is_partial},
		{"suspicion", suspicion_pins_and_lets_go},
		{"two windows", two_windows},
		{"manual window", manual_window},
		{"ongoing over a restart", ongoing_is_resolved_after_restart},
		{"gone ring", gone_ring_is_partial},
		{"unlinked ring", unlinked_ring_is_still_kept},
		{"no room for raw windows", no_room_for_raw},
		{"no room at all", no_room_at_all},
		{"pins left", pins_of_daemons_long_gone_go},
	};
	TCase *killed;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TCase *one = tcase_create(cases[i].name);

		tcase_set_timeout(one, 40);
		tcase_add_test(one, cases[i].test);
		suite_add_tcase(suite, one);
	}
	killed = tcase_create("killed anywhere");
	tcase_set_timeout(killed, 40);
	tcase_add_loop_test(killed, killed_anywhere_is_finished_once, 0, sizeof(points) / sizeof(points[0]));
	suite_add_tcase(suite, killed);
	return test_run(suite);
}
