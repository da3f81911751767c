/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzz target as an ordinary test: every file of its corpus as it is, cut short, and with single bytes
 * changed. The same inputs each time. On a finding it says which one it was; `FILE [CUT | AT=BYTE]` runs that
 * one alone.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

/* What one file may cost beyond itself, in bytes and in inputs; the steps are chosen to meet it. */
enum { FILE_BYTES_MAX = 3 << 20, FILE_RUNS_MAX = 500 };

void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static char running[1200];
static unsigned long runs;

static void say_running(void)
{
	static const char intro[] = "\nthe input was: ";
	ssize_t wrote = write(2, intro, sizeof(intro) - 1);
	wrote = write(2, running, strlen(running));
	wrote = write(2, "\n", 1);
	(void)wrote;
}

static void on_signal(int number)
{
	say_running();
	signal(number, SIG_DFL);
	raise(number);
}

/* In memory of its own, so that a sanitizer sees a byte too far. */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *own = malloc(size ? size : 1);
	fuzz_require(own != NULL, "no memory");
	memcpy(own, data, size);
	LLVMFuzzerTestOneInput(own, size);
	free(own);
	runs++;
}

static uint8_t *read_file(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "rb");
	struct stat st;
	if (!file || fstat(fileno(file), &st) < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	uint8_t *data = malloc((size_t)st.st_size + 1);
	fuzz_require(data && fread(data, 1, (size_t)st.st_size, file) == (size_t)st.st_size, "%s cannot be read", path);
	fclose(file);
	*ret_size = (size_t)st.st_size;
	return data;
}

static void run_cuts(const char *path, const uint8_t *data, size_t size, size_t step)
{
	for (size_t cut = size; cut > 0;) {
		cut -= cut < step ? cut : step;
		snprintf(running, sizeof(running), "%s %zu", path, cut);
		run(data, cut);
	}
}

static void run_changes(const char *path, uint8_t *data, size_t size, size_t step)
{
	static const uint8_t others[] = {0, 0xff, '"', '\\', '}', '{', ']', '[', ',', ':', '\n', '0', '-', 0x80, 0x7f, 1};
	for (size_t at = 0; at < size; at += step) {
		uint8_t was = data[at], now = others[(at * 7 + size) % sizeof(others)];
		data[at] = now == was ? was ^ 0x10 : now;
		snprintf(running, sizeof(running), "%s %zu=%u", path, at, data[at]);
		run(data, size);
		data[at] = was;
	}
}

static void run_file(const char *path)
{
	size_t size;
	uint8_t *data = read_file(path, &size);
	size_t inputs = size ? FILE_BYTES_MAX / size : 1;
	if (inputs > FILE_RUNS_MAX)
		inputs = FILE_RUNS_MAX;
	size_t step = inputs ? size / inputs + 1 : size + 1;
	snprintf(running, sizeof(running), "%s", path);
	run(data, size);
	run_cuts(path, data, size, step);
	run_changes(path, data, size, step);
	free(data);
}

static int run_one(const char *path, const char *how)
{
	size_t size, at = 0;
	unsigned byte = 0;
	uint8_t *data = read_file(path, &size);
	int fields = how ? sscanf(how, "%zu=%u", &at, &byte) : 0;
	if (fields == 2 && at < size)
		data[at] = (uint8_t)byte;
	run(data, fields == 1 && at < size ? at : size);
	free(data);
	return 0;
}

static int run_folder(const char *folder)
{
	struct dirent **names;
	int count = scandir(folder, &names, NULL, alphasort);
	unsigned files = 0;
	for (int i = 0; i < count; i++) {
		char path[1024];
		struct stat st;
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
		free(names[i]);
		if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		run_file(path);
		files++;
	}
	if (count >= 0)
		free(names);
	printf("%s: %u files, %lu inputs\n", folder, files, runs);
	return files == 0;
}

int main(int argc, char **argv)
{
	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: %s FOLDER | FILE [CUT | AT=BYTE]\n", argv[0]);
		return 2;
	}
	signal(SIGABRT, on_signal);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(say_running);
	struct stat st;
	if (stat(argv[1], &st) == 0 && S_ISDIR(st.st_mode))
		return run_folder(argv[1]);
	snprintf(running, sizeof(running), "%s %s", argv[1], argc == 3 ? argv[2] : "");
	return run_one(argv[1], argv[2]);
}
