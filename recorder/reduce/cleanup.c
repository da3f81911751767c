/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/cleanup.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAME_BYTES = 256 };

static struct {
	volatile sig_atomic_t used;
	int dirfd;
	char name[NAME_BYTES];
} files[CLEANUP_KINDS];

static volatile sig_atomic_t children[CLEANUP_CHILDREN_MAX];

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

static sigset_t set_of_all(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&set, signals[i]);
	return set;
}

/* Only what is safe in a handler. SA_RESETHAND has put the default back, which takes effect when we return.
 */
static void end(int number)
{
	for (int kind = 0; kind < CLEANUP_KINDS; kind++)
		if (files[kind].used)
			unlinkat(files[kind].dirfd, files[kind].name, 0);
	for (int i = 0; i < CLEANUP_CHILDREN_MAX; i++)
		if (children[i])
			kill(children[i], number);
	for (int i = 0; i < CLEANUP_CHILDREN_MAX; i++)
		if (children[i])
			waitpid(children[i], NULL, 0);
	raise(number);
}

void cleanup_install(void)
{
	struct sigaction action = {.sa_handler = end, .sa_flags = (int)SA_RESETHAND, .sa_mask = set_of_all()};
	struct sigaction old;

	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		/* nohup and shells that start us in the background ignore some: so do we. */
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGIO, SIG_IGN);
}

void cleanup_add(enum cleanup_kind kind, int dirfd, const char *name)
{
	files[kind].dirfd = dirfd;
	snprintf(files[kind].name, sizeof(files[kind].name), "%s", name);
	files[kind].used = 1;
}

void cleanup_remove(enum cleanup_kind kind)
{
	files[kind].used = 0;
}

static void replace_child(int old, int new)
{
	for (int i = 0; i < CLEANUP_CHILDREN_MAX; i++)
		if (children[i] == old) {
			children[i] = new;
			return;
		}
}

void cleanup_add_child(int pid)
{
	replace_child(0, pid);
}

void cleanup_remove_child(int pid)
{
	replace_child(pid, 0);
}

void cleanup_forget(void)
{
	for (int kind = 0; kind < CLEANUP_KINDS; kind++)
		files[kind].used = 0;
	for (int i = 0; i < CLEANUP_CHILDREN_MAX; i++)
		children[i] = 0;
}

void cleanup_block(void)
{
	sigset_t set = set_of_all();

	sigprocmask(SIG_BLOCK, &set, NULL);
}

void cleanup_unblock(void)
{
	sigset_t set = set_of_all();

	sigprocmask(SIG_UNBLOCK, &set, NULL);
}
