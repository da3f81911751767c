/* SPDX-License-Identifier: Apache-2.0 */
#include "hooks/collectors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

struct one {
	struct collectors *all;
	struct process *process; /* NULL once it ended */
	char *name;              /* argv[0] as configured */
	char **argv;             /* filled in; NULL if that failed */
	char *output;
	struct collectors_result result;
};

struct collectors {
	uv_work_t work;
	uv_loop_t *loop;
	collectors_done_fn *done;
	void *context;
	char *folder;
	char pid[24], rank[24];
	char *incident;
	size_t count, running;
	struct one *one;
	struct collectors_result *results; /* for `done` */
};

static void free_argv(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}

static void collectors_free(struct collectors *all)
{
	for (size_t i = 0; all->one && i < all->count; i++) {
		free_argv(all->one[i].argv);
		free(all->one[i].name);
		free(all->one[i].output);
	}
	free(all->one);
	free(all->results);
	free(all->folder);
	free(all->incident);
	free(all);
}

/* The value of the placeholder that `text` begins with, and its length; NULL if it begins with none. */
static const char *placeholder(const struct collectors *all, const char *text, size_t *ret_bytes)
{
	const struct {
		const char *name, *value;
	} table[] = {
		{"{pid}", all->pid},
		{"{rank}", all->rank},
		{"{incident}", all->incident},
		{"{folder}", all->folder},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t bytes = strlen(table[i].name);
		if (strncmp(text, table[i].name, bytes) == 0) {
			*ret_bytes = bytes;
			return table[i].value;
		}
	}
	return NULL;
}

/* -ENODATA: a placeholder has no value; -E2BIG. */
static int fill_in(const struct collectors *all, const char *argument, char out[COLLECTORS_ARGUMENT_MAX])
{
	size_t used = 0;
	while (*argument) {
		size_t bytes = 1;
		const char *value = *argument == '{' ? placeholder(all, argument, &bytes) : NULL;
		size_t length = value ? strlen(value) : 1;
		if (value && length == 0)
			return -ENODATA;
		if (length > COLLECTORS_ARGUMENT_MAX - 1 - used)
			return -E2BIG;
		memcpy(out + used, value ? value : argument, length);
		used += length;
		argument += bytes;
	}
	out[used] = 0;
	return 0;
}

static int fill_in_all(const struct collectors *all, const char *const *argv, char ***ret_argv)
{
	char argument[COLLECTORS_ARGUMENT_MAX];
	size_t count = 0;
	int rc = 0;
	while (argv[count])
		count++;
	if (count == 0 || count >= PROCESS_ARGS_MAX)
		return -EINVAL;
	char **filled = calloc(count + 1, sizeof(*filled));
	if (!filled)
		return -ENOMEM;
	for (size_t i = 0; i < count && rc == 0; i++) {
		rc = fill_in(all, argv[i], argument);
		if (rc == 0 && !(filled[i] = strdup(argument)))
			rc = -ENOMEM;
	}
	if (rc < 0)
		free_argv(filled);
	else
		*ret_argv = filled;
	return rc;
}

/* On a worker from here. */

static int write_file(const char *folder, const char *name, const char *data, size_t bytes)
{
	int folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder_fd < 0)
		return -errno;
	int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0640);
	int rc = fd < 0 ? -errno : 0;
	while (rc == 0 && bytes > 0) {
		ssize_t done = write(fd, data, bytes);
		if (done < 0) {
			rc = -errno;
			break;
		}
		data += done;
		bytes -= (size_t)done;
	}
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	close(folder_fd);
	return rc;
}

/* "collect-2-py-spy.txt": of the command's last path component only what is harmless in a name. */
static void name_file(struct one *one, size_t index)
{
	const char *slash = strrchr(one->result.command, '/');
	const char *from = slash ? slash + 1 : one->result.command;
	char word[32];
	size_t used = 0;
	for (; *from && used < sizeof(word) - 1; from++) {
		bool plain = (*from >= 'a' && *from <= 'z') || (*from >= 'A' && *from <= 'Z') ||
			     (*from >= '0' && *from <= '9') || *from == '-' || *from == '_';
		word[used++] = plain ? *from : '_';
	}
	word[used] = 0;
	snprintf(one->result.file, sizeof(one->result.file), "collect-%zu-%s.txt", index + 1, word);
}

static void write_output(struct collectors *all, size_t index)
{
	struct one *one = &all->one[index];
	if (one->result.bytes == 0)
		return;
	name_file(one, index);
	int rc = write_file(all->folder, one->result.file, one->output, one->result.bytes);
	if (rc < 0) {
		one->result.file[0] = 0;
		if (!one->result.failure[0])
			snprintf(one->result.failure, sizeof(one->result.failure), "output not kept: %s",
				 strerror(-rc));
	}
}

/* One line, or NULL without memory. The caller frees. */
static char *describe(const struct one *one)
{
	char taken[24];
	cJSON *line = cJSON_CreateObject();
	cJSON *command = cJSON_AddArrayToObject(line, "command");
	for (size_t i = 0; one->argv && one->argv[i]; i++)
		cJSON_AddItemToArray(command, cJSON_CreateString(one->argv[i]));
	if (!one->argv)
		cJSON_AddItemToArray(command, cJSON_CreateString(one->result.command));
	cJSON_AddStringToObject(line, "file", one->result.file);
	cJSON_AddNumberToObject(line, "bytes", (double)one->result.bytes);
	cJSON_AddBoolToObject(line, "cut", one->result.cut);
	snprintf(taken, sizeof(taken), "%" PRId64, one->result.taken_ns);
	cJSON_AddStringToObject(line, "taken_ns", taken);
	if (one->result.failure[0])
		cJSON_AddStringToObject(line, "failure", one->result.failure);
	char *text = cJSON_PrintUnformatted(line);
	cJSON_Delete(line);
	return text;
}

static void write_list(struct collectors *all)
{
	char *list = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&list, &bytes);
	if (!out)
		return;
	for (size_t i = 0; i < all->count; i++) {
		char *line = describe(&all->one[i]);
		if (line)
			fprintf(out, "%s\n", line);
		cJSON_free(line);
	}
	if (fclose(out) == 0)
		write_file(all->folder, "collectors.ndjson", list, bytes);
	free(list);
}

static void on_work(uv_work_t *work)
{
	struct collectors *all = work->data;
	for (size_t i = 0; i < all->count; i++)
		write_output(all, i);
	write_list(all);
}

/* On the loop again. */

static void on_written(uv_work_t *work, int status)
{
	struct collectors *all = work->data;
	(void)status;
	for (size_t i = 0; i < all->count; i++)
		all->results[i] = all->one[i].result;
	all->done(all->context, all->results, all->count);
	collectors_free(all);
}

static void one_ended(struct collectors *all)
{
	if (--all->running > 0)
		return;
	all->work.data = all;
	uv_queue_work(all->loop, &all->work, on_work, on_written);
}

static void on_done(void *context, const struct process_result *result)
{
	struct one *one = context;
	char text[PROCESS_FAILURE_TEXT];
	const char *failure = process_failure(result, text);
	one->process = NULL;
	one->result.taken_ns = result->taken_ns;
	one->result.cut = result->output_cut;
	if (failure)
		memcpy(one->result.failure, text, sizeof(text));
	one->output = malloc(result->output_bytes + 1);
	if (one->output) {
		memcpy(one->output, result->output, result->output_bytes);
		one->result.bytes = result->output_bytes;
	}
	one_ended(one->all);
}

static int start_one(struct collectors *all, struct one *one, const char *const *argv, int64_t timeout_ns)
{
	one->all = all;
	one->result.command = "";
	if (argv[0] && (one->name = strdup(argv[0])))
		one->result.command = one->name;
	int rc = fill_in_all(all, argv, &one->argv);
	struct process_options options = {
		.argv = (const char *const *)one->argv,
		.output_max = COLLECTORS_OUTPUT_MAX,
		.timeout_ns = timeout_ns,
	};
	if (rc == 0)
		rc = process_start(all->loop, &options, on_done, one, &one->process);
	if (rc == 0)
		all->running++;
	return rc;
}

static void start_all(struct collectors *all, const struct collectors_options *options)
{
	for (size_t i = 0; i < all->count; i++) {
		struct one *one = &all->one[i];
		int rc = start_one(all, one, options->commands[i], options->timeout_ns);
		if (rc < 0)
			snprintf(one->result.failure, sizeof(one->result.failure), "not run: %s",
				 rc == -ENODATA ? "the pid or rank it asks for is not known" : strerror(-rc));
	}
}

static struct collectors *collectors_new(const struct collectors_options *options, size_t count)
{
	struct collectors *all = calloc(1, sizeof(*all));
	if (!all)
		return NULL;
	all->count = count;
	all->one = calloc(count, sizeof(*all->one));
	all->results = calloc(count, sizeof(*all->results));
	all->folder = strdup(options->folder);
	all->incident = strdup(options->incident ? options->incident : "");
	if (!all->one || !all->results || !all->folder || !all->incident) {
		collectors_free(all);
		return NULL;
	}
	if (options->pid > 0)
		snprintf(all->pid, sizeof(all->pid), "%" PRId64, options->pid);
	if (options->rank >= 0)
		snprintf(all->rank, sizeof(all->rank), "%" PRId64, options->rank);
	return all;
}

int collectors_start(uv_loop_t *loop, const struct collectors_options *options, collectors_done_fn *done,
		     void *context, struct collectors **ret_collectors)
{
	if (options->count == 0)
		return -ENOENT;
	if (options->count > COLLECTORS_MAX)
		return -E2BIG;
	struct collectors *all = collectors_new(options, options->count);
	if (!all)
		return -ENOMEM;
	all->loop = loop;
	all->done = done;
	all->context = context;
	/* One more than run: the list is written even where none could be started. */
	all->running = 1;
	start_all(all, options);
	*ret_collectors = all;
	one_ended(all);
	return 0;
}

void collectors_stop(struct collectors *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->one[i].process)
			process_kill(all->one[i].process);
}
