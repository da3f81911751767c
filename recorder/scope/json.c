/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include "output.h"
#include "plain_text.h"

static void add_share(cJSON *list, uint16_t permille)
{
	cJSON_AddItemToArray(list, permille == SCOPE_UNKNOWN ? cJSON_CreateNull()
							     : cJSON_CreateNumber(permille / 1000.0));
}

static void add_steps(const struct scope_model *model, cJSON *root)
{
	cJSON *steps = cJSON_AddObjectToObject(root, "steps");
	output_json_signed(steps, "step", model->step);
	output_json_ns(steps, "median_ns", model->median_ns);
	output_json_ns(steps, "warn_ns", model->warn_ns);
	output_json_ns(steps, "critical_ns", model->critical_ns);
	cJSON *longest = cJSON_AddArrayToObject(steps, "longest_ns"),
	      *limits = cJSON_AddArrayToObject(steps, "limit_ns");
	/* Durations are far below what a double holds exactly; moments are not, and are strings. */
	for (unsigned i = 0; i < model->columns; i++) {
		const struct scope_step_column *step = &model->steps[i];
		cJSON_AddItemToArray(longest, step->longest_ns ? cJSON_CreateNumber((double)step->longest_ns)
							       : cJSON_CreateNull());
		cJSON_AddItemToArray(limits, step->warn_ns ? cJSON_CreateNumber((double)step->warn_ns)
							   : cJSON_CreateNull());
	}
	if (!model->open.there)
		return;
	cJSON *open = cJSON_AddObjectToObject(steps, "open");
	output_json_signed(open, "step", model->open.number);
	output_json_ns(open, "for_ns", model->open.for_ns);
	output_json_ns(open, "deadline_ns", model->open.deadline_ns);
	output_json_text(open, "ring", model->open.ring);
	output_json_text(open, "inside", model->open.inside);
}

static void add_tracks(const struct scope_model *model, cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "tracks");
	for (unsigned i = 0; i < model->n_tracks; i++) {
		const struct scope_track *track = &model->track[i];
		cJSON *item = cJSON_CreateObject();
		output_json_text(item, "label", track->label);
		cJSON_AddBoolToObject(item, "coarsened", track->coarsened);
		cJSON *busy = cJSON_AddArrayToObject(item, "busy");
		for (unsigned c = 0; c < model->columns; c++)
			add_share(busy, track->busy[c]);
		cJSON_AddItemToArray(list, item);
	}
	output_json_count(root, "tracks_there", model->tracks);
}

static void add_incidents(const struct scope_model *model, cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "incidents");
	for (unsigned i = 0; i < model->n_incidents; i++) {
		const struct scope_incident *incident = &model->incident[i];
		cJSON *item = cJSON_CreateObject();
		output_json_text(item, "id", incident->id);
		output_json_text(item, "trigger", incident->trigger);
		output_json_text(item, "severity", triggers_severity_name(incident->severity));
		output_json_ns(item, "t0_ns", incident->t0_ns);
		output_json_signed(item, "step", incident->step);
		output_json_text(item, "sentence", incident->sentence);
		cJSON_AddBoolToObject(item, "ongoing", incident->ongoing);
		cJSON_AddItemToArray(list, item);
	}
}

static void add_overlay_step(cJSON *object, const char *name, const struct scope_overlay_step *step)
{
	if (!step->there)
		return;
	cJSON *item = cJSON_AddObjectToObject(object, name);
	output_json_signed(item, "step", step->number);
	output_json_ns(item, "start_ns", step->start_ns);
	output_json_ns(item, "length_ns", step->length_ns);
	cJSON_AddBoolToObject(item, "unfinished", step->unfinished);
}

static void add_overlay_tracks(const struct scope_overlay *overlay, cJSON *item)
{
	static const char *const names[SCOPE_OVERLAY_STEPS] = {"good", "bad"};
	cJSON *list = cJSON_AddArrayToObject(item, "tracks");
	for (unsigned i = 0; i < overlay->n_tracks; i++) {
		const struct scope_overlay_track *track = &overlay->track[i];
		cJSON *entry = cJSON_CreateObject();
		output_json_text(entry, "label", track->label);
		for (int which = 0; which < SCOPE_OVERLAY_STEPS; which++) {
			cJSON *busy = cJSON_AddArrayToObject(entry, names[which]);
			for (unsigned c = 0; c < overlay->cells; c++)
				add_share(busy, track->busy[which][c]);
		}
		if (track->grew[0]) {
			cJSON *grew = cJSON_AddObjectToObject(entry, "grew");
			output_json_text(grew, "name", track->grew);
			output_json_ns(grew, "good_ns", track->grew_ns[SCOPE_GOOD_STEP]);
			output_json_ns(grew, "bad_ns", track->grew_ns[SCOPE_BAD_STEP]);
		}
		cJSON_AddItemToArray(list, entry);
	}
}

static void add_overlay(const struct scope_model *model, cJSON *root)
{
	const struct scope_overlay *overlay = &model->overlay;
	if (!overlay->id[0])
		return;
	cJSON *item = cJSON_AddObjectToObject(root, "overlay");
	output_json_text(item, "incident", overlay->id);
	if (overlay->why[0])
		output_json_text(item, "why_not", overlay->why);
	output_json_ns(item, "column_ns", overlay->cell_ns);
	cJSON_AddBoolToObject(item, "cut", overlay->cut);
	add_overlay_step(item, "good", &overlay->step[SCOPE_GOOD_STEP]);
	add_overlay_step(item, "bad", &overlay->step[SCOPE_BAD_STEP]);
	add_overlay_tracks(overlay, item);
}

cJSON *scope_json(const struct scope_model *model)
{
	cJSON *root = cJSON_CreateObject();
	if (!root)
		return NULL;
	output_json_text(root, "schema", "driverec.scope/1");
	cJSON_AddBoolToObject(root, "live", model->live);
	if (!model->live)
		output_json_text(root, "not_live", model->not_live);
	if (!model->has_picture)
		output_json_text(root, "no_picture", model->no_picture);
	output_json_text(root, "job", model->job);
	output_json_count(root, "rings", model->rings);
	output_json_count(root, "alive", model->alive);
	output_json_ns(root, "now_ns", model->now_ns);
	output_json_ns(root, "picture_ns", model->picture_ns);
	output_json_ns(root, "from_ns", model->from_ns);
	output_json_ns(root, "column_ns", model->width_ns);
	output_json_count(root, "columns", model->columns);
	add_steps(model, root);
	add_tracks(model, root);
	add_incidents(model, root);
	add_overlay(model, root);
	plain_text_json(root);
	return root;
}
