/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http/client.h: asks the daemon of a store something, over its socket.
 */
#ifndef RECORDER_HTTP_CLIENT_H
#define RECORDER_HTTP_CLIENT_H

#include <cjson/cJSON.h>
#include <stddef.h>

struct http_client;

/*
 * The daemon that holds `store` (its path); `run_dir` as of drec_run_dir(). -ENOENT: there is none;
 * -ECONNREFUSED: there was one.
 */
int http_client_open(const char *run_dir, const char *store, struct http_client **ret_client);
void http_client_free(struct http_client *client);
/* How long an answer may take: 10 s unless this says otherwise. */
void http_client_wait_at_most(struct http_client *client, long ms);

/*
 * GET where `body` is NULL, else POST. `path` is "/api/v1/…", query included. Returns 0 and the answer, also
 * an answer that says no (*ret_status >= 400), else -errno.
 */
int http_client_ask(struct http_client *client, const char *path, const cJSON *body, long *ret_status,
		    cJSON **ret_answer);

/* The text of an answer's "error", or of its status. */
const char *http_client_error(const cJSON *answer, long status);

#endif
