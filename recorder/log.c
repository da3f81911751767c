/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plain_text.h"

enum { LINE_MAX_BYTES = 2048, KINDS_MAX = 128, TEXT_MAX = 1024 };
#define MINUTE_NS 60000000000

/* When a kind was last written, and how many lines since then were not. */
struct kind {
	char name[48];
	int64_t written_ns;
	uint64_t suppressed;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kind kinds[KINDS_MAX];
static int kind_count;
static int log_fd = STDERR_FILENO;
static enum log_level least_level = LOG_LEVEL_INFO;
static int64_t (*clock_ns)(void);

/* A line under construction; what does not fit is cut. */
struct line {
	size_t length;
	char text[LINE_MAX_BYTES];
};

void log_to(int fd, enum log_level least)
{
	pthread_mutex_lock(&lock);
	log_fd = fd;
	least_level = least;
	pthread_mutex_unlock(&lock);
}

void log_clock(int64_t (*now_ns)(void))
{
	pthread_mutex_lock(&lock);
	clock_ns = now_ns;
	pthread_mutex_unlock(&lock);
}

static int64_t now(void)
{
	struct timespec time;
	if (clock_ns)
		return clock_ns();
	clock_gettime(CLOCK_REALTIME, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* As many of `room` bytes of a longer text as do not cut a character. */
static size_t whole_characters(const char *text, size_t room)
{
	while (room > 0 && ((unsigned char)text[room] & 0xc0) == 0x80)
		room--;
	return room;
}

/* One byte stays for the newline. */
static void put(struct line *line, const char *text, size_t bytes)
{
	size_t room = sizeof(line->text) - 1 - line->length;
	if (bytes > room)
		bytes = whole_characters(text, room);
	memcpy(line->text + line->length, text, bytes);
	line->length += bytes;
}

static void put_text(struct line *line, const char *text)
{
	put(line, text, strlen(text));
}

static void put_quoted(struct line *line, const char *text)
{
	put(line, "\"", 1);
	for (size_t left = strlen(text), length; left; text += length, left -= length) {
		char escape[8];
		length = plain_text_character(text, left);
		if (*text == '"' || *text == '\\')
			snprintf(escape, sizeof(escape), "\\%c", *text);
		else if (*text == '\n')
			snprintf(escape, sizeof(escape), "\\n");
		else if (length == 0)
			snprintf(escape, sizeof(escape), "\\x%02x", (unsigned char)*text);
		else
			snprintf(escape, sizeof(escape), "%.*s", (int)length, text);
		put_text(line, escape);
		length = length ? length : 1;
	}
	put(line, "\"", 1);
}

static void put_time(struct line *line, int64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / 1000000000);
	struct tm utc;
	char text[80];
	gmtime_r(&seconds, &utc);
	snprintf(text, sizeof(text), "time=%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900,
		 utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
		 (int)(unix_ns / 1000000 % 1000));
	put_text(line, text);
}

/* Beyond KINDS_MAX kinds all others count as one. */
static struct kind *find_kind(const char *name)
{
	for (int i = 0; i < kind_count; i++)
		if (strncmp(kinds[i].name, name, sizeof(kinds[i].name) - 1) == 0)
			return &kinds[i];
	if (kind_count == KINDS_MAX)
		return &kinds[KINDS_MAX - 1];
	struct kind *kind = &kinds[kind_count++];
	snprintf(kind->name, sizeof(kind->name), "%s", name);
	kind->written_ns = INT64_MIN;
	return kind;
}

/* Whether the line may be written; *ret_suppressed were not since the last one. A clock set back lets it
 * pass. */
static bool pass(struct kind *kind, int64_t now_ns, uint64_t *ret_suppressed)
{
	if (kind->written_ns != INT64_MIN && now_ns >= kind->written_ns &&
	    now_ns - kind->written_ns < MINUTE_NS) {
		kind->suppressed++;
		return false;
	}
	*ret_suppressed = kind->suppressed;
	kind->suppressed = 0;
	kind->written_ns = now_ns;
	return true;
}

struct entry {
	enum log_level level;
	const char *kind;
	int error; /* errno to name; 0 = none */
	bool always;
};

static void write_line(struct line *line)
{
	line->text[line->length++] = '\n';
	for (size_t done = 0; done < line->length;) {
		ssize_t count = write(log_fd, line->text + done, line->length - done);
		if (count < 0 && errno != EINTR)
			return;
		done += count > 0 ? (size_t)count : 0;
	}
}

static void write_entry(const struct entry *entry, const char *message, int64_t now_ns, uint64_t suppressed)
{
	static const char *const levels[] = {"debug", "info", "warn", "error"};
	struct line line = {0};
	char text[64];
	put_time(&line, now_ns);
	put_text(&line, " level=");
	put_text(&line, levels[entry->level]);
	put_text(&line, " kind=");
	put_text(&line, entry->kind);
	put_text(&line, " msg=");
	put_quoted(&line, message);
	if (entry->error) {
		char error[128];
		put_text(&line, " error=");
		put_quoted(&line, strerror_r(entry->error, error, sizeof(error)));
	}
	if (suppressed) {
		snprintf(text, sizeof(text), " suppressed=%llu", (unsigned long long)suppressed);
		put_text(&line, text);
	}
	write_line(&line);
}

__attribute__((format(printf, 2, 0))) static void add(const struct entry *entry, const char *format, va_list values)
{
	char message[TEXT_MAX];
	uint64_t suppressed = 0;
	vsnprintf(message, sizeof(message), format, values);
	pthread_mutex_lock(&lock);
	int64_t now_ns = now();
	if (entry->level >= least_level &&
	    (entry->always || pass(find_kind(entry->kind), now_ns, &suppressed)))
		write_entry(entry, message, now_ns, suppressed);
	pthread_mutex_unlock(&lock);
}

#define LOG_FUNCTION(name, level, with_error, always)                                                        \
	void name(const char *kind, const char *format, ...)                                                 \
	{                                                                                                    \
		int saved = errno;                                                                           \
		struct entry entry = {level, kind, (with_error) ? saved : 0, always};                        \
		va_list values;                                                                              \
		va_start(values, format);                                                                    \
		add(&entry, format, values);                                                                 \
		va_end(values);                                                                              \
		errno = saved;                                                                               \
	}

LOG_FUNCTION(log_error, LOG_LEVEL_ERROR, true, false)
LOG_FUNCTION(log_warn, LOG_LEVEL_WARN, true, false)
LOG_FUNCTION(log_errorx, LOG_LEVEL_ERROR, false, false)
LOG_FUNCTION(log_warnx, LOG_LEVEL_WARN, false, false)
LOG_FUNCTION(log_info, LOG_LEVEL_INFO, false, false)
LOG_FUNCTION(log_debug, LOG_LEVEL_DEBUG, false, false)
LOG_FUNCTION(log_record, LOG_LEVEL_INFO, false, true)
