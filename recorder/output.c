/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plain_text.h"

enum { CELLS_MAX = 1 << 20 };
#define SECOND_NS 1000000000

struct output_table {
	const struct output_column *columns;
	int column_count;
	int error;
	size_t count, room;
	char **cells;
};

struct output_table *output_table_new(const struct output_column *columns, int count)
{
	struct output_table *table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	table->columns = columns;
	table->column_count = count < OUTPUT_COLUMNS_MAX ? count : OUTPUT_COLUMNS_MAX;
	return table;
}

void output_table_free(struct output_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->count; i++)
		free(table->cells[i]);
	free(table->cells);
	free(table);
}

static bool grow(struct output_table *table)
{
	size_t room = table->room ? table->room * 2 : 64;
	char **cells = room <= CELLS_MAX ? realloc(table->cells, room * sizeof(*cells)) : NULL;
	if (!cells)
		return false;
	table->cells = cells;
	table->room = room;
	return true;
}

void output_table_cell(struct output_table *table, const char *format, ...)
{
	if (!table || table->error)
		return;
	char *text = NULL;
	va_list values;
	va_start(values, format);
	if (vasprintf(&text, format, values) < 0)
		text = NULL;
	va_end(values);
	if (!text || (table->count == table->room && !grow(table))) {
		free(text);
		table->error = -ENOMEM;
		return;
	}
	plain_text(text, strlen(text) + 1, text, strlen(text));
	table->cells[table->count++] = text;
}

/* Columns on a terminal: UTF-8 continuation bytes take none. */
static int text_width(const char *text)
{
	int width = 0;
	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void print_cell(const struct output_table *table, int column, const char *text, int width, FILE *out)
{
	int pad = width - text_width(text);
	bool last = column == table->column_count - 1;
	if (table->columns[column].right)
		fprintf(out, "%*s%s", pad, "", text);
	else
		fprintf(out, "%s%*s", text, last ? 0 : pad, "");
	fputs(last ? "\n" : "  ", out);
}

int output_table_print(const struct output_table *table, FILE *out)
{
	int widths[OUTPUT_COLUMNS_MAX] = {0};
	if (!table)
		return -ENOMEM;
	for (int column = 0; column < table->column_count; column++) {
		widths[column] = text_width(table->columns[column].title);
		for (size_t i = (size_t)column; i < table->count; i += (size_t)table->column_count) {
			int width = text_width(table->cells[i]);
			widths[column] = width > widths[column] ? width : widths[column];
		}
	}
	for (int column = 0; column < table->column_count; column++)
		print_cell(table, column, table->columns[column].title, widths[column], out);
	for (size_t i = 0; i < table->count; i++) {
		int column = (int)(i % (size_t)table->column_count);
		print_cell(table, column, table->cells[i], widths[column], out);
	}
	return table->error;
}

char *output_count(char *out, uint64_t count)
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *at = out;
	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*at++ = ',';
		*at++ = digits[i];
	}
	*at = 0;
	return out;
}

char *output_signed(char *out, int64_t count)
{
	if (count >= 0)
		return output_count(out, (uint64_t)count);
	*out = '-';
	output_count(out + 1, 0 - (uint64_t)count);
	return out;
}

/* value / unit with three digits: 1.62, 41.5, 120. Rounded half up, in integers. */
static char *print_rounded(char *out, uint64_t value, uint64_t unit, const char *name)
{
	unsigned places = value / unit >= 100 ? 0 : value / unit >= 10 ? 1 : 2;
	uint64_t scale = places == 2 ? 100 : places == 1 ? 10 : 1;
	uint64_t whole = value / unit, rest = value % unit;
	uint64_t part = (uint64_t)(((unsigned __int128)rest * scale + unit / 2) / unit);
	if (part == scale) {
		whole++;
		part = 0;
	}
	if (places == 0)
		snprintf(out, OUTPUT_TEXT_MAX, "%" PRIu64 " %s", whole, name);
	else
		snprintf(out, OUTPUT_TEXT_MAX, "%" PRIu64 ".%0*" PRIu64 " %s", whole, (int)places, part,
			 name);
	return out;
}

char *output_bytes(char *out, uint64_t bytes)
{
	static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	if (bytes < 1024) {
		snprintf(out, OUTPUT_TEXT_MAX, "%" PRIu64 " B", bytes);
		return out;
	}
	unsigned n = 0;
	while (n < 5 && bytes >> (10 * (n + 2)))
		n++;
	uint64_t unit = (uint64_t)1 << (10 * (n + 1));
	if (bytes % unit == 0)
		snprintf(out, OUTPUT_TEXT_MAX, "%" PRIu64 " %s", bytes / unit, names[n]);
	else
		print_rounded(out, bytes, unit, names[n]);
	return out;
}

static char *print_long_duration(char *out, uint64_t ns)
{
	uint64_t seconds = ns / SECOND_NS;
	if (seconds < 3600)
		snprintf(out, OUTPUT_TEXT_MAX, "%d min %02d s", (int)(seconds / 60), (int)(seconds % 60));
	else if (seconds < 86400)
		snprintf(out, OUTPUT_TEXT_MAX, "%d h %02d min", (int)(seconds / 3600),
			 (int)(seconds / 60 % 60));
	else
		snprintf(out, OUTPUT_TEXT_MAX, "%" PRIu64 " d %d h", seconds / 86400,
			 (int)(seconds / 3600 % 24));
	return out;
}

char *output_duration(char *out, int64_t ns)
{
	uint64_t length = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	char *at = out;
	if (ns < 0)
		*at++ = '-';
	if (length < 1000)
		snprintf(at, OUTPUT_TEXT_MAX - 1, "%d ns", (int)length);
	else if (length < 999500) /* from here on it would be rounded to 1000 */
		print_rounded(at, length, 1000, "us");
	else if (length < 999500000)
		print_rounded(at, length, 1000000, "ms");
	else if (length < 120ull * SECOND_NS)
		print_rounded(at, length, SECOND_NS, "s");
	else
		print_long_duration(at, length);
	return out;
}

char *output_share(char *out, uint64_t part, uint64_t whole)
{
	if (whole == 0) {
		snprintf(out, OUTPUT_TEXT_MAX, "-");
		return out;
	}
	uint64_t permille = (uint64_t)((unsigned __int128)part * 1000 / whole);
	if (permille % 10 == 0)
		snprintf(out, OUTPUT_TEXT_MAX, "%" PRIu64 " %%", permille / 10);
	else
		snprintf(out, OUTPUT_TEXT_MAX, "%" PRIu64 ".%d %%", permille / 10, (int)(permille % 10));
	return out;
}

/* Seconds and ms, rounded down also before 1970. */
static time_t split_time(int64_t unix_ns, int *ret_ms)
{
	int64_t seconds = unix_ns / SECOND_NS, rest = unix_ns % SECOND_NS;
	if (rest < 0) {
		rest += SECOND_NS;
		seconds--;
	}
	*ret_ms = (int)(rest / 1000000);
	return (time_t)seconds;
}

static char *print_time(char *out, int64_t unix_ns, char between, const char *end)
{
	int ms;
	time_t seconds = split_time(unix_ns, &ms);
	struct tm utc;
	gmtime_r(&seconds, &utc);
	char date[24], clock[16];
	strftime(date, sizeof(date), "%Y-%m-%d", &utc);
	strftime(clock, sizeof(clock), "%H:%M:%S", &utc);
	snprintf(out, OUTPUT_TEXT_MAX, "%s%c%s.%03d%s", date, between, clock, ms, end);
	return out;
}

char *output_time(char *out, int64_t unix_ns)
{
	return print_time(out, unix_ns, ' ', " UTC");
}

char *output_iso(char *out, int64_t unix_ns)
{
	return print_time(out, unix_ns, 'T', "Z");
}

char *output_clock(char *out, int64_t unix_ns)
{
	int ms;
	time_t seconds = split_time(unix_ns, &ms);
	struct tm utc, local;
	gmtime_r(&seconds, &utc);
	localtime_r(&seconds, &local);
	size_t length = strftime(out, OUTPUT_TEXT_MAX, "%H:%M:%S", &utc);
	strftime(out + length, OUTPUT_TEXT_MAX - length, " (%H:%M:%S %Z)", &local);
	return out;
}

static void add_raw(cJSON *object, const char *name, const char *text)
{
	cJSON_AddRawToObject(object, name, text);
}

void output_json_ns(cJSON *object, const char *name, int64_t ns)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRId64, ns);
	cJSON_AddStringToObject(object, name, text);
}

void output_json_count(cJSON *object, const char *name, uint64_t count)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRIu64, count);
	add_raw(object, name, text);
}

void output_json_signed(cJSON *object, const char *name, int64_t count)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRId64, count);
	add_raw(object, name, text);
}

void output_json_text(cJSON *object, const char *name, const char *text)
{
	if (text)
		cJSON_AddStringToObject(object, name, text);
	else
		cJSON_AddNullToObject(object, name);
}

int output_json_print(cJSON *document, FILE *out)
{
	plain_text_json(document);
	char *text = document ? cJSON_Print(document) : NULL;
	int result = text ? 0 : -ENOMEM;
	if (text && (fputs(text, out) < 0 || fputc('\n', out) < 0))
		result = -EIO;
	cJSON_free(text);
	cJSON_Delete(document);
	return result;
}
