/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "output.h"
#include "plain_text.h"
#include "support.h"

struct example {
	const char *given, *plain;
};

static const struct example examples[] = {
	{"load", "load"},
	{"", ""},
	{"h\xc3\xbcgel \xe2\x82\xac \xf0\x9f\x9a\x97", "h\xc3\xbcgel \xe2\x82\xac \xf0\x9f\x9a\x97"},
	{"\x1b[2Jred", "?[2Jred"},
	{"two\nlines\r\t", "two?lines??"},
	{"\x7f", "?"},
	{"\xc2\x9b" "31m", "?31m"},             /* CSI of eight bits */
	{"\x9b\xff\xfe", "???"},
	{"\xc0\x80", "??"},                     /* too long a form */
	{"\xe0\x80\xaf", "???"},
	{"\xed\xa0\x80", "???"},                /* a surrogate */
	{"\xf4\x90\x80\x80", "????"},
	{"\xe2\x82", "??"},                     /* cut */
	{"\xe2\x80\xaegnp.exe", "?gnp.exe"},    /* turns the direction */
	{"\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c", "???"},
	{"a\xe2\x80\xa8" "b", "a?b"},           /* a line end */
};

START_TEST(what_cannot_be_shown_is_not)
{
	const struct example *example = &examples[_i];
	char out[64];
	plain_text(out, sizeof(out), example->given, strlen(example->given));
	ck_assert_str_eq(out, example->plain);
	memcpy(out, example->given, strlen(example->given) + 1);
	plain_text(out, strlen(out) + 1, out, strlen(out));
	ck_assert_str_eq(out, example->plain);
}
END_TEST

START_TEST(characters_are_cut_whole)
{
	char out[4];
	plain_text(out, sizeof(out), "ab\xc3\xbc", 4);
	ck_assert_str_eq(out, "ab");
	plain_text(out, 1, "ab", 2);
	ck_assert_str_eq(out, "");
	plain_text(out, sizeof(out), "a\0b", 3);
	ck_assert_str_eq(out, "a?b");
}
END_TEST

START_TEST(any_bytes_become_plain_ones)
{
	for (int i = 0; i < 20000; i++) {
		char text[24], out[24];
		size_t bytes = test_random_below(sizeof(text)), room = 1 + test_random_below(sizeof(out));
		for (size_t k = 0; k < bytes; k++)
			text[k] = (char)(test_random_below(3) ? 0x80 | test_random_below(128) : test_random());
		plain_text(out, room, text, bytes);
		size_t length = strlen(out), step;
		ck_assert_uint_lt(length, room);
		for (size_t at = 0; at < length; at += step) {
			step = plain_text_character(out + at, length - at);
			ck_assert_uint_gt(step, 0);
		}
	}
}
END_TEST

START_TEST(documents_stay_documents)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *list = cJSON_AddArrayToObject(root, "list");
	cJSON_AddItemToArray(list, cJSON_CreateString("a\nb\xff\x7f"));
	output_json_text(root, "name", "\xc2\x9b" "x");
	plain_text_json(root);
	char *text = cJSON_PrintUnformatted(root);
	ck_assert_str_eq(text, "{\"list\":[\"a?b??\"],\"name\":\"?x\"}");
	cJSON_free(text);
	cJSON_Delete(root);
}
END_TEST

START_TEST(cells_stay_in_their_place)
{
	static const struct output_column columns[] = {{.title = "a"}, {.title = "b"}};
	struct output_table *table = output_table_new(columns, 2);
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	output_table_cell(table, "\x1b[2J\n%s", "\xff");
	output_table_cell(table, "x");
	ck_assert_int_eq(output_table_print(table, out), 0);
	fclose(out);
	ck_assert_str_eq(text, "a       b\n?[2J??  x\n");
	free(text);
	output_table_free(table);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("plain_text");
	TCase *tcase = tcase_create("plain text");
	tcase_add_loop_test(tcase, what_cannot_be_shown_is_not, 0, sizeof(examples) / sizeof(examples[0]));
	tcase_add_test(tcase, characters_are_cut_whole);
	tcase_add_test(tcase, any_bytes_become_plain_ones);
	tcase_add_test(tcase, documents_stay_documents);
	tcase_add_test(tcase, cells_stay_in_their_place);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
