/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perfetto traces, packet by packet: each case is a Chrome trace and what the file made of it must say, one
 * line a packet in the order of the file.
 *
 *     TIME TYPE TRACK [NAME] [CATEGORY] {annotations} [>flow] [<last end of a flow]
 *
 * TRACK is the name, thread or counter of the track, with its parents before it: "1/2" is thread 2 of process
 * 1, "1/2:2" the second further lane of it.
 */
#include <reducer/chrome.h>
#include <reducer/drec_codec.h>
#include <reducer/pftrace.h>
#include <reducer/writer.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

enum { TRACKS = 64, NAMES = 64, TEXT = 16384, PARTS = 3 };

/* --- a reader of our own --- */

struct bytes {
	const unsigned char *at, *end;
};

struct field {
	unsigned number, wire;
	uint64_t value;
	struct bytes content;
};

struct track {
	uint64_t uuid, parent;
	char name[64];
	unsigned lane; /* among tracks of the same name and parent */
	bool counter;
};

struct dump {
	char text[TEXT];
	size_t used;
	struct track track[TRACKS];
	size_t tracks;
	char *name[PARTS + 1][NAMES]; /* by field of InternedData */
	unsigned packets;
	uint64_t sequence, clock[8];
};

static uint64_t take_varint(struct bytes *b)
{
	uint64_t value = 0;
	for (unsigned shift = 0;; shift += 7) {
		ck_assert(b->at < b->end && shift < 64);
		value |= (uint64_t)(*b->at & 0x7f) << shift;
		if (*b->at++ < 0x80)
			return value;
	}
}

static bool take(struct bytes *b, struct field *field)
{
	if (b->at == b->end)
		return false;
	uint64_t tag = take_varint(b);
	*field = (struct field){.number = (unsigned)(tag >> 3), .wire = tag & 7};
	if (field->wire == 0) {
		field->value = take_varint(b);
	} else if (field->wire == 1) {
		ck_assert_int_ge(b->end - b->at, 8);
		memcpy(&field->value, b->at, 8);
		b->at += 8;
	} else {
		ck_assert_uint_eq(field->wire, 2);
		uint64_t bytes = take_varint(b);
		ck_assert_uint_le(bytes, (uint64_t)(b->end - b->at));
		field->content = (struct bytes){b->at, b->at + bytes};
		b->at += bytes;
	}
	return true;
}

static char *text_of(struct bytes b)
{
	return strndup((const char *)b.at, (size_t)(b.end - b.at));
}

__attribute__((format(printf, 2, 3))) static void say(struct dump *d, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int wrote = vsnprintf(d->text + d->used, TEXT - d->used, format, args);
	va_end(args);
	ck_assert_msg(wrote >= 0 && (size_t)wrote < TEXT - d->used, "the dump is too long");
	d->used += (size_t)wrote;
}

static double double_of(uint64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void say_annotation(struct dump *d, struct bytes b);

static void say_value(struct dump *d, const struct field *f)
{
	char *text = f->wire == 2 ? text_of(f->content) : NULL;
	if (f->number == 2)
		say(d, f->value ? "true" : "false");
	else if (f->number == 3)
		say(d, "%lluu", (unsigned long long)f->value);
	else if (f->number == 4)
		say(d, "%lld", (long long)f->value);
	else if (f->number == 5)
		say(d, "%.17g", double_of(f->value));
	else
		say(d, "'%s'", text);
	free(text);
}

static void say_annotation(struct dump *d, struct bytes b)
{
	struct field f;
	bool dict = false, array = false;
	while (take(&b, &f)) {
		if (f.number == 1) {
			say(d, "%s=", d->name[3][f.value]);
		} else if (f.number == 11) {
			say(d, dict ? "," : "{");
			dict = true;
			say_annotation(d, f.content);
		} else if (f.number == 12) {
			say(d, array ? "," : "[");
			array = true;
			say_annotation(d, f.content);
		} else {
			say_value(d, &f);
		}
	}
	say(d, "%s%s", dict ? "}" : "", array ? "]" : "");
}

static struct track *track_of(struct dump *d, uint64_t uuid)
{
	for (size_t i = 0; i < d->tracks; i++)
		if (d->track[i].uuid == uuid)
			return &d->track[i];
	ck_abort_msg("track %llx is not said", (unsigned long long)uuid);
	return NULL;
}

static void say_track(struct dump *d, const struct track *track)
{
	if (track->parent) {
		say_track(d, track_of(d, track->parent));
		say(d, "/");
	}
	say(d, "%s", track->name);
	if (track->lane)
		say(d, ":%u", track->lane);
}

static void name_thread(struct track *track, struct bytes b, unsigned number_field, unsigned name_field)
{
	struct field f;
	char said[32] = "";
	while (take(&b, &f)) {
		if (f.number == number_field)
			snprintf(track->name, sizeof(track->name), "%llu%s", (unsigned long long)f.value,
				 said);
		if (f.number == name_field) {
			char *name = text_of(f.content);
			snprintf(said, sizeof(said), "(%s)", name);
			strncat(track->name, said, sizeof(track->name) - strlen(track->name) - 1);
			free(name);
		}
	}
}

static void add_track(struct dump *d, struct bytes b)
{
	struct track track = {0};
	struct field f;
	while (take(&b, &f)) {
		if (f.number == 1)
			track.uuid = f.value;
		else if (f.number == 2)
			snprintf(track.name, sizeof(track.name), "%.*s", (int)(f.content.end - f.content.at),
				 f.content.at);
		else if (f.number == 3)
			name_thread(&track, f.content, 1, 6);
		else if (f.number == 4)
			name_thread(&track, f.content, 2, 5);
		else if (f.number == 5)
			track.parent = f.value;
		else if (f.number == 8)
			track.counter = true;
	}
	ck_assert_uint_lt(d->tracks, TRACKS);
	for (size_t i = 0; i < d->tracks; i++)
		track.lane += d->track[i].parent == track.parent && strcmp(d->track[i].name, track.name) == 0;
	if (track.parent)
		(void)track_of(d, track.parent);
	d->track[d->tracks++] = track;
}

static void add_names(struct dump *d, struct bytes b)
{
	struct field f, part;
	while (take(&b, &f)) {
		uint64_t iid = 0;
		while (take(&f.content, &part)) {
			if (part.number == 1)
				iid = part.value;
			else
				d->name[f.number][iid] = text_of(part.content);
		}
		ck_assert(iid > 0 && iid < NAMES && d->name[f.number][iid]);
	}
}

static void say_event(struct dump *d, uint64_t time, struct bytes b)
{
	static const char *const types[] = {"?", "B", "E", "I", "C"};
	struct bytes again = b;
	struct field f;
	uint64_t type = 0, uuid = 0;
	bool notes = false;
	while (take(&again, &f)) {
		type = f.number == 9 ? f.value : type;
		uuid = f.number == 11 ? f.value : uuid;
	}
	say(d, "%llu %s ", (unsigned long long)time, types[type]);
	say_track(d, track_of(d, uuid));
	ck_assert_int_eq(track_of(d, uuid)->counter, type == 4);
	for (again = b; take(&again, &f);) {
		if (f.number == 10)
			say(d, " %s", d->name[2][f.value]);
		else if (f.number == 23)
			say(d, " %.*s", (int)(f.content.end - f.content.at), f.content.at);
		else if (f.number == 3)
			say(d, " [%s]", d->name[1][f.value]);
		else if (f.number == 30)
			say(d, " %lld", (long long)f.value);
		else if (f.number == 44)
			say(d, " %.17g", double_of(f.value));
	}
	for (again = b; take(&again, &f);) {
		if (f.number != 4)
			continue;
		say(d, notes ? " " : " {");
		notes = true;
		say_annotation(d, f.content);
	}
	say(d, notes ? "}" : "");
	for (again = b; take(&again, &f);)
		if (f.number == 47 || f.number == 48)
			say(d, f.number == 47 ? " >" : " <");
	say(d, "\n");
}

static void add_packet(struct dump *d, struct bytes b)
{
	struct field f, clock, part;
	struct bytes event = {0};
	uint64_t time = 0, sequence = 0, flags = 0;
	while (take(&b, &f)) {
		if (f.number == 8)
			time = f.value;
		else if (f.number == 10)
			sequence = f.value;
		else if (f.number == 13)
			flags = f.value;
		else if (f.number == 60)
			add_track(d, f.content);
		else if (f.number == 12)
			add_names(d, f.content);
		else if (f.number == 11)
			event = f.content;
		while (f.number == 6 && take(&f.content, &clock)) {
			uint64_t id = 0;
			while (clock.number == 1 && take(&clock.content, &part))
				*(part.number == 1 ? &id : &d->clock[id & 7]) = part.value;
		}
	}
	ck_assert(sequence != 0 && (d->packets == 0 || sequence == d->sequence));
	ck_assert(d->packets > 0 || flags == 1);
	d->sequence = sequence;
	d->packets++;
	if (!event.at)
		return;
	ck_assert_uint_eq(flags, 2);
	say_event(d, time, event);
}

static void read_dump(struct dump *d, const char *path)
{
	size_t count;
	char *data = test_read_file(path, &count);
	struct bytes b = {(unsigned char *)data, (unsigned char *)data + count};
	struct field f;
	while (take(&b, &f)) {
		ck_assert(f.number == 1 && f.wire == 2);
		add_packet(d, f.content);
	}
	free(data);
}

static void free_dump(struct dump *d)
{
	for (unsigned part = 0; part <= PARTS; part++)
		for (unsigned i = 0; i < NAMES; i++)
			free(d->name[part][i]);
	free(d);
}

/* --- what the cases use --- */

static const char *out_path(void)
{
	static char path[256];
	if (!*path)
		snprintf(path, sizeof(path), "%s/out.pftrace", test_folder());
	return path;
}

static void convert(const char *json, const struct reducer_writer_options *options, char *left_out,
		    size_t room)
{
	struct reducer_writer *writer;
	struct reducer_chrome *reader;
	struct reducer_read_report report;
	struct reducer_left_out left[32];
	int fd = open(out_path(), O_RDWR | O_CREAT | O_TRUNC, 0600);
	ck_assert_int_ge(fd, 0);
	assert_ok(reducer_writer_new(fd, REDUCER_FORMAT_PFTRACE, options, test_folder(), &writer));
	struct reducer_sink sink = reducer_writer_sink(writer);
	assert_ok(reducer_chrome_new(&sink, NULL, &report, &reader));
	assert_ok(reducer_chrome_feed(reader, json, strlen(json)));
	assert_ok(reducer_chrome_finish(reader));
	assert_ok(reducer_writer_finish(writer));
	struct stat st;
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq(reducer_writer_stats(writer)->file_bytes, (uint64_t)st.st_size);
	size_t count = reducer_writer_left_out(writer, left, 32), used = 0;
	*left_out = 0;
	for (size_t i = 0; i < count; i++)
		used += (size_t)snprintf(left_out + used, room - used, "%s%s %llu", i ? ", " : "",
					 left[i].what, (unsigned long long)left[i].count);
	reducer_chrome_free(reader);
	reducer_writer_free(writer);
	close(fd);
}

/* `events` are those of a Chrome trace, `lines` what the file must say, `missing` what it has no place for.
 */
static void ck_becomes(const char *events, const char *lines, const char *missing)
{
	char json[TEXT], left_out[512];
	struct dump *d = calloc(1, sizeof(*d));
	snprintf(json, sizeof(json), "{\"traceEvents\":[%s]}", events);
	convert(json, NULL, left_out, sizeof(left_out));
	read_dump(d, out_path());
	ck_assert_str_eq(d->text, lines);
	ck_assert_str_eq(left_out, missing);
	free_dump(d);
}

#define X(name, ts, dur)                                                                                     \
	"{\"ph\":\"X\",\"name\":\"" name "\",\"pid\":1,\"tid\":2,\"ts\":" ts ",\"dur\":" dur "}"

/* --- cases --- */

START_TEST(parents_first)
{
	/* In any order of the file; equal begins and ends; a sibling begins where the one before it ends. */
	ck_becomes(X("child", "1", "4") "," X("parent", "1", "9") "," X("sibling", "5",
									"5") "," X("grandchild", "1", "4"),
		   "1000 B 1/2 parent\n1000 B 1/2 child\n1000 B 1/2 grandchild\n5000 E 1/2\n5000 E 1/2\n"
		   "5000 B 1/2 sibling\n10000 E 1/2\n10000 E 1/2\n",
		   "");
}
END_TEST

START_TEST(nothing_long)
{
	/* What has no length ends before its neighbour begins; in a span that begins there it is inside. */
	ck_becomes(X("a", "1", "0") "," X("b", "1", "0") "," X("outer", "3",
							       "2") "," X("c", "3", "0") "," X("d", "5", "0"),
		   "1000 B 1/2 a\n1000 E 1/2\n1000 B 1/2 b\n1000 E 1/2\n3000 B 1/2 outer\n3000 B 1/2 c\n3000 "
		   "E 1/2\n"
		   "5000 E 1/2\n5000 B 1/2 d\n5000 E 1/2\n",
		   "");
}
END_TEST

START_TEST(overlap)
{
	/* A lane of its own for what overlaps without nesting; then there is room on the first again. */
	ck_becomes(X("a", "0", "10") "," X("b", "5", "10") "," X("c", "6", "2") "," X("d", "8", "20") "," X(
			   "e", "28", "1"),
		   "0 B 1/2 a\n5000 B 1/2/2 b\n6000 B 1/2 c\n8000 E 1/2\n8000 B 1/2/2:1 d\n10000 E "
		   "1/2\n15000 E 1/2/2\n"
		   "28000 B 1/2 e\n28000 E 1/2/2:1\n29000 E 1/2\n",
		   "");
}
END_TEST

START_TEST(picoseconds)
{
	/* Rounded to ns: the child reaches 0.3 ns beyond its parent and still nests; what begins 0.2 ns
	 * before its neighbour ends comes after it; what is shorter than a ns stays inside of what it was in.
	 */
	ck_becomes(X("parent", "1.0000", "1.0000") "," X("child", "1.5", "0.5003"),
		   "1000 B 1/2 parent\n1500 B 1/2 child\n2000 E 1/2\n2000 E 1/2\n",
		   "picoseconds of events 1");
	ck_becomes(X("a", "1", "1.0003") "," X("b", "2.0001", "1"),
		   "1000 B 1/2 a\n2000 E 1/2\n2000 B 1/2 b\n3000 E 1/2\n", "picoseconds of events 2");
	ck_becomes(X("outer", "0.9996", "0.0008") "," X("inner", "0.9998", "0.0002"),
		   "1000 B 1/2 outer\n1000 B 1/2 inner\n1000 E 1/2\n1000 E 1/2\n", "picoseconds of events 2");
	ck_becomes(X("short", "0.9996", "0.0006") "," X("next", "1.0003", "5"),
		   "1000 B 1/2 short\n1000 E 1/2\n1000 B 1/2 next\n6000 E 1/2\n", "picoseconds of events 2");
}
END_TEST

START_TEST(begin_end)
{
	/* By name where it is given, else the innermost; args of both; one without a begin, one without an
	 * end. */
	ck_becomes(
		"{\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":0},"
		"{\"ph\":\"B\",\"name\":\"a\",\"cat\":\"k\",\"pid\":1,\"tid\":2,\"ts\":1,\"args\":{\"x\":1}},"
		"{\"ph\":\"B\",\"name\":\"b\",\"pid\":1,\"tid\":2,\"ts\":2},"
		"{\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":3},"
		"{\"ph\":\"E\",\"name\":\"a\",\"pid\":1,\"tid\":2,\"ts\":4,\"args\":{\"y\":2}},"
		"{\"ph\":\"B\",\"name\":\"open\",\"pid\":1,\"tid\":2,\"ts\":5}," X("in it", "6", "1") "," X(
			"late", "9", "1"),
		"1000 B 1/2 a [k] {x=1}\n2000 B 1/2 b\n3000 E 1/2\n4000 E 1/2 {y=2}\n5000 B 1/2 open\n"
		"6000 B 1/2 in it\n7000 E 1/2\n9000 B 1/2 late\n10000 E 1/2\n",
		"ends without a begin 1");
	/* Ends in another order than a stack's: each closes its own, and what overlaps is on a lane of its
	 * own. */
	ck_becomes("{\"ph\":\"B\",\"name\":\"a\",\"pid\":1,\"tid\":2,\"ts\":1},{\"ph\":\"B\",\"name\":\"b\","
		   "\"pid\":1,\"tid\":2,\"ts\":2},"
		   "{\"ph\":\"E\",\"name\":\"a\",\"pid\":1,\"tid\":2,\"ts\":3},{\"ph\":\"E\",\"name\":\"b\","
		   "\"pid\":1,\"tid\":2,\"ts\":4}",
		   "1000 B 1/2 a\n2000 B 1/2/2 b\n3000 E 1/2\n4000 E 1/2/2\n", "");
	/* Both at one time, beside spans. */
	ck_becomes("{\"ph\":\"B\",\"name\":\"z\",\"pid\":1,\"tid\":2,\"ts\":1},{\"ph\":\"E\",\"pid\":1,"
		   "\"tid\":2,\"ts\":1}," X("a", "0", "3"),
		   "0 B 1/2 a\n1000 B 1/2 z\n1000 E 1/2\n3000 E 1/2\n", "");
}
END_TEST

#define A(ph, name, id, ts)                                                                                  \
	"{\"ph\":\"" ph "\",\"name\":\"" name "\",\"cat\":\"io\",\"id\":" id                                 \
	",\"pid\":1,\"tid\":2,\"ts\":" ts "}"

START_TEST(async)
{
	/* By id and category; those at one time side by side, nested ones with their own; an instant with its
	 * own. */
	ck_becomes(A("b", "read", "7", "1") "," A("b", "read", "\"0x8\"", "2") "," A(
			   "n", "hit", "\"0x8\"",
			   "2.5") "," A("b", "part", "7",
					"3") "," A("e", "part", "7",
						   "4") "," A("e", "read", "7",
							      "5") "," A("e", "read", "\"0x8\"",
									 "6") "," A("e", "read", "9",
										    "7") "," A("b", "read",
											       "9", "8"),
		   "1000 B 1/read read [io]\n2000 B 1/read:1 read [io]\n2500 I 1/read:1 hit [io]\n"
		   "3000 B 1/read part [io]\n4000 E 1/read\n5000 E 1/read\n6000 E 1/read:1\n8000 B 1/read "
		   "read [io]\n",
		   "ends without a begin 1");
}
END_TEST

START_TEST(instants)
{
	ck_becomes(
		"{\"ph\":\"i\",\"name\":\"at the end\",\"s\":\"t\",\"pid\":1,\"tid\":2,\"ts\":3},"
		"{\"ph\":\"I\",\"name\":\"old\",\"s\":\"p\",\"pid\":1,\"tid\":2,\"ts\":1},"
		"{\"ph\":\"i\",\"name\":\"of the process\",\"s\":\"p\",\"pid\":1,\"ts\":2},"
		"{\"ph\":\"i\",\"name\":\"nowhere\",\"pid\":\"Traces\",\"tid\":\"T\",\"ts\":4},"
		"{\"ph\":\"i\",\"name\":\"timeless\",\"pid\":1,\"tid\":2}," X("a", "1", "2"),
		"1000 B 1/2 a\n1000 I 1/2 old\n2000 I 1 of the process\n3000 E 1/2\n3000 I 1/2 at the end\n"
		"4000 I Traces/T nowhere\n",
		"events without a time 1");
}
END_TEST

#define C(name, ts, args) "{\"ph\":\"C\",\"name\":\"" name "\",\"pid\":1,\"ts\":" ts ",\"args\":" args "}"

START_TEST(counters)
{
	/* A track for each number, named as Perfetto names those of JSON; whole numbers stay whole. */
	ck_becomes(C("mem", "2", "{\"used\":9007199254740993,\"free\":0.1,\"note\":\"x\"}") "," C(
			   "mem", "1",
			   "{\"used\":-3}") "," C("clk", "3",
						  "{\"\":1.5e3}") ","
								  "{\"ph\":\"C\",\"name\":\"q\",\"id\":5,"
								  "\"pid\":1,\"ts\":4,\"args\":{\"len\":"
								  "18446744073709551615}}",
		   "1000 C 1/mem used -3\n2000 C 1/mem used 9007199254740993\n2000 C 1/mem free "
		   "0.10000000000000001\n"
		   "3000 C 1/clk 1500\n4000 C 1/q id: 5 len 1.8446744073709552e+19\n",
		   "counter values that are no numbers 1");
}
END_TEST

#define F(ph, ts, tid, more)                                                                                 \
	"{\"ph\":\"" ph "\",\"name\":\"f\",\"cat\":\"c\",\"id\":1,\"pid\":1,\"tid\":" tid ",\"ts\":" ts more \
	"}"
#define X2(name, ts, dur)                                                                                    \
	"{\"ph\":\"X\",\"name\":\"" name "\",\"pid\":1,\"tid\":3,\"ts\":" ts ",\"dur\":" dur "}"

START_TEST(flows)
{
	/* From the innermost span around it to the one around or, without bp, the one that begins next. */
	ck_becomes(
		X("call", "1", "4") "," X("inner", "2", "1") "," X2("gpu", "6", "2") "," X2(
			"next", "9", "1") "," F("s", "2", "2", "") "," F("t", "6", "3",
									 ",\"bp\":\"e\"") "," F("f", "8.5",
												"3", ""),
		"1000 B 1/2 call\n2000 B 1/2 inner >\n3000 E 1/2\n5000 E 1/2\n6000 B 1/3 gpu >\n8000 E 1/3\n"
		"9000 B 1/3 next <\n10000 E 1/3\n",
		"");
	/* Without bp it is the next one even inside of a span. */
	ck_becomes(X("call", "1", "4") "," X2("around", "6", "9") "," X2("next", "9", "1") "," F(
			   "s", "2", "2", "") "," F("f", "8", "3", ""),
		   "1000 B 1/2 call >\n5000 E 1/2\n6000 B 1/3 around\n9000 B 1/3 next <\n10000 E 1/3\n15000 "
		   "E 1/3\n",
		   "");
	/* Where none begins any more it is on none. */
	ck_becomes(X("call", "1", "4") "," X2("around", "6", "9") "," F("s", "2", "2", "") "," F("f", "8",
												 "3", ""),
		   "1000 B 1/2 call\n5000 E 1/2\n6000 B 1/3 around\n15000 E 1/3\n",
		   "flow ends outside of any span 1, flow ends without another one 1");
	/* A flow of one end, and one outside of any span. */
	ck_becomes(X("call", "1", "4") "," X2("gpu", "6", "2") "," F("s", "2", "2", "") "," F(
			   "f", "20", "3", ",\"bp\":\"e\""),
		   "1000 B 1/2 call\n5000 E 1/2\n6000 B 1/3 gpu\n8000 E 1/3\n",
		   "flow ends outside of any span 1, flow ends without another one 1");
	/* Spans that say themselves which flow they are on. */
	ck_becomes("{\"ph\":\"X\",\"name\":\"from\",\"pid\":1,\"tid\":2,\"ts\":1,\"dur\":1,\"bind_id\":"
		   "\"0x1\",\"flow_out\":true},"
		   "{\"ph\":\"X\",\"name\":\"to\",\"pid\":1,\"tid\":2,\"ts\":3,\"dur\":1,\"bind_id\":\"0x1\","
		   "\"flow_in\":true}",
		   "1000 B 1/2 from >\n2000 E 1/2\n3000 B 1/2 to <\n4000 E 1/2\n", "");
}
END_TEST

START_TEST(annotations)
{
	ck_becomes("{\"ph\":\"i\",\"name\":\"\\u00e4\\n\",\"cat\":\"a,b\",\"pid\":1,\"tid\":2,\"ts\":1,"
		   "\"tts\":5,\"id\":77,\"args\":"
		   "{\"i\":-5,\"big\":18446744073709551615,\"bigger\":184467440737095516150,\"d\":2.5,\"s\":"
		   "\"q\\\"\\u20ac\",\"t\":true,"
		   "\"n\":null,\"nan\":NaN,\"e\":{},\"a\":[1,[\"x\",2.0],{\"k\":false}],\"o\":{\"p\":{\"q\":"
		   "1}}}},"
		   "{\"ph\":\"i\",\"name\":\"odd\",\"pid\":1,\"tid\":2,\"ts\":2,\"args\":[1,2]}",
		   "1000 I 1/2 \xc3\xa4\n [a,b] {i=-5 big=18446744073709551615u "
		   "bigger='184467440737095516150' d=2.5 "
		   "s='q\"\xe2\x82\xac' t=true n='null' nan=nan e='{}' a=[1,['x',2],{k=false}] o={p={q=1}} "
		   "id=77 tts=5}\n"
		   "2000 I 1/2 odd {args=[1,2]}\n",
		   "");
}
END_TEST

START_TEST(damaged_args)
{
	/* A value that is missing, and a text that is not ended before its key: all else is there. */
	ck_becomes("{\"ph\":\"i\",\"name\":\"a\",\"pid\":1,\"tid\":2,\"ts\":1,"
		   "\"args\":{\"before\":1,\"hole\": ,\"after\":N/A,\"last\":[1,2]}}",
		   "1000 I 1/2 a {before=1 hole='null' after='N/A' last=[1,2]}\n", "");
}
END_TEST

START_TEST(deep_args)
{
	/* However deep: what is too deep is its own text, and nothing recurses without end. */
	char args[8200], json[9000], left_out[64];
	memset(args, '[', 4000);
	memset(args + 4000, ']', 4000);
	args[8000] = 0;
	struct dump *d = calloc(1, sizeof(*d));
	snprintf(json, sizeof(json), "[{\"ph\":\"i\",\"name\":\"a\",\"ts\":1,\"args\":{\"x\":%.500s%.500s}}]",
		 args, args + 7500);
	convert(json, NULL, left_out, sizeof(left_out));
	read_dump(d, out_path());
	ck_assert_ptr_nonnull(strstr(d->text, "x=[[[["));
	ck_assert_ptr_nonnull(strstr(d->text, "'[[[[["));
	free_dump(d);
}
END_TEST

#define M(name, tid, args) "{\"ph\":\"M\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid ",\"args\":" args "}"

START_TEST(track_names)
{
	/* A tid that is a text here and a number there is one thread; what is no number of Linux is a named
	 * track. */
	ck_becomes(
		"{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":\"2\",\"ts\":1,\"dur\":1}," X("b", "3", "1") "," M(
			"thread_name", "2",
			"{\"name\":\"main\"}") "," M("process_name", "0",
						     "{\"name\":\"python\"}") "," M("thread_sort_"
										    "index",
										    "2",
										    "{\"sort_index\":"
										    "3}") "," M("proc"
												"ess_"
												"labe"
												"ls",
												"0",
												"{\"l"
												"abel"
												"s\":"
												"\"CP"
												"U\""
												"}") "," M("u"
													   "n"
													   "h"
													   "e"
													   "a"
													   "r"
													   "d"
													   "_"
													   "o"
													   "f",
													   "0",
													   "{"
													   "\"x\":1}") ","
														       "{\"ph\":\"i\",\"name\":\"gpu\",\"pid\":0,\"tid\":\"stream 7\",\"ts\":5},"
														       "{\"ph\":\"i\",\"name\":\"far\",\"pid\":1,\"tid\":99999999999,\"ts\":6}",
		"1000 B 1(python)/2(main) a\n1000 I 1(python)/metadata unheard_of {x=1 tid=0}\n2000 E "
		"1(python)/2(main)\n3000 B 1(python)/2(main) b\n"
		"4000 E 1(python)/2(main)\n5000 I 0/stream 7 gpu\n6000 I 1(python)/99999999999 far\n",
		"");
}
END_TEST

START_TEST(times_before_zero)
{
	ck_becomes(X("a", "-5", "2") "," X("b", "1", "1"),
		   "0 B 1/2 a\n2000 E 1/2\n6000 B 1/2 b\n7000 E 1/2\n", "times before 0 (all are moved) 1");
}
END_TEST

START_TEST(a_base)
{
	static const char early[] =
		"{\"baseTimeNanoseconds\":1700000000000000000,\"traceEvents\":[" X("a", "1", "2") "]}";
	static const char late[] =
		"{\"traceEvents\":[" X("a", "1", "2") "],\"baseTimeNanoseconds\":1700000000000000000}";
	const char *both[] = {early, late};
	char left_out[64];
	for (int i = 0; i < 2; i++) {
		struct dump *d = calloc(1, sizeof(*d));
		convert(both[i], NULL, left_out, sizeof(left_out));
		read_dump(d, out_path());
		ck_assert_ptr_nonnull(
			strstr(d->text, "1700000000000001000 B 1/2 a\n1700000000000003000 E 1/2\n"));
		ck_assert_ptr_nonnull(strstr(d->text, "1700000000000001000 I driverec trace members "
						      "{baseTimeNanoseconds=1700000000000000000}\n"));
		ck_assert_uint_eq(d->clock[1], 1700000000000001000);
		ck_assert_uint_eq(d->clock[6], d->clock[1]);
		free_dump(d);
	}
}
END_TEST

START_TEST(reduced_and_stripped)
{
	static const char json[] =
		"[{\"ph\":\"M\",\"name\":\"driverec.reduced\",\"args\":{\"version\":1,\"bin_ps\":\"1000\"}},"
		"{\"ph\":\"X\",\"name\":\"merged\",\"cat\":\"driverec.merged\",\"pid\":1,\"tid\":2,\"ts\":1,"
		"\"dur\":1,"
		"\"args\":{\"driverec.events\":5}}]";
	const struct reducer_writer_options strip = {.strip_args = 1};
	char left_out[64];
	struct dump *d = calloc(1, sizeof(*d));
	convert(json, NULL, left_out, sizeof(left_out));
	read_dump(d, out_path());
	ck_assert_str_eq(d->text, "1000 I driverec driverec.reduced {version=1 bin_ps='1000'}\n"
				  "1000 B 1/2 merged [driverec.merged] {driverec.events=5}\n2000 E 1/2\n");
	free_dump(d);
	d = calloc(1, sizeof(*d));
	convert(json, &strip, left_out, sizeof(left_out));
	read_dump(d, out_path());
	ck_assert_str_eq(
		d->text,
		"1000 I driverec driverec.reduced\n1000 B 1/2 merged [driverec.merged]\n2000 E 1/2\n");
	ck_assert_str_eq(left_out, "args of events 2");
	free_dump(d);
}
END_TEST

START_TEST(marks_and_losses)
{
	const struct reducer_event events[] = {
		{.kind = DREC_MARK,
		 .mark = DREC_MARK_STEP_BEGIN,
		 .has_time = 1,
		 .start_ns = 5,
		 .id = 3,
		 .has_id = 1,
		 .name = {"train", 5},
		 .group = {"1", 1},
		 .track = {"2", 1}},
		{.kind = DREC_MARK,
		 .mark = DREC_MARK_STEP_END,
		 .has_time = 1,
		 .has_duration = 1,
		 .start_ns = 5,
		 .duration_ns = 9,
		 .id = 3,
		 .has_id = 1,
		 .name = {"train", 5},
		 .group = {"1", 1},
		 .track = {"2", 1}},
		{.kind = DREC_LOSS,
		 .mark = DREC_LOSS_TOO_BIG,
		 .has_time = 1,
		 .start_ns = 20,
		 .duration_ns = 1500,
		 .count = 4,
		 .group = {"1", 1},
		 .track = {"2", 1}},
		{.kind = DREC_COUNTER,
		 .has_time = 1,
		 .start_ns = 30,
		 .value = 0.5,
		 .name = {"load", 4},
		 .group = {"1", 1},
		 .track = {"2", 1}},
	};
	struct reducer_pftrace_writer *writer;
	const struct reducer_writer_options options = {.has_base = 1};
	int fd = open(out_path(), O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_ok(reducer_pftrace_writer_new(fd, &options, NULL, &writer));
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		assert_ok(reducer_pftrace_writer_event(writer, &events[i]));
	assert_ok(reducer_pftrace_writer_finish(writer));
	ck_assert_uint_eq(reducer_pftrace_writer_stats(writer)->events, 4);
	reducer_pftrace_writer_free(writer);
	close(fd);
	struct dump *d = calloc(1, sizeof(*d));
	read_dump(d, out_path());
	ck_assert_str_eq(d->text,
			 "5 B 1/2 step 3 [driverec.mark] {phase='train'}\n"
			 "5 I 1/2 step 3 begins [driverec.mark] {phase='train'}\n14 E 1/2\n"
			 "20 I 1/2 lost: too_big [driverec.loss] {events=4 for_us=1.5}\n30 C 1/load 0.5\n");
	ck_assert_uint_eq(d->clock[1], 5);
	free_dump(d);
}
END_TEST

/* What a ring of somebody holds is bytes; what is written is UTF-8. */
START_TEST(texts_of_others)
{
	const struct reducer_event events[] = {
		{.kind = DREC_INSTANT,
		 .has_time = 1,
		 .name = {"a\xff", 2},
		 .category = {"\xc3", 1},
		 .group = {"p\x80", 2},
		 .track = {"\"\\u00e4\xf0\"", 9}},
		{.kind = DREC_COUNTER, .has_time = 1, .name = {"\xfe", 1}, .group = {"p\x80", 2}},
	};
	struct reducer_pftrace_writer *writer;
	int fd = open(out_path(), O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_ok(reducer_pftrace_writer_new(fd, NULL, NULL, &writer));
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		assert_ok(reducer_pftrace_writer_event(writer, &events[i]));
	assert_ok(reducer_pftrace_writer_finish(writer));
	reducer_pftrace_writer_free(writer);
	close(fd);
	struct dump *d = calloc(1, sizeof(*d));
	read_dump(d, out_path());
	ck_assert_str_eq(d->text, "0 I p\xef\xbf\xbd/\xc3\xa4\xef\xbf\xbd a\xef\xbf\xbd [\xef\xbf\xbd]\n"
				  "0 C p\xef\xbf\xbd/\xef\xbf\xbd 0\n");
	free_dump(d);
}
END_TEST

START_TEST(nothing)
{
	char left_out[64];
	struct dump *d = calloc(1, sizeof(*d));
	convert("[]", NULL, left_out, sizeof(left_out));
	read_dump(d, out_path());
	ck_assert_str_eq(d->text, "");
	ck_assert_uint_eq(d->packets, 1);
	free_dump(d);
}
END_TEST

/* Spans with random times: any two on a lane nest or are apart, and times only go on. */
START_TEST(random_spans)
{
	static char json[1 << 20];
	char left_out[64];
	size_t used = (size_t)snprintf(json, sizeof(json), "[");
	for (int i = 0; i < 3000; i++)
		used += (size_t)snprintf(json + used, sizeof(json) - used,
					 "%s{\"ph\":\"X\",\"name\":\"n%d\",\"pid\":1,\"tid\":%d,\"ts\":%llu.%"
					 "06llu,\"dur\":0.%06llu}",
					 i ? "," : "", i % 50, (int)test_random_below(3) + 1,
					 (unsigned long long)test_random_below(3),
					 (unsigned long long)test_random_below(1000000),
					 (unsigned long long)test_random_below(i % 2 ? 3000 : 200000));
	snprintf(json + used, sizeof(json) - used, "]");
	convert(json, NULL, left_out, sizeof(left_out));
	size_t count, begins = 0, ends = 0;
	char *data = test_read_file(out_path(), &count);
	struct bytes b = {(unsigned char *)data, (unsigned char *)data + count};
	struct field packet, f, e;
	uint64_t last = 0;
	/* Every lane's depth, by the low bits of its number: they are given in turn. */
	static int depth[4096];
	while (take(&b, &packet)) {
		uint64_t time = 0, type = 0, uuid = 0;
		while (take(&packet.content, &f)) {
			time = f.number == 8 ? f.value : time;
			while (f.number == 11 && take(&f.content, &e)) {
				type = e.number == 9 ? e.value : type;
				uuid = e.number == 11 ? e.value : uuid;
			}
		}
		if (!type)
			continue;
		ck_assert_uint_ge(time, last);
		last = time;
		int *at = &depth[uuid & 4095];
		*at += type == 1 ? 1 : -1;
		ck_assert_int_ge(*at, 0);
		begins += type == 1;
		ends += type == 2;
	}
	ck_assert_uint_eq(begins, 3000);
	ck_assert_uint_eq(ends, 3000);
	free(data);
}
END_TEST

START_TEST(same_bytes)
{
	char left_out[64];
	size_t first_count, count;
	convert("[" X("a", "1", "2") "," X("b", "2", "3") "]", NULL, left_out, sizeof(left_out));
	char *first = test_read_file(out_path(), &first_count);
	convert("[" X("a", "1", "2") "," X("b", "2", "3") "]", NULL, left_out, sizeof(left_out));
	char *again = test_read_file(out_path(), &count);
	ck_assert_uint_eq(count, first_count);
	ck_assert_mem_eq(again, first, count);
	free(first);
	free(again);
}
END_TEST

/* Contents beyond what stays in memory come back from the spool; a spool that cannot be made is an error. */
START_TEST(spool)
{
	static char name[3000];
	struct reducer_pftrace_writer *writer;
	char args[8192];
	for (int there = 1; there >= 0; there--) {
		int fd = open(out_path(), O_RDWR | O_CREAT | O_TRUNC, 0600), result = 0;
		assert_ok(reducer_pftrace_writer_new(fd, NULL, there ? test_folder() : "/nonexistent",
						     &writer));
		for (int i = 0; i < 1500 && result == 0; i++) {
			memset(name, 'a' + i % 26, sizeof(name));
			int bytes = snprintf(args, sizeof(args), "{\"n\":%d,\"text\":\"%.3000s\"}", i, name);
			struct reducer_event event = {.kind = DREC_INSTANT,
						      .has_time = 1,
						      .start_ns = 1500 - i,
						      .args_flag = DREC_FLAG_ARGS_JSON,
						      .args = {args, (size_t)bytes}};
			result = reducer_pftrace_writer_event(writer, &event);
		}
		if (there) {
			assert_ok(result);
			assert_ok(reducer_pftrace_writer_finish(writer));
			ck_assert_uint_gt(reducer_pftrace_writer_stats(writer)->file_bytes, 1500 * 3000);
		} else {
			ck_assert_int_eq(result, -ENOENT);
			ck_assert_int_eq(reducer_pftrace_writer_finish(writer), -ENOENT);
		}
		reducer_pftrace_writer_free(writer);
		close(fd);
		size_t count;
		char *data = there ? test_read_file(out_path(), &count) : NULL;
		if (there) { /* the last event of the file is the first that came */
			const char *last = memrchr(data, 'a', count);
			ck_assert_ptr_nonnull(last);
			ck_assert_int_eq(data + count - last, 1);
		}
		free(data);
	}
}
END_TEST

START_TEST(full_disk)
{
	struct reducer_pftrace_writer *writer;
	struct reducer_event event = {.kind = DREC_INSTANT, .has_time = 1, .name = {"a", 1}};
	int fd = open("/dev/full", O_WRONLY);
	assert_ok(reducer_pftrace_writer_new(fd, NULL, NULL, &writer));
	assert_ok(reducer_pftrace_writer_event(writer, &event));
	ck_assert_int_eq(reducer_pftrace_writer_finish(writer), -ENOSPC);
	ck_assert_int_eq(reducer_pftrace_writer_event(writer, &event), -ENOSPC);
	reducer_pftrace_writer_free(writer);
	close(fd);
}
END_TEST

START_TEST(formats_of_names)
{
	ck_assert_int_eq(reducer_format_of_name("a.json"), REDUCER_FORMAT_CHROME);
	ck_assert_int_eq(reducer_format_of_name("a.pt.trace.json.gz"), REDUCER_FORMAT_CHROME);
	ck_assert_int_eq(reducer_format_of_name("h.xplane.pb"), REDUCER_FORMAT_XPLANE);
	ck_assert_int_eq(reducer_format_of_name("a.pftrace"), REDUCER_FORMAT_PFTRACE);
	ck_assert_int_eq(reducer_format_of_name("a.perfetto-trace"), REDUCER_FORMAT_PFTRACE);
	ck_assert_int_eq(reducer_format_of_name("r.drec"), REDUCER_FORMAT_DREC);
	ck_assert_int_eq(reducer_format_of_name("a.txt"), REDUCER_FORMAT_NONE);
	ck_assert_int_eq(reducer_format_of_name("json"), REDUCER_FORMAT_NONE);
	struct reducer_writer *writer;
	ck_assert_int_eq(reducer_writer_new(1, REDUCER_FORMAT_DREC, NULL, NULL, &writer), -EINVAL);
}
END_TEST

int main(void)
{
	const struct {
		const char *name;
		const TTest *test;
	} cases[] = {
		{"parents first", parents_first},
		{"no length", nothing_long},
		{"overlap", overlap},
		{"picoseconds", picoseconds},
		{"begin and end", begin_end},
		{"async", async},
		{"instants", instants},
		{"counters", counters},
		{"flows", flows},
		{"annotations", annotations},
		{"damaged args", damaged_args},
		{"deep args", deep_args},
		{"track names", track_names},
		{"times before 0", times_before_zero},
		{"base", a_base},
		{"reduced, stripped", reduced_and_stripped},
		{"marks and losses", marks_and_losses},
		{"texts of others", texts_of_others},
		{"nothing", nothing},
		{"random spans", random_spans},
		{"same bytes", same_bytes},
		{"spool", spool},
		{"full disk", full_disk},
		{"names of formats", formats_of_names},
	};
	Suite *suite = suite_create("pftrace");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TCase *tcase = tcase_create(cases[i].name);
		tcase_add_test(tcase, cases[i].test);
		suite_add_tcase(suite, tcase);
	}
	return test_run(suite);
}
