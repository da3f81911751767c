/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `driverec scope` makes of a macro view, a store and a raw window of known content: cell by cell, and
 * whole frames against scope/<name>.txt (UPDATE_GOLDEN=1 writes them).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <driverec/driverec.h>
#include <reducer/tiers.h>

#include "command.h"
#include "scope/gather.h"
#include "scope/json.h"
#include "scope/layout.h"
#include "support.h"

#define MS     INT64_C(1000000)
#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define DAY    (86400 * SECOND)
/* 2026-11-30 03:12:00 UTC */
#define BASE (INT64_C(1796008320) * SECOND)

static struct scope_grid grid;

/* --- characters --- */

static unsigned columns_of(const char *text)
{
	uint32_t code;
	unsigned columns;
	scope_character(text, &code, &columns);
	return columns;
}

static uint32_t code_of(const char *text)
{
	uint32_t code;
	unsigned columns;
	scope_character(text, &code, &columns);
	return code;
}

START_TEST(characters_have_the_width_that_terminals_give_them)
{
	ck_assert_uint_eq(columns_of("a"), 1);
	ck_assert_uint_eq(columns_of("\xc3\xa9"), 1);         /* e acute */
	ck_assert_uint_eq(columns_of("\xe5\xb1\xa4"), 2);     /* a Chinese character */
	ck_assert_uint_eq(columns_of("\xf0\x9f\x94\xa5"), 2); /* fire */
	ck_assert_uint_eq(columns_of("\xcc\x81"), 0);         /* a combining acute accent */
	ck_assert_uint_eq(columns_of("\xe2\x80\x8b"), 0);     /* a space of no width */
}
END_TEST

START_TEST(what_moves_a_cursor_or_turns_the_writing_is_a_mark)
{
	static const char *const harmful[] = {"\x1b[2J",      "\r",           "\n",   "\x7f", "\xc2\x9b",
					      "\xe2\x80\xae", "\xe2\x81\xa6", "\xff", "\xc3"};
	ck_assert_uint_eq(code_of(harmful[_i]), '?');
	ck_assert_uint_eq(columns_of(harmful[_i]), 1);
}
END_TEST

static const char *line(unsigned row, bool color)
{
	static char text[SCOPE_LINE_BYTES_MAX];
	scope_grid_line(&grid, row, color, text);
	return text;
}

START_TEST(a_text_is_cut_by_columns)
{
	scope_grid_clear(&grid, 10, 2, false);
	ck_assert_uint_eq(scope_grid_text(&grid, 0, 0, 4, SCOPE_PLAIN, "abcdef"), 4);
	ck_assert_str_eq(line(0, false), "abc\xe2\x80\xa6");
	/* A wide character is not cut in half, and a text of marks alone takes no room. */
	scope_grid_clear(&grid, 10, 2, false);
	ck_assert_uint_eq(scope_grid_text(&grid, 0, 0, 4, SCOPE_PLAIN, "a\xe5\xb1\xa4\xe5\xb1\xa4"), 4);
	ck_assert_str_eq(line(0, false), "a\xe5\xb1\xa4\xe2\x80\xa6");
	scope_grid_clear(&grid, 10, 2, false);
	ck_assert_uint_eq(scope_grid_text(&grid, 0, 0, 4, SCOPE_PLAIN, "e\xcc\x81\xcc\x81\xcc\x81\xcc\x81"),
			  1);
	ck_assert_uint_eq(scope_grid_text(&grid, 0, 12, 4, SCOPE_PLAIN, "outside"), 0);
	ck_assert_uint_eq(scope_grid_text(&grid, 5, 0, 4, SCOPE_PLAIN, "outside"), 0);
}
END_TEST

START_TEST(without_utf_8_everything_is_ascii)
{
	scope_grid_clear(&grid, 10, 1, true);
	scope_grid_text(&grid, 0, 0, 10, SCOPE_PLAIN, "\xe5\xb1\xa4\xc3\xa9n");
	scope_grid_glyph(&grid, 0, 5, SCOPE_PLAIN, 0x2588, '#');
	ck_assert_str_eq(line(0, false), "??n  #");
}
END_TEST

START_TEST(a_line_sets_colours_and_takes_them_back)
{
	scope_grid_clear(&grid, 10, 1, false);
	scope_grid_text(&grid, 0, 0, 3, SCOPE_PLAIN, "ab");
	scope_grid_text(&grid, 0, 2, 3, SCOPE_CRITICAL, "cd\x1b");
	ck_assert_str_eq(line(0, true), "ab\x1b[0;31mcd?\x1b[0m");
	ck_assert_str_eq(line(0, false), "abcd?");
}
END_TEST

/* --- view --- */

static struct scope_model *model; /* big: one for all, cleared by each test */
static struct scope_view view;

static void set_up(void)
{
	struct reducer_tiers_options options;
	reducer_tiers_defaults(&options);
	model = calloc(1, sizeof(*model));
	ck_assert_ptr_nonnull(model);
	scope_view_init(&view, &options);
}

static void tear_down(void)
{
	free(model);
}

static void show(unsigned columns)
{
	model->columns = columns;
	model->width_ns = scope_view_width_ns(&view);
	model->picture_ns = BASE;
	model->from_ns = scope_view_from_ns(&view, BASE, columns);
}

START_TEST(zooms_go_from_the_finest_bin_to_the_whole_month)
{
	ck_assert_int_eq(view.zoom_ns[0], 10 * MS);
	ck_assert_int_ge(view.zoom_ns[view.n_zooms - 1] * 40, 30 * DAY);
	for (unsigned i = 1; i < view.n_zooms; i++)
		ck_assert_int_lt(view.zoom_ns[i - 1], view.zoom_ns[i]);
	scope_view_show(&view, MINUTE, 60);
	ck_assert_int_eq(scope_view_width_ns(&view), SECOND);
	scope_view_show(&view, MINUTE, 50);
	ck_assert_int_eq(scope_view_width_ns(&view), 2 * SECOND);
	scope_view_show(&view, 1000 * DAY, 50);
	ck_assert_uint_eq(view.zoom, view.n_zooms - 1);
}
END_TEST

START_TEST(tiers_of_odd_widths_have_zooms)
{
	struct reducer_tiers_options odd = {.tier = {{7 * MS, 100}, {7 * SECOND, 100}}, .tiers = 2};
	scope_view_init(&view, &odd);
	ck_assert_uint_ge(view.n_zooms, 2);
	for (unsigned i = 0; i < view.n_zooms; i++)
		ck_assert_int_eq(view.zoom_ns[i] % (7 * MS), 0);
}
END_TEST

START_TEST(the_window_ends_with_the_column_of_now)
{
	show(100);
	ck_assert_int_eq(model->from_ns, BASE - 100 * 10 * MS);
	ck_assert_int_eq(scope_view_from_ns(&view, BASE + 1, 100), BASE - 99 * 10 * MS);
	/* Before the epoch there is nothing. */
	ck_assert_int_eq(scope_view_from_ns(&view, 5 * MS, 100), 0);
	ck_assert_int_eq(scope_view_from_ns(&view, 0, 100), 0);
}
END_TEST

START_TEST(scrolling_leaves_now_and_comes_back)
{
	show(100);
	scope_view_key(&view, SCOPE_KEY_LEFT, model);
	ck_assert(!view.follow);
	ck_assert_int_eq(view.end_ns, BASE - 250 * MS);
	show(100);
	ck_assert_int_eq(model->from_ns, BASE - 1250 * MS);
	scope_view_key(&view, SCOPE_KEY_RIGHT, model);
	ck_assert(view.follow);
	scope_view_key(&view, SCOPE_KEY_LEFT, model);
	scope_view_key(&view, SCOPE_KEY_NOW, model);
	ck_assert(view.follow);
}
END_TEST

START_TEST(zooming_keeps_the_middle)
{
	view.follow = false;
	view.end_ns = BASE - 10 * MINUTE;
	show(100);
	int64_t middle = model->from_ns + 50 * model->width_ns;
	scope_view_key(&view, SCOPE_KEY_OUT, model);
	show(100);
	ck_assert_int_eq(model->width_ns, 20 * MS);
	ck_assert_int_le(llabs(model->from_ns + 50 * model->width_ns - middle), model->width_ns);
	scope_view_key(&view, SCOPE_KEY_IN, model);
	scope_view_key(&view, SCOPE_KEY_IN, model);
	ck_assert_uint_eq(view.zoom, 0);
	for (int i = 0; i < 100; i++) {
		show(100);
		scope_view_key(&view, SCOPE_KEY_OUT, model);
	}
	ck_assert_uint_eq(view.zoom, view.n_zooms - 1);
}
END_TEST

START_TEST(tab_goes_round_the_incidents)
{
	model->n_incidents = 3;
	for (int i = 0; i < 3; i++) {
		snprintf(model->incident[i].id, sizeof(model->incident[i].id), "id%d", i);
		model->incident[i].t0_ns = BASE - (10 - i) * MINUTE;
	}
	show(100);
	model->selected = 2;
	scope_view_key(&view, SCOPE_KEY_NEXT, model);
	ck_assert_str_eq(view.selected, "id0");
	show(100);
	ck_assert_int_eq(model->from_ns + 50 * model->width_ns, BASE - 10 * MINUTE);
	model->selected = 0;
	scope_view_key(&view, SCOPE_KEY_PREVIOUS, model);
	ck_assert_str_eq(view.selected, "id2");
	model->n_incidents = 0;
	scope_view_key(&view, SCOPE_KEY_NEXT, model);
	ck_assert_str_eq(view.selected, "id2");
}
END_TEST

START_TEST(a_pause_stays_where_it_was)
{
	show(100);
	scope_view_key(&view, SCOPE_KEY_PAUSE, model);
	ck_assert(view.paused && !view.follow);
	ck_assert_int_eq(view.end_ns, BASE);
	scope_view_key(&view, SCOPE_KEY_RIGHT, model);
	ck_assert(!view.follow);
	scope_view_key(&view, SCOPE_KEY_PAUSE, model);
	ck_assert(!view.paused && view.follow);
}
END_TEST

START_TEST(keys_come_out_of_what_terminals_send)
{
	static const struct {
		const char *bytes;
		enum scope_key key;
		size_t used;
	} rows[] = {
		{"q", SCOPE_KEY_QUIT, 1},
		{"\x1b[Cq", SCOPE_KEY_RIGHT, 3},
		{"\x1bOD", SCOPE_KEY_LEFT, 3},
		{"\x1b[Z", SCOPE_KEY_PREVIOUS, 3},
		{"\t", SCOPE_KEY_NEXT, 1},
		{"x", SCOPE_KEY_NONE, 1},
		{"\x1b[15~q", SCOPE_KEY_NONE, 5},
		{"\x1b[1;5Cq", SCOPE_KEY_NONE, 6},
		{"\x1b[", SCOPE_KEY_NONE, 0},
		{"\x1b", SCOPE_KEY_NONE, 1},
		{"\x1b[1111111111111111111q", SCOPE_KEY_NONE, 17},
	};
	size_t used = 99;
	ck_assert_int_eq(scope_key_of(rows[_i].bytes, strlen(rows[_i].bytes), &used), rows[_i].key);
	ck_assert_uint_eq(used, rows[_i].used);
}
END_TEST

/* --- layout --- */

static unsigned rows_of(const struct scope_plan *plan)
{
	return 5 + plan->wave + plan->sentence + plan->tracks +
	       (plan->overlay_tracks ? 1 + 2 * plan->overlay_tracks : 0);
}

START_TEST(every_size_is_divided_without_a_rest_of_two)
{
	for (unsigned width = 40; width < 300; width += 7) {
		for (unsigned height = 10; height < 120; height++) {
			struct scope_plan plan;
			for (unsigned tracks = 0; tracks < 40; tracks += 3) {
				scope_layout_plan(width, height, tracks, tracks / 2, &plan);
				ck_assert(!plan.too_small);
				ck_assert_uint_ge(plan.wave, 2);
				ck_assert_uint_ge(plan.tracks, 1);
				ck_assert_msg(rows_of(&plan) <= height, "%ux%u, %u tracks", width, height,
					      tracks);
				ck_assert_uint_le(plan.gutter + plan.columns, width);
				ck_assert_uint_le(plan.gutter + 5 + plan.overlay_cells, width);
			}
			scope_layout_plan(width, height, UINT_MAX, UINT_MAX, &plan);
			ck_assert_uint_eq(rows_of(&plan), height);
		}
	}
}
END_TEST

/* Two ranks, a slow step, three incidents, two of them in one column. */
static void fill_model(unsigned columns)
{
	show(columns);
	model->has_picture = model->has_steps = model->live = true;
	model->median_ns = 100 * MS;
	model->warn_ns = 150 * MS;
	model->critical_ns = 300 * MS;
	for (unsigned i = 0; i < columns; i++) {
		model->steps[i] = (struct scope_step_column){.longest_ns = 100 * MS, .warn_ns = 150 * MS};
		model->track[0].busy[i] = (uint16_t)(i % 1001);
		model->track[1].busy[i] = i < columns / 2 ? SCOPE_UNKNOWN : 1000;
	}
	model->steps[10].longest_ns = 200 * MS;
	model->steps[11].longest_ns = 400 * MS;
	model->steps[12].longest_ns = 0;
	strcpy(model->track[0].label, "rank0 main");
	strcpy(model->track[1].label,
	       "rank1 \x1b[31m\xe2\x80\xae\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4");
	model->n_tracks = model->tracks = 2;
	model->n_incidents = 3;
	for (unsigned i = 0; i < 3; i++) {
		struct scope_incident *incident = &model->incident[i];
		snprintf(incident->id, sizeof(incident->id), "%u%u%u%u0000", i, i, i, i);
		incident->digits = 4;
		strcpy(incident->trigger, "stall");
		strcpy(incident->sentence, "Rank 0 stopped.");
		incident->severity = i == 0 ? TRIGGERS_CRITICAL : TRIGGERS_WARN;
		incident->t0_ns = model->from_ns + (i == 0 ? 2 : 15) * model->width_ns;
	}
	model->selected = 1;
}

static struct scope_plan plan;

static void draw(unsigned width, unsigned height, bool ascii)
{
	scope_layout_plan(width, height, UINT_MAX, model->overlay.n_tracks, &plan);
	fill_model(plan.columns);
	scope_layout_draw(model, &view, &plan, ascii, &grid);
}

static const struct scope_cell *cell(unsigned row, unsigned column)
{
	return &grid.cell[row][plan.gutter + column];
}

START_TEST(the_waveform_stands_under_its_limit)
{
	draw(80, 24, false);
	unsigned bottom = 2 + plan.wave - 1;
	/* 100 ms of 450 ms, in whole blocks from the bottom; nothing where there was no step. */
	ck_assert_uint_eq(cell(bottom, 0)->code, 0x2588);
	ck_assert_uint_eq(cell(bottom, 0)->style, SCOPE_GOOD);
	ck_assert_uint_eq(cell(bottom, 10)->style, SCOPE_WARN);
	ck_assert_uint_eq(cell(bottom, 11)->style, SCOPE_CRITICAL);
	ck_assert_uint_eq(cell(bottom, 12)->code, ' ');
	/* What warns and what is critical, each in one row, where no step hides it. */
	unsigned limits = 0, ceilings = 0;
	for (unsigned row = 2; row <= bottom; row++) {
		limits += cell(row, 12)->code == 0x2500;
		ceilings += cell(row, 12)->code == 0x2550;
	}
	ck_assert_uint_eq(limits, 1);
	ck_assert_uint_eq(ceilings, 1);
	/* The tallest column reaches higher than its neighbours. */
	ck_assert_uint_ne(cell(3, 11)->code, ' ');
	ck_assert_uint_eq(cell(3, 9)->code, ' ');
}
END_TEST

START_TEST(incidents_stand_at_their_time)
{
	draw(80, 24, false);
	unsigned axis = 2 + plan.wave;
	ck_assert_uint_eq(cell(axis, 2)->code, 0x25b2);
	ck_assert_uint_eq(cell(axis, 2)->style, SCOPE_CRITICAL);
	ck_assert_uint_eq(cell(axis, 15)->code, 0x25b2);
	ck_assert_ptr_nonnull(strstr(line(axis, false), "0000 stall"));
	ck_assert_ptr_nonnull(strstr(line(axis, false), "1111 stall +1"));
	ck_assert_uint_eq(cell(axis, 16)->style, SCOPE_SELECTED);
	ck_assert_ptr_nonnull(strstr(line(axis + 2, false), "1111 warn: Rank 0 stopped."));
}
END_TEST

START_TEST(a_busy_share_is_a_block_and_what_is_not_known_is_blank)
{
	draw(80, 24, false);
	unsigned row = 2 + plan.wave + 3;
	ck_assert_uint_eq(cell(row, 0)->code, 0xb7);
	ck_assert_uint_eq(cell(row, 1)->code, 0x2581);
	ck_assert_uint_eq(cell(row + 1, 0)->code, ' ');
	ck_assert_uint_eq(cell(row + 1, plan.columns - 1)->code, 0x2588);
	ck_assert_str_eq(model->track[0].label, "rank0 main");
	for (const char *c = line(row + 1, false); *c; c++)
		ck_assert_uint_ge((unsigned char)*c, 0x20);
}
END_TEST

START_TEST(in_ascii_no_byte_is_beyond_127)
{
	draw(120, 40, true);
	for (unsigned row = 0; row < grid.height; row++)
		for (const char *c = line(row, false); *c; c++)
			ck_assert_msg((unsigned char)*c >= 0x20 && (unsigned char)*c < 0x7f, "row %u", row);
}
END_TEST

START_TEST(what_is_too_small_says_so)
{
	draw(30, 8, false);
	ck_assert_str_eq(line(0, false), "30x8 is too small: 40x10 is ne");
	ck_assert_str_eq(line(1, false), "eded");
	draw(40, 10, false);
	ck_assert_ptr_null(strstr(line(0, false), "too small"));
	ck_assert_ptr_nonnull(strstr(line(9, false), "q quit"));
}
END_TEST

START_TEST(no_size_draws_outside)
{
	for (unsigned width = 1; width < 130; width += 3) {
		for (unsigned height = 1; height < 60; height++) {
			draw(width, height, height % 2);
			view.help = !view.help;
			ck_assert_uint_eq(grid.height, height);
			for (unsigned row = 0; row < height; row++)
				ck_assert_uint_lt(strlen(line(row, true)), SCOPE_LINE_BYTES_MAX);
		}
	}
	draw(100000, 100000, false);
	ck_assert_uint_eq(grid.width, SCOPE_WIDTH_MAX);
}
END_TEST

START_TEST(a_step_past_its_deadline_is_said)
{
	scope_layout_plan(100, 24, UINT_MAX, 0, &plan);
	fill_model(plan.columns);
	model->open = (struct scope_open_step){.there = true,
					       .number = 1234,
					       .for_ns = 12 * SECOND,
					       .deadline_ns = SECOND,
					       .inside = "lo\nad"};
	scope_layout_draw(model, &view, &plan, false, &grid);
	ck_assert_str_eq(line(1, false), "step 1,234 has been open for 12.0 s, inside \"lo?ad\"");
	ck_assert_uint_eq(grid.cell[1][0].style, SCOPE_CRITICAL);
}
END_TEST

/* --- gathering --- */

static const char *store_path;

static struct reducer_text text(const char *string)
{
	return (struct reducer_text){string, strlen(string)};
}

static void need(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "failed: %s\n", strerror(-rc));
		abort();
	}
}

static uint32_t row_of(struct reducer_tiers *tiers, const char *source, const char *key, const char *label,
		       enum reducer_row_kind kind, uint8_t depth)
{
	uint32_t track, row;
	need(reducer_tiers_track(tiers, text(source), text(key), text(label), &track));
	need(reducer_tiers_row(tiers, track, kind, depth, &row));
	return row;
}

/*
 * A minute of one rank: steps of 500 ms one after another, of which the first 400 ms are work; a loader that
 * is busy a quarter of the time. Step 80 (at 40 s) takes 3 s, all of it work.
 */
static void make_tiers(const char *path)
{
	struct reducer_tiers_options options;
	struct reducer_tiers *tiers;
	reducer_tiers_defaults(&options);
	options.bytes_max = 4 << 20;
	assert_ok(reducer_tiers_open(path, &options, BASE, &tiers));
	uint32_t step = row_of(tiers, "r0", "3", "rank0.0123456789abcdef main", REDUCER_ROW_SPANS, 0);
	uint32_t work = row_of(tiers, "r0", "3", "rank0.0123456789abcdef main", REDUCER_ROW_SPANS, 1);
	uint32_t loader = row_of(tiers, "r0", "4", "rank0.0123456789abcdef loader", REDUCER_ROW_SPANS, 0);
	uint32_t lengths = row_of(tiers, "r0", "steps/3/0/train", "lengths", REDUCER_ROW_COUNTER, 0);
	uint32_t limits = row_of(tiers, "r0", "limits/3/0/train", "limits", REDUCER_ROW_COUNTER, 0);
	int64_t at = 0;
	for (int number = 0; at < MINUTE; number++) {
		int64_t length = number == 80 ? 3 * SECOND : SECOND / 2;
		reducer_tiers_tick(tiers, BASE + at + length);
		assert_ok(reducer_tiers_span(tiers, work, 0, BASE + at,
					     BASE + at + length - length / 5 * (number != 80)));
		assert_ok(reducer_tiers_span(tiers, step, 0, BASE + at, BASE + at + length));
		assert_ok(reducer_tiers_span(tiers, loader, 0, BASE + at, BASE + at + length / 4));
		assert_ok(reducer_tiers_counter(tiers, lengths, BASE + at + length, (double)length));
		if (number >= 16)
			assert_ok(reducer_tiers_counter(tiers, limits, BASE + at + length, 750e6));
		at += length;
	}
	assert_ok(reducer_tiers_commit(tiers, BASE + MINUTE, NULL, 0, false));
	reducer_tiers_free(tiers);
}

static void write_step(drec *rec, uint32_t track, uint64_t number, int64_t start_ns, int64_t load_ns)
{
	struct drec_event event = {.kind = DREC_SPAN, .flags = DREC_FLAG_ABS, .depth = 1, .track = track};
	event.name = drec_name(rec, "load");
	event.start = (uint64_t)start_ns;
	event.dur_or_value = (uint64_t)load_ns;
	assert_ok(drec_write(rec, &event));
	event.name = drec_name(rec, "compute");
	event.start = (uint64_t)(start_ns + load_ns);
	event.dur_or_value = 300 * MS;
	assert_ok(drec_write(rec, &event));
	event.kind = DREC_MARK;
	event.category = DREC_MARK_STEP_END;
	event.flags |= DREC_FLAG_ID;
	event.depth = 0;
	event.id = number;
	event.name = drec_name(rec, "train");
	event.start = (uint64_t)start_ns;
	event.dur_or_value = (uint64_t)(load_ns + 400 * MS);
	assert_ok(drec_write(rec, &event));
}

/* The raw window: steps 70 to 80; of those step 79 is slow, too, and no example of a good one. */
static void make_raw(const char *path)
{
	const struct drec_options options = {.run_dir = test_shm_folder(),
					     .job = "made",
					     .name = "rank0",
					     .ring_bytes = 1 << 20,
					     .no_exit_mark = 1};
	const char *why = "";
	drec *rec;
	size_t bytes;
	mkdir(test_path(options.run_dir, "rings"), 0700);
	int result = drec_open_strict(&options, &rec, &why);
	ck_assert_msg(result == 0, "%s", why);
	uint32_t track = drec_track(rec, "rank0", "main");
	for (uint64_t number = 70; number < 80; number++)
		write_step(rec, track, number, BASE + 40 * SECOND - (80 - (int64_t)number) * 1500 * MS,
			   number == 79 ? 900 * MS : 100 * MS);
	write_step(rec, track, 80, BASE + 40 * SECOND, 2600 * MS);
	char *ring = strdup(drec_path(rec));
	drec_close(rec);
	char *content = test_read_file(ring, &bytes);
	test_write_file(path, content, bytes);
	free(content);
	free(ring);
}

static void make_incident(const char *id, const char *trigger, int64_t t0_ns, int64_t step, bool raw)
{
	char folder[INCIDENTS_FOLDER_MAX], path[512], manifest[2048];
	uint8_t bytes[INCIDENTS_ID_BYTES];
	need(incidents_id_parse(id, bytes));
	incidents_folder_name(folder, t0_ns, trigger, bytes);
	snprintf(path, sizeof(path), "%s/incidents/%s", store_path, folder);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	strcat(path, "/raw");
	ck_assert_int_eq(mkdir(path, 0700), 0);
	strcat(path, "/rank0.drec");
	if (raw)
		make_raw(path);
	snprintf(
		manifest, sizeof(manifest),
		"{\"schema\":\"driverec.incident/1\",\"revision\":1,\"id\":\"%s\",\"trigger\":\"%s\","
		"\"severity\":\"critical\",\"verdict\":\"complete\",\"job\":\"made\",\"rank\":0,\"step\":\"%"
		"lld\","
		"\"sentence\":\"Rank 0 took 3.0 s for \\\"step\\\" at step "
		"%lld.\",\"t0_ns\":\"%lld\",\"detected_ns\":\"%lld\","
		"\"rings\":[{\"name\":\"rank1\",\"rank\":1,\"windows\":[{\"file\":\"raw/../../../passwd\"}]},"
		"{\"name\":\"rank0\",\"rank\":0,\"windows\":[{\"file\":\"raw/"
		"rank0.drec\"}]}],\"firings\":[]}",
		id, trigger, (long long)step, (long long)step, (long long)t0_ns, (long long)(t0_ns + SECOND));
	snprintf(path, sizeof(path), "%s/incidents/%s/manifest.json", store_path, folder);
	test_write_file(path, manifest, strlen(manifest));
}

static void make_store(void)
{
	struct incidents_store *store;
	store_path = strdup(test_path(test_folder(), "store"));
	assert_ok(incidents_store_open(store_path, true, &store));
	incidents_store_free(store);
	setenv("DRIVEREC_RUN_DIR", test_folder(), 1);
}

static void make_all(void)
{
	char path[512];
	make_store();
	snprintf(path, sizeof(path), "%s/macro.tiers", store_path);
	make_tiers(path);
	make_incident("0a110000000000000000000000000001", "stall", BASE + 20 * SECOND, 40, false);
	make_incident("7f3a0000000000000000000000000002", "latency_spike", BASE + 40 * SECOND, 80, true);
}

static struct scope_gather *gather_store(void)
{
	struct scope_gather *gather;
	assert_ok(scope_gather_new(test_folder(), store_path, &gather));
	return gather;
}

static void fill(struct scope_gather *gather, unsigned columns)
{
	const struct scope_room room = {.columns = columns, .tracks = 16, .overlay_cells = 60};
	assert_ok(scope_gather_fill(gather, &view, &room, model));
}

START_TEST(columns_hold_what_the_file_has)
{
	make_all();
	struct scope_gather *gather = gather_store();
	scope_view_show(&view, MINUTE, 60);
	fill(gather, 60);
	ck_assert(!model->live && model->has_picture && model->has_steps);
	ck_assert_str_eq(model->not_live, "no daemon is running");
	ck_assert_int_eq(model->from_ns, BASE);
	ck_assert_int_eq(model->width_ns, SECOND);
	ck_assert_uint_eq(model->n_tracks, 2);
	ck_assert_str_eq(model->track[0].label, "rank0 loader");
	ck_assert_str_eq(model->track[1].label, "rank0 main");
	/* The share is that of the work inside of steps: a step by itself is busy all the time. */
	ck_assert_uint_eq(model->track[1].busy[5], 800);
	ck_assert_uint_eq(model->track[1].busy[41], 1000);
	ck_assert_uint_eq(model->track[0].busy[5], 250);
	/* The slow step stands where it was, in all of its columns, and so does the limit, once it was known.
	 */
	ck_assert_int_eq(model->steps[5].longest_ns, SECOND / 2);
	for (unsigned i = 40; i < 43; i++)
		ck_assert_int_eq(model->steps[i].longest_ns, 3 * SECOND);
	ck_assert_int_eq(model->steps[44].longest_ns, SECOND / 2);
	ck_assert_int_eq(model->steps[30].warn_ns, 750 * MS);
	ck_assert_uint_eq(model->n_incidents, 2);
	ck_assert_uint_eq(model->selected, 1);
	scope_gather_free(gather);
}
END_TEST

START_TEST(a_step_longer_than_the_window_fills_it)
{
	make_all();
	struct scope_gather *gather = gather_store();
	view.follow = false;
	view.end_ns = BASE + 41500 * MS;
	fill(gather, 100);
	ck_assert_int_eq(model->width_ns, 10 * MS);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_msg(model->steps[i].longest_ns == 3 * SECOND, "column %u: %lld", i,
			      (long long)model->steps[i].longest_ns);
	scope_gather_free(gather);
}
END_TEST

START_TEST(what_is_out_of_reach_is_not_idle)
{
	make_all();
	struct scope_gather *gather = gather_store();
	/* Ten minutes of 10 ms bins are kept; eleven minutes ago there are none, and nothing is said. */
	view.follow = false;
	view.end_ns = BASE + MINUTE - 650 * SECOND;
	fill(gather, 100);
	for (unsigned t = 0; t < model->n_tracks; t++)
		for (unsigned i = 0; i < 100; i++)
			ck_assert_uint_eq(model->track[t].busy[i], SCOPE_UNKNOWN);
	/* And nothing is said of the future. */
	view.end_ns = BASE + MINUTE + 500 * MS;
	fill(gather, 100);
	ck_assert_uint_ne(model->track[0].busy[10], SCOPE_UNKNOWN);
	ck_assert_uint_eq(model->track[0].busy[99], SCOPE_UNKNOWN);
	scope_gather_free(gather);
}
END_TEST

START_TEST(the_bad_step_lies_over_the_last_good_one)
{
	make_all();
	struct scope_gather *gather = gather_store();
	fill(gather, 60);
	const struct scope_overlay *overlay = &model->overlay;
	ck_assert_str_eq(overlay->why, "");
	const struct scope_overlay_step *good = &overlay->step[SCOPE_GOOD_STEP],
					*bad = &overlay->step[SCOPE_BAD_STEP];
	ck_assert(good->there && bad->there && !bad->unfinished);
	ck_assert_int_eq(bad->number, 80);
	ck_assert_int_eq(bad->length_ns, 3 * SECOND);
	/* Step 79 was nearer, and slow. */
	ck_assert_int_eq(good->number, 78);
	ck_assert_int_eq(good->length_ns, SECOND / 2);
	ck_assert_int_eq(overlay->cell_ns, 50 * MS);
	ck_assert(!overlay->cut);
	ck_assert_uint_eq(overlay->n_tracks, 1);
	const struct scope_overlay_track *track = &overlay->track[0];
	ck_assert_str_eq(track->label, "main");
	ck_assert_str_eq(track->grew, "load");
	ck_assert_int_eq(track->grew_ns[SCOPE_GOOD_STEP], 100 * MS);
	ck_assert_int_eq(track->grew_ns[SCOPE_BAD_STEP], 2600 * MS);
	ck_assert_uint_eq(track->busy[SCOPE_GOOD_STEP][7], 1000);
	ck_assert_uint_eq(track->busy[SCOPE_GOOD_STEP][9], 0);
	ck_assert_uint_eq(track->busy[SCOPE_GOOD_STEP][10], SCOPE_UNKNOWN);
	ck_assert_uint_eq(track->busy[SCOPE_BAD_STEP][57], 1000);
	ck_assert_uint_eq(track->busy[SCOPE_BAD_STEP][59], 0);
	scope_gather_free(gather);
}
END_TEST

/* As a stall leaves it: the step and what it is inside of have no end in the window. */
static void make_open(const char *path)
{
	const struct drec_options options = {.run_dir = test_shm_folder(),
					     .job = "made",
					     .name = "rank0",
					     .ring_bytes = 1 << 20,
					     .no_exit_mark = 1};
	const char *why = "";
	drec *rec;
	size_t bytes;
	mkdir(test_path(options.run_dir, "rings"), 0700);
	int result = drec_open_strict(&options, &rec, &why);
	ck_assert_msg(result == 0, "%s", why);
	uint32_t track = drec_thread_track(rec);
	for (uint64_t number = 70; number < 80; number++)
		write_step(rec, track, number, BASE - (int64_t)(80 - number) * SECOND, 100 * MS);
	drec_step_begin(rec, 80, drec_name(rec, "train"));
	drec_begin(rec, drec_name(rec, "load"));
	drec_instant(rec, 0, drec_name(rec, "later"));
	char *content = test_read_file(drec_path(rec), &bytes);
	test_write_file(path, content, bytes);
	free(content);
	drec_close(rec);
}

START_TEST(a_step_without_an_end_is_still_open)
{
	char path[512];
	struct incidents_entry *entries;
	struct incidents_store *store;
	size_t count;
	make_all();
	assert_ok(incidents_store_open(store_path, false, &store));
	assert_ok(incidents_store_list(store, &entries, &count));
	ck_assert_uint_eq(count, 2);
	snprintf(path, sizeof(path), "%s/incidents/%s/raw/rank0.drec", store_path, entries[1].folder);
	make_open(path);
	free(entries);
	incidents_store_free(store);
	struct scope_gather *gather = gather_store();
	fill(gather, 60);
	const struct scope_overlay *overlay = &model->overlay;
	ck_assert_str_eq(overlay->why, "");
	ck_assert(overlay->step[SCOPE_BAD_STEP].there && overlay->step[SCOPE_BAD_STEP].unfinished);
	ck_assert_int_eq(overlay->step[SCOPE_BAD_STEP].number, 80);
	scope_gather_free(gather);
}
END_TEST

START_TEST(an_incident_without_its_raw_window_says_so)
{
	make_all();
	struct scope_gather *gather = gather_store();
	strcpy(view.selected, "0a11000000000000");
	for (unsigned i = 0; i < 2; i++) {
		fill(gather, 60);
		memcpy(view.selected, model->incident[0].id, sizeof(view.selected));
	}
	ck_assert_uint_eq(model->selected, 0);
	ck_assert_str_ne(model->overlay.why, "");
	ck_assert(!model->overlay.step[SCOPE_BAD_STEP].there);
	scope_gather_free(gather);
}
END_TEST

START_TEST(new_incidents_are_seen)
{
	make_all();
	struct scope_gather *gather = gather_store();
	fill(gather, 60);
	ck_assert_uint_eq(model->n_incidents, 2);
	make_incident("99990000000000000000000000000003", "manual", BASE + 50 * SECOND, 90, false);
	ck_assert_int_eq(scope_gather_poll(gather, 10 * SECOND), 1);
	fill(gather, 60);
	ck_assert_uint_eq(model->n_incidents, 3);
	ck_assert_int_eq(scope_gather_poll(gather, 12 * SECOND), 0);
	scope_gather_free(gather);
}
END_TEST

START_TEST(names_stay_names)
{
	make_all();
	struct scope_gather *gather = gather_store();
	fill(gather, 60);
	strcpy(model->track[0].label, "\x1b[31m\xff");
	cJSON *json = scope_json(model);
	char *printed = cJSON_PrintUnformatted(json);
	ck_assert_ptr_nonnull(strstr(printed, "\"?[31m?\""));
	ck_assert_ptr_nonnull(strstr(printed, "\"from_ns\":\"1796008"));
	cJSON_free(printed);
	cJSON_Delete(json);
	scope_gather_free(gather);
}
END_TEST

/* --- reading what is written --- */

enum { SHARED = 6, COMMITS = 300, CHURN_EVERY = 75 };

/*
 * In commit n each of the rows gets the same span, so that a reader who sees a whole commit sees equal rows;
 * new tracks come, bins are given up for want of room, and now and then the file is made anew, as a daemon
 * does with a damaged one.
 */
static void write_equal_rows(const char *path)
{
	struct reducer_tiers_options options;
	struct reducer_tiers *tiers = NULL;
	char key[64];
	reducer_tiers_defaults(&options);
	options.bytes_max = REDUCER_TIERS_BYTES_MIN;
	for (int64_t i = 0; i < COMMITS; i++) {
		if (i % CHURN_EVERY == 0) {
			reducer_tiers_free(tiers);
			unlink(path);
			need(reducer_tiers_open(path, &options, BASE, &tiers));
		}
		for (int r = 0; r < SHARED; r++) {
			snprintf(key, sizeof(key), "equal%d", r);
			uint32_t row = row_of(tiers, "source", key, key, REDUCER_ROW_SPANS, 0);
			need(reducer_tiers_span(tiers, row, 0, BASE + i * 50 * MS,
						BASE + i * 50 * MS + 5 * MS));
		}
		for (int r = 0; r < 4; r++) {
			snprintf(key, sizeof(key), "other%lld.%d", (long long)i, r);
			uint32_t row = row_of(tiers, "source", key, key, REDUCER_ROW_SPANS, 0);
			need(reducer_tiers_span(tiers, row, 0, BASE + i * 50 * MS, BASE + i * 50 * MS + MS));
		}
		need(reducer_tiers_commit(tiers, BASE + i * 50 * MS + 10 * MS, NULL, 0, false));
	}
	reducer_tiers_free(tiers);
}

/* Whether all rows "equal…" hold the same. */
static unsigned check_equal(void)
{
	unsigned seen = 0;
	const struct scope_track *first = NULL;
	for (unsigned t = 0; t < model->n_tracks; t++) {
		const struct scope_track *track = &model->track[t];
		if (strncmp(track->label, "equal", 5) != 0)
			continue;
		seen++;
		first = first ? first : track;
		ck_assert_mem_eq(track->busy, first->busy, model->columns * sizeof(first->busy[0]));
	}
	ck_assert_msg(seen == 0 || seen == SHARED, "%u of the rows that come together", seen);
	return seen;
}

START_TEST(a_writer_may_go_on_meanwhile)
{
	char path[512];
	make_store();
	snprintf(path, sizeof(path), "%s/macro.tiers", store_path);
	pid_t child = fork();
	if (child == 0) {
		write_equal_rows(path);
		_exit(0);
	}
	struct scope_gather *gather = gather_store();
	const struct scope_room room = {.columns = 200, .tracks = SCOPE_TRACKS_MAX, .overlay_cells = 60};
	unsigned good = 0, busy = 0;
	int status = 0;
	/* Every look is 3 s later to the reader, so that it asks for everything each time. */
	for (int64_t mono_ns = SECOND; waitpid(child, &status, WNOHANG) == 0; mono_ns += 3 * SECOND) {
		scope_gather_poll(gather, mono_ns);
		int result = scope_gather_fill(gather, &view, &room, model);
		ck_assert_msg(result == 0 || result == -EAGAIN, "%s", strerror(-result));
		busy += result < 0;
		good += result == 0 && check_equal() > 0;
	}
	ck_assert_int_eq(status, 0);
	ck_assert_uint_gt(good, 0);
	scope_gather_poll(gather, INT64_C(1) << 60);
	assert_ok(scope_gather_fill(gather, &view, &room, model));
	ck_assert_uint_eq(check_equal(), SHARED);
	ck_assert_int_eq(model->picture_ns, BASE + (COMMITS - 1) * 50 * MS + 10 * MS);
	printf("%u whole pictures, %u times again\n", good, busy);
	scope_gather_free(gather);
}
END_TEST

/* --- the command --- */

/* Its exit status; what it prints on stdout goes to *ret_out (malloc). */
static int scope_command(const char *const *more, char **ret_out)
{
	const char *argv[16] = {"driverec", "scope"};
	int argc = 2, status;
	size_t bytes;
	char *out_path = strdup(test_path(test_folder(), "out"));
	for (; *more && argc < 15; more++)
		argv[argc++] = *more;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open(out_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		dup2(fd, STDOUT_FILENO);
		setenv("HOME", test_folder(), 1);
		setenv("LC_ALL", "C.UTF-8", 1);
		char *copy[16] = {NULL};
		for (int i = 0; i < argc; i++)
			copy[i] = strdup(argv[i]);
		status = command_main(argc, copy);
		fflush(NULL);
		_exit(status); /* what the test itself holds is no leak of the command's */
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	*ret_out = test_read_file(out_path, &bytes);
	free(out_path);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static const struct {
	const char *name, *size, *more, *value;
} frames[] = {
	{"frame", "100x32", "--once", NULL},
	{"small", "40x10", "--ascii", NULL},
	{"zoomed", "80x24", "--span", "3s"},
	{"month", "80x24", "--span", "30d"},
	{"incident", "110x24", "--incident", "0a11"},
};

START_TEST(frames_are_as_they_were)
{
	char path[512], *out, *expected;
	size_t bytes;
	make_all();
	const char *arguments[] = {"--store",       store_path,       "--size", frames[_i].size,
				   frames[_i].more, frames[_i].value, NULL};
	ck_assert_int_eq(scope_command(arguments, &out), 0);
	snprintf(path, sizeof(path), "%s/%s.txt", SCOPE_FRAMES, frames[_i].name);
	if (getenv("UPDATE_GOLDEN"))
		test_write_file(path, out, strlen(out));
	expected = test_read_file(path, &bytes);
	ck_assert_msg(strcmp(out, expected) == 0, "%s is now\n%s", path, out);
	free(out);
	free(expected);
}
END_TEST

START_TEST(where_there_is_nothing_it_is_4)
{
	char *out;
	const char *nothing[] = {"--once", "--store", "/nonexistent/store", "--run-dir", test_folder(), NULL};
	ck_assert_int_eq(scope_command(nothing, &out), COMMAND_NO_DAEMON);
	ck_assert_str_eq(out, "");
	free(out);
}
END_TEST

START_TEST(sizes_that_are_none_are_misuse)
{
	static const char *const sizes[] = {"",     "80",      "80x",   "x24",      "0x24",
					    "80x0", "80x24x1", "-1x24", "99999x24", "80 x 24"};
	char *out;
	make_store();
	const char *arguments[] = {"--store", store_path, "--size", sizes[_i], NULL};
	ck_assert_int_eq(scope_command(arguments, &out), COMMAND_MISUSE);
	free(out);
}
END_TEST

START_TEST(json_has_the_same_numbers)
{
	char *out;
	make_all();
	const char *arguments[] = {"--store", store_path, "--json", "--size",
				   "95x40",   "--span",   "1min",   NULL};
	ck_assert_int_eq(scope_command(arguments, &out), 0);
	cJSON *json = cJSON_Parse(out);
	ck_assert_ptr_nonnull(json);
	const cJSON *steps = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "steps"), "longest_ns");
	ck_assert(cJSON_IsFalse(cJSON_GetObjectItem(json, "live")));
	ck_assert_int_eq(cJSON_GetArraySize(steps),
			 (int)cJSON_GetNumberValue(cJSON_GetObjectItem(json, "columns")));
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "tracks")), 2);
	ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "incidents")), 2);
	const cJSON *bad = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "overlay"), "bad");
	ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(bad, "length_ns")), "3000000000");
	cJSON_Delete(json);
	free(out);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return tcase;
}

static void add_layout(Suite *suite)
{
	TCase *tcase = add_case(suite, "layout");
	tcase_add_test(tcase, every_size_is_divided_without_a_rest_of_two);
	tcase_add_test(tcase, the_waveform_stands_under_its_limit);
	tcase_add_test(tcase, incidents_stand_at_their_time);
	tcase_add_test(tcase, a_busy_share_is_a_block_and_what_is_not_known_is_blank);
	tcase_add_test(tcase, in_ascii_no_byte_is_beyond_127);
	tcase_add_test(tcase, what_is_too_small_says_so);
	tcase_add_test(tcase, no_size_draws_outside);
	tcase_add_test(tcase, a_step_past_its_deadline_is_said);
}

static void add_gathering(Suite *suite)
{
	TCase *tcase = add_case(suite, "gathering");
	tcase_add_test(tcase, columns_hold_what_the_file_has);
	tcase_add_test(tcase, a_step_longer_than_the_window_fills_it);
	tcase_add_test(tcase, what_is_out_of_reach_is_not_idle);
	tcase_add_test(tcase, the_bad_step_lies_over_the_last_good_one);
	tcase_add_test(tcase, a_step_without_an_end_is_still_open);
	tcase_add_test(tcase, an_incident_without_its_raw_window_says_so);
	tcase_add_test(tcase, new_incidents_are_seen);
	tcase_add_test(tcase, names_stay_names);
	tcase = add_case(suite, "reading what is written");
	tcase_add_test(tcase, a_writer_may_go_on_meanwhile);
}

int main(void)
{
	Suite *suite = suite_create("scope");
	TCase *tcase = add_case(suite, "characters");
	tcase_add_test(tcase, characters_have_the_width_that_terminals_give_them);
	tcase_add_loop_test(tcase, what_moves_a_cursor_or_turns_the_writing_is_a_mark, 0, 9);
	tcase_add_test(tcase, a_text_is_cut_by_columns);
	tcase_add_test(tcase, without_utf_8_everything_is_ascii);
	tcase_add_test(tcase, a_line_sets_colours_and_takes_them_back);
	tcase = add_case(suite, "view");
	tcase_add_test(tcase, zooms_go_from_the_finest_bin_to_the_whole_month);
	tcase_add_test(tcase, tiers_of_odd_widths_have_zooms);
	tcase_add_test(tcase, the_window_ends_with_the_column_of_now);
	tcase_add_test(tcase, scrolling_leaves_now_and_comes_back);
	tcase_add_test(tcase, zooming_keeps_the_middle);
	tcase_add_test(tcase, tab_goes_round_the_incidents);
	tcase_add_test(tcase, a_pause_stays_where_it_was);
	tcase_add_loop_test(tcase, keys_come_out_of_what_terminals_send, 0, 11);
	add_layout(suite);
	add_gathering(suite);
	tcase = add_case(suite, "command");
	tcase_add_loop_test(tcase, frames_are_as_they_were, 0, (int)(sizeof(frames) / sizeof(frames[0])));
	tcase_add_test(tcase, where_there_is_nothing_it_is_4);
	tcase_add_loop_test(tcase, sizes_that_are_none_are_misuse, 0, 10);
	tcase_add_test(tcase, json_has_the_same_numbers);
	return test_run(suite);
}
