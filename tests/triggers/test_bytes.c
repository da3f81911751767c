/* SPDX-License-Identifier: Apache-2.0 */
/* No series takes more than 4 KiB, with all that modules keep of it and the largest window. */
#include "../../triggers/src/module.h"
#include "../../triggers/src/series.h"
#include "../../triggers/src/window_median.h"
#include "support.h"

/* Each block of the engine's is rounded up, and so is what malloc gives; the source is shared, here by none. */
enum { LIMIT = 4096, ROUNDED = 16 };

static const enum triggers_role roles[] = {TRIGGERS_STEP,    TRIGGERS_PHASE, TRIGGERS_SPAN,
					   TRIGGERS_COUNTER, TRIGGERS_TRACK, TRIGGERS_BUSY};

START_TEST(a_series_keeps_to_its_share)
{
	size_t bytes = sizeof(struct triggers_series) + TRIGGERS_WINDOW_BYTES(TRIGGERS_WINDOW_MAX) + 3 * ROUNDED;
	for (unsigned i = 0; triggers_modules[i]; i++)
		if (triggers_modules[i]->roles >> roles[_i] & 1)
			bytes += triggers_modules[i]->state_bytes + ROUNDED;
	ck_assert_msg(bytes <= LIMIT, "role %d: %zu bytes", (int)roles[_i], bytes);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bytes");
	TCase *tcase = tcase_create("bytes");
	tcase_add_loop_test(tcase, a_series_keeps_to_its_share, 0, sizeof(roles) / sizeof(roles[0]));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
