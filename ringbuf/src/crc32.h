/* SPDX-License-Identifier: Apache-2.0 */
/* CRC32 with zlib's polynomial (0xedb88320, reflected): crc32 of "123456789" is 0xcbf43926. */
#ifndef RINGBUF_CRC32_H
#define RINGBUF_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Goes on from `crc`, which is 0 at the start. */
uint32_t ringbuf_crc32(uint32_t crc, const void *bytes, size_t count);

#endif
