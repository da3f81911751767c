/* SPDX-License-Identifier: Apache-2.0 */
/* Events a second that one core adds to the live tiers: 16 threads' rows, three deep, in per-thread order. */
#include <reducer/tiers.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 16, DEEP = 3, ROUNDS = 200000, COMMIT_EVERY = 25000 };

static const int64_t base_ns = INT64_C(1700000000) * 1000000000;

/* Of the processor, system time included: others may run on the same machine. */
static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int make_rows(struct reducer_tiers *tiers, uint32_t row[THREADS][DEEP])
{
	int rc = 0;
	for (int t = 0; t < THREADS; t++) {
		char key[16];
		uint32_t track = 0;
		struct reducer_text text = {key, (size_t)snprintf(key, sizeof(key), "thread %d", t)};
		rc = rc ? rc : reducer_tiers_track(tiers, text, text, text, &track);
		for (uint8_t depth = 0; depth < DEEP; depth++)
			rc = rc ? rc
				: reducer_tiers_row(tiers, track, REDUCER_ROW_SPANS, depth, &row[t][depth]);
	}
	return rc;
}

/* Per thread and 25 us: two spans inside one inside another, written as they end. */
static int add_round(struct reducer_tiers *tiers, uint32_t row[THREADS][DEEP], int64_t at)
{
	int rc = 0;
	for (int t = 0; t < THREADS; t++) {
		rc |= reducer_tiers_span(tiers, row[t][2], 0, at + 1000, at + 8000);
		rc |= reducer_tiers_span(tiers, row[t][2], 0, at + 9000, at + 15000);
		rc |= reducer_tiers_span(tiers, row[t][1], 0, at + 500, at + 18000);
		rc |= reducer_tiers_span(tiers, row[t][0], 0, at, at + 24000);
	}
	return rc;
}

int main(void)
{
	struct reducer_tiers_options options;
	struct reducer_tiers *tiers;
	uint32_t row[THREADS][DEEP];
	char folder[] = "/tmp/bench-tiers-XXXXXX", path[64];
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/tiers", folder);
	reducer_tiers_defaults(&options);
	int rc = reducer_tiers_open(path, &options, base_ns, &tiers);
	if (rc < 0)
		return 1;
	rc = make_rows(tiers, row);
	double start = seconds();
	for (int64_t i = 0; i < ROUNDS && rc == 0; i++) {
		rc = add_round(tiers, row, base_ns + i * 25000);
		if (i % (COMMIT_EVERY) == 0)
			rc = rc ? rc : reducer_tiers_commit(tiers, base_ns + i * 25000, NULL, 0, false);
	}
	double taken = seconds() - start;
	printf("{\"bench\":\"tiers-add\",\"value\":%.0f,\"unit\":\"events/s\"}\n",
	       (double)ROUNDS * THREADS * 4 / taken);
	reducer_tiers_free(tiers);
	unlink(path);
	rmdir(folder);
	return rc != 0;
}
