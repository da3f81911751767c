/* SPDX-License-Identifier: Apache-2.0 */
#include "module.h"

/* Stall stands first: it tells the others that a late step has already fired. */
const struct triggers_module *const triggers_modules[] = {
	&triggers_module_stall,     &triggers_module_latency_spike,
	&triggers_module_shift,     &triggers_module_difference,
	&triggers_module_straggler, &triggers_module_device_idle,
	&triggers_module_threshold, &triggers_module_crash,
	&triggers_module_manual,    NULL,
};
_Static_assert(sizeof(triggers_modules) / sizeof(triggers_modules[0]) <= TRIGGERS_MODULES_MAX + 1,
	       "every module has its place in a series");

unsigned triggers_module_number(const struct triggers_module *module)
{
	unsigned number = 0;
	while (triggers_modules[number] != module)
		number++;
	return number;
}

const char *triggers_name(unsigned number)
{
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (i == number)
			return triggers_modules[i]->name;
	return NULL;
}
