/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon_lock.h"

enum { ANSWER_BYTES_MAX = 16 << 20, TIMEOUT_MS = 10000 };

struct http_client {
	CURL *curl;
	char socket_path[512];
	long timeout_ms;
};

struct answer {
	char *text;
	size_t bytes;
};

int http_client_open(const char *run_dir, const char *store, struct http_client **ret_client)
{
	struct http_client *client = calloc(1, sizeof(*client));
	if (!client)
		return -ENOMEM;
	client->timeout_ms = TIMEOUT_MS;
	int result = daemon_lock_socket(run_dir, store, client->socket_path, sizeof(client->socket_path));
	if (result == 0 && curl_global_init(CURL_GLOBAL_NOTHING) == 0)
		client->curl = curl_easy_init();
	if (result == 0 && !client->curl)
		result = -ENOMEM;
	if (result < 0) {
		free(client);
		return result;
	}
	*ret_client = client;
	return 0;
}

void http_client_free(struct http_client *client)
{
	if (!client)
		return;
	curl_easy_cleanup(client->curl);
	free(client);
}

void http_client_wait_at_most(struct http_client *client, long ms)
{
	client->timeout_ms = ms;
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *context)
{
	struct answer *answer = context;
	size_t more = size * count;
	if (more > ANSWER_BYTES_MAX - answer->bytes)
		return 0;
	char *grown = realloc(answer->text, answer->bytes + more + 1);
	if (!grown)
		return 0;
	memcpy(grown + answer->bytes, bytes, more);
	answer->text = grown;
	answer->bytes += more;
	grown[answer->bytes] = 0;
	return more;
}

static int errno_of(CURLcode code)
{
	switch (code) {
	case CURLE_OK:
		return 0;
	case CURLE_COULDNT_CONNECT:
		return -ECONNREFUSED;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLE_WRITE_ERROR:
		return -EFBIG;
	default:
		return -EIO;
	}
}

static CURLcode perform(struct http_client *client, const char *path, const char *text, struct answer *answer)
{
	char url[1024];
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	snprintf(url, sizeof(url), "http://daemon%s", path);
	curl_easy_reset(client->curl);
	curl_easy_setopt(client->curl, CURLOPT_UNIX_SOCKET_PATH, client->socket_path);
	curl_easy_setopt(client->curl, CURLOPT_URL, url);
	curl_easy_setopt(client->curl, CURLOPT_PROXY, "");
	curl_easy_setopt(client->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, client->timeout_ms);
	curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, answer);
	curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, headers);
	if (text)
		curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, text);
	CURLcode code = curl_easy_perform(client->curl);
	curl_slist_free_all(headers);
	return code;
}

int http_client_ask(struct http_client *client, const char *path, const cJSON *body, long *ret_status,
		    cJSON **ret_answer)
{
	struct answer answer = {0};
	char *text = body ? cJSON_PrintUnformatted(body) : NULL;
	if (body && !text)
		return -ENOMEM;
	int result = errno_of(perform(client, path, text, &answer));
	cJSON *json = result == 0 && answer.text ? cJSON_Parse(answer.text) : NULL;
	if (result == 0 && !json)
		result = -EPROTO;
	if (result == 0) {
		curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, ret_status);
		*ret_answer = json;
	}
	free(answer.text);
	cJSON_free(text);
	return result;
}

const char *http_client_error(const cJSON *answer, long status)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(answer, "error"));
	if (text)
		return text;
	return status >= 500 ? "the daemon failed" : "the daemon refused";
}
