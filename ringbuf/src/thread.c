/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and their slots.
 *
 * A thread gets a slot at its first event and gives it back when it exits. Its fast path is one thread-local
 * pointer; a thread that writes to several recorders in turn finds the others through the list that hangs on
 * the pthread key. Registration is lock-free, so it also works between fork and the child's own ring.
 */
#include "ring.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "point.h"

enum { RETRY_EVERY = 256 };

/* A thread whose exit handlers have run points here: it only counts. */
static struct local thread_gone;

_Thread_local struct local *thread_local_slot;
/* Calls of a thread without a slot: looking for one costs a scan, so only now and then. */
static _Thread_local uint32_t slotless_calls __attribute__((tls_model("initial-exec")));

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static int key_error;

static void slot_release(struct local *l)
{
	bool live = load_relaxed(l->rec->live) != 0;
	/* Not live in the process itself: the recorder was closed. In a child: not ours to touch. */
	if (!live && getpid() != (pid_t)l->rec->header->pid)
		return;
	l->busy = 1;
	fence_signal();
	if (live)
		scopes_end(l, 0, ticks_now(l->rec->clock));
	loss_flush(l);
	chunk_close(l);
	l->leaving = 1;
	store_relaxed(&l->owner, 0);
	store_release(&l->slot->life_state, (uint64_t)l->life << 32);
}

static void thread_exit(void *head)
{
	thread_local_slot = &thread_gone;
	for (struct local *l = head, *next; l; l = next) {
		next = l->next_of_thread;
		slot_release(l);
	}
}

static void make_key(void)
{
	key_error = pthread_key_create(&key, thread_exit);
}

int threads_init(void)
{
	pthread_once(&key_once, make_key);
	return -key_error;
}

static uint32_t thread_id(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* A used slot whose thread is gone without its exit handlers (raw clone, pthread_exit in a signal storm). */
static bool abandoned(const struct drec *rec, uint64_t owner)
{
	pid_t tid = (pid_t)(uint32_t)owner;
	return tid != 0 && syscall(SYS_tgkill, (pid_t)rec->header->pid, tid, 0) < 0 && errno == ESRCH;
}

static bool slot_claim_free(struct drec *rec, uint32_t i)
{
	struct drec_slot *slot = &rec->slots[i];
	uint64_t seen = load_relaxed(&slot->life_state);
	if ((uint32_t)seen != 0 || !compare_exchange(&slot->life_state, &seen, ((seen >> 32) + 1) << 32 | 1))
		return false;
	POINT(slot_claimed);
	return true;
}

/*
 * Takes over the slot of a thread that vanished, and closes what it left behind. Whoever takes the owner's word
 * away has it: a slot that is just being given out has none, so it cannot be taken twice.
 */
static bool slot_claim_abandoned(struct drec *rec, uint32_t i)
{
	struct local *l = &rec->locals[i];
	uint64_t owner = load_relaxed(&l->owner);
	if (!abandoned(rec, owner) || !compare_exchange(&l->owner, &owner, 0))
		return false;
	chunk_close(l);
	store_release(&l->slot->life_state, ((owner >> 32) + 1) << 32 | 1);
	POINT(slot_claimed);
	return true;
}

/* Everything of the slot's new life; events may follow. */
static void slot_begin(struct drec *rec, uint32_t i)
{
	struct local *l = &rec->locals[i];
	struct drec_slot *slot = &rec->slots[i];
	uint32_t begins = l->begins;
	fetch_max_relaxed(&rec->state->slots_used, i + 1);
	store32_relaxed(&slot->tid, thread_id());
	/* A loss that the former life could not put into the stream is told by this one. */
	store_release(&slot->open, (uint64_t)begins << 32);
	store32_relaxed(&slot->chunk, NO_CHUNK);
	l->rec = rec;
	l->slot = slot;
	l->index = i;
	l->life = (uint32_t)(load_relaxed(&slot->life_state) >> 32);
	l->chunk = NO_CHUNK;
	l->off = l->end = 0;
	l->busy = 0;
	l->leaving = 0;
	l->depth = 0;
	l->last = 0;
	l->events = 0;
	l->number = 0;
	l->prev_last = 0;
	l->step_scope = 0;
	l->full_tail = 0;
	store_release(&l->owner, (uint64_t)l->life << 32 | load32_relaxed(&slot->tid));
}

static uint32_t own_track(struct drec *rec)
{
	char name[17] = "";
	size_t bytes = 0;
	prctl(PR_GET_NAME, name);
	while (bytes < sizeof(name) - 1 && name[bytes])
		bytes++;
	struct drec_track_text head = {.kind = DREC_TRACK_THREAD, .name_bytes = (uint32_t)bytes, .tid = thread_id()};
	return dict_add(rec, DREC_DICT_TRACK, &head, sizeof(head), name, bytes);
}

static struct local *local_register(struct drec *rec)
{
	uint32_t i;
	for (i = 0; i < rec->n_slots && !slot_claim_free(rec, i); i++)
		;
	if (i == rec->n_slots)
		for (i = 0; i < rec->n_slots && !slot_claim_abandoned(rec, i); i++)
			;
	if (i == rec->n_slots)
		return NULL;
	slot_begin(rec, i);
	struct local *l = &rec->locals[i];
	l->track = own_track(rec);
	store32_release(&l->slot->track, l->track);
	l->next_of_thread = pthread_getspecific(key);
	/* Without room for the key's value the slot stays until the thread is seen to be gone. */
	pthread_setspecific(key, l);
	POINT(slot_ready);
	return l;
}

static struct local *local_of_thread(const struct drec *rec)
{
	struct local *l = pthread_getspecific(key);
	while (l && l->rec != rec)
		l = l->next_of_thread;
	return l;
}

struct local *local_find(struct drec *rec, uint64_t since)
{
	int saved = errno;
	struct local *l = NULL;
	uint64_t now = ticks_now(rec->clock), first = since < now ? since : now;
	if (thread_local_slot == &thread_gone) {
		loss_slotless(rec, DREC_LOSS_THREAD_EXIT, 1, first, now);
		return NULL;
	}
	l = local_of_thread(rec);
	if (!l && slotless_calls++ % RETRY_EVERY == 0)
		l = local_register(rec);
	if (l) {
		thread_local_slot = l;
		slotless_calls = 0;
	} else {
		loss_slotless(rec, DREC_LOSS_NO_SLOT, 1, first, now);
	}
	errno = saved;
	return l;
}

uint32_t drec_thread_track(drec *rec)
{
	struct local *l = enter(rec);
	if (!l)
		return 0;
	uint32_t track = l->track;
	leave(l);
	return track;
}
