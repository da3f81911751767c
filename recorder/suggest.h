/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.h: the known name nearest to a mistyped one. */
#ifndef RECORDER_SUGGEST_H
#define RECORDER_SUGGEST_H

/* Offer each known name; `best` is then the nearest, or NULL where none is near enough to be meant. */
struct suggest {
	const char *given;
	const char *best;
	unsigned distance;
};

void suggest_init(struct suggest *suggest, const char *given);
void suggest_offer(struct suggest *suggest, const char *known);

#endif
