/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "incidents/manifest.h"
#include "support.h"

/* A store with one hand-made incident folder, being written. */
struct sample {
	struct incidents_store *store;
	struct incident *incident;
	char folder[512];
	int fd;
};

static void make_sample(struct sample *sample)
{
	const char *path = test_folder();
	struct incident *incident = incident_new();
	struct triggers_firing *firing = &incident->firing[0];

	assert_ok(incidents_store_open(path, true, &sample->store));
	snprintf(firing->trigger, sizeof(firing->trigger), "stall");
	snprintf(firing->series, sizeof(firing->series), "step");
	snprintf(firing->evidence, sizeof(firing->evidence), "a \"quoted\" \\ line");
	firing->severity = TRIGGERS_CRITICAL;
	firing->rank = 3;
	firing->step = 14190;
	firing->ongoing = 1;
	firing->t0_ns = 1764460800123456789;
	firing->until_ns = firing->detected_ns = 1764460809823456789;
	incident->n_firings = incident->n_windows = 1;
	incident->window[0] = (struct incident_window){firing->t0_ns - 10, firing->detected_ns + 5};
	memset(incident->id, 0xab, sizeof(incident->id));
	incidents_id_text(incident->id_text, incident->id);
	incidents_folder_name(incident->folder, firing->t0_ns, firing->trigger, incident->id);
	incident_sentence(incident, incident->sentence, sizeof(incident->sentence));
	snprintf(sample->folder, sizeof(sample->folder), "%s/incidents/%s", path, incident->folder);
	ck_assert_int_eq(mkdir(sample->folder, 0700), 0);
	ck_assert_int_eq(mkdir(test_path(sample->folder, "raw"), 0700), 0);
	test_write_file(test_path(sample->folder, "raw/a.drec"), "123456789", 9);
	sample->fd = open(sample->folder, O_RDONLY | O_DIRECTORY);
	sample->incident = incident;
}

static void end_sample(struct sample *sample)
{
	incident_free(sample->incident);
	incidents_store_free(sample->store);
	close(sample->fd);
}

static void write_manifest(struct sample *sample)
{
	char *text = NULL;

	assert_ok(incident_manifest(sample->incident, sample->fd, &text));
	test_write_file(test_path(sample->folder, "manifest.json"), text, strlen(text));
	free(text);
}

START_TEST(comes_back_as_it_was)
{
	struct sample sample;
	struct incidents_entry entry = {0};
	struct triggers_firing firing;
	const cJSON *file;
	cJSON *json = NULL;
	char text[64];

	make_sample(&sample);
	write_manifest(&sample);
	assert_ok(incident_manifest_read(sample.store, sample.incident->folder, &json));
	incident_manifest_entry(json, &entry);
	ck_assert_int_eq(entry.t0_ns, 1764460800123456789);
	ck_assert_int_eq(entry.detected_ns, 1764460809823456789);
	ck_assert_int_eq(entry.step, 14190);
	ck_assert_uint_eq(entry.rank, 3);
	ck_assert_int_eq(entry.severity, TRIGGERS_CRITICAL);
	ck_assert(entry.ongoing);
	json_read_firing(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "firings"), 0), &firing);
	ck_assert_str_eq(firing.evidence, "a \"quoted\" \\ line");
	ck_assert_uint_eq(json_number(json, "revision", 0), 1);

	/* Files are listed with their length and CRC32 as read back. */
	file = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "files"), 0);
	json_text(file, "path", text, sizeof(text));
	ck_assert_str_eq(text, "raw/a.drec");
	json_text(file, "crc32", text, sizeof(text));
	ck_assert_str_eq(text, "cbf43926");
	ck_assert_uint_eq(json_u64(file, "bytes", 0), 9);
	cJSON_Delete(json);
	end_sample(&sample);
}
END_TEST

START_TEST(resolving_is_a_revision)
{
	struct sample sample;
	struct incidents_entry entry = {0};
	cJSON *json = NULL;
	char *text = NULL;

	make_sample(&sample);
	write_manifest(&sample);
	ck_assert_str_eq(sample.incident->sentence,
			 "Rank 3 stopped at step 14,190, 00:00:00.123 UTC; it had not moved "
			 "on when this was noticed after 9.7 s.");
	assert_ok(
		incident_manifest_resolve(sample.store, sample.incident->folder, 1764460841323456789, &text));
	free(text);
	assert_ok(incident_manifest_read(sample.store, sample.incident->folder, &json));
	incident_manifest_entry(json, &entry);
	ck_assert_int_eq(entry.resolved_ns, 1764460841323456789);
	ck_assert_str_eq(entry.sentence,
			 "Rank 3 stopped at step 14,190, 00:00:00.123 UTC; it went on after 41.2 s.");
	ck_assert_uint_eq(json_number(json, "revision", 0), 2);
	cJSON_Delete(json);
	end_sample(&sample);
}
END_TEST

START_TEST(others_are_refused)
{
	static const char *const texts[] = {
		"",
		"{}",
		"[]",
		"{\"schema\":\"driverec.incident/2\"}",
		"{\"schema\":\"driverec.incident/1\"} trailing",
		"{\"schema\":\"driverec.incident/1\"",
		"{\"schema\":1}",
	};
	struct sample sample;
	cJSON *json = NULL;

	make_sample(&sample);
	test_write_file(test_path(sample.folder, "manifest.json"), texts[_i], strlen(texts[_i]));
	ck_assert_int_eq(incident_manifest_read(sample.store, sample.incident->folder, &json), -EBADMSG);
	ck_assert_ptr_null(json);
	ck_assert_int_eq(incident_manifest_read(sample.store, "none", &json), -ENOENT);
	end_sample(&sample);
}
END_TEST

START_TEST(numbers_are_exact_or_missing)
{
	static const struct {
		const char *text;
		int64_t ns;
	} rows[] = {
		{"\"9223372036854775807\"", INT64_MAX},
		{"\"-1\"", -1},
		{"\"9223372036854775808\"", 7},
		{"12", 7},
		{"\"\"", 7},
		{"\"-\"", 7},
		{"\"1x\"", 7},
		{"null", 7},
		{"\"1e3\"", 7},
	};
	char text[64];
	cJSON *json;

	snprintf(text, sizeof(text), "{\"a\":%s}", rows[_i].text);
	json = cJSON_Parse(text);
	ck_assert_ptr_nonnull(json);
	ck_assert_int_eq(json_ns(json, "a", 7), rows[_i].ns);
	cJSON_Delete(json);
}
END_TEST

START_TEST(a_record_comes_back)
{
	struct sample sample;
	struct incident *again = NULL;
	char name[INCIDENTS_ID_TEXT + 8];

	make_sample(&sample);
	sample.incident->mono_to_unix_ns = 1764460000000000001;
	sample.incident->rings = calloc(1, sizeof(*sample.incident->rings));
	sample.incident->n_rings = 1;
	sample.incident->rings[0].fd = -1;
	sample.incident->rings[0].rank = UINT32_MAX;
	sample.incident->rings[0].pin[0].from = UINT64_MAX;
	sample.incident->rings[0].path = strdup("/run/driverec/rings/a.ring");
	assert_ok(incident_record(sample.incident, sample.store));
	snprintf(name, sizeof(name), "%s.json", sample.incident->id_text);
	assert_ok(incident_record_read(sample.store, name, &again));
	ck_assert_int_eq(again->mono_to_unix_ns, 1764460000000000001);
	ck_assert_int_eq(again->window[0].a_ns, sample.incident->window[0].a_ns);
	ck_assert_str_eq(again->folder, sample.incident->folder);
	ck_assert_uint_eq(again->n_rings, 1);
	ck_assert_uint_eq(again->rings[0].rank, UINT32_MAX);
	ck_assert_uint_eq(again->rings[0].pin[0].from, UINT64_MAX);
	ck_assert_str_eq(again->rings[0].path, "/run/driverec/rings/a.ring");
	ck_assert_str_eq(again->firing[0].series, "step");
	assert_ok(incident_record_remove(again, sample.store));
	incident_free(again);
	again = NULL;
	ck_assert_int_eq(incident_record_read(sample.store, name, &again), -ENOENT);
	end_sample(&sample);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("incident manifest");
	TCase *whole = tcase_create("round trip"), *refused = tcase_create("refused");
	TCase *numbers = tcase_create("numbers"), *records = tcase_create("records");

	tcase_add_test(whole, comes_back_as_it_was);
	tcase_add_test(whole, resolving_is_a_revision);
	tcase_add_loop_test(refused, others_are_refused, 0, 7);
	tcase_add_loop_test(numbers, numbers_are_exact_or_missing, 0, 9);
	tcase_add_test(records, a_record_comes_back);
	suite_add_tcase(suite, whole);
	suite_add_tcase(suite, refused);
	suite_add_tcase(suite, numbers);
	suite_add_tcase(suite, records);
	return test_run(suite);
}
