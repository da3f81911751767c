/* SPDX-License-Identifier: Apache-2.0 */
#include "replay_compare.h"

#include <string.h>

#include "ns.h"
#include "output.h"
#include "replay_report.h"

void replay_side_take(void *side_, const struct triggers_firing *firing)
{
	struct replay_side *side = side_;
	if (firing->severity == TRIGGERS_NOTE)
		return;
	if (firing->severity == TRIGGERS_CRITICAL)
		side->critical++;
	else
		side->warn++;
	if (side->n_found == REPLAY_FOUND_MAX)
		return;
	struct replay_found *found = &side->found[side->n_found++];
	*found = (struct replay_found){.t0_ns = firing->t0_ns, .detected_ns = firing->detected_ns};
	memcpy(found->trigger, firing->trigger, sizeof(found->trigger));
}

static int64_t apart(int64_t a_ns, int64_t b_ns)
{
	return a_ns > b_ns ? ns_sub(a_ns, b_ns) : ns_sub(b_ns, a_ns);
}

static const struct replay_found *nearest(const struct replay_side *side, const char *trigger, int64_t t0_ns)
{
	const struct replay_found *best = NULL;
	for (unsigned i = 0; i < side->n_found; i++) {
		const struct replay_found *found = &side->found[i];
		if (!strcmp(found->trigger, trigger) && (!best || apart(found->t0_ns, t0_ns) < apart(best->t0_ns, t0_ns)))
			best = found;
	}
	return best;
}

/* How much earlier the one anomaly was noticed; false where there is not one that both sides found. */
static bool found_earlier(const struct replay_side *before, const struct replay_side *after,
			  const struct replay_about *about, int64_t *ret_ns)
{
	const struct replay_found *was = NULL, *is = NULL;
	if (about->known) {
		was = nearest(before, about->trigger, about->t0_ns);
		is = nearest(after, about->trigger, about->t0_ns);
	} else if (before->n_found == 1 && after->n_found == 1) {
		was = &before->found[0];
		is = nearest(after, was->trigger, was->t0_ns);
	}
	if (!was || !is)
		return false;
	*ret_ns = ns_sub(was->detected_ns, is->detected_ns);
	return true;
}

static void compare_json(const struct replay_side *before, const struct replay_side *after, bool both,
			 int64_t earlier_ns, const char *name, FILE *out)
{
	cJSON *json = cJSON_CreateObject(), *compared = cJSON_AddObjectToObject(json, "compared");
	const struct replay_side *sides[] = {before, after};
	static const char *const names[] = {"as_configured", "with_set"};
	output_json_text(compared, "of", name);
	for (int i = 0; i < 2; i++) {
		cJSON *side = cJSON_AddObjectToObject(compared, names[i]);
		output_json_count(side, "critical", sides[i]->critical);
		output_json_count(side, "warn", sides[i]->warn);
	}
	if (both)
		output_json_ns(compared, "found_earlier_ns", earlier_ns);
	replay_report_json(json, out);
}

void replay_compare(const struct replay_side *before, const struct replay_side *after, const struct replay_about *about,
		    const char *name, bool json, FILE *out)
{
	char text[OUTPUT_TEXT_MAX];
	int64_t earlier_ns = 0;
	bool both = found_earlier(before, after, about, &earlier_ns);
	if (json) {
		compare_json(before, after, both, earlier_ns, name, out);
		return;
	}
	fprintf(out, "%s%sfirings %llu -> %llu", name ? name : "", name ? ": " : "",
		(unsigned long long)(before->warn + before->critical), (unsigned long long)(after->warn + after->critical));
	if (before->critical != after->critical && before->warn + after->warn)
		fprintf(out, " (critical %llu -> %llu)", (unsigned long long)before->critical,
			(unsigned long long)after->critical);
	if (both && earlier_ns)
		fprintf(out, ", found %s %s", output_duration(text, apart(earlier_ns, 0)),
			earlier_ns > 0 ? "earlier" : "later");
	fputc('\n', out);
}
