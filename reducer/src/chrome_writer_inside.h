/* SPDX-License-Identifier: Apache-2.0 */
/* What only this module may do with a Chrome writer. */
#ifndef REDUCER_CHROME_WRITER_INSIDE_H
#define REDUCER_CHROME_WRITER_INSIDE_H

#include <reducer/chrome_writer.h>

/* One event whose text is known to be a valid JSON object. */
int chrome_writer_valid_text(struct reducer_chrome_writer *writer, struct reducer_text event);

#endif
