/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "options.h"

int triggers_pattern_match(const char *pattern, const char *text)
{
	const char *star = NULL, *from = NULL;
	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			from = text;
		} else if (*pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++from;
		} else {
			return 0;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

/* The next word of *text into `word`; 0 at the end, -1 if it is too long. */
static int next_word(const char **text, char *word, size_t room)
{
	while (**text == ' ')
		(*text)++;
	size_t count = strcspn(*text, " ");
	if (count >= room)
		return -1;
	memcpy(word, *text, count);
	word[count] = 0;
	*text += count;
	return count > 0;
}

static int parse_limit(struct triggers_rule *rule, const char *text)
{
	double limit;
	int bare = !triggers_option_parse(text, "", &limit);
	if (!bare && triggers_option_parse(text, "s", &limit))
		return -EINVAL;
	rule->is_time = !bare;
	rule->limit = bare ? limit : limit * 1e9;
	return 0;
}

static int parse_severity(struct triggers_rule *rule, const char *text)
{
	for (int i = TRIGGERS_NOTE; i <= TRIGGERS_CRITICAL; i++)
		if (!strcmp(text, triggers_severity_name((enum triggers_severity)i))) {
			rule->severity = (enum triggers_severity)i;
			return 0;
		}
	return -EINVAL;
}

/* "2 s" is two words; they are read as one number. */
static void join_unit(const char **text, char *word, size_t room)
{
	static const char *const units[] = {"ns", "us", "ms", "s", "min", "h", "d"};
	const char *after = *text;
	char unit[8];
	if (next_word(&after, unit, sizeof(unit)) <= 0)
		return;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(unit, units[i])) {
			size_t used = strlen(word);
			snprintf(word + used, room - used, " %s", unit);
			*text = after;
			return;
		}
}

/* The first word, or what stands in double quotes: names of spans may have spaces. */
static int next_pattern(const char **text, char *pattern, size_t room)
{
	*text += strspn(*text, " ");
	if (**text != '"')
		return next_word(text, pattern, room);
	size_t count = strcspn(++*text, "\"");
	if (count >= room || (*text)[count] != '"')
		return -1;
	memcpy(pattern, *text, count);
	pattern[count] = 0;
	*text += count + 1;
	return count > 0;
}

static int parse_rule(struct triggers_rule *rule, const char *text)
{
	char word[40];
	*rule = (struct triggers_rule){.severity = TRIGGERS_WARN};
	if (next_pattern(&text, rule->pattern, sizeof(rule->pattern)) <= 0)
		return -EINVAL;
	if (next_word(&text, word, sizeof(word)) <= 0 || (strcmp(word, ">") && strcmp(word, "<")))
		return -EINVAL;
	rule->above = word[0] == '>';
	if (next_word(&text, word, sizeof(word)) <= 0)
		return -EINVAL;
	join_unit(&text, word, sizeof(word));
	if (parse_limit(rule, word))
		return -EINVAL;
	int more = next_word(&text, word, sizeof(word));
	if (more > 0 && !strcmp(word, "for")) {
		double seconds;
		if (next_word(&text, word, sizeof(word)) <= 0)
			return -EINVAL;
		join_unit(&text, word, sizeof(word));
		if (triggers_option_parse(word, "s", &seconds) || !(seconds >= 0 && seconds <= 604800))
			return -EINVAL;
		rule->for_ns = (int64_t)(seconds * 1e9);
		more = next_word(&text, word, sizeof(word));
	}
	if (more > 0) {
		if (parse_severity(rule, word))
			return -EINVAL;
		more = next_word(&text, word, sizeof(word));
	}
	return more ? -EINVAL : 0;
}

int triggers_rules_add(struct triggers_rules *rules, const char *text, char *error, size_t error_room)
{
	struct triggers_rule rule;
	if (!text[strspn(text, " ")]) {
		rules->count = 0;
		rules->version++;
		return 0;
	}
	if (rules->count == TRIGGERS_RULES_MAX) {
		snprintf(error, error_room, "threshold: more than %d rules", TRIGGERS_RULES_MAX);
		return -EINVAL;
	}
	if (parse_rule(&rule, text)) {
		snprintf(error, error_room,
			 "threshold is \"%.80s\"; it must read PATTERN >|< LIMIT[UNIT] [for TIME] "
			 "[note|warn|critical], such as: load > 2 s critical",
			 text);
		return -EINVAL;
	}
	rules->rule[rules->count++] = rule;
	rules->version++;
	return 0;
}
