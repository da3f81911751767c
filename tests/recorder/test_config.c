/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config_table.h"
#include "support.h"

/* The defaults as they were designed: the table must say the same. */
static const char designed[] =
	"{ \"job\": {\"name\":\"auto\",\"rank\":\"auto\"}, \"run_dir\":\"auto\", "
	"\"store\":\"~/.local/state/driverec\",\n"
	"\"ring\": {\"size\":\"16 MiB\",\"worker_size\":\"1 MiB\",\"shm_share_max\":\"12 %\"},\n"
	"\"window\": {\"pre\":\"5 steps\",\"pre_min\":\"10 s\",\"post\":\"2 steps\",\"post_max\":\"30 "
	"s\",\"max_size\":\"512 MiB\"},\n"
	"\"macro\": {\"tiers\":[\"10 ms x 10 min\",\"1 s x 24 h\",\"1 min x 30 d\"],\"max_size\":\"64 "
	"MiB\"},\n"
	"\"captures\": {\"xprof\":{\"targets\":\"auto\",\"reference_every\":\"10 min\",\"after_firing\":\"2 "
	"s\",\"snapshot\":false,\n"
	"\"only_if_guarded\":true}, \"kineto\":{\"listen\":true,\"reference_every\":\"30 "
	"min\",\"after_firing\":\"1 iteration\"},\n"
	"\"logdir\":[], \"max_size\":\"2 GiB\",\"per_hour_max\":12,\"stop_if_step_slower_by\":\"2 %\"},\n"
	"\"host\": {\"every\":\"1 s\",\"device_counters\":true},\n"
	"\"triggers\": {\"stall\":{\"factor\":3,\"min\":\"1 s\",\"first_step_max\":\"30 "
	"min\",\"suspect_at\":1.2},\n"
	"\"device_idle\":{\"below\":\"5 %\",\"for\":\"2 steps\",\"min\":\"10 s\"},\n"
	"\"latency_spike\":{\"window\":128,\"warn\":1.5,\"critical\":3}, \"shift\":{\"alert\":false},\n"
	"\"straggler\":{\"ratio\":1.25,\"of\":\"3 of 5\",\"alert\":false},\n"
	"\"difference\":{\"order\":1,\"block\":16,\"floor\":\"12.5 %\"}, \"crash\":{\"severity\":\"note\"}, "
	"\"threshold\":[]},\n"
	"\"series\": [\"step\",\"phase:*\",\"load\",\"next(*)\",\"device:*\"],\n"
	"\"gates\": {\"warmup_steps\":16,\"cooldown\":\"60 "
	"s\",\"per_hour\":12,\"per_day\":48,\"reserve_critical\":\"50 %\"},\n"
	"\"collect\": "
	"{\"stall\":[[\"py-spy\",\"dump\",\"--nonblocking\",\"--pid\",\"{pid}\"]],\"timeout\":\"10 s\"},\n"
	"\"args\":\"keep\", \"retention\": {\"age\":\"30 d\",\"count\":500,\"size\":\"10 "
	"GiB\",\"disk_share_max\":\"10 %\",\n"
	"\"pack_after\":\"1 d\"}, \"alerts\": "
	"{\"min_severity\":\"critical\",\"dedup\":\"{job}/{trigger}/{step}\",\"hooks\":[]},\n"
	"\"http\": {\"listen\":\"127.0.0.1:9477\"} }\n";

static struct config_problems problems;

static struct config *parse(const char *text)
{
	struct config *config = NULL;
	int result = config_parse(text, strlen(text), *text ? "c.json" : NULL, &config, &problems);
	if (result < 0)
		config_problems_print(&problems, stderr);
	assert_ok(result);
	return config;
}

static void count_set(void *context, const struct config_setting *setting)
{
	int *count = context;
	char *compact = strdup(setting->preset), *to = compact;
	if (!setting->line)
		return free(compact);
	/* cJSON prints lists without blanks. */
	for (const char *from = setting->preset; *from; from++)
		if (*from != ' ' || setting->preset[0] != '[' || from[-1] != ',')
			*to++ = *from;
	*to = 0;
	ck_assert_msg(strcmp(setting->value, compact) == 0, "%s: %s, but designed as %s", setting->key,
		      compact, setting->value);
	free(compact);
	++*count;
}

START_TEST(as_designed)
{
	struct config *config = parse(designed);
	int count = 0;
	config_each(config, count_set, &count);
	/* All but nine collectors that are empty, names of phases and of work, and what the engine has beyond the design. */
	ck_assert_int_eq(count, (int)config_row_count - 9 - 4 - 2 - 5);
	config_free(config);
}
END_TEST

START_TEST(fields)
{
	setenv("HOME", "/home/ann", 1);
	unsetenv("XDG_STATE_HOME");
	struct config *config = parse("");
	ck_assert_ptr_null(config->job.name);
	ck_assert_int_eq(config->job.rank, CONFIG_RANK_AUTO);
	ck_assert_ptr_null(config->run_dir);
	ck_assert_str_eq(config->store, "/home/ann/.local/state/driverec");
	ck_assert_int_eq(config->ring.size_bytes, 16 << 20);
	ck_assert_int_eq(config->ring.shm_share_max_ppm, 120000);
	ck_assert_int_eq(config->window.pre.steps, 5);
	ck_assert_int_eq(config->window.post_max_ns, 30000000000);
	ck_assert_uint_eq(config->macro.tiers.count, 3);
	ck_assert_int_eq(config->macro.tiers.tier[2].bin_ns, 60000000000);
	ck_assert(config->captures.xprof.targets_auto);
	ck_assert_int_eq(config->captures.kineto.after_firing.steps, 1);
	ck_assert_uint_eq(config->series.count, 5);
	ck_assert_str_eq(config->series.text[1], "phase:*");
	ck_assert_uint_eq(config->collect.collectors.count, 1);
	ck_assert_str_eq(config->collect.collectors.item[0].trigger, "stall");
	ck_assert_str_eq(config->collect.collectors.item[0].command.argv[4], "{pid}");
	ck_assert_ptr_null(config->collect.collectors.item[0].command.argv[5]);
	ck_assert_int_eq(config->retention.disk_share_max_ppm, 100000);
	ck_assert_int_eq(config->alerts.min_severity, CONFIG_CRITICAL);
	ck_assert_ptr_null(config->path);
	config_free(config);
	config_free(NULL);
}
END_TEST

START_TEST(given)
{
	struct config *config =
		parse("// a comment\n{\"job\": {\"name\": \"llm-7b\", \"rank\": 3}, \"store\": \"/data//x\", "
		      "// \"args\": 1\n"
		      "\"window\": {\"pre\": \"20 s\"}, \"captures\": {\"xprof\": {\"targets\": [\"h:1\", "
		      "\"h:2\"]}},\n"
		      "\"collect\": {\"stall\": [], \"any\": [[\"a\"], [\"b\", \"{pid}\"]]},\n"
		      "\"triggers\": {\"threshold\": [{\"series\": \"device:*:power\", \"above\": 700.5, "
		      "\"severity\": \"critical\"},\n"
		      "{\"series\": \"load\", \"below\": \"250 ms\"}]},\n"
		      "\"alerts\": {\"hooks\": [{\"name\": \"pager\", \"exec\": [\"/bin/page\", \"x\"], "
		      "\"on\": [\"ready\"],"
		      " \"timeout\": \"5 s\"}], \"min_severity\": \"warn\"}, \"args\": \"strip\"}");
	ck_assert_str_eq(config->job.name, "llm-7b");
	ck_assert_int_eq(config->job.rank, 3);
	ck_assert_str_eq(config->store, "/data//x");
	ck_assert_int_eq(config->window.pre.ns, 20000000000);
	ck_assert_int_eq(config->window.pre.steps, 0);
	ck_assert_uint_eq(config->captures.xprof.targets.count, 2);
	ck_assert(!config->captures.xprof.targets_auto);
	ck_assert_uint_eq(config->collect.collectors.count, 2);
	ck_assert_str_eq(config->collect.collectors.item[1].trigger, "any");
	ck_assert_str_eq(config->collect.collectors.item[1].command.argv[1], "{pid}");
	ck_assert_uint_eq(config->thresholds.count, 2);
	ck_assert_int_eq(config->thresholds.item[0].above.ppm, 700500000);
	ck_assert(!config->thresholds.item[0].below.given);
	ck_assert_int_eq(config->thresholds.item[1].below.ppm, 250000000000000);
	ck_assert(config->thresholds.item[1].below.is_time && !config->thresholds.item[0].above.is_time);
	ck_assert_int_eq(config->thresholds.item[1].severity, CONFIG_WARN);
	ck_assert_uint_eq(config->alerts.hooks.count, 1);
	ck_assert_uint_eq(config->alerts.hooks.item[0].on, CONFIG_READY);
	ck_assert_int_eq(config->alerts.hooks.item[0].timeout_ns, 5000000000);
	ck_assert_int_eq(config->alerts.hooks.item[0].min_severity, CONFIG_WARN);
	ck_assert_int_eq(config->args, CONFIG_ARGS_STRIP);
	ck_assert_str_eq(config->path, "c.json");
	config_free(config);
}
END_TEST

static const struct {
	const char *text, *said; /* what is printed, all lines */
} bad[] = {
	{"{\"ring\": {\"sise\": 3}}", "c.json:1:11: ring.sise: unknown; did you mean ring.size?\n"},
	{"{\"pre\": 3}", "c.json:1:2: pre: unknown; did you mean window.pre?\n"},
	{"{\n \"ring\": {\"size\": \"16 MB\",\n \"size\": \"1 MiB\"}}",
	 "c.json:3:2: ring.size: given twice; the first is in line 2\n"},
	{"{\"ring\": 3}", "c.json:1:10: ring: 3 is not an object\n"},
	{"{\"ring\": {\"size\": \"1 KiB\"}}",
	 "c.json:1:19: ring.size: \"1 KiB\" is not in 256 KiB .. 64 GiB\n"},
	{"{\"gates\": {\"per_hour\": 1.5, \"per_day\": -1}}",
	 "c.json:1:24: gates.per_hour: 1.5 is not a whole number\n"
	 "c.json:1:40: gates.per_day: -1 is not in 1 .. 1000\n"},
	{"{\"triggers\": {\"stall\": {\"factor\": 1e1}}}",
	 "c.json:1:35: triggers.stall.factor: 10 is not a number like 1.5\n"},
	{"[]", "c.json:1:1: [] is not an object\n"},
	{"{\"args\": \"keep\",}", "c.json:1:17: no JSON from here on\n"},
	{"{} x", "c.json:1:4: no JSON from here on\n"},
	{"{\"series\": [\"a\", 3, \"\"]}", "c.json:1:18: series[1]: 3 is not a text\n"},
	{"[[[[[[[[[[[[[[[[[[", "c.json:1:17: nested too deep\n"},
	{"{\"ring\":{\"worker_size\":\"32 MiB\"}}", "c.json: ring.worker_size: larger than ring.size\n"},
	{"{\"alerts\":{\"hooks\":[{\"name\":\"a\",\"exce\":[\"b\"]}]}}",
	 "c.json:1:33: alerts.hooks[0].exce: unknown; it is an object of \"name\", \"exec\", \"timeout\", "
	 "\"on\", "
	 "\"min_severity\"\n"},
	{"{\"triggers\":{\"threshold\":[{\"series\":\"x\"}]}}",
	 "c.json:1:27: triggers.threshold[0]: {\"series\":\"x\"} is not a limit: it needs \"series\" and "
	 "\"above\" or "
	 "\"below\"\n"},
	{"{\"http\":{\"listen\":\"9477\"}}",
	 "c.json:1:19: http.listen: \"9477\" is not an ADDRESS:PORT like \"127.0.0.1:9477\", or \"\"\n"},
};

START_TEST(refused)
{
	struct config *config = NULL;
	char *said = NULL;
	size_t bytes;
	ck_assert_int_eq(config_parse(bad[_i].text, strlen(bad[_i].text), "c.json", &config, &problems),
			 -EINVAL);
	ck_assert_ptr_null(config);
	FILE *out = open_memstream(&said, &bytes);
	config_problems_print(&problems, out);
	fclose(out);
	ck_assert_str_eq(said, bad[_i].said);
	free(said);
}
END_TEST

START_TEST(too_many_problems)
{
	char *text = malloc(1 << 16);
	char *at = text + sprintf(text, "{\"x0\": 1");
	for (int i = 1; i < 200; i++)
		at += sprintf(at, ",\n\"x%d\": 1", i);
	strcpy(at, "}");
	struct config *config = NULL;
	ck_assert_int_eq(config_parse(text, strlen(text), "c.json", &config, &problems), -EINVAL);
	ck_assert_uint_eq(problems.count, 200);
	free(text);
}
END_TEST

/* Whatever is done to a good file, it is read or refused with at least one problem. */
START_TEST(damaged)
{
	for (int i = 0; i < 2000; i++) {
		char text[sizeof(designed)];
		struct config *config = NULL;
		memcpy(text, designed, sizeof(designed));
		for (uint64_t n = test_random_below(4); n < 5; n++)
			text[test_random_below(sizeof(text) - 1)] = (char)test_random_below(256);
		size_t bytes = test_random_below(4) ? sizeof(text) - 1 : test_random_below(sizeof(text));
		int result = config_parse(text, bytes, NULL, &config, &problems);
		ck_assert(result == 0 || result == -EINVAL);
		ck_assert_int_eq(result<0, problems.count> 0);
		if (result == 0)
			config_free(config);
	}
}
END_TEST

START_TEST(places)
{
	const char *folder = test_folder();
	struct config *config;
	setenv("HOME", folder, 1);
	unsetenv("DRIVEREC_CONFIG");
	assert_ok(config_load(NULL, &config, &problems));
	ck_assert(config->path == NULL || strncmp(config->path, "/etc/", 5) == 0);
	config_free(config);
	const char *path = test_path(folder, "a.json");
	test_write_file(path, "{\"args\": \"strip\"}", 17);
	setenv("DRIVEREC_CONFIG", path, 1);
	assert_ok(config_load(NULL, &config, &problems));
	ck_assert_str_eq(config->path, path);
	ck_assert_int_eq(config->args, CONFIG_ARGS_STRIP);
	config_free(config);
	ck_assert_int_eq(config_load(test_path(folder, "none"), &config, &problems), -ENOENT);
	ck_assert_uint_eq(problems.count, 1);
	test_write_file(test_path(folder, "empty"), "", 0);
	ck_assert_int_eq(config_load(test_path(folder, "empty"), &config, &problems), -EINVAL);
}
END_TEST

struct page {
	const char *text;
};

static void check_page(void *context, const struct config_setting *setting)
{
	const struct page *page = context;
	char wanted[128];
	snprintf(wanted, sizeof(wanted), "| `%s` | `%s` |", setting->key, setting->preset);
	ck_assert_msg(strstr(page->text, wanted) != NULL, "docs/configuration.md lacks: %s", wanted);
	ck_assert_msg(strstr(page->text, setting->help) != NULL, "docs/configuration.md lacks: %s",
		      setting->help);
	ck_assert_msg(strstr(page->text, setting->bounds) != NULL, "%s: bounds are %s", setting->key,
		      setting->bounds);
}

START_TEST(documented)
{
	char *text = test_read_file(DRIVEREC_DOCS "/configuration.md", NULL);
	struct page page = {text};
	config_each(NULL, check_page, &page);
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("config");
	TCase *tcase = tcase_create("defaults");
	tcase_add_test(tcase, as_designed);
	tcase_add_test(tcase, fields);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("values");
	tcase_add_test(tcase, given);
	tcase_add_test(tcase, places);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("every problem with its place");
	tcase_add_loop_test(tcase, refused, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tcase, too_many_problems);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("damaged files");
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, damaged);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("docs/configuration.md");
	tcase_add_test(tcase, documented);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
