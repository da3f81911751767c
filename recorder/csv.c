/* SPDX-License-Identifier: Apache-2.0 */
#include "csv.h"

#include <errno.h>
#include <string.h>

static int is_blank(char character)
{
	return character == ' ' || character == '\t' || character == '\r';
}

/* Both return where the next field begins, NULL after the last one. */
static char *plain(char *at, char **ret_field)
{
	char *comma = strchr(at, ','), *end = comma ? comma : at + strlen(at);
	while (end > at && is_blank(end[-1]))
		end--;
	*end = 0;
	*ret_field = at;
	return comma ? comma + 1 : NULL;
}

static char *quoted(char *at, char **ret_field, int *ret_error)
{
	char *out = ++at;
	*ret_field = out;
	for (; *at && (*at != '"' || at[1] == '"'); at++) {
		at += *at == '"';
		*out++ = *at;
	}
	*ret_error = *at ? 0 : -EBADMSG;
	at += *at == '"';
	while (is_blank(*at))
		at++;
	if (*at && *at != ',')
		*ret_error = -EBADMSG;
	int last = *at == 0;
	*out = 0; /* at or before the quote: nothing that is still to be read */
	return last ? NULL : at + 1;
}

int csv_split(char *line, char **field, int room)
{
	int count = 0, error = 0;
	for (char *at = line; at; count++) {
		if (count == room)
			return -E2BIG;
		while (is_blank(*at))
			at++;
		at = *at == '"' ? quoted(at, &field[count], &error) : plain(at, &field[count]);
		if (error)
			return error;
	}
	return count;
}
