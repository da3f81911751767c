/* SPDX-License-Identifier: Apache-2.0 */
#include "moment.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

const char *moment_print(char out[MOMENT_TEXT_MAX], struct reducer_moment moment)
{
	/* Below zero ps counts up from ns: -1 ns + 250 ps is -0.750 ns. */
	bool negative = moment.ns < 0;
	uint64_t ns = negative ? 0 - (uint64_t)moment.ns : (uint64_t)moment.ns;
	unsigned ps = moment.ps;

	if (negative && ps) {
		ns--;
		ps = 1000 - ps;
	}
	int used = snprintf(out, MOMENT_TEXT_MAX, "%s%" PRIu64 ".%03u", negative ? "-" : "", ns / 1000,
			    (unsigned)(ns % 1000));

	if (ps)
		snprintf(out + used, MOMENT_TEXT_MAX - (size_t)used, "%03u", ps);
	return out;
}
