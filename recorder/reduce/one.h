/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce/one.h: all that `driverec reduce` does with one file.
 *
 *     look at it -> lock the place -> read, lay out, write beside -> sync -> verify what is on the disk ->
 * rename
 *
 * What comes of it is a struct without pointers: with --jobs each file is done in a process of its own, which
 * leaves it in shared memory.
 */
#ifndef RECORDER_REDUCE_ONE_H
#define RECORDER_REDUCE_ONE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <reducer/reduce.h>
#include <reducer/verify.h>

#include "reduce/window.h"

enum { REDUCE_PATH_MAX = 4096, REDUCE_WHY_MAX = 700, REDUCE_VERIFYING = 1001 };

/* For all files. */
struct reduce_settings {
	struct reducer_reduce_options reduce; /* without window, progress */
	bool has_window;
	struct reduce_window window;
	uint64_t target_bytes;      /* 0: none */
	enum reducer_format format; /* NONE: by the output's name, else the input's */
	const char *output;         /* a file, "-", or NULL */
	const char *output_folder;  /* or NULL */
	bool in_place, dry_run, force, break_lock, again;
	bool verify; /* also independently of what reduces; in place that is always done */
	bool no_verify;
	int gzip_level; /* 1 .. 9, of outputs that are packed; 0: by their size */
	int64_t settle_ns;
};

struct reduce_job {
	const char *path; /* "-": standard input */
	size_t relative;  /* where the part begins that is kept below an output folder */
	bool from_folder; /* found, not named: what is no trace is passed over */
};

enum reduce_outcome {
	REDUCE_WAITING = 0,
	REDUCE_DONE,
	REDUCE_COPIED,  /* M8: the output is the input */
	REDUCE_LEFT,    /* M8 in place: nothing was touched */
	REDUCE_WOULD,   /* --dry-run */
	REDUCE_SKIPPED, /* `why` */
	REDUCE_FAILED,  /* `why` */
	REDUCE_DIFFERS  /* verification found differences; nothing was put in place */
};

struct reduce_result {
	_Atomic unsigned permille; /* of the work; REDUCE_VERIFYING after it */
	enum reduce_outcome outcome;
	char why[REDUCE_WHY_MAX];  /* without the path in front */
	char note[REDUCE_WHY_MAX]; /* "" or something to know */
	char output[REDUCE_PATH_MAX];
	enum reducer_format format; /* of the output */
	uint64_t input_bytes, output_bytes;
	bool has_report, has_window;
	bool verified, verified_independently; /* the latter by reducer_verify() */
	int64_t window_from_ps, window_to_ps;
	struct reducer_reduce_report report;
	struct reducer_verify_report verify;
};

/* `progress` is called in between, may be NULL. */
void reduce_one(const struct reduce_settings *settings, const struct reduce_job *job,
		struct reduce_result *result, void (*progress)(void *context), void *context);

#endif
