/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h: a subcommand of driverec, and the dispatcher.
 *
 * Each cmd_<name>.c defines `const struct command command_<name>` and commands.c lists it: nothing else is
 * needed for it to be in --help, to have a man page and to get its options parsed.
 */
#ifndef RECORDER_COMMAND_H
#define RECORDER_COMMAND_H

#include "options.h"

enum command_exit {
	COMMAND_DONE = 0,
	COMMAND_FAILED = 1,
	COMMAND_MISUSE = 2,
	COMMAND_PROBLEMS = 3, /* it worked, and found problems: config check, verify, doctor */
	COMMAND_NO_DAEMON = 4
};

enum { COMMAND_OPERANDS_ANY = -1 };

/* How a command was called. Valid while it runs. */
struct command_call {
	const struct command *command;
	const char *config_path; /* --config, for config_load(); NULL = search */
	const void *options;     /* the command's struct, filled in by its table */
	int argc;                /* operands */
	char **argv;             /* argv[argc] is NULL */
};

struct command {
	const char *name;
	const char *summary;  /* one line without a stop */
	const char *operands; /* "ID|FILE -o OUT", as in the usage line; "" = none */
	const char *details;  /* paragraphs for --help and the man page, '\n' between them; NULL = none */
	const char *examples; /* lines "driverec show 7f3a"; NULL = none */
	const struct option_row *options; /* NULL = none */
	size_t options_bytes;             /* of the struct that they fill, <= OPTIONS_BYTES_MAX */
	const void *defaults;             /* its content before parsing; NULL = all 0 */
	int operands_min, operands_max;   /* COMMAND_OPERANDS_ANY: no limit */
	bool stop_at_operand;             /* the first operand ends the options: run -- CMD --its-option */
	bool hidden;                      /* not in --help */
	/* Returns enum command_exit, or for `run` the status of the job. */
	int (*run)(const struct command_call *call);
};

/* Every command, as commands.c lists them; ends with NULL. */
extern const struct command *const commands[];
const struct command *command_find(const char *name);

/* Does what argv says and returns the exit status. */
int command_main(int argc, char **argv);

/* One line "driverec show: …" on stderr. Returns COMMAND_MISUSE or COMMAND_FAILED, to be returned on. */
int command_misuse(const struct command_call *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int command_failed(const struct command_call *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The texts that --help and --man print; NULL = of driverec itself. */
void command_print_help(const struct command *command, FILE *out);
void command_print_man(const struct command *command, FILE *out);

#endif
