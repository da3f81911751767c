/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads, a pinner and a closer on one mapping. Built with -DDRIVEREC_SANITIZE=thread it finds data races. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <driverec/driverec.h>
#include <driverec/freeze.h>
#include <driverec/reader.h>

#include "support.h"

enum { THREADS = 8, LIVES = 6, EVENTS = 3000 };

static drec *rec;
static atomic_int stop;

static void *life(void *context)
{
	static const char args[500];
	char text[16];
	unsigned index = *(const unsigned *)context;
	struct drec_event event = {.kind = DREC_INSTANT, .flags = DREC_FLAG_ARGS_XSTAT, .args = args};
	for (unsigned i = 0; i < EVENTS; i++) {
		snprintf(text, sizeof(text), "n%u", (i * 7 + index) % 300);
		drec_scope scope = drec_begin(rec, drec_name(rec, text));
		event.args_bytes = i % sizeof(args);
		drec_write(rec, &event);
		drec_counter(rec, 0, DREC_NAME(rec, "site"), i);
		drec_end(rec, scope);
		if (i % 64 == 0)
			drec_step_begin(rec, i, 0);
		if (i % 500 == 0)
			drec_note_loss(rec, DREC_LOSS_SOURCE, 1, 1, 2);
	}
	return NULL;
}

static void *lives(void *context)
{
	pthread_t thread;
	for (int i = 0; i < LIVES; i++)
		if (pthread_create(&thread, NULL, life, context) == 0)
			pthread_join(thread, NULL);
	return NULL;
}

static int nothing(void *context, const struct drec_event *event, const struct drec_place *place)
{
	(void)context, (void)event, (void)place;
	return 0;
}

static const char *failed; /* what the pinner could not do */

/* As a daemon does: through a descriptor of its own. */
static void *pin_and_read(void *context)
{
	struct drec_reader_options writable = {.writable = 1};
	struct drec_problem problem;
	struct drec_reader *reader = NULL;
	struct drec_poll_stats stats = {0};
	unsigned entry;
	(void)context;
	failed = "open";
	if (drec_reader_open(AT_FDCWD, drec_path(rec), &writable, &reader, &problem) < 0)
		return NULL;
	while (!atomic_load(&stop)) {
		struct drec_pin pin = {.active = 0};
		drec_reader_poll(reader, nothing, NULL, 0, &stats);
		pin.from = drec_reader_state(reader)->tail - 16;
		if (drec_pin_set(reader, &pin, 1, &entry) < 0 || drec_pin_release(reader, entry) < 0)
			break;
		drec_lost(rec, 0);
	}
	drec_reader_free(reader);
	failed = stats.corrupt_bytes ? "corrupt bytes" : atomic_load(&stop) ? NULL : "pin";
	return NULL;
}

START_TEST(eight_threads_a_pinner_and_a_close)
{
	struct drec_options options = {.run_dir = test_shm_folder(), .job = "test", .name = "ring",
				       .ring_bytes = 64 * 8192};
	static unsigned index[THREADS];
	pthread_t thread[THREADS], pinner;
	rec = drec_open(&options);
	ck_assert_ptr_nonnull(rec);
	ck_assert_int_eq(pthread_create(&pinner, NULL, pin_and_read, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		index[i] = i;
		ck_assert_int_eq(pthread_create(&thread[i], NULL, lives, &index[i]), 0);
	}
	pthread_join(thread[0], NULL);
	drec_close(rec);
	for (int i = 1; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&stop, 1);
	pthread_join(pinner, NULL);
	ck_assert_msg(failed == NULL, "%s", failed);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("threads");
	TCase *tcase = tcase_create("one mapping");
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, eight_threads_a_pinner_and_a_close);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
