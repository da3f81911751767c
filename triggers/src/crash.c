/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash: a producer is gone without a close or exit mark.
 *
 * Formula   none: whoever holds the ring's lock knows. t0 = the producer's last event.
 * State     none; producers of one job that die together coalesce into one incident by the gates.
 * Cost      none a sample.
 * Defaults  crash.severity note: a kill by the scheduler looks the same; only what sees the exit status
 *           (run -- CMD) may call it more.
 */
#include <stdio.h>

#include "module.h"

static void crash_signal(struct triggers_engine *engine, const struct triggers_signal *signal)
{
	if (signal->kind != TRIGGERS_SIGNAL_CRASH)
		return;
	struct triggers_claim claim = {
		.module = &triggers_module_crash,
		.source = signal->source,
		.rank = signal->rank,
		.severity = (enum triggers_severity)triggers_engine_option(engine,
									   TRIGGERS_OPTION_CRASH_SEVERITY),
		.t0_ns = signal->t0_ns,
		.until_ns = signal->now_ns,
		.detected_ns = signal->now_ns,
		.value = (double)(signal->now_ns - signal->t0_ns),
		.step = -1,
		.sample = -1,
	};
	snprintf(claim.evidence, sizeof(claim.evidence), "%s",
		 signal->text ? signal->text : "the producer died without a close mark");
	triggers_engine_fire(engine, &claim, NULL);
}

const struct triggers_module triggers_module_crash = {.name = "crash", .signal = crash_signal};
