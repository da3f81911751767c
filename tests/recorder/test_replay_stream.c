/* SPDX-License-Identifier: Apache-2.0 */
/* Step times as they are written: a firing is told at once, and an interrupt ends it with the totals. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "support.h"

static int to_child, from_child;

static pid_t start(void)
{
	int in[2], out[2];
	assert_ok(pipe(in));
	assert_ok(pipe(out));
	pid_t child = fork();
	if (child == 0) {
		char *argv[] = {(char[]){"driverec"}, (char[]){"replay"}, (char[]){"--steps"}, (char[]){"-"},
				NULL};
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		closefrom(3);
		signal(SIGINT, SIG_DFL);
		exit(command_main(4, argv));
	}
	close(in[0]);
	close(out[1]);
	to_child = in[1];
	from_child = out[0];
	return child;
}

static void tell(const char *text)
{
	ck_assert_int_eq(write(to_child, text, strlen(text)), (ssize_t)strlen(text));
}

/* One line of what it prints, without the end. */
static void hear(char *line, size_t room)
{
	size_t used = 0;
	while (used + 1 < room && read(from_child, line + used, 1) == 1 && line[used] != '\n')
		used++;
	line[used] = 0;
}

START_TEST(a_stream_is_judged_as_it_comes)
{
	char line[1024];
	int status;
	pid_t child = start();
	tell("run,value_s\n");
	for (int i = 0; i < 60; i++)
		tell(i == 50 ? "a,9.0\n" : "a,1.0\n");
	hear(line, sizeof(line));
	ck_assert_msg(strncmp(line, "a: critical", 11) == 0 && strstr(line, "(sample 50)"), "%s", line);
	/* It waits for more now. */
	kill(child, SIGINT);
	while (line[0] && strncmp(line, "1 run, ", 7) != 0)
		hear(line, sizeof(line));
	ck_assert_msg(strncmp(line, "1 run, ", 7) == 0, "no totals");
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("replay_stream");
	TCase *tcase = tcase_create("stream");
	tcase_set_timeout(tcase, 30);
	tcase_add_test(tcase, a_stream_is_judged_as_it_comes);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
