/* SPDX-License-Identifier: Apache-2.0 */
/* The --help texts and the man pages, both from the command table. */
#include "command.h"

#include <string.h>

#include "version.h"

enum { WIDTH = 100, NAME_COLUMNS = 12 };

static const char about[] =
	"driverec is a drive recorder for training jobs. Every process keeps its raw trace events in a ring "
	"that "
	"survives it; when a trigger fires, the raw window around the anomaly is written out as an incident.";

static const struct exit_row {
	int status;
	const char *meaning;
} exits[] = {
	{COMMAND_DONE, "done"},
	{COMMAND_FAILED, "failed; one line on stderr says what, where and what to do"},
	{COMMAND_MISUSE, "misuse of the command line"},
	{COMMAND_PROBLEMS, "problems found (config check, verify)"},
	{COMMAND_NO_DAEMON, "no daemon is running"},
};

static const struct file_row {
	const char *path;
	const char *meaning;
} files[] = {
	{"~/.config/driverec/config.json",
	 "the configuration, else /etc/driverec/config.json; none is needed"},
	{"~/.local/state/driverec", "the store: incidents and the macro view"},
	{"/run/driverec, /dev/shm/driverec-<uid>", "the run directory: rings of running jobs"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void print_main_help(FILE *out)
{
	fputs("usage: driverec COMMAND [OPTION]... [OPERAND]...\n\n", out);
	options_print_folded(about, 0, 0, WIDTH, out);
	fputs("\ncommands:\n", out);
	for (const struct command *const *command = commands; *command; command++)
		if (!(*command)->hidden)
			fprintf(out, "  %-*s%s\n", NAME_COLUMNS, (*command)->name, (*command)->summary);
	fputs("\noptions:\n"
	      "  --help      show this help; driverec COMMAND --help tells more\n"
	      "  --version   show the version\n",
	      out);
}

static void print_examples(const char *text, FILE *out)
{
	while (*text) {
		int bytes = (int)strcspn(text, "\n");
		fprintf(out, "  %.*s\n", bytes, text);
		text += bytes + (text[bytes] == '\n');
	}
}

void command_print_help(const struct command *command, FILE *out)
{
	if (!command) {
		print_main_help(out);
		return;
	}
	const char *operands = command->operands ? command->operands : "";
	fprintf(out, "usage: driverec %s [OPTION]...%s%s\n\n%c", command->name, *operands ? " " : "",
		operands, command->summary[0] & ~0x20);
	fprintf(out, "%s.\n", command->summary + 1);
	if (command->details) {
		fputc('\n', out);
		options_print_folded(command->details, 0, 0, WIDTH, out);
	}
	fputs("\noptions:\n", out);
	options_print_help(command->options, out);
	options_print_help(options_common(), out);
	if (command->examples) {
		fputs("\nexamples:\n", out);
		print_examples(command->examples, out);
	}
}

/* Text as roff takes it literally. */
static void print_roff(const char *text, FILE *out)
{
	bool line_start = true;
	for (; *text; text++) {
		if (line_start && (*text == '.' || *text == '\''))
			fputs("\\&", out);
		line_start = *text == '\n';
		if (*text == '\\')
			fputs("\\e", out);
		else if (*text == '-')
			fputs("\\-", out);
		else
			fputc(*text, out);
	}
}

static void print_roff_paragraphs(const char *text, FILE *out)
{
	while (*text) {
		char line[2048];
		size_t bytes = strcspn(text, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)bytes, text);
		print_roff(line, out);
		text += bytes;
		if (*text) {
			fputs("\n.PP\n", out);
			text++;
		}
	}
	fputc('\n', out);
}

static void print_roff_options(const struct option_row *rows, FILE *out)
{
	for (; rows && rows->long_name; rows++) {
		fputs(".TP\n", out);
		if (rows->short_name)
			fprintf(out, "\\fB\\-%c\\fR, ", rows->short_name);
		fputs("\\fB\\-\\-", out);
		print_roff(rows->long_name, out);
		fputs("\\fR", out);
		if (rows->value)
			fprintf(out, "=\\fI%s\\fR", rows->value);
		fputc('\n', out);
		print_roff(rows->help, out);
		fputc('\n', out);
	}
}

static void print_roff_title(const char *page, const char *summary, FILE *out)
{
	fprintf(out, ".TH %s 1 \"\" \"driverec %s\" \"driverec\"\n.SH NAME\n", page, version_text());
	print_roff(page, out);
	fputs(" \\- ", out);
	print_roff(summary, out);
	fputc('\n', out);
}

static void print_roff_end(FILE *out)
{
	fputs(".SH EXIT STATUS\n", out);
	for (size_t i = 0; i < COUNT(exits); i++) {
		fprintf(out, ".TP\n%d\n", exits[i].status);
		print_roff(exits[i].meaning, out);
		fputc('\n', out);
	}
	fputs(".SH FILES\n", out);
	for (size_t i = 0; i < COUNT(files); i++) {
		fputs(".TP\n", out);
		print_roff(files[i].path, out);
		fputc('\n', out);
		print_roff(files[i].meaning, out);
		fputc('\n', out);
	}
}

static void print_main_man(FILE *out)
{
	print_roff_title("driverec", "a drive recorder for training jobs", out);
	fputs(".SH SYNOPSIS\n\\fBdriverec\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIOPERAND\\fR]...\n"
	      ".SH DESCRIPTION\n",
	      out);
	print_roff_paragraphs(about, out);
	fputs(".SH COMMANDS\n", out);
	for (const struct command *const *command = commands; *command; command++) {
		if ((*command)->hidden)
			continue;
		fprintf(out, ".TP\n\\fBdriverec\\-%s\\fR(1)\n", (*command)->name);
		print_roff((*command)->summary, out);
		fputc('\n', out);
	}
	print_roff_end(out);
}

void command_print_man(const struct command *command, FILE *out)
{
	if (!command) {
		print_main_man(out);
		return;
	}
	char page[64];
	snprintf(page, sizeof(page), "driverec-%s", command->name);
	print_roff_title(page, command->summary, out);
	fprintf(out, ".SH SYNOPSIS\n\\fBdriverec %s\\fR [\\fIOPTION\\fR]... ", command->name);
	print_roff(command->operands ? command->operands : "", out);
	fputs("\n.SH DESCRIPTION\n", out);
	print_roff_paragraphs(command->details ? command->details : command->summary, out);
	fputs(".SH OPTIONS\n", out);
	print_roff_options(command->options, out);
	print_roff_options(options_common(), out);
	print_roff_end(out);
	if (command->examples) {
		fputs(".SH EXAMPLES\n.nf\n", out);
		print_roff(command->examples, out);
		fputs("\n.fi\n", out);
	}
}
