/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers on borrowed texts. */
#ifndef REDUCER_TEXT_H
#define REDUCER_TEXT_H

#include <stdbool.h>

#include <reducer/event.h>

bool text_is(struct reducer_text text, const char *literal);

#endif
