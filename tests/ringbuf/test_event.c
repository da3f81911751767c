/* SPDX-License-Identifier: Apache-2.0 */
#include <driverec/event.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static const struct drec_event full = {
	.kind = DREC_SPAN,
	.flags = DREC_FLAG_ABS | DREC_FLAG_PS | DREC_FLAG_ID | DREC_FLAG_NAME | DREC_FLAG_ARGS_JSON | DREC_FLAG_EXTRA,
	.depth = 7,
	.category = 9,
	.start_ps = 999,
	.dur_ps = 1,
	.track = 123456,
	.start = 1764460800123456789u,
	.dur_or_value = UINT64_MAX,
	.id = UINT64_MAX,
	.name_text = "aten::mm",
	.name_bytes = 8,
	.args = "{\"a\": 1}",
	.args_bytes = 8,
	.extra = "\"bp\":\"e\"",
	.extra_bytes = 8,
};

START_TEST(plain_span_is_32_bytes)
{
	struct drec_event event = {.kind = DREC_SPAN, .name = 5, .track = 3, .start = 10, .dur_or_value = 20};
	ck_assert_uint_eq(drec_event_bytes(&event), 32);
}
END_TEST

START_TEST(every_field_comes_back)
{
	uint8_t bytes[512];
	size_t count = drec_event_bytes(&full);
	drec_event_encode(bytes, &full, 0xbeef);
	struct drec_event back;
	ck_assert_int_eq(drec_event_decode(bytes, sizeof(bytes), 0xbeef, &back), (int)count);
	ck_assert_uint_eq(back.depth, full.depth);
	ck_assert_uint_eq(back.category, full.category);
	ck_assert_uint_eq(back.start_ps, full.start_ps);
	ck_assert_uint_eq(back.dur_ps, full.dur_ps);
	ck_assert_uint_eq(back.track, full.track);
	ck_assert_uint_eq(back.start, full.start);
	ck_assert_uint_eq(back.dur_or_value, full.dur_or_value);
	ck_assert_uint_eq(back.id, full.id);
	ck_assert_uint_eq(back.name_bytes, 8);
	ck_assert_mem_eq(back.name_text, "aten::mm", 8);
	ck_assert_uint_eq(back.args_bytes, 8);
	ck_assert_mem_eq(back.args, full.args, 8);
	ck_assert_uint_eq(back.extra_bytes, 8);
	ck_assert_mem_eq(back.extra, full.extra, 8);
}
END_TEST

START_TEST(another_lap_is_refused)
{
	uint8_t bytes[512];
	drec_event_encode(bytes, &full, 1);
	struct drec_event back;
	ck_assert_int_eq(drec_event_decode(bytes, sizeof(bytes), 2, &back), -EBADMSG);
}
END_TEST

START_TEST(every_cut_is_refused)
{
	uint8_t bytes[512];
	size_t count = drec_event_bytes(&full);
	drec_event_encode(bytes, &full, 1);
	struct drec_event back;
	for (size_t cut = 0; cut < count; cut++)
		ck_assert_int_eq(drec_event_decode(bytes, cut, 1, &back), -EBADMSG);
}
END_TEST

/* Whatever the bytes are: no read beyond them (the sanitizer watches), and every text lies inside. */
START_TEST(random_bytes_stay_inside)
{
	for (int round = 0; round < 200000; round++) {
		size_t count = 32 + 8 * test_random_below(8);
		uint8_t *bytes = malloc(count);
		for (size_t i = 0; i < count; i += 8) {
			uint64_t word = test_random() & test_random();
			memcpy(bytes + i, &word, 8);
		}
		bytes[0] = (uint8_t)(4 + test_random_below(8));
		bytes[1] = 0;
		bytes[4] = bytes[5] = 0;
		struct drec_event back;
		int got = drec_event_decode(bytes, count, 0, &back);
		if (got > 0 && back.name_text && back.name_bytes)
			ck_assert(back.name_text + back.name_bytes <= (char *)bytes + got);
		free(bytes);
	}
}
END_TEST

START_TEST(too_large_is_zero)
{
	struct drec_event event = full;
	event.args_bytes = DREC_EVENT_BYTES_MAX;
	ck_assert_uint_eq(drec_event_bytes(&event), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("event");
	TCase *round = tcase_create("round trip");
	tcase_add_test(round, plain_span_is_32_bytes);
	tcase_add_test(round, every_field_comes_back);
	suite_add_tcase(suite, round);
	TCase *refused = tcase_create("refused");
	tcase_set_timeout(refused, 30);
	tcase_add_test(refused, another_lap_is_refused);
	tcase_add_test(refused, every_cut_is_refused);
	tcase_add_test(refused, random_bytes_stay_inside);
	tcase_add_test(refused, too_large_is_zero);
	suite_add_tcase(suite, refused);
	return test_run(suite);
}
