/* SPDX-License-Identifier: Apache-2.0 */
#include "standard_fds.h"

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

enum { STANDARD_FDS = 3 };

static bool filled[STANDARD_FDS];

void standard_fds_fill(void)
{
	for (int fd = 0; fd < STANDARD_FDS; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* The lowest free number is this one: those below are taken. The wrong way round, so that using it fails. */
		filled[fd] = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) == fd;
	}
}

void standard_fds_restore(void)
{
	for (int fd = 0; fd < STANDARD_FDS; fd++)
		if (filled[fd])
			close(fd);
}
