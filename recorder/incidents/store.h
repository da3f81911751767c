/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incidents/store.h: the folder that incidents are kept in.
 *
 *     <store>/id                      this store's id, which pins carry
 *     <store>/incidents/<UTC time>-<trigger>-<id>/    appears by rename, whole
 *     <store>/incidents/.tmp-<the same>/              being written
 *     <store>/pending/<id>.json       an incident that is not finished
 *     <store>/pending/<id>/           what was gathered for it before its window was over
 *     <store>/suppressed.state        what fired and made no incident (suppressed.h)
 *
 * Readers (the command line, HTTP) need no lock: a folder without a leading dot is whole.
 * Not thread-safe for one store, except that the paths never change. Errors are -errno.
 */
#ifndef RECORDER_INCIDENTS_STORE_H
#define RECORDER_INCIDENTS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <incidents/incidents.h>

enum { INCIDENTS_FOLDER_MAX = 128, INCIDENTS_PATH_MAX = 4096, INCIDENTS_LIST_MAX = 100000 };

struct incidents_store;

/* Opens `path`, made with its folders (0700) where missing if `create`. -ENOENT if there is none. */
int incidents_store_open(const char *path, bool create, struct incidents_store **ret_store);
void incidents_store_free(struct incidents_store *store);

const char *incidents_store_path(const struct incidents_store *store);
const uint8_t *incidents_store_id(const struct incidents_store *store); /* INCIDENTS_ID_BYTES */
int incidents_store_folder_fd(const struct incidents_store *store);     /* of incidents/ */
int incidents_store_pending_fd(const struct incidents_store *store);    /* of pending/ */

/* One kept incident, as its manifest says. */
struct incidents_entry {
	char folder[INCIDENTS_FOLDER_MAX]; /* name within incidents/ */
	char id[INCIDENTS_ID_TEXT];
	char trigger[TRIGGERS_NAME_MAX];
	char job[DREC_TEXT_MAX];
	char verdict[16];                       /* of the whole: "complete", "partial" */
	char host_spans[16], device_events[16]; /* of these classes: "complete", "partial", "none" */
	char sentence[512];                     /* the first sentence of the report */
	enum triggers_severity severity;
	int64_t t0_ns, detected_ns, resolved_ns; /* resolved 0 = not (yet) */
	int64_t lasted_ns;                       /* the anomaly, as far as it is known */
	int64_t step;
	uint32_t rank;
	bool ongoing, kept;
	bool readable; /* false: the manifest could not be read */
};

/* Every whole folder, oldest first; *ret_entries by free(). `bytes` of each is not known: see _bytes. */
int incidents_store_list(struct incidents_store *store, struct incidents_entry **ret_entries,
			 size_t *ret_count);
/* Bytes a folder takes on disk. */
int incidents_store_bytes(struct incidents_store *store, const char *folder, uint64_t *ret_bytes);
/* How many digits of each id tell the entries apart (at least 4). */
unsigned incidents_store_id_digits(const struct incidents_entry *entries, size_t count);

/*
 * The incident that `what` names: a prefix of its id (at least 4 digits), a folder's name, or a path to it.
 * -ENOENT; -EEXIST if a prefix fits several; -EINVAL if it is too short.
 */
int incidents_store_find(struct incidents_store *store, const char *what, struct incidents_entry *ret_entry);

int incidents_store_keep(struct incidents_store *store, const char *folder, bool keep);
/* -EPERM: the folder has no manifest of ours, or holds what we did not make; -EBUSY: it is kept. */
int incidents_store_delete(struct incidents_store *store, const char *folder, bool even_kept);
/* Deletes what is past the limits, oldest first, never kept or unresolved ones. Returns how many, or -errno.
 */
int incidents_store_retain(struct incidents_store *store, const struct incidents_retention *retention,
			   int64_t now_ns);

/* "20261130T031244Z-stall-3f9c12ab" of a time, a trigger and an id. */
void incidents_folder_name(char ret_name[INCIDENTS_FOLDER_MAX], int64_t t0_ns, const char *trigger,
			   const uint8_t id[INCIDENTS_ID_BYTES]);
void incidents_id_text(char ret_text[INCIDENTS_ID_TEXT], const uint8_t id[INCIDENTS_ID_BYTES]);
int incidents_id_parse(const char *text, uint8_t ret_id[INCIDENTS_ID_BYTES]);

#endif
