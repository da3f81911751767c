/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reducer/marks.h: how a reduced trace says what it is, in every format.
 *
 * A reduced trace holds one metadata event ("M" in Chrome JSON; in an XPlane a plane of this name with the
 * args as its stats)
 *
 *	name  driverec.reduced
 *	args  {"version":1,"bin_ps":"…","origin_ps":"…", …}
 *
 * Bin n is [origin + n * bin, origin + (n + 1) * bin), in picoseconds of the trace's own time (its base not
 * added); both are decimal texts, for no double holds them. Events that start before the origin are in the
 * bins of negative n. Further args count what was merged and what was left out, by reason; a window that was
 * asked for is "window_from_ps" and "window_to_ps".
 *
 * What stands for several events is a span (or, for instants, an instant; for async spans, a pair) of category
 * driverec.merged whose args begin with `{"driverec.events":N`:
 *
 *	driverec.events      how many events it stands for; 0: it goes on from another one of its bin, for which
 *	                     there was no room in one piece
 *	driverec.sum_ps      their summed duration in picoseconds     (spans only)
 *	driverec.longest_ps  their longest duration                   (spans only)
 *	driverec.longest     the name of that longest one (spans only; left out where a trace has more names than
 *	                     are remembered, about half a million)
 *
 * Its name is the common name of all of them, or "merged". Its length is the time that they were busy within
 * its bins; its place in the bin is not theirs.
 *
 * Reading one again, a merged span counts for as many events as it says.
 */
#ifndef REDUCER_MARKS_H
#define REDUCER_MARKS_H

#define REDUCER_MARK_REDUCED "driverec.reduced"
#define REDUCER_MARK_MERGED "driverec.merged" /* category of what stands for several events */
#define REDUCER_MARK_MERGED_ARGS "{\"driverec.events\":"
#define REDUCER_MARK_MERGED_NAME "merged"

/* Args as long as this are not searched for the "step_num" of a step mark. */
enum { REDUCER_MARK_VERSION = 1, REDUCER_BINS_DEFAULT = 3840, REDUCER_STEP_ARGS_MAX = 512 };

#endif
