/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "plain_text.h"
#include "standard_fds.h"
#include "suggest.h"
#include "version.h"

const struct command *command_find(const char *name)
{
	for (const struct command *const *command = commands; *command; command++)
		if (strcmp((*command)->name, name) == 0)
			return *command;
	return NULL;
}

__attribute__((format(printf, 3, 0))) static int complain(const struct command_call *call, int status,
							  const char *format, va_list values)
{
	/* One line, whatever a file is called. */
	char text[4096];
	vsnprintf(text, sizeof(text), format, values);
	plain_text(text, sizeof(text), text, strlen(text));
	fprintf(stderr, "driverec %s: %s\n", call->command->name, text);
	return status;
}

int command_misuse(const struct command_call *call, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	int status = complain(call, COMMAND_MISUSE, format, values);
	va_end(values);
	return status;
}

int command_failed(const struct command_call *call, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	int status = complain(call, COMMAND_FAILED, format, values);
	va_end(values);
	return status;
}

static int complain_unknown(const char *name)
{
	struct suggest suggest;
	suggest_init(&suggest, name);
	for (const struct command *const *command = commands; *command; command++)
		if (!(*command)->hidden)
			suggest_offer(&suggest, (*command)->name);
	if (suggest.best)
		fprintf(stderr, "driverec: command '%s' is unknown; did you mean %s?\n", name, suggest.best);
	else
		fprintf(stderr, "driverec: command '%s' is unknown; see driverec --help\n", name);
	return COMMAND_MISUSE;
}

static int check_operands(const struct command_call *call)
{
	const struct command *command = call->command;
	const char *operands = command->operands ? command->operands : "";
	const char *blank = *operands ? " " : "";
	if (call->argc < command->operands_min)
		return command_misuse(call, "something is missing; usage: driverec %s [OPTION]...%s%s", command->name,
				      blank, operands);
	if (command->operands_max != COMMAND_OPERANDS_ANY && call->argc > command->operands_max)
		return command_misuse(call, "'%s' is too much; usage: driverec %s [OPTION]...%s%s",
				      call->argv[command->operands_max], command->name, blank, operands);
	return COMMAND_DONE;
}

/* Output that did not get out (a full disk, a closed pipe) is a failure. */
static int flush(int status)
{
	if ((fflush(stdout) == 0 && !ferror(stdout)) || status != COMMAND_DONE)
		return status;
	fprintf(stderr, "driverec: cannot write the output: %s\n", strerror(errno));
	return COMMAND_FAILED;
}

static int run(const struct command *command, int argc, char **argv)
{
	_Alignas(max_align_t) unsigned char options[OPTIONS_BYTES_MAX] = {0};
	char who[64];
	snprintf(who, sizeof(who), "driverec %s", command->name);
	if (command->defaults)
		memcpy(options, command->defaults, command->options_bytes);
	struct options_result parsed;
	if (options_parse(command->options, who, command->stop_at_operand, argc, argv, options, stderr,
			  &parsed) < 0)
		return COMMAND_MISUSE;
	if (parsed.help) {
		command_print_help(command, stdout);
		return COMMAND_DONE;
	}
	struct command_call call = {command, parsed.config_path, options, parsed.argc, parsed.argv};
	int status = check_operands(&call);
	return status == COMMAND_DONE ? command->run(&call) : status;
}

/* For the build, which makes the man pages of it. */
static int print_man(int argc, char **argv)
{
	const struct command *command = NULL;
	if (argc > 2) {
		command = command_find(argv[2]);
		if (!command)
			return complain_unknown(argv[2]);
	}
	command_print_man(command, stdout);
	return COMMAND_DONE;
}

static int dispatch(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "--help";
	if (strcmp(word, "--version") == 0) {
		printf("driverec %s\n", version_text());
		return COMMAND_DONE;
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
		command_print_help(NULL, argc > 1 ? stdout : stderr);
		return argc > 1 ? COMMAND_DONE : COMMAND_MISUSE;
	}
	if (strcmp(word, "--man") == 0)
		return print_man(argc, argv);
	if (*word == '-') {
		fprintf(stderr,
			"driverec: option '%s' is unknown; options follow the command: driverec --help\n",
			word);
		return COMMAND_MISUSE;
	}
	const struct command *command = command_find(word);
	return command ? run(command, argc - 1, argv + 1) : complain_unknown(word);
}

int command_main(int argc, char **argv)
{
	standard_fds_fill();
	return flush(dispatch(argc, argv));
}
