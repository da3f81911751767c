/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading with several threads: the text is unpacked into blocks, blocks are parsed ahead into batches, and the
 * calling thread delivers them in order.
 *
 * A block is cut where an event seems to begin. That is a guess: a batch counts only if the reader, after all
 * blocks before, stands between two events. Where it does not, or where a batch ends before its block does (by
 * damage, the end of the events, or a wrong guess), the reader reads the block's text itself. So what is
 * delivered is what one thread would have delivered, whatever the guesses were.
 *
 * Blocks are a ring: [due, filled) are in use. Any thread fills the next one (one at a time, since unpacking is
 * sequential) or parses the oldest that nobody has; the calling thread reads the due one itself if nobody has
 * begun it. All of struct blocks but what a block's state gives to one thread is under the lock.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "chrome_inside.h"

enum {
	BLOCKS = 8,
	BLOCK_BYTES = 128 << 10,
	BATCH_EVENTS = BLOCK_BYTES / 96,
	BATCH_TEXTS = BLOCK_BYTES / 4,
	BEGIN_SOUGHT_BYTES = 64 << 10, /* how far back from a block's end an event's begin is sought */
	THREADS_MAX = 8
};

enum block_state {
	BLOCK_FILLED, /* free for whoever parses it */
	BLOCK_TAKEN,
	BLOCK_PARSED
};

struct block {
	char *text;
	size_t bytes;     /* of the text, up to where the next block begins */
	size_t all_bytes; /* with what the next block begins with */
	uint64_t offset;
	enum block_state state;
	struct chrome_batch batch;
	size_t parsed;    /* bytes of the text that the batch stands for */
};

struct blocks {
	struct reducer_input *input;
	struct block block[BLOCKS];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t due, filled; /* blocks since the beginning; the ring's index is modulo BLOCKS */
	bool filling, ended, stop;
	int result;           /* of the input */
	size_t event_bytes_max;
};

static struct block *block_at(struct blocks *b, uint64_t number)
{
	return &b->block[number % BLOCKS];
}

/* Whether at p, a brace, an event seems to begin: after another one's end, and with a known key. */
static bool seems_begin(const char *begin, const char *p, const char *end)
{
	const char *before = p, *key = json_skip_space(p + 1, end);
	while (before > begin && (before[-1] == ' ' || before[-1] == '\n' || before[-1] == ',' ||
				  before[-1] == '\r' || before[-1] == '\t'))
		before--;
	if (before == begin || before[-1] != '}' || key == end || *key != '"')
		return false;
	const char *past = memchr(key + 1, '"', (size_t)(end - key - 1));
	if (!past)
		return false;
	return chrome_field_of((struct reducer_text){key, (size_t)(past + 1 - key)}) != FIELD_OTHER;
}

/* Where the last event of the block seems to begin, or the block's end. */
static size_t last_begin(const char *text, size_t bytes)
{
	const char *end = text + bytes, *p = end;
	const char *begin = bytes > BEGIN_SOUGHT_BYTES ? end - BEGIN_SOUGHT_BYTES : text;
	while ((p = memrchr(begin, '{', (size_t)(p - begin))) != NULL)
		if (seems_begin(begin, p, end))
			return (size_t)(p - text);
	return bytes;
}

/* Unpacks the next block. Called and returns locked; nobody else fills meanwhile. */
static void fill(struct blocks *b)
{
	struct block *block = block_at(b, b->filled);
	const struct block *last = b->filled ? block_at(b, b->filled - 1) : NULL;
	bool ended = false;
	int result = 0;
	b->filling = true;
	pthread_mutex_unlock(&b->lock);
	block->all_bytes = last ? last->all_bytes - last->bytes : 0;
	block->offset = last ? last->offset + last->bytes : 0;
	if (block->all_bytes)
		memcpy(block->text, last->text + last->bytes, block->all_bytes);
	while (!ended && block->all_bytes < BLOCK_BYTES) {
		int64_t got = reducer_input_read(b->input, block->text + block->all_bytes,
						 BLOCK_BYTES - block->all_bytes);
		ended = got <= 0;
		if (got < 0)
			result = (int)got;
		else
			block->all_bytes += (size_t)got;
	}
	block->bytes = ended ? block->all_bytes : last_begin(block->text, block->all_bytes);
	block->state = BLOCK_FILLED;
	pthread_mutex_lock(&b->lock);
	b->filling = false;
	b->ended = ended;
	b->result = result;
	b->filled++;
	pthread_cond_broadcast(&b->changed);
}

static bool can_fill(const struct blocks *b)
{
	return !b->filling && !b->ended && b->filled - b->due < BLOCKS;
}

/* The oldest block from number `from` on that nobody has taken, or NULL. */
static struct block *find_free(struct blocks *b, uint64_t from)
{
	for (; from < b->filled; from++)
		if (block_at(b, from)->state == BLOCK_FILLED)
			return block_at(b, from);
	return NULL;
}

/* Called and returns locked. */
static void parse(struct blocks *b, struct block *block, struct chrome_parser *parser)
{
	block->state = BLOCK_TAKEN;
	pthread_mutex_unlock(&b->lock);
	block->parsed = chrome_batch_read(&block->batch, parser, block->text, block->bytes, block->offset);
	pthread_mutex_lock(&b->lock);
	block->state = BLOCK_PARSED;
	pthread_cond_broadcast(&b->changed);
}

static void *work_ahead(void *context)
{
	struct blocks *b = context;
	struct chrome_parser parser = {.event_bytes_max = b->event_bytes_max};
	pthread_mutex_lock(&b->lock);
	while (!b->stop) {
		struct block *block;
		if (can_fill(b))
			fill(b);
		else if ((block = find_free(b, b->due + 1)) != NULL)
			parse(b, block, &parser);
		else if (b->ended && b->due + 1 >= b->filled)
			break;
		else
			pthread_cond_wait(&b->changed, &b->lock);
	}
	pthread_mutex_unlock(&b->lock);
	chrome_parser_free(&parser);
	return NULL;
}

/* What is in the due block, which this thread has. */
static int deliver(struct reducer_chrome *r, struct block *block, bool parsed)
{
	size_t at = 0;
	if (parsed && chrome_reader_between_events(r)) {
		int result = chrome_reader_take(r, &block->batch, block->parsed);
		if (result)
			return result;
		at = block->parsed;
	}
	return at < block->bytes ? chrome_reader_feed_block(r, block->text + at, block->bytes - at) : 0;
}

/* The calling thread: 0 at the end, or what ended the reading. Called and returns locked. */
static int deliver_all(struct blocks *b, struct reducer_chrome *r, struct chrome_parser *parser)
{
	int result = 0;
	while (result == 0) {
		struct block *block = b->due < b->filled ? block_at(b, b->due) : NULL, *ahead;
		if (block && block->state != BLOCK_TAKEN) {
			bool parsed = block->state == BLOCK_PARSED;
			block->state = BLOCK_TAKEN;
			pthread_mutex_unlock(&b->lock);
			result = deliver(r, block, parsed);
			pthread_mutex_lock(&b->lock);
			b->due++;
			pthread_cond_broadcast(&b->changed);
		} else if (!block && b->ended) {
			return b->result;
		} else if (can_fill(b)) {
			fill(b);
		} else if ((ahead = find_free(b, b->due)) != NULL) {
			parse(b, ahead, parser);
		} else {
			pthread_cond_wait(&b->changed, &b->lock);
		}
	}
	return result;
}

static void free_blocks(struct blocks *b)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		free(b->block[i].text);
		chrome_batch_free(&b->block[i].batch);
	}
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static struct blocks *new_blocks(struct reducer_input *input)
{
	struct blocks *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->input = input;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->changed, NULL);
	for (size_t i = 0; i < BLOCKS; i++) {
		b->block[i].text = malloc(BLOCK_BYTES);
		if (!b->block[i].text || chrome_batch_init(&b->block[i].batch, BATCH_EVENTS, BATCH_TEXTS) < 0) {
			free_blocks(b);
			return NULL;
		}
	}
	return b;
}

int chrome_blocks_read(struct reducer_chrome *r, struct reducer_input *input, unsigned threads)
{
	struct blocks *b = new_blocks(input);
	struct chrome_parser parser = {.event_bytes_max = chrome_reader_event_bytes_max(r)};
	pthread_t thread[THREADS_MAX];
	unsigned started = 0;
	if (!b)
		return -ENOMEM;
	b->event_bytes_max = parser.event_bytes_max;
	pthread_mutex_lock(&b->lock);
	fill(b);
	/* A file that fits into a block is not worth a thread; and fewer threads only take longer. */
	while (!b->ended && started + 1 < threads && started < THREADS_MAX &&
	       pthread_create(&thread[started], NULL, work_ahead, b) == 0)
		started++;
	int result = deliver_all(b, r, &parser);
	b->stop = true;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
	while (started > 0)
		pthread_join(thread[--started], NULL);
	chrome_parser_free(&parser);
	free_blocks(b);
	return result;
}
