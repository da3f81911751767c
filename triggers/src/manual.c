/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manual: the job or an operator asks for an incident (command line, HTTP, producer API, SIGUSR1).
 *
 * Formula   none. t0 is what the caller says.
 * State     none. A job that asks 10,000 times a second still gets one incident while the first waits for
 *           its post window, and then what the budgets leave; no cooldown, half the budgets are kept for it.
 * Cost      none a sample.
 * Defaults  manual.severity warn: somebody wanted to see it, nothing is known to be broken.
 */
#include <stdio.h>

#include "module.h"

static void manual_signal(struct triggers_engine *engine, const struct triggers_signal *signal)
{
	if (signal->kind != TRIGGERS_SIGNAL_MANUAL)
		return;
	struct triggers_claim claim = {
		.module = &triggers_module_manual,
		.source = signal->source,
		.rank = signal->rank,
		.severity = (enum triggers_severity)triggers_engine_option(engine,
									   TRIGGERS_OPTION_MANUAL_SEVERITY),
		.t0_ns = signal->t0_ns,
		.until_ns = signal->now_ns,
		.detected_ns = signal->now_ns,
		.step = -1,
		.sample = -1,
		.by_hand = 1,
	};
	snprintf(claim.evidence, sizeof(claim.evidence), "%s",
		 signal->text && *signal->text ? signal->text : "asked for by hand");
	triggers_engine_fire(engine, &claim, NULL);
}

const struct triggers_module triggers_module_manual = {.name = "manual", .signal = manual_signal};
