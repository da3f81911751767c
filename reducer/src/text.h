/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers on borrowed texts. */
#ifndef REDUCER_TEXT_H
#define REDUCER_TEXT_H

#include <stdbool.h>
#include <string.h>

#include <reducer/event.h>

/* In the header, so that the length of a literal is known where it is compared. */
static inline bool text_is(struct reducer_text text, const char *literal)
{
	size_t bytes = strlen(literal);
	return text.bytes == bytes && (bytes == 0 || memcmp(text.data, literal, bytes) == 0);
}

/* What stands between the quotes of a JSON text; anything else as it is. */
static inline struct reducer_text text_unquoted(struct reducer_text text)
{
	if (text.bytes >= 2 && text.data[0] == '"')
		return (struct reducer_text){text.data + 1, text.bytes - 2};
	return text;
}

#endif
