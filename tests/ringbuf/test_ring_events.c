/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of docs/ring-format.md in another language sees what ours sees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring_maker.h"
#include "support.h"

START_TEST(python_lists_the_events)
{
	struct ring_maker *maker = ring_maker_new(64, 8192, 16);
	const char *path = test_path(test_folder(), "a.ring");
	uint32_t name = ring_maker_name(maker, "allreduce");
	struct drec_event counter = {.kind = DREC_COUNTER, .flags = DREC_FLAG_ID | DREC_FLAG_NAME, .name_text = "power",
				     .name_bytes = 5, .start = 30, .dur_or_value = 7};
	ring_maker_register(maker, 2, 9);
	ring_maker_take(maker, 2, 50);
	ring_maker_span(maker, 2, name, 10, 15);
	ring_maker_close(maker, 2);
	ring_maker_take(maker, 2, 3);
	ring_maker_append(maker, 2, &counter, 30);
	ring_maker_save(maker, path);
	ring_maker_free(maker);
	char command[2048], text[4096] = "";
	snprintf(command, sizeof(command), "python3 '%s/docs/ring_events.py' '%s'", DRIVEREC_SOURCE_DIR, path);
	FILE *pipe = popen(command, "r");
	ck_assert_ptr_nonnull(pipe);
	ck_assert_uint_gt(fread(text, 1, sizeof(text) - 1, pipe), 0);
	ck_assert_int_eq(pclose(pipe), 0);
	ck_assert_str_eq(text, "2\t1\tspan\tallreduce\t10\t5\n2\t1\tcounter\tpower\t30\t7\n");
}
END_TEST

int main(void)
{
	if (system("python3 -c pass >/dev/null 2>&1") != 0) {
		fprintf(stderr, "skipped: no python3\n");
		return 77;
	}
	Suite *suite = suite_create("ring_events.py");
	TCase *tcase = tcase_create("list");
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, python_lists_the_events);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
