/* SPDX-License-Identifier: Apache-2.0 */
#include "ring_file.h"

#include <driverec/format.h>

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool ring_file_is(const char *path)
{
	char magic[8];
	struct stat st;
	/* Opening a pipe and closing it again would end its writer. */
	int fd = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return false;
	bool is = pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
		  memcmp(magic, DREC_MAGIC, sizeof(magic)) == 0;
	close(fd);
	return is;
}
