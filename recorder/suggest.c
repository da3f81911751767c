/* SPDX-License-Identifier: Apache-2.0 */
#include "suggest.h"

#include <stddef.h>
#include <string.h>

enum { LENGTH_MAX = 63 };

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;
	return least < c ? least : c;
}

/* Edits (insert, drop, change, swap neighbours) from one to the other; three rows of the matrix are enough.
 */
static unsigned edit_distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
	unsigned rows[3][LENGTH_MAX + 1];
	for (size_t j = 0; j <= b_bytes; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a_bytes; i++) {
		unsigned *row = rows[i % 3], *above = rows[(i - 1) % 3];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_bytes; j++) {
			row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    rows[(i - 2) % 3][j - 2] + 1 < row[j])
				row[j] = rows[(i - 2) % 3][j - 2] + 1;
		}
	}
	return rows[a_bytes % 3][b_bytes];
}

void suggest_init(struct suggest *suggest, const char *given)
{
	/* A third of the letters may be wrong: more is another word. */
	*suggest = (struct suggest){given, NULL, (unsigned)(strlen(given) + 2) / 3 + 1};
}

void suggest_offer(struct suggest *suggest, const char *known)
{
	size_t given_bytes = strlen(suggest->given), known_bytes = strlen(known);
	if (given_bytes > LENGTH_MAX || known_bytes > LENGTH_MAX)
		return;
	unsigned distance = edit_distance(suggest->given, given_bytes, known, known_bytes);
	/* "inc" for "incidents": a beginning counts as one slip. */
	if (given_bytes >= 2 && given_bytes < known_bytes && strncmp(known, suggest->given, given_bytes) == 0)
		distance = 1;
	if (distance < suggest->distance) {
		suggest->distance = distance;
		suggest->best = known;
	}
}
