/* SPDX-License-Identifier: Apache-2.0 */
/* config_table.h: the rows behind config.h, for the config_*.c files and their tests. */
#ifndef RECORDER_CONFIG_TABLE_H
#define RECORDER_CONFIG_TABLE_H

#include "config.h"
#include "json_text.h"

enum config_kind {
	CONFIG_KIND_BOOL = 1, /* bool */
	CONFIG_KIND_COUNT,    /* int64_t, as all up to RATIO */
	CONFIG_KIND_DURATION,
	CONFIG_KIND_BYTES,
	CONFIG_KIND_PERCENT,
	CONFIG_KIND_RATIO,
	CONFIG_KIND_AMOUNT,   /* struct units_amount */
	CONFIG_KIND_OF,       /* struct units_of */
	CONFIG_KIND_SEVERITY, /* enum config_severity */
	CONFIG_KIND_ARGS,     /* enum config_args */
	CONFIG_KIND_RANK,     /* int64_t, "auto" = CONFIG_RANK_AUTO */
	CONFIG_KIND_JOB,      /* char *, "auto" = NULL, as all up to TEMPLATE */
	CONFIG_KIND_RUN_DIR,
	CONFIG_KIND_STORE,      /* never NULL */
	CONFIG_KIND_LISTEN,     /* never NULL */
	CONFIG_KIND_TEMPLATE,   /* never NULL */
	CONFIG_KIND_TEXTS,      /* struct config_texts */
	CONFIG_KIND_AUTO_TEXTS, /* bool before struct config_texts: captures.xprof.targets */
	CONFIG_KIND_TIERS,      /* struct config_tiers */
	CONFIG_KIND_COMMANDS,   /* appended to collect.collectors, by the last word of the key */
	CONFIG_KIND_THRESHOLDS, /* struct config_thresholds */
	CONFIG_KIND_HOOKS       /* struct config_hooks */
};

/* The value is for the trigger engine alone and kept as text: no field in struct config. */
#define CONFIG_NO_FIELD SIZE_MAX

struct config_row {
	const char *key;
	enum config_kind kind;
	size_t offset;
	int64_t low, high;  /* of numbers; of an amount in time */
	const char *preset; /* the default, as JSON */
	const char *help;
};

extern const struct config_row config_rows[];
extern const size_t config_row_count;

struct config_value {
	char *json; /* as given */
	char *text; /* canonical; of lists the same as json */
	unsigned line;
};

/* Where a value comes from and where what is wrong with it is told. */
struct config_reader {
	struct config *config;
	const struct json_text *document;
	struct config_problems *problems;
	bool is_preset; /* a default, not what somebody wrote */
};

/* `text` is the document's, in which `offset` becomes line and column; NULL: no place. */
void config_problem_add(struct config_problems *problems, const char *text, size_t offset, const char *key,
			const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Puts a value into its field, or tells what is wrong with it. -ENOMEM, else 0. */
int config_value_set(struct config_reader *reader, const struct config_row *row, const cJSON *item);

/* The same for the kinds that are lists. `key` is the row's. */
int config_list_set(struct config_reader *reader, const struct config_row *row, const cJSON *item);
void config_list_free(struct config *config);

/* Tells that the item is not what was `wanted`. */
void config_value_refuse(struct config_reader *reader, const char *key, const cJSON *item,
			 const char *wanted);
int config_severity_find(const char *name);

/* "bytes", "time", …: what is wanted of a kind, with an example. */
const char *config_kind_unit(enum config_kind kind);
const char *config_kind_wanted(enum config_kind kind);
/* "1 s .. 1 d" in `out`, of 2 * UNITS_TEXT_MAX bytes; "" where there are none. */
char *config_row_bounds(const struct config_row *row, char *out);

#endif
