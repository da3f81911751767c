/* SPDX-License-Identifier: Apache-2.0 */
/* The object, its incidents, and what they need of rings. The other parts of it: lifecycle.h. */
#include "lifecycle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void read_boot_id(uint8_t ret_id[16])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char text[64], digits[33] = "";
	ssize_t bytes = fd < 0 ? 0 : read(fd, text, sizeof(text));
	size_t n = 0;

	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; i < bytes && n < 32; i++) {
		if (text[i] != '-' && text[i] != '\n')
			digits[n++] = text[i];
	}
	incidents_id_parse(digits, ret_id);
}

int incidents_new(const struct incidents_host *host, struct incidents_store *store,
		  const struct incidents_sizing *sizing, struct incidents **ret_incidents)
{
	struct incidents *incidents;

	if (!host->rings || !host->mono_ns || !host->mono_to_unix_ns)
		return -EINVAL;
	incidents = calloc(1, sizeof(*incidents));
	if (!incidents)
		return -ENOMEM;
	incidents->host = *host;
	incidents->store = store;
	incidents->sizing = *sizing;
	read_boot_id(incidents->boot_id);
	if (gethostname(incidents->host_name, sizeof(incidents->host_name) - 1) < 0)
		incidents->host_name[0] = 0;
	*ret_incidents = incidents;
	return 0;
}

void incidents_free(struct incidents *incidents)
{
	if (!incidents)
		return;
	incidents->stopping = true;
	while (incidents->jobs > 0)
		uv_run(incidents->host.loop, UV_RUN_ONCE);
	while (incidents->list)
		incidents_drop(incidents, incidents->list);
	free(incidents);
}

void incidents_rings(struct incidents *incidents)
{
	size_t n = incidents->host.rings(incidents->host.context, incidents->rings, INCIDENTS_RINGS_MAX);

	incidents->n_rings = n < INCIDENTS_RINGS_MAX ? n : INCIDENTS_RINGS_MAX;
}

int64_t incidents_now_ns(const struct incidents *incidents, const struct incident *incident)
{
	return incident_add_ns(incidents->host.mono_ns(incidents->host.context), incident->mono_to_unix_ns);
}

void incidents_log(struct incidents *incidents, const char *kind, const char *format, ...)
{
	char sentence[512];
	va_list list;

	if (!incidents->host.log)
		return;
	va_start(list, format);
	vsnprintf(sentence, sizeof(sentence), format, list);
	va_end(list);
	incidents->host.log(incidents->host.context, kind, sentence);
}

struct incident *incidents_find(struct incidents *incidents, const char *id)
{
	for (struct incident *incident = incidents->list; incident; incident = incident->next) {
		if (!strcmp(incident->id_text, id))
			return incident;
	}
	return NULL;
}

void incidents_add(struct incidents *incidents, struct incident *incident)
{
	incident->next = incidents->list;
	incidents->list = incident;
}

void incidents_drop(struct incidents *incidents, struct incident *incident)
{
	struct incident **at = &incidents->list;

	while (*at && *at != incident)
		at = &(*at)->next;
	if (*at)
		*at = incident->next;
	incident_free(incident);
}

const struct incidents_counters *incidents_counters(const struct incidents *incidents)
{
	return &incidents->counters;
}

size_t incidents_busy(const struct incidents *incidents)
{
	size_t busy = 0;

	for (const struct incident *incident = incidents->list; incident; incident = incident->next)
		busy += incident->state != INCIDENT_HOOKED || incident->working;
	return busy;
}

void incidents_ring_gone(struct incidents *incidents, uint32_t source)
{
	for (struct incident *incident = incidents->list; incident; incident = incident->next) {
		for (unsigned i = 0; !incident->working && i < incident->n_rings; i++)
			incident->rings[i].dead |= incident->rings[i].source == source;
	}
}

bool incidents_ring_needed(const struct incidents *incidents, uint32_t source)
{
	for (const struct incident *incident = incidents->list; incident; incident = incident->next) {
		for (unsigned i = 0; incident->state < INCIDENT_RELEASED && i < incident->n_rings; i++) {
			if (incident->rings[i].source == source)
				return true;
		}
	}
	return false;
}

void incidents_collected(struct incidents *incidents, const char *id)
{
	struct incident *incident = incidents_find(incidents, id);

	if (incident)
		incident->collecting = false;
}
