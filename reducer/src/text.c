/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <string.h>

bool text_is(struct reducer_text text, const char *literal)
{
	size_t bytes = strlen(literal);
	return text.bytes == bytes && (bytes == 0 || memcmp(text.data, literal, bytes) == 0);
}
