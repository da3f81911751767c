/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incidents/manifest.h: manifest.json, and the few JSON helpers that records and manifests share. Times in ns
 * are strings, since JSON numbers are doubles to most readers.
 */
#ifndef RECORDER_INCIDENTS_MANIFEST_H
#define RECORDER_INCIDENTS_MANIFEST_H

#include <cjson/cJSON.h>

#include "incident.h"

/* The manifest of a written incident; `folder_fd` holds the files it lists. Text by malloc. */
int incident_manifest(const struct incident *incident, int folder_fd, char **ret_text);

/* Rewrites the manifest of a published folder as resolved, with the next revision. */
int incident_manifest_resolve(struct incidents_store *store, const char *folder, int64_t resolved_ns,
			      char **ret_text);

/* Reads a folder's manifest. -EBADMSG: it is none of ours. Freed by cJSON_Delete(). */
int incident_manifest_read(struct incidents_store *store, const char *folder, cJSON **ret_json);
/* What a list shows of it. */
void incident_manifest_entry(const cJSON *json, struct incidents_entry *ret_entry);

void json_add_ns(cJSON *object, const char *name, int64_t ns);
void json_add_u64(cJSON *object, const char *name, uint64_t value); /* as a string */
void json_add_hex(cJSON *object, const char *name, const uint8_t *bytes, size_t count);
/* `fallback` where it is missing or of another type. */
int64_t json_ns(const cJSON *object, const char *name, int64_t fallback);
uint64_t json_u64(const cJSON *object, const char *name, uint64_t fallback);
double json_number(const cJSON *object, const char *name, double fallback);
bool json_true(const cJSON *object, const char *name);
void json_text(const cJSON *object, const char *name, char *ret_text, size_t room);
int json_hex(const cJSON *object, const char *name, uint8_t *ret_bytes, size_t count);

cJSON *json_firing(const struct triggers_firing *firing);
void json_read_firing(const cJSON *object, struct triggers_firing *ret_firing);
/* "2026-11-30T03:12:44.118Z" */
void json_utc(char ret_text[32], int64_t unix_ns);

#endif
