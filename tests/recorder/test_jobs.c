/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripts of tests/triggers/scripts: each is a job, and which firings an operator wants to see of it. And whether
 * the same comes out when the daemon dies again and again meanwhile.
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

/* Every poll, often, now and then; odd, so that they fall on every place of a step. */
static const unsigned restarts[] = {1, 7, 61, 509};
enum { RESTARTS = sizeof(restarts) / sizeof(restarts[0]), EVERY_POLL_EVENTS_MAX = 12000 };

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

START_TEST(a_restart_changes_nothing)
{
	run_script(scripts[_i]);
	for (int i = 0; i < RESTARTS; i++) {
		const struct jobwatch_options options = {.restart_every = restarts[i]};
		struct jobwatch watch;
		if (restarts[i] == 1 && uninterrupted.events > EVERY_POLL_EVENTS_MAX)
			continue;
		assert_ok(jobwatch_run(sim, &options, &watch));
		ck_assert_msg(jobwatch_same(&uninterrupted, &watch, sim, why, sizeof(why)),
			      "%s: with a restart every %u events %s", scripts[_i], restarts[i], why);
		jobwatch_free(&watch);
	}
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
	printf("%llu events\n", (unsigned long long)watch.events);
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
	tcase_add_checked_fixture(scripted, NULL, tear_down);
	tcase_add_checked_fixture(restarted, NULL, tear_down);
	tcase_set_timeout(restarted, 60);
	tcase_add_loop_test(scripted, fires_what_is_wanted_and_nothing_else, 0, n_scripts);
	tcase_add_loop_test(restarted, a_restart_changes_nothing, 0, n_scripts);
	suite_add_tcase(suite, scripted);
	suite_add_tcase(suite, restarted);
	int result = test_run(suite);
	for (int i = 0; i < n_scripts; i++)
		free(scripts[i]);
	return result;
}
