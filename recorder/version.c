/* SPDX-License-Identifier: Apache-2.0 */
#include "version.h"

const char *version_text(void)
{
	return DRIVEREC_VERSION;
}
