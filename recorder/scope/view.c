/* SPDX-License-Identifier: Apache-2.0 */
#include "view.h"

#include <stdio.h>
#include <string.h>

static const int64_t MS = 1000000, SECOND = 1000000000, MINUTE = 60000000000, HOUR = 3600000000000;

static bool readable(const struct reducer_tiers_options *options, int64_t width_ns)
{
	for (unsigned i = 0; i < options->tiers; i++)
		if (width_ns % options->tier[i].width_ns == 0)
			return true;
	return false;
}

static void add_zoom(struct scope_view *view, int64_t width_ns)
{
	unsigned at = view->n_zooms;
	for (unsigned i = 0; i < view->n_zooms; i++)
		if (view->zoom_ns[i] == width_ns)
			return;
	if (at == SCOPE_ZOOMS_MAX)
		return;
	for (; at > 0 && view->zoom_ns[at - 1] > width_ns; at--)
		view->zoom_ns[at] = view->zoom_ns[at - 1];
	view->zoom_ns[at] = width_ns;
	view->n_zooms++;
}

/* The widths that people know, as far as the tiers can be read in them, and the tiers' own. */
void scope_view_init(struct scope_view *view, const struct reducer_tiers_options *options)
{
	const int64_t nice[] = {MS,          2 * MS,      5 * MS,   10 * MS,    20 * MS,    50 * MS,
				100 * MS,    200 * MS,    500 * MS, SECOND,     2 * SECOND, 5 * SECOND,
				10 * SECOND, 30 * SECOND, MINUTE,   2 * MINUTE, 5 * MINUTE, 10 * MINUTE,
				30 * MINUTE, HOUR,        2 * HOUR, 6 * HOUR,   12 * HOUR,  24 * HOUR};
	*view = (struct scope_view){.follow = true};
	for (unsigned i = 0; i < options->tiers; i++)
		add_zoom(view, options->tier[i].width_ns);
	for (size_t i = 0; i < sizeof(nice) / sizeof(nice[0]); i++)
		if (readable(options, nice[i]))
			add_zoom(view, nice[i]);
}

void scope_view_show(struct scope_view *view, int64_t span_ns, unsigned columns)
{
	view->zoom = 0;
	while (view->zoom + 1 < view->n_zooms &&
	       view->zoom_ns[view->zoom] < span_ns / (columns ? columns : 1))
		view->zoom++;
}

int64_t scope_view_width_ns(const struct scope_view *view)
{
	return view->zoom_ns[view->zoom];
}

int64_t scope_view_from_ns(const struct scope_view *view, int64_t now_ns, unsigned columns)
{
	int64_t width = scope_view_width_ns(view);
	int64_t end = view->follow ? now_ns : view->end_ns;
	int64_t last = end > 0 ? (end - 1) / width : 0;
	int64_t first = last - (int64_t)columns + 1;
	return first > 0 ? first * width : 0;
}

enum scope_key scope_key_of(const char *bytes, size_t count, size_t *ret_used)
{
	static const struct {
		const char *bytes;
		enum scope_key key;
	} keys[] = {
		{"q", SCOPE_KEY_QUIT},       {"Q", SCOPE_KEY_QUIT},      {"h", SCOPE_KEY_LEFT},
		{"l", SCOPE_KEY_RIGHT},      {"k", SCOPE_KEY_UP},        {"j", SCOPE_KEY_DOWN},
		{"+", SCOPE_KEY_IN},         {"=", SCOPE_KEY_IN},        {"-", SCOPE_KEY_OUT},
		{"_", SCOPE_KEY_OUT},        {" ", SCOPE_KEY_PAUSE},     {"n", SCOPE_KEY_NOW},
		{"\t", SCOPE_KEY_NEXT},      {"?", SCOPE_KEY_HELP},      {"\x1b[Z", SCOPE_KEY_PREVIOUS},
		{"\x1b[A", SCOPE_KEY_UP},    {"\x1b[B", SCOPE_KEY_DOWN}, {"\x1b[C", SCOPE_KEY_RIGHT},
		{"\x1b[D", SCOPE_KEY_LEFT},  {"\x1bOA", SCOPE_KEY_UP},   {"\x1bOB", SCOPE_KEY_DOWN},
		{"\x1bOC", SCOPE_KEY_RIGHT}, {"\x1bOD", SCOPE_KEY_LEFT}, {"\x1b[F", SCOPE_KEY_NOW},
		{"\x1b[4~", SCOPE_KEY_NOW},  {"\x1bOF", SCOPE_KEY_NOW},
	};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		size_t length = strlen(keys[i].bytes);
		if (length <= count && memcmp(keys[i].bytes, bytes, length) == 0) {
			*ret_used = length;
			return keys[i].key;
		}
	}
	*ret_used = 1;
	if (bytes[0] != 0x1b)
		return SCOPE_KEY_NONE;
	/* A sequence that means nothing here is taken whole, so that its rest is no key. */
	size_t at = 1;
	if (at < count && (bytes[at] == '[' || bytes[at] == 'O'))
		at++;
	while (at < count && at < 16 && !(bytes[at] >= 0x40 && bytes[at] <= 0x7e))
		at++;
	*ret_used = at < count ? at + 1 : at == 16 || count == 1 ? count : 0;
	return SCOPE_KEY_NONE;
}

static int64_t shown_end_ns(const struct scope_model *model)
{
	return model->from_ns + (int64_t)model->columns * model->width_ns;
}

/* By a quarter of what is shown; back at now the view follows again. */
static void scroll(struct scope_view *view, const struct scope_model *model, int direction)
{
	int64_t part = (int64_t)(model->columns / 4 ? model->columns / 4 : 1) * model->width_ns;
	int64_t end = shown_end_ns(model) + direction * part;
	int64_t least = (int64_t)model->columns * model->width_ns;
	view->end_ns = end > least ? end : least;
	view->follow = !view->paused && view->end_ns >= model->picture_ns;
}

static void zoom(struct scope_view *view, const struct scope_model *model, int direction)
{
	if ((direction < 0 && view->zoom == 0) || (direction > 0 && view->zoom + 1 >= view->n_zooms))
		return;
	int64_t middle = model->from_ns + (int64_t)(model->columns / 2) * model->width_ns;
	view->zoom = direction < 0 ? view->zoom - 1 : view->zoom + 1;
	if (view->follow)
		return;
	view->end_ns = middle + (int64_t)(model->columns - model->columns / 2) * scope_view_width_ns(view);
	if (view->end_ns > model->picture_ns) {
		view->end_ns = model->picture_ns;
		view->follow = !view->paused;
	}
}

/* To the incident after the selected one, with its t0 in the middle; from the last one back to the first. */
static void select_incident(struct scope_view *view, const struct scope_model *model, int direction)
{
	unsigned count = model->n_incidents;
	if (count == 0)
		return;
	unsigned next = model->selected >= count
				? count - 1
				: (model->selected + (direction > 0 ? 1 : count - 1)) % count;
	const struct scope_incident *incident = &model->incident[next];
	int64_t half = (int64_t)(model->columns - model->columns / 2) * model->width_ns;
	memcpy(view->selected, incident->id, sizeof(view->selected));
	view->follow = false;
	view->end_ns = incident->t0_ns + half;
}

static void toggle_pause(struct scope_view *view, const struct scope_model *model)
{
	view->paused = !view->paused;
	if (view->paused && view->follow) {
		view->follow = false;
		view->end_ns = shown_end_ns(model);
	} else if (!view->paused && view->end_ns >= model->picture_ns) {
		view->follow = true;
	}
}

void scope_view_key(struct scope_view *view, enum scope_key key, const struct scope_model *model)
{
	switch (key) {
	case SCOPE_KEY_LEFT:
	case SCOPE_KEY_RIGHT:
		scroll(view, model, key == SCOPE_KEY_RIGHT ? 1 : -1);
		break;
	case SCOPE_KEY_IN:
	case SCOPE_KEY_OUT:
		zoom(view, model, key == SCOPE_KEY_OUT ? 1 : -1);
		break;
	case SCOPE_KEY_UP:
		view->first_track -= view->first_track > 0;
		break;
	case SCOPE_KEY_DOWN:
		view->first_track += model->first_track + model->n_tracks < model->tracks;
		break;
	case SCOPE_KEY_NEXT:
	case SCOPE_KEY_PREVIOUS:
		select_incident(view, model, key == SCOPE_KEY_NEXT ? 1 : -1);
		break;
	case SCOPE_KEY_PAUSE:
		toggle_pause(view, model);
		break;
	case SCOPE_KEY_NOW:
		view->follow = true;
		view->paused = false;
		break;
	case SCOPE_KEY_HELP:
		view->help = !view->help;
		break;
	case SCOPE_KEY_NONE:
	case SCOPE_KEY_QUIT:
		break;
	}
}
