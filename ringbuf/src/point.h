/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named points between two observable steps of the ring's protocol. In the library they are nothing; in
 * ringbuf_points (tests) each calls drec_point_hook, if set, which may park the thread or kill the process.
 *
 * Points: append_stored append_committed scope_pushed scope_committed scope_popped take_closed take_counted
 * take_chosen take_claimed take_checked take_void take_header take_open slot_claimed slot_ready dict_reserved
 * dict_copied dict_committed close_marked create_allocated create_filled create_locked create_visible
 */
#ifndef RINGBUF_POINT_H
#define RINGBUF_POINT_H

#ifdef DREC_POINTS
extern void (*drec_point_hook)(const char *name);
#define POINT(name)                            \
	do {                                   \
		if (drec_point_hook)           \
			drec_point_hook(#name); \
	} while (0)
#else
#define POINT(name) ((void)0)
#endif

#endif
