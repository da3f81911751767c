/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names are whatever a producer wrote. What is shown to people or put into a document goes through here first, so
 * that it is one line of well-formed UTF-8 that moves no cursor and turns no writing direction.
 */
#ifndef PLAIN_TEXT_H
#define PLAIN_TEXT_H

#include <cjson/cJSON.h>

#include <stddef.h>

/* Bytes of the character at `text`, 0 if it is none that can be shown. */
size_t plain_text_character(const char *text, size_t bytes);
/*
 * What cannot be shown becomes '?', what does not fit is left out, whole characters at a time; ends with a 0. The
 * text never grows: `out` may be `text`.
 */
void plain_text(char *out, size_t room, const char *text, size_t bytes);
/* The same for all texts of a document that is about to be printed. */
void plain_text_json(cJSON *document);

#endif
