/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "gather.h"
#include "incidents/manifest.h"

static void copy_text(const cJSON *object, const char *name, char *ret, size_t room)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
	snprintf(ret, room, "%s", text ? text : "");
}

/* The longest open step, and the innermost span that is open in the same ring. */
static void take_open(const cJSON *ring, struct scope_model *model)
{
	const cJSON *open, *innermost = NULL, *step = NULL;
	cJSON_ArrayForEach(open, cJSON_GetObjectItemCaseSensitive(ring, "open"))
	{
		if (cJSON_HasObjectItem(open, "step"))
			step = open;
		else if (step && json_number(open, "tid", -1) == json_number(step, "tid", -1))
			innermost = open;
	}
	if (!step || json_ns(step, "for_ns", 0) <= model->open.for_ns)
		return;
	model->open = (struct scope_open_step){
		.there = true,
		.number = (int64_t)json_number(step, "step", -1),
		.for_ns = json_ns(step, "for_ns", 0),
		.deadline_ns = json_ns(ring, "step_deadline_ns", 0),
	};
	copy_text(ring, "name", model->open.ring, sizeof(model->open.ring));
	copy_text(innermost, "name", model->open.inside, sizeof(model->open.inside));
}

static void take_ring(const cJSON *ring, struct scope_model *model)
{
	const char *life = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(ring, "life"));
	bool alive = life && strcmp(life, "alive") == 0;
	int64_t step = (int64_t)json_number(ring, "step", -1), median_ns = json_ns(ring, "step_median_ns", 0);
	model->rings++;
	model->alive += alive;
	if (!model->job[0] || alive)
		copy_text(ring, "job", model->job, sizeof(model->job));
	if (!alive)
		return;
	/* A job is as far as its slowest rank. */
	if (step >= 0 && (model->step < 0 || step < model->step))
		model->step = step;
	if (median_ns > model->median_ns) {
		bool learned = json_true(ring, "learned");
		model->median_ns = median_ns;
		model->warn_ns = learned ? json_ns(ring, "step_warn_ns", 0) : 0;
		model->critical_ns = learned ? json_ns(ring, "step_critical_ns", 0) : 0;
	}
	take_open(ring, model);
}

void scope_gather_live(const cJSON *answer, struct scope_model *model)
{
	const cJSON *ring;
	model->live = true;
	model->now_ns = json_ns(answer, "now_ns", model->now_ns);
	model->incidents_open = (unsigned)json_number(answer, "incidents_open", 0);
	cJSON_ArrayForEach(ring, cJSON_GetObjectItemCaseSensitive(answer, "rings"))
	{
		take_ring(ring, model);
	}
}
