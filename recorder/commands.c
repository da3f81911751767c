/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of driverec, in the order of --help. */
#include "command.h"

const struct command *const commands[] = {
	NULL,
};
