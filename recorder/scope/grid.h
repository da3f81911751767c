/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope/grid.h: a screen as a grid of cells, and how a line of it is written.
 *
 * A cell is one display column: wide characters take two, characters of no width are left out. Names go
 * through scope_grid_text(), which lets nothing through that moves a cursor or turns the direction of
 * writing.
 */
#ifndef RECORDER_SCOPE_GRID_H
#define RECORDER_SCOPE_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SCOPE_WIDTH_MAX = 512,
	SCOPE_HEIGHT_MAX = 200,
	/* What a line can take: a style and a character of up to 4 bytes a cell. */
	SCOPE_LINE_BYTES_MAX = SCOPE_WIDTH_MAX * 16
};

enum scope_style {
	SCOPE_PLAIN,
	SCOPE_DIM,
	SCOPE_BOLD,
	SCOPE_GOOD,     /* green */
	SCOPE_BUSY,     /* cyan */
	SCOPE_WARN,     /* yellow */
	SCOPE_CRITICAL, /* red */
	SCOPE_SELECTED, /* inverse */
	SCOPE_STYLES
};

struct scope_cell {
	uint32_t code; /* Unicode; 0 = the second half of a wide one */
	uint8_t style;
};

struct scope_grid {
	unsigned width, height;
	bool ascii; /* nothing but ASCII is written */
	struct scope_cell cell[SCOPE_HEIGHT_MAX][SCOPE_WIDTH_MAX];
};

/* Blank, of that size or the largest there is. */
void scope_grid_clear(struct scope_grid *grid, unsigned width, unsigned height, bool ascii);

/* Outside of the grid nothing is drawn. `ascii` is drawn where the grid is of ASCII alone. */
void scope_grid_glyph(struct scope_grid *grid, unsigned row, unsigned column, enum scope_style style,
		      uint32_t code, char ascii);

/* Text in at most `columns` columns; one that is cut ends with a mark. Returns the columns it took. */
unsigned scope_grid_text(struct scope_grid *grid, unsigned row, unsigned column, unsigned columns,
			 enum scope_style style, const char *text);
/* Display columns of a text. */
unsigned scope_grid_columns(const struct scope_grid *grid, const char *text);

/* A row as bytes, without what is blank at its end and without a newline. Returns their number; ends with a
 * 0. */
size_t scope_grid_line(const struct scope_grid *grid, unsigned row, bool color,
		       char ret_line[SCOPE_LINE_BYTES_MAX]);

/* The character at `text`, which ends with a 0: how many bytes and columns it takes. '?' for what cannot be
 * shown. */
size_t scope_character(const char *text, uint32_t *ret_code, unsigned *ret_columns);

#endif
