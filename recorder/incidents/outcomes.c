/* SPDX-License-Identifier: Apache-2.0 */
/* What came of the alerts of an incident: kept as lines of JSON until a job appends them to the disk. */
#include "lifecycle.h"

#include <stdlib.h>
#include <string.h>

#include "manifest.h"

static void add_outcome(struct incident *incident, const char *event, const char *hook, const char *failure,
			int64_t now_ns)
{
	cJSON *json = cJSON_CreateObject();
	char *text, *more;
	size_t bytes;

	cJSON_AddStringToObject(json, "event", event);
	cJSON_AddStringToObject(json, "hook", hook);
	cJSON_AddBoolToObject(json, "worked", failure == NULL);
	if (failure)
		cJSON_AddStringToObject(json, "failure", failure);
	json_add_ns(json, "at_ns", now_ns);
	text = cJSON_PrintUnformatted(json);
	cJSON_Delete(json);
	bytes = text ? strlen(text) : 0;
	if (bytes && incident->outcomes_bytes + bytes + 1 < OUTCOMES_BYTES_MAX) {
		more = realloc(incident->outcomes, incident->outcomes_bytes + bytes + 1);
		if (more) {
			memcpy(more + incident->outcomes_bytes, text, bytes);
			more[incident->outcomes_bytes + bytes] = '\n';
			incident->outcomes = more;
			incident->outcomes_bytes += bytes + 1;
		}
	}
	cJSON_free(text);
}

void incidents_alerted(struct incidents *incidents, const char *id, const char *event, const char *hook,
		       const char *failure)
{
	struct incident *incident = incidents_find(incidents, id);

	if (!incident)
		return;
	add_outcome(incident, event, hook, failure, incidents_now_ns(incidents, incident));
	if (incident->alerts_out > 0)
		incident->alerts_out--;
	if (incident->alerts_out == 0 && !incident->working &&
	    (incident->state == INCIDENT_READY || incident->state == INCIDENT_HOOKED))
		incidents_job_finish(incidents, incident);
}
