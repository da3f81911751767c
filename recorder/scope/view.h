/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope/view.h: which part of the picture is looked at, and what keys do to that. No I/O.
 */
#ifndef RECORDER_SCOPE_VIEW_H
#define RECORDER_SCOPE_VIEW_H

#include <reducer/tiers.h>

#include "model.h"

enum { SCOPE_ZOOMS_MAX = 64 };

struct scope_view {
	int64_t zoom_ns[SCOPE_ZOOMS_MAX]; /* widths of a column that the tiers can be read in, ascending */
	unsigned n_zooms, zoom;
	bool follow;    /* the right edge is now */
	int64_t end_ns; /* the right edge where not */
	bool paused, help;
	unsigned first_track;
	char selected[INCIDENTS_ID_TEXT]; /* "" = the newest */
};

/* At the finest zoom, following. */
void scope_view_init(struct scope_view *view, const struct reducer_tiers_options *options);
/* The zoom of which `columns` columns show at least `span_ns`, or the coarsest. */
void scope_view_show(struct scope_view *view, int64_t span_ns, unsigned columns);

enum scope_key {
	SCOPE_KEY_NONE,
	SCOPE_KEY_QUIT,
	SCOPE_KEY_LEFT,
	SCOPE_KEY_RIGHT,
	SCOPE_KEY_UP,
	SCOPE_KEY_DOWN,
	SCOPE_KEY_IN,
	SCOPE_KEY_OUT,
	SCOPE_KEY_PAUSE,
	SCOPE_KEY_NOW,
	SCOPE_KEY_NEXT,
	SCOPE_KEY_PREVIOUS,
	SCOPE_KEY_HELP
};

/* The key at the begin of what a terminal sent; takes at least one byte. *ret_used = 0: an unfinished
 * sequence. */
enum scope_key scope_key_of(const char *bytes, size_t count, size_t *ret_used);

/* What the key does, given what is shown now. */
void scope_view_key(struct scope_view *view, enum scope_key key, const struct scope_model *model);

/* The window of `columns` columns that ends at the view's right edge; *ret_from_ns is a multiple of the
 * width. */
int64_t scope_view_width_ns(const struct scope_view *view);
int64_t scope_view_from_ns(const struct scope_view *view, int64_t now_ns, unsigned columns);

#endif
