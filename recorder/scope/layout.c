/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include <stdio.h>
#include <string.h>

#include "output.h"

enum { SHARE_COLUMNS = 7, WAVE_MIN = 2, WAVE_MAX = 8, WAVE_ROOMY = 14, EIGHTHS = 8, LINE_MAX_BYTES = 512 };

static const uint32_t blocks[] = {0x2581, 0x2582, 0x2583, 0x2584, 0x2585, 0x2586, 0x2587, 0x2588};

void scope_layout_plan(unsigned width, unsigned height, unsigned tracks, unsigned overlay_tracks,
		       struct scope_plan *ret_plan)
{
	struct scope_plan plan = {.width = width < SCOPE_WIDTH_MAX ? width : SCOPE_WIDTH_MAX,
				  .height = height < SCOPE_HEIGHT_MAX ? height : SCOPE_HEIGHT_MAX};
	plan.too_small = plan.width < SCOPE_WIDTH_MIN || plan.height < SCOPE_HEIGHT_MIN;
	plan.gutter = plan.width >= 100 ? 22 : plan.width >= 60 ? 16 : 10;
	plan.columns =
		plan.width > plan.gutter + SHARE_COLUMNS ? plan.width - plan.gutter - SHARE_COLUMNS : 1;
	plan.overlay_cells = plan.width >= 80 ? plan.columns - 20 : plan.columns - (plan.columns > 5 ? 5 : 0);
	/* Header and footer; the title of the waveform, the axis and its times. */
	unsigned rest = plan.height > 5 ? plan.height - 5 : 0;
	plan.wave = rest / 3 < WAVE_MIN ? WAVE_MIN : rest / 3 > WAVE_MAX ? WAVE_MAX : rest / 3;
	rest = rest > plan.wave ? rest - plan.wave : 0;
	plan.sentence = rest >= 6;
	rest -= plan.sentence;
	tracks = tracks > 0 ? tracks : 1;
	if (overlay_tracks > 0 && rest >= 7) {
		/* Half of what is left, or more where there are few tracks. */
		unsigned spare = tracks < rest - 1 ? (rest - 1 - tracks) / 2 : 0;
		unsigned pairs = (rest - 3) / 4 > spare ? (rest - 3) / 4 : spare;
		plan.overlay_tracks = overlay_tracks < pairs ? overlay_tracks : pairs;
		rest -= 1 + 2 * plan.overlay_tracks;
	}
	plan.tracks = rest < tracks ? rest : tracks;
	rest -= plan.tracks;
	plan.wave += rest < WAVE_ROOMY - WAVE_MAX ? rest : WAVE_ROOMY - WAVE_MAX;
	*ret_plan = plan;
}

/* Puts a text so that it ends before `end`. */
static void text_right(struct scope_grid *grid, unsigned row, unsigned end, enum scope_style style,
		       const char *text)
{
	unsigned columns = scope_grid_columns(grid, text);
	if (columns <= end)
		scope_grid_text(grid, row, end - columns, columns, style, text);
}

static void draw_header(const struct scope_model *model, const struct scope_view *view,
			struct scope_grid *grid)
{
	char text[LINE_MAX_BYTES], step[OUTPUT_TEXT_MAX], length[OUTPUT_TEXT_MAX], state[SCOPE_TEXT_MAX + 16];
	size_t used = (size_t)snprintf(text, sizeof(text), grid->width < 80 ? "scope" : "driverec scope");
	if (model->job[0])
		used += (size_t)snprintf(text + used, sizeof(text) - used, "  job %.64s", model->job);
	if (model->step >= 0)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "  step %s",
					 output_count(step, (uint64_t)model->step));
	if (model->median_ns > 0)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "  %s/step",
					 output_duration(length, model->median_ns));
	if (model->live)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "  %u/%u alive", model->alive,
					 model->rings);
	used += (size_t)snprintf(text + used, sizeof(text) - used, "  incidents %u", model->n_incidents);
	if (model->incidents_open > 0)
		snprintf(text + used, sizeof(text) - used, " (%u being recorded)", model->incidents_open);
	if (view->paused)
		snprintf(state, sizeof(state), "paused");
	else if (model->live)
		snprintf(state, sizeof(state), "%s", view->follow ? "live" : "live, scrolled");
	else
		snprintf(state, sizeof(state), "not live: %s", model->not_live);
	unsigned takes = scope_grid_columns(grid, state);
	takes = takes < grid->width / 2 ? takes : grid->width / 2;
	scope_grid_text(grid, 0, 0, grid->width - takes - 1, SCOPE_BOLD, text);
	scope_grid_text(grid, 0, grid->width - takes, takes,
			model->live && !view->paused ? SCOPE_GOOD : SCOPE_WARN, state);
}

static void draw_wave_title(const struct scope_model *model, unsigned row, struct scope_grid *grid)
{
	char text[LINE_MAX_BYTES], a[OUTPUT_TEXT_MAX], b[OUTPUT_TEXT_MAX], c[OUTPUT_TEXT_MAX];
	const struct scope_open_step *open = &model->open;
	if (open->there && open->deadline_ns > 0 && open->for_ns > open->deadline_ns) {
		int used = snprintf(text, sizeof(text), "step %s has been open for %s",
				    output_signed(a, open->number), output_duration(b, open->for_ns));
		if (open->inside[0])
			snprintf(text + used, sizeof(text) - (size_t)used, ", inside \"%s\"", open->inside);
		scope_grid_text(grid, row, 0, grid->width, SCOPE_CRITICAL, text);
		return;
	}
	if (!model->has_picture)
		snprintf(text, sizeof(text), "no macro view: %s", model->no_picture);
	else if (!model->has_steps)
		snprintf(text, sizeof(text), "step time  no steps have been recorded");
	else if (model->warn_ns > 0 && model->critical_ns <= model->warn_ns)
		snprintf(text, sizeof(text), "step time  usually %s  critical from %s",
			 output_duration(a, model->median_ns), output_duration(c, model->critical_ns));
	else if (model->warn_ns > 0)
		snprintf(text, sizeof(text), "step time  usually %s  warn from %s  critical from %s",
			 output_duration(a, model->median_ns), output_duration(b, model->warn_ns),
			 output_duration(c, model->critical_ns));
	else
		snprintf(text, sizeof(text), "step time%s",
			 model->live ? "  limits are not learned yet" : "");
	scope_grid_text(grid, row, 0, grid->width, SCOPE_PLAIN, text);
}

/* What the waveform's height stands for: all that is shown, but a stall does not flatten the rest. */
static int64_t top_ns(const struct scope_model *model)
{
	int64_t longest = 0, warn = 0;
	for (unsigned i = 0; i < model->columns; i++) {
		longest = model->steps[i].longest_ns > longest ? model->steps[i].longest_ns : longest;
		warn = model->steps[i].warn_ns > warn ? model->steps[i].warn_ns : warn;
	}
	if (warn > 0 && longest / 3 > warn)
		longest = 3 * warn;
	longest = longest > warn ? longest : warn;
	return longest > INT64_MAX / 2 ? longest : longest + longest / 8 + 1;
}

static unsigned height_of(int64_t ns, int64_t top, unsigned rows)
{
	return (unsigned)((__int128)ns * rows * EIGHTHS / top);
}

static enum scope_style step_style(const struct scope_model *model, const struct scope_step_column *step)
{
	if (step->warn_ns == 0 || step->longest_ns <= step->warn_ns)
		return step->open ? SCOPE_DIM : SCOPE_GOOD;
	return model->critical_ns > 0 && step->longest_ns <= model->critical_ns ? SCOPE_WARN : SCOPE_CRITICAL;
}

static void draw_bar(struct scope_grid *grid, unsigned row, unsigned rows, unsigned column,
		     enum scope_style style, unsigned height)
{
	bool beyond = height > rows * EIGHTHS;
	for (unsigned i = 0; i < rows; i++) {
		unsigned at = row + rows - 1 - i, below = i * EIGHTHS;
		if (height <= below && !(i == 0 && height == 0))
			return;
		unsigned part = height - below < EIGHTHS ? height - below : EIGHTHS;
		if (beyond && i + 1 == rows)
			scope_grid_glyph(grid, at, column, style, 0x25b2, '^');
		else
			scope_grid_glyph(grid, at, column, style, blocks[part ? part - 1 : 0],
					 part > EIGHTHS / 2 ? '#' : '.');
	}
}

/* A limit where nothing else is. Its line is in the middle of a cell. */
static void draw_limit(struct scope_grid *grid, unsigned row, unsigned rows, unsigned column,
		       enum scope_style style, unsigned height)
{
	unsigned level = height / EIGHTHS;
	if (level >= rows)
		return;
	unsigned at = row + rows - 1 - level;
	if (at < grid->height && column < grid->width && grid->cell[at][column].code == ' ')
		scope_grid_glyph(grid, at, column, style, style == SCOPE_CRITICAL ? 0x2550 : 0x2500,
				 style == SCOPE_CRITICAL ? '=' : '-');
}

static void draw_scale(struct scope_grid *grid, const struct scope_plan *plan, unsigned row, int64_t top,
		       int64_t warn)
{
	char text[OUTPUT_TEXT_MAX], line[OUTPUT_TEXT_MAX + 8];
	text_right(grid, row, plan->gutter - 1, SCOPE_DIM, output_duration(text, top));
	unsigned level = warn > 0 ? height_of(warn, top, plan->wave) / EIGHTHS : 0;
	if (warn > 0 && level + 1 < plan->wave && level > 0) {
		snprintf(line, sizeof(line), plan->gutter >= 16 ? "warn %s" : "%s",
			 output_duration(text, warn));
		text_right(grid, row + plan->wave - 1 - level, plan->gutter - 1, SCOPE_WARN, line);
	}
}

static void draw_wave(const struct scope_model *model, const struct scope_plan *plan, unsigned row,
		      struct scope_grid *grid)
{
	int64_t top = top_ns(model), warn = 0;
	for (unsigned i = 0; i < model->columns && i < plan->columns; i++) {
		const struct scope_step_column *step = &model->steps[i];
		unsigned column = plan->gutter + i;
		if (step->longest_ns > 0)
			draw_bar(grid, row, plan->wave, column, step_style(model, step),
				 height_of(step->longest_ns, top, plan->wave));
		if (!scope_model_past(model, i))
			continue;
		if (step->warn_ns > 0)
			draw_limit(grid, row, plan->wave, column, SCOPE_WARN,
				   height_of(step->warn_ns, top, plan->wave));
		if (model->critical_ns > step->warn_ns && step->warn_ns > 0 && model->critical_ns < top)
			draw_limit(grid, row, plan->wave, column, SCOPE_CRITICAL,
				   height_of(model->critical_ns, top, plan->wave));
		warn = step->warn_ns > 0 ? step->warn_ns : warn;
	}
	if (top > 1)
		draw_scale(grid, plan, row, top, warn);
}

static unsigned column_of(const struct scope_model *model, int64_t ns)
{
	if (ns < model->from_ns || (ns - model->from_ns) / model->width_ns >= (int64_t)model->columns)
		return model->columns;
	return (unsigned)((ns - model->from_ns) / model->width_ns);
}

/* Incidents that share a column. */
struct mark {
	unsigned column, count;
	unsigned shown; /* the one that is named */
	enum triggers_severity worst;
	unsigned free_from, free_to; /* columns without another mark or its text */
};

/* Named to its right, or to its left where there is more room. Returns the first column after all of it. */
static unsigned draw_mark(const struct scope_model *model, const struct scope_plan *plan, unsigned row,
			  const struct mark *mark, struct scope_grid *grid)
{
	const struct scope_incident *incident = &model->incident[mark->shown];
	char text[TRIGGERS_NAME_MAX + 64], more[16] = "";
	enum scope_style style = mark->worst == TRIGGERS_CRITICAL ? SCOPE_CRITICAL
				 : mark->worst                    ? SCOPE_WARN
								  : SCOPE_PLAIN;
	scope_grid_glyph(grid, row, plan->gutter + mark->column, style, 0x25b2, '^');
	if (mark->count > 1)
		snprintf(more, sizeof(more), " +%u", mark->count - 1);
	snprintf(text, sizeof(text), "%.*s %s%s", (int)incident->digits, incident->id, incident->trigger,
		 more);
	style = mark->shown == model->selected ? SCOPE_SELECTED : style;
	unsigned needs = scope_grid_columns(grid, text), right = mark->free_to - mark->column - 1;
	unsigned left = mark->column - mark->free_from;
	if (right < needs && left > right) {
		unsigned takes = needs < left ? needs : left;
		if (takes > 5)
			scope_grid_text(grid, row, plan->gutter + mark->column - takes, takes, style, text);
		return mark->column + 1;
	}
	return mark->column + 1 +
	       (right > 5 ? scope_grid_text(grid, row, plan->gutter + mark->column + 1, right, style, text)
			  : 0);
}

/* Incidents are in the order of time. Those of one column are one mark: the selected one's, else the last
 * one's. */
static void draw_axis(const struct scope_model *model, const struct scope_plan *plan, unsigned row,
		      struct scope_grid *grid)
{
	scope_grid_text(grid, row, 0, plan->gutter - 1, SCOPE_PLAIN, "incidents");
	for (unsigned i = 0; i < plan->columns; i++)
		scope_grid_glyph(grid, row, plan->gutter + i, SCOPE_DIM, 0x2500, '-');
	unsigned free_from = 0;
	for (unsigned i = 0; i < model->n_incidents;) {
		struct mark mark = {.column = column_of(model, model->incident[i].t0_ns), .shown = i};
		for (; i < model->n_incidents && column_of(model, model->incident[i].t0_ns) == mark.column;
		     i++) {
			mark.shown = mark.shown == model->selected ? mark.shown : i;
			mark.worst = model->incident[i].severity > mark.worst ? model->incident[i].severity
									      : mark.worst;
			mark.count++;
		}
		unsigned next =
			i < model->n_incidents ? column_of(model, model->incident[i].t0_ns) : model->columns;
		mark.free_from = free_from;
		mark.free_to = next < model->columns && next > mark.column + 1 ? next - 1 : next;
		if (mark.free_to <= mark.column)
			mark.free_to = mark.column + 1;
		if (mark.column < model->columns && mark.column < plan->columns)
			free_from = draw_mark(model, plan, row, &mark, grid);
	}
}

/* As exact as a column, and with the day where there is room or need. */
static const char *time_text(char full[OUTPUT_TEXT_MAX], int64_t ns, int64_t width_ns, bool day)
{
	const int64_t second = 1000000000;
	char *end;
	output_time(full, ns);
	if (width_ns >= second && (end = strchr(full, '.')))
		*end = 0;
	else if ((end = strstr(full, " UTC")))
		*end = 0;
	return day || strlen(full) < 12 ? full : full + 11;
}

static void draw_times(const struct scope_model *model, const struct scope_plan *plan, unsigned row,
		       struct scope_grid *grid)
{
	char full[OUTPUT_TEXT_MAX], width[OUTPUT_TEXT_MAX], middle[OUTPUT_TEXT_MAX + 32];
	int64_t end_ns = model->from_ns + (int64_t)model->columns * model->width_ns;
	bool days = end_ns - model->from_ns > INT64_C(86400000000000);
	unsigned end = plan->gutter + plan->columns;
	scope_grid_text(grid, row, 0, plan->gutter - 1, SCOPE_DIM, "UTC");
	unsigned used = scope_grid_text(
		grid, row, plan->gutter, plan->columns, SCOPE_DIM,
		time_text(full, model->from_ns, model->width_ns, plan->columns >= 60 || days));
	const char *right = time_text(full, end_ns, model->width_ns, days);
	unsigned takes = scope_grid_columns(grid, right);
	if (used + takes + 1 > plan->columns)
		return;
	text_right(grid, row, end, SCOPE_DIM, right);
	snprintf(middle, sizeof(middle), "one column is %s", output_duration(width, model->width_ns));
	unsigned needs = scope_grid_columns(grid, middle), free_columns = plan->columns - used - takes;
	if (needs + 4 <= free_columns)
		scope_grid_text(grid, row, plan->gutter + used + (free_columns - needs) / 2, needs, SCOPE_DIM,
				middle);
}

static void draw_sentence(const struct scope_model *model, unsigned row, struct scope_grid *grid)
{
	char text[LINE_MAX_BYTES + SCOPE_TEXT_MAX + 128];
	if (model->n_incidents == 0) {
		scope_grid_text(grid, row, 0, grid->width, SCOPE_DIM,
				model->incidents_open ? "an incident is being recorded"
						      : "no incident has been kept");
		return;
	}
	const struct scope_incident *incident = &model->incident[model->selected];
	const char *why = model->overlay.why;
	snprintf(text, sizeof(text), "%.*s %s: %s%s%s%s%s", (int)incident->digits, incident->id,
		 triggers_severity_name(incident->severity), incident->sentence,
		 incident->ongoing ? " (ongoing)" : "", why[0] ? " (no steps to compare: " : "", why,
		 why[0] ? ")" : "");
	scope_grid_text(grid, row, 0, grid->width,
			incident->severity == TRIGGERS_CRITICAL ? SCOPE_CRITICAL : SCOPE_WARN, text);
}

void scope_layout_share(struct scope_grid *grid, unsigned row, unsigned column, enum scope_style style,
			uint16_t permille)
{
	static const char ascii[] = ".:-=+*#@";
	if (permille == SCOPE_UNKNOWN)
		return;
	if (permille == 0) {
		scope_grid_glyph(grid, row, column, SCOPE_DIM, 0xb7, '_');
		return;
	}
	unsigned level = permille >= SCOPE_PERMILLE ? EIGHTHS : permille * EIGHTHS / SCOPE_PERMILLE + 1;
	scope_grid_glyph(grid, row, column, style, blocks[level - 1], ascii[level - 1]);
}

static void draw_track(const struct scope_model *model, const struct scope_plan *plan, unsigned row,
		       const struct scope_track *track, struct scope_grid *grid)
{
	char share[16] = "";
	scope_grid_text(grid, row, 0, plan->gutter - 1, SCOPE_PLAIN, track->label);
	for (unsigned i = 0; i < model->columns && i < plan->columns; i++)
		scope_layout_share(grid, row, plan->gutter + i, SCOPE_BUSY, track->busy[i]);
	if (track->share != SCOPE_UNKNOWN)
		snprintf(share, sizeof(share), "%s%u %%", track->coarsened ? "~" : "",
			 (track->share + 5) / 10);
	text_right(grid, row, plan->width, SCOPE_PLAIN, share);
}

static void draw_tracks(const struct scope_model *model, const struct scope_plan *plan, unsigned row,
			struct scope_grid *grid)
{
	if (model->n_tracks == 0 && plan->tracks > 0)
		scope_grid_text(grid, row, 0, grid->width, SCOPE_DIM, "nothing was recorded in this time");
	for (unsigned i = 0; i < model->n_tracks && i < plan->tracks; i++)
		draw_track(model, plan, row + i, &model->track[i], grid);
}

static void draw_footer(const struct scope_model *model, const struct scope_plan *plan,
			struct scope_grid *grid)
{
	char text[LINE_MAX_BYTES] = "";
	unsigned row = plan->height - 1;
	if (model->tracks > model->n_tracks)
		snprintf(text, sizeof(text), "tracks %u-%u of %u", model->first_track + 1,
			 model->first_track + model->n_tracks, model->tracks);
	unsigned takes = scope_grid_columns(grid, text);
	scope_grid_text(
		grid, row, 0, plan->width - takes, SCOPE_DIM,
		plan->width >= 80
			? "q quit   h l time   j k tracks   + - zoom   space pause   tab incident   ? help"
			: "q quit  ? help");
	text_right(grid, row, plan->width, SCOPE_DIM, text);
}

static void draw_help(const struct scope_plan *plan, struct scope_grid *grid)
{
	static const char *const lines[] = {
		"q                 quit",
		"h l, left right   back and on in time",
		"j k, down up      other tracks",
		"+ -               zoom in and out",
		"space             pause and go on",
		"n, end            back to now",
		"tab               next incident (shift-tab: the one before)",
		"?                 this help",
		"",
		"blocks            the share of a column in which it was busy, steps left out",
		"waveform          the longest step of all ranks",
		"lines             from where a step warns, and from where it is critical",
	};
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]) && i + 2 < plan->height; i++)
		scope_grid_text(grid, i + 1, 0, plan->width, SCOPE_PLAIN, lines[i]);
}

static void draw_too_small(const struct scope_plan *plan, struct scope_grid *grid)
{
	char text[64];
	snprintf(text, sizeof(text), "%ux%u is too small: 40x10 is needed", plan->width, plan->height);
	/* Folded, so that it can be read where it matters. */
	unsigned row = 0;
	for (size_t at = 0, length = strlen(text); at < length && plan->width > 0 && row < plan->height;
	     row++) {
		size_t part = length - at < plan->width ? length - at : plan->width;
		char line[64];
		snprintf(line, sizeof(line), "%.*s", (int)part, text + at);
		scope_grid_text(grid, row, 0, plan->width, SCOPE_WARN, line);
		at += part;
	}
}

void scope_layout_draw(const struct scope_model *model, const struct scope_view *view,
		       const struct scope_plan *plan, bool ascii, struct scope_grid *grid)
{
	scope_grid_clear(grid, plan->width, plan->height, ascii);
	if (plan->too_small) {
		draw_too_small(plan, grid);
		return;
	}
	draw_header(model, view, grid);
	draw_footer(model, plan, grid);
	if (view->help) {
		draw_help(plan, grid);
		return;
	}
	unsigned row = 1;
	draw_wave_title(model, row++, grid);
	draw_wave(model, plan, row, grid);
	row += plan->wave;
	draw_axis(model, plan, row++, grid);
	draw_times(model, plan, row++, grid);
	if (plan->sentence)
		draw_sentence(model, row++, grid);
	draw_tracks(model, plan, row, grid);
	row += plan->tracks;
	scope_layout_overlay(model, plan, row, grid);
}
