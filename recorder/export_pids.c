/* SPDX-License-Identifier: Apache-2.0 */
#include "export_pids.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PID_MAX_LIMIT of Linux. */
static const unsigned long long ABOVE_LINUX = 1 << 22;

struct export_pid {
	size_t source;
	char *given, *written;
};

static bool says(const char *text, struct reducer_text other)
{
	return strlen(text) == other.bytes && memcmp(text, other.data, other.bytes) == 0;
}

static bool taken(const struct export_pids *pids, const char *written)
{
	for (size_t i = 0; i < pids->count; i++)
		if (strcmp(pids->pid[i].written, written) == 0)
			return true;
	return false;
}

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 18;
}

/* A pid that nobody has yet. NULL: no memory. */
static char *choose(const struct export_pids *pids, const char *given)
{
	char *written = strdup(given);
	for (unsigned n = 1; written && taken(pids, written); n++) {
		free(written);
		size_t bytes = strlen(given);
		int made;
		if (is_number(given))
			made = asprintf(&written, "%llu", strtoull(given, NULL, 10) + n * ABOVE_LINUX);
		else if (bytes >= 2 && given[0] == '"' && given[bytes - 1] == '"')
			made = asprintf(&written, "%.*s (%u)\"", (int)bytes - 1, given, n + 1);
		else
			made = asprintf(&written, "%llu", n * ABOVE_LINUX);
		if (made < 0)
			return NULL;
	}
	return written;
}

static int add(struct export_pids *pids, size_t source, struct reducer_text pid)
{
	if (pids->count == EXPORT_PIDS_MAX)
		return -E2BIG;
	struct export_pid *grown = realloc(pids->pid, (pids->count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	pids->pid = grown;
	struct export_pid one = {source, strndup(pid.data, pid.bytes), NULL};
	if (one.given)
		one.written = choose(pids, one.given);
	if (!one.written) {
		free(one.given);
		return -ENOMEM;
	}
	pids->pid[pids->count++] = one;
	return 0;
}

int export_pids_of(struct export_pids *pids, size_t source, struct reducer_text pid, struct reducer_text *ret_pid)
{
	size_t i = pids->last;
	if (i >= pids->count || pids->pid[i].source != source || !says(pids->pid[i].given, pid)) {
		for (i = 0; i < pids->count; i++)
			if (pids->pid[i].source == source && says(pids->pid[i].given, pid))
				break;
		int result = i == pids->count ? add(pids, source, pid) : 0;
		if (result < 0)
			return result;
		pids->last = i;
	}
	*ret_pid = (struct reducer_text){pids->pid[i].written, strlen(pids->pid[i].written)};
	return 0;
}

void export_pids_free(struct export_pids *pids)
{
	for (size_t i = 0; i < pids->count; i++) {
		free(pids->pid[i].given);
		free(pids->pid[i].written);
	}
	free(pids->pid);
	*pids = (struct export_pids){0};
}
