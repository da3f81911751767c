/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of `driverec scope` share: times, a model and a view for each test. */
#ifndef TESTS_RECORDER_SCOPE_MODEL_H
#define TESTS_RECORDER_SCOPE_MODEL_H

#include <stdint.h>
#include <stdlib.h>

#include <reducer/tiers.h>

#include "scope/layout.h"
#include "support.h"

#define MS     INT64_C(1000000)
#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define DAY    (86400 * SECOND)
/* 2026-11-30 03:12:00 UTC */
#define BASE (INT64_C(1796008320) * SECOND)

static struct scope_model *model; /* big: one for all, cleared by each test */
static struct scope_view view;

static void set_up(void)
{
	struct reducer_tiers_options options;
	reducer_tiers_defaults(&options);
	model = calloc(1, sizeof(*model));
	ck_assert_ptr_nonnull(model);
	scope_view_init(&view, &options);
}

static void tear_down(void)
{
	free(model);
}

static TCase *add_case(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return tcase;
}

#endif
