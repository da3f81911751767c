/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "command.h"
#include "store_option.h"

struct keep_options {
	const char *store;
	bool release;
};

static const struct option_row keep_rows[] = {
	OPTION_ROW_FLAG('r', "release", struct keep_options, release, "let retention have it again"),
	OPTION_ROW(0, "store", "DIR", OPTION_TEXT, struct keep_options, store, "where incidents are kept"),
	OPTION_ROWS_END,
};

static int keep_run(const struct command_call *call)
{
	const struct keep_options *options = call->options;
	struct incidents_store *store = NULL;
	int status = store_option_open(call, options->store, &store);

	for (int i = 0; status == COMMAND_DONE && i < call->argc; i++) {
		struct incidents_entry entry;
		int r;

		status = store_option_find(call, store, call->argv[i], &entry);
		if (status != COMMAND_DONE)
			break;
		r = incidents_store_keep(store, entry.folder, !options->release);
		if (r == -EPERM)
			status = command_failed(call, "%s: is no incident that driverec made", entry.folder);
		else if (r < 0)
			status = command_failed(call, "%s: %s", entry.folder, strerror(-r));
		else
			printf("%s %.8s\n", options->release ? "released" : "kept", entry.id);
	}
	incidents_store_free(store);
	return status;
}

const struct command command_keep = {
	.name = "keep",
	.summary = "keep an incident from retention",
	.operands = "ID...",
	.examples = "driverec keep 7f3a\ndriverec keep --release 7f3a",
	.options = keep_rows,
	.options_bytes = sizeof(struct keep_options),
	.operands_min = 1,
	.operands_max = COMMAND_OPERANDS_ANY,
	.run = keep_run,
};
