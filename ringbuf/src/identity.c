/* SPDX-License-Identifier: Apache-2.0 */
#include <driverec/identity.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static int allowed(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
	       c == '_' || c == '-';
}

int drec_text_allowed(const char *text)
{
	size_t n = 0;
	if (!text || text[0] == '.')
		return 0;
	while (n < DREC_TEXT_MAX && allowed(text[n]))
		n++;
	return n > 0 && n < DREC_TEXT_MAX && text[n] == 0;
}

void drec_text_clean(char ret_text[DREC_TEXT_MAX], const char *text)
{
	size_t n = 0;
	for (; text[n] && n < DREC_TEXT_MAX - 1; n++)
		ret_text[n] = allowed(text[n]) && !(n == 0 && text[n] == '.') ? text[n] : '_';
	ret_text[n] = 0;
	if (n == 0)
		memcpy(ret_text, "job", 4);
}

static const char *env(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

/* A number of the environment: decimal digits alone, at most a million. */
static int number(const char *text, int32_t *ret)
{
	int32_t value = 0;
	if (!text || !*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || value > 1000000)
			return -EINVAL;
		value = value * 10 + (*text - '0');
	}
	*ret = value;
	return 0;
}

static void read_job(struct drec_identity *id)
{
	static const char *const names[] = {"DRIVEREC_JOB", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "JOB_NAME",
					    "POD_NAME"};
	char text[256];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = env(names[i]);
		/* torchrun sets "none" where no id was given. */
		if (!value || strcmp(value, "none") == 0)
			continue;
		const char *task = i == 1 ? env("SLURM_ARRAY_TASK_ID") : NULL;
		snprintf(text, sizeof(text), "%s%s%s", value, task ? "_" : "", task ? task : "");
		drec_text_clean(id->job, text);
		id->job_origin = names[i];
		return;
	}
	memcpy(id->job, "job", 4);
	id->job_origin = "default";
}

/* Hosts a slice, by the comma separated list that the TPU runtime is given. */
static int32_t slice_hosts(void)
{
	const char *hosts = env("TPU_WORKER_HOSTNAMES");
	int32_t count = 1;
	for (; hosts && *hosts; hosts++)
		count += *hosts == ',';
	return count;
}

static void read_rank(struct drec_identity *id)
{
	static const char *const names[] = {"DRIVEREC_RANK",     "RANK",          "SLURM_PROCID",
					    "JAX_PROCESS_INDEX", "JAX_PROCESS_ID", "TPU_WORKER_ID",
					    "JOB_COMPLETION_INDEX"};
	int32_t slice;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (number(env(names[i]), &id->rank) < 0)
			continue;
		if (i == 5 && number(env("MEGASCALE_SLICE_ID"), &slice) == 0)
			id->rank += slice * slice_hosts();
		id->rank_origin = names[i];
		return;
	}
	id->rank = -1;
	id->rank_origin = "default";
}

void drec_identity_read(struct drec_identity *ret_identity)
{
	struct drec_identity id = {.rank = -1};
	char text[DREC_TEXT_MAX] = "";
	read_job(&id);
	read_rank(&id);
	if (id.rank >= 0)
		snprintf(text, sizeof(text), "rank%d", (int)id.rank);
	else
		prctl(PR_GET_NAME, text);
	drec_text_clean(id.name, text);
	memset(text, 0, sizeof(text));
	if (gethostname(text, sizeof(text) - 1) < 0)
		text[0] = 0;
	drec_text_clean(id.host, text[0] ? text : "localhost");
	*ret_identity = id;
}

static int is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Anybody may make a folder in /dev/shm: it is ours only if we own it and nobody else may write it. */
static int check_owner(const char *path, const char **ret_why)
{
	struct stat st;
	if (lstat(path, &st) < 0) {
		*ret_why = "the run directory cannot be looked at";
		return -errno;
	}
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022)) {
		*ret_why = "the run directory in /dev/shm belongs to somebody else or is open to others";
		return -EPERM;
	}
	return 0;
}

static int make_folder(const char *path, const char **ret_why)
{
	if (is_folder(path) || mkdir(path, 0700) == 0 || errno == EEXIST)
		return 0;
	*ret_why = "the run directory cannot be made";
	return -errno;
}

int drec_run_dir(const char *given, char *ret_path, size_t room, const char **ret_why)
{
	char path[512], rings[520];
	int own = 0, ret, length;
	if (!given)
		given = env("DRIVEREC_RUN_DIR");
	if (given)
		length = snprintf(path, sizeof(path), "%s", given);
	else if (is_folder("/run/driverec"))
		length = snprintf(path, sizeof(path), "/run/driverec");
	else {
		length = snprintf(path, sizeof(path), "/dev/shm/driverec-%u", (unsigned)geteuid());
		own = 1;
	}
	if (length < 0 || (size_t)length >= sizeof(path) || (size_t)length >= room) {
		*ret_why = "the run directory's path is too long";
		return -ENAMETOOLONG;
	}
	ret = make_folder(path, ret_why);
	if (ret == 0 && own)
		ret = check_owner(path, ret_why);
	if (ret < 0)
		return ret;
	snprintf(rings, sizeof(rings), "%s/rings", path);
	ret = make_folder(rings, ret_why);
	if (ret < 0)
		return ret;
	memcpy(ret_path, path, (size_t)length + 1);
	return 0;
}
