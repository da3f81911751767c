/* SPDX-License-Identifier: Apache-2.0 */
/* What the args of a few events say. */
#ifndef REDUCER_VERIFY_ARGS_H
#define REDUCER_VERIFY_ARGS_H

#include "verify_trace.h"

/* The value of a member of a JSON object, raw; false where there is none. The last one of that key counts. */
bool verify_args_member(struct reducer_text args, const char *key, struct reducer_text *ret_value);

/* The number of the text that such a member says. 0, -ENOENT or -ENOMEM. */
int verify_args_text(struct verify_house *house, struct reducer_text args, const char *key,
		     uint32_t *ret_number);

/* Whether the event says where the job is. Named so in all frameworks that we know. */
bool verify_is_step(const struct reducer_event *event);

/* What args that begin as those of a merged event say. 0 or -ENOMEM. */
int verify_args_merged(struct verify_house *house, const struct reducer_event *event,
		       struct verify_merged *ret_merged);

/* What the args of driverec.reduced say. */
void verify_args_mark(struct reducer_text args, struct verify_mark *ret_mark);

#endif
