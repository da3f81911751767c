/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char scratch[64];

void bench_print(const struct bench_figure *figure)
{
	int decimals = strcmp(figure->unit, "s") == 0 ? 4 : 2;
	printf("{\"bench\":\"%s\",\"value\":%.*f,\"unit\":\"%s\"", figure->name, decimals, figure->value,
	       figure->unit);
	if (figure->limit > 0)
		printf(",\"limit\":%.*f,\"ratio\":%.3f", decimals, figure->limit, figure->value / figure->limit);
	if (figure->goal > 0)
		printf(",\"goal\":%.4g", figure->goal);
	printf("}\n");
	fflush(stdout);
}

int64_t bench_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

const char *bench_folder_make(void)
{
	strcpy(scratch, "/dev/shm/driverec-bench-XXXXXX");
	if (mkdtemp(scratch))
		return scratch;
	fprintf(stderr, "driverec bench: cannot make a folder in /dev/shm: %s\n", strerror(errno));
	return NULL;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

void bench_folder_remove(const char *folder)
{
	if (folder)
		nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

drec *bench_ring(const char *folder, const char *name, uint64_t bytes)
{
	struct drec_options options = {
		.run_dir = folder, .job = "bench", .name = name, .ring_bytes = bytes, .no_exit_mark = 1};
	drec *rec = NULL;
	const char *why = "";
	int ret = drec_open_strict(&options, &rec, &why);
	if (ret < 0)
		fprintf(stderr, "driverec bench: %s: %s\n", why, strerror(-ret));
	return rec;
}
