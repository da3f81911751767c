/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of trigger modules, and what a module sees and may do.
 *
 * A module watches the roles it names. The engine keeps `state_bytes` of state for it in every such series,
 * zeroed, and calls it in the order of the table; any function may be NULL. A module speaks by
 * triggers_engine_fire() alone and never sees other modules, the gates or a clock. To add one: its file, its
 * row in module.c, the rows of its options in options.h.
 */
#ifndef TRIGGERS_MODULE_H
#define TRIGGERS_MODULE_H

#include <triggers/triggers.h>

#include "options.h"
#include "rules.h"
#include "save.h"
#include "series.h"

/* A finished step, phase, span or a counter's sample, as modules see it. */
struct triggers_reading {
	int64_t start_ns, end_ns;
	double value;  /* the duration without what phases excused, in ns; or the counter's value */
	double median; /* of the window before this value, 0 where empty */
	int64_t step, sample;
	uint64_t index;   /* number of this sample in its series, from 0 */
	const char *note; /* of triggers_sample */
	int warm;         /* the series has seen enough to fire */
	/*
	 * A step that follows a phase is slow by nature: by this factor, and as long as that is not known by
	 * more.
	 */
	int after_phase;
	double after_factor, after_slack; /* 1 and 0 for others */
	/* Modules say: */
	int stalled; /* a stall has already fired for it */
	int alarm;   /* too high: stays in the window, marked */
	int kept;    /* the module has put it into the window itself */
};

/* A thing that happened to a producer as a whole. */
enum triggers_signal_kind { TRIGGERS_SIGNAL_CRASH = 1, TRIGGERS_SIGNAL_MANUAL = 2 };
struct triggers_signal {
	enum triggers_signal_kind kind;
	uint32_t source, rank;
	int64_t t0_ns, now_ns;
	const char *text;
};

/* What a module claims; the engine adds the series and passes it through the gates. */
struct triggers_claim {
	const struct triggers_module *module;
	struct triggers_series *series; /* NULL for signals */
	uint32_t source, rank;          /* for signals */
	enum triggers_severity severity;
	int64_t t0_ns, until_ns, detected_ns;
	double value, expected;
	int64_t step, sample;
	uint64_t index; /* sample number, for the periodic memory */
	int ongoing, shadow, warmup;
	int quiet;   /* an incident, but nobody is told */
	int graded;  /* value / expected says how bad it is: latency_spike, difference, shift */
	int lasting; /* a state, not a moment: it is no part of what happened meanwhile */
	int by_hand; /* asked for: no cooldown, and the reserved budget */
	int still;   /* claimed before and still going on: neither equal gaps nor our capture explain it */
	char evidence[TRIGGERS_TEXT_MAX];
};

struct triggers_module {
	const char *name;
	unsigned roles; /* 1 << enum triggers_role, or-ed; 0: only signals */
	size_t state_bytes;
	void (*create)(struct triggers_engine *engine, struct triggers_series *series, void *state);
	void (*observe)(struct triggers_engine *engine, struct triggers_series *series, void *state,
			struct triggers_reading *reading);
	void (*open)(struct triggers_engine *engine, struct triggers_series *series, void *state);
	void (*progress)(struct triggers_engine *engine, struct triggers_series *series, void *state,
			 int64_t now_ns);
	/* Open no more, without a sample. `died`: its producer is gone, so nothing got better. */
	void (*close)(struct triggers_engine *engine, struct triggers_series *series, void *state,
		      int64_t now_ns, int died);
	/* Returns when it wants to be called next, INT64_MAX = when something changes. */
	int64_t (*tick)(struct triggers_engine *engine, struct triggers_series *series, void *state,
			int64_t now_ns);
	/*
	 * The series has a new usual level: it begins again from these values, of which the reading is the
	 * last.
	 */
	void (*rebase)(struct triggers_engine *engine, struct triggers_series *series, void *state,
		       const struct triggers_reading *reading, const float *values, unsigned count);
	void (*signal)(struct triggers_engine *engine, const struct triggers_signal *signal);
	void (*believe)(const struct triggers_engine *engine, const struct triggers_series *series,
			const void *state, struct triggers_belief *belief);
	void (*save)(const void *state, struct triggers_writer *writer);
	void (*restore)(void *state, struct triggers_cursor *cursor);
	void (*destroy)(void *state);
};

/* Ends with NULL. */
extern const struct triggers_module *const triggers_modules[];
unsigned triggers_module_number(const struct triggers_module *module);

extern const struct triggers_module triggers_module_stall;
extern const struct triggers_module triggers_module_latency_spike;
extern const struct triggers_module triggers_module_shift;
extern const struct triggers_module triggers_module_difference;
extern const struct triggers_module triggers_module_device_idle;
extern const struct triggers_module triggers_module_straggler;
extern const struct triggers_module triggers_module_threshold;
extern const struct triggers_module triggers_module_crash;
extern const struct triggers_module triggers_module_manual;

double triggers_engine_option(const struct triggers_engine *engine, enum triggers_option_id id);
/* The same for options in seconds, as ns. */
int64_t triggers_engine_option_ns(const struct triggers_engine *engine, enum triggers_option_id id);

const struct triggers_rules *triggers_engine_rules(const struct triggers_engine *engine);
/*
 * A time that a producer gave, as far as it is within a minute of the last tick: what it may age budgets by.
 */
int64_t triggers_engine_near_now(const struct triggers_engine *engine, int64_t ns);
/* The series has seen enough to know what is usual. */
int triggers_engine_is_warm(const struct triggers_engine *engine, const struct triggers_series *series);

/*
 * Whether those steps go on that a series of this source may judge: its own, of its job, or (job unknown) of
 * all.
 */
enum triggers_activity {
	TRIGGERS_ACTIVITY_NONE = 0, /* nobody marks steps, or all are gone */
	TRIGGERS_ACTIVITY_EXCUSED,  /* a phase other than train, or too long since the last step */
	TRIGGERS_ACTIVITY_STEPS     /* a train step is open, or one has just ended */
};
/* Fills *ret_step_ns with the longest median step of those sources, 0 = none known. */
enum triggers_activity triggers_engine_activity(const struct triggers_engine *engine,
						const struct triggers_source *source, int64_t now_ns,
						int64_t *ret_step_ns);

struct triggers_peers;
/* The like tracks, step by step. */
struct triggers_peers *triggers_engine_peers(struct triggers_engine *engine);
/* The series of this id, NULL where there is none any more. */
struct triggers_series *triggers_engine_get(const struct triggers_engine *engine, uint32_t id);
/* A module's state in any series; NULL where it does not watch it. */
void *triggers_engine_state(struct triggers_series *series, const struct triggers_module *module);

/* The series in a place, 0 .. triggers_engine_series_count() - 1; NULL where it is free. */
struct triggers_series *triggers_engine_at(const struct triggers_engine *engine, uint32_t place);

/* Gates and listener. Fills *ret_firing (may be NULL) as the listener saw it. */
enum triggers_gate triggers_engine_fire(struct triggers_engine *engine, const struct triggers_claim *claim,
					struct triggers_firing *ret_firing);
/*
 * From observe() alone, for a graded claim: of several about the same reading the gravest that the gates let
 * through is told of, the others are part of the same anomaly; a lasting change is a thing of its own.
 */
void triggers_engine_propose(struct triggers_engine *engine, const struct triggers_claim *claim);
/* A sustained change: the window holds just these values, and the other modules begin again from them. */
void triggers_engine_rebase(struct triggers_engine *engine, struct triggers_series *series,
			    const struct triggers_reading *reading, const float *values, unsigned count);
/* An ongoing firing that made or joined an incident is over. */
void triggers_engine_over(struct triggers_engine *engine, const struct triggers_firing *firing,
			  int64_t now_ns);
/* An ongoing firing is over, in whatever way and whatever its gate: what comes is another anomaly. */
void triggers_engine_ended(struct triggers_engine *engine, const struct triggers_series *series,
			   int64_t now_ns);
void triggers_engine_suspect(struct triggers_engine *engine, const struct triggers_series *series,
			     int64_t from_ns);
void triggers_engine_unsuspect(struct triggers_engine *engine, const struct triggers_series *series);

/* For a module that keeps ongoing firings in its state. */
void triggers_firing_save(const struct triggers_firing *firing, struct triggers_writer *writer);
void triggers_firing_restore(struct triggers_firing *firing, struct triggers_cursor *cursor);

/* value / expected as a float can hold it; 0 where nothing is expected. */
double triggers_ratio(double value, double expected);

enum { TRIGGERS_DURATION_TEXT = 32 };
/* "42.8 s", "310 ms", "17.0 us": three digits, for sentences. Returns `text`. */
const char *triggers_duration_text(double ns, char text[TRIGGERS_DURATION_TEXT]);
/* What a series is called in a sentence: "step", "step in eval", "load". */
const char *triggers_series_text(const struct triggers_series *series, char text[2 * TRIGGERS_NAME_MAX]);
/*
 * Whole steps of training. Those of other phases have too few alike for a trend: an evaluation ends on a
 * ragged batch.
 */
int triggers_series_is_train(const struct triggers_series *series);
/*
 * Bytes of a span's name in its series' name, which is "name@phase" where the series is of another phase than
 * train.
 */
size_t triggers_series_span_bytes(const struct triggers_series *series);

#endif
