/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http/server.h: a small JSON API over HTTP, on the daemon's own loop.
 *
 * What there is stands in a table of routes; the server knows sockets and framing alone. It takes over a
 * listening socket of any family. Handlers run on the loop's thread and must not wait: one that needs time
 * starts the work and tells where its state can be asked for.
 */
#ifndef RECORDER_HTTP_SERVER_H
#define RECORDER_HTTP_SERVER_H

#include <stddef.h>

#include <cjson/cJSON.h>
#include <uv.h>

enum { HTTP_BODY_BYTES_MAX = 64 << 10, HTTP_CONNECTIONS_MAX = 32 };

struct http_request {
	const char *method;
	const char *path;  /* without the query */
	const char *rest;  /* what a path ending in '*' matched there; "" otherwise */
	const cJSON *body; /* NULL where there was none */
	/* A value of the query, NULL if it is not there. */
	const char *(*query)(const struct http_request *request, const char *key);
	void *connection;
};

struct http_answer {
	unsigned status; /* 200 unless the handler says otherwise */
	cJSON *json;     /* freed by the server */
};

struct http_route {
	const char *method;
	const char *path; /* "/api/v1/status"; a '*' at its end takes any one segment */
	void (*handle)(void *context, const struct http_request *request, struct http_answer *answer);
};

struct http_server;

/* Takes over `listen_fd`, also when it fails. `routes` end with method NULL and are kept. */
int http_server_new(uv_loop_t *loop, int listen_fd, const struct http_route *routes, void *context,
		    struct http_server **ret_server);
/* The loop must run once more before it is closed. */
void http_server_free(struct http_server *server);

/* An error as every route answers it: {"error": text}. */
void http_answer_error(struct http_answer *answer, unsigned status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A listening socket at `path` with the rights `mode`, in place of an older socket. The descriptor or -errno. */
int http_listen_unix(const char *path, unsigned mode);

#endif
