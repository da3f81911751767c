/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named points of `driverec reduce`, to be killed at as incidents/point.h says.
 *
 * Points: lock_made tmp_made written fsynced verified before_rename after_rename folder_synced lock_removed
 */
#ifndef RECORDER_REDUCE_POINT_H
#define RECORDER_REDUCE_POINT_H

#include "incidents/point.h"

#define REDUCE_POINT(name) INCIDENT_POINT(name)

#endif
