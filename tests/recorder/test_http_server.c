/* SPDX-License-Identifier: Apache-2.0 */
/* The server against clients that send much, slowly, half or in numbers: it answers the next one at once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "http/server.h"
#include "support.h"

enum { MANY = 200, PATIENCE_MS = 700 };

static uv_loop_t loop;
static uv_timer_t lasting; /* the server alone keeps no loop running */
static struct http_server *server;
static char socket_path[108];

static void echo(void *context, const struct http_request *request, struct http_answer *answer)
{
	(void)context;
	answer->json = cJSON_CreateObject();
	cJSON_AddNumberToObject(answer->json, "items", cJSON_GetArraySize(request->body));
}

static const struct http_route routes[] = {{"POST", "/echo", echo}, {NULL, NULL, NULL}};

static void on_lasting(uv_timer_t *timer)
{
	(void)timer;
}

static void set_up(void)
{
	snprintf(socket_path, sizeof(socket_path), "%.90s/http.sock", test_shm_folder());
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	int fd = http_listen_unix(socket_path, 0600);
	ck_assert_int_ge(fd, 0);
	uv_timer_init(&loop, &lasting);
	uv_timer_start(&lasting, on_lasting, 3600000, 0);
	assert_ok(http_server_new(&loop, fd, routes, NULL, &server));
}

static void tear_down(void)
{
	http_server_free(server);
	uv_close((uv_handle_t *)&lasting, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}

static int client(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	ck_assert_int_eq(errno, EAGAIN);
	close(fd);
	return -1;
}

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void turn(void)
{
	uv_run(&loop, UV_RUN_NOWAIT);
	nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

/* Sends all of it and waits for the first bytes of an answer. */
static void ask(int fd, const char *text, size_t bytes, char *ret_answer, size_t room)
{
	const int64_t until_ms = now_ms() + PATIENCE_MS;
	ssize_t got = -1;
	memset(ret_answer, 0, room);
	while (got <= 0 && now_ms() < until_ms) {
		ssize_t sent = bytes ? send(fd, text, bytes, MSG_NOSIGNAL) : 0;
		if (sent > 0) {
			text += sent;
			bytes -= (size_t)sent;
		}
		turn();
		got = recv(fd, ret_answer, room - 1, 0);
	}
	ck_assert_msg(got > 0, "no answer within %d ms", PATIENCE_MS);
}

static void post_items(int fd, unsigned items)
{
	char head[128], answer[512], wanted[32];
	size_t bytes = 2 * items + 1;
	int length = snprintf(head, sizeof(head), "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", bytes);
	char *text = malloc((size_t)length + bytes);
	ck_assert_ptr_nonnull(text);
	memcpy(text, head, (size_t)length);
	for (unsigned i = 0; i < items; i++)
		memcpy(text + length + 2 * i, i ? ",1" : "[1", 2);
	text[(size_t)length + bytes - 1] = ']';
	ask(fd, text, (size_t)length + bytes, answer, sizeof(answer));
	snprintf(wanted, sizeof(wanted), "{\"items\":%u}", items);
	ck_assert_msg(strstr(answer, wanted) != NULL, "%s", answer);
	free(text);
}

START_TEST(a_body_of_many_pieces_is_answered_at_once)
{
	int fd = client();
	ck_assert_int_ge(fd, 0);
	post_items(fd, 30000);
	close(fd);
}
END_TEST

START_TEST(what_is_too_big_is_refused_at_once)
{
	int fd = client();
	char *text = malloc(1 << 20), answer[512];
	int length = snprintf(text, 1 << 20, "GET /echo HTTP/1.1\r\nX: ");
	memset(text + length, 'a', (1 << 20) - (size_t)length);
	ask(fd, text, 100000, answer, sizeof(answer));
	ck_assert_msg(strncmp(answer, "HTTP/1.1 4", 10) == 0, "%s", answer);
	free(text);
	close(fd);
}
END_TEST

START_TEST(clients_that_are_gone_keep_nobody_out)
{
	int fds[MANY];
	unsigned connected = 0;
	for (int i = 0; i < MANY; i++) {
		fds[i] = client();
		connected += fds[i] >= 0;
		if (fds[i] >= 0)
			ck_assert_int_gt(send(fds[i], "POST /ec", 8, MSG_NOSIGNAL), 0);
		turn();
	}
	ck_assert_uint_ge(connected, HTTP_CONNECTIONS_MAX);
	for (int i = 0; i < MANY; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	const int64_t until_ms = now_ms() + PATIENCE_MS;
	int fd = -1;
	for (; fd < 0 && now_ms() < until_ms; turn())
		fd = client();
	ck_assert_msg(fd >= 0, "nobody is let in");
	post_items(fd, 3);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("http server");
	TCase *tcase = tcase_create("hostile clients");
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, a_body_of_many_pieces_is_answered_at_once);
	tcase_add_test(tcase, what_is_too_big_is_refused_at_once);
	tcase_add_test(tcase, clients_that_are_gone_keep_nobody_out);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
