/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much time an incident keeps. [t0 - pre, t0 + post], with the time until it was noticed added, since
 * what happened then is the anomaly. A stall that was noticed late keeps two windows instead of one long one:
 * around t0 and from detection on. What lies between is the hang itself; open spans and marks tell it.
 */
#include <string.h>

#include "incident.h"

enum { LONGEST_FACTOR = 10 };
#define UNKNOWN_STEP_POST_NS INT64_C(5000000000)

static int64_t times(int64_t ns, uint32_t count)
{
	if (ns <= 0 || count == 0)
		return 0;
	return ns > INT64_MAX / (int64_t)count ? INT64_MAX : ns * (int64_t)count;
}

static int64_t pre_ns(const struct incidents_sizing *sizing, int64_t step_ns)
{
	int64_t pre = sizing->pre_ns > 0 ? sizing->pre_ns : times(step_ns, sizing->pre_steps);

	return pre > sizing->pre_min_ns ? pre : sizing->pre_min_ns;
}

static int64_t post_ns(const struct incidents_sizing *sizing, int64_t step_ns)
{
	int64_t post = sizing->post_ns > 0 ? sizing->post_ns : times(step_ns, sizing->post_steps);

	if (post == 0)
		post = UNKNOWN_STEP_POST_NS;
	return post < sizing->post_max_ns ? post : sizing->post_max_ns;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

unsigned incident_size(struct incident *incident, const struct incidents_sizing *sizing, int64_t step_ns,
		       int64_t last_ns)
{
	const struct triggers_firing *firing = incident_first(incident);
	int64_t pre = pre_ns(sizing, step_ns), post = post_ns(sizing, step_ns);
	int64_t noticed = later(firing->detected_ns, firing->t0_ns);
	struct incident_window *window = incident->window;

	incident->bytes_max = sizing->bytes_max;
	if (last_ns > 0) {
		window[0].a_ns = incident_add_ns(firing->t0_ns, -last_ns);
		window[0].b_ns = firing->t0_ns;
		incident->post_ns = 0;
		incident->longest_ns = last_ns;
		return incident->n_windows = 1;
	}
	incident->post_ns = post;
	incident->longest_ns = times(incident_add_ns(pre, post), LONGEST_FACTOR);
	window[0].a_ns = incident_add_ns(firing->t0_ns, -pre);
	window[0].b_ns = incident_add_ns(firing->t0_ns, post);
	/* One window unless the time between is longer than what a window takes before its t0. */
	if (!firing->ongoing || noticed <= incident_add_ns(window[0].b_ns, pre)) {
		window[0].b_ns = incident_add_ns(later(noticed, firing->until_ns), post);
		return incident->n_windows = 1;
	}
	window[1].a_ns = noticed;
	window[1].b_ns = incident_add_ns(noticed, post);
	return incident->n_windows = 2;
}

void incident_extend(struct incident *incident, const struct triggers_firing *firing)
{
	struct incident_window *window = &incident->window[incident->n_windows - 1];
	int64_t b = incident_add_ns(later(firing->detected_ns, firing->until_ns), incident->post_ns);
	int64_t longest = incident_add_ns(window->a_ns, incident->longest_ns);

	if (b > longest)
		b = longest;
	window->b_ns = later(window->b_ns, b);
}
