/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file: clocks, tracks, names, then every lane's begins, ends, instants and samples merged by time. All
 * of it is one packet sequence.
 *
 * At equal times on a lane: what ends there ends first, then what begins there begins, parents first; what
 * both begins and ends there ends before its next sibling begins.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "pftrace_inside.h"
#include "proto.h"

enum { FLUSH_BYTES = 256 << 10, NAMES_PACKET_BYTES = 256 << 10, CLEARED = 1, NEEDS_STATE = 2 };

struct writing {
	struct reducer_pftrace_writer *w;
	struct pf_lanes *lanes;
	struct buffer out, said;
	int64_t bias;     /* added to every time */
	int64_t first_ns; /* the earliest time written */
	bool unix_time;
	uint32_t sequence;
	uint64_t uuid;  /* of the first track; others follow */
	uint32_t *heap; /* lanes by the time of what is next on them */
	int64_t *due;   /* that time, by lane */
	uint32_t heaped;
};

static int flush(struct writing *o)
{
	const char *from = o->out.data;
	size_t left = o->out.bytes;
	if (o->out.failed)
		return o->out.failed;
	while (left > 0) {
		ssize_t wrote = write(o->w->fd, from, left);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return -errno;
		from += wrote;
		left -= (size_t)wrote;
	}
	o->w->stats.file_bytes += o->out.bytes;
	buffer_clear(&o->out);
	return 0;
}

static int flush_if_due(struct writing *o)
{
	return o->out.failed || o->out.bytes >= FLUSH_BYTES ? flush(o) : 0;
}

static int64_t time_of(const struct writing *o, int64_t ns, uint16_t ps)
{
	int64_t time;
	if (__builtin_add_overflow(pf_rounded(ns, ps), o->bias, &time))
		time = INT64_MAX;
	return time < 0 ? 0 : time;
}

/* --- before the events --- */

static void choose_times(struct writing *o)
{
	struct reducer_pftrace_writer *w = o->w;
	int64_t least = INT64_MAX, moved;
	for (uint32_t i = 0; i < w->records.count; i++) {
		const struct pf_record *record = &pf_records(w)[i];
		int64_t ns = pf_rounded(record->start_ns, record->start_ps);
		least = ns < least ? ns : least;
	}
	if (w->records.count == 0)
		least = 0;
	if (w->options.has_base)
		o->bias = w->options.base_unix_ns;
	o->unix_time = w->options.has_base;
	if (__builtin_add_overflow(least, o->bias, &moved) || moved < 0) {
		/* Perfetto has no time before 0. */
		o->bias = least == INT64_MIN ? INT64_MAX : -least;
		o->unix_time = false;
		for (uint32_t i = 0; i < w->records.count; i++)
			w->left_out[PF_LEFT_SHIFTED] += pf_records(w)[i].start_ns < 0;
	}
	o->first_ns = time_of(o, least, 0);
}

static void choose_ids(struct writing *o)
{
	struct reducer_pftrace_writer *w = o->w;
	uint64_t hash = w->salt;
	for (uint32_t i = 0; i < w->tracks.count; i++)
		hash = (hash ^ w->tracks.track[i].hash) * 0x100000001b3u;
	hash ^= (uint64_t)o->first_ns * 0x9e3779b97f4a7c15u;
	hash ^= hash >> 31;
	o->sequence = (uint32_t)(hash >> 8) | 1;
	/* 40 bits keep a track's number short in every event. */
	o->uuid = ((hash >> 40 & 0x3ffff) + 1) << 21;
}

static size_t begin_packet(struct writing *o)
{
	size_t packet = proto_begin(&o->out, PF_TRACE_PACKET);
	proto_add_u64(&o->out, PF_PACKET_SEQUENCE_ID, o->sequence);
	return packet;
}

static void write_clocks(struct writing *o)
{
	static const unsigned clocks[] = {PF_CLOCK_BOOTTIME, PF_CLOCK_REALTIME};
	size_t packet = begin_packet(o);
	proto_add_u64(&o->out, PF_PACKET_FIRST_ON_SEQUENCE, 1);
	proto_add_u64(&o->out, PF_PACKET_SEQUENCE_FLAGS, CLEARED);
	if (o->unix_time) {
		proto_add_u64(&o->out, PF_PACKET_TIMESTAMP, (uint64_t)o->first_ns);
		size_t snapshot = proto_begin(&o->out, PF_PACKET_CLOCK_SNAPSHOT);
		for (unsigned i = 0; i < 2; i++) {
			size_t clock = proto_begin(&o->out, PF_SNAPSHOT_CLOCKS);
			proto_add_u64(&o->out, PF_CLOCK_ID, clocks[i]);
			proto_add_u64(&o->out, PF_CLOCK_TIMESTAMP, (uint64_t)o->first_ns);
			proto_end(&o->out, clock);
		}
		proto_add_u64(&o->out, PF_SNAPSHOT_PRIMARY, PF_CLOCK_BOOTTIME);
		proto_end(&o->out, snapshot);
	}
	proto_end(&o->out, packet);
}

static void add_text(struct writing *o, uint32_t field, const char *text)
{
	proto_add_bytes(&o->out, field, (struct reducer_text){text, strlen(text)});
}

/* The name that people see: what metadata said, else what the events say, without the quotes of JSON. */
static void add_track_name(struct writing *o, const struct pf_track *track)
{
	struct reducer_text key = {track->key, track->key_bytes};
	bool json = track->kind == PF_TRACK_KIND_PROCESS || track->kind == PF_TRACK_KIND_THREAD;
	buffer_clear(&o->said);
	if (json && key.bytes >= 2 && *key.data == '"')
		json_unescape(&o->said, (struct reducer_text){key.data + 1, key.bytes - 2});
	else
		pf_add_clean(&o->said, key);
	if (o->said.failed)
		o->out.failed = o->said.failed;
	if (track->name)
		add_text(o, PF_TRACK_NAME, track->name);
	else if (o->said.bytes)
		proto_add_bytes(&o->out, PF_TRACK_NAME, (struct reducer_text){o->said.data, o->said.bytes});
	else
		add_text(o, PF_TRACK_NAME, json ? "(no name)" : "value");
}

static void add_process(struct writing *o, const struct pf_track *track)
{
	size_t process = proto_begin(&o->out, PF_TRACK_PROCESS);
	proto_add_u64(&o->out, PF_PROCESS_PID, (uint64_t)track->pid);
	if (track->name)
		add_text(o, PF_PROCESS_NAME, track->name);
	if (track->labels)
		add_text(o, PF_PROCESS_LABELS, track->labels);
	proto_end(&o->out, process);
}

static void add_thread(struct writing *o, const struct pf_track *track)
{
	size_t thread = proto_begin(&o->out, PF_TRACK_THREAD);
	proto_add_u64(&o->out, PF_THREAD_PID, (uint64_t)o->w->tracks.track[track->parent].pid);
	proto_add_u64(&o->out, PF_THREAD_TID, (uint64_t)track->tid);
	if (track->name)
		add_text(o, PF_THREAD_NAME, track->name);
	proto_end(&o->out, thread);
}

static uint64_t uuid_of_track(const struct writing *o, uint32_t track)
{
	return o->uuid + track;
}

static uint64_t uuid_of_lane(const struct writing *o, uint32_t lane)
{
	uint32_t track = o->lanes->lane[lane].track, first = o->w->tracks.track[track].first_lane;
	return lane == first ? uuid_of_track(o, track) : o->uuid + o->w->tracks.count + lane;
}

static void write_track(struct writing *o, uint32_t index)
{
	const struct pf_track *track = &o->w->tracks.track[index];
	size_t packet = begin_packet(o), descriptor = proto_begin(&o->out, PF_PACKET_TRACK_DESCRIPTOR);
	proto_add_u64(&o->out, PF_TRACK_UUID, uuid_of_track(o, index));
	if (track->parent != PF_NO_TRACK)
		proto_add_u64(&o->out, PF_TRACK_PARENT, uuid_of_track(o, track->parent));
	if (track->kind == PF_TRACK_KIND_PROCESS && track->pid != PF_NO_NUMBER)
		add_process(o, track);
	else if (track->kind == PF_TRACK_KIND_THREAD && track->tid != PF_NO_NUMBER)
		add_thread(o, track);
	else
		add_track_name(o, track);
	if (track->kind == PF_TRACK_KIND_COUNTER)
		proto_add_bytes(&o->out, PF_TRACK_COUNTER, (struct reducer_text){NULL, 0});
	if (track->ranks_children)
		proto_add_u64(&o->out, PF_TRACK_CHILD_ORDERING, PF_ORDERING_EXPLICIT);
	if (track->has_rank)
		proto_add_u64(&o->out, PF_TRACK_RANK, (uint64_t)(int64_t)track->rank);
	proto_end(&o->out, descriptor);
	proto_end(&o->out, packet);
}

/* A lane beside its track: below a thread or process, else with the same parent; all with the track's name.
 */
static void write_further_lane(struct writing *o, uint32_t lane)
{
	uint32_t index = o->lanes->lane[lane].track;
	const struct pf_track *track = &o->w->tracks.track[index];
	bool own_kind = track->pid != PF_NO_NUMBER || track->tid != PF_NO_NUMBER;
	uint32_t parent = own_kind ? index : track->parent;
	size_t packet = begin_packet(o), descriptor = proto_begin(&o->out, PF_PACKET_TRACK_DESCRIPTOR);
	proto_add_u64(&o->out, PF_TRACK_UUID, uuid_of_lane(o, lane));
	if (parent != PF_NO_TRACK)
		proto_add_u64(&o->out, PF_TRACK_PARENT, uuid_of_track(o, parent));
	add_track_name(o, track);
	if (track->has_rank && !own_kind)
		proto_add_u64(&o->out, PF_TRACK_RANK, (uint64_t)(int64_t)track->rank);
	proto_end(&o->out, descriptor);
	proto_end(&o->out, packet);
}

static int write_tracks(struct writing *o)
{
	int result = 0;
	for (uint32_t i = 0; i < o->w->tracks.count && result == 0; i++) {
		write_track(o, i);
		result = flush_if_due(o);
	}
	for (uint32_t i = 0; i < o->lanes->count && result == 0; i++) {
		if (o->w->tracks.track[o->lanes->lane[i].track].first_lane != i)
			write_further_lane(o, i);
		result = flush_if_due(o);
	}
	return result;
}

static int write_names(struct writing *o)
{
	static const uint32_t field_of_kind[PF_NAME_KINDS] = {
		[PF_NAME_CATEGORY] = PF_INTERNED_CATEGORIES,
		[PF_NAME_EVENT] = PF_INTERNED_NAMES,
		[PF_NAME_ANNOTATION] = PF_INTERNED_ANNOTATIONS,
	};
	const struct pf_names *names = &o->w->names;
	int result = 0;
	for (uint32_t i = 0; i < names->count && result == 0;) {
		size_t packet = begin_packet(o);
		proto_add_u64(&o->out, PF_PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
		size_t data = proto_begin(&o->out, PF_PACKET_INTERNED_DATA), from = o->out.bytes;
		for (; i < names->count && o->out.bytes - from < NAMES_PACKET_BYTES && !o->out.failed; i++) {
			const struct pf_name *name = &names->name[i];
			struct reducer_text text = {NULL, 0};
			if (name->bytes)
				text = (struct reducer_text){names->text.data + name->at, name->bytes};
			size_t entry = proto_begin(&o->out, field_of_kind[name->kind]);
			proto_add_u64(&o->out, PF_INTERNED_IID, name->iid);
			proto_add_bytes(&o->out, PF_INTERNED_TEXT, text);
			proto_end(&o->out, entry);
		}
		proto_end(&o->out, data);
		proto_end(&o->out, packet);
		result = flush_if_due(o);
	}
	return result;
}

/* --- events --- */

static size_t begin_event(struct writing *o, int64_t time, unsigned type, uint64_t uuid, size_t *ret_packet)
{
	*ret_packet = begin_packet(o);
	proto_add_u64(&o->out, PF_PACKET_TIMESTAMP, (uint64_t)time);
	proto_add_u64(&o->out, PF_PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
	size_t event = proto_begin(&o->out, PF_PACKET_TRACK_EVENT);
	proto_add_u64(&o->out, PF_EVENT_TYPE, type);
	proto_add_u64(&o->out, PF_EVENT_TRACK_UUID, uuid);
	return event;
}

static void end_event(struct writing *o, size_t packet, size_t event)
{
	proto_end(&o->out, event);
	proto_end(&o->out, packet);
}

static void add_flows(struct writing *o, uint32_t order)
{
	const struct pf_flow *flow = o->w->flows.item;
	uint32_t low = 0, high = o->w->flows.count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (flow[middle].order < order)
			low = middle + 1;
		else
			high = middle;
	}
	for (uint32_t i = low; i < o->w->flows.count && flow[i].order == order; i++)
		proto_add_fixed64(&o->out, flow[i].ends ? PF_EVENT_FLOW_ENDS : PF_EVENT_FLOW_IDS, flow[i].id);
}

/* What an end says: args of its own. */
static int add_end(struct writing *o, uint32_t order)
{
	const struct pf_end *end = o->w->ends.item;
	uint32_t low = 0, high = o->w->ends.count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (end[middle].order < order)
			low = middle + 1;
		else
			high = middle;
	}
	return spool_read(o->w->spool, end[low].place, end[low].bytes, &o->out);
}

static int write_begin(struct writing *o, struct pf_lane *lane, uint32_t index, int64_t time, uint64_t uuid)
{
	static const uint8_t type_of_kind[] = {
		[PF_SPAN] = PF_TYPE_BEGIN,
		[PF_OPEN] = PF_TYPE_BEGIN,
		[PF_INSTANT] = PF_TYPE_INSTANT,
		[PF_COUNTER] = PF_TYPE_COUNTER,
	};
	const struct pf_record *record = &pf_records(o->w)[index];
	size_t packet, event = begin_event(o, time, type_of_kind[record->kind], uuid, &packet);
	int result = spool_read(o->w->spool, record->place, record->bytes, &o->out);
	if (record->flags & PF_HAS_FLOWS)
		add_flows(o, record->order);
	end_event(o, packet, event);
	return result < 0 ? result : pf_lane_push(lane, record, index);
}

static int write_end(struct writing *o, const struct pf_open *open, int64_t time, uint64_t uuid)
{
	size_t packet, event = begin_event(o, time, PF_TYPE_END, uuid, &packet);
	int result = pf_records(o->w)[open->record].flags & PF_HAS_END ? add_end(o, open->order) : 0;
	end_event(o, packet, event);
	return result;
}

/* Whether the innermost open span of the lane ends before anything else begins on it. */
static bool end_is_next(const struct writing *o, const struct pf_lane *lane)
{
	return lane->depth && (lane->next == lane->end ||
			       pf_ends_before(&lane->open[lane->depth - 1], &pf_records(o->w)[lane->next]));
}

/* When the lane's next packet is due; false = none. What never ends has no end to write. */
static bool due(const struct writing *o, struct pf_lane *lane, int64_t *ret_time)
{
	while (lane->depth && lane->open[lane->depth - 1].never_ends && lane->next == lane->end)
		lane->depth--;
	if (end_is_next(o, lane)) {
		const struct pf_open *open = &lane->open[lane->depth - 1];
		*ret_time = time_of(o, open->end_ns, open->end_ps);
		return true;
	}
	if (lane->next == lane->end)
		return false;
	const struct pf_record *record = &pf_records(o->w)[lane->next];
	*ret_time = time_of(o, record->start_ns, record->start_ps);
	return true;
}

static int write_next(struct writing *o, uint32_t index)
{
	struct pf_lane *lane = &o->lanes->lane[index];
	uint64_t uuid = uuid_of_lane(o, index);
	if (end_is_next(o, lane))
		return write_end(o, &lane->open[--lane->depth], o->due[index], uuid);
	return write_begin(o, lane, lane->next++, o->due[index], uuid);
}

/* --- merging --- */

static bool before(const struct writing *o, uint32_t a, uint32_t b)
{
	return o->due[a] != o->due[b] ? o->due[a] < o->due[b] : a < b;
}

static void sift_down(struct writing *o, uint32_t at)
{
	uint32_t lane = o->heap[at];
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= o->heaped)
			break;
		if (child + 1 < o->heaped && before(o, o->heap[child + 1], o->heap[child]))
			child++;
		if (!before(o, o->heap[child], lane))
			break;
		o->heap[at] = o->heap[child];
		at = child;
	}
	o->heap[at] = lane;
}

static int write_events(struct writing *o)
{
	int result = 0;
	for (uint32_t i = 0; i < o->lanes->count; i++)
		if (due(o, &o->lanes->lane[i], &o->due[i]))
			o->heap[o->heaped++] = i;
	for (uint32_t at = o->heaped / 2; at-- > 0;)
		sift_down(o, at);
	while (o->heaped && result == 0) {
		uint32_t lane = o->heap[0];
		result = write_next(o, lane);
		if (!due(o, &o->lanes->lane[lane], &o->due[lane]))
			o->heap[0] = o->heap[--o->heaped];
		if (o->heaped)
			sift_down(o, 0);
		if (result == 0)
			result = flush_if_due(o);
	}
	return result;
}

/* What the trace says of itself, at its begin. */
static void write_instant(struct writing *o, uint32_t track, const struct buffer *content, const char *name)
{
	size_t packet, event = begin_event(o, o->first_ns, PF_TYPE_INSTANT, uuid_of_track(o, track), &packet);
	if (name)
		add_text(o, PF_EVENT_NAME, name);
	buffer_add(&o->out, content->data, content->bytes);
	end_event(o, packet, event);
}

static int write_all(struct writing *o, uint32_t own_track)
{
	write_clocks(o);
	int result = write_tracks(o);
	if (result == 0)
		result = write_names(o);
	if (o->w->members.bytes)
		write_instant(o, own_track, &o->w->members, "trace members");
	if (o->w->reduced.bytes)
		write_instant(o, own_track, &o->w->reduced, NULL);
	if (result == 0)
		result = write_events(o);
	return result < 0 ? result : flush(o);
}

int pf_write(struct reducer_pftrace_writer *w, struct pf_lanes *lanes)
{
	struct writing o = {.w = w, .lanes = lanes};
	const struct reducer_text none = {NULL, 0}, name = {"driverec", 8};
	uint32_t own_track = PF_NO_TRACK;
	int result = 0;
	if (w->members.bytes || w->reduced.bytes)
		own_track = pf_track_named(&w->tracks, PF_TRACK_KIND_ROOT, none, name, &result);
	if (result < 0)
		return result;
	if (own_track == PF_NO_TRACK)
		w->members.bytes = w->reduced.bytes = 0;
	o.heap = malloc((lanes->count + 1) * sizeof(*o.heap));
	o.due = malloc((lanes->count + 1) * sizeof(*o.due));
	if (o.heap && o.due) {
		choose_times(&o);
		choose_ids(&o);
		result = write_all(&o, own_track);
	} else {
		result = -ENOMEM;
	}
	free(o.heap);
	free(o.due);
	buffer_free(&o.out);
	buffer_free(&o.said);
	return result;
}
