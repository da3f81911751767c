/* SPDX-License-Identifier: Apache-2.0 */
/* scope/json.h: the model as numbers, for --json. docs/scope.md says what is in it. */
#ifndef RECORDER_SCOPE_JSON_H
#define RECORDER_SCOPE_JSON_H

#include <cjson/cJSON.h>

#include "model.h"

/* NULL when out of memory; freed by the caller. */
cJSON *scope_json(const struct scope_model *model);

#endif
