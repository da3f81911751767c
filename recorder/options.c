/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "suggest.h"
#include "units.h"

enum { ROWS_MAX = 40, HELP_COLUMN = 26, HELP_WIDTH = 100, FIRST_CODE = 256 };

struct common {
	bool help;
	const char *config_path;
};

static const struct option_row common_rows[] = {
	OPTION_ROW(0, "config", "FILE", OPTION_TEXT, struct common, config_path,
		   "read this configuration file"),
	OPTION_ROW_FLAG('h', "help", struct common, help, "show this help"),
	OPTION_ROWS_END,
};

const struct option_row *options_common(void)
{
	return common_rows;
}

/* Both tables as getopt wants them; code FIRST_CODE + n is row n. */
struct parser {
	const char *who;
	FILE *errors;
	const struct option_row *row[ROWS_MAX];
	void *fields[ROWS_MAX];
	int count;
	struct option long_options[ROWS_MAX + 1];
	char short_options[2 * ROWS_MAX + 3];
};

static void add_rows(struct parser *parser, const struct option_row *rows, void *fields)
{
	char *letters = parser->short_options + strlen(parser->short_options);
	for (; rows && rows->long_name && parser->count < ROWS_MAX; rows++) {
		int n = parser->count++;
		parser->row[n] = rows;
		parser->fields[n] = fields;
		parser->long_options[n] = (struct option){
			rows->long_name, rows->value ? required_argument : no_argument, NULL, FIRST_CODE + n};
		if (!rows->short_name)
			continue;
		*letters++ = rows->short_name;
		if (rows->value)
			*letters++ = ':';
		*letters = 0;
	}
}

static int find_row(const struct parser *parser, int code)
{
	if (code >= FIRST_CODE)
		return code - FIRST_CODE;
	for (int n = 0; n < parser->count; n++)
		if (parser->row[n]->short_name == code)
			return n;
	return -1;
}

static int complain_unknown(const struct parser *parser, const char *word)
{
	struct suggest suggest;
	char name[64];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	suggest_init(&suggest, name + (strncmp(name, "--", 2) == 0 ? 2 : 0));
	if (name[1] == '-')
		for (int n = 0; n < parser->count; n++)
			suggest_offer(&suggest, parser->row[n]->long_name);
	if (suggest.best)
		fprintf(parser->errors, "%s: option '%s' is unknown; did you mean --%s?\n", parser->who, name,
			suggest.best);
	else
		fprintf(parser->errors, "%s: option '%s' is unknown; see %s --help\n", parser->who, name,
			parser->who);
	return -EINVAL;
}

static int complain_value(const struct parser *parser, const struct option_row *row, const char *value,
			  const char *wanted)
{
	fprintf(parser->errors, "%s: option '--%s': '%s' is not %s\n", parser->who, row->long_name, value,
		wanted);
	return -EINVAL;
}

static int complain_bounds(const struct parser *parser, const struct option_row *row, const char *value)
{
	char low[UNITS_TEXT_MAX], high[UNITS_TEXT_MAX];
	if (row->kind == OPTION_DURATION) {
		units_print_duration(low, row->low);
		units_print_duration(high, row->high);
	} else if (row->kind == OPTION_BYTES) {
		units_print_bytes(low, row->low);
		units_print_bytes(high, row->high);
	} else {
		snprintf(low, sizeof(low), "%lld", (long long)row->low);
		snprintf(high, sizeof(high), "%lld", (long long)row->high);
	}
	if (row->low == 0 && row->high == 0)
		fprintf(parser->errors, "%s: option '--%s': '%s' is negative\n", parser->who, row->long_name,
			value);
	else
		fprintf(parser->errors, "%s: option '--%s': '%s' is not in %s .. %s\n", parser->who,
			row->long_name, value, low, high);
	return -EINVAL;
}

static int set_quantity(const struct parser *parser, const struct option_row *row, const char *value,
			int64_t *field)
{
	static const struct {
		int (*parse)(const char *text, int64_t *ret);
		const char *wanted;
	} kinds[] = {
		[OPTION_NUMBER] = {units_parse_integer, "a whole number"},
		[OPTION_DURATION] = {units_parse_duration, "a time like 30s or 2min"},
		[OPTION_BYTES] = {units_parse_bytes, "a size like 16MiB"},
	};
	int64_t number;
	if (kinds[row->kind].parse(value, &number) < 0)
		return complain_value(parser, row, value, kinds[row->kind].wanted);
	int64_t high = row->low == 0 && row->high == 0 ? INT64_MAX : row->high;
	if (number < row->low || number > high)
		return complain_bounds(parser, row, value);
	*field = number;
	return 0;
}

static int set_field(const struct parser *parser, int n, const char *value)
{
	const struct option_row *row = parser->row[n];
	void *field = (char *)parser->fields[n] + row->offset;
	struct option_texts *texts = field;
	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)field = value;
		return 0;
	case OPTION_TEXTS:
		if (texts->count == OPTION_TEXTS_MAX) {
			fprintf(parser->errors, "%s: option '--%s' is given more than %d times\n",
				parser->who, row->long_name, OPTION_TEXTS_MAX);
			return -EINVAL;
		}
		texts->text[texts->count++] = value;
		return 0;
	case OPTION_NUMBER:
	case OPTION_DURATION:
	case OPTION_BYTES:
		return set_quantity(parser, row, value, field);
	}
	return -EINVAL;
}

static int complain_missing(const struct parser *parser, int code)
{
	const struct option_row *row = parser->row[find_row(parser, code)];
	fprintf(parser->errors, "%s: option '--%s' needs a value: %s\n", parser->who, row->long_name,
		row->value);
	return -EINVAL;
}

/* What getopt could not take: an unknown letter or name, an ambiguous beginning, a value to a flag. */
static int complain(const struct parser *parser, char *const *argv)
{
	char letter[3] = {'-', (char)optopt, 0};
	if (optopt >= FIRST_CODE) {
		fprintf(parser->errors, "%s: option '--%s' takes no value\n", parser->who,
			parser->row[optopt - FIRST_CODE]->long_name);
		return -EINVAL;
	}
	return complain_unknown(parser, optopt ? letter : argv[optind - 1]);
}

static int parse_all(struct parser *parser, int argc, char **argv)
{
	optind = 0; /* glibc: start over */
	opterr = 0;
	for (;;) {
		int code = getopt_long(argc, argv, parser->short_options, parser->long_options, NULL);
		if (code == -1)
			return 0;
		if (code == ':')
			return complain_missing(parser, optopt);
		int n = code == '?' ? -1 : find_row(parser, code);
		int result = n < 0 ? complain(parser, argv) : set_field(parser, n, optarg);
		if (result < 0)
			return result;
	}
}

int options_parse(const struct option_row *rows, const char *who, bool stop_at_operand, int argc, char **argv,
		  void *fields, FILE *errors, struct options_result *ret_result)
{
	struct common common = {0};
	struct parser parser = {.who = who, .errors = errors};
	snprintf(parser.short_options, sizeof(parser.short_options), "%s", stop_at_operand ? "+:" : ":");
	add_rows(&parser, rows, fields);
	add_rows(&parser, common_rows, &common);
	int result = parse_all(&parser, argc, argv);
	if (result == 0)
		*ret_result = (struct options_result){common.help, common.config_path, argc - optind,
						      argv + optind};
	return result;
}

void options_print_folded(const char *text, int column, int indent, int width, FILE *out)
{
	bool first = true;
	while (*text) {
		size_t word = strcspn(text, " \n");
		if (!first && column + 1 + (int)word > width) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
		} else if (!first) {
			fputc(' ', out);
			column++;
		}
		fwrite(text, 1, word, out);
		column += (int)word;
		first = false;
		text += word;
		if (*text == '\n') {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
			first = true;
		}
		if (*text)
			text++;
	}
	fputc('\n', out);
}

void options_print_help(const struct option_row *rows, FILE *out)
{
	for (; rows && rows->long_name; rows++) {
		char left[80];
		char letter[5] = "    ";
		if (rows->short_name)
			snprintf(letter, sizeof(letter), "-%c, ", rows->short_name);
		snprintf(left, sizeof(left), "  %s--%s%s%s", letter, rows->long_name, rows->value ? "=" : "",
			 rows->value ? rows->value : "");
		fputs(left, out);
		if ((int)strlen(left) + 2 > HELP_COLUMN)
			fprintf(out, "\n%*s", HELP_COLUMN, "");
		else
			fprintf(out, "%*s", HELP_COLUMN - (int)strlen(left), "");
		options_print_folded(rows->help, HELP_COLUMN, HELP_COLUMN, HELP_WIDTH, out);
	}
}
