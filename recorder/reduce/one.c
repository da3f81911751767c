/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the steps of reducing a file in order. Whatever a step leaves behind (descriptors, the temporary
 * file, the lock) is undone in one place.
 */
#include "reduce/one.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "reduce/one_steps.h"

enum { STARTS_MAX = 3 };

int one_end(struct one *one, enum reduce_outcome outcome, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	vsnprintf(one->result->why, sizeof(one->result->why), format, values);
	va_end(values);
	one->result->outcome = outcome;
	return ONE_STOP;
}

enum reduce_outcome one_let_be(const struct one *one)
{
	return one->job->from_folder ? REDUCE_SKIPPED : REDUCE_FAILED;
}

void one_note(struct one *one, const char *format, ...)
{
	size_t used = strlen(one->result->note);
	char *at = one->result->note + used;
	size_t room = sizeof(one->result->note) - used;
	va_list values;

	if (used && room > 3) {
		strcpy(at, "; ");
		at += 2;
		room -= 2;
	}
	va_start(values, format);
	vsnprintf(at, room, format, values);
	va_end(values);
}

int one_advance(void *context, unsigned permille)
{
	struct one *one = context;

	atomic_store_explicit(&one->result->permille, permille, memory_order_relaxed);
	if (one->progress)
		one->progress(one->context);
	return 0;
}

static void clean_up(struct one *one)
{
	if (one->place.fd >= 0)
		reduce_place_close(&one->place);
	else if (one->out_fd >= 0)
		close(one->out_fd);
	reducer_reduce_free(one->reduce);
	if (one->fd >= 0)
		close(one->fd);
}

static int run(struct one *one)
{
	static int (*const steps[])(struct one * one) = {
		one_open_input,      one_look,       one_choose_output, one_check_quiet, one_open_place,
		one_read_for_window, one_read_input, one_plan,          one_write_out,   one_judge_size,
		one_make_durable,    one_verify,     one_put_in_place,
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
		r = steps[i](one);
	clean_up(one);
	return r;
}

void reduce_one(const struct reduce_settings *settings, const struct reduce_job *job,
		struct reduce_result *result, void (*progress)(void *context), void *context)
{
	int r = ONE_START_OVER;

	for (int i = 0; r == ONE_START_OVER && i < STARTS_MAX; i++) {
		struct one one = {.settings = settings,
				  .job = job,
				  .result = result,
				  .fd = -1,
				  .out_fd = -1,
				  .progress = progress,
				  .context = context,
				  .options = settings->reduce};

		one.place = (struct reduce_place)REDUCE_PLACE_NONE;
		one.options.progress = one_advance;
		one.options.context = &one;
		*result = (struct reduce_result){0};
		r = run(&one);
		if (r == ONE_START_OVER)
			one_end(&one, REDUCE_FAILED, "changes again and again: somebody else is writing it");
	}
	if (r == 0 && result->outcome == REDUCE_WAITING)
		result->outcome = REDUCE_DONE;
}
