/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every setting: name, kind (unit), where it goes, bounds, default, help. The order is that of the file.
 * Those of the trigger engine are held against its own table by tests/recorder/test_config_triggers.c.
 * docs/configuration.md is held against this table by tests/recorder/test_config.c.
 */
#include "config_table.h"

#define KIB    ((int64_t)1 << 10)
#define MIB    ((int64_t)1 << 20)
#define GIB    ((int64_t)1 << 30)
#define TIB    ((int64_t)1 << 40)
#define MS     ((int64_t)1000000)
#define SECOND ((int64_t)1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define PPM    ((int64_t)1000000)
#define MILLI  ((int64_t)1000)

#define FIELD(field) offsetof(struct config, field)

/* A setting with a field, one of the trigger engine, and a list of collectors. */
#define ROW(key, kind, field, low, high, preset, help)                                                       \
	{                                                                                                    \
		key, CONFIG_KIND_##kind, FIELD(field), low, high, preset, help                               \
	}
#define ENGINE(key, kind, low, high, preset, help)                                                           \
	{                                                                                                    \
		key, CONFIG_KIND_##kind, CONFIG_NO_FIELD, low, high, preset, help                            \
	}
#define COLLECT(trigger, preset)                                                                             \
	{                                                                                                    \
		"collect." trigger, CONFIG_KIND_COMMANDS, FIELD(collect.collectors), 0, 0, preset,           \
			"commands to run, trigger " trigger                                                  \
	}

const struct config_row config_rows[] = {
	ROW("job.name", JOB, job.name, 0, 0, "\"auto\"",
	    "the job; auto: from the environment (docs/identity.md)"),
	ROW("job.rank", RANK, job.rank, 0, 1 << 24, "\"auto\"", "the rank; auto: from the environment"),
	ROW("run_dir", RUN_DIR, run_dir, 0, 0, "\"auto\"",
	    "where rings are; auto: $DRIVEREC_RUN_DIR, /run/driverec, /dev/shm/driverec-<uid>"),
	ROW("store", STORE, store, 0, 0, "\"~/.local/state/driverec\"",
	    "where incidents and the macro view are kept"),

	ROW("ring.size", BYTES, ring.size_bytes, 256 * KIB, 64 * GIB, "\"16 MiB\"", "events of one producer"),
	ROW("ring.worker_size", BYTES, ring.worker_size_bytes, 64 * KIB, 64 * GIB, "\"1 MiB\"",
	    "events of a forked worker"),
	ROW("ring.shm_share_max", PERCENT, ring.shm_share_max_ppm, PPM / 1000, PPM / 2, "\"12 %\"",
	    "most that a ring takes of the free shared memory"),

	ROW("window.pre", AMOUNT, window.pre, MS, HOUR, "\"5 steps\"", "kept before the anomaly"),
	ROW("window.pre_min", DURATION, window.pre_min_ns, 0, HOUR, "\"10 s\"", "kept before it at least"),
	ROW("window.post", AMOUNT, window.post, MS, HOUR, "\"2 steps\"", "kept after the anomaly"),
	ROW("window.post_max", DURATION, window.post_max_ns, MS, HOUR, "\"30 s\"",
	    "how long an incident waits for what comes after"),
	ROW("window.max_size", BYTES, window.max_size_bytes, MIB, TIB, "\"512 MiB\"",
	    "raw events of one incident; the onset is kept first"),

	ROW("macro.tiers", TIERS, macro.tiers, 0, 0, "[\"10 ms x 10 min\", \"1 s x 24 h\", \"1 min x 30 d\"]",
	    "bins of the live macro view, finest first"),
	ROW("macro.max_size", BYTES, macro.max_size_bytes, MIB, 64 * GIB, "\"64 MiB\"",
	    "of the macro view's file"),

	ROW("captures.xprof.targets", AUTO_TEXTS, captures.xprof.targets_auto, 0, 0, "\"auto\"",
	    "profiler servers, HOST:PORT"),
	ROW("captures.xprof.reference_every", DURATION, captures.xprof.reference_every_ns, 0, 30 * DAY,
	    "\"10 min\"", "a capture to compare with; 0: none"),
	ROW("captures.xprof.after_firing", AMOUNT, captures.xprof.after_firing, 0, 10 * MINUTE, "\"2 s\"",
	    "captured once a trigger fired; 0: nothing"),
	ROW("captures.xprof.snapshot", BOOL, captures.xprof.snapshot, 0, 0, "false", "device snapshots"),
	ROW("captures.xprof.only_if_guarded", BOOL, captures.xprof.only_if_guarded, 0, 0, "true",
	    "capture a JAX job only where the client guards against its own start_trace"),
	ROW("captures.kineto.listen", BOOL, captures.kineto.listen, 0, 0, "true",
	    "be the daemon that Kineto asks"),
	ROW("captures.kineto.reference_every", DURATION, captures.kineto.reference_every_ns, 0, 30 * DAY,
	    "\"30 min\"", "a capture to compare with; 0: none"),
	ROW("captures.kineto.after_firing", AMOUNT, captures.kineto.after_firing, 0, 10 * MINUTE,
	    "\"1 iteration\"", "captured once a trigger fired; 0: nothing"),
	ROW("captures.logdir", TEXTS, captures.logdir, 0, 0, "[]",
	    "folders to which frameworks write captures"),
	ROW("captures.max_size", BYTES, captures.max_size_bytes, 0, TIB, "\"2 GiB\"", "of all captures kept"),
	ROW("captures.per_hour_max", COUNT, captures.per_hour_max, 0, 3600, "12", "captures an hour"),
	ROW("captures.stop_if_step_slower_by", PERCENT, captures.stop_if_step_slower_by_ppm, 0, PPM,
	    "\"2 %\"", "no more captures where they slow steps by more"),

	ROW("host.every", DURATION, host.every_ns, 100 * MS, HOUR, "\"1 s\"",
	    "how often host counters are read"),
	ROW("host.device_counters", BOOL, host.device_counters, 0, 0, "true", "read device counters too"),

	ENGINE("triggers.stall.factor", RATIO, 1050 * MILLI, 1000 * PPM, "3",
	       "times the running median after which an open step is stalled"),
	ENGINE("triggers.stall.min", DURATION, MS, DAY, "\"1 s\"",
	       "nothing that lasts less than this is a stall"),
	ENGINE("triggers.stall.first_step_max", DURATION, SECOND, 7 * DAY, "\"30 min\"",
	       "how long a first or compiling step, or one without a learned usual length, may take"),
	ENGINE("triggers.stall.suspect_at", RATIO, 1010 * MILLI, 100 * PPM, "1.2",
	       "times the running median after which the beginning is kept in case it becomes a stall"),
	ENGINE("triggers.device_idle.below", PERCENT, 0, PPM, "\"5 %\"", "a device less busy than this is idle"),
	ENGINE("triggers.device_idle.for", AMOUNT, MS, DAY, "\"2 steps\"",
	       "how long a device must be idle while a step is open"),
	ENGINE("triggers.device_idle.min", DURATION, MS, DAY, "\"10 s\"", "and at least so long"),
	ENGINE("triggers.latency_spike.window", COUNT, 16, 256, "128",
	       "how many of the last durations the running median is taken over"),
	ENGINE("triggers.latency_spike.warn", RATIO, 1010 * MILLI, 1000 * PPM, "1.5",
	       "times the running median from which a slow step or span is a warning"),
	ENGINE("triggers.latency_spike.critical", RATIO, 1010 * MILLI, 1000 * PPM, "3",
	       "times the running median from which it is critical"),
	ENGINE("triggers.latency_spike.floor", PERCENT, 0, 10 * PPM, "\"10 %\"",
	       "share above the median below which nothing is said, however steady the series"),
	ENGINE("triggers.latency_spike.sigma", RATIO, PPM, 100 * PPM, "6",
	       "deviations (1.4826 x MAD) above the median below which nothing is said"),
	ENGINE("triggers.latency_spike.span_min", DURATION, 0, HOUR, "\"5 ms\"",
	       "a span (not a step) must be slower by at least this much"),
	ENGINE("triggers.shift.alert", BOOL, 0, 0, "false",
	       "tell the hooks of a lasting change: true or false"),
	ENGINE("triggers.straggler.ratio", RATIO, 1010 * MILLI, 1000 * PPM, "1.25",
	       "times the peers' work from which a track is behind in a step"),
	ENGINE("triggers.straggler.of", OF, 1, 64, "\"3 of 5\"", "in how many of how many steps it must be behind"),
	ENGINE("triggers.straggler.alert", BOOL, 0, 0, "false",
	       "tell the hooks of a straggler: true or false"),
	ENGINE("triggers.difference.order", COUNT, 0, 3, "1",
	       "of the differences: 0 a level, 1 a line, 2 a parabola, 3 a cubic through the block medians"),
	ENGINE("triggers.difference.block", COUNT, 4, 64, "16",
	       "how many values a block median is taken over"),
	ENGINE("triggers.difference.floor", PERCENT, 0, 10 * PPM, "\"12.5 %\"",
	       "share above the extrapolation below which nothing is said"),
	ENGINE("triggers.crash.severity", SEVERITY, 0, 0, "\"note\"",
	       "what a producer's end without a mark is: note, warn or critical"),
	ENGINE("triggers.manual.severity", SEVERITY, 0, 0, "\"warn\"",
	       "what an incident asked for by the job or an operator is: note, warn or critical"),
	ROW("triggers.threshold", THRESHOLDS, thresholds, 0, 0, "[]",
	    "limits: {\"series\": \"device:*:power\", \"above\": 700, \"severity\": \"warn\"}"),

	ROW("series", TEXTS, series, 0, 0, "[\"step\", \"phase:*\", \"load\", \"next(*)\", \"device:*\"]",
	    "series that may alarm; all others are followed for diagnosis"),
	ROW("phases.train", TEXTS, phases.train, 0, 0, "[]",
	    "names of spans that are no phase of their own, whatever is known of them; * is any text"),
	ROW("phases.checkpoint", TEXTS, phases.checkpoint, 0, 0, "[]",
	    "names of spans that save or restore, besides those known (save_checkpoint*, torch.save, ...)"),
	ROW("phases.eval", TEXTS, phases.eval, 0, 0, "[]",
	    "names of spans that evaluate, besides those known (eval_step*, validation, ...)"),
	ROW("phases.compile", TEXTS, phases.compile, 0, 0, "[]",
	    "names of spans that compile, besides those known (backend_compile, XlaCompile*, ...)"),
	ROW("work.waits", TEXTS, work.waits, 0, 0, "[]",
	    "names of spans that wait for other ranks, besides those known (nccl*, *all_reduce*, *barrier*, ...)"),
	ROW("work.own", TEXTS, work.own, 0, 0, "[]",
	    "names of spans that are a rank's own work, whatever is known of them; * is any text"),

	ENGINE("gates.warmup_steps", COUNT, 4, 256, "16", "samples of a series before it may fire"),
	ENGINE("gates.cooldown", DURATION, 0, DAY, "\"60 s\"",
	       "how long the same trigger makes no second incident, unless it is more severe; after a slow step at "
	       "most 20 steps"),
	ENGINE("gates.coalesce", DURATION, 0, HOUR, "\"30 s\"",
	       "how long at most an incident takes later firings in while it waits for its post window"),
	ENGINE("gates.per_hour", COUNT, 1, 1000, "12", "incidents an hour at most"),
	ENGINE("gates.per_day", COUNT, 1, 1000, "48", "incidents a day at most"),
	ENGINE("gates.reserve_critical", PERCENT, 0, PPM, "\"50 %\"",
	       "share of both budgets kept for critical firings, for incidents asked for by hand and, up to half of "
	       "it, for shifts"),

	ROW("collect.any", COMMANDS, collect.collectors, 0, 0, "[]",
	    "commands to run for every incident; what they print is kept in it"),
	COLLECT("stall", "[[\"py-spy\", \"dump\", \"--nonblocking\", \"--pid\", \"{pid}\"]]"),
	COLLECT("latency_spike", "[]"),
	COLLECT("shift", "[]"),
	COLLECT("device_idle", "[]"),
	COLLECT("straggler", "[]"),
	COLLECT("difference", "[]"),
	COLLECT("threshold", "[]"),
	COLLECT("crash", "[]"),
	COLLECT("manual", "[]"),
	ROW("collect.timeout", DURATION, collect.timeout_ns, 100 * MS, 10 * MINUTE, "\"10 s\"",
	    "of one command"),

	ROW("args", ARGS, args, 0, 0, "\"keep\"", "arguments of events in incidents: keep, or strip"),

	ROW("retention.age", DURATION, retention.age_ns, MINUTE, 3650 * DAY, "\"30 d\"",
	    "incidents are kept so long"),
	ROW("retention.count", COUNT, retention.count, 1, 1000000, "500", "so many"),
	ROW("retention.size", BYTES, retention.size_bytes, MIB, 1024 * TIB, "\"10 GiB\"",
	    "and so large together"),
	ROW("retention.disk_share_max", PERCENT, retention.disk_share_max_ppm, PPM / 1000, PPM, "\"10 %\"",
	    "most that they take of the disk"),
	ROW("retention.pack_after", DURATION, retention.pack_after_ns, 0, 3650 * DAY, "\"1 d\"",
	    "older ones are compressed"),

	ROW("alerts.min_severity", SEVERITY, alerts.min_severity, 0, 0, "\"critical\"",
	    "hooks are told from here on"),
	ROW("alerts.dedup", TEMPLATE, alerts.dedup, 0, 0, "\"{job}/{trigger}/{step}\"",
	    "alerts of the same key are one, of {job} {trigger} {step} {rank} {host} {id}"),
	ROW("alerts.hooks", HOOKS, alerts.hooks, 0, 0, "[]",
	    "who is told: {\"name\": \"pager\", \"exec\": [\"/usr/local/bin/page\"], \"timeout\": \"10 s\", "
	    "\"on\": [\"opened\", \"ready\", \"resolved\"]}"),

	ROW("http.listen", LISTEN, http.listen, 0, 0, "\"127.0.0.1:9477\"", "ADDRESS:PORT; \"\": no HTTP"),
};

const size_t config_row_count = sizeof(config_rows) / sizeof(config_rows[0]);
