/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated jobs, written into rings by the producer library: replay finds in them what fires live. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <driverec/driverec.h>
#include <driverec/format.h>

#include "config.h"
#include "jobwatch.h"
#include "replay.h"
#include "support.h"

/* Both tick in their own ways: live 20 times a second, in replay when a deadline is over. */
#define NEAR_NS INT64_C(300000000)

enum { FIRINGS_MAX = 256, RING_BYTES = 4 << 20 };

static const char *const scripts[] = {
	"sigstop",
	"checkpoint_marked",
	"checkpoint_unmarked",
	"eval_every_500",
	"gradient_accumulation",
	"periodic_stall",
	"quanta_of_17_s",
	"shift_12",
	"straggler",
	"open_step",
};
enum { SCRIPTS = sizeof(scripts) / sizeof(scripts[0]) };

static struct jobscript script;
static struct jobsim *sim;
static struct jobwatch watch;
static char paths[JOBSIM_RINGS_MAX][256];

struct heard {
	struct triggers_firing firing[FIRINGS_MAX];
	bool found[FIRINGS_MAX];
	unsigned n;
};
static struct heard heard;

static void write_event(drec *rec, uint32_t track, const struct jobsim_moment *moment)
{
	const struct drec_event event = {
		.kind = moment->kind,
		.flags = DREC_FLAG_ABS | (moment->kind == DREC_MARK ? DREC_FLAG_ID : 0),
		.depth = DREC_DEPTH_UNKNOWN,
		.category = moment->mark,
		.name = drec_name(rec, jobsim_name(sim, moment->name)),
		.track = track,
		.start = (uint64_t)moment->start_ns,
		.dur_or_value = (uint64_t)(moment->end_ns - moment->start_ns),
		.id = moment->id,
	};
	assert_ok(drec_write(rec, &event));
}

/* The rings of all ranks; that of the host's counters is left out. */
static unsigned write_rings(void)
{
	const char *folder = test_shm_folder(), *why = "";
	unsigned n = 0;
	mkdir(test_path(folder, "rings"), 0700);
	for (unsigned i = 0; i < sim->n_rings; i++) {
		const struct jobsim_ring *ring = &sim->ring[i];
		int rank = (int)ring->rank;
		const struct drec_options options = {.run_dir = folder,
						     .job = "simulated",
						     .rank = &rank,
						     .ring_bytes = RING_BYTES,
						     .clock = DREC_CLOCK_MONO,
						     .no_exit_mark = 1};
		drec *rec;
		if (ring->rank == UINT32_MAX)
			continue;
		int result = drec_open_strict(&options, &rec, &why);
		ck_assert_msg(result == 0, "%s", why);
		uint32_t track = drec_track(rec, "", "main");
		for (size_t j = 0; j < ring->count; j++)
			if (ring->moment[j].what == JOBSIM_EVENT)
				write_event(rec, track, &ring->moment[j]);
		ck_assert_uint_eq(drec_lost(rec, 0), 0);
		snprintf(paths[n++], sizeof(paths[0]), "%s", drec_path(rec));
	}
	return n;
}

static void on_fired(void *context, const struct triggers_firing *firing)
{
	(void)context;
	ck_assert_uint_lt(heard.n, FIRINGS_MAX);
	heard.firing[heard.n++] = *firing;
}

static void replay_all(unsigned n)
{
	static struct config_problems problems;
	struct config *config;
	char error[512] = "";
	const char *path[JOBSIM_RINGS_MAX];
	assert_ok(config_parse("{}", 2, NULL, &config, &problems));
	const struct replay_settings settings = {.json = true, .config = config};
	struct replay replay = {.settings = &settings, .fired = on_fired};
	for (unsigned i = 0; i < n; i++)
		path[i] = paths[i];
	int result = replay_rings(&replay, "job", path, n, error, sizeof(error));
	ck_assert_msg(result == 0, "%s", error);
	replay_free(&replay);
	config_free(config);
}

static bool is_same(const struct triggers_firing *live, const struct triggers_firing *replayed)
{
	return strcmp(live->trigger, replayed->trigger) == 0 && strcmp(live->series, replayed->series) == 0 &&
	       live->severity == replayed->severity && live->step == replayed->step &&
	       live->rank == replayed->rank && llabs(live->t0_ns - replayed->t0_ns) <= NEAR_NS &&
	       llabs(live->detected_ns - replayed->detected_ns) <= NEAR_NS;
}

START_TEST(a_ring_fires_as_the_job_did)
{
	char why[512];
	snprintf(why, sizeof(why), "%s/%s.job", JOB_SCRIPTS, scripts[_i]);
	int result = jobscript_read(why, &script, why, sizeof(why));
	ck_assert_msg(result == 0, "%s", why);
	assert_ok(jobsim_new(&script, &sim));
	assert_ok(jobwatch_run(sim, NULL, &watch));
	replay_all(write_rings());
	unsigned live = 0;
	for (unsigned i = 0; i < watch.n; i++) {
		const struct jobwatch_firing *fired = &watch.firing[i];
		if (fired->firing.shadow ||
		    (fired->gate != TRIGGERS_PASSED && fired->gate != TRIGGERS_COALESCED))
			continue;
		live++;
		unsigned at = 0;
		while (at < heard.n && (heard.found[at] || !is_same(&fired->firing, &heard.firing[at])))
			at++;
		ck_assert_msg(at < heard.n, "%s: not in replay: %s", scripts[_i],
			      jobwatch_text(sim, fired, why, sizeof(why)));
		heard.found[at] = true;
	}
	for (unsigned i = 0; i < heard.n; i++)
		ck_assert_msg(heard.found[i], "%s: only in replay: %s", scripts[_i],
			      heard.firing[i].evidence);
	ck_assert_uint_eq(live, heard.n);
	jobwatch_free(&watch);
	jobsim_free(sim);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("jobs_replay");
	TCase *rings = tcase_create("rings");
	tcase_set_timeout(rings, 60);
	tcase_add_loop_test(rings, a_ring_fires_as_the_job_did, 0, SCRIPTS);
	suite_add_tcase(suite, rings);
	return test_run(suite);
}
