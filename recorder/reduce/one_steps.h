/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce/one_steps.h: the steps of reducing one file, for one.c, which takes them in order.
 *
 *   one_input.c    open it, look what it is
 *   one_place.c    where it goes, and alone with it
 *   one_work.c     read, lay out, write beside
 *   one_verify.c   hold what was written against the input
 *   one_finish.c   make it durable, put it in place
 *
 * Each returns 0 to go on, ONE_STOP to end with what is in the result, or ONE_START_OVER.
 */
#ifndef RECORDER_REDUCE_ONE_STEPS_H
#define RECORDER_REDUCE_ONE_STEPS_H

#include <sys/stat.h>

#include "reduce/holder.h"
#include "reduce/look.h"
#include "reduce/one.h"
#include "reduce/place.h"

/* Somebody else replaced the file between our look at it and our lock: once more from the start. */
enum { ONE_STOP = 1, ONE_START_OVER = 2 };

struct one {
	const struct reduce_settings *settings;
	const struct reduce_job *job;
	struct reduce_result *result;
	void (*progress)(void *context);
	void *context;
	int fd; /* of the input */
	bool spooled;
	struct stat st;
	struct holder_stamp stamp;
	char path[REDUCE_PATH_MAX]; /* what is read: the input, links resolved where it is replaced */
	struct reduce_look look;
	bool as_it_is; /* to be copied */
	bool pack_well;
	struct reduce_place place;
	int out_fd;                                       /* the place's, or an unnamed file */
	char out_path[REDUCE_PATH_MAX + REDUCE_NAME_MAX]; /* the same to be opened again */
	struct reducer_reduce_options options;
	struct reducer_reduce *reduce;
};

/* ---- one.c ---- */

/* The outcome and why, in one line for people. Returns ONE_STOP. */
int one_end(struct one *one, enum reduce_outcome outcome, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* What a file comes to that is no trace, or not to be touched: no failure if nobody asked for this very one. */
enum reduce_outcome one_let_be(const struct one *one);
/* Something to know besides; more than one are put in a row. */
void one_note(struct one *one, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* So much of the work is done: REDUCE_VERIFYING after it. For reducer_reduce_options.progress. */
int one_advance(void *context, unsigned permille);

/* ---- one_input.c ---- */

int one_open_input(struct one *one);
int one_look(struct one *one);

/* ---- one_place.c ---- */

int one_choose_output(struct one *one);
bool one_to_stdout(const struct one *one);
/* In place: nobody has written it for a while, and nobody has it open to write. */
int one_check_quiet(struct one *one);
int one_open_place(struct one *one);
/* Ends with why its place could not be had. */
int one_say_not_opened(struct one *one, int error, const struct reduce_lock_owner *owner);

/* ---- one_work.c ---- */

/*
 * A window that counts from the end, or in UTC, can be told only of a trace that has been read: once more,
 * then.
 */
int one_read_for_window(struct one *one);
int one_read_input(struct one *one);
int one_plan(struct one *one);
int one_write_out(struct one *one);
/* M8: what is no smaller than its input is the input. */
int one_judge_size(struct one *one);
/* Ends with why it could not be written. */
int one_say_not_written(struct one *one, int error);

/* ---- one_verify.c ---- */

int one_verify(struct one *one);

/* ---- one_finish.c ---- */

int one_make_durable(struct one *one);
int one_put_in_place(struct one *one);

#endif
