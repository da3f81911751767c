/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h: GNU-style command line options from one table a command.
 *
 * A command describes its options once; parsing, the --help text and the man page all come from that table.
 *
 *     struct show_options {
 *             bool json;
 *             int64_t last_ns;
 *     };
 *     static const struct option_row show_options[] = {
 *             OPTION_ROW_FLAG('j', "json", struct show_options, json, "print JSON"),
 *             OPTION_ROW(0, "last", "TIME", OPTION_DURATION, struct show_options, last_ns, "only the last
 * TIME"), OPTION_ROWS_END,
 *     };
 */
#ifndef RECORDER_OPTIONS_H
#define RECORDER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The kind says what is accepted and of which type the field is. */
enum option_kind {
	OPTION_FLAG = 1, /* bool; no value */
	OPTION_TEXT,     /* const char *, into argv */
	OPTION_TEXTS,    /* struct option_texts: may be given more than once */
	OPTION_NUMBER,   /* int64_t */
	OPTION_DURATION, /* int64_t ns: "30s", "2 min" */
	OPTION_BYTES     /* int64_t bytes: "16MiB" */
};

enum { OPTION_TEXTS_MAX = 32, OPTIONS_BYTES_MAX = 2048 };

struct option_texts {
	int count;
	const char *text[OPTION_TEXTS_MAX];
};

struct option_row {
	char short_name; /* 0 = none */
	const char *long_name;
	const char *value; /* what the value is called in help; NULL for a flag */
	enum option_kind kind;
	size_t offset; /* of the field in the command's struct */
	const char *help;
	int64_t low, high; /* numbers, ns and bytes; both 0 = any that is not negative */
};

#define OPTION_ROW_BOUND(short_name, long_name, value, kind, type, field, low, high, help)                   \
	{                                                                                                    \
		short_name, long_name, value, kind, offsetof(type, field), help, low, high                   \
	}
#define OPTION_ROW(short_name, long_name, value, kind, type, field, help)                                    \
	OPTION_ROW_BOUND(short_name, long_name, value, kind, type, field, 0, 0, help)
#define OPTION_ROW_FLAG(short_name, long_name, type, field, help)                                            \
	OPTION_ROW(short_name, long_name, NULL, OPTION_FLAG, type, field, help)
#define OPTION_ROWS_END                                                                                      \
	{                                                                                                    \
		.long_name = NULL                                                                            \
	}

/* The operands left over, in order; argv[argc] is NULL. */
struct options_result {
	bool help;
	const char *config_path; /* --config; NULL = not given */
	int argc;
	char **argv;
};

/*
 * Parses argv[1..] by `rows` (NULL = none) and the options that every command has (--help, --config) into
 * `fields`. `who` is for messages: "driverec show". Operands may stand between options unless
 * `stop_at_operand`. Returns 0, or -EINVAL after one line on `errors`.
 */
int options_parse(const struct option_row *rows, const char *who, bool stop_at_operand, int argc, char **argv,
		  void *fields, FILE *errors, struct options_result *ret_result);

/* The options that every command has. */
const struct option_row *options_common(void);

/* "  -j, --json          print JSON", folded at 100 columns. */
void options_print_help(const struct option_row *rows, FILE *out);

/* Prints `text` folded at `width` columns, each line after the first indented by `indent`. */
void options_print_folded(const char *text, int column, int indent, int width, FILE *out);

#endif
