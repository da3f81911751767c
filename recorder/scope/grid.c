/* SPDX-License-Identifier: Apache-2.0 */
#include "grid.h"

#include <string.h>

#include "plain_text.h"

struct code_range {
	uint32_t from, to;
};

/*
 * Not wcwidth(): it answers by the locale, and people come by ssh to hosts that lack theirs. The blocks that
 * take two columns in every terminal, and the marks that take none.
 */
static const struct code_range wide[] = {
	{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xa960, 0xa97f}, {0xac00, 0xd7a3},
	{0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6}, {0x1f300, 0x1f64f},
	{0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};
static const struct code_range none[] = {
	{0x0300, 0x036f}, {0x0483, 0x0489},   {0x0591, 0x05bd}, {0x0610, 0x061a}, {0x064b, 0x065f},
	{0x0e31, 0x0e31}, {0x0e34, 0x0e3a},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200d},
	{0x2060, 0x2064}, {0x20d0, 0x20ff},   {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff},
	{0xad, 0xad},     {0xe0000, 0xe0fff},
};

static bool is_in(const struct code_range *ranges, size_t count, uint32_t code)
{
	for (size_t i = 0; i < count; i++)
		if (code >= ranges[i].from && code <= ranges[i].to)
			return true;
	return false;
}

size_t scope_character(const char *text, uint32_t *ret_code, unsigned *ret_columns)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t length = plain_text_character(text, strnlen(text, 4));
	*ret_columns = 1;
	*ret_code = '?';
	if (length == 0) {
		/* One mark for the whole of what is well-formed and must not be shown. */
		length = 1;
		while (bytes[0] >= 0xc2 && length < 4 && (bytes[length] & 0xc0) == 0x80)
			length++;
		return length;
	}
	uint32_t code = length == 1 ? bytes[0] : bytes[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++)
		code = code << 6 | (bytes[i] & 0x3f);
	if (is_in(none, sizeof(none) / sizeof(none[0]), code))
		*ret_columns = 0;
	else if (is_in(wide, sizeof(wide) / sizeof(wide[0]), code))
		*ret_columns = 2;
	*ret_code = code;
	return length;
}

void scope_grid_clear(struct scope_grid *grid, unsigned width, unsigned height, bool ascii)
{
	grid->width = width < SCOPE_WIDTH_MAX ? width : SCOPE_WIDTH_MAX;
	grid->height = height < SCOPE_HEIGHT_MAX ? height : SCOPE_HEIGHT_MAX;
	grid->ascii = ascii;
	for (unsigned row = 0; row < grid->height; row++)
		for (unsigned column = 0; column < grid->width; column++)
			grid->cell[row][column] = (struct scope_cell){.code = ' ', .style = SCOPE_PLAIN};
}

void scope_grid_glyph(struct scope_grid *grid, unsigned row, unsigned column, enum scope_style style,
		      uint32_t code, char ascii)
{
	if (row < grid->height && column < grid->width)
		grid->cell[row][column] = (struct scope_cell){
			.code = grid->ascii ? (uint32_t)(unsigned char)ascii : code, .style = (uint8_t)style};
}

/* What stands for a character in this grid. */
static size_t next_character(const struct scope_grid *grid, const char *text, uint32_t *ret_code,
			     unsigned *ret_columns)
{
	size_t length = scope_character(text, ret_code, ret_columns);
	if (grid->ascii && *ret_code >= 0x80 && *ret_columns > 0) {
		*ret_code = '?';
		*ret_columns = 1;
	}
	return length;
}

unsigned scope_grid_columns(const struct scope_grid *grid, const char *text)
{
	unsigned sum = 0, columns;
	uint32_t code;
	while (*text) {
		text += next_character(grid, text, &code, &columns);
		sum += columns;
	}
	return sum;
}

unsigned scope_grid_text(struct scope_grid *grid, unsigned row, unsigned column, unsigned columns,
			 enum scope_style style, const char *text)
{
	unsigned used = 0;
	if (row >= grid->height || column >= grid->width)
		return 0;
	if (columns > grid->width - column)
		columns = grid->width - column;
	bool cut = scope_grid_columns(grid, text) > columns;
	while (*text && columns > 0) {
		uint32_t code;
		unsigned takes;
		size_t length = next_character(grid, text, &code, &takes);
		if (takes > columns - (cut ? 1 : 0) - used)
			break;
		text += length;
		if (takes == 0)
			continue;
		grid->cell[row][column + used] = (struct scope_cell){.code = code, .style = (uint8_t)style};
		if (takes == 2)
			grid->cell[row][column + used + 1] = (struct scope_cell){.style = (uint8_t)style};
		used += takes;
	}
	if (cut && columns > 0)
		scope_grid_glyph(grid, row, column + used++, style, 0x2026, '>');
	return used;
}

static size_t put_code(char *out, uint32_t code)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	for (size_t i = length - 1; i > 0; i--, code >>= 6)
		out[i] = (char)(0x80 | (code & 0x3f));
	out[0] = (char)(unsigned char)((0xf00u >> length & 0xff) | code);
	return length;
}

static size_t put_style(char *out, unsigned style)
{
	static const char *const sgr[SCOPE_STYLES] = {"\x1b[0m",    "\x1b[0;2m",  "\x1b[0;1m",  "\x1b[0;32m",
						      "\x1b[0;36m", "\x1b[0;33m", "\x1b[0;31m", "\x1b[0;7m"};
	size_t bytes = strlen(sgr[style]);
	memcpy(out, sgr[style], bytes);
	return bytes;
}

size_t scope_grid_line(const struct scope_grid *grid, unsigned row, bool color,
		       char ret_line[SCOPE_LINE_BYTES_MAX])
{
	unsigned end = grid->width, style = SCOPE_PLAIN;
	size_t used = 0;
	while (end > 0 && grid->cell[row][end - 1].code == ' ' &&
	       grid->cell[row][end - 1].style != SCOPE_SELECTED)
		end--;
	for (unsigned column = 0; column < end; column++) {
		const struct scope_cell *cell = &grid->cell[row][column];
		if (cell->code == 0)
			continue;
		if (color && cell->style != style) {
			style = cell->style;
			used += put_style(ret_line + used, style);
		}
		used += put_code(ret_line + used, cell->code);
	}
	if (style != SCOPE_PLAIN)
		used += put_style(ret_line + used, SCOPE_PLAIN);
	ret_line[used] = 0;
	return used;
}
