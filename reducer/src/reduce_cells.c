/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merged spans in the place of those that go.
 *
 * A frame is what lies directly within one span that stays (or within none): the spans of the row below it
 * and, with each one that goes, all that it holds. A frame is cut into cells, one a bin; on the top frame also
 * where spans of the overflow row that stay begin and end, so that a cell is covered by them wholly or not at
 * all. What goes is added up in parts: a part lies between two spans that stay, within a cell. Only lengths
 * clipped to the cell are added, so a part's rectangles are as long as its rows were busy; they are put at
 * the part's first start, row within row, and fit: each row's spans lay within those of the row above.
 *
 * Where a span runs on into the next cell, the rectangle is put at the end of its cell and what runs on at the
 * beginning of the next: both touch and become one. So every rectangle begins with the events it counts. (In
 * one case it cannot: a span longer than a cell cut short by the overflow row. Then a rectangle counts 0.)
 *
 * Parts of one cell may trade places with the spans between them, for all of it lies in one bin of one frame:
 * they are put together wherever there is room for both.
 *
 * No rectangle is longer than the track's longest span, so that this one stays the longest for any reader: where
 * short spans are dense a part ends when it is full. Within a span that stays that is so by itself. Only on a track
 * that is so busy with spans of one length that this would leave most of them, rectangles may be as long as a bin.
 *
 * Spans of the overflow row that go come afterwards (reduce_overlap.c).
 */
#include "reduce_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NO_PART = -1 };

struct part_row {
	int64_t busy, first;
	uint64_t events;
	int64_t sum_ps, longest_ps;
	uint32_t members, longest, name;
	bool one_name;
	bool carried; /* begins with what came over */
};

struct part {
	int64_t from, to; /* the room between spans that stay */
	bool carried;
	bool same_room;   /* as the part before it */
	bool gone;        /* put together with another one */
	unsigned rows, room;
	struct part_row *row;
};

struct frame_row {
	int64_t reach; /* the end of the last span that went */
	uint32_t last; /* that span */
	bool has_pending;
	struct reduce_rectangle pending; /* may still grow */
};

struct frame {
	unsigned base; /* the row of what lies directly in it */
	int64_t end;
	int64_t limit; /* no rectangle is longer */
	bool in_cell;
	int64_t cell_from, cell_to;
	int64_t shut_until; /* the end of the last span that stays */
	struct part *part;
	int n_parts, parts_room, open; /* index of the part that grows */
	struct frame_row *row;
	unsigned rows;
};

struct reduce_cells {
	struct frame frame[REDUCE_ROWS + 1];
	unsigned depth; /* frames in use; 0 is the top one */
	struct reducer_reduce *reduce;
	const int64_t *cut;
	size_t n_cuts, next_cut;
	int64_t bin_ps;
	uint32_t track;
	struct reduce_rectangles *out;
	int failed;
};

static void finish_rectangle(struct reduce_cells *c, const struct reduce_rectangle *one)
{
	struct reduce_columns *col = &c->reduce->col;
	uint32_t e = one->longest;
	/* In the place of a single one it would be that one without its name. */
	if (one->members == 1 && one->from == col->start[e] && one->to - one->from == col->length[e])
		col->bits[e] |= BIT_KEEP;
	else if (reduce_rectangle_add(c->out, one) < 0)
		c->failed = -ENOMEM;
}

static void flush_pending(struct reduce_cells *c, struct frame *f)
{
	for (unsigned i = 0; i < f->rows; i++) {
		if (f->row[i].has_pending)
			finish_rectangle(c, &f->row[i].pending);
		f->row[i].has_pending = false;
	}
}

static void join(struct reduce_rectangle *into, const struct reduce_rectangle *from)
{
	if (from->members) {
		into->one_name = into->one_name && from->one_name && (into->name == from->name);
		if (!into->members || from->longest_ps > into->longest_ps) {
			into->longest_ps = from->longest_ps;
			into->longest = from->longest;
		}
	}
	into->to = from->to;
	into->events += from->events;
	into->members += from->members;
	reduce_add_ps(&into->sum_ps, from->sum_ps);
}

static void put(struct reduce_cells *c, struct frame *f, unsigned k, const struct part_row *row, int64_t from)
{
	struct frame_row *at = &f->row[k];
	struct reduce_rectangle one = {.from = from,
				       .to = from + row->busy,
				       .events = row->events,
				       .sum_ps = row->sum_ps,
				       .longest_ps = row->longest_ps,
				       .members = row->members,
				       .longest = row->longest,
				       .name = row->name,
				       .track = c->track,
				       .row = (uint8_t)(f->base + k),
				       .one_name = row->one_name};
	if (at->has_pending && at->pending.to == from && (row->carried || one.to - at->pending.from <= f->limit)) {
		join(&at->pending, &one);
		return;
	}
	if (at->has_pending)
		finish_rectangle(c, &at->pending);
	at->pending = one;
	at->has_pending = true;
}

static int64_t clamp(int64_t at, int64_t low, int64_t high)
{
	return at > high ? high : at < low ? low : at;
}

/* Puts a part's rows, each within the one above. */
static void put_part(struct reduce_cells *c, struct frame *f, const struct part *part, bool last)
{
	int64_t from = part->from, to = part->to;
	for (unsigned k = 0; k < part->rows; k++) {
		const struct part_row *row = &part->row[k];
		bool out = last && f->row[k].reach > f->cell_to;
		if (!row->members && !row->carried)
			break;
		if (row->carried)
			from = f->cell_from;
		else if (out)
			from = f->cell_to - row->busy;
		else
			from = clamp(row->first, from, to - row->busy);
		to = from + row->busy;
		put(c, f, k, row, from);
	}
}

static int64_t busy_of(const struct part *part)
{
	return part->rows ? part->row[0].busy : 0;
}

static int need_rows(struct part *part, unsigned rows)
{
	if (rows > part->room) {
		struct part_row *grown = realloc(part->row, (rows + 4) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		part->row = grown;
		part->room = rows + 4;
	}
	for (; part->rows < rows; part->rows++)
		part->row[part->rows] = (struct part_row){.one_name = true};
	return 0;
}

/* Adds all of one part to another. */
static int put_together(struct part *into, struct part *from)
{
	int result = need_rows(into, from->rows);
	if (result < 0)
		return result;
	for (unsigned k = 0; k < from->rows; k++) {
		struct part_row *a = &into->row[k];
		const struct part_row *b = &from->row[k];
		if (b->members) {
			a->one_name = (!a->members && !a->carried) ? b->one_name
								   : a->one_name && b->one_name && a->name == b->name;
			if (!a->members && !a->carried) {
				a->name = b->name;
				a->first = b->first;
			}
			if (!a->members || b->longest_ps > a->longest_ps) {
				a->longest_ps = b->longest_ps;
				a->longest = b->longest;
			}
		}
		a->busy += b->busy;
		a->events += b->events;
		a->members += b->members;
		reduce_add_ps(&a->sum_ps, b->sum_ps);
	}
	from->gone = true;
	return 0;
}

/* Time in a part's room that none of the cell's parts needs. */
static int64_t room_left(const struct frame *f, int at)
{
	int64_t left = f->part[at].to - f->part[at].from - busy_of(&f->part[at]);
	if (at > 0 && f->part[at].same_room && !f->part[at - 1].gone)
		left -= busy_of(&f->part[at - 1]);
	if (at + 1 < f->n_parts && f->part[at + 1].same_room && !f->part[at + 1].gone)
		left -= busy_of(&f->part[at + 1]);
	return left;
}

/* How long the rectangle of a part becomes with what it touches in the cells before and after. */
static int64_t whole_length(const struct frame *f, int at, bool out)
{
	int64_t length = busy_of(&f->part[at]);
	if (at == 0 && f->part[0].carried && f->row[0].has_pending && f->row[0].pending.to == f->cell_from)
		length += f->row[0].pending.to - f->row[0].pending.from;
	if (at == f->n_parts - 1 && out)
		length += f->row[0].reach - f->cell_to;
	return length;
}

static bool takes(const struct frame *f, int into, int from, bool out)
{
	if (!(f->part[from].same_room && into == from - 1) && room_left(f, into) < busy_of(&f->part[from]))
		return false;
	return whole_length(f, into, out) <= f->limit - busy_of(&f->part[from]);
}

/* Where the others go: the part that must stay where it is, or the one with the most room. */
static int target_of(const struct frame *f, bool out)
{
	int target = f->n_parts - 1;
	if (out)
		return target;
	if (f->part[0].carried)
		return 0;
	for (int i = 0; i < f->n_parts; i++)
		if (room_left(f, i) > room_left(f, target))
			target = i;
	return target;
}

/* Brings the parts of a cell together where there is room. The first stays at the cell's begin if it was carried
 * over, the last at its end if it runs on. */
static void gather_parts(struct reduce_cells *c, struct frame *f, bool out)
{
	if (f->n_parts < 2)
		return;
	int target = target_of(f, out);
	for (int i = 0; i < f->n_parts; i++) {
		bool fixed = (i == 0 && f->part[0].carried) || (i == f->n_parts - 1 && out);
		int into = NO_PART;
		if (i == target || fixed)
			continue;
		if (f->part[i].same_room && takes(f, i - 1, i, out))
			into = i - 1;
		else if (takes(f, target, i, out))
			into = target;
		else if (f->part[0].carried && takes(f, 0, i, out))
			into = 0;
		else if (i > target)
			target = i; /* that one is full */
		if (into != NO_PART && put_together(&f->part[into], &f->part[i]) < 0)
			c->failed = -ENOMEM;
	}
}

static void flush_cell(struct reduce_cells *c, struct frame *f)
{
	bool out = f->rows > 0 && f->row[0].reach > f->cell_to;
	gather_parts(c, f, out);
	for (int i = 0; i < f->n_parts; i++) {
		/* Beside what was carried over, which may have grown. */
		if (f->part[i].same_room && !f->part[i - 1].gone)
			f->part[i].from += busy_of(&f->part[i - 1]);
		if (!f->part[i].gone)
			put_part(c, f, &f->part[i], i == f->n_parts - 1);
	}
	f->n_parts = 0;
	f->open = NO_PART;
}

static struct part *add_part(struct reduce_cells *c, struct frame *f, int64_t from)
{
	if (f->n_parts == f->parts_room) {
		int room = f->parts_room ? f->parts_room * 2 : 4;
		struct part *grown = realloc(f->part, (size_t)room * sizeof(*grown));
		if (!grown) {
			c->failed = -ENOMEM;
			return NULL;
		}
		memset(grown + f->parts_room, 0, (size_t)(room - f->parts_room) * sizeof(*grown));
		f->part = grown;
		f->parts_room = room;
	}
	struct part *part = &f->part[f->n_parts];
	struct part_row *row = part->row;
	unsigned room = part->room;
	*part = (struct part){.from = from, .to = f->cell_to < f->end ? f->cell_to : f->end, .room = room, .row = row};
	f->open = f->n_parts++;
	return part;
}

/* The cell of the frame that begins at or holds `at`. */
static void open_cell(struct reduce_cells *c, struct frame *f, int64_t at)
{
	int64_t bin = reduce_bin_of(at, c->bin_ps);
	f->cell_from = bin * c->bin_ps;
	f->cell_to = f->cell_from + c->bin_ps;
	if (f == &c->frame[0] && c->n_cuts) {
		while (c->next_cut < c->n_cuts && c->cut[c->next_cut] <= at)
			c->next_cut++;
		if (c->next_cut > 0 && c->cut[c->next_cut - 1] > f->cell_from)
			f->cell_from = c->cut[c->next_cut - 1];
		if (c->next_cut < c->n_cuts && c->cut[c->next_cut] < f->cell_to)
			f->cell_to = c->cut[c->next_cut];
	}
	f->in_cell = true;
	f->open = NO_PART;
}

/* What runs on into the cell that was just opened at the end of the one before. */
static void carry_over(struct reduce_cells *c, struct frame *f)
{
	struct part *part = add_part(c, f, f->cell_from);
	if (!part)
		return;
	part->carried = true;
	for (unsigned k = 0; k < f->rows && f->row[k].reach > f->cell_from; k++) {
		int64_t to = f->row[k].reach < f->cell_to ? f->row[k].reach : f->cell_to;
		if (need_rows(part, k + 1) < 0) {
			c->failed = -ENOMEM;
			return;
		}
		uint32_t e = f->row[k].last;
		part->row[k] = (struct part_row){.busy = to - f->cell_from,
						 .first = f->cell_from,
						 .longest = e,
						 .name = c->reduce->col.name[e],
						 .one_name = true,
						 .carried = true};
	}
}

/* Leaves every cell that ends at or before `at`. */
static void leave_cells(struct reduce_cells *c, struct frame *f, int64_t at)
{
	while (f->in_cell && f->cell_to <= at) {
		flush_cell(c, f);
		f->in_cell = false;
		if (f->rows && f->row[0].reach > f->cell_to) {
			open_cell(c, f, f->cell_to);
			carry_over(c, f);
		}
	}
}

static void close_frame(struct reduce_cells *c, struct frame *f)
{
	while (f->in_cell) {
		bool on = f->rows && f->row[0].reach > f->cell_to;
		if (!on) {
			flush_cell(c, f);
			f->in_cell = false;
		} else {
			leave_cells(c, f, f->cell_to);
		}
	}
	flush_pending(c, f);
}

static void start_frame(struct frame *f, unsigned base, int64_t from, int64_t end)
{
	f->base = base;
	f->end = end;
	f->limit = INT64_MAX;
	f->in_cell = false;
	f->shut_until = from;
	f->n_parts = 0;
	f->open = NO_PART;
	for (unsigned k = 0; k < f->rows; k++)
		f->row[k].reach = INT64_MIN;
}

static int need_frame_rows(struct frame *f, unsigned rows)
{
	if (rows <= f->rows)
		return 0;
	struct frame_row *grown = realloc(f->row, rows * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	for (unsigned k = f->rows; k < rows; k++)
		grown[k] = (struct frame_row){.reach = INT64_MIN};
	f->row = grown;
	f->rows = rows;
	return 0;
}

/* Ends the room of the open part. */
static void close_room(struct frame *f, int64_t at)
{
	int i = f->open;
	if (i == NO_PART)
		return;
	f->part[i].to = at;
	if (f->part[i].same_room)
		f->part[i - 1].to = at;
	f->open = NO_PART;
}

/* The part that a span of row k, from `at` to `end`, belongs to. */
static struct part *part_for(struct reduce_cells *c, struct frame *f, unsigned k, int64_t at, int64_t end)
{
	struct part *open = f->open != NO_PART ? &f->part[f->open] : NULL;
	if (!open)
		return add_part(c, f, f->shut_until > f->cell_from ? f->shut_until : f->cell_from);
	/* What lies in a span that came over belongs to that; what comes after it begins a part of its own. */
	if (open->carried) {
		if (at < f->cell_from + open->row[0].busy)
			return open;
		int64_t from = open->from;
		struct part *next = add_part(c, f, from);
		if (next)
			next->same_room = true;
		return next;
	}
	if (k > 0 || busy_of(open) <= f->limit - (end - at))
		return open;
	close_room(f, at);
	return add_part(c, f, at);
}

static void count_span(struct reduce_cells *c, struct part_row *row, uint32_t e)
{
	const struct reduce_columns *col = &c->reduce->col;
	uint64_t events = 1;
	int64_t sum = col->length[e], longest = col->length[e];
	if (col->bits[e] & BIT_MERGED) {
		const struct reduce_stands *stands = reduce_stands_of(c->reduce, e);
		if (stands) {
			events = stands->events;
			sum = stands->sum_ps;
			longest = stands->longest_ps;
		}
	}
	if (!row->members && !row->carried) {
		row->first = col->start[e];
		row->name = col->name[e];
		row->one_name = true;
	}
	if (col->name[e] != row->name || (col->bits[e] & BIT_MERGED))
		row->one_name = false;
	if (!row->members || longest > row->longest_ps) {
		row->longest_ps = longest;
		row->longest = e;
	}
	row->members++;
	row->events += events;
	reduce_add_ps(&row->sum_ps, sum);
}

static void merge_span(struct reduce_cells *c, struct frame *f, unsigned k, uint32_t e)
{
	const struct reduce_columns *col = &c->reduce->col;
	int64_t from = col->start[e], end = from + col->length[e];
	leave_cells(c, f, from);
	if (!f->in_cell)
		open_cell(c, f, from);
	struct part *part = part_for(c, f, k, from, end);
	if (!part || need_rows(part, k + 1) < 0 || need_frame_rows(f, k + 1) < 0) {
		c->failed = -ENOMEM;
		return;
	}
	struct part_row *row = &part->row[k];
	count_span(c, row, e);
	int64_t to = end < f->cell_to ? end : f->cell_to;
	if (to > from)
		row->busy += to - from;
	if (end > f->row[k].reach || f->row[k].reach == INT64_MIN) {
		f->row[k].reach = end;
		f->row[k].last = e;
	}
}

/* A span that stays ends the part before it, and holds a frame. */
static void stay(struct reduce_cells *c, struct frame *f, unsigned row, uint32_t e)
{
	const struct reduce_columns *col = &c->reduce->col;
	int64_t from = col->start[e], end = from + col->length[e];
	leave_cells(c, f, from);
	close_room(f, from);
	if (end > f->shut_until)
		f->shut_until = end;
	if (row + 1 < REDUCE_ROWS)
		start_frame(&c->frame[c->depth++], row + 1, from, end);
}

static void close_ended(struct reduce_cells *c, int64_t at)
{
	while (c->depth > 1 && c->frame[c->depth - 1].end <= at)
		close_frame(c, &c->frame[--c->depth]);
}

static void one_span(struct reduce_cells *c, uint32_t e)
{
	const struct reduce_columns *col = &c->reduce->col;
	uint32_t row = col->bits[e] & BITS_ROW_MASK;
	if (row == REDUCE_OVERFLOW)
		return;
	close_ended(c, col->start[e]);
	struct frame *top = &c->frame[c->depth - 1];
	if (col->bits[e] & BIT_KEEP)
		stay(c, top, row, e);
	else
		merge_span(c, top, row - top->base, e);
}

int reduce_cells_track(struct reduce_cells *c, struct reducer_reduce *r, uint32_t at, int64_t bin_ps,
		       const struct reduce_vector *cuts, struct reduce_rectangles *out)
{
	const struct reduce_track *track = &r->tracks.track[at];
	const uint32_t *order = r->order + track->first;
	c->reduce = r;
	c->cut = cuts->at;
	c->n_cuts = cuts->count;
	c->next_cut = 0;
	c->bin_ps = bin_ps;
	c->track = at;
	c->out = out;
	c->failed = 0;
	c->depth = 1;
	/* Nothing is put before the track's first start or after its last end (M2). */
	start_frame(&c->frame[0], 0, track->first_ps, track->last_ps);
	c->frame[0].limit = reduce_rectangle_limit(r, track);
	for (uint32_t i = 0; i < track->n_spans && !c->failed; i++)
		one_span(c, order[i]);
	close_ended(c, INT64_MAX);
	close_frame(c, &c->frame[0]);
	return c->failed;
}

int reduce_cells_new(struct reduce_cells **ret_cells)
{
	struct reduce_cells *cells = calloc(1, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	*ret_cells = cells;
	return 0;
}

static void free_frame(struct frame *f)
{
	for (int i = 0; i < f->parts_room; i++)
		free(f->part[i].row);
	free(f->part);
	free(f->row);
}

void reduce_cells_free(struct reduce_cells *cells)
{
	if (!cells)
		return;
	for (unsigned i = 0; i <= REDUCE_ROWS; i++)
		free_frame(&cells->frame[i]);
	free(cells);
}
