/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How recording ends: drec_close(), or the process exits by itself. Neither unmaps or frees anything, since
 * other threads may be inside a call; both leave a mark, so that a producer without one has crashed.
 */
#include "ring.h"

#include <errno.h>
#include <unistd.h>

#include "point.h"

static void end(struct drec *rec, unsigned mark)
{
	struct local *l = enter(rec);
	uint64_t none = 0;
	if (l) {
		uint64_t now = ticks_now(rec->clock);
		struct drec_event event = {
			.kind = DREC_MARK,
			.depth = DREC_DEPTH_UNKNOWN,
			.category = (uint16_t)mark,
			.track = l->track,
			.start = now,
		};
		if (mark == DREC_MARK_CLOSE)
			scopes_end(l, 0, now);
		append_event(l, &event, now);
		leave(l);
	}
	compare_exchange(&rec->state->end_mark, &none, mark);
	POINT(close_marked);
}

void drec_close(drec *rec)
{
	uint64_t open = 0;
	if (!rec || !load_relaxed(rec->live) || !compare_exchange(&rec->closing, &open, 1))
		return;
	end(rec, DREC_MARK_CLOSE);
	store_release(rec->live, 0);
	/* Gives up the lock as well. */
	int saved = errno;
	close(rec->fd);
	errno = saved;
}

__attribute__((destructor)) static void process_exit(void)
{
	for (struct drec *rec = recorders_first(); rec; rec = rec->next)
		if (rec->exit_mark && load_relaxed(rec->live))
			end(rec, DREC_MARK_EXIT);
}
