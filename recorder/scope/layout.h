/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope/layout.h: from the model and a size to a grid of cells. Pure: the same input, the same cells.
 *
 *   header      job, step, who is alive, whether this is live
 *   step time   waveform, with the limits that the detectors judge by
 *   time axis   with the incidents
 *   tracks      busy share a column
 *   two steps   the bad one beneath the good one, a pair of rows a track
 *   footer      keys
 */
#ifndef RECORDER_SCOPE_LAYOUT_H
#define RECORDER_SCOPE_LAYOUT_H

#include "model.h"
#include "view.h"

enum { SCOPE_WIDTH_MIN = 40, SCOPE_HEIGHT_MIN = 10 };

/* How a screen of some size is divided. */
struct scope_plan {
	unsigned width, height;
	bool too_small;
	unsigned gutter;       /* columns of labels */
	unsigned columns;      /* of time */
	unsigned wave, tracks; /* rows */
	bool sentence;
	unsigned overlay_tracks; /* a pair of rows each, beneath a title where there are any */
	unsigned overlay_cells;
};

/* `tracks` and `overlay_tracks`: as many as there are to be shown; UINT_MAX while that is not known. */
void scope_layout_plan(unsigned width, unsigned height, unsigned tracks, unsigned overlay_tracks,
		       struct scope_plan *ret_plan);

/* `ascii`: for terminals that show nothing else. */
void scope_layout_draw(const struct scope_model *model, const struct scope_view *view,
		       const struct scope_plan *plan, bool ascii, struct scope_grid *grid);

/* layout_overlay.c: at `row`; returns the row after it. */
unsigned scope_layout_overlay(const struct scope_model *model, const struct scope_plan *plan, unsigned row,
			      struct scope_grid *grid);
/* A busy share as one cell: eighths of a block. */
void scope_layout_share(struct scope_grid *grid, unsigned row, unsigned column, enum scope_style style,
			uint16_t permille);

#endif
