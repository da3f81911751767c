/* SPDX-License-Identifier: Apache-2.0 */
#include <triggers/triggers.h>

const char *triggers_severity_name(enum triggers_severity severity)
{
	switch (severity) {
	case TRIGGERS_NOTE:
		return "note";
	case TRIGGERS_WARN:
		return "warn";
	case TRIGGERS_CRITICAL:
		return "critical";
	}
	return "unknown";
}

const char *triggers_gate_name(enum triggers_gate gate)
{
	static const char *const names[TRIGGERS_GATE_LIMIT] = {
		[TRIGGERS_PASSED] = "passed",         [TRIGGERS_WARMUP] = "warmup",
		[TRIGGERS_PERIODIC] = "periodic",     [TRIGGERS_COOLDOWN] = "cooldown",
		[TRIGGERS_COALESCED] = "coalesced",   [TRIGGERS_BUDGET_HOUR] = "budget_hour",
		[TRIGGERS_BUDGET_DAY] = "budget_day", [TRIGGERS_OWN_CAPTURE] = "own_capture",
		[TRIGGERS_SILENCED] = "silenced",     [TRIGGERS_SAME_ANOMALY] = "same_anomaly",
	};
	return (unsigned)gate < TRIGGERS_GATE_LIMIT ? names[gate] : "unknown";
}
