/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h: the configuration, as one struct with a named field a setting.
 *
 * One table (config_table.c) holds name, unit, bounds, default and help of every setting; loading, checking,
 * `config show`, `config example` and docs/configuration.md come from it. The file is JSON with // comments,
 * taken from the first that there is: --config, $DRIVEREC_CONFIG, ~/.config/driverec/config.json,
 * /etc/driverec/config.json. None is needed. All numbers are integers: ns, bytes, and millionths (`_ppm`) for
 * shares and ratios. Not changed after loading, so it may be read from any thread.
 */
#ifndef RECORDER_CONFIG_H
#define RECORDER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "units.h"

enum {
	CONFIG_FILE_BYTES_MAX = 1 << 20,
	CONFIG_PROBLEMS_MAX = 64,
	CONFIG_TIERS_MAX = 4,
	CONFIG_LIST_MAX = 256, /* items of any list */
	CONFIG_RANK_AUTO = -1
};

/* The first three as enum triggers_severity; the last one is seen only while a file is being read. */
enum config_severity { CONFIG_NOTE = 0, CONFIG_WARN = 1, CONFIG_CRITICAL = 2, CONFIG_SEVERITY_UNSET = 3 };

enum config_args { CONFIG_ARGS_KEEP = 0, CONFIG_ARGS_STRIP = 1 };

/* Bits of config_hook.on. */
enum config_alert { CONFIG_OPENED = 1, CONFIG_READY = 2, CONFIG_RESOLVED = 4 };

struct config_texts {
	size_t count;
	char **text;
};

/* A command to run. argv[argc] is NULL. */
struct config_command {
	size_t argc;
	char **argv;
};

/* What to run for firings of one trigger; trigger "any" is for all. */
struct config_collector {
	char *trigger;
	struct config_command command;
};

struct config_collectors {
	size_t count;
	struct config_collector *item;
};

struct config_limit {
	bool given;
	bool is_time; /* then it is ns, else the unit of the series (of durations: seconds) */
	int64_t ppm;  /* in millionths */
};

/* A limit on a series: fires above `above` or below `below`. */
struct config_threshold {
	char *series; /* a pattern like those of `series` */
	struct config_limit above, below;
	enum config_severity severity;
};

struct config_thresholds {
	size_t count;
	struct config_threshold *item;
};

/* Who is told. Today `exec` alone: a command with the manifest's path as its last argument. */
struct config_hook {
	char *name;
	struct config_command exec;
	int64_t timeout_ns;
	unsigned on;                       /* enum config_alert */
	enum config_severity min_severity; /* alerts.min_severity where not given */
};

struct config_hooks {
	size_t count;
	struct config_hook *item;
};

struct config_tiers {
	size_t count;
	struct units_tier tier[CONFIG_TIERS_MAX];
};

struct config {
	struct {
		char *name;   /* NULL = auto */
		int64_t rank; /* CONFIG_RANK_AUTO = auto */
	} job;
	char *run_dir; /* NULL = auto: drec_run_dir() */
	char *store;   /* ~ expanded */
	struct {
		int64_t size_bytes, worker_size_bytes, shm_share_max_ppm;
	} ring;
	struct {
		struct units_amount pre, post;
		int64_t pre_min_ns, post_max_ns, max_size_bytes;
	} window;
	struct {
		struct config_tiers tiers;
		int64_t max_size_bytes;
	} macro;
	struct {
		struct {
			bool targets_auto;
			struct config_texts targets;
			int64_t reference_every_ns;
			struct units_amount after_firing;
			bool snapshot, only_if_guarded;
		} xprof;
		struct {
			bool listen;
			int64_t reference_every_ns;
			struct units_amount after_firing;
		} kineto;
		struct config_texts logdir;
		int64_t max_size_bytes, per_hour_max, stop_if_step_slower_by_ppm;
	} captures;
	struct {
		int64_t every_ns;
		bool device_counters;
	} host;
	struct config_thresholds
		thresholds; /* triggers.threshold; other triggers.*, gates.*: config_each_option() */
	struct config_texts series;
	struct {
		struct config_texts train, checkpoint, eval, compile;
	} phases;
	struct {
		struct config_texts waits, own;
	} work;
	struct {
		struct config_collectors collectors;
		int64_t timeout_ns;
	} collect;
	enum config_args args;
	struct {
		int64_t age_ns, count, size_bytes, disk_share_max_ppm, pack_after_ns;
	} retention;
	struct {
		enum config_severity min_severity;
		char *dedup;
		struct config_hooks hooks;
	} alerts;
	struct {
		char *listen; /* "ADDRESS:PORT"; "" = off */
	} http;

	char *path;                  /* the file it came from; NULL = defaults alone */
	struct config_value *values; /* one a table row: text and origin; see config_each() */
};

/* What is wrong, in the order of the file. */
struct config_problem {
	char key[96];          /* "window.pre", "" for the file as a whole */
	unsigned line, column; /* 1 = first; 0 = not in the text */
	char text[192];
};

struct config_problems {
	char path[512]; /* of the file; "" = none */
	unsigned count; /* all; only the first CONFIG_PROBLEMS_MAX are kept */
	struct config_problem problem[CONFIG_PROBLEMS_MAX];
};

/*
 * Finds, reads and checks the configuration; `path` is --config or NULL. Problems are all listed in
 * *ret_problems (never NULL), whatever is returned. -EINVAL: the file has problems; -errno: it could not be
 * read (listed as well). Free with config_free().
 */
int config_load(const char *path, struct config **ret_config, struct config_problems *ret_problems);
/* The same of a text in memory; `path` is for messages and may be NULL. */
int config_parse(const char *text, size_t bytes, const char *path, struct config **ret_config,
		 struct config_problems *ret_problems);
void config_free(struct config *config);

/* "PATH:LINE:COLUMN: KEY: TEXT", one a line. */
void config_problems_print(const struct config_problems *problems, FILE *out);

/* Loads for a command: NULL after the problems were printed to stderr. */
struct config *config_load_or_complain(const char *path);

/* A setting as it stands. */
struct config_setting {
	const char *key;    /* "triggers.stall.factor" */
	const char *unit;   /* "bytes", "time", "%", "steps or time", "" … */
	const char *wanted; /* "a size like \"16 MiB\"" */
	const char *help;
	const char *bounds; /* "64 KiB .. 1 TiB", "" where there are none */
	const char *preset; /* the default, as JSON */
	const char *value;  /* as JSON */
	const char *text;   /* as plain text: "1.5", "10 s"; lists as JSON */
	unsigned line;      /* in config->path; 0 = default */
};
/* Every setting in the order of the table; `config` NULL = the defaults. */
void config_each(const struct config *config,
		 void (*each)(void *context, const struct config_setting *setting), void *context);

/*
 * The settings that the trigger engine knows, as triggers_engine_set() takes them: "triggers.stall.factor"
 * comes as "stall.factor", "gates.cooldown" as it is; triggers.threshold is config->thresholds. Stops at the
 * first negative result and returns it.
 */
int config_each_option(const struct config *config,
		       int (*each)(void *context, const char *key, const char *value), void *context);

const char *config_severity_name(enum config_severity severity);

#endif
