/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incidents/suppressed.h: the firings that made no incident, and why: what an operator looks at before
 * turning a gate.
 *
 * A storm is one line. A firing of the same trigger, series and gate less than a minute after the last one is
 * counted with it; of more than 64 series a minute that one gate holds back from one trigger the rest is one
 * line as well. Of what was folded the worst firing is told. 4,096 lines are kept, those that were added to
 * last; the others are counted.
 *
 * As bytes (the file suppressed.state of a store; little-endian): "DRVSUPP1", version u32, bytes of the body
 * u32, their CRC32 u32, 0 u32, body. Body: forgotten u64, lines u32, then each line, the one added to longest
 * ago first.
 *
 * Not thread-safe. Errors are -errno.
 */
#ifndef RECORDER_INCIDENTS_SUPPRESSED_H
#define RECORDER_INCIDENTS_SUPPRESSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>
#include <triggers/triggers.h>

#define SUPPRESSED_FILE "suppressed.state"

enum {
	SUPPRESSED_MAX = 4096,
	SUPPRESSED_ALIKE_MAX = 64,
	SUPPRESSED_GATE_MAX = 24,
	SUPPRESSED_BYTES_MAX = 4 << 20 /* of the file */
};
#define SUPPRESSED_FOLD_NS INT64_C(60000000000)

struct suppressed_line {
	int64_t first_ns, last_ns; /* when noticed */
	uint64_t count;
	char trigger[TRIGGERS_NAME_MAX];
	char gate[SUPPRESSED_GATE_MAX];
	bool others; /* of several series; `series` is then the worst one's */
	/* of the worst one */
	enum triggers_severity severity;
	char series[TRIGGERS_NAME_MAX];
	double ratio;
	uint32_t rank; /* UINT32_MAX = not known */
	int64_t step;  /* -1 = not known */
	char evidence[TRIGGERS_TEXT_MAX];
};

struct suppressed;

int suppressed_new(struct suppressed **ret_log);
void suppressed_free(struct suppressed *log);

void suppressed_add(struct suppressed *log, const struct triggers_firing *firing, enum triggers_gate gate);

size_t suppressed_count(const struct suppressed *log);
/* Lines that had to go. */
uint64_t suppressed_forgotten(const struct suppressed *log);
/* In the order of their last firing. NULL: no further one. */
const struct suppressed_line *suppressed_oldest(const struct suppressed *log);
const struct suppressed_line *suppressed_newer(const struct suppressed *log,
					       const struct suppressed_line *line);

/* A line for programs. */
cJSON *suppressed_json(const struct suppressed_line *line);

/* Whether anything was added since it was last made bytes, or read. */
bool suppressed_changed(const struct suppressed *log);
/* The whole log as bytes (malloc). */
int suppressed_save(struct suppressed *log, char **ret_bytes, size_t *ret_count);
/* -EBADMSG: damaged, cut short, or not of this kind or version. */
int suppressed_parse(const char *bytes, size_t count, struct suppressed **ret_log);
/* The log of a store: -ENOENT where it has none. */
int suppressed_read(const char *store_path, struct suppressed **ret_log);

#endif
