/* SPDX-License-Identifier: Apache-2.0 */
/* Characters, the part of time that is shown, and the layout of `driverec scope`, cell by cell. */
#include <stdio.h>
#include <stdlib.h>

#include "scope_model.h"

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

int main(void)
{
	Suite *suite = suite_create("scope, drawing");
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
	tcase = add_case(suite, "layout");
	tcase_add_test(tcase, every_size_is_divided_without_a_rest_of_two);
	tcase_add_test(tcase, the_waveform_stands_under_its_limit);
	tcase_add_test(tcase, incidents_stand_at_their_time);
	tcase_add_test(tcase, a_busy_share_is_a_block_and_what_is_not_known_is_blank);
	tcase_add_test(tcase, in_ascii_no_byte_is_beyond_127);
	tcase_add_test(tcase, what_is_too_small_says_so);
	tcase_add_test(tcase, no_size_draws_outside);
	tcase_add_test(tcase, a_step_past_its_deadline_is_said);
	return test_run(suite);
}
