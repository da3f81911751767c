/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECORDER_VERSION_H
#define RECORDER_VERSION_H

const char *version_text(void);

#endif
