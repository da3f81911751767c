/* SPDX-License-Identifier: Apache-2.0 */
/* The bad step beneath the good one: both from their start on, in the same scale. */
#include <stdio.h>
#include <string.h>

#include "layout.h"
#include "output.h"

enum { NAME_COLUMNS = 5 };

static void step_text(const struct scope_overlay_step *step, char *ret, size_t room)
{
	char number[OUTPUT_TEXT_MAX], length[OUTPUT_TEXT_MAX];
	snprintf(ret, room, "step %s, %s%s", output_signed(number, step->number),
		 output_duration(length, step->length_ns), step->unfinished ? " and still open" : "");
}

static void draw_title(const struct scope_model *model, unsigned row, struct scope_grid *grid)
{
	const struct scope_overlay *overlay = &model->overlay;
	const struct scope_incident *incident = &model->incident[model->selected];
	char text[512], good[160], bad[160], cell[OUTPUT_TEXT_MAX];
	step_text(&overlay->step[SCOPE_BAD_STEP], bad, sizeof(bad));
	step_text(&overlay->step[SCOPE_GOOD_STEP], good, sizeof(good));
	snprintf(text, sizeof(text), "%.*s: bad %s; good %s; a column is %s%s", (int)incident->digits,
		 overlay->id, bad,
		 overlay->step[SCOPE_GOOD_STEP].there ? good : "step: none before it in the window",
		 output_duration(cell, overlay->cell_ns), overlay->cut ? ", cut" : "");
	scope_grid_text(grid, row, 0, grid->width, SCOPE_BOLD, text);
}

static void draw_step(const struct scope_overlay *overlay, const struct scope_overlay_track *track, int which,
		      const struct scope_plan *plan, unsigned row, struct scope_grid *grid)
{
	enum scope_style style = which == SCOPE_BAD_STEP ? SCOPE_CRITICAL : SCOPE_GOOD;
	unsigned column = plan->gutter + NAME_COLUMNS, end = column + overlay->cells;
	char text[SCOPE_TEXT_MAX + OUTPUT_TEXT_MAX], length[OUTPUT_TEXT_MAX];
	scope_grid_text(grid, row, plan->gutter, NAME_COLUMNS, style,
			which == SCOPE_BAD_STEP ? "bad" : "good");
	for (unsigned i = 0; i < overlay->cells; i++)
		scope_layout_share(grid, row, column + i, style, track->busy[which][i]);
	if (which == SCOPE_BAD_STEP && overlay->cut)
		scope_grid_glyph(grid, row, end - 1, style, 0x25b6, '>');
	if (track->grew[0] && end + 2 < plan->width) {
		output_duration(length, track->grew_ns[which]);
		/* The time is what must not be cut. */
		unsigned room = plan->width - end - 1, takes = (unsigned)strlen(length);
		unsigned used = room > takes + 3 ? scope_grid_text(grid, row, end + 1, room - takes - 1,
								   SCOPE_PLAIN, track->grew) +
							   1
						 : 0;
		snprintf(text, sizeof(text), "%s", length);
		scope_grid_text(grid, row, end + 1 + used, room - used, SCOPE_PLAIN, text);
	}
}

unsigned scope_layout_overlay(const struct scope_model *model, const struct scope_plan *plan, unsigned row,
			      struct scope_grid *grid)
{
	const struct scope_overlay *overlay = &model->overlay;
	if (plan->overlay_tracks == 0 || model->n_incidents == 0)
		return row;
	draw_title(model, row++, grid);
	for (unsigned i = 0; i < plan->overlay_tracks && i < overlay->n_tracks; i++) {
		const struct scope_overlay_track *track = &overlay->track[i];
		scope_grid_text(grid, row, 0, plan->gutter - 1, SCOPE_PLAIN, track->label);
		draw_step(overlay, track, SCOPE_GOOD_STEP, plan, row++, grid);
		draw_step(overlay, track, SCOPE_BAD_STEP, plan, row++, grid);
	}
	return row;
}
