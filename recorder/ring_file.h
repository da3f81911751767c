/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a file is a ring or window file, by its first bytes. */
#ifndef RECORDER_RING_FILE_H
#define RECORDER_RING_FILE_H

#include <stdbool.h>

/* Only of a regular file: what a pipe brings is not to be taken from whoever reads it next. */
bool ring_file_is(const char *path);

#endif
