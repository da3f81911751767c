/* SPDX-License-Identifier: Apache-2.0 */
/* Events, and what they tell the engine. The other parts of it: series_object.h. */
#include "series_object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ns.h"
#include "plain_text.h"

int series_new(struct triggers_engine *engine, char *const *patterns, size_t count,
	       struct series **ret_series)
{
	if (count > SERIES_PATTERNS_MAX)
		return -EINVAL;
	struct series *series = calloc(1, sizeof(*series));
	if (!series)
		return -ENOMEM;
	series->engine = engine;
	series->samples_left = SERIES_SAMPLES_A_TICK;
	for (size_t i = 0; i < count; i++) {
		series->patterns[i] = strdup(patterns[i]);
		if (!series->patterns[i])
			break;
		series->follows_tracks |= strncmp(patterns[i], "track:", 6) == 0;
		series->n_patterns++;
	}
	if (series->n_patterns != count || series_known_new(series) < 0 ||
	    busy_new(engine, &series->busy) < 0) {
		series_free(series);
		return -ENOMEM;
	}
	*ret_series = series;
	return 0;
}

void series_free(struct series *series)
{
	if (!series)
		return;
	for (size_t i = 0; i < series->n_patterns; i++)
		free(series->patterns[i]);
	busy_free(series->busy);
	free(series->known);
	free(series->texts);
	free(series);
}

void series_phases(struct series *series, const struct phases *own)
{
	series->phases = *own;
}

void series_waits(struct series *series, const struct waits *own)
{
	series->waits = *own;
}

static void observe(struct series *series, const struct series_known *known,
		    const struct triggers_sample *sample)
{
	if (!known || known->series == TRIGGERS_SERIES_NONE)
		return;
	if (!known->alarms) {
		if (series->samples_left == 0) {
			series->counters.left_out++;
			return;
		}
		series->samples_left--;
	}
	series->counters.samples++;
	triggers_engine_observe(series->engine, known->series, sample);
}

static void tell_step(const struct series *series, const struct series_source *source,
		      const struct series_known *known, const struct series_event *event, const char *phase)
{
	struct triggers_belief belief = {0};
	if (!source->step)
		return;
	bool known_well = triggers_engine_belief(series->engine, known->series, &belief) == 0 && belief.warm;
	const struct series_step step = {
		.track = event->track,
		.start_ns = event->start_ns,
		.end_ns = event->end_ns,
		.phase = phase ? phase : "train",
		.warn_ns = known_well ? belief.warn : 0,
	};
	source->step(source->context, &step);
}

/* A step or phase has ended. */
static void finish(struct series *series, const struct series_source *source, struct series_known *known,
		   const struct series_event *event, int64_t step, const char *phase)
{
	if (!known || known->series == TRIGGERS_SERIES_NONE)
		return;
	struct series_place *place = series_place_of(series, known, step >= 0);
	if (place) {
		series_place_shut(place, event->end_ns);
		snprintf(place->phase, sizeof(place->phase), "%s", phase ? phase : "");
		if (step >= 0)
			place->last_step = step;
	}
	if (step >= 0) {
		tell_step(series, source, known, event, phase);
		busy_step(series->busy, source,
			  &(struct busy_step){event->track, event->start_ns, event->end_ns, step, phase});
	}
	struct triggers_sample sample = {
		.start_ns = event->start_ns,
		.duration_ns = ns_sub(event->end_ns, event->start_ns),
		.value = (double)(ns_sub(event->end_ns, event->start_ns)),
		.step = step,
		.phase = phase,
		.sample = event->sample,
	};
	observe(series, known, &sample);
}

static void on_mark(struct series *series, const struct series_source *source,
		    const struct series_event *event)
{
	char phase[TRIGGERS_NAME_MAX];
	int64_t step = (int64_t)(event->id & INT64_MAX);
	bool named = series_name_text(series, source, event->name, "", phase);
	switch (event->mark) {
	case DREC_MARK_STEP_BEGIN:
	case DREC_MARK_PHASE_BEGIN:
		series_open(series, source, event->mark, event->track, event->name, event->start_ns,
			    event->id);
		break;
	case DREC_MARK_STEP_END:
		finish(series, source, series_known_step(series, source, event->track), event, step,
		       named ? series_phase_of_step(series, phase) : NULL);
		break;
	case DREC_MARK_PHASE_END:
		finish(series, source,
		       series_known_get(series, source, event->track, event->name, TRIGGERS_PHASE, "phase:"),
		       event, -1, named ? phase : NULL);
		break;
	default:
		break;
	}
}

/* A profiler's step span; its name says which step. */
static void on_step_span(struct series *series, const struct series_source *source,
			 const struct series_event *event)
{
	const char *text = event->text;
	size_t bytes = event->text_bytes;
	if (!text && (!source->name || source->name(source->context, event->name, &text, &bytes) < 0))
		return;
	finish(series, source, series_known_step(series, source, event->track), event,
	       series_step_of_name(text, bytes), NULL);
}

/* One that lies in an open one of its kind tells nothing new; what a hook did that did nothing is no phase. */
static void on_phase_span(struct series *series, const struct series_source *source,
			  struct series_known *known, const struct series_event *event)
{
	const struct series_place *place = series_place_find(series, known);
	bool open = place && place->open;
	if (known->series == TRIGGERS_SERIES_NONE ||
	    (open && event->start_ns > ns_add(place->open_ns, SERIES_SAME_OPENING_NS)) ||
	    (!open && ns_sub(event->end_ns, event->start_ns) < PHASES_SPAN_MIN_NS))
		return;
	finish(series, source, known, event, -1, phases_text(known->phase));
}

static void on_span(struct series *series, const struct series_source *source,
		    const struct series_event *event)
{
	if (!event->name && event->text && series_step_of_name(event->text, event->text_bytes) >= 0) {
		on_step_span(series, source, event);
		return;
	}
	uint32_t name = event->name ? event->name : series_text_id(series, event->text, event->text_bytes);
	if (!name)
		return;
	struct series_known *known = series_known_get(series, source, event->track, name, TRIGGERS_SPAN, "");
	if (known && known->is_step) {
		on_step_span(series, source, event);
		return;
	}
	busy_span(series->busy, source, event->track, known && known->waits, event->start_ns, event->end_ns);
	if (known && known->phase) {
		on_phase_span(series, source, known, event);
		return;
	}
	struct series_place *place = known && known->alarms ? series_place_find(series, known) : NULL;
	if (place)
		series_place_shut(place, event->end_ns);
	struct triggers_sample sample = {
		.start_ns = event->start_ns,
		.duration_ns = ns_sub(event->end_ns, event->start_ns),
		.value = (double)(ns_sub(event->end_ns, event->start_ns)),
		.step = -1,
		.phase = known && known->alarms ? series_phase_now(series, source->source) : NULL,
		.sample = event->sample,
	};
	observe(series, known, &sample);
}

static void on_counter(struct series *series, const struct series_source *source,
		       const struct series_event *event)
{
	uint32_t name = event->name ? event->name : series_text_id(series, event->text, event->text_bytes);
	if (!name)
		return;
	struct triggers_sample sample = {
		.start_ns = event->start_ns, .value = event->value, .step = -1, .sample = event->sample};
	observe(series, series_known_get(series, source, event->track, name, TRIGGERS_COUNTER, ""), &sample);
}

/* Only where a pattern "track:…" asks for it. */
static void on_track(struct series *series, const struct series_source *source,
		     const struct series_event *event)
{
	struct series_known *known = series_known_find(series, source->source, event->track, SERIES_TRACK_NAME);
	if (!known->used) {
		char name[TRIGGERS_NAME_MAX];
		const char *text;
		size_t bytes;
		known = series_known_add(series, source->source, event->track, SERIES_TRACK_NAME);
		if (!known || !source->track ||
		    source->track(source->context, event->track, &text, &bytes) < 0)
			return;
		memcpy(name, "track:", 6);
		plain_text(name + 6, sizeof(name) - 6, text, bytes);
		if (series_alarms(series, name))
			series_decide(series, known, source, TRIGGERS_TRACK, name);
	}
	if (known->series != TRIGGERS_SERIES_NONE)
		triggers_engine_progress(series->engine, known->series, event->end_ns);
}

void series_event(struct series *series, const struct series_source *source, const struct series_event *event)
{
	if (series->follows_tracks)
		on_track(series, source, event);
	if (event->kind == DREC_SPAN)
		on_span(series, source, event);
	else if (event->kind == DREC_COUNTER)
		on_counter(series, source, event);
	else if (event->kind == DREC_MARK)
		on_mark(series, source, event);
}

void series_source_end(struct series *series, uint32_t source)
{
	series_places_forget(series, source);
	series_known_forget(series, source);
	busy_source_end(series->busy, source);
	triggers_engine_source_end(series->engine, source);
}

void series_tick(struct series *series)
{
	series->samples_left = SERIES_SAMPLES_A_TICK;
}

const struct series_counters *series_counters(const struct series *series)
{
	return &series->counters;
}
