/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of driverec, in the order of --help. */
#include "command.h"

extern const struct command command_config;

const struct command *const commands[] = {
	&command_config,
	NULL,
};
