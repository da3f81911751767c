/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that can be asked of a ring or window file, on bytes that nobody vouches for. */
#ifndef TESTS_DREC_WALK_H
#define TESTS_DREC_WALK_H

#include <stddef.h>
#include <stdint.h>

void drec_walk(const void *bytes, size_t size);

#endif
