/* SPDX-License-Identifier: Apache-2.0 */
#include "incident.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct incident *incident_new(void)
{
	struct incident *incident = calloc(1, sizeof(*incident));

	if (incident) {
		incident->revision = 1;
		incident->told = -1;
	}
	return incident;
}

void incident_free(struct incident *incident)
{
	if (!incident)
		return;
	for (unsigned i = 0; i < incident->n_rings; i++) {
		if (incident->rings[i].fd >= 0)
			close(incident->rings[i].fd);
		free(incident->rings[i].path);
		free(incident->rings[i].raw);
	}
	for (unsigned i = 0; i < incident->n_captures; i++)
		free(incident->capture_path[i]);
	free(incident->rings);
	free(incident->open);
	free(incident->anchors);
	free(incident->macro);
	free(incident->manifest);
	free(incident->waiting);
	free(incident->outcomes);
	free(incident);
}

void incident_note(struct incident *incident, const char *format, ...)
{
	va_list list;

	if (incident->n_notes == INCIDENT_NOTES_MAX)
		return;
	va_start(list, format);
	vsnprintf(incident->note[incident->n_notes++], INCIDENT_TEXT_MAX, format, list);
	va_end(list);
}

int64_t incident_add_ns(int64_t a, int64_t b)
{
	if (b > 0 && a > INT64_MAX - b)
		return INT64_MAX;
	if (b < 0 && a < INT64_MIN - b)
		return INT64_MIN;
	return a + b;
}

bool incident_is_ongoing(const struct incident *incident)
{
	bool ongoing = false;

	for (unsigned i = 0; i < incident->n_firings; i++)
		ongoing |= incident->firing[i].ongoing != 0;
	return ongoing;
}

bool incident_is_quiet(const struct incident *incident)
{
	bool quiet = true;

	for (unsigned i = 0; i < incident->n_firings; i++)
		quiet &= incident->firing[i].quiet != 0;
	return quiet;
}

enum triggers_severity incident_severity(const struct incident *incident)
{
	bool all = incident_is_quiet(incident);
	enum triggers_severity severity = TRIGGERS_NOTE;

	for (unsigned i = 0; i < incident->n_firings; i++) {
		if ((all || !incident->firing[i].quiet) && incident->firing[i].severity > severity)
			severity = incident->firing[i].severity;
	}
	return severity;
}

int64_t incident_begin_ns(const struct incident *incident)
{
	return incident->window[0].a_ns;
}

int64_t incident_end_ns(const struct incident *incident)
{
	return incident->window[incident->n_windows - 1].b_ns;
}

const char *incident_class_name(enum incident_class which)
{
	static const char *const names[INCIDENT_CLASSES] = {
		"marks", "host_spans", "host_counters", "device_counters", "device_launches", "device_events",
	};

	return which < INCIDENT_CLASSES ? names[which] : "unknown";
}

const char *incident_class_words(enum incident_class which)
{
	static const char *const words[INCIDENT_CLASSES] = {
		"marks", "host spans", "host counters", "device counters", "device launches", "device events",
	};

	return which < INCIDENT_CLASSES ? words[which] : "unknown";
}

const char *incident_verdict_name(enum incident_verdict verdict)
{
	static const char *const names[] = {"none", "partial", "complete"};

	return verdict <= INCIDENT_COMPLETE ? names[verdict] : "unknown";
}
