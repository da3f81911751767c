/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce/names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096 };

size_t reduce_names_stem(const char *path)
{
	static const char *const endings[] = {".json.gz", ".json.zst", ".json", ".xplane.pb",
					      ".drec",    ".gz",       ".zst"};
	const char *slash = strrchr(path, '/');
	size_t bytes = strlen(path), least = slash ? (size_t)(slash - path) + 1 : 0;

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t tail = strlen(endings[i]);

		if (bytes - least > tail && strcmp(path + bytes - tail, endings[i]) == 0)
			return bytes - tail;
	}
	return bytes;
}

const char *reduce_names_ending(enum reducer_format format)
{
	switch (format) {
	case REDUCER_FORMAT_CHROME:
		return ".json.gz";
	case REDUCER_FORMAT_XPLANE:
		return ".xplane.pb";
	case REDUCER_FORMAT_PFTRACE:
		return ".pftrace";
	case REDUCER_FORMAT_DREC:
	case REDUCER_FORMAT_NONE:
		break;
	}
	return "";
}

int reduce_names_beside(const char *input, enum reducer_format format, char *out, size_t room)
{
	int bytes = snprintf(out, room, "%.*s.reduced%s", (int)reduce_names_stem(input), input,
			     reduce_names_ending(format));

	return bytes < 0 || (size_t)bytes >= room ? -ENAMETOOLONG : 0;
}

int reduce_names_below(const char *folder, const char *input, size_t relative, enum reducer_format format,
		       int same_format, char *out, size_t room)
{
	size_t stem = reduce_names_stem(input);
	const char *slash = folder[0] && folder[strlen(folder) - 1] == '/' ? "" : "/";
	int bytes;

	/* zstd is read, not written. */
	if (same_format && reducer_format_of_name(input) == format)
		bytes = snprintf(out, room, "%s%s%s", folder, slash, input + relative);
	else
		bytes = snprintf(out, room, "%s%s%.*s%s", folder, slash, (int)(stem - relative),
				 input + relative, reduce_names_ending(format));
	return bytes < 0 || (size_t)bytes >= room ? -ENAMETOOLONG : 0;
}

int reduce_names_make_folders(const char *path)
{
	char part[PATH_BYTES];

	if (strlen(path) >= sizeof(part))
		return -ENAMETOOLONG;
	strcpy(part, path);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(part, 0777) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}
