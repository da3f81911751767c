/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.h: the fields of one line of comma-separated values, RFC 4180 but for line ends in quotes: a line is a
 * record. Blanks around a field are no part of it; what is quoted is kept as it stands, "" for one quote.
 */
#ifndef RECORDER_CSV_H
#define RECORDER_CSV_H

#include <stddef.h>

/*
 * Cuts the terminated `line` into fields, in place. Returns how many, -E2BIG where there are more than
 * `room`, or -EBADMSG where a quote is not closed or something follows it.
 */
int csv_split(char *line, char **field, int room);

#endif
