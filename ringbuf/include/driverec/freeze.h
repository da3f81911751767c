/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driverec/freeze.h: keep a window of a ring (pin), and write it to a file (.drec). For the daemon.
 *
 * A pin is one entry in the ring: while it is active, every chunk whose order number is in
 * [from, from + n_chunks / 2) is not overwritten, chunks closed later included; the producer goes on in the
 * rest. The pin holds the incident's id, so it is also the pending record of the incident: it survives the
 * daemon. Pins are written by pwrite(); nothing here maps a ring writable.
 *
 * Errors are -errno. Not thread-safe for one reader.
 */
#ifndef DRIVEREC_FREEZE_H
#define DRIVEREC_FREEZE_H

#include <driverec/reader.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Pins: pin->active is ignored. *ret_entry is the entry used. -EROFS: the ring is open for reading only;
 * -EBUSY: all entries are taken, or another process holds the pins' lock; -EDQUOT: more than half of the chunks
 * would be pinned now. With `force` the entry is set all the same and 1 is returned.
 */
int drec_pin_set(struct drec_reader *reader, const struct drec_pin *pin, int force, unsigned *ret_entry);

/* Moves a pin's `from` up: the new entry is on before the old one is off. */
int drec_pin_move(struct drec_reader *reader, unsigned entry, uint64_t from, unsigned *ret_entry);
int drec_pin_release(struct drec_reader *reader, unsigned entry);
int drec_pins_read(struct drec_reader *reader, struct drec_pin ret_pins[DREC_PINS_MAX]);

/* The order number from which a pin keeps everything that ends at or after `ticks`: for a daemon just
 * started, which has no samples of `tail`. */
int drec_pin_from(struct drec_reader *reader, uint64_t ticks, uint64_t *ret_from);

/* The lowest order at or above `from` that is still there: what a pin can keep of what it should. */
int drec_pin_lowest(struct drec_reader *reader, uint64_t from, uint64_t *ret_order);

/*
 * Draining: the order up to which what a pin at `from` keeps can be copied as one part, at most half the chunks.
 * Every order below it is that of a closed chunk or was overwritten; what is closed later gets a higher one.
 */
int drec_pin_until(struct drec_reader *reader, uint64_t from, uint64_t *ret_until);

/*
 * A window may be written in parts, each a file. Part k has the chunks closed with orders in [since, until), and
 * the last one (until = 0) all others and those that are open: so every event is in one of them. A part is
 * complete if none of its orders is missing; the window is, if every part is and the orders follow each other.
 */
struct drec_snapshot_request {
	int64_t t0_ns, a_ns, b_ns; /* Unix ns by mono_to_unix_ns */
	int64_t mono_to_unix_ns;
	uint64_t from;             /* the pin's; 0 = no pin: whatever meets the window now */
	uint64_t since;            /* chunks closed with lower orders are in an earlier part; 0 = there is none.
	                              Then `from` is the same */
	uint64_t until;            /* a part as of drec_pin_until(); open spans are left to the last one */
	uint64_t bytes_max;        /* of event data; oldest first; 0 = no limit */
	const struct drec_anchor *host_anchors;
	size_t n_host_anchors;
	int no_crc;                /* leave the second pass to drec_window_seal(): till then the window says that
	                              it is not complete (DREC_INCOMPLETE_UNSEALED), and events are not counted */
};

struct drec_snapshot_result {
	struct drec_window window;
	uint64_t file_bytes; /* length; holes are not counted in data_bytes */
	uint64_t data_bytes;
	uint64_t events_in_window;
	uint32_t chunks;
};

/*
 * Writes the window to `out_fd`, an empty regular file open for reading and writing. The file is a valid
 * .drec if and only if 0 is returned. The ring is read no earlier than the call: every event committed before
 * it that meets [a, b] is in the file, or the window says that it is not complete. The file may hold more.
 * -ENOSPC, -EDQUOT: no room; a smaller bytes_max may do.
 */
int drec_snapshot_write(struct drec_reader *reader, int out_fd, const struct drec_snapshot_request *request,
			struct drec_snapshot_result *ret_result);

/*
 * Reads the file back: puts the CRCs in, counts the events that meet the window, decides whether it is complete,
 * and drops open spans whose end is among the events. May be repeated. -EIO if what is read is no whole window.
 */
int drec_window_seal(int fd);

/* Checks every CRC and walks every event. 0, or -EBADMSG with the problem. */
int drec_window_verify(int dirfd, const char *path, struct drec_problem *ret_problem);

#ifdef __cplusplus
}
#endif
#endif
