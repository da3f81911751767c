/* SPDX-License-Identifier: Apache-2.0 */
/* Members and categories by which the two halves of the ring codec understand each other. */
#ifndef REDUCER_DREC_MEMBERS_H
#define REDUCER_DREC_MEMBERS_H

#define DREC_MEMBER_BASE "driverec.base" /* ns that were added to every time */
#define DREC_MEMBER_ROOT "driverec.root" /* "array" or "object"; in every ring that a source was fed into */
#define DREC_CATEGORY_MEMBER "driverec.member" /* an event that is a member too large for the dictionary */

#endif
