/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "files.h"
#include "manifest.h"

struct incidents_store {
	char *path;
	int fd, folder_fd, pending_fd;
	uint8_t id[INCIDENTS_ID_BYTES];
};

/* mkdir -p, 0700 for what is made. */
static int make_folders(const char *path)
{
	char part[INCIDENTS_PATH_MAX];
	size_t length = strlen(path);

	if (length == 0 || length >= sizeof(part))
		return -ENAMETOOLONG;
	memcpy(part, path, length + 1);
	for (size_t i = 1; i <= length; i++) {
		if (part[i] != '/' && part[i] != 0)
			continue;
		part[i] = 0;
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return -errno;
		if (i < length)
			part[i] = '/';
	}
	return 0;
}

static int read_id(struct incidents_store *store, bool create)
{
	char text[INCIDENTS_ID_TEXT + 1], *found = NULL;
	size_t bytes;
	int r = files_read(store->fd, "id", INCIDENTS_ID_TEXT, &found, &bytes);

	if (r == 0) {
		found[strcspn(found, "\n")] = 0;
		r = incidents_id_parse(found, store->id);
		free(found);
		return r < 0 ? -EBADMSG : 0;
	}
	if (r != -ENOENT || !create)
		return r == -ENOENT ? 0 : r;
	if (getrandom(store->id, sizeof(store->id), 0) != (ssize_t)sizeof(store->id))
		return -EIO;
	incidents_id_text(text, store->id);
	text[INCIDENTS_ID_TEXT - 1] = '\n';
	return files_replace(store->fd, "id", text, INCIDENTS_ID_TEXT);
}

static int open_part(struct incidents_store *store, const char *name, bool create, int *ret_fd)
{
	if (create)
		return files_folder(store->fd, name, ret_fd);
	*ret_fd = openat(store->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

int incidents_store_open(const char *path, bool create, struct incidents_store **ret_store)
{
	struct incidents_store *store = calloc(1, sizeof(*store));
	int r = store ? 0 : -ENOMEM;

	if (r < 0)
		return r;
	store->fd = store->folder_fd = store->pending_fd = -1;
	store->path = strdup(path);
	if (!store->path)
		r = -ENOMEM;
	if (r == 0 && create)
		r = make_folders(path);
	if (r == 0) {
		store->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = store->fd < 0 ? -errno : 0;
	}
	if (r == 0)
		r = open_part(store, "incidents", create, &store->folder_fd);
	if (r == 0)
		r = open_part(store, "pending", create, &store->pending_fd);
	if (r == 0)
		r = read_id(store, create);
	if (r == 0)
		*ret_store = store;
	else
		incidents_store_free(store);
	return r;
}

void incidents_store_free(struct incidents_store *store)
{
	if (!store)
		return;
	if (store->pending_fd >= 0)
		close(store->pending_fd);
	if (store->folder_fd >= 0)
		close(store->folder_fd);
	if (store->fd >= 0)
		close(store->fd);
	free(store->path);
	free(store);
}

const char *incidents_store_path(const struct incidents_store *store)
{
	return store->path;
}

const uint8_t *incidents_store_id(const struct incidents_store *store)
{
	return store->id;
}

int incidents_store_folder_fd(const struct incidents_store *store)
{
	return store->folder_fd;
}

int incidents_store_pending_fd(const struct incidents_store *store)
{
	return store->pending_fd;
}

void incidents_id_text(char ret_text[INCIDENTS_ID_TEXT], const uint8_t id[INCIDENTS_ID_BYTES])
{
	for (size_t i = 0; i < INCIDENTS_ID_BYTES; i++)
		snprintf(ret_text + 2 * i, 3, "%02x", id[i]);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

int incidents_id_parse(const char *text, uint8_t ret_id[INCIDENTS_ID_BYTES])
{
	uint8_t id[INCIDENTS_ID_BYTES];

	if (strlen(text) != INCIDENTS_ID_TEXT - 1)
		return -EINVAL;
	for (size_t i = 0; i < INCIDENTS_ID_BYTES; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		id[i] = (uint8_t)(high << 4 | low);
	}
	memcpy(ret_id, id, sizeof(id));
	return 0;
}

void incidents_folder_name(char ret_name[INCIDENTS_FOLDER_MAX], int64_t t0_ns, const char *trigger,
			   const uint8_t id[INCIDENTS_ID_BYTES])
{
	time_t seconds = (time_t)(t0_ns / 1000000000 - (t0_ns % 1000000000 < 0));
	char when[32], safe[TRIGGERS_NAME_MAX], text[INCIDENTS_ID_TEXT];
	size_t n = 0;
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm) == 0)
		memcpy(when, "00000000T000000Z", sizeof("00000000T000000Z"));
	for (; trigger[n] && n < sizeof(safe) - 1; n++) {
		char c = trigger[n];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		safe[n] = plain ? c : '_';
	}
	safe[n] = 0;
	incidents_id_text(text, id);
	snprintf(ret_name, INCIDENTS_FOLDER_MAX, "%s-%s-%.*s", when, n ? safe : "unknown", INCIDENTS_SHORT_ID,
		 text);
}

struct listing {
	struct incidents_store *store;
	struct incidents_entry *entries;
	size_t count, room;
};

static void read_entry(struct incidents_store *store, const char *folder, struct incidents_entry *ret_entry)
{
	char keep[INCIDENTS_FOLDER_MAX + 8];
	cJSON *json = NULL;

	memset(ret_entry, 0, sizeof(*ret_entry));
	snprintf(ret_entry->folder, sizeof(ret_entry->folder), "%s", folder);
	ret_entry->step = -1;
	if (incident_manifest_read(store, folder, &json) == 0) {
		incident_manifest_entry(json, ret_entry);
		ret_entry->readable = true;
		cJSON_Delete(json);
	}
	snprintf(keep, sizeof(keep), "%s/.keep", folder);
	ret_entry->kept = faccessat(store->folder_fd, keep, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int list_entry(void *context, int dirfd, const char *name)
{
	struct listing *listing = context;
	struct stat st;

	if (name[0] == '.' || strlen(name) >= INCIDENTS_FOLDER_MAX)
		return 0;
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	if (listing->count >= INCIDENTS_LIST_MAX)
		return -E2BIG;
	if (listing->count == listing->room) {
		size_t room = listing->room ? 2 * listing->room : 64;
		struct incidents_entry *more = realloc(listing->entries, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		listing->entries = more;
		listing->room = room;
	}
	read_entry(listing->store, name, &listing->entries[listing->count++]);
	return 0;
}

static int by_time(const void *left, const void *right)
{
	const struct incidents_entry *a = left, *b = right;

	if (a->t0_ns != b->t0_ns)
		return a->t0_ns < b->t0_ns ? -1 : 1;
	return strcmp(a->folder, b->folder);
}

int incidents_store_list(struct incidents_store *store, struct incidents_entry **ret_entries,
			 size_t *ret_count)
{
	struct listing listing = {.store = store};
	int r = files_each(store->folder_fd, ".", list_entry, &listing);

	if (r < 0) {
		free(listing.entries);
		return r;
	}
	if (listing.count > 1)
		qsort(listing.entries, listing.count, sizeof(*listing.entries), by_time);
	*ret_entries = listing.entries;
	*ret_count = listing.count;
	return 0;
}

int incidents_store_bytes(struct incidents_store *store, const char *folder, uint64_t *ret_bytes)
{
	return files_tree_bytes(store->folder_fd, folder, ret_bytes);
}

unsigned incidents_store_id_digits(const struct incidents_entry *entries, size_t count)
{
	unsigned digits = 4;

	for (size_t i = 0; i < count; i++) {
		for (size_t j = i + 1; j < count && digits < INCIDENTS_ID_TEXT - 1; j++) {
			while (digits < INCIDENTS_ID_TEXT - 1 && entries[i].id[0] &&
			       !strncmp(entries[i].id, entries[j].id, digits))
				digits++;
		}
	}
	return digits;
}

/* The folder's name if `what` is a path to one of ours. */
static const char *last_part(const char *what, char *room, size_t bytes)
{
	size_t length = strlen(what);
	const char *slash;

	while (length > 1 && what[length - 1] == '/')
		length--;
	if (length >= bytes)
		return what;
	memcpy(room, what, length);
	room[length] = 0;
	slash = strrchr(room, '/');
	return slash ? slash + 1 : room;
}

int incidents_store_find(struct incidents_store *store, const char *what, struct incidents_entry *ret_entry)
{
	char room[INCIDENTS_PATH_MAX];
	const char *name = last_part(what, room, sizeof(room));
	size_t length = strlen(name), count = 0, found = SIZE_MAX, fits = 0;
	struct incidents_entry *entries = NULL;
	int r = incidents_store_list(store, &entries, &count);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(entries[i].folder, name)) {
			found = i;
			fits = 1;
			break;
		}
		if (length >= 4 && entries[i].id[0] && !strncmp(entries[i].id, name, length)) {
			found = i;
			fits++;
		}
	}
	if (fits == 1)
		*ret_entry = entries[found];
	else if (fits > 1)
		r = -EEXIST;
	else
		r = length < 4 ? -EINVAL : -ENOENT;
	free(entries);
	return r;
}

/* Whether a folder is a whole incident of ours. */
static int check_ours(struct incidents_store *store, const char *folder)
{
	cJSON *json = NULL;
	int r;

	if (!folder[0] || folder[0] == '.' || strchr(folder, '/'))
		return -EPERM;
	r = incident_manifest_read(store, folder, &json);
	cJSON_Delete(json);
	if (r == -ENOENT && faccessat(store->folder_fd, folder, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return -ENOENT;
	return r < 0 ? -EPERM : 0;
}

int incidents_store_keep(struct incidents_store *store, const char *folder, bool keep)
{
	char path[INCIDENTS_FOLDER_MAX + 8];
	int r = check_ours(store, folder);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/.keep", folder);
	if (keep)
		return files_append(store->folder_fd, path, "", 0);
	return files_remove(store->folder_fd, path);
}

static bool listed(const cJSON *files, const char *path)
{
	const cJSON *file;

	cJSON_ArrayForEach(file, files)
	{
		const cJSON *name = cJSON_GetObjectItemCaseSensitive(file, "path");

		if (cJSON_IsString(name) && !strcmp(name->valuestring, path))
			return true;
	}
	return false;
}

struct foreign {
	const cJSON *files;
	char prefix[256];
	unsigned depth;
};

static int find_foreign(void *context, int dirfd, const char *name)
{
	static const char *const own[] = {"manifest.json", "alerts.ndjson", ".keep", "manifest.json.tmp"};
	struct foreign *foreign = context;
	size_t length = strlen(foreign->prefix);
	char path[512];
	struct stat st;
	int r;

	for (size_t i = 0; !length && i < sizeof(own) / sizeof(own[0]); i++) {
		if (!strcmp(name, own[i]))
			return 0;
	}
	snprintf(path, sizeof(path), "%s%s", foreign->prefix, name);
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return S_ISREG(st.st_mode) && listed(foreign->files, path) ? 0 : -EPERM;
	if (foreign->depth >= FILES_DEPTH_MAX || (size_t)snprintf(foreign->prefix, sizeof(foreign->prefix),
								  "%s/", path) >= sizeof(foreign->prefix))
		return -EPERM;
	foreign->depth++;
	r = files_each(dirfd, name, find_foreign, foreign);
	foreign->depth--;
	foreign->prefix[length] = 0;
	return r;
}

/* -EPERM if the folder holds a file that its manifest does not list. */
static int check_foreign(struct incidents_store *store, const char *folder)
{
	struct foreign foreign = {0};
	cJSON *json = NULL;
	int r = incident_manifest_read(store, folder, &json);

	if (r < 0)
		return r;
	foreign.files = cJSON_GetObjectItemCaseSensitive(json, "files");
	r = files_each(store->folder_fd, folder, find_foreign, &foreign);
	cJSON_Delete(json);
	return r;
}

int incidents_store_delete(struct incidents_store *store, const char *folder, bool even_kept)
{
	char keep[INCIDENTS_FOLDER_MAX + 8], gone[INCIDENTS_FOLDER_MAX + 8];
	int r = check_ours(store, folder);

	if (r == 0)
		r = check_foreign(store, folder);
	if (r < 0)
		return r;
	snprintf(keep, sizeof(keep), "%s/.keep", folder);
	if (!even_kept && faccessat(store->folder_fd, keep, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return -EBUSY;
	/* Hidden first, so that nobody sees half of it. */
	snprintf(gone, sizeof(gone), ".gone-%s", folder);
	if (renameat(store->folder_fd, folder, store->folder_fd, gone) < 0)
		return -errno;
	return files_remove(store->folder_fd, gone);
}

int incidents_store_retain(struct incidents_store *store, const struct incidents_retention *retention,
			   int64_t now_ns)
{
	struct incidents_entry *entries = NULL;
	uint64_t *bytes = NULL, total = 0;
	size_t count = 0, left;
	int removed = 0, r = incidents_store_list(store, &entries, &count);

	if (r < 0)
		return r;
	bytes = calloc(count + 1, sizeof(*bytes));
	if (!bytes)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (incidents_store_bytes(store, entries[i].folder, &bytes[i]) == 0)
			total += bytes[i];
	}
	left = count;
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct incidents_entry *entry = &entries[i];
		bool old = retention->age_ns && entry->t0_ns < now_ns - retention->age_ns;
		bool many = retention->count && left > retention->count;
		bool large = retention->bytes && total > retention->bytes;
		bool live = entry->ongoing && entry->resolved_ns == 0 && !old;

		if (!entry->readable || entry->kept || live || (!old && !many && !large))
			continue;
		if (incidents_store_delete(store, entry->folder, false) < 0)
			continue;
		left--;
		total -= bytes[i];
		removed++;
	}
	free(bytes);
	free(entries);
	return r < 0 ? r : removed;
}
