/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fuzz targets share. A target is one file fuzz_<name>.c with LLVMFuzzerTestOneInput(). It is built
 * twice: with libFuzzer where DRIVEREC_FUZZ is on, and everywhere with replay.c, which runs it over its
 * corpus as an ordinary test.
 *
 * A target must behave the same each time it gets the same bytes. Choices (how input is cut in pieces, which
 * limits hold) are drawn from the bytes themselves, so that corpus files stay plain traces.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <reducer/event.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Says what does not hold and aborts, which is a finding. */
__attribute__((format(printf, 2, 3))) void fuzz_require(bool holds, const char *format, ...);

/* Numbers that depend on the input alone. */
struct fuzz_dice {
	uint64_t state;
};
struct fuzz_dice fuzz_dice(const uint8_t *data, size_t size);
uint64_t fuzz_roll(struct fuzz_dice *dice, uint64_t limit);

/* A file in memory that holds the bytes, at its beginning. */
int fuzz_file(const void *data, size_t size);
/* All bytes of a file in memory; the caller frees. */
char *fuzz_file_bytes(int fd, size_t *ret_size);
/* A name by which it can be opened. */
const char *fuzz_file_path(int fd);

/*
 * What a reader delivered: a hash an event and member, in order. Two readings of the same input are compared by
 * it. `each` says also what the event is, where FUZZ_SAY is set in the environment.
 */
enum { FUZZ_HEARD_MAX = 4096 };

struct fuzz_heard {
	uint64_t events, members;
	uint64_t count;                /* of events and members */
	uint64_t hash[FUZZ_HEARD_MAX]; /* of the first ones */
	uint64_t all;                  /* of all of them */
	bool meaning;                  /* by what is meant (name, times, texts undone), not how it is written */
	bool like_event;               /* a top-level member has a name that only events have */
	struct reducer_sink also;      /* gets everything too, where it has functions */
};
struct reducer_sink fuzz_hear(struct fuzz_heard *heard);
void fuzz_same(const struct fuzz_heard *a, const struct fuzz_heard *b, const char *what);
void fuzz_same_report(const struct reducer_read_report *a, const struct reducer_read_report *b, const char *what);

/* Strict JSON (RFC 8259) in UTF-8, one value and nothing else but space; shares nothing with the reducer. */
bool strict_json(const char *text, size_t bytes, size_t *ret_offset);
/* Strict UTF-8. */
bool strict_utf8(const char *text, size_t bytes);

#endif
