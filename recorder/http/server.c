/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "plain_text.h"

enum { IDLE_SECONDS = 30, BACKLOG = 16, IDLE_MS = 1000, RUNS_A_TURN = 64 };

struct http_server {
	struct MHD_Daemon *daemon;
	const struct http_route *routes;
	void *context;
	uv_poll_t poll;
	uv_timer_t idle; /* libmicrohttpd closes idle connections only when it is called */
	unsigned handles;
};

/* A request whose body is still coming. */
struct pending {
	char *body;
	size_t bytes;
	int too_big;
};

void http_answer_error(struct http_answer *answer, unsigned status, const char *format, ...)
{
	char text[512];
	va_list values;
	va_start(values, format);
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	cJSON_Delete(answer->json);
	answer->status = status;
	answer->json = cJSON_CreateObject();
	cJSON_AddStringToObject(answer->json, "error", text);
}

static const char *query(const struct http_request *request, const char *key)
{
	return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, key);
}

/* What a route's path leaves of this one, NULL if it does not fit. */
static const char *match(const char *pattern, const char *path)
{
	size_t length = strlen(pattern);
	if (length == 0 || pattern[length - 1] != '*')
		return strcmp(pattern, path) == 0 ? "" : NULL;
	if (strncmp(pattern, path, length - 1) != 0)
		return NULL;
	const char *rest = path + length - 1;
	return *rest && !strchr(rest, '/') ? rest : NULL;
}

static void dispatch(struct http_server *server, struct http_request *request, struct http_answer *answer)
{
	int path_known = 0;
	for (const struct http_route *route = server->routes; route->method; route++) {
		const char *rest = match(route->path, request->path);
		if (!rest)
			continue;
		path_known = 1;
		if (strcmp(route->method, request->method) != 0)
			continue;
		request->rest = rest;
		route->handle(server->context, request, answer);
		return;
	}
	if (path_known)
		http_answer_error(answer, MHD_HTTP_METHOD_NOT_ALLOWED, "%s is not possible here", request->method);
	else
		http_answer_error(answer, MHD_HTTP_NOT_FOUND, "there is no %s", request->path);
}

static enum MHD_Result send_answer(struct MHD_Connection *connection, const struct http_answer *answer)
{
	plain_text_json(answer->json);
	char *text = answer->json ? cJSON_PrintUnformatted(answer->json) : NULL;
	if (!text)
		return MHD_NO;
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
	cJSON_free(text);
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "Content-Type", "application/json");
	MHD_add_response_header(response, "Cache-Control", "no-store");
	enum MHD_Result result = MHD_queue_response(connection, answer->status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result respond(struct http_server *server, struct MHD_Connection *connection, const char *url,
			       const char *method, const struct pending *pending)
{
	struct http_request request = {.method = method, .path = url, .query = query, .connection = connection};
	struct http_answer answer = {.status = MHD_HTTP_OK};
	cJSON *body = NULL;
	if (pending->bytes)
		body = cJSON_ParseWithLengthOpts(pending->body, pending->bytes + 1, NULL, 1);
	request.body = body;
	if (pending->too_big)
		http_answer_error(&answer, MHD_HTTP_CONTENT_TOO_LARGE, "the body is larger than %d bytes",
				  HTTP_BODY_BYTES_MAX);
	else if (pending->bytes && !body)
		http_answer_error(&answer, MHD_HTTP_BAD_REQUEST, "the body is no JSON");
	else
		dispatch(server, &request, &answer);
	enum MHD_Result result = send_answer(connection, &answer);
	cJSON_Delete(answer.json);
	cJSON_Delete(body);
	return result;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *upload, size_t *upload_bytes,
				  void **state)
{
	struct pending *pending = *state;
	(void)version;
	if (!pending) {
		*state = calloc(1, sizeof(*pending));
		return *state ? MHD_YES : MHD_NO;
	}
	if (*upload_bytes == 0)
		return respond(context, connection, url, method, pending);
	if (*upload_bytes > HTTP_BODY_BYTES_MAX - pending->bytes) {
		pending->too_big = 1;
	} else if (!pending->too_big) {
		char *grown = realloc(pending->body, pending->bytes + *upload_bytes + 1);
		if (!grown)
			return MHD_NO;
		memcpy(grown + pending->bytes, upload, *upload_bytes);
		pending->body = grown;
		pending->bytes += *upload_bytes;
		grown[pending->bytes] = 0;
	}
	*upload_bytes = 0;
	return MHD_YES;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
			 enum MHD_RequestTerminationCode why)
{
	struct pending *pending = *state;
	(void)context, (void)connection, (void)why;
	if (pending)
		free(pending->body);
	free(pending);
	*state = NULL;
}

static void on_idle(uv_timer_t *timer);

/*
 * libmicrohttpd does one piece of work for a connection at a time, and its descriptor says nothing of what is
 * left to do: a body of several pieces, a client to be let in once another one has gone. It has to be asked.
 */
static void work(struct http_server *server)
{
	MHD_UNSIGNED_LONG_LONG wait_ms = IDLE_MS;
	for (int i = 0; i < RUNS_A_TURN; i++) {
		MHD_run(server->daemon);
		wait_ms = IDLE_MS;
		/* Twice at least: where the first run made room, the next one listens again. */
		bool waits = MHD_get_timeout(server->daemon, &wait_ms) != MHD_YES || wait_ms > 0;
		if (i > 0 && waits)
			break;
	}
	uv_timer_start(&server->idle, on_idle, wait_ms < IDLE_MS ? wait_ms : IDLE_MS, 0);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)status, (void)events;
	work(poll->data);
}

static void on_idle(uv_timer_t *timer)
{
	work(timer->data);
}

static struct MHD_Daemon *start(struct http_server *server, int listen_fd)
{
	return MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET,
				listen_fd, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
				MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS_MAX,
				MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)16384, MHD_OPTION_END);
}

int http_server_new(uv_loop_t *loop, int listen_fd, const struct http_route *routes, void *context,
		    struct http_server **ret_server)
{
	struct http_server *server = calloc(1, sizeof(*server));
	if (!server) {
		close(listen_fd);
		return -ENOMEM;
	}
	server->routes = routes;
	server->context = context;
	server->daemon = start(server, listen_fd);
	if (!server->daemon) {
		close(listen_fd);
		free(server);
		return -EIO;
	}
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	int result = info ? uv_poll_init(loop, &server->poll, info->epoll_fd) : -EIO;
	if (result < 0) {
		MHD_stop_daemon(server->daemon);
		free(server);
		return result;
	}
	uv_timer_init(loop, &server->idle);
	server->poll.data = server->idle.data = server;
	server->handles = 2;
	uv_poll_start(&server->poll, UV_READABLE, on_readable);
	uv_timer_start(&server->idle, on_idle, IDLE_MS, 0);
	uv_unref((uv_handle_t *)&server->poll);
	uv_unref((uv_handle_t *)&server->idle);
	*ret_server = server;
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct http_server *server = handle->data;
	if (--server->handles > 0)
		return;
	MHD_stop_daemon(server->daemon);
	free(server);
}

void http_server_free(struct http_server *server)
{
	if (!server)
		return;
	uv_close((uv_handle_t *)&server->poll, on_closed);
	uv_close((uv_handle_t *)&server->idle, on_closed);
}

int http_listen_unix(const char *path, unsigned mode)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st;
	size_t length = strlen(path);
	if (length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, length + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* A socket that an earlier daemon left; never a file of somebody's. */
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		unlink(path);
	/* Nobody can connect before listen(), so the rights are in place by then. */
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || chmod(path, (mode_t)mode) < 0 ||
	    listen(fd, BACKLOG) < 0) {
		int result = -errno;
		close(fd);
		return result;
	}
	return fd;
}
