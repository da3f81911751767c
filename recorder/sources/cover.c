/* SPDX-License-Identifier: Apache-2.0 */
#include "cover.h"

#include <string.h>

#include "ns.h"

/* Of a piece, what is covered between two times within it. */
static int64_t share(const struct cover_piece *piece, int64_t from_ns, int64_t to_ns)
{
	int64_t whole = ns_sub(piece->end_ns, piece->start_ns), part = ns_sub(to_ns, from_ns);
	if (part <= 0)
		return 0;
	if (part >= whole || piece->covered_ns >= whole)
		return part >= whole ? piece->covered_ns : part;
	return (int64_t)((__int128)piece->covered_ns * part / whole);
}

static void join_neighbours(struct cover *cover)
{
	uint32_t to = 0;
	for (uint32_t i = 0; i < cover->count; i += 2) {
		struct cover_piece piece = cover->piece[i];
		if (i + 1 < cover->count) {
			piece.end_ns = cover->piece[i + 1].end_ns;
			piece.covered_ns = ns_add(piece.covered_ns, cover->piece[i + 1].covered_ns);
		}
		cover->piece[to++] = piece;
	}
	cover->count = to;
}

/* Takes the place of the pieces [from, to), all that touch it; what they cover beside it is kept. */
static void replace(struct cover *cover, uint32_t from, uint32_t to, struct cover_piece added)
{
	struct cover_piece *piece = cover->piece;
	int64_t start_ns = added.start_ns, end_ns = added.end_ns;
	if (to > from && piece[from].start_ns < start_ns) {
		added.start_ns = piece[from].start_ns;
		added.covered_ns =
			ns_add(added.covered_ns, share(&piece[from], piece[from].start_ns, start_ns));
	}
	if (to > from && piece[to - 1].end_ns > end_ns) {
		added.end_ns = piece[to - 1].end_ns;
		added.covered_ns = ns_add(added.covered_ns, share(&piece[to - 1], end_ns, added.end_ns));
	}
	if (to < cover->count && to != from + 1)
		memmove(piece + from + 1, piece + to, (cover->count - to) * sizeof(*piece));
	cover->count = cover->count - (to - from) + 1;
	piece[from] = added;
}

void cover_add(struct cover *cover, int64_t start_ns, int64_t end_ns)
{
	if (start_ns < -COVER_NS_MAX)
		start_ns = -COVER_NS_MAX;
	if (end_ns > COVER_NS_MAX)
		end_ns = COVER_NS_MAX;
	if (end_ns <= start_ns)
		return;
	if (cover->count == COVER_PIECES)
		join_neighbours(cover);
	uint32_t to = cover->count;
	while (to > 0 && cover->piece[to - 1].start_ns > end_ns)
		to--;
	uint32_t from = to;
	while (from > 0 && cover->piece[from - 1].end_ns >= start_ns)
		from--;
	replace(cover, from, to, (struct cover_piece){start_ns, end_ns, ns_sub(end_ns, start_ns)});
}

int64_t cover_within(const struct cover *cover, int64_t from_ns, int64_t to_ns)
{
	int64_t covered = 0;
	for (uint32_t i = 0; i < cover->count; i++) {
		const struct cover_piece *piece = &cover->piece[i];
		int64_t start_ns = piece->start_ns > from_ns ? piece->start_ns : from_ns;
		int64_t end_ns = piece->end_ns < to_ns ? piece->end_ns : to_ns;
		covered = ns_add(covered, share(piece, start_ns, end_ns));
	}
	return covered;
}

void cover_cut(struct cover *cover, int64_t to_ns)
{
	uint32_t gone = 0;
	while (gone < cover->count && cover->piece[gone].end_ns <= to_ns)
		gone++;
	cover->count -= gone;
	memmove(cover->piece, cover->piece + gone, cover->count * sizeof(cover->piece[0]));
	if (!cover->count || cover->piece[0].start_ns >= to_ns)
		return;
	struct cover_piece *first = &cover->piece[0];
	first->covered_ns = share(first, to_ns, first->end_ns);
	first->start_ns = to_ns;
}
