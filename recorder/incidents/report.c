/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.md: what happened in plain words first, then what it is known from, then what to type next.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "incident.h"
#include "manifest.h"
#include "ns.h"
#include "plain_text.h"

#define NOT_MOVED "it had not moved on when this was noticed after"
#define WENT_ON   "it went on after"

/* "14,190" */
static void grouped(char *ret_text, size_t room, int64_t value)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRId64, value);
	size_t out = 0;

	for (int i = 0; i < n && out + 2 < room; i++) {
		if (i > 0 && (n - i) % 3 == 0 && digits[i - 1] != '-')
			ret_text[out++] = ',';
		ret_text[out++] = digits[i];
	}
	ret_text[out] = 0;
}

/* "41.2 s", "118 ms", "1.8 ms", "2.5 h": two digits at least, as "2 ms, 1.5 x its usual 1 ms" says nothing */
static void duration(char *ret_text, size_t room, double ns)
{
	double s = ns / 1e9;

	if (s < 0.001)
		snprintf(ret_text, room, "%.*f us", s < 9.95e-6 ? 1 : 0, ns / 1e3);
	else if (s < 1)
		snprintf(ret_text, room, "%.*f ms", s < 9.95e-3 ? 1 : 0, ns / 1e6);
	else if (s < 600)
		snprintf(ret_text, room, "%.1f s", s);
	else if (s < 7200)
		snprintf(ret_text, room, "%.0f min", s / 60);
	else
		snprintf(ret_text, room, "%.1f h", s / 3600);
}

/* "03:12:44.118 UTC" */
static void clock_time(char *ret_text, size_t room, int64_t unix_ns)
{
	char utc[32];

	json_utc(utc, unix_ns);
	snprintf(ret_text, room, "%.12s UTC", utc + strcspn(utc, "T") + 1);
}

/* `ring` UINT32_MAX: a firing of none. */
static void who(uint32_t rank, const struct incident *incident, uint32_t ring, char *ret_text, size_t room)
{
	if (rank != UINT32_MAX)
		snprintf(ret_text, room, "Rank %u", rank);
	else if (ring != UINT32_MAX && incident->rings[ring].pid)
		snprintf(ret_text, room, "Process %" PRIu64, incident->rings[ring].pid);
	else
		snprintf(ret_text, room, "A process");
}

static void who_first(const struct incident *incident, char *ret_text, size_t room)
{
	who(incident_first(incident)->rank, incident, incident_first_ring(incident), ret_text, room);
}

static void place(const struct triggers_firing *first, char *ret_text, size_t room)
{
	char step[32] = "", when[32];

	clock_time(when, sizeof(when), first->t0_ns);
	if (first->step >= 0)
		grouped(step, sizeof(step), first->step);
	snprintf(ret_text, room, "%s%s%s%s", step[0] ? "at step " : "at ", step, step[0] ? ", " : "", when);
}

/* Who stopped, and who waits: `ret_ring` is whose innermost span says where. */
static void who_stopped(const struct incident *incident, uint32_t *ret_ring, char *ret_name, size_t name_room,
			char *ret_waiting, size_t waiting_room)
{
	struct incident_apart apart;
	size_t bytes;

	*ret_ring = incident_first_ring(incident);
	if (!incident_apart(incident, &apart)) {
		bool all = apart.n_stepping > 1 && apart.n_waiting == apart.n_stepping &&
			   incident->n_firings + incident->more_firings >= apart.n_stepping;

		if (all)
			snprintf(ret_name, name_room, "All %u ranks", apart.n_stepping);
		else
			who_first(incident, ret_name, name_room);
		return;
	}
	*ret_ring = apart.ring;
	who(incident->rings[apart.ring].rank, incident, apart.ring, ret_name, name_room);
	bytes = strlen(ret_name);
	if (apart.n_apart > 1)
		snprintf(ret_name + bytes, name_room - bytes, " and %u more", apart.n_apart - 1);
	snprintf(ret_waiting, waiting_room, "; %u rank%s in \"%s\"", apart.n_waiting,
		 apart.n_waiting == 1 ? " waits" : "s wait", apart.waiting_in);
}

static void stall_sentence(const struct incident *incident, char *ret_text, size_t room)
{
	const struct triggers_firing *first = incident_first(incident);
	char name[64], where[96], inside[INCIDENT_TEXT_MAX + 8] = "", silent[32];
	char waiting[INCIDENT_TEXT_MAX + 96] = "";
	int64_t last = first->detected_ns;
	uint32_t ring;

	who_stopped(incident, &ring, name, sizeof(name), waiting, sizeof(waiting));
	const struct incident_open *open = incident_innermost(incident, ring);
	place(first, where, sizeof(where));
	if (open)
		snprintf(inside, sizeof(inside), " in \"%s\"", open->name);
	if (incident->resolved_ns)
		last = incident->resolved_ns;
	duration(silent, sizeof(silent), (double)ns_sub(last, first->t0_ns));
	snprintf(ret_text, room, "%s %s%s %s%s; %s %s.", name,
		 ring != UINT32_MAX && incident->rings[ring].dead ? "died" : "stopped", inside, where, waiting,
		 incident->resolved_ns ? WENT_ON : NOT_MOVED, silent);
}

void incident_sentence_resolve(char *text, size_t room, int64_t lasted_ns)
{
	char lasted[32], *at = strstr(text, NOT_MOVED);

	if (!at)
		return;
	duration(lasted, sizeof(lasted), (double)lasted_ns);
	snprintf(at, room - (size_t)(at - text), "%s %s.", WENT_ON, lasted);
}

static void spike_sentence(const struct incident *incident, char *ret_text, size_t room)
{
	const struct triggers_firing *first = incident_first(incident);
	char name[64], where[96], took[32], usual[32];

	who_first(incident, name, sizeof(name));
	place(first, where, sizeof(where));
	duration(took, sizeof(took), first->value);
	duration(usual, sizeof(usual), first->expected);
	snprintf(ret_text, room, "%s took %s for \"%s\" %s: %.1f x its usual %s.", name, took,
		 first->series[0] ? first->series : "step", where, first->ratio, usual);
}

/* With `run -- CMD` it is the command that failed; its ranks may have closed their rings in good order. */
static void command_sentence(const struct incident *incident, char *ret_text, size_t room)
{
	const struct triggers_firing *first = incident_first(incident);
	const struct incident_open *open = incident_innermost(incident, incident_first_ring(incident));
	char name[64], where[96], inside[INCIDENT_TEXT_MAX + 96] = "";

	place(first, where, sizeof(where));
	if (open) {
		who_first(incident, name, sizeof(name));
		snprintf(inside, sizeof(inside), "; %s was in \"%s\"", name, open->name);
	}
	snprintf(ret_text, room, "T%.*s %s%s.", (int)strcspn(first->evidence + 1, ";"), first->evidence + 1, where,
		 inside);
}

static void crash_sentence(const struct incident *incident, char *ret_text, size_t room)
{
	const struct triggers_firing *first = incident_first(incident);
	const struct incident_open *open = incident_innermost(incident, incident_first_ring(incident));
	char name[64], where[96], inside[INCIDENT_TEXT_MAX + 8] = "", more[64] = "";

	if (!strncmp(first->evidence, "the command ", 12)) {
		command_sentence(incident, ret_text, room);
		return;
	}
	who_first(incident, name, sizeof(name));
	place(first, where, sizeof(where));
	if (open)
		snprintf(inside, sizeof(inside), " in \"%s\"", open->name);
	if (incident->n_firings + incident->more_firings > 1)
		snprintf(more, sizeof(more), ", and %u more of its job within a minute",
			 incident->n_firings + incident->more_firings - 1);
	snprintf(ret_text, room, "%s ended%s %s without a closing mark%s.", name, inside, where, more);
}

static void other_sentence(const struct incident *incident, char *ret_text, size_t room)
{
	const struct triggers_firing *first = incident_first(incident);
	char name[64], where[96], begun[32];

	who_first(incident, name, sizeof(name));
	if (!strcmp(first->trigger, "shift")) {
		/* It is known some steps after the one that it began at: the evidence names that. */
		clock_time(begun, sizeof(begun), first->t0_ns);
		snprintf(where, sizeof(where), "since %s", begun);
	} else {
		place(first, where, sizeof(where));
	}
	if (!strcmp(first->trigger, "manual"))
		snprintf(ret_text, room, "Asked for %s%s%s.", where, first->evidence[0] ? ": " : "",
			 first->evidence);
	else
		snprintf(ret_text, room, "%s, %s: %s.", name, where,
			 first->evidence[0] ? first->evidence : first->trigger);
}

/* Before the full stop. */
static void add_straggler(const struct incident *incident, char *text, size_t room)
{
	const struct triggers_firing *straggler = incident_straggler(incident);
	size_t bytes = strlen(text);

	if (straggler && bytes > 0)
		snprintf(text + bytes - 1, room - (bytes - 1), "; rank %u is behind its peers.", straggler->rank);
}

void incident_sentence(const struct incident *incident, char *ret_text, size_t room)
{
	const char *trigger = incident_first(incident)->trigger;

	if (!strcmp(trigger, "stall"))
		stall_sentence(incident, ret_text, room);
	else if (!strcmp(trigger, "latency_spike"))
		spike_sentence(incident, ret_text, room);
	else if (!strcmp(trigger, "crash") || !strcmp(trigger, "recover"))
		crash_sentence(incident, ret_text, room);
	else
		other_sentence(incident, ret_text, room);
	add_straggler(incident, ret_text, room);
	/* What was cut may be cut inside a character. */
	plain_text(ret_text, room, ret_text, strlen(ret_text));
}

static void write_evidence(const struct incident *incident, FILE *out)
{
	fprintf(out, "\n## Evidence\n\n");
	for (unsigned i = 0; i < incident->n_firings; i++) {
		const struct triggers_firing *firing = &incident->firing[i];
		char when[32];

		clock_time(when, sizeof(when), firing->detected_ns);
		fprintf(out, "- %s (%s)", firing->trigger, triggers_severity_name(firing->severity));
		if (firing->series[0])
			fprintf(out, ", series \"%s\"", firing->series);
		fprintf(out, ", noticed %s%s%s\n", when,
			firing->evidence[0] ? ": " : "", firing->evidence);
	}
	if (incident->more_firings)
		fprintf(out, "- and %u more firings that joined it\n", incident->more_firings);
}

static void write_open(const struct incident *incident, FILE *out)
{
	fprintf(out, "\n## Open spans\n\n");
	if (incident->n_open == 0)
		fprintf(out, "No span was open.\n");
	for (unsigned i = 0; i < incident->n_open; i++) {
		const struct incident_open *open = &incident->open[i];
		char since[32], begun[32];

		duration(since, sizeof(since), (double)ns_sub(open->seen_ns, open->start_ns));
		clock_time(begun, sizeof(begun), open->start_ns);
		fprintf(out, "- %s, thread %u%s%s: ", incident->rings[open->ring].name, open->tid,
			open->thread[0] ? " " : "", open->thread);
		if (open->step >= 0)
			fprintf(out, "in step %" PRId64, open->step);
		else
			fprintf(out, "inside \"%s\"", open->name);
		fprintf(out, " for %s (since %s)%s\n", since, begun,
			open->moving ? ", changing while it was read" : "");
	}
}

static void write_coverage(const struct incident *incident, FILE *out)
{
	char sentence[256];

	incident_device_sentence(incident, sentence, sizeof(sentence));
	fprintf(out, "\n## Coverage\n\n%s\n\n| class | verdict | recorded | events |\n|---|---|---|---|\n",
		sentence);
	for (unsigned i = 0; i < INCIDENT_CLASSES; i++) {
		const struct incident_coverage *coverage = &incident->coverage[i];
		double all = (double)coverage->asked_ns / 1e9;

		fprintf(out, "| %s | %s%s%s%s | %.1f of %.1f s | %" PRIu64 " |\n", incident_class_words(i),
			incident_verdict_name(coverage->verdict), coverage->why[0] ? " (" : "", coverage->why,
			coverage->why[0] ? ")" : "", (double)coverage->recorded_ns / 1e9, all,
			coverage->events);
	}
}

static void write_losses(const struct incident *incident, FILE *out)
{
	fprintf(out, "\n## Losses\n\n");
	if (incident->n_losses == 0)
		fprintf(out, "None inside the window.\n");
	for (unsigned i = 0; i < incident->n_losses; i++) {
		const struct incident_loss *loss = &incident->loss[i];
		char from[32], to[32];

		clock_time(from, sizeof(from), loss->first_ns);
		clock_time(to, sizeof(to), loss->last_ns);
		fprintf(out, "- %s: %" PRIu64 " events between %s and %s (%s)\n",
			incident->rings[loss->ring].name, loss->count, from, to,
			drec_loss_name(loss->reason));
	}
	if (incident->more_losses)
		fprintf(out, "- and %u more losses\n", incident->more_losses);
	for (unsigned i = 0; i < incident->n_notes; i++)
		fprintf(out, "- note: %s\n", incident->note[i]);
}

static void write_windows(const struct incident *incident, FILE *out)
{
	fprintf(out, "\n## Window\n\n");
	for (unsigned i = 0; i < incident->n_windows; i++) {
		char from[32], to[32], length[32];

		clock_time(from, sizeof(from), incident->window[i].a_ns);
		clock_time(to, sizeof(to), incident->window[i].b_ns);
		duration(length, sizeof(length),
			 (double)ns_sub(incident->window[i].b_ns, incident->window[i].a_ns));
		fprintf(out, "- %s to %s (%s), around %s\n", from, to, length, i ? "detection" : "t0");
	}
	for (unsigned i = 0; i < incident->n_rings; i++) {
		char born[32];

		if (incident->rings[i].born_ns <= incident_begin_ns(incident))
			continue;
		clock_time(born, sizeof(born), incident->rings[i].born_ns);
		fprintf(out, "- %s began at %s, inside the window\n", incident->rings[i].name, born);
	}
	fprintf(out, "- %s%s%s\n", incident_verdict_name(incident->verdict),
		incident->why_partial[0] ? ": " : "", incident->why_partial);
}

int incident_report(const struct incident *incident, char **ret_text, size_t *ret_bytes)
{
	char *text = NULL, job[DREC_TEXT_MAX] = "";
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return -errno;
	/* As its ring has it, since jobs are told apart by it. */
	plain_text(job, sizeof(job), incident_job(incident), strlen(incident_job(incident)));
	fprintf(out, "%s\n", incident->sentence);
	if (job[0])
		fprintf(out, "\nJob %s on %s, %u ring%s, incident %.8s.\n", job,
			incident->host, incident->n_rings, incident->n_rings == 1 ? "" : "s",
			incident->id_text);
	if (incident->continues[0])
		fprintf(out, "\nIt follows incident %.8s without a gap: see there how it began.\n",
			incident->continues);
	if (incident_is_quiet(incident))
		fprintf(out, "\nNobody was told of it: what fired is set to alert nobody.\n");
	write_evidence(incident, out);
	write_open(incident, out);
	write_windows(incident, out);
	write_coverage(incident, out);
	write_losses(incident, out);
	fprintf(out, "\n## Next\n\n    driverec export %.8s -o incident.json.gz\n", incident->id_text);
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	*ret_bytes = bytes;
	return 0;
}
