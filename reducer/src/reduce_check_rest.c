/* SPDX-License-Identifier: Apache-2.0 */
/* Flows, metadata, members, and events of kinds that stay as they are. */
#include "reduce_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

enum { FLOW_BITS = 1 << 16 };

static uint64_t mix(uint64_t seed, uint64_t value)
{
	uint64_t hash = (seed ^ value) * 0x9e3779b97f4a7c15u;
	hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
	return hash ^ hash >> 32;
}

/* --- flows: each one that is there must be one of the raw trace's, with all its ends. A flow is known by the
 * sum of what its ends are: track, kind, time and name. --- */

struct flow {
	uint64_t print;
	uint32_t ends, first; /* an event of it */
	uint32_t track;
	bool found;
};

static void add_flow_track(const struct check *c, const struct check_side *side, uint64_t seed, struct flow *flow, uint64_t *print)
{
	const struct reduce_columns *col = side->col;
	for (uint32_t i = 0; i < side->count; i++) {
		uint32_t e = side->order[i];
		uint64_t its = mix(seed + reduce_kind_of(col->bits[e]), (uint64_t)check_start(side, e));
		its = mix(its, check_said(c, side->of == c->raw, col->name[e]));
		uint64_t number = (uint64_t)col->length[e];
		if (print) {
			print[number] += its;
			continue;
		}
		if (flow[number].ends++ == 0) {
			flow[number].first = e;
			flow[number].track = side->track;
		}
		flow[number].print += its;
	}
}

static void add_flows(const struct check *c, bool raw, struct flow *flow, uint64_t *print)
{
	const struct reduce_tracks *tracks = raw ? &c->raw->tracks : &c->out->tracks;
	for (uint32_t t = 0; t < tracks->count; t++) {
		struct check_side side = check_side_of(c, raw, t, false);
		if (tracks->track[t].class == CLASS_FLOWS)
			add_flow_track(c, &side, tracks->track[t].hash, flow, print);
	}
}

static int by_print(const void *a, const void *b)
{
	const struct flow *x = a, *y = b;
	return (x->print > y->print) - (x->print < y->print);
}

/* The first of the sorted flows that is `print`, or the place where it would be. */
static size_t find_flow(const struct flow *flow, size_t count, uint64_t print)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (flow[middle].print < print)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Marks what of the sorted flows is one of the raw trace's. Few of those were written: most are told to be none of
 * them by one bit. */
static void find_flows(struct flow *flow, size_t count, const uint64_t *print, size_t n_print)
{
	uint64_t maybe[FLOW_BITS / 64] = {0};
	for (size_t i = 0; i < count; i++)
		maybe[flow[i].print % FLOW_BITS / 64] |= 1ull << flow[i].print % 64;
	for (size_t i = 0; i < n_print; i++) {
		if (!(maybe[print[i] % FLOW_BITS / 64] >> print[i] % 64 & 1))
			continue;
		size_t at = find_flow(flow, count, print[i]);
		while (at < count && flow[at].print == print[i] && flow[at].found)
			at++;
		if (at < count && flow[at].print == print[i])
			flow[at].found = true;
	}
}

static void say_flows(struct check *c, const struct flow *flow, size_t count)
{
	const struct reducer_reduce *out = c->out;
	for (size_t i = 0; i < count; i++) {
		if (flow[i].ends == 0)
			continue;
		int64_t at = out->col.start[flow[i].first] + c->shift_ps;
		uint32_t track = check_find_track(&c->raw->tracks, &out->tracks, flow[i].track);
		check_made(c, REDUCER_M4);
		if (!flow[i].found)
			check_failed(c, REDUCER_M4, track, &at, "the flow \"%s\" has lost or altered an end",
				     check_name_of(out, flow[i].first).text);
		else if (flow[i].ends < 2)
			check_failed(c, REDUCER_M4, track, &at, "the flow \"%s\" has one end only",
				     check_name_of(out, flow[i].first).text);
	}
}

int check_flows(struct check *c)
{
	size_t count = c->out->n_flows, n_print = c->raw->n_flows;
	if (!count)
		return 0;
	struct flow *flow = calloc(count, sizeof(*flow));
	uint64_t *print = calloc(n_print + 1, sizeof(*print));
	int result = flow && print ? 0 : -ENOMEM;
	if (result == 0) {
		add_flows(c, false, flow, NULL);
		add_flows(c, true, NULL, print);
		qsort(flow, count, sizeof(*flow), by_print);
		find_flows(flow, count, print, n_print);
		say_flows(c, flow, count);
	}
	free(flow);
	free(print);
	return result;
}

/* --- metadata, and what stays as it is --- */

struct rest {
	uint64_t kept, print; /* events that stay as they are, and the sum of what they are */
	uint64_t *meta;       /* by name of the raw trace; the last one: all others */
};

/* Whether the event stays as it is whatever the bins. */
static bool stays_as_it_is(uint32_t bits, bool has_window)
{
	enum reduce_kind kind = reduce_kind_of(bits);
	bool flow = kind == KIND_FLOW_BEGIN || kind == KIND_FLOW_STEP || kind == KIND_FLOW_END;
	bool lone = kind == KIND_BEGIN || (kind == KIND_END && !(bits & BIT_PAIR));
	if (kind == KIND_OTHER)
		return true;
	if (bits & BIT_SHUT)
		return false;
	if (bits & BIT_FAR)
		return !flow && !has_window;
	return lone || kind == KIND_TIMED || (kind == KIND_COUNTER && (bits & BIT_ALWAYS));
}

static void gather_rest(const struct check *c, bool raw, struct rest *rest)
{
	const struct reducer_reduce *r = raw ? c->raw : c->out;
	const struct reduce_columns *col = &r->col;
	for (uint32_t e = 0; e < col->count; e++) {
		uint32_t bits = col->bits[e], name = col->name[e];
		if (reduce_kind_of(bits) == KIND_META) {
			uint32_t its = name & REDUCE_NAME_UNKNOWN ? CHECK_NO_NAME : check_said(c, raw, name);
			if (!(bits & BIT_TWICE))
				rest->meta[its == CHECK_NO_NAME ? c->raw->names.count : its]++;
		} else if (stays_as_it_is(bits, r->options.has_window)) {
			bool timed = !(bits & BIT_FAR) && reduce_kind_of(bits) != KIND_OTHER;
			int64_t at = col->start[e] + (timed && !raw ? c->shift_ps : 0);
			rest->kept++;
			rest->print += mix(mix(reduce_kind_of(bits), (uint64_t)at), check_said(c, raw, name));
		}
	}
}

static void compare_meta(struct check *c, const uint64_t *raw, const uint64_t *out)
{
	bool may_say_more = c->raw->format == REDUCER_FORMAT_XPLANE; /* of events that are gone */
	for (uint32_t i = 0; i <= c->raw->names.count; i++) {
		if (!raw[i] && !out[i])
			continue;
		check_made(c, REDUCER_M4);
		if (raw[i] == out[i] || (may_say_more && out[i] > raw[i]))
			continue;
		struct reducer_text text = {NULL, 0};
		if (i < c->raw->names.count)
			text = reduce_name_text(&c->raw->names, i);
		check_failed(c, REDUCER_M4, REDUCE_NONE, NULL,
			     "%llu metadata events %.*s in the raw trace, %llu in the reduced one",
			     (unsigned long long)raw[i], (int)(text.bytes < 60 ? text.bytes : 60), text.data ? text.data : "",
			     (unsigned long long)out[i]);
	}
}

int check_rest(struct check *c)
{
	size_t names = (size_t)c->raw->names.count + 1;
	struct rest raw = {.meta = calloc(names, sizeof(*raw.meta))};
	struct rest out = {.meta = calloc(names, sizeof(*out.meta))};
	int result = raw.meta && out.meta ? 0 : -ENOMEM;
	if (result == 0) {
		gather_rest(c, true, &raw);
		gather_rest(c, false, &out);
		compare_meta(c, raw.meta, out.meta);
		check_made(c, REDUCER_M4);
		if (raw.kept != out.kept)
			check_failed(c, REDUCER_M4, REDUCE_NONE, NULL,
				     "%llu events of kinds that stay as they are in the raw trace, %llu in the reduced one",
				     (unsigned long long)raw.kept, (unsigned long long)out.kept);
		else if (raw.print != out.print)
			check_failed(c, REDUCER_M4, REDUCE_NONE, NULL, "an event of a kind that stays as it is was altered");
	}
	free(raw.meta);
	free(out.meta);
	return result;
}

/* --- members --- */

static bool same_text(struct reducer_text a, struct reducer_text b)
{
	return a.bytes == b.bytes && (!a.bytes || memcmp(a.data, b.data, a.bytes) == 0);
}

void check_members(struct check *c)
{
	const struct reducer_member *raw = c->raw->members.at, *out = c->out->members.at;
	size_t count = c->raw->members.count;
	check_made(c, REDUCER_M4);
	if (!c->raw->read.array_root != !c->out->read.array_root)
		check_failed(c, REDUCER_M4, REDUCE_NONE, NULL, "the root is an array in one of the traces only");
	if (count != c->out->members.count) {
		check_failed(c, REDUCER_M4, REDUCE_NONE, NULL, "%zu members in the raw trace, %zu in the reduced one", count,
			     c->out->members.count);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		check_made(c, REDUCER_M4);
		/* What is no valid JSON is written as what can be told of it. */
		if (!same_text(raw[i].key, out[i].key) ||
		    (!same_text(raw[i].value, out[i].value) && json_valid(raw[i].value)))
			check_failed(c, REDUCER_M4, REDUCE_NONE, NULL, "the member \"%.*s\" is missing or altered",
				     (int)(raw[i].key.bytes < 60 ? raw[i].key.bytes : 60), raw[i].key.data);
	}
}
