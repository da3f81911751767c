/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "point.h"

#ifdef DREC_POINTS
void (*drec_point_hook)(const char *name);
#else
/* A translation unit may not be empty. */
typedef int ringbuf_has_no_points;
#endif
