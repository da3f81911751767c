/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUF_WINDOW_H
#define RINGBUF_WINDOW_H

#include "reader.h"

int window_section_crc(const struct drec_reader *reader, const struct drec_section *section, uint32_t *ret_crc);

#endif
