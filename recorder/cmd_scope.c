/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <driverec/identity.h>

#include "clock.h"
#include "command.h"
#include "config.h"
#include "scope/gather.h"
#include "scope/json.h"
#include "scope/layout.h"
#include "scope/terminal.h"
#include "output.h"
#include "store_option.h"

enum { REDRAW_MS = 250, ONCE_TRIES = 100, ONCE_WAIT_MS = 10, JSON_COLUMNS = 200 };

struct scope_options {
	bool once, json, ascii;
	const char *size;
	int64_t span_ns, back_ns;
	const char *incident, *store, *run_dir;
};

static const struct option_row scope_rows[] = {
	OPTION_ROW_FLAG(0, "once", struct scope_options, once,
			"print one frame as text; also where stdout is no terminal"),
	OPTION_ROW(0, "size", "WxH", OPTION_TEXT, struct scope_options, size,
		   "of that frame (default: the terminal's, else 80x24)"),
	OPTION_ROW_FLAG(0, "ascii", struct scope_options, ascii,
			"draw with ASCII alone, as in a locale that is not UTF-8"),
	OPTION_ROW_BOUND(0, "span", "TIME", OPTION_DURATION, struct scope_options, span_ns, 1,
			 INT64_C(100) * 86400 * 1000000000, "show at least that much time (default: 1 min)"),
	OPTION_ROW_BOUND(0, "back", "TIME", OPTION_DURATION, struct scope_options, back_ns, 0,
			 INT64_C(100) * 86400 * 1000000000, "end that long before now"),
	OPTION_ROW(0, "incident", "ID", OPTION_TEXT, struct scope_options, incident,
		   "begin with this incident in the middle"),
	OPTION_ROW(0, "store", "DIR", OPTION_TEXT, struct scope_options, store, "the daemon's store"),
	OPTION_ROW(0, "run-dir", "DIR", OPTION_TEXT, struct scope_options, run_dir,
		   "the daemon's run directory"),
	OPTION_ROW_FLAG('j', "json", struct scope_options, json, "print what one frame shows as numbers"),
	OPTION_ROWS_END,
};

static const struct scope_options scope_defaults = {.span_ns = INT64_C(60000000000)};

struct scope {
	const struct command_call *call;
	const struct scope_options *options;
	struct scope_gather *gather;
	struct scope_view view;
	struct scope_plan plan;
	struct scope_model *model, *next; /* what is shown, and what is gathered */
	struct scope_grid grid;
	unsigned width, height;
	bool ascii;
};

static int parse_size(const struct command_call *call, const char *text, unsigned *ret_width,
		      unsigned *ret_height)
{
	char *end;
	unsigned long width = strtoul(text, &end, 10), height = *end == 'x' ? strtoul(end + 1, &end, 10) : 0;
	if (*end || width < 1 || width > SCOPE_WIDTH_MAX || height < 1 || height > SCOPE_HEIGHT_MAX)
		return command_misuse(call, "--size is \"%s\", which is no size like 100x30 (at most %dx%d)",
				      text, SCOPE_WIDTH_MAX, SCOPE_HEIGHT_MAX);
	*ret_width = (unsigned)width;
	*ret_height = (unsigned)height;
	return COMMAND_DONE;
}

static int open_gather(struct scope *scope)
{
	const struct command_call *call = scope->call;
	char run_dir[256];
	const char *why = "";
	struct config *config = config_load_or_complain(call->config_path);
	if (!config)
		return COMMAND_FAILED;
	int result = drec_run_dir(scope->options->run_dir ? scope->options->run_dir : config->run_dir,
				  run_dir, sizeof(run_dir), &why);
	config_free(config);
	if (result < 0)
		return command_failed(call, "%s: %s", why, strerror(-result));
	char *store = store_option_path(call, scope->options->store);
	if (!store)
		return COMMAND_FAILED;
	int status = COMMAND_DONE;
	result = scope_gather_new(run_dir, store, &scope->gather);
	if (result == -ENOENT) {
		command_failed(call,
			       "%s: no daemon is running, and none has left anything there; start one with "
			       "driverec run",
			       store);
		status = COMMAND_NO_DAEMON;
	} else if (result < 0) {
		status = command_failed(call, "%s: %s", store, strerror(-result));
	}
	free(store);
	return status;
}

static void set_plan(struct scope *scope)
{
	const struct scope_model *model = scope->model;
	bool gathered = model->width_ns > 0;
	scope_layout_plan(scope->width, scope->height, gathered ? model->tracks : UINT_MAX,
			  model->overlay.n_tracks, &scope->plan);
}

/* Gathers for what fits; how much fits may depend on what was gathered. -EAGAIN: what is shown stays. */
static int gather(struct scope *scope)
{
	for (int i = 0; i < 2; i++) {
		const struct scope_room room = {.columns = scope->plan.columns,
						.tracks = scope->options->json ? SCOPE_TRACKS_MAX
									       : scope->plan.tracks,
						.overlay_cells = scope->plan.overlay_cells};
		struct scope_plan planned = scope->plan;
		int result = scope_gather_fill(scope->gather, &scope->view, &room, scope->next);
		if (result < 0)
			return result;
		struct scope_model *shown = scope->model;
		scope->model = scope->next;
		scope->next = shown;
		scope->view.first_track = scope->model->first_track;
		set_plan(scope);
		if (!scope->options->json && scope->model->n_tracks > scope->plan.tracks)
			scope->model->n_tracks = scope->plan.tracks;
		if (scope->plan.tracks <= planned.tracks)
			break;
	}
	return 0;
}

/* A file that is written faster than it can be read lets itself be read a moment later. */
static int gather_patiently(struct scope *scope)
{
	const struct timespec wait = {.tv_nsec = ONCE_WAIT_MS * 1000000L};
	int result = gather(scope);
	for (int i = 0; i < ONCE_TRIES && result == -EAGAIN; i++) {
		nanosleep(&wait, NULL);
		scope_gather_poll(scope->gather, clock_mono_ns());
		result = gather(scope);
	}
	return result < 0
		       ? command_failed(scope->call, "the macro view cannot be read: %s", strerror(-result))
		       : COMMAND_DONE;
}

/* The window that the options ask for, on the model of a first look. */
static int set_view(struct scope *scope)
{
	const struct scope_options *options = scope->options;
	struct reducer_tiers_options tiers;
	scope_gather_tiers(scope->gather, &tiers);
	scope_view_init(&scope->view, &tiers);
	set_plan(scope);
	scope_view_show(&scope->view, options->span_ns, scope->plan.columns);
	int status = gather_patiently(scope);
	if (status != COMMAND_DONE)
		return status;
	if (options->back_ns > 0) {
		scope->view.follow = false;
		scope->view.end_ns = scope->model->picture_ns > options->back_ns
					     ? scope->model->picture_ns - options->back_ns
					     : 1;
	}
	if (!options->incident)
		return options->back_ns > 0 ? gather_patiently(scope) : COMMAND_DONE;
	size_t digits = strlen(options->incident);
	for (unsigned i = 0; i < scope->model->n_incidents; i++) {
		if (digits < 4 || strncmp(scope->model->incident[i].id, options->incident, digits) != 0)
			continue;
		scope->model->selected = i ? i - 1 : scope->model->n_incidents - 1;
		scope_view_key(&scope->view, SCOPE_KEY_NEXT, scope->model);
		return gather_patiently(scope);
	}
	return command_failed(scope->call, "%s: no such incident (driverec incidents)", options->incident);
}

static int print_once(struct scope *scope)
{
	if (scope->options->json) {
		cJSON *json = scope_json(scope->model);
		if (!json || output_json_print(json, stdout) < 0)
			return command_failed(scope->call, "out of memory");
		return COMMAND_DONE;
	}
	scope_layout_draw(scope->model, &scope->view, &scope->plan, scope->ascii, &scope->grid);
	for (unsigned row = 0; row < scope->grid.height; row++) {
		char line[SCOPE_LINE_BYTES_MAX];
		scope_grid_line(&scope->grid, row, false, line);
		puts(line);
	}
	return COMMAND_DONE;
}

static int draw(struct scope *scope)
{
	scope_layout_draw(scope->model, &scope->view, &scope->plan, scope->ascii, &scope->grid);
	return scope_terminal_show(&scope->grid);
}

/* True if it is to be drawn anew. */
static bool take_event(struct scope *scope, enum scope_terminal_event event, enum scope_key key)
{
	if (event == SCOPE_TERMINAL_SIZE) {
		scope_terminal_size(&scope->width, &scope->height);
		set_plan(scope);
		return true;
	}
	if (event == SCOPE_TERMINAL_KEY)
		scope_view_key(&scope->view, key, scope->model);
	return event == SCOPE_TERMINAL_KEY;
}

/* Until q or a signal, which is returned; 0 = q. At most a frame every REDRAW_MS, however many keys. */
static int live(struct scope *scope)
{
	int64_t drawn_mono_ns = 0;
	bool due = true;
	for (;;) {
		enum scope_key key;
		int signal_number;
		int64_t mono_ns = clock_mono_ns();
		int64_t left_ms = REDRAW_MS - (mono_ns - drawn_mono_ns) / 1000000;
		if (left_ms <= 0) {
			due |= !scope->view.paused && scope_gather_poll(scope->gather, mono_ns) == 1;
			if (due && gather(scope) == 0) {
				due = false;
				int result = draw(scope);
				if (result < 0 && result != -EINTR)
					return 0;
			}
			drawn_mono_ns = mono_ns;
			left_ms = REDRAW_MS;
		}
		enum scope_terminal_event event = scope_terminal_wait((int)left_ms, &key, &signal_number);
		if (event == SCOPE_TERMINAL_END)
			return signal_number;
		if (event == SCOPE_TERMINAL_KEY && key == SCOPE_KEY_QUIT)
			return 0;
		due |= take_event(scope, event, key);
	}
}

static int run_live(struct scope *scope)
{
	int result = scope_terminal_open(scope_terminal_color());
	int signal_number = result < 0 ? 0 : live(scope);
	scope_terminal_close();
	if (result < 0)
		return command_failed(scope->call, "the terminal cannot be used: %s", strerror(-result));
	if (signal_number) {
		/* Whoever waits for us is to see what ended us. */
		signal(signal_number, SIG_DFL);
		raise(signal_number);
	}
	return COMMAND_DONE;
}

static int run(const struct command_call *call)
{
	const struct scope_options *options = call->options;
	struct scope *scope = calloc(1, sizeof(*scope));
	int status = COMMAND_DONE;
	bool once = options->once || options->json || options->size || !scope_terminal_there();
	if (scope) {
		scope->call = call;
		scope->options = options;
		scope->model = calloc(1, sizeof(*scope->model));
		scope->next = calloc(1, sizeof(*scope->next));
	}
	if (!scope || !scope->model || !scope->next)
		status = command_failed(call, "out of memory");
	if (status == COMMAND_DONE) {
		scope->ascii = options->ascii || !scope_terminal_utf8();
		scope_terminal_size(&scope->width, &scope->height);
		if (options->json)
			scope->width = JSON_COLUMNS;
		if (options->size)
			status = parse_size(call, options->size, &scope->width, &scope->height);
	}
	if (status == COMMAND_DONE)
		status = open_gather(scope);
	if (status == COMMAND_DONE)
		status = set_view(scope);
	if (status == COMMAND_DONE)
		status = once ? print_once(scope) : run_live(scope);
	if (scope) {
		scope_gather_free(scope->gather);
		free(scope->model);
		free(scope->next);
	}
	free(scope);
	return status;
}

const struct command command_scope = {
	.name = "scope",
	.summary = "the live picture in the terminal",
	.operands = "",
	.details = "Step time under its limits, busy share a track, incidents on the time axis, and the last "
		   "bad step beneath "
		   "the last good one. Works over ssh; q quits, ? shows the other keys.\n"
		   "Without a daemon it draws what the last one left, and says that nothing is live; where "
		   "there is neither "
		   "the exit status is 4.",
	.examples = "driverec scope\ndriverec scope --once --size 120x40\ndriverec scope --span 1d --json",
	.options = scope_rows,
	.options_bytes = sizeof(struct scope_options),
	.defaults = &scope_defaults,
	.operands_max = 0,
	.run = run,
};
