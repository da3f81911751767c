/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "command.h"
#include "output.h"
#include "store_option.h"

struct delete_options {
	const char *store;
	bool even_kept;
};

static const struct option_row delete_rows[] = {
	OPTION_ROW_FLAG('f', "even-kept", struct delete_options, even_kept, "delete it although it is kept"),
	OPTION_ROW(0, "store", "DIR", OPTION_TEXT, struct delete_options, store, "where incidents are kept"),
	OPTION_ROWS_END,
};

static int delete_one(const struct command_call *call, struct incidents_store *store, const char *what)
{
	const struct delete_options *options = call->options;
	struct incidents_entry entry;
	char text[OUTPUT_TEXT_MAX];
	uint64_t bytes = 0;
	int r = store_option_find(call, store, what, &entry);

	if (r != COMMAND_DONE)
		return r;
	incidents_store_bytes(store, entry.folder, &bytes);
	r = incidents_store_delete(store, entry.folder, options->even_kept);
	if (r == -EPERM)
		return command_failed(call, "%s: holds what driverec did not make; nothing was deleted",
				      entry.folder);
	if (r == -EBUSY)
		return command_failed(call, "%s: is kept; driverec keep --release %.8s first, or --even-kept",
				      entry.folder, entry.id);
	if (r < 0)
		return command_failed(call, "%s: %s", entry.folder, strerror(-r));
	printf("deleted %.8s, %s\n", entry.id, output_bytes(text, bytes));
	return COMMAND_DONE;
}

static int delete_run(const struct command_call *call)
{
	const struct delete_options *options = call->options;
	struct incidents_store *store = NULL;
	int status = store_option_open(call, options->store, &store);

	for (int i = 0; status == COMMAND_DONE && i < call->argc; i++)
		status = delete_one(call, store, call->argv[i]);
	incidents_store_free(store);
	return status;
}

const struct command command_delete = {
	.name = "delete",
	.summary = "delete incidents",
	.operands = "ID...",
	.details = "Deletes only folders that driverec made and that hold nothing else.",
	.examples = "driverec delete 7f3a",
	.options = delete_rows,
	.options_bytes = sizeof(struct delete_options),
	.operands_min = 1,
	.operands_max = COMMAND_OPERANDS_ANY,
	.run = delete_run,
};
