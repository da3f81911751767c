/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document is one text with a reader of its own: a file, what one client of the socket sends, or all that
 * comes through a FIFO. All go through one ring. It is read after every piece of text, so it never has to hold
 * more than that; what it has no room for all the same is counted in its stream.
 */
#include "feed.h"

#include <driverec/driverec.h>
#include <reducer/chrome.h>
#include <reducer/drec_codec.h>
#include <reducer/input.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "http/server.h"
#include "log.h"
#include "ns.h"

enum { PIECE_BYTES = 256 << 10, PIECES_A_TICK = 8, CHUNK_BYTES = 1 << 20 };

static const int64_t AHEAD_NS = 1000000000;
static const int64_t NOTHING_IN_NS = INT64_MIN / 2;

struct document {
	struct feed *feed;
	struct reducer_chrome *reader;
	struct reducer_ring_sink *sink;
	struct reducer_sink to_ring;
	struct reducer_read_report report;
	int fd; /* -1: not read through a descriptor */
	uv_poll_t poll;
	bool used, polling;
	int64_t latest_ns; /* end of the latest event that is not of the future */
	bool disordered;   /* an earlier one came after it */
};

struct feed {
	uv_loop_t *loop;
	drec *rec;
	struct reducer_input *input; /* a file */
	struct document documents[FEED_CLIENTS_MAX];
	uv_poll_t listening;
	int listen_fd;
	char socket_path[108];
	char *piece;
	bool lasting, ended, freed; /* lasting: documents come and go, there is no end */
	int result; /* of the last document that ended */
	int64_t watermark_ns; /* of documents that have ended */
	int64_t now_ns;       /* when the latest piece was read */
	struct feed_counters over; /* of documents that have ended */
	unsigned handles;
};

static int on_event(void *context, const struct reducer_event *event)
{
	struct document *document = context;
	struct feed *feed = document->feed;
	int64_t end_ns = ns_add(event->start_ns, event->has_duration ? event->duration_ns : 0);
	if (document->report.has_base)
		end_ns = ns_add(end_ns, document->report.base_unix_ns);
	/* What claims to be of the future says nothing about what is still to come. */
	if (event->has_time && end_ns <= ns_add(feed->now_ns, AHEAD_NS)) {
		document->disordered |= end_ns < document->latest_ns;
		if (end_ns > document->latest_ns)
			document->latest_ns = end_ns;
	}
	return document->to_ring.event(document->to_ring.context, event);
}

static int on_member(void *context, const struct reducer_member *member)
{
	const struct document *document = context;
	return document->to_ring.member(document->to_ring.context, member);
}

static int document_open(struct feed *feed, struct document **ret_document)
{
	struct document *document = NULL;
	for (size_t i = 0; i < FEED_CLIENTS_MAX && !document; i++)
		if (!feed->documents[i].used)
			document = &feed->documents[i];
	if (!document)
		return -EMFILE;
	memset(document, 0, sizeof(*document));
	document->feed = feed;
	document->fd = -1;
	document->latest_ns = NOTHING_IN_NS;
	const struct reducer_sink sink = {.context = document, .event = on_event, .member = on_member};
	int result = reducer_ring_sink_new(feed->rec, NULL, &document->sink);
	if (result < 0)
		return result;
	document->to_ring = reducer_ring_sink(document->sink);
	result = reducer_chrome_new(&sink, NULL, &document->report, &document->reader);
	if (result < 0) {
		reducer_ring_sink_free(document->sink);
		return result;
	}
	document->used = true;
	*ret_document = document;
	return 0;
}

static void add_counters(const struct document *document, struct feed_counters *counters)
{
	const struct reducer_read_report *report = &document->report;
	counters->events += report->events;
	counters->bytes += report->text_bytes;
	counters->damaged += report->damaged;
	counters->lost += reducer_ring_sink_stats(document->sink)->refused;
	if (report->n_problems > 0 && !counters->problem[0])
		snprintf(counters->problem, sizeof(counters->problem), "%.150s (at byte %llu)", report->problem[0].what,
			 (unsigned long long)report->problem[0].offset);
}

static void release_if_done(struct feed *feed)
{
	if (feed->freed && feed->handles == 0) {
		free(feed->piece);
		free(feed);
	}
}

static void on_document_closed(uv_handle_t *handle)
{
	struct document *document = handle->data;
	struct feed *feed = document->feed;
	close(document->fd);
	document->used = false;
	feed->handles--;
	release_if_done(feed);
}

/* A refused document's last problem says what it is, a damaged one's first where the damage begins. */
static void say_failure(const struct document *document, int result)
{
	const struct reducer_read_report *report = &document->report;
	if (result == -EBADMSG && report->n_problems > 0)
		log_warnx("feed.damaged", "%s (at byte %llu)", report->problem[report->n_problems - 1].what,
			  (unsigned long long)report->problem[report->n_problems - 1].offset);
	else
		log_warnx("feed.damaged", "%s",
			  document->feed->over.problem[0] ? document->feed->over.problem : strerror(-result));
}

/* No more of it comes. `result` is what reading it came to. */
static void document_close(struct document *document, int result)
{
	struct feed *feed = document->feed;
	if (result == 0)
		result = reducer_chrome_finish(document->reader);
	add_counters(document, &feed->over);
	if (document->latest_ns > feed->watermark_ns)
		feed->watermark_ns = document->latest_ns;
	feed->result = result;
	if (result < 0)
		say_failure(document, result);
	reducer_chrome_free(document->reader);
	reducer_ring_sink_free(document->sink);
	document->reader = NULL;
	document->sink = NULL;
	if (document->polling) {
		document->polling = false;
		uv_close((uv_handle_t *)&document->poll, on_document_closed);
	} else {
		document->used = false;
	}
	if (!feed->lasting) {
		feed->ended = true;
		drec_close(feed->rec);
	}
}

static int take_piece(struct document *document, size_t bytes)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	document->feed->now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	return reducer_chrome_feed(document->reader, document->feed->piece, bytes);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct document *document = poll->data;
	(void)events;
	ssize_t got = status < 0 ? -1 : read(document->fd, document->feed->piece, PIECE_BYTES);
	if (got < 0 && status >= 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		document_close(document, got < 0 ? -EIO : 0);
		return;
	}
	int result = take_piece(document, (size_t)got);
	if (result < 0)
		document_close(document, result);
}

/* Reads `fd` as its bytes come; takes it over if it succeeds. */
static int document_poll(struct document *document, int fd)
{
	struct feed *feed = document->feed;
	int result = uv_poll_init(feed->loop, &document->poll, fd);
	if (result < 0)
		return result;
	document->fd = fd;
	document->poll.data = document;
	document->polling = true;
	feed->handles++;
	return uv_poll_start(&document->poll, UV_READABLE, on_readable);
}

static void on_client(uv_poll_t *poll, int status, int events)
{
	struct feed *feed = poll->data;
	struct document *document;
	(void)status, (void)events;
	int fd = accept4(feed->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return;
	int result = document_open(feed, &document);
	if (result == 0) {
		result = document_poll(document, fd);
		if (result < 0)
			document_close(document, result);
	}
	if (result < 0) {
		log_warnx("feed.refused", "a client is sent away: %s", strerror(-result));
		close(fd);
	}
}

static int open_socket(struct feed *feed, const char *path)
{
	feed->lasting = true;
	feed->listen_fd = http_listen_unix(path, 0600);
	if (feed->listen_fd < 0)
		return feed->listen_fd;
	snprintf(feed->socket_path, sizeof(feed->socket_path), "%s", path);
	int result = uv_poll_init(feed->loop, &feed->listening, feed->listen_fd);
	if (result < 0)
		return result;
	feed->listening.data = feed;
	feed->handles++;
	return uv_poll_start(&feed->listening, UV_READABLE, on_client);
}

static int open_stream(struct feed *feed, int fd)
{
	struct document *document;
	int result = document_open(feed, &document);
	return result < 0 ? result : document_poll(document, fd);
}

/* Files, and what epoll does not take (/dev/null): read to the end, a piece a tick. */
static int open_file(struct feed *feed, int fd, const char *path, char *why, size_t why_room)
{
	struct reducer_problem problem = {0};
	struct document *document;
	int result = path ? reducer_input_open(path, &feed->input, &problem)
			  : reducer_input_from_fd(fd, &feed->input, &problem);
	if (result < 0) {
		snprintf(why, why_room, "%s", problem.what[0] ? problem.what : strerror(-result));
		return result;
	}
	return document_open(feed, &document);
}

static int open_what(struct feed *feed, const char *what, char *why, size_t why_room)
{
	struct stat st;
	if (strncmp(what, "unix:", 5) == 0)
		return open_socket(feed, what + 5);
	if (strcmp(what, "-") == 0) {
		if (fstat(STDIN_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
			return open_stream(feed, fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
		return open_file(feed, STDIN_FILENO, NULL, why, why_room);
	}
	if (stat(what, &st) == 0 && S_ISFIFO(st.st_mode)) {
		/* Held open for writing too, so that it does not end when a writer goes. */
		int fd = open(what, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		feed->lasting = true;
		return fd < 0 ? -errno : open_stream(feed, fd);
	}
	return open_file(feed, -1, what, why, why_room);
}

static int open_ring(struct feed *feed, const char *run_dir, char *why, size_t why_room)
{
	const char *reason = "";
	const struct drec_options options = {.run_dir = run_dir, .name = FEED_RING_NAME, .ring_bytes = FEED_RING_BYTES,
					     .chunk_bytes = CHUNK_BYTES};
	int result = drec_open_strict(&options, &feed->rec, &reason);
	if (result < 0)
		snprintf(why, why_room, "a ring for the feed cannot be made: %s (%s)", reason, strerror(-result));
	return result;
}

int feed_new(uv_loop_t *loop, const char *what, const char *run_dir, struct feed **ret_feed, char *why,
	     size_t why_room)
{
	struct feed *feed = calloc(1, sizeof(*feed));
	char reason[256] = "";
	if (feed)
		feed->piece = malloc(PIECE_BYTES);
	if (!feed || !feed->piece) {
		free(feed);
		snprintf(why, why_room, "there is no memory for the feed");
		return -ENOMEM;
	}
	feed->loop = loop;
	feed->listen_fd = -1;
	feed->watermark_ns = NOTHING_IN_NS;
	int result = open_ring(feed, run_dir, why, why_room);
	if (result == 0) {
		result = open_what(feed, what, reason, sizeof(reason));
		if (result < 0)
			snprintf(why, why_room, "%s cannot be fed from: %s", what, reason[0] ? reason : strerror(-result));
	}
	if (result < 0) {
		feed_free(feed);
		return result;
	}
	*ret_feed = feed;
	return 0;
}

static void on_listening_closed(uv_handle_t *handle)
{
	struct feed *feed = handle->data;
	feed->handles--;
	release_if_done(feed);
}

void feed_free(struct feed *feed)
{
	if (!feed)
		return;
	for (size_t i = 0; i < FEED_CLIENTS_MAX; i++)
		if (feed->documents[i].used && feed->documents[i].reader)
			document_close(&feed->documents[i], 0);
	if (feed->listening.data)
		uv_close((uv_handle_t *)&feed->listening, on_listening_closed);
	if (feed->listen_fd >= 0)
		close(feed->listen_fd);
	if (feed->socket_path[0])
		unlink(feed->socket_path);
	reducer_input_free(feed->input);
	drec_close(feed->rec);
	feed->freed = true;
	release_if_done(feed);
}

int feed_tick(struct feed *feed)
{
	struct document *document = &feed->documents[0];
	if (!feed->input || feed->ended)
		return 0;
	for (int i = 0; i < PIECES_A_TICK; i++) {
		int64_t got = reducer_input_read(feed->input, feed->piece, PIECE_BYTES);
		int result = got < 0 ? (int)got : 0;
		if (got > 0)
			result = take_piece(document, (size_t)got);
		if (got > 0 && result == 0)
			continue;
		const struct reducer_problem *problem = reducer_input_problem(feed->input);
		if (problem)
			snprintf(feed->over.problem, sizeof(feed->over.problem), "%.150s (at byte %llu)", problem->what,
				 (unsigned long long)problem->offset);
		document_close(document, result);
		return 0;
	}
	return 1;
}

const char *feed_ring_path(const struct feed *feed)
{
	return drec_path(feed->rec);
}

bool feed_ended(const struct feed *feed)
{
	return feed->ended;
}

int feed_result(const struct feed *feed)
{
	return feed->result;
}

/*
 * What lags behind decides: the earliest of all open documents. One that has once brought an earlier event after a
 * later one may do so again, so nothing is known of it until it ends.
 */
int64_t feed_watermark_ns(const struct feed *feed)
{
	int64_t least_ns = INT64_MAX;
	for (size_t i = 0; i < FEED_CLIENTS_MAX; i++) {
		const struct document *document = &feed->documents[i];
		if (!document->used || !document->reader)
			continue;
		int64_t in_ns = document->disordered ? NOTHING_IN_NS : document->latest_ns;
		if (in_ns < least_ns)
			least_ns = in_ns;
	}
	return least_ns != INT64_MAX ? least_ns : feed->watermark_ns;
}

void feed_counters(const struct feed *feed, struct feed_counters *ret_counters)
{
	struct feed_counters counters = feed->over;
	for (size_t i = 0; i < FEED_CLIENTS_MAX; i++)
		if (feed->documents[i].used && feed->documents[i].reader)
			add_counters(&feed->documents[i], &counters);
	*ret_counters = counters;
}
