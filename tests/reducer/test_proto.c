/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf cursor never reads beyond its end, and reads what its writing side wrote. */
#include "proto.h"

#include <stdlib.h>

#include "support.h"

static struct proto cursor_of(const struct buffer *buffer)
{
	return proto_of((struct reducer_text){buffer->data, buffer->bytes});
}

START_TEST(numbers_come_back)
{
	struct buffer out = {0};
	struct proto_field field;
	static const uint64_t values[] = {0, 1, 127, 128, 300, UINT32_MAX, INT64_MAX, UINT64_MAX};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		proto_add_u64(&out, (uint32_t)i + 1, values[i]);
		proto_add_fixed64(&out, PROTO_NUMBER_MAX, values[i]);
	}
	struct proto cursor = cursor_of(&out);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		ck_assert_int_eq(proto_next(&cursor, &field), 1);
		ck_assert_uint_eq(field.number, i + 1);
		ck_assert_uint_eq(field.wire, PROTO_VARINT);
		ck_assert_uint_eq(field.value, values[i]);
		ck_assert_uint_eq((size_t)(cursor.at - field.from), 1 + proto_varint_bytes(values[i]));
		ck_assert_int_eq(proto_next(&cursor, &field), 1);
		ck_assert_uint_eq(field.number, PROTO_NUMBER_MAX);
		ck_assert_uint_eq(field.wire, PROTO_FIXED64);
		ck_assert_uint_eq(field.value, values[i]);
	}
	ck_assert_int_eq(proto_next(&cursor, &field), 0);
	buffer_free(&out);
}
END_TEST

START_TEST(messages_nest)
{
	static const size_t lengths[] = {0, 1, 127, 128, 16383, 16384, 2097152};
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct buffer out = {0};
		struct proto_field outer, inner, last;
		char *bytes = calloc(1, lengths[i] + 1);
		size_t first = proto_begin(&out, 1);
		size_t second = proto_begin(&out, 2);
		proto_add_bytes(&out, 3, (struct reducer_text){bytes, lengths[i]});
		proto_end(&out, second);
		proto_add_u64(&out, 4, 5);
		proto_end(&out, first);
		struct proto cursor = cursor_of(&out);
		ck_assert_int_eq(proto_next(&cursor, &outer), 1);
		ck_assert_uint_eq(proto_bytes(cursor), 0);
		ck_assert_int_eq(proto_next(&outer.content, &inner), 1);
		ck_assert_int_eq(proto_next(&inner.content, &last), 1);
		ck_assert_uint_eq(last.number, 3);
		ck_assert_uint_eq(proto_bytes(last.content), lengths[i]);
		ck_assert_int_eq(proto_next(&outer.content, &inner), 1);
		ck_assert_uint_eq(inner.value, 5);
		buffer_free(&out);
		free(bytes);
	}
}
END_TEST

/* Bytes that are no field; in memory of just their size. */
static const struct {
	const char *bytes;
	size_t n;
} bad[] = {
	{"\x08", 1},                                                  /* no value */
	{"\x80", 1},                                                  /* half a tag */
	{"\x00\x00", 2},                                              /* number 0 */
	{"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12},     /* 11 bytes */
	{"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11},         /* more than 64 bits */
	{"\x09\x01\x02\x03\x04\x05\x06\x07", 8},                      /* 7 of 8 bytes */
	{"\x0d\x01\x02\x03", 4},                                      /* 3 of 4 bytes */
	{"\x0a\x02x", 3},                                             /* 1 of 2 bytes */
	{"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x", 12},        /* 1 of 2^64 - 1 bytes */
	{"\x0b\x0c", 2},                                              /* a group */
	{"\x0e\x00", 2},                                              /* no wire type */
	{"\xf8\xff\xff\xff\xff\x01\x00", 7},                          /* a number beyond 2^29 */
};

START_TEST(damage_moves_nothing)
{
	unsigned char *bytes = malloc(bad[_i].n);
	struct proto_field field = {.number = 77};
	memcpy(bytes, bad[_i].bytes, bad[_i].n);
	struct proto cursor = {bytes, bytes + bad[_i].n};
	ck_assert_int_eq(proto_next(&cursor, &field), -74);
	ck_assert_ptr_eq(cursor.at, bytes);
	ck_assert_uint_eq(field.number, 77);
	free(bytes);
}
END_TEST

START_TEST(what_is_cut_off_is_given_as_far_as_it_goes)
{
	struct proto_field field;
	struct proto cursor = proto_of((struct reducer_text){"\x0a\x05xyz", 5});
	ck_assert_int_eq(proto_next_cut(&cursor, &field), 1);
	ck_assert_uint_eq(field.number, 1);
	ck_assert_uint_eq(proto_bytes(field.content), 3);
	ck_assert_uint_eq(proto_bytes(cursor), 0);
	ck_assert_int_eq(proto_next_cut(&cursor, &field), 0);
	/* A whole one is not cut off, and a number has no part. */
	cursor = proto_of((struct reducer_text){"\x0a\x03xyz", 5});
	ck_assert_int_eq(proto_next_cut(&cursor, &field), 0);
	cursor = proto_of((struct reducer_text){"\x08\x80", 2});
	ck_assert_int_eq(proto_next_cut(&cursor, &field), 0);
}
END_TEST

START_TEST(random_bytes_end)
{
	for (int round = 0; round < 20000; round++) {
		size_t n = (size_t)test_random_below(40);
		unsigned char *bytes = malloc(n + 1);
		for (size_t i = 0; i < n; i++)
			bytes[i] = (unsigned char)test_random();
		struct proto cursor = {bytes, bytes + n};
		struct proto_field field;
		const unsigned char *before = cursor.at;
		while (proto_next(&cursor, &field) > 0) {
			ck_assert(cursor.at > before && cursor.at <= bytes + n);
			ck_assert(field.from == before);
			before = cursor.at;
		}
		free(bytes);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("proto");
	TCase *numbers = tcase_create("numbers come back"), *nest = tcase_create("messages nest");
	TCase *damage = tcase_create("damage moves nothing"), *random = tcase_create("random bytes end");
	TCase *cut = tcase_create("what is cut off is given as far as it goes");
	tcase_add_test(numbers, numbers_come_back);
	tcase_add_test(nest, messages_nest);
	tcase_add_loop_test(damage, damage_moves_nothing, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(cut, what_is_cut_off_is_given_as_far_as_it_goes);
	tcase_add_test(random, random_bytes_end);
	TCase *all[] = {numbers, nest, damage, cut, random};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		tcase_set_timeout(all[i], 60);
		suite_add_tcase(suite, all[i]);
	}
	return test_run(suite);
}
