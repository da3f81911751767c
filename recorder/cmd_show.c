/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "incidents/manifest.h"
#include "output.h"
#include "plain_text.h"
#include "store_option.h"

struct show_options {
	const char *store;
	bool json;
};

static const struct option_row show_rows[] = {
	OPTION_ROW_FLAG('j', "json", struct show_options, json, "print the manifest"),
	OPTION_ROW(0, "store", "DIR", OPTION_TEXT, struct show_options, store, "where incidents are kept"),
	OPTION_ROWS_END,
};

static const cJSON *get(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static void show_evidence(const cJSON *root)
{
	char text[512], severity[16], trigger[TRIGGERS_NAME_MAX], series[TRIGGERS_NAME_MAX],
		when[OUTPUT_TEXT_MAX];
	const cJSON *firing;

	printf("\nevidence\n");
	cJSON_ArrayForEach(firing, get(root, "firings"))
	{
		json_text(firing, "evidence", text, sizeof(text));
		json_text(firing, "severity", severity, sizeof(severity));
		json_text(firing, "trigger", trigger, sizeof(trigger));
		json_text(firing, "series", series, sizeof(series));
		printf("  %s (%s)", trigger, severity);
		if (series[0])
			printf(", series \"%s\"", series);
		printf(", noticed %s%s%s\n",
		       output_time(when, json_ns(firing, "detected_ns", 0)), text[0] ? ": " : "", text);
	}
	if (json_number(root, "firings_not_listed", 0) > 0)
		printf("  and %.0f more firings that joined it\n",
		       json_number(root, "firings_not_listed", 0));
}

static void show_open(const cJSON *root)
{
	const cJSON *open, *list = get(root, "open_spans");
	char ring[160], name[160], kind[16], since[OUTPUT_TEXT_MAX];

	printf("\nopen spans%s\n", cJSON_GetArraySize(list) ? "" : "\n  none");
	cJSON_ArrayForEach(open, list)
	{
		json_text(open, "ring", ring, sizeof(ring));
		json_text(open, "name", name, sizeof(name));
		json_text(open, "kind", kind, sizeof(kind));
		printf("  %s thread %.0f: ", ring, json_number(open, "tid", 0));
		if (!strcmp(kind, "step"))
			printf("in step %" PRId64, json_ns(open, "step", -1));
		else
			printf("%s \"%s\"", strcmp(kind, "phase") ? "inside" : "in phase", name);
		printf(" for %s\n", output_duration(since, json_ns(open, "open_for_ns", 0)));
	}
}

static void show_coverage(const cJSON *root)
{
	const cJSON *class, *coverage = get(root, "coverage");
	char have[OUTPUT_TEXT_MAX], asked[OUTPUT_TEXT_MAX], verdict[16], why[160], sentence[256];
	char words[64];

	json_text(root, "device_sentence", sentence, sizeof(sentence));
	printf("\ncoverage   %s\n", sentence);
	cJSON_ArrayForEach(class, coverage)
	{
		json_text(class, "verdict", verdict, sizeof(verdict));
		json_text(class, "why", why, sizeof(why));
		plain_text(words, sizeof(words), class->string, strlen(class->string));
		for (char *at = words; *at; at++)
			*at = *at == '_' ? ' ' : *at;
		printf("  %-16s %-9s %s of %s, %" PRIu64 " events%s%s\n", words, verdict,
		       output_duration(have, json_ns(class, "recorded_ns", 0)),
		       output_duration(asked, json_ns(class, "asked_ns", 0)), json_u64(class, "events", 0),
		       why[0] ? "; " : "", why);
	}
}

static void show_losses(const cJSON *root)
{
	const cJSON *loss, *note, *list = get(root, "losses");
	char ring[160], reason[32], count[OUTPUT_TEXT_MAX], from[OUTPUT_TEXT_MAX], to[OUTPUT_TEXT_MAX], text[256];

	printf("\nlosses%s\n", cJSON_GetArraySize(list) ? "" : "\n  none inside the window");
	cJSON_ArrayForEach(loss, list)
	{
		json_text(loss, "ring", ring, sizeof(ring));
		json_text(loss, "reason", reason, sizeof(reason));
		printf("  %s: %s events (%s), %s to %s\n", ring,
		       output_count(count, json_u64(loss, "count", 0)), reason,
		       output_time(from, json_ns(loss, "first_ns", 0)),
		       output_time(to, json_ns(loss, "last_ns", 0)));
	}
	cJSON_ArrayForEach(note, get(root, "notes"))
	{
		if (!cJSON_IsString(note))
			continue;
		plain_text(text, sizeof(text), note->valuestring, strlen(note->valuestring));
		printf("  note: %s\n", text);
	}
}

static void show(struct incidents_store *store, const struct incidents_entry *entry, const cJSON *root,
		 const char *what, const char *option)
{
	char why[160], first[INCIDENTS_ID_TEXT];

	json_text(root, "why_partial", why, sizeof(why));
	json_text(root, "continues", first, sizeof(first));
	printf("%s\n", entry->sentence);
	printf("%s/incidents/%s   %s%s%s\n", incidents_store_path(store), entry->folder, entry->verdict,
	       why[0] ? ": " : "", why);
	if (first[0])
		printf("it follows incident %.8s without a gap: see there how it began\n", first);
	if (json_true(root, "quiet"))
		printf("no hook was told of it: what fired is set to alert nobody\n");
	show_evidence(root);
	show_open(root);
	show_coverage(root);
	show_losses(root);
	/* What was typed finds it again, a folder of another store as well. */
	if (strchr(what, '/'))
		printf("\nnext: driverec export %s -o %s.json.gz\n", what, entry->trigger);
	else
		printf("\nnext: driverec export %.8s -o %s.json.gz%s%s\n", entry->id, entry->trigger,
		       option ? " --store " : "", option ? option : "");
}

static int show_one(const struct command_call *call, struct incidents_store *store)
{
	const struct show_options *options = call->options;
	struct incidents_entry entry;
	cJSON *root = NULL;
	int r = store_option_find(call, store, call->argv[0], &entry);

	if (r != COMMAND_DONE)
		return r;
	r = incident_manifest_read(store, entry.folder, &root);
	if (r < 0)
		return command_failed(call, "%s: the manifest could not be read: %s", entry.folder,
				      strerror(-r));
	if (options->json)
		return output_json_print(root, stdout) < 0 ? COMMAND_FAILED : COMMAND_DONE;
	show(store, &entry, root, call->argv[0], options->store);
	cJSON_Delete(root);
	return COMMAND_DONE;
}

static int show_run(const struct command_call *call)
{
	const struct show_options *options = call->options;
	struct incidents_store *store = NULL;
	int status = store_option_open(call, options->store, &store);

	if (status == COMMAND_DONE)
		status = show_one(call, store);
	incidents_store_free(store);
	return status;
}

const struct command command_show = {
	.name = "show",
	.summary = "say what an incident is and what was kept of it",
	.operands = "ID",
	.details = "ID is the begin of an incident's id, its folder's name or a path to it.\n"
		   "The first sentence says what happened. Then: what it is known from, what was open, how "
		   "much of each "
		   "class of events was recorded, what was lost.",
	.examples = "driverec show 7f3a\ndriverec show --json 7f3a",
	.options = show_rows,
	.options_bytes = sizeof(struct show_options),
	.operands_min = 1,
	.operands_max = 1,
	.run = show_run,
};
