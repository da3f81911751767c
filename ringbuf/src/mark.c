/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scopes, steps and phases.
 *
 * Each thread's slot holds a stack of what is open: pushed at begin, popped only after the end is committed,
 * so a process that dies or hangs in between shows what it was inside of. Readers read `open`, the entries,
 * and `open` again; its upper half counts begins, so a changed entry never goes unseen.
 */
#include "ring.h"

#include <string.h>

#include "point.h"

static void push(struct local *l, uint32_t name, unsigned mark, uint64_t start)
{
	uint32_t depth = l->depth;
	struct drec_slot *slot = l->slot;
	if (depth < SCOPES_MAX)
		l->scope[depth] = (struct scope){start, name, mark};
	if (depth < DREC_STACK_MAX) {
		/* Whoever sees this entry also sees that the one before it in this place is gone. */
		fence_release();
		store_relaxed(&slot->stack[depth].start, start);
		store32_relaxed(&slot->stack[depth].name, name);
		store32_relaxed(&slot->stack[depth].track, (l->track & DREC_TRACK_MAX) | (uint32_t)mark << 24);
	}
	l->depth = depth + 1;
	l->begins++;
	store_release(&slot->open, (uint64_t)l->begins << 32 | l->depth);
	POINT(scope_pushed);
}

static void pop_to(struct local *l, uint32_t depth)
{
	l->depth = depth;
	if (l->step_scope > depth)
		l->step_scope = 0;
	/* Covers the event just committed: an open entry may be doubled by its event, never missing. */
	store_release(&l->slot->open, (uint64_t)l->begins << 32 | depth);
	POINT(scope_popped);
}

/* The event of the innermost scope. Deeper ones than SCOPES_MAX have no begin to tell. */
static void commit_scope(struct local *l, uint32_t depth, uint64_t now)
{
	if (depth >= SCOPES_MAX) {
		/* It began after the innermost that is known. */
		loss_pending(l, DREC_LOSS_TOO_BIG, 1, l->scope[SCOPES_MAX - 1].start, now);
		return;
	}
	const struct scope *scope = &l->scope[depth];
	if (!scope->mark) {
		append_span(l, l->track | depth << 24, scope->name, scope->start, now);
		POINT(scope_committed);
		return;
	}
	struct drec_event event = {
		.kind = DREC_MARK,
		.depth = (uint8_t)depth,
		.name = scope->name,
		.track = l->track,
		.start = scope->start,
		.dur_or_value = now > scope->start ? now - scope->start : 0,
	};
	if (scope->mark == DREC_MARK_STEP_BEGIN) {
		event.category = DREC_MARK_STEP_END;
		event.flags = DREC_FLAG_ID;
		event.id = l->step;
	} else {
		event.category = DREC_MARK_PHASE_END;
	}
	append_event(l, &event, now);
	POINT(scope_committed);
}

void scopes_end(struct local *l, uint32_t depth, uint64_t now)
{
	while (l->depth > depth) {
#ifdef DREC_MUTANT_POP_BEFORE_COMMIT
		pop_to(l, l->depth - 1);
		commit_scope(l, l->depth, now);
#else
		commit_scope(l, l->depth - 1, now);
		pop_to(l, l->depth - 1);
#endif
	}
}

drec_scope drec_begin(drec *rec, uint32_t name)
{
	struct local *l = enter(rec);
	if (!l)
		return 0;
	push(l, known_name(rec, name), 0, ticks_now(rec->clock));
	drec_scope scope = l->depth;
	leave(l);
	return scope;
}

void drec_end(drec *rec, drec_scope scope)
{
	if (scope == 0)
		return;
	struct local *l = enter(rec);
	if (!l)
		return;
	scopes_end(l, scope - 1, ticks_now(rec->clock));
	leave(l);
}

static void mark_event(struct local *l, unsigned mark, uint32_t name, uint64_t step, uint64_t now)
{
	struct drec_event event = {
		.kind = DREC_MARK,
		.flags = mark == DREC_MARK_STEP_BEGIN ? DREC_FLAG_ID : 0,
		.depth = (uint8_t)(l->depth < DREC_DEPTH_UNKNOWN ? l->depth : DREC_DEPTH_UNKNOWN),
		.category = (uint16_t)mark,
		.name = name,
		.track = l->track,
		.start = now,
		.id = step,
	};
	append_event(l, &event, now);
}

void drec_step_begin(drec *rec, uint64_t step, uint32_t phase)
{
	struct local *l = enter(rec);
	if (!l)
		return;
	uint64_t now = ticks_now(rec->clock);
	if (phase == 0)
		phase = dict_add(rec, DREC_DICT_NAME, NULL, 0, "train", 5);
	phase = known_name(rec, phase);
	if (l->step_scope)
		scopes_end(l, l->step_scope - 1, now);
	mark_event(l, DREC_MARK_STEP_BEGIN, phase, step, now);
	l->step = step;
	store_relaxed(&l->slot->step, step);
	push(l, phase, DREC_MARK_STEP_BEGIN, now);
	l->step_scope = l->depth;
	leave(l);
}

void drec_step_end(drec *rec)
{
	struct local *l = enter(rec);
	if (!l)
		return;
	if (l->step_scope)
		scopes_end(l, l->step_scope - 1, ticks_now(rec->clock));
	leave(l);
}

drec_scope drec_phase_begin(drec *rec, uint32_t phase)
{
	struct local *l = enter(rec);
	if (!l)
		return 0;
	uint64_t now = ticks_now(rec->clock);
	phase = known_name(rec, phase);
	mark_event(l, DREC_MARK_PHASE_BEGIN, phase, 0, now);
	push(l, phase, DREC_MARK_PHASE_BEGIN, now);
	drec_scope scope = l->depth;
	leave(l);
	return scope;
}

void drec_phase_end(drec *rec, drec_scope scope)
{
	drec_end(rec, scope);
}

/* The reason as a JSON string: controls become spaces, quotes and backslashes are escaped. */
static uint32_t quote(char *out, const char *reason)
{
	uint32_t n = 0;
	size_t bytes = strnlen(reason, 256);
	if (bytes > 255)
		for (bytes = 255; bytes > 251 && ((unsigned char)reason[bytes] & 0xc0) == 0x80; bytes--)
			;
	out[n++] = '"';
	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)reason[i];
		if (c == '"' || c == '\\')
			out[n++] = '\\';
		out[n++] = c < 0x20 ? ' ' : (char)c;
	}
	out[n++] = '"';
	return n;
}

void drec_trigger(drec *rec, const char *reason)
{
	char text[2 * 256 + 2];
	struct local *l = enter(rec);
	if (!l)
		return;
	uint64_t now = ticks_now(rec->clock);
	struct drec_event event = {
		.kind = DREC_MARK,
		.flags = DREC_FLAG_ARGS_JSON,
		.depth = DREC_DEPTH_UNKNOWN,
		.category = DREC_MARK_TRIGGER,
		.track = l->track,
		.start = now,
		.args = text,
		.args_bytes = quote(text, reason ? reason : ""),
	};
	append_event(l, &event, now);
	leave(l);
}
