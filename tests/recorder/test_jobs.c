/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripts of tests/triggers/scripts: each is a job, and which firings an operator wants to see of it. And
 * whether the same comes out when the daemon dies again and again meanwhile.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "jobwatch.h"
#include "support.h"

enum { SCRIPTS_MAX = 128, WHY_ROOM = 1 << 16 };

static char *scripts[SCRIPTS_MAX];
static int n_scripts;
static char why[WHY_ROOM];

/* A restart takes its time: so many in a run, and at every poll only around so many of the firings. */
enum { RESTARTS_OFTEN = 100, RESTARTS_SELDOM = 11, AROUND_BEFORE = 20, AROUND = 50, AROUND_FIRINGS = 2 };

static struct jobscript script;
static struct jobsim *sim;
static struct jobwatch uninterrupted;

static void run_script(const char *path)
{
	int result = jobscript_read(path, &script, why, sizeof(why));
	ck_assert_msg(result == 0, "%s", why);
	result = jobsim_new(&script, &sim);
	ck_assert_msg(result == 0, "%s: %s", path, strerror(-result));
	assert_ok(jobwatch_run(sim, NULL, &uninterrupted));
}

static void tear_down(void)
{
	jobwatch_free(&uninterrupted);
	jobsim_free(sim);
	sim = NULL;
}

START_TEST(fires_what_is_wanted_and_nothing_else)
{
	run_script(scripts[_i]);
	ck_assert_msg(jobwatch_judge(sim, &uninterrupted, why, sizeof(why)), "\n%s", why);
}
END_TEST

static void run_with(const struct jobwatch_options *options, const char *path)
{
	struct jobwatch watch;
	assert_ok(jobwatch_run(sim, options, &watch));
	ck_assert_uint_gt(watch.restarts, 0);
	ck_assert_msg(jobwatch_same(&uninterrupted, &watch, sim, why, sizeof(why)),
		      "%s: with restarts every %u polls, %u from poll %llu on, %s", path,
		      options->restart_every, options->restart_times,
		      (unsigned long long)options->restart_from, why);
	jobwatch_free(&watch);
}

START_TEST(a_restart_changes_nothing)
{
	run_script(scripts[_i]);
	run_with(&(struct jobwatch_options){.restart_every =
						    (unsigned)(uninterrupted.polls / RESTARTS_OFTEN + 1)},
		 scripts[_i]);
	run_with(&(struct jobwatch_options){.restart_every =
						    (unsigned)(uninterrupted.polls / RESTARTS_SELDOM + 1)},
		 scripts[_i]);
}
END_TEST

START_TEST(restarts_around_a_firing_change_nothing)
{
	uint64_t after = 0;
	unsigned around = 0;
	run_script(scripts[_i]);
	for (unsigned i = 0; i < uninterrupted.n && around < AROUND_FIRINGS; i++) {
		uint64_t poll = uninterrupted.firing[i].poll;
		if (poll < after || uninterrupted.firing[i].firing.shadow)
			continue;
		after = poll + AROUND;
		around++;
		run_with(&(struct jobwatch_options){.restart_from =
							    poll > AROUND_BEFORE ? poll - AROUND_BEFORE : 0,
						    .restart_times = AROUND},
			 scripts[_i]);
	}
}
END_TEST

static const struct {
	const char *text, *wrong;
} wrong_scripts[] = {
	{"steps 10\nsteps ten\nexpect nothing\n", ":2: a number is expected, not \"ten\""},
	{"step 1\nexpect nothing\n", ":1: a time needs us, ms, s, min or h, not \"\""},
	{"steps 100001\n", ":1: \"100001\" must be a whole number from 1 to 100000"},
	{"ranks 4 5\n", ":1: \"5\" is too much"},
	{"# nothing\n\nstep 1 s\nat step 3: shorter 1 s\n", ":4: \"shorter\" is nothing that happens"},
	{"at step 3 longer 1 s\n", ":1: \":\" is expected, not \"longer\""},
	{"expect loud stall\n", ":1: a gate, note, warn or critical is expected, not \"loud\""},
	{"flops 3\n", ":1: \"flops\" is no statement"},
	{"steps 10\n", ":1: nothing is wanted: say \"expect nothing\""},
	{"expect warn stall\nexpect nothing\n", ":2: nothing and something is wanted"},
};
enum { WRONG_SCRIPTS = sizeof(wrong_scripts) / sizeof(wrong_scripts[0]) };

static const char *written(const char *text)
{
	const char *path = test_path(test_folder(), "script.job");
	test_write_file(path, text, strlen(text));
	return path;
}

START_TEST(what_is_wrong_in_a_script_is_said)
{
	const char *path = written(wrong_scripts[_i].text);
	ck_assert_int_eq(jobscript_read(path, &script, why, sizeof(why)), -EINVAL);
	ck_assert_msg(strncmp(why, path, strlen(path)) == 0, "%s", why);
	ck_assert_str_eq(why + strlen(path), wrong_scripts[_i].wrong);
}
END_TEST

static const struct {
	const char *wanted;
	int fine;
} verdicts[] = {
	{"expect critical stall step 60 resolved", 1},
	{"expect nothing", 0},
	{"expect warn stall step 60", 0},
	{"expect critical stall step 61", 0},
	{"expect critical stall step 60 2 times", 0},
	{"expect critical stall step 60 unresolved", 0},
	{"expect critical stall step 60 detected 2 s", 0},
	{"expect critical stall step 60 t0 3 s within 1 s", 0},
	{"expect critical stall of load step 60", 0},
	{"expect critical stall step 60 rank 1", 0},
	{"expect cooldown critical stall step 60\nexpect critical stall any times", 0},
	{"expect critical stall step 60\nexpect warn shift", 0},
};
enum { VERDICTS = sizeof(verdicts) / sizeof(verdicts[0]) };

START_TEST(a_verdict_can_be_guilty)
{
	char text[256];
	snprintf(text, sizeof(text), "steps 90\nstep 1 s jitter 0.5 %%\nat step 60: longer 20 s\n%s\n",
		 verdicts[_i].wanted);
	run_script(written(text));
	ck_assert_int_eq(jobwatch_judge(sim, &uninterrupted, why, sizeof(why)), verdicts[_i].fine);
}
END_TEST

/* For whoever writes a script: all that fires. */
static int show(const char *path)
{
	static char text[512];
	struct jobwatch watch;
	int result = jobscript_read(path, &script, why, sizeof(why));
	if (result < 0) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	if (jobsim_new(&script, &sim) < 0 || jobwatch_run(sim, NULL, &watch) < 0)
		return 1;
	for (unsigned i = 0; i < watch.n; i++)
		printf("%s\n", jobwatch_text(sim, &watch.firing[i], text, sizeof(text)));
	printf("%llu events in %llu polls\n", (unsigned long long)watch.events,
	       (unsigned long long)watch.polls);
	if (!jobwatch_judge(sim, &watch, why, sizeof(why)))
		printf("%s", why);
	jobwatch_free(&watch);
	tear_down();
	return 0;
}

static void find_scripts(void)
{
	glob_t found;
	if (glob(JOB_SCRIPTS "/*.job", 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc && n_scripts < SCRIPTS_MAX; i++)
		scripts[n_scripts++] = strdup(found.gl_pathv[i]);
	globfree(&found);
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return show(argv[1]);
	find_scripts();
	Suite *suite = suite_create("jobs");
	TCase *scripted = tcase_create("scripts"), *restarted = tcase_create("restarts");
	TCase *language = tcase_create("language");
	tcase_add_checked_fixture(language, NULL, tear_down);
	tcase_add_loop_test(language, what_is_wrong_in_a_script_is_said, 0, WRONG_SCRIPTS);
	tcase_add_loop_test(language, a_verdict_can_be_guilty, 0, VERDICTS);
	suite_add_tcase(suite, language);
	tcase_add_checked_fixture(scripted, NULL, tear_down);
	tcase_add_checked_fixture(restarted, NULL, tear_down);
	tcase_set_timeout(scripted, 60);
	tcase_set_timeout(restarted, 120);
	tcase_add_loop_test(scripted, fires_what_is_wanted_and_nothing_else, 0, n_scripts);
	tcase_add_loop_test(restarted, restarts_around_a_firing_change_nothing, 0, n_scripts);
	tcase_add_loop_test(restarted, a_restart_changes_nothing, 0, n_scripts);
	suite_add_tcase(suite, scripted);
	suite_add_tcase(suite, restarted);
	int result = test_run(suite);
	for (int i = 0; i < n_scripts; i++)
		free(scripts[i]);
	return result;
}
