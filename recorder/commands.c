/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of driverec, in the order of --help. */
#include "command.h"

extern const struct command command_trigger;
extern const struct command command_demo;
extern const struct command command_status;
extern const struct command command_run;
extern const struct command command_bench;
extern const struct command command_config;
extern const struct command command_replay;
extern const struct command command_inspect;
extern const struct command command_incidents;
extern const struct command command_show;
extern const struct command command_keep;
extern const struct command command_delete;
extern const struct command command_recover;
extern const struct command command_export;
extern const struct command command_scope;
extern const struct command command_reduce;
extern const struct command command_verify;

const struct command *const commands[] = {
	&command_run,
	&command_status,
	&command_scope,
	&command_demo,
	&command_trigger,
	&command_config,
	&command_inspect,
	&command_reduce,
	&command_verify,
	&command_replay,
	&command_incidents,
	&command_show,
	&command_keep,
	&command_delete,
	&command_bench,
	&command_recover,
	&command_export,
	NULL,
};
