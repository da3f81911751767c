/* SPDX-License-Identifier: Apache-2.0 */
/* Takes events: what each says is encoded and put aside, where it belongs is kept as a record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <reducer/marks.h>

#include "decimal.h"
#include "json.h"
#include "pftrace_inside.h"
#include "proto.h"
#include "text.h"

enum { MEMBER_BYTES_MAX = 1 << 20, MEMBERS_BYTES_MAX = 16 << 20 };

static struct reducer_text literal(const char *text)
{
	return (struct reducer_text){text, strlen(text)};
}

static struct reducer_text text_of(const struct buffer *buffer)
{
	return (struct reducer_text){buffer->data, buffer->bytes};
}

/* What the further members of an event say about its place. */
struct further {
	char phase; /* of events whose kind has no name here */
	bool binds_enclosing, flow_in, flow_out, global_id;
	struct reducer_text id, bind_id;
};

static struct further read_further(struct reducer_text extra)
{
	struct further further = {0};
	struct reducer_text key, value;
	while (json_next_member(&extra, &key, &value)) {
		if (text_is(key, "\"ph\"") && value.bytes == 3)
			further.phase = value.data[1];
		else if (text_is(key, "\"bp\""))
			further.binds_enclosing = text_is(value, "\"e\"");
		else if (text_is(key, "\"id\""))
			further.id = value;
		else if (text_is(key, "\"id2\"")) {
			further.id = value;
			further.global_id = memmem(value.data, value.bytes, "global", 6) != NULL;
		} else if (text_is(key, "\"bind_id\""))
			further.bind_id = value;
		else if (text_is(key, "\"flow_in\""))
			further.flow_in = text_is(value, "true");
		else if (text_is(key, "\"flow_out\""))
			further.flow_out = text_is(value, "true");
	}
	return further;
}

static bool says_place(struct reducer_text key)
{
	static const char *const keys[] = {"ph", "s", "bp", "id", "id2", "bind_id", "flow_in", "flow_out"};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (text_is(key, keys[i]))
			return true;
	return false;
}

static bool says_place_but_id(struct reducer_text key)
{
	return !text_is(key, "id") && !text_is(key, "id2") && says_place(key);
}

/* --- contents --- */

/* Texts of an event: those of a trace are UTF-8, those of a ring are what somebody wrote. */
static struct reducer_text clean(struct reducer_pftrace_writer *w, struct reducer_text text)
{
	buffer_clear(&w->clean);
	pf_add_clean(&w->clean, text);
	return text_of(&w->clean);
}

static void add_name(struct reducer_pftrace_writer *w, struct reducer_text name)
{
	name = clean(w, name);
	uint32_t iid = pf_names_iid(&w->names, PF_NAME_EVENT, name);
	if (iid)
		proto_add_u64(&w->content, PF_EVENT_NAME_IID, iid);
	else
		proto_add_bytes(&w->content, PF_EVENT_NAME, name);
}

static void add_category(struct reducer_pftrace_writer *w, struct reducer_text category)
{
	if (!category.bytes)
		return;
	category = clean(w, category);
	uint32_t iid = pf_names_iid(&w->names, PF_NAME_CATEGORY, category);
	if (iid)
		proto_add_u64(&w->content, PF_EVENT_CATEGORY_IIDS, iid);
	else
		proto_add_bytes(&w->content, PF_EVENT_CATEGORIES, category);
}

static void add_number(struct reducer_pftrace_writer *w, const char *key, uint64_t number)
{
	buffer_clear(&w->scratch);
	buffer_add_u64(&w->scratch, number);
	pf_add_annotation(&w->content, &w->names, literal(key), text_of(&w->scratch));
}

static void add_args(struct reducer_pftrace_writer *w, const struct reducer_event *event)
{
	if (!event->args.bytes)
		return;
	if (w->options.strip_args || event->args_flag != DREC_FLAG_ARGS_JSON)
		w->left_out[PF_LEFT_ARGS]++;
	else
		pf_add_args(&w->content, &w->names, event->args);
}

/* Name, category, args and what else the event says; its id where that says nothing of its place. */
static void make_content(struct reducer_pftrace_writer *w, const struct reducer_event *event,
			 bool id_is_place)
{
	buffer_clear(&w->content);
	if (event->name.bytes || event->name_raw.bytes)
		add_name(w, event->name);
	add_category(w, event->category);
	add_args(w, event);
	if (event->has_id && !id_is_place)
		add_number(w, "id", event->id);
	if (event->extra.bytes)
		pf_add_members(&w->content, &w->names, event->extra,
			       id_is_place ? says_place : says_place_but_id);
}

static int put_content(struct reducer_pftrace_writer *w, uint64_t *ret_place, uint32_t *ret_bytes)
{
	if (w->content.failed || w->scratch.failed || w->clean.failed)
		return -ENOMEM;
	if (w->content.bytes > UINT32_MAX / 2)
		return -E2BIG;
	*ret_bytes = (uint32_t)w->content.bytes;
	return spool_add(w->spool, w->content.data, w->content.bytes, ret_place);
}

/* --- places --- */

static int left(struct reducer_pftrace_writer *w, enum pf_left_out what)
{
	w->left_out[what]++;
	return 0;
}

static uint32_t thread_of(struct reducer_pftrace_writer *w, const struct reducer_event *event, int *failed)
{
	return pf_track_thread(&w->tracks, event->group, event->track, failed);
}

static struct pf_time end_of(const struct reducer_event *event)
{
	unsigned ps = event->start_ps + (unsigned)event->duration_ps;
	struct pf_time end = {.ps = (uint16_t)(ps % 1000)};
	/* INT64_MAX is for what never ends. */
	if (__builtin_add_overflow(event->start_ns, event->duration_ns, &end.ns) || end.ns > INT64_MAX - 2)
		return (struct pf_time){INT64_MAX - 1, 0};
	end.ns += ps >= 1000;
	return end;
}

/* Adds a record of the content that was made. */
static int add_record(struct reducer_pftrace_writer *w, const struct reducer_event *event, uint32_t track,
		      enum pf_record_kind kind)
{
	struct pf_time end = {event->start_ns, event->start_ps};
	struct pf_record *record = pf_list_add(&w->records, sizeof(*record));
	if (!record)
		return -ENOMEM;
	if (kind == PF_SPAN && event->duration_ns >= 0)
		end = end_of(event);
	*record = (struct pf_record){
		.start_ns = event->start_ns,
		.start_ps = event->start_ps,
		.end_ns = end.ns,
		.end_ps = end.ps,
		.order = w->order++,
		.track = track,
		.kind = (uint8_t)kind,
	};
	w->left_out[PF_LEFT_PS] += event->start_ps || end.ps;
	w->stats.events++;
	return put_content(w, &record->place, &record->bytes);
}

static int put_plain(struct reducer_pftrace_writer *w, const struct reducer_event *event,
		     enum pf_record_kind kind)
{
	int failed = 0;
	uint32_t track = thread_of(w, event, &failed);
	if (track == PF_NO_TRACK)
		return failed ? failed : left(w, PF_LEFT_TRACKS);
	make_content(w, event, false);
	return add_record(w, event, track, kind);
}

static uint64_t hash_number(uint64_t hash, uint64_t number)
{
	return pf_hash(hash, (struct reducer_text){(const char *)&number, sizeof(number)});
}

static uint64_t hash_id(const struct reducer_event *event, const struct further *further, uint64_t hash)
{
	if (event->has_id)
		return hash_number(hash, event->id);
	return pf_hash(hash, further->id);
}

/* A span may say of itself which flows go in and out. */
static int put_span(struct reducer_pftrace_writer *w, const struct reducer_event *event,
		    const struct further *further)
{
	uint32_t before = w->records.count;
	if (!event->has_duration || event->duration_ns < 0)
		left(w, PF_LEFT_NO_LENGTH);
	int result = put_plain(w, event, PF_SPAN);
	if (result < 0 || w->records.count == before || !further->bind_id.bytes ||
	    (!further->flow_in && !further->flow_out))
		return result;
	struct pf_record *record = &pf_records(w)[before];
	struct pf_flow *flow = pf_list_add(&w->flows, sizeof(*flow));
	if (!flow)
		return -ENOMEM;
	*flow = (struct pf_flow){.id = pf_hash(0xcbf29ce484222325u, further->bind_id),
				 .ns = record->start_ns,
				 .ps = record->start_ps,
				 .track = record->track,
				 .order = record->order,
				 .ends = !further->flow_out};
	record->flags |= PF_HAS_FLOWS;
	w->stats.events++;
	return 0;
}

static int put_flow(struct reducer_pftrace_writer *w, const struct reducer_event *event,
		    const struct further *further)
{
	int failed = 0;
	uint32_t track = thread_of(w, event, &failed);
	if (track == PF_NO_TRACK)
		return failed ? failed : left(w, PF_LEFT_TRACKS);
	struct pf_flow *flow = pf_list_add(&w->flows, sizeof(*flow));
	if (!flow)
		return -ENOMEM;
	uint64_t hash = pf_hash(pf_hash(0xcbf29ce484222325u, event->category), event->name);
	*flow = (struct pf_flow){
		.id = hash_id(event, further, hash),
		.ns = event->start_ns,
		.ps = event->start_ps,
		.track = track,
		.order = UINT32_MAX,
		.ends = event->kind == DREC_FLOW_END,
		.next = event->kind == DREC_FLOW_END && !further->binds_enclosing,
	};
	w->stats.events++;
	return 0;
}

static int put_half(struct reducer_pftrace_writer *w, const struct reducer_event *event,
		    const struct further *further, bool async)
{
	int failed = 0;
	uint32_t track =
		async ? pf_track_named(&w->tracks, PF_TRACK_KIND_ASYNC, event->group, event->name, &failed)
		      : thread_of(w, event, &failed);
	if (track == PF_NO_TRACK)
		return failed ? failed : left(w, PF_LEFT_TRACKS);
	struct pf_half *half = pf_list_add(&w->halves, sizeof(*half));
	if (!half)
		return -ENOMEM;
	bool end = event->kind == DREC_END || event->kind == DREC_ASYNC_END;
	*half = (struct pf_half){.key = track,
				 .ns = event->start_ns,
				 .ps = event->start_ps,
				 .order = w->order++,
				 .track = track,
				 .kind = event->kind,
				 .async = async};
	if (event->name.bytes)
		half->name = pf_hash(0xcbf29ce484222325u, event->name);
	if (async) {
		uint64_t hash = pf_hash(0xcbf29ce484222325u, event->category);
		half->key = hash_id(event, further, further->global_id ? hash : pf_hash(hash, event->group));
	}
	w->left_out[PF_LEFT_PS] += event->start_ps != 0;
	w->stats.events++;
	make_content(w, event, async);
	if (end) { /* its name and category are those of the begin */
		buffer_clear(&w->content);
		add_args(w, event);
	}
	return put_content(w, &half->place, &half->bytes);
}

static int put_sample(struct reducer_pftrace_writer *w, const struct reducer_event *event,
		      const struct further *further, struct reducer_text key, struct pf_number number)
{
	int failed = 0;
	buffer_clear(&w->scratch);
	buffer_add_text(&w->scratch, event->name);
	if (event->has_id || further->id.bytes) {
		buffer_add_literal(&w->scratch, " id: ");
		if (event->has_id)
			buffer_add_u64(&w->scratch, event->id);
		else
			json_unescape(&w->scratch, further->id);
	}
	if (key.bytes) {
		buffer_add_byte(&w->scratch, ' ');
		json_unescape(&w->scratch, key);
	}
	if (w->scratch.failed)
		return w->scratch.failed;
	uint32_t track = pf_track_named(&w->tracks, PF_TRACK_KIND_COUNTER, event->group, text_of(&w->scratch),
					&failed);
	if (track == PF_NO_TRACK)
		return failed ? failed : left(w, PF_LEFT_TRACKS);
	buffer_clear(&w->content);
	if (number.kind == PF_NUMBER_INT)
		proto_add_u64(&w->content, PF_EVENT_COUNTER, (uint64_t)number.integer);
	else
		proto_add_double(&w->content, PF_EVENT_COUNTER_DOUBLE,
				 number.kind == PF_NUMBER_UINT ? (double)(uint64_t)number.integer
							       : number.real);
	return add_record(w, event, track, PF_COUNTER);
}

/* Each number among the args is a track of its own. */
static int put_counter(struct reducer_pftrace_writer *w, const struct reducer_event *event,
		       const struct further *further)
{
	struct reducer_text rest = event->args, key, value;
	struct pf_number own = {.kind = PF_NUMBER_DOUBLE, .real = event->value};
	uint64_t events = w->stats.events;
	int result = 0;
	if (!rest.bytes) {
		result = put_sample(w, event, further, (struct reducer_text){NULL, 0}, own);
	} else if (event->args_flag == DREC_FLAG_ARGS_JSON && rest.bytes >= 2 && *rest.data == '{') {
		rest = (struct reducer_text){rest.data + 1, rest.bytes - 2};
		while (result == 0 && json_next_member(&rest, &key, &value)) {
			struct pf_number number = pf_number_of(value);
			key = (struct reducer_text){key.data + 1, key.bytes - 2};
			result = number.kind == PF_NUMBER_NONE ? left(w, PF_LEFT_COUNTER)
							       : put_sample(w, event, further, key, number);
		}
	} else {
		left(w, PF_LEFT_COUNTER);
	}
	/* However many tracks it is on, it is one event. */
	if (w->stats.events > events)
		w->stats.events = events + 1;
	return result;
}

/* Metadata that Perfetto has no field for: an instant at the trace's begin, once that is known, on a track of
 * its process. */
static int keep_meta(struct reducer_pftrace_writer *w, const struct reducer_event *event)
{
	int failed = 0;
	uint32_t track =
		pf_track_named(&w->tracks, PF_TRACK_KIND_ASYNC, event->group, literal("metadata"), &failed);
	if (track == PF_NO_TRACK)
		return failed ? failed : left(w, PF_LEFT_TRACKS);
	struct pf_record *record = pf_list_add(&w->metas, sizeof(*record));
	if (!record)
		return -ENOMEM;
	record->order = w->order++;
	record->track = track;
	record->kind = PF_INSTANT;
	make_content(w, event, false);
	if (event->track.bytes)
		pf_add_annotation(&w->content, &w->names, literal("tid"), event->track);
	w->stats.events++;
	return put_content(w, &record->place, &record->bytes);
}

static int put_meta(struct reducer_pftrace_writer *w, const struct reducer_event *event)
{
	int result = pf_tracks_meta(&w->tracks, event);
	if (result < 0)
		return result;
	if (result == 0 && !text_is(event->name, REDUCER_MARK_REDUCED))
		return keep_meta(w, event);
	w->stats.events++;
	if (result)
		return 0;
	make_content(w, event, false);
	buffer_clear(&w->reduced);
	buffer_add(&w->reduced, w->content.data, w->content.bytes);
	return w->reduced.failed;
}

/* Puts metadata where the trace begins. */
static int place_metas(struct reducer_pftrace_writer *w)
{
	struct pf_time first = {INT64_MAX, 0};
	for (uint32_t i = 0; i < w->records.count; i++) {
		const struct pf_record *record = &pf_records(w)[i];
		if (pf_compare(record->start_ns, record->start_ps, first.ns, first.ps) < 0)
			first = (struct pf_time){record->start_ns, record->start_ps};
	}
	if (w->records.count == 0)
		first.ns = 0;
	for (uint32_t i = 0; i < w->metas.count; i++) {
		struct pf_record *record = pf_list_add(&w->records, sizeof(*record));
		if (!record)
			return -ENOMEM;
		*record = ((struct pf_record *)w->metas.item)[i];
		record->start_ns = record->end_ns = first.ns;
		record->start_ps = record->end_ps = first.ps;
	}
	return 0;
}

/* --- marks and losses: named as the Chrome writer names them --- */

static void make_mark(struct reducer_pftrace_writer *w, const struct reducer_event *event)
{
	bool step = event->mark == DREC_MARK_STEP_BEGIN || event->mark == DREC_MARK_STEP_END;
	bool phase = event->mark == DREC_MARK_PHASE_BEGIN || event->mark == DREC_MARK_PHASE_END;
	buffer_clear(&w->content);
	buffer_clear(&w->scratch);
	if (step) {
		buffer_add_literal(&w->scratch, "step ");
		buffer_add_u64(&w->scratch, event->id);
	} else if (phase) {
		buffer_add_literal(&w->scratch, "phase ");
		buffer_add_text(&w->scratch, event->name);
	} else {
		buffer_add_literal(&w->scratch, drec_mark_name(event->mark));
	}
	if (event->mark == DREC_MARK_STEP_BEGIN || event->mark == DREC_MARK_PHASE_BEGIN)
		buffer_add_literal(&w->scratch, " begins");
	add_name(w, text_of(&w->scratch));
	add_category(w, literal("driverec.mark"));
	add_args(w, event);
	if (!event->args.bytes && event->name.bytes) {
		buffer_clear(&w->scratch);
		json_quote(&w->scratch, event->name);
		pf_add_annotation(&w->content, &w->names, literal("phase"), text_of(&w->scratch));
	}
}

static void make_loss(struct reducer_pftrace_writer *w, const struct reducer_event *event)
{
	buffer_clear(&w->content);
	buffer_clear(&w->scratch);
	buffer_add_literal(&w->scratch, "lost: ");
	buffer_add_literal(&w->scratch, drec_loss_name(event->mark));
	add_name(w, text_of(&w->scratch));
	add_category(w, literal("driverec.loss"));
	add_number(w, "events", event->count);
	buffer_clear(&w->scratch);
	buffer_add_us(&w->scratch, event->duration_ns, event->duration_ps, 0);
	pf_add_annotation(&w->content, &w->names, literal("for_us"), text_of(&w->scratch));
}

static int put_mark(struct reducer_pftrace_writer *w, const struct reducer_event *event)
{
	int failed = 0;
	uint32_t track = thread_of(w, event, &failed);
	if (track == PF_NO_TRACK)
		return failed ? failed : left(w, PF_LEFT_TRACKS);
	if (event->kind == DREC_LOSS)
		make_loss(w, event);
	else
		make_mark(w, event);
	bool span = event->kind == DREC_MARK &&
		    (event->mark == DREC_MARK_STEP_END || event->mark == DREC_MARK_PHASE_END);
	return add_record(w, event, track, span ? PF_SPAN : PF_INSTANT);
}

/* Kinds that the reader leaves uninterpreted, but which have a place here. */
static int put_other(struct reducer_pftrace_writer *w, const struct reducer_event *event,
		     const struct further *further)
{
	if (further->phase == 'I' || further->phase == 'R')
		return put_plain(w, event, PF_INSTANT);
	if (further->phase == 'X')
		return put_span(w, event, further);
	return left(w, PF_LEFT_OTHER);
}

static int put(struct reducer_pftrace_writer *w, const struct reducer_event *event)
{
	struct further further = {0};
	if (event->kind == DREC_META)
		return put_meta(w, event);
	/* INT64_MAX is for what never ends. */
	if ((!event->has_time && event->kind != DREC_LOSS) || event->start_ns > INT64_MAX - 2)
		return left(w, PF_LEFT_NO_TIME);
	if (event->extra.bytes)
		further = read_further(event->extra);
	switch (event->kind) {
	case DREC_SPAN:
		return put_span(w, event, &further);
	case DREC_INSTANT:
		return put_plain(w, event, PF_INSTANT);
	case DREC_COUNTER:
		return put_counter(w, event, &further);
	case DREC_FLOW_BEGIN:
	case DREC_FLOW_STEP:
	case DREC_FLOW_END:
		return put_flow(w, event, &further);
	case DREC_BEGIN:
	case DREC_END:
		return put_half(w, event, &further, false);
	case DREC_ASYNC_BEGIN:
	case DREC_ASYNC_INSTANT:
	case DREC_ASYNC_END:
		return put_half(w, event, &further, true);
	case DREC_MARK:
	case DREC_LOSS:
		return put_mark(w, event);
	default:
		return put_other(w, event, &further);
	}
}

/* --- the writer --- */

int reducer_pftrace_writer_new(int fd, const struct reducer_writer_options *options, const char *spool_dir,
			       struct reducer_pftrace_writer **ret_writer)
{
	struct reducer_pftrace_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->fd = fd;
	w->salt = 0xcbf29ce484222325u;
	if (options)
		w->options = *options;
	int result = spool_new(spool_dir, &w->spool);
	if (result < 0) {
		free(w);
		return result;
	}
	*ret_writer = w;
	return 0;
}

int reducer_pftrace_writer_event(struct reducer_pftrace_writer *w, const struct reducer_event *event)
{
	if (!w->failed && w->order == UINT32_MAX)
		w->failed = -EOVERFLOW;
	if (!w->failed)
		w->failed = put(w, event);
	return w->failed;
}

int reducer_pftrace_writer_member(struct reducer_pftrace_writer *w, const struct reducer_member *member)
{
	if (w->failed)
		return w->failed;
	if (text_is(member->key, "baseTimeNanoseconds") && !w->options.has_base) {
		struct reducer_text number = member->value;
		if (number.bytes >= 2 && *number.data == '"')
			number = (struct reducer_text){number.data + 1, number.bytes - 2};
		w->options.has_base = decimal_i64(number, &w->options.base_unix_ns);
	}
	if (member->value.bytes > MEMBER_BYTES_MAX || w->members.bytes > MEMBERS_BYTES_MAX)
		return left(w, PF_LEFT_MEMBER);
	w->salt = pf_hash(pf_hash(w->salt, member->key), member->value);
	pf_add_annotation(&w->members, &w->names, member->key, member->value);
	return w->failed = w->members.failed;
}

int reducer_pftrace_writer_finish(struct reducer_pftrace_writer *w)
{
	struct pf_lanes lanes = {0};
	if (!w->failed)
		w->failed = pf_pair(w);
	if (!w->failed)
		w->failed = place_metas(w);
	if (!w->failed)
		w->failed = pf_lay_out(w, &lanes);
	if (!w->failed)
		w->failed = pf_write(w, &lanes);
	pf_lanes_free(&lanes);
	return w->failed;
}

const struct reducer_writer_stats *reducer_pftrace_writer_stats(const struct reducer_pftrace_writer *writer)
{
	return &writer->stats;
}

static const char *const left_out_name[PF_LEFT_COUNT] = {
	[PF_LEFT_ARGS] = "args of events",
	[PF_LEFT_PS] = "picoseconds of events",
	[PF_LEFT_NO_TIME] = "events without a time",
	[PF_LEFT_NO_LENGTH] = "lengths of spans that give none",
	[PF_LEFT_END] = "ends without a begin",
	[PF_LEFT_FLOW_NOWHERE] = "flow ends outside of any span",
	[PF_LEFT_FLOW_ORPHAN] = "flow ends without another one",
	[PF_LEFT_OTHER] = "events of other kinds",
	[PF_LEFT_COUNTER] = "counter values that are no numbers",
	[PF_LEFT_MEMBER] = "top-level members over 1 MiB",
	[PF_LEFT_TRACKS] = "events on too many tracks",
	[PF_LEFT_LANES] = "spans that overlap over 1,024 others",
	[PF_LEFT_SHIFTED] = "times before 0 (all are moved)",
};

size_t reducer_pftrace_writer_left_out(const struct reducer_pftrace_writer *w, struct reducer_left_out *ret,
				       size_t room)
{
	size_t count = 0;
	for (unsigned i = 0; i < PF_LEFT_COUNT; i++) {
		if (!w->left_out[i])
			continue;
		if (count < room)
			ret[count] = (struct reducer_left_out){left_out_name[i], w->left_out[i]};
		count++;
	}
	return count;
}

void reducer_pftrace_writer_free(struct reducer_pftrace_writer *w)
{
	if (!w)
		return;
	spool_free(w->spool);
	pf_names_free(&w->names);
	pf_tracks_free(&w->tracks);
	free(w->records.item);
	free(w->metas.item);
	free(w->halves.item);
	free(w->flows.item);
	free(w->ends.item);
	buffer_free(&w->content);
	buffer_free(&w->members);
	buffer_free(&w->scratch);
	buffer_free(&w->clean);
	buffer_free(&w->reduced);
	free(w);
}
