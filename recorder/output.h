/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h: what commands print for people (tables, rounded quantities with units) and for programs (JSON).
 *
 * In JSON a time in ns is a string: it has more digits than a double holds. Counts are exact numbers.
 */
#ifndef RECORDER_OUTPUT_H
#define RECORDER_OUTPUT_H

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>

enum { OUTPUT_TEXT_MAX = 64, OUTPUT_COLUMNS_MAX = 16 };

/*
 * A table: columns are as wide as their widest cell, two blanks between. Numbers go to the right. Cells are
 * copied. When out of memory rows are dropped and output_table_print() returns -ENOMEM.
 */
struct output_table;
struct output_column {
	const char *title;
	int right; /* aligned to the right */
};
struct output_table *output_table_new(const struct output_column *columns, int count);
void output_table_free(struct output_table *table);
/* One call a cell, row by row. */
void output_table_cell(struct output_table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Returns 0 or -errno. */
int output_table_print(const struct output_table *table, FILE *out);

/* For people. Return `out`, of OUTPUT_TEXT_MAX bytes. */
char *output_count(char *out, uint64_t count);                /* 14,203 */
char *output_signed(char *out, int64_t count);                /* -1,024 */
char *output_bytes(char *out, uint64_t bytes);                /* 41 MiB, 1.4 GiB, 900 B */
char *output_duration(char *out, int64_t ns);                 /* 9.70 s, 120 ms, 2 h 05 min */
char *output_share(char *out, uint64_t part, uint64_t whole); /* 0.4 % */
char *output_time(char *out, int64_t unix_ns);                /* 2026-11-30 03:12:44.118 UTC */
char *output_clock(char *out, int64_t unix_ns);               /* 03:12:44 (04:12:44 CET) */
char *output_iso(char *out, int64_t unix_ns);                 /* 2026-11-30T03:12:44.118Z */

/* For programs. Out of memory leaves the member out. */
void output_json_ns(cJSON *object, const char *name, int64_t ns);
void output_json_count(cJSON *object, const char *name, uint64_t count);
void output_json_signed(cJSON *object, const char *name, int64_t count);
void output_json_text(cJSON *object, const char *name, const char *text); /* NULL text: null */

/* Prints the document and a newline, and frees it. Returns 0, or -errno where it could not. */
int output_json_print(cJSON *document, FILE *out);

#endif
