/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that nobody has thought of: what must hold of any. A daemon that dies at any poll finds the same; budgets are
 * kept; times are in order; and what was told to go on is told to be over, unless its process died.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "jobwatch.h"
#include "support.h"

enum { JOBS = 6, TEXT_ROOM = 4096, RULES_MOST = 6, AN_HOUR = 12, WHY_ROOM = 1 << 16 };

static char why[WHY_ROOM];
static struct jobscript script;
static struct jobsim *sim;
static struct jobwatch watch;

static unsigned below(unsigned limit)
{
	return (unsigned)test_random_below(limit);
}

static size_t add(char text[TEXT_ROOM], size_t used, const char *format, ...) __attribute__((format(printf, 3, 4)));
static size_t add(char text[TEXT_ROOM], size_t used, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(text + used, TEXT_ROOM - used, format, arguments);
	va_end(arguments);
	ck_assert(length > 0 && (size_t)length < TEXT_ROOM - used);
	return used + (size_t)length;
}

/* When, and whom. */
static size_t add_when(char text[TEXT_ROOM], size_t used, unsigned ranks)
{
	switch (below(4)) {
	case 0:
		return add(text, used, "at step %u, %u rank %u: ", below(200), below(200), below(ranks));
	case 1:
		return add(text, used, "every %u steps: ", 8 + below(60));
	case 2:
		return add(text, used, "one in %u steps rank %u: ", 10 + below(60), below(ranks));
	default:
		return add(text, used, "at step %u: ", below(200));
	}
}

static size_t add_effect(char text[TEXT_ROOM], size_t used)
{
	switch (below(9)) {
	case 0:
		return add(text, used, "longer %u ms in load\n", 1 + below(3000));
	case 1:
		return add(text, used, "longer %u s idle\n", 1 + below(60));
	case 2:
		return add(text, used, "stopped %u ms after 310 ms\n", 1 + below(9000));
	case 3:
		return add(text, used, "times %u.%02u\n", 1 + below(4), below(100));
	case 4:
		return add(text, used, "phase checkpoint %u s jitter 9 %% uneven 9 %% %s\n", 1 + below(60),
			   below(2) ? "inside" : "");
	case 5:
		return add(text, used, "phase eval %u steps of %u ms\n", 1 + below(20), 50 + below(900));
	case 6:
		return add(text, used, "longer %u s jitter 30 %% in save_checkpoint\n", 1 + below(60));
	case 7:
		return add(text, used, "pause %u s\n", 1 + below(60));
	default:
		return add(text, used, "capture 2 steps times 1.6\n");
	}
}

static size_t add_end(char text[TEXT_ROOM], size_t used)
{
	switch (below(4)) {
	case 0:
		return add(text, used, "at step %u: crash after 300 ms again at step %u in 90 s\n", 100 + below(100),
			   below(100));
	case 1:
		return add(text, used, "at step %u: close again at step %u in 9 s\n", 100 + below(100), below(100));
	case 2:
		return add(text, used, "at step %u rank 0: never ends after 400 ms\n", 100 + below(100));
	default:
		return used;
	}
}

static void make_job(char text[TEXT_ROOM])
{
	unsigned ranks = 1 + below(3), rules = 1 + below(RULES_MOST);
	size_t used = add(text, 0, "seed %u\nranks %u\nsteps 200\nstep 1 s jitter 0.5 %%\nspan load 80 ms jitter 5 %%\n",
			  below(1000000), ranks);
	if (below(2))
		used = add(text, used, "device 0 duty 95\n");
	if (below(2))
		used = add(text, used, "at start: phase compile %u s\n", 1 + below(100));
	for (unsigned i = 0; i < rules; i++)
		used = add_effect(text, add_when(text, used, ranks));
	add(text, add_end(text, used), "run on 100 s\nexpect critical stall any times\n");
}

static void run_job(char text[TEXT_ROOM])
{
	const char *path = test_path(test_folder(), "random.job");
	make_job(text);
	test_write_file(path, text, strlen(text));
	int result = jobscript_read(path, &script, why, sizeof(why));
	ck_assert_msg(result == 0, "%s\n%s", why, text);
	assert_ok(jobsim_new(&script, &sim));
	assert_ok(jobwatch_run(sim, NULL, &watch));
	ck_assert(!watch.overflow);
}

static void tear_down(void)
{
	jobwatch_free(&watch);
	jobsim_free(sim);
	sim = NULL;
}

START_TEST(restarts_change_nothing)
{
	char text[TEXT_ROOM];
	run_job(text);
	for (int i = 0; i < 3; i++) {
		const struct jobwatch_options options = {
			.restart_every = i < 2 ? (unsigned)(watch.polls / 60 + 1) + below(40) : 0,
			.restart_from = watch.n ? watch.firing[below(watch.n)].poll : 0,
			.restart_times = 20,
		};
		struct jobwatch again;
		assert_ok(jobwatch_run(sim, &options, &again));
		ck_assert_msg(jobwatch_same(&watch, &again, sim, why, sizeof(why)), "%s\nrestarts every %u, at %llu\n%s",
			      why, options.restart_every, (unsigned long long)options.restart_from, text);
		jobwatch_free(&again);
	}
}
END_TEST

static bool has_ended(const struct triggers_firing *firing)
{
	for (size_t i = 0; i < sim->n_steps; i++)
		if (sim->step[i].step == firing->step && sim->step[i].end_ns != INT64_MAX &&
		    sim->step[i].begin_ns <= firing->detected_ns && sim->step[i].end_ns >= firing->detected_ns)
			return true;
	return false;
}

START_TEST(what_must_hold_of_any_job)
{
	const int64_t hour_ns = INT64_C(3600000000000);
	char text[TEXT_ROOM];
	run_job(text);
	for (unsigned i = 0; i < watch.n; i++) {
		const struct triggers_firing *firing = &watch.firing[i].firing;
		unsigned before = 1;
		ck_assert_msg(firing->t0_ns <= firing->detected_ns && firing->t0_ns <= firing->until_ns, "%s\n%s",
			      jobwatch_text(sim, &watch.firing[i], why, sizeof(why)), text);
		if (watch.firing[i].gate != TRIGGERS_PASSED)
			continue;
		for (unsigned j = 0; j < i; j++)
			before += watch.firing[j].gate == TRIGGERS_PASSED &&
				  firing->detected_ns - watch.firing[j].firing.detected_ns < hour_ns;
		ck_assert_msg(before <= AN_HOUR, "%u incidents in an hour\n%s", before, text);
		if (strcmp(firing->trigger, "stall") == 0 && has_ended(firing))
			ck_assert_msg(watch.firing[i].resolved_ns >= firing->t0_ns, "not resolved: %s\n%s",
				      jobwatch_text(sim, &watch.firing[i], why, sizeof(why)), text);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("jobs_random");
	TCase *any = tcase_create("any job");
	tcase_set_timeout(any, 120);
	tcase_add_checked_fixture(any, NULL, tear_down);
	tcase_add_loop_test(any, restarts_change_nothing, 0, JOBS);
	tcase_add_loop_test(any, what_must_hold_of_any_job, 0, JOBS);
	suite_add_tcase(suite, any);
	return test_run(suite);
}
